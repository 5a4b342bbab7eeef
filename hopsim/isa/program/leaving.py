"""Where lanes that jump there are on their way out of the program.

A branch to a `ret` is an exit of the lanes that take it, and so is a branch to another one by the same predicate that leads
to a `ret`: ptxas lets it lead there at once.

Source: machine code of ptxas 13.0 for the microbenchmarks `sharing_*` (two parts of one thread, one behind the other).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hopsim.isa.program.codegen import Segment
from hopsim.isa.program.flow import is_branch

Guard = tuple[int, bool]
"""A predicate register, and whether it is inverted."""


def leaving(program: Sequence[Segment]) -> frozenset[int]:
    """Return the segments from which all lanes leave that have jumped there."""
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
