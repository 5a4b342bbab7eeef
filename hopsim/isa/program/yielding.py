"""Where a loop asks for news: reads of what other threads may change, between a branch backwards and its target.

ptxas puts a YIELD there if the loop may part a warp, and an H100 lets the other lanes of the warp go on, those that wait at
the end of the loop too: a lock that a lane of the same warp holds is released (32 lanes one after the other, each 2,400
cycles after the one before).  Waits for an mbarrier are no such reads here: a thread that waits for one is suspended.

Source: machine code of ptxas 13.0 for loops around each kind of read, with addresses that differ between lanes; hopsim's
measurement of a lock and of a flag within a warp, H100 SXM.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from hopsim.isa.forms.bound import BoundInstruction
from hopsim.isa.program.codegen import Segment

STRONG: Final = ("relaxed", "acquire", "volatile", "mmio")


def yielding(program: Sequence[Segment]) -> frozenset[int]:
    """Return the segments that begin with such a read."""
    # Of how many loops each segment is part: they begin at the target of a branch backwards and end with the branch.
    changes = [0] * (len(program) + 1)
    for segment in program:
        for target in segment.successors:
            if 0 <= target <= segment.number:
                changes[target] += 1
                changes[segment.number + 1] -= 1
    return frozenset(
        segment.number
        for segment, loops in zip(program, accumulate(changes), strict=False)
        if loops and segment.head is not None and _asks(segment.instructions[0])
    )


def _asks(bound: BoundInstruction) -> bool:
    name = bound.form.base[0]
    return name == "atom" or (name == "ld" and dict(bound.slots).get("sem") in STRONG)
