"""Probes of atomics: every operation and type in global and shared memory, each thread on a cell of its own."""

from __future__ import annotations

import numpy as np

from hopsim.isa.types import TYPES
from hopsim.isa.values import Array
from hopsim.kernels.probes.bits import operands
from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.ptx.text import Param, PtxEntry, Reg, address, module_text, vector

THREADS = 256
SYMBOL = "shared_memory"
SPACES = ("global", "shared")

# (operation with type, words read: b and, for cas, c)
_INTEGERS = (
    *(f"{op}.{t}" for op in ("add", "min", "max") for t in ("u32", "s32", "u64")),
    *(f"{op}.s64" for op in ("min", "max")),
    "inc.u32", "dec.u32",
    *(f"{op}.{t}" for op in ("and", "or", "xor", "exch") for t in ("b32", "b64")),
)  # fmt: skip
_FLOATS = (
    "add.f32", "add.f64", "add.noftz.f16", "add.noftz.bf16", "add.noftz.f16x2", "add.noftz.bf16x2",
)  # fmt: skip
_SWAPS = ("cas.b16", "cas.b32", "cas.b64")
_VECTORS = ("add.v2.f32", "add.v4.f32")


_DTYPES: dict[int, np.dtype[np.unsignedinteger]] = {
    16: np.dtype(np.uint16),
    32: np.dtype(np.uint32),
    64: np.dtype(np.uint64),
}


def _probe(space: str, what: str, is_red: bool) -> Probe:
    op, *_, kind = what.split(".")
    count = 4 if ".v4." in what else 2 if ".v2." in what else 1
    width = TYPES[kind].width_bits
    size, dtype = width // 8, _DTYPES[width]
    name = f"{'red' if is_red else 'atom'}_{space}_{what.replace('.', '_')}"
    outputs = ["cells"] if is_red else ["cells", "old"]
    inputs = ["start", "b", "c"] if op == "cas" else ["start", "b"]
    k = PtxEntry(name, [Param(one, ".u64") for one in (*inputs, *outputs)], [])
    thread = k.let(".b32", "thread", "mov.u32", "%tid.x")
    places: dict[str, Reg] = {}
    for one in (*inputs, *outputs):
        places[one] = k.let(".b64", one, "ld.param.u64", f"[{one}]")
        k.emit("mad.wide.u32", places[one], thread, size * count, places[one])
    loaded = {one: [k.reg(f".b{width}", one) for _ in range(count)] for one in inputs}
    for one, registers in loaded.items():
        for index, register in enumerate(registers):
            k.emit(f"ld.global.b{width}", register, address(places[one], size * index))
    cell = places["cells"]
    if space == "shared":
        base = k.let(".b32", "shared", "mov.u32", SYMBOL)
        cell = k.let(".b32", "cell", "mad.lo.u32", thread, size * count, base)
    for index, register in enumerate(loaded["start"]):
        k.emit(f"st.{space}.b{width}", address(cell, size * index), register)
    word = "red" if is_red else "atom"
    old = [k.reg(f".b{width}", "old") for _ in range(count)]

    def operand(registers: list[Reg]) -> str:
        return str(registers[0]) if count == 1 else vector(registers)

    listed = [address(cell), *(operand(loaded[one]) for one in inputs[1:])]
    k.emit(f"{word}.{space}.{what}", *([] if is_red else [operand(old)]), *listed)
    if space == "shared":
        for index in range(count):
            value = k.let(f".b{width}", "after", f"ld.shared.b{width}", address(cell, size * index))
            k.emit(f"st.global.b{width}", address(places["cells"], size * index), value)
    if not is_red:
        for index, register in enumerate(old):
            k.emit(f"st.global.b{width}", address(places["old"], size * index), register)
    k.emit("ret")
    return Probe(
        f"atomic.{name}",
        module_text(k, SYMBOL),
        name,
        grid=1,
        block=THREADS,
        inputs={
            one: _values(op, kind, position, count).astype(dtype)
            for position, one in enumerate(inputs)
        },
        outputs=dict.fromkeys(outputs, ((THREADS, count), dtype)),
        shared_bytes=THREADS * size * count,
    )


def _values(op: str, kind: str, position: int, count: int) -> Array:
    values = operands(kind, position, THREADS * count).reshape(THREADS, count)
    if op == "cas" and position == 1:  # every other thread compares with what is there
        values[::2] = operands(kind, 0, THREADS * count).reshape(THREADS, count)[::2]
    return values


def probes() -> list[Probe]:
    """Return a probe for each operation, type and space; `red` for a few."""
    made = [
        _probe(space, what, False) for space in SPACES for what in (*_INTEGERS, *_FLOATS, *_SWAPS)
    ]
    made += [_probe("global", what, False) for what in _VECTORS]
    made += [
        _probe("global", what, True)
        for what in (*_FLOATS, *_VECTORS, "add.u32", "min.s32", "xor.b32")
    ]
    return made
