"""Where ptxas puts the plain instructions of a basic block: under the wgmma and the barriers that they do not depend on.

ptxas schedules a whole basic block.  A wgmma is on its way for long, so what does not need its sums is issued right after
the first one, however late the program asks for it; and a barrier is issued before arithmetic that stands before it, since
a warp goes on with arithmetic while it waits for the others.  Shared instructions keep their order.

Source: machine code of ptxas 13.0 for Triton's GEMMs (in each of them the predicates, coordinates and addresses of the
next copies by TMA, `elect.sync` included, lie between the first and the second HGMMA; of the addresses of copies by threads
some do, and others lie just before their LDGSTS; a parity is computed after the BAR that it stands before); hopsim's
recording, H100 SXM, tests/silicon/micro.json, bar_among_*: up to 16 dependent instructions after bar.sync take as long as
they do without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hopsim.isa.forms.bound import BoundInstruction
from hopsim.isa.program.codegen import Segment

MULTIPLIES: Final = "tensor"
BARRIER: Final = "barrier"
COPIES: Final = "tma"
THREAD_COPIES: Final = ("cp.async.ca", "cp.async.cg")
AHEAD: Final = 4
"""Of what copies by threads read, so much is worked out beside the first wgmma of a block. Source: machine code of ptxas
13.0 for GEMMs that load through pointers: the addresses of four of eight and of twelve copies, of one where registers are
short; the others come between the copies."""
TESTS: Final = "mbarrier.try_wait"
WAIT: Final = "wgmma.wait_group"
MOVABLE_HEADS: Final = ("elect.sync",)
READS_CLOCK: Final = "mov"
"""Base of a head that reads a clock: it is where the program has it, and nothing passes it."""


def entered_otherwise(program: Sequence[Segment]) -> frozenset[int]:
    """Return the segments that are entered from elsewhere than the segment before."""
    return frozenset(
        successor
        for segment in program
        for successor in segment.successors
        if successor != segment.number + 1
    )


@dataclass(slots=True, eq=False)
class Placed:
    """What ptxas leaves of a segment, and puts to it.

    Args:
        instructions: of other segments too; the head is the first one, if it is still here.
        prepares: copies of later segments of which all but the last machine instruction is here.
        prepared: whether that is so of the copy at its head.
    """

    instructions: list[BoundInstruction]
    prepares: int = 0
    prepared: bool = False


def placed(program: Sequence[Segment]) -> list[Placed]:
    """Return what ptxas makes of each segment, by number."""
    found = [Placed(list(segment.instructions)) for segment in program]
    sums = frozenset[int]().union(
        *(one.instructions[0].writes for one in program if _head_unit(one) == MULTIPLIES)
    )
    for block in blocks(program):
        _move_up(program, block, found, sums)
        _move_down(program, block, found)
        _move_to_copies(program, block, found)
    return found


def after_tests(program: Sequence[Segment]) -> frozenset[int]:
    """Return the segments that are only come to when a loop of `mbarrier.try_wait` before them ends."""
    entries: dict[int, set[int]] = {}
    for segment in program:
        for successor in segment.successors:
            entries.setdefault(successor, set()).add(segment.number)
    return frozenset(
        number
        for number, sources in entries.items()
        if sources == {number - 1} and spins(program[number - 1])
    )


def spins(segment: Segment) -> bool:
    """Whether a segment is a loop that tests an mbarrier until its phase is over."""
    return (
        segment.head is not None
        and segment.instructions[0].form.name.startswith(TESTS)
        and segment.number in segment.successors
    )


def blocks(program: Sequence[Segment]) -> Iterator[range]:
    """Give the numbers of segments that are executed one after the other, whichever way the program takes."""
    entered = entered_otherwise(program)
    begin = 0
    for segment in program:
        following = segment.number + 1
        if segment.successors != (following,) or following in entered:
            yield range(begin, following)
            begin = following


def _move_up(
    program: Sequence[Segment], block: range, found: list[Placed], sums: frozenset[int]
) -> None:
    """Move instructions up to the first wgmma of a block.

    Args:
        sums: registers of all wgmma, any of which may be what a wait is for.
    """
    first = _first_wgmma(program, block)
    if first is None:
        return
    kept_reads: set[int] = set()
    kept_writes = set(program[first].instructions[0].writes)
    addresses = frozenset[int]().union(
        *(program[number].instructions[0].reads for number in block if _copies(program[number]))
    )
    ahead = 0
    wanted = _wanted(program, block)
    for number in block[block.index(first) + 1 :]:
        segment = program[number]
        staying: list[BoundInstruction] = []
        for position, one in enumerate(segment.instructions):
            is_head = position == 0 and segment.head is not None
            if is_head and one.form.base[0] == READS_CLOCK:
                return
            depends = bool(one.reads & kept_writes)
            moves = one.form.name in MOVABLE_HEADS if is_head else id(one) in wanted
            if moves and one.writes & addresses:
                ahead += 1
                moves = ahead <= AHEAD
            if moves and not depends and not one.writes & (kept_writes | kept_reads):
                found[first].instructions.append(one)
                continue
            if is_head and one.form.unit == COPIES and not depends:
                found[first].prepares += 1
                found[number].prepared = True
            staying.append(one)
            kept_writes |= one.writes
            if one.form.name.startswith(WAIT):
                kept_writes |= sums
            if one.form.unit != MULTIPLIES:
                # What a wgmma has read is overwritten in other registers.
                kept_reads |= one.reads
        found[number].instructions = staying


def _wanted(program: Sequence[Segment], block: range) -> set[int]:
    """Return the `id` of instructions whose results others of a block read.

    What is for the next turn of a loop, such as the step of a pointer, is in no hurry.
    """
    found: set[int] = set()
    reads: set[int] = set()
    for number in reversed(block):
        for one in reversed(program[number].instructions):
            if one.writes & reads:
                found.add(id(one))
            reads = (reads - one.writes) | one.reads
    return found


def _move_down(program: Sequence[Segment], block: range, found: list[Placed]) -> None:
    """Move instructions down past a barrier that follows them."""
    for number in block[1:]:
        if _head_unit(program[number]) != BARRIER:
            continue
        before = found[number - 1].instructions
        head = _head_unit(program[number - 1])
        # What follows another barrier passes under that one.
        if not before or head in (MULTIPLIES, BARRIER) or before[0].form.base[0] == READS_CLOCK:
            continue
        begin = 1 if head and before[0] is program[number - 1].instructions[0] else 0
        barrier, *after = found[number].instructions
        if not any(one.writes & barrier.reads for one in before[begin:]):
            found[number].instructions = [barrier, *before[begin:], *after]
            del before[begin:]


def _move_to_copies(program: Sequence[Segment], block: range, found: list[Placed]) -> None:
    """Move what copies by threads wait for, and what did not go under the first wgmma of a block, to just before each."""
    first = _first_wgmma(program, block)
    if first is None:
        return
    for number in block[block.index(first) + 1 :]:
        if not _copies(program[number]):
            continue
        wanted = set(program[number].instructions[0].reads)
        # What stays between is not to be passed by what it reads, writes, or whose operands it writes.
        reads, writes = set[int](), set[int]()
        moved: list[BoundInstruction] = []
        for earlier in range(number - 1, first, -1):
            staying: list[BoundInstruction] = []
            for one in reversed(found[earlier].instructions):
                is_head = one is program[earlier].instructions[0] and _head_unit(program[earlier])
                is_free = not (one.writes & (reads | writes) or one.reads & writes)
                if is_free and not is_head and one.writes & wanted:
                    moved.append(one)
                    wanted |= one.reads
                else:
                    staying.append(one)
                    reads |= one.reads
                    writes |= one.writes
            found[earlier].instructions = staying[::-1]
        found[number - 1].instructions += moved[::-1]


def _first_wgmma(program: Sequence[Segment], block: range) -> int | None:
    return next((number for number in block if _head_unit(program[number]) == MULTIPLIES), None)


def reads_clock(segment: Segment) -> bool:
    """Whether a segment begins with a reading of a clock."""
    return segment.head is not None and segment.instructions[0].form.base[0] == READS_CLOCK


def _copies(segment: Segment) -> bool:
    """Whether a segment begins with a copy by threads."""
    return segment.head is not None and segment.instructions[0].form.name in THREAD_COPIES


def _head_unit(segment: Segment) -> str:
    return "" if segment.head is None else segment.instructions[0].form.unit


__all__ = ["Placed", "after_tests", "blocks", "entered_otherwise", "placed", "reads_clock", "spins"]
