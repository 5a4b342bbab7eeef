"""Which sums of a basic block take which products in: ptxas's choice, which `hopsim.isa.program.contraction` describes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from hopsim.isa.forms.bound import BoundInstruction, ConstantArg, RegisterArg

TYPES: Final = ("f32", "f64", "f16", "f16x2", "bf16", "bf16x2")
ROUNDINGS: Final = ("rn", "rz", "rm", "rp")
SUMS: Final = ("add", "sub")
ONE: Final = {"f32": 0x3F80_0000, "f64": 0x3FF0_0000_0000_0000}
SIGN: Final = {"f32": 1 << 31, "f64": 1 << 63}


class Kind(NamedTuple):
    """What a product and a sum have in common."""

    type: str
    ftz: bool


@dataclass(slots=True, eq=False)
class Product:
    """A product.

    Args:
        index: of its instruction.
        uses: sums that have it as one operand.
        copies: instructions that copy or negate it.
        is_kept: something else uses it.
    """

    index: int
    kind: Kind
    uses: list[int] = field(default_factory=list[int])
    copies: list[int] = field(default_factory=list[int])
    is_kept: bool = False


class Held(NamedTuple):
    """What a register holds: a product, or that with the other sign."""

    product: Product
    negated: bool


Operands = tuple[Held | None, Held | None]


def of_block(
    body: Sequence[BoundInstruction], block: range, live: int
) -> tuple[dict[int, Operands], list[Product]]:
    """Find the sums of a block that have products as operands, and the products.

    Args:
        live: registers that live after it.
    """
    holds: dict[int, Held] = {}
    sums: dict[int, Operands] = {}
    products: list[Product] = []
    dead = _dead(body, block, live)
    for index in block:
        bound = body[index]
        if index in dead:
            for register in bound.writes:
                holds.pop(register, None)
            continue
        guarded = bound.instruction.guard is not None
        held = [holds[register] for register in bound.reads if register in holds]
        copy = _copy(bound, holds) if held else None
        if copy is not None:
            copy.product.copies.append(index)
        elif held and (operands := _operands(bound, holds)) is not None:
            sums[index] = operands
            for one in operands:
                if one is not None:
                    one.product.uses.append(index)
        else:
            for one in held:
                one.product.is_kept = True
        for register in bound.writes:
            before = holds.pop(register, None)
            if before is not None and guarded:
                before.product.is_kept = True
        if copy is not None:
            holds[_result(bound)] = copy
        elif (kind := kind_of(bound)) is not None and _is_product(bound, kind):
            products.append(Product(index, kind))
            holds[_result(bound)] = Held(products[-1], negated=False)
    for register, one in holds.items():
        if live >> register & 1:
            one.product.is_kept = True
    return sums, products


def _dead(body: Sequence[BoundInstruction], block: range, live: int) -> set[int]:
    """Return the instructions of a block whose results nothing needs: ptxas drops them before."""
    found: set[int] = set()
    for index in reversed(block):
        bound = body[index]
        writes = sum(1 << register for register in bound.writes)
        if bound.form.purity == "pure" and writes and not writes & live:
            found.add(index)
            continue
        if bound.instruction.guard is None:
            live &= ~writes
        for register in bound.reads:
            live |= 1 << register
    return found


def chosen_sums(sums: dict[int, Operands]) -> dict[int, int]:
    """Return the sums that take a product in, each with the position of that operand."""
    chosen: dict[int, int] = {}

    def can_take(held: Held | None) -> bool:
        if held is None or held.product.is_kept:
            return False
        for use in held.product.uses:
            if use in chosen:
                other = sums[use][chosen[use]]
                if other is None or other.product is not held.product:
                    return False
        return True

    def uses(operands: Operands, position: int) -> int:
        held = operands[position]
        assert held is not None, operands
        return len(held.product.uses)

    for only_one in (True, False):
        for index, operands in sums.items():
            if index in chosen:
                continue
            able = [position for position in (0, 1) if can_take(operands[position])]
            if only_one:
                able = [position for position in able if uses(operands, position) == 1]
            if able:
                chosen[index] = min(able, key=lambda position: uses(operands, position))
    return chosen


def _operands(bound: BoundInstruction, holds: dict[int, Held]) -> Operands | None:
    """Return which operands of a sum are products; None when it is no sum that could take one in."""
    kind = kind_of(bound)
    if kind is None or bound.form.name not in SUMS:
        return None
    first, second = (
        holds.get(arg.register.index) if isinstance(arg, RegisterArg) else None
        for arg in bound.args
    )
    if first is not None and second is not None and first.product is second.product:
        return None
    for one in (first, second):
        if one is not None and one.product.kind != kind:
            one.product.is_kept = True
    return first, second


def _copy(bound: BoundInstruction, holds: dict[int, Held]) -> Held | None:
    """Return what the result of a copy, a negation or a product with 1 or -1 holds; None when it is none of them."""
    if bound.instruction.guard is not None or len(bound.writes) != 1:
        return None
    arg, *others = bound.args
    if others and isinstance(arg, ConstantArg):
        arg, others = others[0], [arg]
    held = holds.get(arg.register.index) if isinstance(arg, RegisterArg) else None
    if held is None:
        return None
    product, negated = held
    opcode = bound.instruction.opcode
    name = bound.form.name
    if name == "mov" and isinstance(arg, RegisterArg) and not others:
        (destination,) = bound.destinations
        register = destination.register
        is_whole = register is not None and arg.width_bits == register.width_bits
        return held if is_whole and arg.width_bits == arg.register.width_bits else None
    if name == "neg" and opcode[-1] == product.kind.type != "bf16x2":
        return Held(product, not negated) if product.kind.ftz or "ftz" not in opcode else None
    if name == "mul" and kind_of(bound) == product.kind and "sat" not in opcode:
        sign = _unit_sign(bound, product.kind)
        return None if sign is None else Held(product, negated != sign)
    return None


def _unit_sign(bound: BoundInstruction, kind: Kind) -> bool | None:
    """Return whether a product is with -1 (True) or with 1 (False); None when it is with neither."""
    one = ONE.get(kind.type)
    literals = [arg.value for arg in bound.args if isinstance(arg, ConstantArg)]
    if one is None or not literals:
        return None
    return {one: False, one | SIGN[kind.type]: True}.get(literals[0])


def _is_product(bound: BoundInstruction, kind: Kind) -> bool:
    """Whether a sum could take this in."""
    return (
        bound.form.name == "mul"
        and bound.instruction.guard is None
        and "sat" not in bound.instruction.opcode
        and any(isinstance(arg, RegisterArg) for arg in bound.args)
        and len(bound.writes) == 1
        and _unit_sign(bound, kind) is None
    )


def kind_of(bound: BoundInstruction) -> Kind | None:
    """Return the kind of a product or sum whose rounding is left open; None for anything else."""
    if bound.form.name not in ("mul", *SUMS):
        return None
    opcode = bound.instruction.opcode
    found = next((word for word in opcode if word in TYPES), None)
    if found is None or any(word in ROUNDINGS for word in opcode):
        return None
    return Kind(found, "ftz" in opcode)


def _result(bound: BoundInstruction) -> int:
    (register,) = bound.writes
    return register


__all__ = ["SUMS", "Held", "Kind", "Operands", "Product", "chosen_sums", "kind_of", "of_block"]
