"""How many registers ptxas gives a thread, estimated from what lives at once.

Liveness is of the PTX text: what lives at once between two instructions is what their order there asks for.  Around matrix
products ptxas moves everything else out of the way, so that what lives where they are issued counts.

Source: ptxas 13.0 on the microbenchmarks and on Triton's GEMMs (tests/isa/program/test_allocation.py): where `wgmma` is
used, a thread gets 26 registers beside the accumulators and A, more only if more lives there; values that a warp shares
are in uniform registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hopsim.isa.forms.bound import BoundInstruction, ConstantArg, RegisterArg, SymbolArg, TupleArg
from hopsim.isa.numerics.mma_kinds import FP8
from hopsim.isa.program.flow import EXIT, SegmentPlan

PRODUCT: Final = "wgmma.mma_async"
BESIDE_FRAGMENTS: Final = 26
"""Registers that a thread has beside those parts of matrices that `wgmma` takes, which begin at R24."""
CONVERTED: Final = 1.2
"""What `mma.sync` of fp8 multiplies is f16, which A and B are converted to: how many times as many registers that takes.

Source: ptxas 13.0 on `mma-simple` and `mma-multistage` of e4m3, seven tiles: 1.08 to 1.29 times what is estimated without.
"""
UNIFORM_UNITS: Final = ("alu", "imad", "move", "predicate", "lsu_const")
"""What the uniform datapath does: integer arithmetic and parameters."""
COLLECTIVE: Final = "shuffle"
"""Unit of what takes values of other lanes."""
VOTES: Final = ("vote", "redux")
"""These give all lanes the same, as a shuffle from one lane does."""
OF_A_THREAD: Final = ("%tid", "%laneid", "%warpid", "%lanemask", "%clock", "%globaltimer")


class Registers:
    """The registers of a program that count: predicates are kept elsewhere, as are uniform values.

    Args:
        body: the program.
        widths: of each register, in bits.
    """

    def __init__(self, body: Sequence[BoundInstruction], widths: Sequence[int]) -> None:
        uniform = uniform_registers(body)
        self._narrow = self._wide = 0
        for index, width in enumerate(widths):
            if width > 1 and index not in uniform:
                if width == 64:
                    self._wide |= 1 << index
                else:
                    self._narrow |= 1 << index

    def count(self, mask: int) -> int:
        """Return how many 32-bit registers the registers of a bit mask take."""
        return (mask & self._narrow).bit_count() + 2 * (mask & self._wide).bit_count()


def uniform_registers(body: Sequence[BoundInstruction]) -> frozenset[int]:
    """Return the registers that have one value for a warp, as integer arithmetic on parameters and CTA numbers gives it.

    The order of instructions is ignored: a register that differs by thread once does so everywhere.
    """
    differ: set[int] = set()
    for bound in body:
        differ |= _fragments(bound)
        if not _can_be_uniform(bound):
            differ |= bound.writes
    changed = True
    while changed:
        changed = False
        for bound in body:
            if (
                bound.form.unit != COLLECTIVE
                and bound.reads & differ
                and not bound.writes <= differ
            ):
                differ |= bound.writes
                changed = True
    written = {register for bound in body for register in bound.writes}
    return frozenset(written - differ)


def _can_be_uniform(bound: BoundInstruction) -> bool:
    if bound.form.unit == COLLECTIVE:
        return bound.form.base[0] in VOTES or (
            "idx" in dict(bound.slots).values() and isinstance(bound.args[1], ConstantArg)
        )
    return bound.form.unit in UNIFORM_UNITS and not any(
        isinstance(arg, SymbolArg) and arg.symbol.name.startswith(OF_A_THREAD) for arg in bound.args
    )


def live_at_once(
    body: Sequence[BoundInstruction],
    plans: Sequence[SegmentPlan],
    live: Sequence[int],
    registers: Registers,
) -> int:
    """Return the largest number of registers live at once, in the order of the text."""
    most = 0
    for plan in plans:
        current = 0
        for successor in plan.successors:
            if successor != EXIT:
                current |= live[successor]
        most = max(most, registers.count(current))
        for index in range(plan.stop - 1, plan.start - 1, -1):
            bound = body[index]
            if bound.instruction.guard is None:
                for register in bound.writes:
                    current &= ~(1 << register)
            for register in bound.reads:
                current |= 1 << register
            if index % 4 == 0:
                most = max(most, registers.count(current))
        most = max(most, registers.count(current))
    return most


def registers_wanted(
    body: Sequence[BoundInstruction],
    plans: Sequence[SegmentPlan],
    live: Sequence[int],
    widths: Sequence[int],
) -> int:
    """Return how many registers a thread of the program gets if nothing bounds them.

    Args:
        live: of each segment, the registers live at its start, as a bit mask.
        widths: of each register, in bits.
    """
    registers = Registers(body, widths)
    fragments = 0
    at_products: list[int] = []
    for plan in plans:
        for bound in body[plan.start : plan.stop]:
            if bound.form.name.startswith(PRODUCT):
                theirs = sum(1 << register for register in _fragments(bound))
                fragments |= theirs
                at_products.append(live[plan.number] | theirs)
    if at_products:
        beside = (registers.count(mask & fragments) + BESIDE_FRAGMENTS for mask in at_products)
        return max(*beside, *(registers.count(mask) for mask in at_products))
    pressure = live_at_once(body, plans, live, registers)
    # Guess, D-REGS: what addressing needs.
    wanted = pressure + max(8, pressure // 10)
    return int(CONVERTED * wanted) if any(map(_converts, body)) else wanted


def _converts(bound: BoundInstruction) -> bool:
    return bound.form.unit == "mma" and dict(bound.slots).get("at") in FP8


def _fragments(bound: BoundInstruction) -> frozenset[int]:
    """Return the registers that hold what an instruction takes of a matrix."""
    return frozenset(
        item.register.index
        for arg in bound.args
        if isinstance(arg, TupleArg) and arg.by_index
        for item in arg.items
        if isinstance(item, RegisterArg)
    )
