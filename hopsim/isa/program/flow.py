"""Control flow and liveness of one function: segments, post-dominators, live registers.

A *segment* is the unit a warp executes at once: at most one shared instruction at its head, then plain instructions
(registers only), then where to go next.  Everything other agents can observe happens in heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hopsim.isa.forms.bound import BoundInstruction, RegisterArg, TupleArg

EXIT = -1

SYNCHRONISING: Final = ("relaxed", "acquire", "release")
"""Orders of loads and stores with which threads synchronise: a `values=False` run performs these."""


SOFTWARE: Final = ("div", "rem", "rcp", "sqrt", "rsqrt")
"""Instructions that can become calls of software."""


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """Instructions `[start, stop)` of the body.

    `branch` is the index of the last instruction when it branches or exits, else None.  `successors` are segment
    numbers, fall-through first (EXIT for leaving the function); a conditional branch has two, a branch by an index as many
    as it has targets.
    """

    number: int
    start: int
    stop: int
    has_head: bool
    branch: int | None
    successors: tuple[int, ...]


def is_branch(bound: BoundInstruction) -> bool:
    """Whether the instruction decides where to go next."""
    return bound.form.unit == "branch"


def calls_software(bound: BoundInstruction) -> bool:
    """Whether ptxas makes it a call, or a branch to one for rare operands: its basic block ends there.

    Source: machine code of ptxas 13.0: correctly rounded `div`, `rcp`, `sqrt`, `rsqrt.approx.f64`, and integer division,
    but of u32.
    """
    opcode = bound.instruction.opcode
    if opcode[0] not in SOFTWARE:
        return False
    if "approx" in opcode or "full" in opcode:
        return opcode[0] == "rsqrt" and "f64" in opcode and "ftz" not in opcode
    return "u32" not in opcode


def segments(body: Sequence[BoundInstruction], targets: set[int]) -> list[SegmentPlan]:
    """Cut a body at labels, after branches, and before every shared instruction.

    Args:
        body: bound instructions of a function.
        targets: instruction indices that labels stand before.
    """
    count = len(body)
    starts = {0} | {target for target in targets if target < count}
    for index, bound in enumerate(body):
        if is_branch(bound):
            starts.add(index + 1)
            if len(bound.targets) > 1:
                # Lanes whose index differs part one target at a time: the others come back to the branch.
                starts.add(index)
        if bound.form.purity == "shared":
            starts.add(index)
    order = sorted(start for start in starts if start < count)
    number_of = {start: number for number, start in enumerate(order)}
    plans: list[SegmentPlan] = []
    for number, start in enumerate(order):
        stop = order[number + 1] if number + 1 < len(order) else count
        last = body[stop - 1]
        after = number_of.get(stop, EXIT)
        branch = None
        successors: tuple[int, ...] = (after,)
        if is_branch(last):
            branch = stop - 1
            taken = [number_of.get(label.target, EXIT) for label in last.targets] or [EXIT]
            ways = [after, *taken] if last.instruction.guard is not None else taken
            successors = tuple(dict.fromkeys(ways)) if len(taken) > 1 else tuple(ways)
        plans.append(
            SegmentPlan(
                number, start, stop, body[start].form.purity == "shared", branch, successors
            )
        )
    return plans


def post_dominators(plans: Sequence[SegmentPlan]) -> list[int]:
    """Return the immediate post-dominator of each segment (EXIT when it is the end of the function)."""
    count = len(plans)
    everything = (1 << (count + 1)) - 1
    exit_bit = 1 << count
    sets = [everything] * count
    changed = True
    while changed:
        changed = False
        for plan in reversed(plans):
            meet = everything
            for successor in plan.successors:
                meet &= exit_bit if successor == EXIT else sets[successor]
            new = meet | (1 << plan.number)
            if new != sets[plan.number]:
                sets[plan.number] = new
                changed = True
    nearest: list[int] = []
    for plan in plans:
        strict = sets[plan.number] & ~(1 << plan.number)
        best = EXIT
        # The immediate post-dominator is the one whose own set is exactly the strict set.
        for number in range(count):
            if strict >> number & 1 and sets[number] == strict:
                best = number
                break
        nearest.append(best)
    return nearest


def meeting_points(plans: Sequence[SegmentPlan]) -> list[int]:
    """Return, per segment, where lanes that part ways there meet again (EXIT: nowhere).

    It is the immediate post-dominator.  Where that is the end of the function only because some path leaves early, the
    early exits that lie on one side of the branch do not count: lanes that leave are not waited for.
    """
    nearest = post_dominators(plans)
    for plan in plans:
        if (
            nearest[plan.number] == EXIT
            and len(plan.successors) > 1
            and EXIT not in plan.successors
        ):
            nearest[plan.number] = _meeting_point(plans, plan)
    return nearest


def _meeting_point(plans: Sequence[SegmentPlan], branch: SegmentPlan) -> int:
    ways = [_reachable(plans, successor) for successor in branch.successors]
    both = _in_all(ways)
    if not both:
        return EXIT
    everything = (1 << (len(plans) + 1)) - 1
    exit_bit = 1 << len(plans)
    inside = [plan for plan in plans if any(way >> plan.number & 1 for way in ways)]
    sets = dict.fromkeys((plan.number for plan in inside), everything)

    def after(plan: SegmentPlan) -> int:
        meet = everything
        for successor in plan.successors:
            if successor != EXIT:
                meet &= sets[successor]
            elif both >> plan.number & 1:
                meet &= exit_bit
        return meet

    changed = True
    while changed:
        changed = False
        for plan in reversed(inside):
            new = after(plan) | 1 << plan.number
            if new != sets[plan.number]:
                sets[plan.number] = new
                changed = True
    common = _in_all([sets[successor] for successor in branch.successors])
    return next(
        (number for number, found in sets.items() if common >> number & 1 and found == common), EXIT
    )


def _in_all(masks: Sequence[int]) -> int:
    """Return the bits that all masks have."""
    common = masks[0]
    for mask in masks:
        common &= mask
    return common


def _reachable(plans: Sequence[SegmentPlan], start: int) -> int:
    """Return the segments that can follow `start`, itself included, as a bit mask."""
    found = 0
    todo = [start]
    while todo:
        number = todo.pop()
        if number != EXIT and not found >> number & 1:
            found |= 1 << number
            todo += plans[number].successors
    return found


def live_registers(body: Sequence[BoundInstruction], plans: Sequence[SegmentPlan]) -> list[int]:
    """Return, per segment, the registers live at its start, as a bit mask over register indices."""
    used = [0] * len(plans)
    defined = [0] * len(plans)
    for plan in plans:
        use = define = 0
        for index in range(plan.start, plan.stop):
            bound = body[index]
            for register in bound.reads:
                if not define >> register & 1:
                    use |= 1 << register
            # A guarded write may leave the old value, so it does not end the old value's life.
            if bound.instruction.guard is None:
                for register in bound.writes:
                    define |= 1 << register
        used[plan.number], defined[plan.number] = use, define
    live = [0] * len(plans)
    changed = True
    while changed:
        changed = False
        for plan in reversed(plans):
            out = 0
            for successor in plan.successors:
                if successor != EXIT:
                    out |= live[successor]
            new = used[plan.number] | (out & ~defined[plan.number])
            if new != live[plan.number]:
                live[plan.number] = new
                changed = True
    return live


def borrowed_registers(body: Sequence[BoundInstruction]) -> int:
    """Return the registers that asynchronous instructions read after they were issued, as a bit mask.

    Liveness ends at the instruction that names them; their values must last until the operation lands.
    """
    mask = 0
    for bound in body:
        for arg in bound.args:
            if isinstance(arg, TupleArg) and arg.by_index:
                for item in arg.items:
                    if isinstance(item, RegisterArg) and item.register.index not in bound.writes:
                        mask |= 1 << item.register.index
    return mask


def is_synchronising(bound: BoundInstruction) -> bool:
    """Return whether this is a load or store with which threads synchronise."""
    return bound.form.name in ("ld", "st") and dict(bound.slots).get("sem") in SYNCHRONISING
