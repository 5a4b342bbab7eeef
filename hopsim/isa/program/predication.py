"""Branches that ptxas makes predicates of: a branch over a few instructions becomes their guard.

What ptxas does was found from its machine code, for 1,790 branches over less than 60 lines of PTX (CUTLASS, DeepGEMM,
FlashAttention-3, Triton, CUDA C++):

- The way that is jumped over is straight: nobody branches into it, and nothing in it branches or is guarded.
- It has at most 8 instructions beside those of memory, and 10 with them, of which none becomes a call of software.  Copies,
  `cvta`, and what fills or cuts off an upper half do not count (here only as far as 20 in all).
- Of memory it has plain loads and stores, `mbarrier.init`, `.arrive` and `.expect_tx`.  Branches stay around atomics, bulk
  copies, fences, and loads and stores by which threads synchronise.
- What a branch jumps to the end of the program over becomes the part behind an exit, which is a branch as well.

Of 571 branches of which this makes guards, 554 are none in the machine code; of 1,181 others 166 are none: TMA copies of an
elected lane, `mbarrier.init` of long rows, `ldmatrix`.

Instructions that a warp executes together (`.sync`, `.aligned`) are left out, so that whoever is missing there is told.

Source: machine code of ptxas 13.0 at its default, -O3, with a line number for each instruction of PTX.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from hopsim.isa.forms.bound import BoundInstruction
from hopsim.isa.program import flow
from hopsim.isa.program.frames import moved
from hopsim.isa.ptx.flat import Register

MOST: Final = 8
"""Instructions beside those of memory."""
MOST_WITH_MEMORY: Final = 10
MOST_IN_ALL: Final = 20
"""With copies, of which short blocks have few."""
MEMORY: Final = ("ld", "st")
BARRIERS: Final = ("init", "arrive", "expect_tx")
TOGETHER: Final = ("sync", "aligned", "activemask")
NOTHING: Final = ("mov", "cvta")
HALVES: Final = (("cvt", "u64", "u32"), ("cvt", "u32", "u64"))
LONG: Final = (("mul", "hi", "u64"), ("mul", "hi", "s64"), ("fns", "b32"))
"""Of more machine instructions than there may be."""


class Predicated(NamedTuple):
    """A body with guards in place of short branches.

    Args:
        instructions: of it.
        labels: indices of the instructions that labels stand before, but for labels that nothing leads to any more.
    """

    instructions: tuple[BoundInstruction, ...]
    labels: frozenset[int]


def predicate(body: Sequence[BoundInstruction], labels: Collection[int]) -> Predicated:
    """Put guards in place of branches as ptxas does.

    Args:
        body: instructions of a function.  labels: the instructions that labels stand before.
    """
    jumps = Counter(label.target for bound in body for label in bound.targets)
    over = {
        index: stop
        for index, bound in enumerate(body)
        if (stop := _jumped_to(body, index, bound, labels)) is not None
    }
    if not over:
        return Predicated(tuple(body), frozenset(labels))
    out: list[BoundInstruction] = []
    places: list[int] = []
    guards: dict[int, tuple[Register, bool]] = {}
    for index, bound in enumerate(body):
        places.append(len(out))
        guard = bound.instruction.guard
        if index in over and guard is not None:
            register, negated = guard
            inside = range(index + 1, over[index])
            guards.update(dict.fromkeys(inside, (register, not negated)))
        elif index in guards:
            out.append(_guarded(bound, *guards[index]))
        else:
            out.append(bound)
    places.append(len(out))
    jumps.subtract(over.values())
    gone = {stop for stop in over.values() if not jumps[stop]}
    return Predicated(
        tuple([moved(bound, places) for bound in out]),
        frozenset(places[label] for label in labels if label not in gone),
    )


def _jumped_to(
    body: Sequence[BoundInstruction], index: int, bound: BoundInstruction, labels: Collection[int]
) -> int | None:
    """Return where a branch goes of which ptxas makes a predicate; None for all else."""
    guard = bound.instruction.guard
    if guard is None or not flow.is_branch(bound) or len(bound.targets) != 1:
        return None
    stop = bound.targets[0].target
    jumped_over = body[index + 1 : stop] if stop < len(body) else ()
    if not jumped_over or _leaves(body[stop]):
        return None
    if any(inside in labels for inside in range(index + 1, stop)):
        return None
    if any(guard[0].index in one.writes or not _can_be_guarded(one) for one in jumped_over):
        return None
    of_memory = sum(one.form.purity == "shared" for one in jumped_over)
    others = sum(map(_counts, jumped_over))
    is_short = others <= MOST and others + of_memory <= MOST_WITH_MEMORY
    return stop if is_short and len(jumped_over) <= MOST_IN_ALL else None


def _leaves(bound: BoundInstruction) -> bool:
    return flow.is_branch(bound) and not bound.targets and bound.instruction.guard is None


def _can_be_guarded(bound: BoundInstruction) -> bool:
    opcode = bound.instruction.opcode
    if bound.instruction.guard is not None or flow.is_branch(bound):
        return False
    if bound.form.collective or any(word in opcode for word in TOGETHER):
        return False
    if flow.calls_software(bound) or opcode in LONG:
        return False
    if bound.form.purity != "shared":
        return True
    if opcode[0] in MEMORY:
        return not flow.is_synchronising(bound) and "volatile" not in opcode
    return opcode[0] == "mbarrier" and opcode[1] in BARRIERS


def _counts(bound: BoundInstruction) -> bool:
    """Whether an instruction counts, beside those of memory."""
    opcode = bound.instruction.opcode
    return bound.form.purity != "shared" and opcode[0] not in NOTHING and opcode[:3] not in HALVES


def _guarded(bound: BoundInstruction, register: Register, negated: bool) -> BoundInstruction:
    instruction = replace(bound.instruction, guard=(register, negated))
    return replace(bound, instruction=instruction, reads=bound.reads | {register.index})


__all__ = ["Predicated", "predicate"]
