"""Loads that ptxas issues before the first of them is waited for.

A program may write: load, add what came, load into the same registers, add, and so on.  ptxas gives each load registers of
its own and moves it up past the additions, as far as registers and order allow; so a warp waits for a run of loads once.
A warp has six scoreboards to wait with: of more loads the first two or three have one each and the others share, and who
reads any of them waits for the last.

Loads of global memory pass stores to shared memory too, which lie elsewhere: what copies tiles by way of registers waits
once for all of a tile, and then stores it.

Source: machine code of ptxas 13.0 for the fix-up of stream-k (8 and 32 loads of four words, each added at once: 6 are
issued before the first addition, and then about one for each that has come; of 16 it is 12), whose 32 loads and additions
take 3,560 cycles on an H100; for the exchange of split-k over distributed shared memory (all 16); for `mma-simple`, whose
12 to 32 loads of a slice of K are waited for before the third product; for products and transpositions of CUDA C++ by tiles
in shared memory (tests/silicon/workloads), whose loads of a turn all come before the first store of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from hopsim.hw.timing.basic_blocks import entered_otherwise
from hopsim.hw.timing.register_room import taken
from hopsim.isa.forms.bound import BoundInstruction, ConstantArg
from hopsim.isa.program.codegen import Segment
from hopsim.isa.program.flow import EXIT, calls_software

GLOBAL: Final = "lsu_global"
LOADS: Final = (GLOBAL, "lsu_shared")
WEAK: Final = ("", "weak")
REGISTER_BITS: Final = 32
REGISTERS_AHEAD: Final = 48
"""Registers that loads of a run fill before one is waited for."""
ADDED_AHEAD: Final = 20
"""The same of loads from global memory whose values are used one after the other: the sixth is waited for."""
UNROLLED: Final = 4
"""Turns of a loop that ptxas makes one. Source: machine code of ptxas 13.0 for loops of loads and arithmetic in CUDA C++
kernels (tests/silicon/workloads: `layer_norm`, `softmax_rows`, `spmv_rows`, `gemm_naive`, `chase`; none that stores, nor
`block_sums`, which goes on by the size of the grid);
recordings on an H100 SXM, tests/silicon/micro.json: lists_*_w1_1 take half as long as with `nounroll`."""
SCOREBOARDS: Final = 6
"""Loads on their way that a warp can wait for one by one."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """What the wait for a load is moved to.

    Args:
        results: registers computed from it that are used later: whoever reads them waits.
        inputs: registers read here that may themselves wait for a load before.
        run: of the last load of a run that scoreboards do not tell apart: the results of all of it.
        turns: of the first load of a loop that is unrolled: of so many turns the loads are issued together.
        carried: what comes late from turn to turn.
        address: what comes late and its address waits for: it is issued behind the other loads of the run.
        is_first: of a run.
    """

    results: tuple[int, ...]
    inputs: frozenset[int]
    run: tuple[int, ...] = ()
    turns: int = 1
    carried: frozenset[int] = frozenset()
    address: frozenset[int] = frozenset()
    is_first: bool = False


@dataclass(slots=True, eq=False)
class LoadRuns:
    """What ptxas moves among the loads of a program, by number of segment.

    Args:
        deferred: loads that are not waited for where their values are used.
        posted: registers that a store is not held by, because ptxas puts it behind the loads that follow it.
        awaited: registers that are waited for instead, behind those loads.
    """

    deferred: dict[int, Deferred]
    posted: dict[int, frozenset[int]]
    awaited: dict[int, frozenset[int]]


def load_runs(
    program: Sequence[Segment], room: int | None = None, loops: Sequence[range] = ()
) -> LoadRuns:
    """Return the runs of loads of a program.

    Args:
        room: registers that loads on their way may fill; None: it needs more than a thread of a full SM has.
        loops: that ptxas unrolls, by their segments.

    These are runs of segments that follow each other, each a load and arithmetic, or a store to shared memory between loads
    of global memory, whose addresses do not come from a load of the run; where one has filled the registers, the warp
    waits, and a new run begins.
    """
    entered = entered_otherwise(program)
    found = LoadRuns({}, {}, {})
    number = 0
    while number < len(program):
        if not _is_load(program[number]):
            number += 1
            continue
        first, again = number, None
        run, posted, number = _run(program, first, entered, room)
        loop = next(
            (one for one in loops if first in one and max(run, default=-1) == one[-1]), None
        )
        if loop is not None and room is not None:
            again = _unrolled(program, loop, first, run, room)
            run = run if again is None else again
        if len(run) > 1 or again is not None:
            found.deferred.update(run)
            found.posted.update(posted)
        if posted:
            found.awaited[max(run) + 1] = frozenset().union(*posted.values())
        if len(run) > SCOREBOARDS:
            last = max(run)
            results = {result for load in run.values() for result in load.results}
            found.deferred[last] = replace(run[last], run=tuple(sorted(results)))
    return found


def _unrolled(
    program: Sequence[Segment], loop: range, first: int, run: dict[int, Deferred], room: int
) -> dict[int, Deferred] | None:
    """Return the run of a loop of which several turns issue their loads before any is waited for; None: they cannot.

    Args:
        loop: its segments.
        first: the first load.
        run: of one turn.
    """
    words = sum(
        _registers(program[number].instructions[0])
        for number, deferred in run.items()
        if not deferred.address
    )
    turns = min(UNROLLED, room // words)
    late = {register for deferred in run.values() for register in deferred.results}
    live = program[loop[0]].live
    carried = frozenset(register for register in late if live >> register & 1)
    before = program[loop[0] : first]
    if turns < 2 or any(carried & bound.reads for one in before for bound in one.instructions):
        return None
    again, *_ = _run(program, first, frozenset(), room, carried)
    if again.keys() != run.keys() or any(
        again[number].address != run[number].address for number in run
    ):
        # Where to look is carried from turn to turn.
        return None
    again[first] = replace(again[first], turns=turns, carried=carried)
    return again


def _run(
    program: Sequence[Segment],
    number: int,
    entered: frozenset[int],
    room: int | None,
    carried: frozenset[int] = frozenset(),
) -> tuple[dict[int, Deferred], dict[int, frozenset[int]], int]:
    """Return the run that begins with a segment, the stores in it, and the number of the segment after it."""
    run: dict[int, Deferred] = {}
    posted: dict[int, frozenset[int]] = {}
    late = set(carried)
    # Of these, what comes from loads that are issued behind the others.
    later: set[int] = set()
    filled = 0
    most = REGISTERS_AHEAD if room is None else room
    while True:
        segment = program[number]
        load = segment.instructions[0]
        if room is not None and late & load.reads:
            # It takes the registers of its address.
            pass
        elif room is None or load.form.unit == GLOBAL:
            filled += _registers(load)
        else:
            filled += taken(segment)
        if (filled > most and run) or _decides(segment, late):
            return run, posted, number + 1
        address = frozenset(late & load.reads)
        late -= load.writes
        before = frozenset(late)
        made = set(load.writes)
        inputs: set[int] = set()
        for bound in segment.instructions[1:]:
            reads = set(bound.reads)
            if reads & (made | late):
                inputs |= reads & before
                made |= bound.writes
                if load.form.unit == GLOBAL and room is None:
                    most = ADDED_AHEAD
            else:
                made -= bound.writes
                late -= bound.writes
        late |= made
        _note_later(segment, later, bool(address))
        following = [program[number].live for number in segment.successors if number != EXIT]
        results = tuple(
            sorted(register for register in made if any(live >> register & 1 for live in following))
        )
        run[number] = Deferred(results, frozenset(inputs), address=address, is_first=len(run) == 0)
        passed, number = _passed(program, number, entered, late, None if room is None else later)
        if passed is None:
            return run, posted, number
        posted |= passed


def _passed(
    program: Sequence[Segment],
    number: int,
    entered: frozenset[int],
    late: set[int],
    later: set[int] | None,
) -> tuple[dict[int, frozenset[int]] | None, int]:
    """Return the stores that the next load of a run passes, or None if none follows; and the number of the next segment.

    Args:
        number: of a load.
        late: registers that come from loads of the run; what stores wait for stays in them.
        later: of these, from loads that are issued behind the others; None: none can be.
    """
    begin = number + 1
    is_global = program[number].instructions[0].form.unit == GLOBAL
    stores: dict[int, frozenset[int]] = {}
    while True:
        if any(map(calls_software, program[number].instructions[1:])):
            return None, begin
        follows = program[number].successors == (number + 1,)
        number += 1
        if not follows or number in entered:
            return None, begin
        segment = program[number]
        head = segment.instructions[0]
        if _is_load(segment):
            bound = late if later is None else later
            joins = not bound & set(head.reads) and (not stores or head.form.unit == GLOBAL)
            return (stores, number) if joins else (None, begin)
        if not is_global or not _is_shared_store(segment):
            return None, begin
        after = segment.instructions[1:]
        if any(late & (set(one.reads) | one.writes) for one in after):
            return None, begin
        stores[number] = frozenset(late & set(head.reads))


def _note_later(segment: Segment, later: set[int], is_postponed: bool) -> None:
    """Note what a segment makes of loads that are issued behind the others, and what it makes anew."""
    load, *others = segment.instructions
    if is_postponed:
        later |= load.writes
    else:
        later -= load.writes
    for bound in others:
        if bound.reads & later:
            later |= bound.writes
        else:
            later -= bound.writes


def unrolled_loops(program: Sequence[Segment], kept: Sequence[int]) -> list[range]:
    """Return the loops that ptxas unrolls: one basic block each, which only loads and computes, left by a counter.

    Args:
        kept: lines of PTX that ask it to leave the loop that follows.
    """
    entered = entered_otherwise(program)
    found: list[range] = []
    for last in program:
        first = min(last.successors)
        if not 0 <= first <= last.number:
            continue
        loop = range(first, last.number + 1)
        before = program[first - 1].last_line if first else 0
        if any(before < line < program[first].line for line in kept):
            continue
        if any(program[number].successors != (number + 1,) for number in loop[:-1]):
            continue
        if any(number in entered for number in loop[1:]):
            continue
        heads = [program[number] for number in loop if program[number].head is not None]
        if heads and all(_is_load(one) for one in heads) and _counts(program, loop):
            found.append(loop)
    return found


def _counts(program: Sequence[Segment], loop: range) -> bool:
    """Whether a loop is left by a counter that goes on by a literal: how many turns are left is known then."""
    last = program[loop[-1]].instructions
    guard = last[-1].instruction.guard
    if guard is None:
        return False
    body = [bound for number in loop for bound in program[number].instructions]
    tests = [bound for bound in body if guard[0].index in bound.writes]
    if len(tests) != 1 or tests[0].instruction.opcode[0] != "setp":
        return False
    steps = [bound for bound in body if bound.writes & tests[0].reads]
    return len(steps) == 1 and _steps_by_literal(steps[0])


def _steps_by_literal(bound: BoundInstruction) -> bool:
    is_sum = bound.instruction.opcode[0] in ("add", "sub")
    return is_sum and bool(bound.writes & bound.reads) and isinstance(bound.args[-1], ConstantArg)


def _decides(segment: Segment, late: set[int]) -> bool:
    """Whether what a segment loads, or what comes late, says where the program goes on."""
    known = late | segment.instructions[0].writes
    for bound in segment.instructions[1:]:
        if bound.reads & known:
            if bound.form.unit in ("branch", "control"):
                return True
            known |= bound.writes
    return False


def _is_shared_store(segment: Segment) -> bool:
    """Whether a segment begins with a store that only a thread's own CTA may see, in no order."""
    if segment.head is None:
        return False
    bound = segment.instructions[0]
    return bound.form.unit == "lsu_shared" and bound.form.base[0] == "st" and _is_weak(bound)


def _is_load(segment: Segment) -> bool:
    """Whether a segment is a load that no order of memory holds back, and what is done then."""
    if segment.head is None:
        return False
    bound = segment.instructions[0]
    return bound.form.unit in LOADS and bound.form.base[0] == "ld" and _is_weak(bound)


def _is_weak(bound: BoundInstruction) -> bool:
    return dict(bound.slots).get("sem", "") in WEAK


def _registers(bound: BoundInstruction) -> int:
    """Return the 32-bit registers that a load fills."""
    return sum(
        -(-destination.register.width_bits // REGISTER_BITS)
        for destination in bound.destinations
        if destination.register is not None
    )


__all__ = ["Deferred", "LoadRuns", "load_runs", "unrolled_loops"]
