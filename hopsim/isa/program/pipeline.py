"""Whether ptxas will serialise the wgmma of a kernel: then every mma is waited for before the next one is issued.

ptxas keeps a pipeline stage (from the first mma to the wait that ends it) asynchronous only while it can leave the
accumulators alone.  Where another path joins before that wait and brings accumulators that an ordinary instruction
defined, it gives up, says C7515 and serialises all wgmma of the function.  Triton's zero-trip path (`mov` of zeros
beside the loop) does just that.

The rule here was found by varying kernels under ptxas 13.0: a definition that dominates the mma is harmless, one on a
path beside it is not, one behind a wait for all groups is harmless again (persistent kernels), and a loop that waits
for all its groups is not affected.  Other reasons of ptxas (C7508 to C7519: registers, calls, ...) are not predicted:
DEVIATIONS D-SERIAL.
"""

from __future__ import annotations

from collections.abc import Sequence

from hopsim.isa.forms.bound import BoundInstruction, ConstantArg, RegisterArg, TupleArg
from hopsim.isa.program.flow import EXIT, SegmentPlan

MMA = "wgmma.mma_async"
WAIT = "wgmma.wait_group"


def accumulators(bound: BoundInstruction) -> int:
    """Return the accumulator registers of a wgmma as a bit mask (0 for anything else)."""
    if not bound.form.name.startswith(MMA):
        return 0
    first = bound.args[0]
    assert isinstance(first, TupleArg), bound
    mask = 0
    for item in first.items:
        assert isinstance(item, RegisterArg), bound
        mask |= 1 << item.register.index
    return mask


def _is_wait(bound: BoundInstruction) -> bool:
    return bound.form.name.startswith(WAIT)


def _waits_for_all(bound: BoundInstruction) -> bool:
    count = bound.args[0]
    return isinstance(count, ConstantArg) and count.value == 0


def dominators(plans: Sequence[SegmentPlan]) -> list[int]:
    """Return, per segment, the segments that every path from the entry passes first, itself included, as bit masks."""
    everything = (1 << len(plans)) - 1
    before: list[list[int]] = [[] for _ in plans]
    for plan in plans:
        for successor in plan.successors:
            if successor != EXIT:
                before[successor].append(plan.number)
    masks = [everything] * len(plans)
    masks[0] = 1
    changed = True
    while changed:
        changed = False
        for plan in plans[1:]:
            meet = everything
            for number in before[plan.number]:
                meet &= masks[number]
            new = meet | 1 << plan.number
            if new != masks[plan.number]:
                masks[plan.number] = new
                changed = True
    return masks


def serialised_by(
    body: Sequence[BoundInstruction], plans: Sequence[SegmentPlan]
) -> list[BoundInstruction]:
    """Return the ordinary definitions for which ptxas serialises wgmma; empty when it does not.

    Args:
        body: the instructions of a function.  plans: its segments.
    """
    tensor = [accumulators(bound) for bound in body]
    every = 0
    for mask in tensor:
        every |= mask
    if not every:
        return []
    flying = _in_flight(body, plans, tensor)
    dominate = dominators(plans)
    mma_segments = [plan.number for plan in plans if any(tensor[plan.start : plan.stop])]

    def is_end(index: int) -> bool:
        return _is_wait(body[index]) and _waits_for_all(body[index])

    ended = 0
    for plan in plans:
        if any(map(is_end, range(plan.start, plan.stop))):
            ended |= 1 << plan.number
    found: list[BoundInstruction] = []
    for plan in plans:
        for index in range(plan.start, plan.stop):
            mask = 0
            for register in body[index].writes:
                mask |= 1 << register
            mask &= every
            if tensor[index] or not mask:
                continue
            # A definition that every mma comes after is made before the stage begins.
            if all(dominate[number] >> plan.number & 1 for number in mma_segments):
                continue
            # One that comes after a wait for everything starts the next stage, as between the tiles of a CTA.
            if ended & dominate[plan.number] & ~(1 << plan.number) or any(
                is_end(before) for before in range(plan.start, index)
            ):
                continue
            if _reaches_wait(body, plans, tensor, flying, plan.number, index, mask):
                found.append(body[index])
    return found


def _in_flight(
    body: Sequence[BoundInstruction], plans: Sequence[SegmentPlan], tensor: Sequence[int]
) -> list[int]:
    """Return, per segment, the accumulators that may be in flight at its start."""
    at_start = [0] * len(plans)
    work = [plan.number for plan in plans]
    while work:
        plan = plans[work.pop()]
        mask = at_start[plan.number]
        for index in range(plan.start, plan.stop):
            mask |= tensor[index]
            if _is_wait(body[index]) and _waits_for_all(body[index]):
                mask = 0
        for successor in plan.successors:
            if successor != EXIT and mask & ~at_start[successor]:
                at_start[successor] |= mask
                work.append(successor)
    return at_start


def _reaches_wait(
    body: Sequence[BoundInstruction],
    plans: Sequence[SegmentPlan],
    tensor: Sequence[int],
    flying: Sequence[int],
    number: int,
    index: int,
    mask: int,
) -> bool:
    """Whether definitions `mask` made at `index` reach a wait at which the same registers may be in flight."""
    seen = [0] * len(plans)
    work = [(number, index + 1, mask, flying[number])]
    while work:
        segment, first, held, flight = work.pop()
        plan = plans[segment]
        if first > plan.start:
            # Inside its own segment: what is in flight here is what came in and what was issued before.
            for position in range(plan.start, first):
                flight |= tensor[position]
                if _is_wait(body[position]) and _waits_for_all(body[position]):
                    flight = 0
        for position in range(max(first, plan.start), plan.stop):
            bound = body[position]
            if _is_wait(bound):
                if held & flight:
                    return True
                if _waits_for_all(bound):
                    flight = 0
            flight |= tensor[position]
            held &= ~tensor[position]
            if not tensor[position]:
                for register in bound.writes:
                    held &= ~(1 << register)
            if not held:
                break
        if not held:
            continue
        for successor in plan.successors:
            if successor != EXIT and held & ~seen[successor]:
                seen[successor] |= held
                work.append((successor, plans[successor].start, held, flying[successor]))
    return False
