"""wmma: each load, product and store of fragments becomes what ptxas makes of it: plain loads, mma.sync, plain stores.

16-bit matrices whose rows lie across those of the fragment are loaded by pairs and turned round by `movmatrix`; products
of tf32 are two, with a rounding between them.

Source: PTX ISA 8.7 "wmma.load", "wmma.mma", "wmma.store"; recorded on an H100 (tests/silicon/probes/wmma.npz); machine code
of ptxas 13.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from hopsim.isa.program.frames import retargeted
from hopsim.isa.ptx.ast import Immediate, Span
from hopsim.isa.ptx.flat import (
    FlatAddress,
    FlatBody,
    FlatInstruction,
    FlatOperand,
    FlatVector,
    Register,
    SymbolRef,
)
from hopsim.isa.types import TYPES
from hopsim.layout.wmma import INPUT_BITS, SHAPES, Fragment, fragment

SOURCE: Final = 'PTX ISA 8.7, "wmma.load", "wmma.store", "wmma.mma"'
INPUTS: Final = {"m16n16k8": ("tf32",), "m8n8k4": ("f64",)}
"""Types of A and B of these shapes; of the others they are those below."""
HALF_AND_BYTE: Final = ("f16", "bf16", "s8", "u8")
SUMS: Final = {
    "f16": ("f16", "f32"),
    "bf16": ("f32",),
    "tf32": ("f32",),
    "s8": ("s32",),
    "u8": ("s32",),
    "f64": ("f64",),
}
"""Types of C and D by that of A and B."""
SUMS_IN_MEMORY: Final = {"m16n16k8": ("f32",), "m8n8k4": ("f64",)}
"""Types of C and D of these shapes; of the others they are those below."""
ALL_SUMS: Final = ("f16", "f32", "s32")
ROUNDINGS: Final = ("rn", "rz", "rm", "rp")
SPACES: Final = ("global", "shared", "shared::cta")
TURN_ROUND: Final = "movmatrix.sync.aligned.m8n8.trans.b16"
BYTES_TO_WORD: Final = (0x0040, 0x0040, 0x5410)
"""Selectors of `prmt` that make a word of four bytes: of the first two, of the others, of both."""


class Wrong(NamedTuple):
    """What is wrong with an instruction, and what to try."""

    instruction: FlatInstruction
    what: str
    hint: str


class Lowered(NamedTuple):
    """A body without `wmma`, and what is wrong in it."""

    body: FlatBody
    wrong: tuple[Wrong, ...]


def lower(body: FlatBody) -> Lowered:
    """Put what ptxas makes of them in the place of all `wmma` that are modelled; others stay as they are."""
    if not any(one.opcode[0] == "wmma" for one in body.instructions):
        return Lowered(body, ())
    return _Lowering(body).run()


def is_lowered(opcode: tuple[str, ...]) -> bool:
    """Say whether an opcode is one that `lower` takes."""
    alone = FlatInstruction(Span(1, 1), None, None, opcode, ())
    # Without operands it is wrong, which is told only of what is modelled.
    return bool(lower(FlatBody((alone,), (), {}, ())).wrong)


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


class _Lowering:
    def __init__(self, body: FlatBody) -> None:
        self._body = body
        self._out: list[FlatInstruction] = []
        self._registers = list(body.registers)
        self._wrong: list[Wrong] = []
        self._at: FlatInstruction = body.instructions[0]

    def run(self) -> Lowered:
        """Lower the body."""
        places: list[int] = []
        for instruction in self._body.instructions:
            places.append(len(self._out))
            self._at = instruction
            self._one(instruction)
        places.append(len(self._out))
        instructions = tuple([retargeted(one, places) for one in self._out])
        labels = {name: places[target] for name, target in self._body.labels.items()}
        body = replace(
            self._body, instructions=instructions, registers=tuple(self._registers), labels=labels
        )
        return Lowered(body, tuple(self._wrong))

    def _one(self, instruction: FlatInstruction) -> None:
        match instruction.opcode:
            case (
                "wmma",
                "load",
                ("a" | "b" | "c") as which,
                "sync",
                "aligned",
                layout,
                shape,
                *rest,
            ):
                done = self._access(instruction, which, layout, shape, rest, instruction.operands)
            case ("wmma", "store", "d", "sync", "aligned", layout, shape, *rest):
                address, *others = instruction.operands or (None,)
                turned = (*others[:1], address, *others[1:]) if address is not None else ()
                done = self._access(instruction, "d", layout, shape, rest, turned)
            case ("wmma", "mma", "sync", "aligned", a_layout, b_layout, shape, *rest):
                is_known = {a_layout, b_layout} <= {"row", "col"}
                done = is_known and self._product(instruction, shape, rest)
            case _:
                done = False
        if not done:
            self._out.append(instruction)

    # -- what goes out -----------------------------------------------------------------------------

    def _emit(self, opcode: str, *operands: FlatOperand) -> None:
        at = self._at
        self._out.append(
            FlatInstruction(at.span, at.loc, at.guard, tuple(opcode.split(".")), operands)
        )

    def _register(self, kind: str) -> Register:
        number = len(self._registers)
        register = Register(f"wmma:{number}", kind, TYPES[kind].width_bits, number)
        self._registers.append(register)
        return register

    def _let(self, kind: str, opcode: str, *operands: FlatOperand) -> Register:
        register = self._register(kind)
        self._emit(opcode, register, *operands)
        return register

    def _fail(self, what: str, hint: str = "") -> bool:
        self._wrong.append(Wrong(self._at, what, hint))
        return True

    def _vector(
        self, operand: FlatOperand | None, part: Fragment, what: str
    ) -> list[Register] | None:
        """Return the registers of a fragment; None: they are wrong, which is told."""
        count, bits = len(part.registers), part.register_bits
        items = operand.items if isinstance(operand, FlatVector) else ()
        registers = [item for item in items if isinstance(item, Register)]
        if len(registers) == len(items) == count and all(r.width_bits == bits for r in registers):
            return registers
        got = f"{len(items)} operands" if items else "no list of registers"
        if len(registers) == len(items) == count:
            got = f"one of {next(r.width_bits for r in registers if r.width_bits != bits)} bits"
        many = f"{count} register{'s' * (count > 1)}"
        self._fail(f"{what} is a list of {many} of {bits} bits, got {got}")
        return None

    # -- loads and stores --------------------------------------------------------------------------

    def _access(
        self,
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
        registers = self._vector(
            operands[0] if operands else None,
            part,
            f"{which.upper()} of {shape} .{kind}",
        )
        if registers is None:
            return True
        address = operands[1] if len(operands) > 1 else None
        if not isinstance(address, FlatAddress) or address.coordinates or len(operands) > 3:
            hint = f"{instruction.mnemonic} {'[a], {r, ...}' if which == 'd' else '{r, ...}, [a]'}, stride;"
            return self._fail("a fragment is at an address, with a stride behind it or none", hint)
        is_row = layout == "row"
        stride = operands[2] if len(operands) == 3 else None
        if stride is None:
            stride = Immediate("int", part.columns if is_row else part.rows, "")
        if not isinstance(stride, (Register, Immediate)):
            return self._fail("the stride of a fragment is a register or a number of elements")
        matrix = _Matrix(part, part.outer_is_row == is_row, stride)
        dotted = f".{space}" if space else ""
        if which == "d":
            self._store(matrix, registers, address, dotted)
        else:
            self._load(matrix, registers, address, dotted)
        return True

    def _load(
        self, matrix: _Matrix, registers: Sequence[Register], address: FlatAddress, space: str
    ) -> None:
        part = matrix.fragment
        at = self._places(matrix, address)
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
                self._load_bytes(register, places[number], space)
            elif not matrix.has_pairs:
                self._emit(f"ld{space}.b{part.register_bits}", register, places[number][0])
            elif number % 2 == 0:
                pair = FlatVector((register, registers[number + 1]))
                self._emit(f"ld{space}.v2.b{part.register_bits}", pair, places[number][0])
        if part.bits == 16 and not matrix.is_along:
            # Behind all loads, which are waited for once.
            for register in made.values():
                self._emit(TURN_ROUND, register, register)
        for register, place in zip(registers, part.registers, strict=True):
            if made[place] is not register:
                self._emit("mov.b32", register, made[place])

    def _load_bytes(self, register: Register, places: Sequence[FlatAddress], space: str) -> None:
        low, high, both = BYTES_TO_WORD
        loaded = [self._let("b32", f"ld{space}.u8", place) for place in places]
        first = self._let("b32", "prmt.b32", loaded[0], loaded[1], _number(low))
        second = self._let("b32", "prmt.b32", loaded[2], loaded[3], _number(high))
        self._emit("prmt.b32", register, first, second, _number(both))

    def _store(
        self, matrix: _Matrix, registers: Sequence[Register], address: FlatAddress, space: str
    ) -> None:
        part = matrix.fragment
        at = self._places(matrix, address)
        for number, (register, place) in enumerate(zip(registers, part.registers, strict=True)):
            if matrix.has_pairs:
                if number % 2 == 0:
                    pair = FlatVector((register, registers[number + 1]))
                    self._emit(f"st{space}.v2.b{part.register_bits}", at(*place), pair)
                continue
            value = register
            if part.bits == 16 and not matrix.is_along:
                value = self._let("b32", TURN_ROUND, register)
            self._emit(f"st{space}.b{part.register_bits}", at(*place), value)

    def _places(self, matrix: _Matrix, address: FlatAddress) -> Callable[[int, int], FlatAddress]:
        """Emit where a thread's elements begin; return what gives the address of the element at (outer, inner)."""
        part, stride = matrix.fragment, matrix.stride
        size = part.bits // 8
        lane = self._let("b32", "mov.u32", SymbolRef("special", "%laneid"))
        group = self._let("b32", "shr.u32", lane, _number(2))
        thread = self._let("b32", "and.b32", lane, _number(3))
        # Pairs of 16 bits lie along memory; `movmatrix` turns them round where the fragment has them across.
        by_pairs = not matrix.is_along and part.bits == 16
        along, across = (thread, group) if matrix.is_along or by_pairs else (group, thread)
        step_along = part.step if along is thread else 1
        step_across = part.step if across is thread else 1
        first = self._let("b32", "mul.lo.u32", along, _number(step_along))
        rows = across
        if step_across > 1:
            rows = self._let("b32", "mul.lo.u32", across, _number(step_across))
        first = self._let("b32", "mad.lo.u32", rows, stride, first)
        base = address.base
        if not isinstance(base, Register):
            base = self._let("b64", "mov.u64", base)
        is_wide = base.width_bits == 64
        multiply = "mad.wide.u32" if is_wide else "mad.lo.u32"
        kind = "b64" if is_wide else "b32"
        begin = self._let(kind, multiply, first, _number(size), base)
        begins = {0: begin}

        def at(outer: int, inner: int) -> FlatAddress:
            along, across = (inner, outer) if matrix.is_along else (outer, inner)
            offset = address.offset + along * size
            if isinstance(stride, Immediate):
                return FlatAddress(begin, offset + across * int(stride.value) * size)
            if across not in begins:
                begins[across] = self._let(kind, multiply, stride, _number(across * size), begin)
            return FlatAddress(begins[across], offset)

        return at

    # -- products ----------------------------------------------------------------------------------

    def _product(self, instruction: FlatInstruction, shape: str, rest: Sequence[str]) -> bool:
        """Emit a product; say whether it is one that is modelled."""
        kinds = list(rest)
        saturates = kinds[-1:] == ["satfinite"]
        kinds = kinds[:-1] if saturates else kinds
        # nvcc writes the rounding behind the types, PTX has it before them.
        rounding = next((word for word in kinds if word in ROUNDINGS), "")
        kinds = [word for word in kinds if word != rounding]
        if rounding and kinds != ["f64"] * 4:
            return False
        if len(kinds) == 2:
            kinds = [kinds[0], "f16", "f16", kinds[1]]
        if shape not in SHAPES or len(kinds) != 4:
            return False
        result, kind, other, start = kinds
        sums = SUMS.get(kind, ())
        if (
            kind != other
            or kind not in INPUTS.get(shape, HALF_AND_BYTE)
            or (saturates and kind not in ("s8", "u8"))
        ):
            return False
        if result not in sums or start not in sums:
            return False
        if len(instruction.operands) != 4:
            return self._fail(
                f"{instruction.mnemonic} has D, A, B and C, got {len(instruction.operands)} operands"
            )
        lists: list[list[Register]] = []
        for name, which, one in zip("DABC", "cabc", (result, kind, kind, start), strict=True):
            part = fragment(which, shape, one)
            found = self._vector(
                instruction.operands[len(lists)], part, f"{name} of {shape} .{one}"
            )
            if found is None:
                return True
            lists.append(found)
        if kind == "f64":
            form = f"mma.sync.aligned.{shape}.row.col{rounding and '.'}{rounding}.f64.f64.f64.f64"
            self._emit(form, *(FlatVector(tuple(one)) for one in lists))
        else:
            self._multiply(shape, kinds, saturates, *lists)
        return True

    def _multiply(
        self,
        shape: str,
        kinds: Sequence[str],
        saturates: bool,
        d: Sequence[Register],
        a: Sequence[Register],
        b: Sequence[Register],
        c: Sequence[Register],
    ) -> None:
        result, kind, _, start = kinds
        m, _, k = SHAPES[shape]
        if start != result and start == "f16":
            c = [half for packed in c for half in self._unpacked(packed)]
        sums = "f32" if "f32" in (result, start) else result
        if m == 8:
            a, b = b, a
        is_wide = m == 16
        each = k * INPUT_BITS[kind] // 64
        half = each // 2
        many = 2 if sums == "f16" else 4
        # ptxas makes two products of a tf32 one, which rounds between them.
        steps = 2 if kind == "tf32" else 1
        form = f"mma.sync.aligned.m16n8k{k // steps}.row.col{'.satfinite' * saturates}.{sums}.{kind}.{kind}.{sums}"
        # All operands are read before D is written, which may be one of them.
        made: list[Register] = []
        for block in range(2):
            first = a[:each] if is_wide else a[each * block : each * (block + 1)]
            second = b[half * block : half * (block + 1)] if is_wide else b[:half]
            so_far = c[many * block : many * (block + 1)]
            for step in range(steps):
                new = [self._register("b32") for _ in range(many)]
                operands = (
                    new, _part(first, step, steps), _part(second, step, steps), so_far,
                )  # fmt: skip
                self._emit(form, *(FlatVector(tuple(one)) for one in operands))
                so_far = new
            made += so_far
        if result == "f16" and sums == "f32":
            made = [
                self._let("b32", "cvt.rn.f16x2.f32", high, low)
                for low, high in zip(made[::2], made[1::2], strict=True)
            ]
        for register, value in zip(d, made, strict=True):
            self._emit("mov.b32", register, value)

    def _unpacked(self, packed: Register) -> tuple[Register, Register]:
        low, high = self._register("b16"), self._register("b16")
        self._emit("mov.b32", FlatVector((low, high)), packed)
        return self._let("f32", "cvt.f32.f16", low), self._let("f32", "cvt.f32.f16", high)


def _part(registers: Sequence[Register], step: int, steps: int) -> Sequence[Register]:
    size = len(registers) // steps
    return registers[step * size : (step + 1) * size]


def _number(value: int) -> Immediate:
    return Immediate("int", value, str(value))
