"""What a `values=False` run computes all the same: what decides where the program goes, and what it asks for.

Such a run leaves out data.  But branches, addresses, counts and coordinates may come out of memory: sizes of groups,
pointers, a tile that an atomic handed out, tensor maps that are edited.  Loads and atomics of these are performed, and
the stores that may feed them; where they meet bytes that the run did not compute it ends with `ValuesNeeded`.

A branch on data that jumps over a few computations, and nothing else, decides little (a softmax divides unless its sum is
zero): such a run computes them, as a warp does whose lanes differ, and holds what they write for data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hopsim.isa.forms.bound import AddressArg, Arg, BoundInstruction, RegisterArg, TupleArg
from hopsim.isa.program.flow import EXIT, SegmentPlan, is_synchronising
from hopsim.isa.program.register_masks import mask_of

PERFORMED: Final = ("ld", "ldu", "atom")
"""Instructions that read memory and that such a run can perform."""
STORES: Final = ("st", "st.async")


@dataclass(frozen=True, slots=True)
class Deciding:
    """What of a program is computed in every run.

    Args:
        performed: indices of the loads and atomics that are performed.
        before, after: by instruction, the registers that may hold data which such a run does not compute, as bit masks.
        follows_bytes: whether the run has to know which bytes it computed.
        not_taken: indices of the branches on data that jump over computations alone; such a run goes on behind them.
    """

    performed: frozenset[int]
    before: Sequence[int]
    after: Sequence[int]
    follows_bytes: bool
    not_taken: frozenset[int]


def deciding(body: Sequence[BoundInstruction], plans: Sequence[SegmentPlan]) -> Deciding:
    """Return what a `values=False` run of a program computes.

    Args:
        plans: the segments of the body.
    """
    reads_data = [one.form.data and not is_synchronising(one) for one in body]
    may = [data and one.form.name in PERFORMED for one, data in zip(body, reads_data, strict=True)]
    out_of_reach = _forward(
        body, [data and not able for data, able in zip(reads_data, may, strict=True)]
    )
    needed = _backward(body, reads_data, may, _asked_for(body))
    performed = _chosen(body, may, needed, out_of_reach)
    edits_maps = any(one.form.name.startswith("tensormap.") for one in body)
    if performed or edits_maps:
        needed |= {
            index
            for one in body
            if one.form.name in STORES
            for index in one.reads
            if index not in out_of_reach
        }
        performed = _chosen(body, may, _backward(body, reads_data, may, needed), out_of_reach)
    sources = [data and index not in performed for index, data in enumerate(reads_data)]
    jumps = {
        plan.number: plan.successors[0] for plan in plans if _jumps_over_computations(plan, plans)
    }
    before, after = _tainted(body, plans, sources, jumps)
    not_taken = frozenset(
        branch
        for plan in plans
        if plan.number in jumps
        and (branch := plan.branch) is not None
        and _is_on(body[branch], before[branch])
    )
    return Deciding(performed, before, after, bool(performed) or edits_maps, not_taken)


def performed_always(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operation on memory as a `values=False` run performs it."""

    def perform(ctx: Any, *args: Any) -> Any:
        machine = ctx.machine
        machine.is_deciding = True
        try:
            return operation(ctx, *args)
        finally:
            machine.is_deciding = False

    return perform


def _asked_for(body: Sequence[BoundInstruction]) -> set[int]:
    """Return the registers that branches, guards, addresses, counts and coordinates name."""
    found: set[int] = set()
    for one in body:
        if one.form.purity != "shared" and one.writes:
            continue
        guard = one.instruction.guard
        if guard is not None:
            found.add(guard[0].index)
        for name, arg in zip(one.arg_names, one.args, strict=True):
            if name not in one.form.data_operands or is_synchronising(one):
                found.update(_registers(arg))
    return found


def _registers(arg: Arg) -> Iterator[int]:
    if isinstance(arg, RegisterArg):
        yield arg.register.index
    elif isinstance(arg, AddressArg):
        yield from _registers(arg.base)
    elif isinstance(arg, TupleArg) and not arg.by_index:
        for item in arg.items:
            yield from _registers(item)


def _backward(
    body: Sequence[BoundInstruction], reads_data: list[bool], may: list[bool], asked: set[int]
) -> set[int]:
    """Return the registers that those of `asked` are computed from, and these themselves."""
    needed = set(asked)
    changed = True
    while changed:
        changed = False
        for one, data, able in zip(body, reads_data, may, strict=True):
            if one.writes & needed and (able or not data) and not one.reads <= needed:
                needed |= one.reads
                changed = True
    return needed


def _chosen(
    body: Sequence[BoundInstruction],
    may: list[bool],
    needed: set[int],
    out_of_reach: frozenset[int],
) -> frozenset[int]:
    return frozenset(
        index
        for index, one in enumerate(body)
        if may[index] and one.writes & needed and not one.writes <= out_of_reach
    )


def _jumps_over_computations(plan: SegmentPlan, plans: Sequence[SegmentPlan]) -> bool:
    """Whether a segment ends with a branch over one that nobody outside the warp sees, to what follows that."""
    if plan.branch is None or len(plan.successors) != 2:
        return False
    after, taken = plan.successors
    return (
        EXIT not in plan.successors
        and not plans[after].has_head
        and plans[after].successors == (taken,)
    )


def _is_on(branch: BoundInstruction, registers: int) -> bool:
    """Whether a branch is guarded by one of some registers."""
    guard = branch.instruction.guard
    return guard is not None and bool(registers >> guard[0].index & 1)


def _tainted(
    body: Sequence[BoundInstruction],
    plans: Sequence[SegmentPlan],
    sources: Sequence[bool],
    jumps: Mapping[int, int],
) -> tuple[list[int], list[int]]:
    """Return, before and after each instruction, the registers that hold what the sources write, or is computed from it.

    Compilers use a register for a constant in one place and for data in another.

    Args:
        jumps: segments that end with a branch over another one, and that: what it writes hangs on what the branch is on.
    """
    before, after = [0] * len(body), [0] * len(body)
    reads = [mask_of(one.reads) for one in body]
    writes = [mask_of(one.writes) for one in body]
    entering = [0] * len(plans)
    waiting = list(range(len(plans)))
    seen: set[int] = set()
    doubtful: set[int] = set()
    while waiting:
        plan = plans[waiting.pop()]
        seen.add(plan.number)
        held = entering[plan.number]
        for index in range(plan.start, plan.stop):
            before[index] = held
            is_data = sources[index] or (not body[index].form.data and reads[index] & held)
            if is_data or plan.number in doubtful:
                held |= writes[index]
            elif body[index].instruction.guard is None:
                held &= ~writes[index]
            after[index] = held
        over = jumps.get(plan.number)
        if over is not None and over not in doubtful:
            assert plan.branch is not None
            if _is_on(body[plan.branch], before[plan.branch]):
                doubtful.add(over)
                waiting.append(over)
        for successor in plan.successors:
            if successor == EXIT or (not held & ~entering[successor] and successor in seen):
                continue
            entering[successor] |= held
            waiting.append(successor)
    return before, after


def _forward(body: Sequence[BoundInstruction], sources: Sequence[bool]) -> frozenset[int]:
    """Return the registers that the sources write, and whatever is computed from them, in any order of instructions."""
    tainted: set[int] = set()
    for one, is_source in zip(body, sources, strict=True):
        if is_source:
            tainted |= one.writes
    changed = True
    while changed:
        changed = False
        for one in body:
            if not one.form.data and one.reads & tainted and not one.writes <= tainted:
                tainted |= one.writes
                changed = True
    return frozenset(tainted)
