"""Where lanes that jump there have nothing more to do than to leave the program.

That is a `ret`, of which ptxas makes an EXIT of the lanes that branch to it, and a branch to a `ret` by the predicate by
which they have come.  The latter is a guess (DEVIATIONS D-WAKE): ptxas 13.0 keeps both branches of the microbenchmarks
`sharing_*`, so that these lanes wait at a BSYNC for the one that works, which makes it look from time to time on an H100
(`wake_around`); but SMs that read the same boxes keep step there (tests/silicon/l2_joined.json) as they do here only where
that one is woken at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hopsim.isa.program.codegen import Segment
from hopsim.isa.program.flow import is_branch

Guard = tuple[int, bool]
"""A predicate register, and whether it is inverted."""


def leaving(program: Sequence[Segment]) -> frozenset[int]:
    """Return the segments where all lanes that have jumped there only leave."""
    comes: dict[int, set[Guard | None]] = {}
    for segment in program:
        for target, guard in _jumps(segment):
            comes.setdefault(target, set()).add(guard)
    found = {segment.number for segment in program if segment.only_leaves}
    # What is behind comes first, as most branches lead forwards.
    for segment in reversed(program):
        if len(segment.instructions) == 1 and segment.head is None:
            found.update(
                segment.number
                for target, guard in _jumps(segment)
                if target in found and guard is not None and comes.get(segment.number) == {guard}
            )
    return frozenset(found)


def _jumps(segment: Segment) -> Iterator[tuple[int, Guard | None]]:
    """Give where the branch at the end of a segment leads when it is taken, and its predicate."""
    if not segment.instructions or not is_branch(segment.instructions[-1]):
        return
    guard = segment.instructions[-1].instruction.guard
    key = None if guard is None else (guard[0].index, guard[1])
    # (The way on comes first.)
    for target in segment.successors[0 if guard is None else 1 :]:
        yield target, key
