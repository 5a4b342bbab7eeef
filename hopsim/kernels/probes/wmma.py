"""Probes of wmma: fragments as they are loaded out of rows and columns, products, and what is stored of them."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from hopsim.isa.values import Array
from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.probes.tensor import INT8, Types, case
from hopsim.kernels.ptx.text import Param, PtxEntry, Reg, address, module_text, vector
from hopsim.layout.wmma import SHAPES, fragment

SPARE: Final = 16
"""Elements between the end of a row or column and the next."""
DEEP: Final = ("m16n16k16", "m32n8k16", "m8n32k16")
PRODUCTS: Final[tuple[tuple[str, Types, str], ...]] = (
    *((shape, Types(d, "f16", "f16"), c) for shape in DEEP for d in ("f32", "f16") for c in ("f32", "f16")),
    *((shape, Types("f32", "bf16", "bf16"), "f32") for shape in DEEP),
    ("m16n16k8", Types("f32", "tf32", "tf32"), "f32"),
    *((shape, Types("s32", a, a, sat), "s32") for shape in DEEP for a in INT8 for sat in (False, True)),
)  # fmt: skip
"""Shape, types of D, A and B, type of C."""
LAYOUTS: Final = (("row", "col", "row"), ("col", "row", "col"))
WORDS: Final = {16: np.uint16, 32: np.uint32, 64: np.uint64}


class _Operand(NamedTuple):
    """A matrix in memory, one for each case, and the fragment it is loaded into."""

    letter: str
    kind: str
    layout: str
    values: Array

    @property
    def stride(self) -> int:
        """Elements from one row or column to the next."""
        return self.values.shape[2]


def _laid_out(matrices: list[Array], layout: str) -> Array:
    """Return matrices (cases, rows, columns) as memory has them, with room between their rows or columns."""
    stacked = np.stack(matrices)
    if layout == "col":
        stacked = stacked.transpose(0, 2, 1)
    return np.pad(stacked, ((0, 0), (0, 0), (0, SPARE)))


def _name(shape: str, types: Types, c: str) -> str:
    kinds = f"{types.d}_{types.a}_{c}"
    return f"{shape}_{kinds}{'_sat' if types.saturate else ''}"


def _mnemonic(shape: str, types: Types, c: str, a_layout: str, b_layout: str) -> str:
    inner = "" if types.a == "f16" else f".{types.a}.{types.b}"
    sat = ".satfinite" if types.saturate else ""
    return f"wmma.mma.sync.aligned.{a_layout}.{b_layout}.{shape}.{types.d}{inner}.{c}{sat}"


def _kernel(shape: str, types: Types, c: str, operands: list[_Operand], layout: str) -> PtxEntry:
    """Return the kernel that loads A, B and C, stores their registers, multiplies, and stores D."""
    names = ["a", "b", "c", "loaded_a", "loaded_b", "loaded_c", "d"]
    k = PtxEntry("product", [Param(one, ".u64") for one in names], [".reqntid 32"])
    lane = k.let(".b32", "lane", "mov.u32", "%tid.x")
    number = k.let(".b32", "case", "mov.u32", "%ctaid.x")
    places = {one: k.let(".b64", one, "ld.param.u64", f"[{one}]") for one in names}
    held: dict[str, list[Reg]] = {}
    for one in operands:
        place = places[one.letter]
        k.emit("mad.wide.u32", place, number, one.values[0].nbytes, place)
        part = fragment(one.letter, shape, one.kind)
        size, register = part.register_bits // 8, f".b{part.register_bits}"
        held[one.letter] = registers = k.regs(register, one.letter, len(part.registers))
        # One stride is a register, the others are numbers.
        stride = k.let(".b32", "stride", "mov.u32", one.stride) if one.letter == "a" else one.stride
        load = f"wmma.load.{one.letter}.sync.aligned.{one.layout}.{shape}.global.{one.kind}"
        k.emit(load, vector(registers), f"[{place}]", stride)
        loaded = places[f"loaded_{one.letter}"]
        k.emit("mad.wide.u32", loaded, number, len(registers) * 32 * size, loaded)
        k.emit("mad.wide.u32", loaded, lane, size, loaded)
        for index, held_one in enumerate(registers):
            k.emit(f"st.global{register}", address(loaded, 32 * size * index), held_one)
    m, n, _ = SHAPES[shape]
    part = fragment("c", shape, types.d)
    sums = k.regs(f".b{part.register_bits}", "d", len(part.registers))
    k.emit(
        _mnemonic(shape, types, c, operands[0].layout, operands[1].layout),
        vector(sums), *(vector(held[letter]) for letter in "abc"),
    )  # fmt: skip
    k.emit("mad.wide.u32", places["d"], number, m * n * part.bits // 8, places["d"])
    store = f"wmma.store.d.sync.aligned.{layout}.{shape}.global.{types.d}"
    k.emit(store, f"[{places['d']}]", vector(sums), n if layout == "row" else m)
    k.emit("ret")
    return k


def probe_of(group: str, shape: str, types: Types, c: str, layouts: tuple[str, str, str]) -> Probe:
    """Return the probe of a product.

    Args:
        layouts: of A, B, and both C and D in memory: `row` or `col`.
    """
    m, n, k = SHAPES[shape]
    start = Types(c, types.a, types.b, types.saturate)
    matrices: tuple[list[Array], ...] = ([], [], [])
    for number, distribution in enumerate(types.distributions):
        a, b, _ = case(types, distribution, m, n, k, 300 + number)
        matrices[0].append(a)
        matrices[1].append(b.T)
        matrices[2].append(case(start, distribution, m, n, k, 400 + number)[2])
    operands = [
        _Operand(letter, kind, layout, _laid_out(values, layout))
        for letter, kind, layout, values in zip(
            "abc", (types.a, types.b, c), layouts, matrices, strict=True
        )
    ]
    parts = {one.letter: fragment(one.letter, shape, one.kind) for one in operands}
    many = len(types.distributions)
    entry = _kernel(shape, types, c, operands, layouts[2])
    return Probe(
        f"{group}.{_name(shape, types, c)}_{layouts[0]}",
        module_text(entry, "shared_memory"),
        "product",
        grid=many,
        block=32,
        inputs={one.letter: one.values for one in operands},
        outputs={
            **{
                f"loaded_{letter}": ((many, len(part.registers), 32), WORDS[part.register_bits])
                for letter, part in parts.items()
            },
            "d": ((many, m * n), WORDS[fragment("c", shape, types.d).bits]),
        },
        labels={"d": tuple(types.distributions)},
    )


def probes() -> list[Probe]:
    """Return two probes for each shape and types: A by rows and B by columns, and the other way."""
    return [
        probe_of("wmma", shape, types, c, layouts)
        for shape, types, c in PRODUCTS
        for layouts in LAYOUTS
    ]
