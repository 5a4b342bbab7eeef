"""wmma.mma: a product of fragments becomes mma.sync for each half of D.

Products of tf32 are two, with a rounding between them.

Source: PTX ISA 8.7 "wmma.mma"; recorded on an H100 (tests/silicon/probes/wmma.npz); machine code of ptxas 13.0.
"""

from __future__ import annotations

from collections.abc import Sequence

from hopsim.isa.program.wmma_output import Output
from hopsim.isa.ptx.flat import FlatInstruction, FlatVector, Register
from hopsim.isa.wmma import HALF_AND_BYTE, INPUTS, ROUNDINGS, SUMS
from hopsim.layout.wmma import INPUT_BITS, SHAPES, fragment


def lower_product(
    out: Output, instruction: FlatInstruction, shape: str, rest: Sequence[str]
) -> bool:
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
        return out.fail(
            f"{instruction.mnemonic} has D, A, B and C, got {len(instruction.operands)} operands"
        )
    lists: list[list[Register]] = []
    for name, which, one in zip("DABC", "cabc", (result, kind, kind, start), strict=True):
        part = fragment(which, shape, one)
        found = out.registers_of(
            instruction.operands[len(lists)], part, f"{name} of {shape} .{one}"
        )
        if found is None:
            return True
        lists.append(found)
    if kind == "f64":
        form = f"mma.sync.aligned.{shape}.row.col{rounding and '.'}{rounding}.f64.f64.f64.f64"
        out.emit(form, *(FlatVector(tuple(one)) for one in lists))
    else:
        _multiply(out, shape, kinds, saturates, *lists)
    return True


def _multiply(
    out: Output,
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
        c = [half for packed in c for half in _unpacked(out, packed)]
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
            new = [out.register("b32") for _ in range(many)]
            operands = (
                new, _part(first, step, steps), _part(second, step, steps), so_far,
            )  # fmt: skip
            out.emit(form, *(FlatVector(tuple(one)) for one in operands))
            so_far = new
        made += so_far
    if result == "f16" and sums == "f32":
        made = [
            out.let("b32", "cvt.rn.f16x2.f32", high, low)
            for low, high in zip(made[::2], made[1::2], strict=True)
        ]
    for register, value in zip(d, made, strict=True):
        out.emit("mov.b32", register, value)


def _unpacked(out: Output, packed: Register) -> tuple[Register, Register]:
    low, high = out.register("b16"), out.register("b16")
    out.emit("mov.b32", FlatVector((low, high)), packed)
    return out.let("f32", "cvt.f32.f16", low), out.let("f32", "cvt.f32.f16", high)


def _part(registers: Sequence[Register], step: int, steps: int) -> Sequence[Register]:
    size = len(registers) // steps
    return registers[step * size : (step + 1) * size]
