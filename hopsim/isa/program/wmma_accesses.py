"""wmma.load and wmma.store: a fragment becomes plain loads or stores, as ptxas makes them.

16-bit matrices whose rows lie across those of the fragment are loaded by pairs and turned round by `movmatrix`.

Source: PTX ISA 8.7 "wmma.load", "wmma.store"; machine code of ptxas 13.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from hopsim.isa.forms.operand_rules import space_problem
from hopsim.isa.program.wmma_output import Output
from hopsim.isa.ptx.ast import Immediate
from hopsim.isa.ptx.flat import (
    FlatAddress,
    FlatInstruction,
    FlatOperand,
    FlatVector,
    Register,
    SymbolRef,
)
from hopsim.isa.wmma import ALL_SUMS, HALF_AND_BYTE, INPUTS, SPACES, SUMS_IN_MEMORY
from hopsim.layout.wmma import SHAPES, Fragment, fragment

TURN_ROUND: Final = "movmatrix.sync.aligned.m8n8.trans.b16"
BYTES_TO_WORD: Final = (0x0040, 0x0040, 0x5410)
"""Selectors of `prmt` that make a word of four bytes: of the first two, of the others, of both."""


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A matrix in memory.

    Args:
        fragment: of it.
        is_along: whether elements of a register neighbour each other in memory.
        stride: elements from one row or column to the next.
    """

    fragment: Fragment
    is_along: bool
    stride: Register | Immediate

    @property
    def has_pairs(self) -> bool:
        """Whether two registers, one after the other, neighbour each other in memory: ptxas takes them together."""
        return self.is_along and self.fragment.elements < self.fragment.step


def lower_access(
    out: Output,
    instruction: FlatInstruction,
    which: str,
    layout: str,
    shape: str,
    rest: Sequence[str],
    operands: Sequence[FlatOperand],
) -> bool:
    """Emit a load or a store; say whether it is one that is modelled."""
    space, kind = ("", *rest)[-2:]
    sums = SUMS_IN_MEMORY.get(shape, ALL_SUMS)
    kinds = sums if which in "cd" else INPUTS.get(shape, HALF_AND_BYTE)
    if shape not in SHAPES or layout not in ("row", "col") or kind not in kinds:
        return False
    if len(rest) > 2 or space not in ("", *SPACES):
        return False
    part = fragment("c" if which == "d" else which, shape, kind)
    registers = out.registers_of(
        operands[0] if operands else None,
        part,
        f"{which.upper()} of {shape} .{kind}",
    )
    if registers is None:
        return True
    address = operands[1] if len(operands) > 1 else None
    if not isinstance(address, FlatAddress) or address.coordinates or len(operands) > 3:
        hint = f"{instruction.mnemonic} {'[a], {r, ...}' if which == 'd' else '{r, ...}, [a]'}, stride;"
        return out.fail("a fragment is at an address, with a stride behind it or none", hint)
    if isinstance(address.base, SymbolRef):
        wrong = space_problem(instruction.opcode, "a", 0, address.base)
        if wrong:
            return out.fail(wrong)
    is_row = layout == "row"
    stride = operands[2] if len(operands) == 3 else None
    if stride is None:
        stride = Immediate("int", part.columns if is_row else part.rows, "")
    if not isinstance(stride, (Register, Immediate)):
        return out.fail("the stride of a fragment is a register or a number of elements")
    matrix = _Matrix(part, part.outer_is_row == is_row, stride)
    dotted = f".{space}" if space else ""
    if which == "d":
        _store(out, matrix, registers, address, dotted)
    else:
        _load(out, matrix, registers, address, dotted)
    return True


