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
from hopsim.isa.forms.bound import BoundInstruction
from hopsim.isa.program.codegen import Segment

GLOBAL: Final = "lsu_global"
LOADS: Final = (GLOBAL, "lsu_shared")
WEAK: Final = ("", "weak")
REGISTER_BITS: Final = 32
REGISTERS_AHEAD: Final = 48
"""Registers that loads of a run fill before one is waited for."""
ADDED_AHEAD: Final = 20
"""The same of loads from global memory whose values are used one after the other: the sixth is waited for."""
SCOREBOARDS: Final = 6
"""Loads on their way that a warp can wait for one by one."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """What the wait for a load is moved to.

    Args:
        results: registers computed from it that are used later: whoever reads them waits.
        inputs: registers read here that may themselves wait for a load before.
        run: of the last load of a run that scoreboards do not tell apart: the results of all of it.
    """

    results: tuple[int, ...]
    inputs: frozenset[int]
    run: tuple[int, ...] = ()


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


def load_runs(program: Sequence[Segment]) -> LoadRuns:
    """Return the runs of loads of a program.

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
        run, posted, number = _run(program, number, entered)
        if len(run) > 1:
            found.deferred.update(run)
            found.posted.update(posted)
        if posted:
            found.awaited[max(run) + 1] = frozenset().union(*posted.values())
        if len(run) > SCOREBOARDS:
            last = max(run)
            results = {result for load in run.values() for result in load.results}
            found.deferred[last] = replace(run[last], run=tuple(sorted(results)))
    return found


def _run(
    program: Sequence[Segment], number: int, entered: frozenset[int]
) -> tuple[dict[int, Deferred], dict[int, frozenset[int]], int]:
    """Return the run that begins with a segment, the stores in it, and the number of the segment after it."""
    run: dict[int, Deferred] = {}
    posted: dict[int, frozenset[int]] = {}
    late: set[int] = set()
    filled = 0
    most = REGISTERS_AHEAD
    while True:
        segment = program[number]
        load = segment.instructions[0]
        filled += _registers(load)
        if filled > most:
            return run, posted, number + 1
        late -= load.writes
        before = frozenset(late)
        made = set(load.writes)
        inputs: set[int] = set()
        for bound in segment.instructions[1:]:
            reads = set(bound.reads)
            if reads & (made | late):
                inputs |= reads & before
                made |= bound.writes
                if load.form.unit == GLOBAL:
                    most = ADDED_AHEAD
            else:
                made -= bound.writes
                late -= bound.writes
        late |= made
        live = program[number + 1].live if number + 1 < len(program) else 0
        results = tuple(sorted(register for register in made if live >> register & 1))
        run[number] = Deferred(results, frozenset(inputs))
        passed, number = _passed(program, number, entered, late)
        if passed is None:
            return run, posted, number
        posted |= passed


def _passed(
    program: Sequence[Segment], number: int, entered: frozenset[int], late: set[int]
) -> tuple[dict[int, frozenset[int]] | None, int]:
    """Return the stores that the next load of a run passes, or None if none follows; and the number of the next segment.

    Args:
        number: of a load.
        late: registers that come from loads of the run; what stores wait for stays in them.
    """
    begin = number + 1
    is_global = program[number].instructions[0].form.unit == GLOBAL
    stores: dict[int, frozenset[int]] = {}
    while True:
        follows = program[number].successors == (number + 1,)
        number += 1
        if not follows or number in entered:
            return None, begin
        segment = program[number]
        head = segment.instructions[0]
        if _is_load(segment):
            joins = not late & set(head.reads) and (not stores or head.form.unit == GLOBAL)
            return (stores, number) if joins else (None, begin)
        if not is_global or not _is_shared_store(segment):
            return None, begin
        after = segment.instructions[1:]
        if any(late & (set(one.reads) | one.writes) for one in after):
            return None, begin
        stores[number] = frozenset(late & set(head.reads))


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


__all__ = ["Deferred", "LoadRuns", "load_runs"]