def _load(
    out: Output, matrix: _Matrix, registers: Sequence[Register], address: FlatAddress, space: str
) -> None:
    part = matrix.fragment
    at = _places(out, matrix, address)
    is_bytes = part.bits == 8 and not matrix.is_along
    each = 4 if is_bytes else 1
    # All addresses first: what is loaded may take the place of the stride.
    places = [[at(o, i + one) for one in range(each)] for o, i in part.registers]
    made: dict[tuple[int, int], Register] = {}
    for number, (register, place) in enumerate(zip(registers, part.registers, strict=True)):
        if place in made:
            continue
        made[place] = register
        if is_bytes:
            _load_bytes(out, register, places[number], space)
        elif not matrix.has_pairs:
            out.emit(f"ld{space}.b{part.register_bits}", register, places[number][0])
        elif number % 2 == 0:
            pair = FlatVector((register, registers[number + 1]))
            out.emit(f"ld{space}.v2.b{part.register_bits}", pair, places[number][0])
    if part.bits == 16 and not matrix.is_along:
        # Behind all loads, which are waited for once.
        for register in made.values():
            out.emit(TURN_ROUND, register, register)
    for register, place in zip(registers, part.registers, strict=True):
        if made[place] is not register:
            out.emit("mov.b32", register, made[place])


def _load_bytes(out: Output, register: Register, places: Sequence[FlatAddress], space: str) -> None:
    low, high, both = BYTES_TO_WORD
    loaded = [out.let("b32", f"ld{space}.u8", place) for place in places]
    first = out.let("b32", "prmt.b32", loaded[0], loaded[1], _number(low))
    second = out.let("b32", "prmt.b32", loaded[2], loaded[3], _number(high))
    out.emit("prmt.b32", register, first, second, _number(both))


def _store(
    out: Output, matrix: _Matrix, registers: Sequence[Register], address: FlatAddress, space: str
) -> None:
    part = matrix.fragment
    at = _places(out, matrix, address)
    for number, (register, place) in enumerate(zip(registers, part.registers, strict=True)):
        if matrix.has_pairs:
            if number % 2 == 0:
                pair = FlatVector((register, registers[number + 1]))
                out.emit(f"st{space}.v2.b{part.register_bits}", at(*place), pair)
            continue
        value = register
        if part.bits == 16 and not matrix.is_along:
            value = out.let("b32", TURN_ROUND, register)
        out.emit(f"st{space}.b{part.register_bits}", at(*place), value)


def _places(
    out: Output, matrix: _Matrix, address: FlatAddress
) -> Callable[[int, int], FlatAddress]:
    """Emit where a thread's elements begin; return what gives the address of the element at (outer, inner)."""
    part, stride = matrix.fragment, matrix.stride
    size = part.bits // 8
    lane = out.let("b32", "mov.u32", SymbolRef("special", "%laneid"))
    group = out.let("b32", "shr.u32", lane, _number(2))
    thread = out.let("b32", "and.b32", lane, _number(3))
    # Pairs of 16 bits lie along memory; `movmatrix` turns them round where the fragment has them across.
    by_pairs = not matrix.is_along and part.bits == 16
    along, across = (thread, group) if matrix.is_along or by_pairs else (group, thread)
    step_along = part.step if along is thread else 1
    step_across = part.step if across is thread else 1
    first = out.let("b32", "mul.lo.u32", along, _number(step_along))
    rows = across
    if step_across > 1:
        rows = out.let("b32", "mul.lo.u32", across, _number(step_across))
    first = out.let("b32", "mad.lo.u32", rows, stride, first)
    base = address.base
    if not isinstance(base, Register):
        base = out.let("b64", "mov.u64", base)
    is_wide = base.width_bits == 64
    multiply = "mad.wide.u32" if is_wide else "mad.lo.u32"
    kind = "b64" if is_wide else "b32"
    begin = out.let(kind, multiply, first, _number(size), base)
    begins = {0: begin}

    def at(outer: int, inner: int) -> FlatAddress:
        along, across = (inner, outer) if matrix.is_along else (outer, inner)
        offset = address.offset + along * size
        if isinstance(stride, Immediate):
            return FlatAddress(begin, offset + across * int(stride.value) * size)
        if across not in begins:
            begins[across] = out.let(kind, multiply, stride, _number(across * size), begin)
        return FlatAddress(begins[across], offset)

    return at


def _number(value: int) -> Immediate:
    return Immediate("int", value, str(value))
