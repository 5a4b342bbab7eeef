"""Probes of wgmma.mma_async.sp: every type, A from shared memory and registers, layouts, selectors, chains.

Shared memory holds numbers everywhere, so that a byte that is read from elsewhere shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hopsim.isa.numerics.formats import FORMATS
from hopsim.isa.values import Array
from hopsim.isa.wgmma import DENSE_K, Major
from hopsim.kernels.probes.bits import matrix, words
from hopsim.kernels.probes.mma_sparse import metadata
from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.probes.tensor import TYPES, Types, case
from hopsim.kernels.probes.wgmma import SYMBOL, THREADS, M, accumulator, copy_image, row_of, scales
from hopsim.kernels.ptx.text import Param, PtxEntry, Reg, address, module_text, vector
from hopsim.layout.descriptor import MatrixDescriptor, operand_span
from hopsim.layout.sparse import metadata_map
from hopsim.layout.swizzle import Swizzle

STORED_BYTES, B_BYTES = 32, 64
"""Of K in one instruction: of a row of A, and of one of B."""
APART = 2048
"""Leading byte offset of swizzled K-major operands, which use none."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to issue a sparse product.

    Args:
        name: for labels.
        n: columns.
        steps: instructions, each with another register of metadata.
        from_registers: whether A comes from registers.
        swizzle: of both operands in shared memory.
        a_major, b_major: `K` or `MN`.
        selector: the sparsity selector.
        ignore_c: scale-d = 0 in the first instruction.
        negate: imm-scale-a = -1.
    """

    name: str
    n: int = 8
    steps: int = 1
    from_registers: bool = False
    swizzle: Swizzle = Swizzle.NONE
    a_major: Major = "K"
    b_major: Major = "K"
    selector: int = 0
    ignore_c: bool = False
    negate: bool = False


def variants(types: Types) -> list[Variant]:
    """Return the variants that are probed for a type combination."""
    found = [
        Variant("single"),
        Variant("registers", from_registers=True),
        Variant("chain", steps=3, n=16),
        Variant("chain_registers", steps=3, n=16, from_registers=True, ignore_c=True),
        Variant("swizzle_B64", swizzle=Swizzle.B64, n=24),
        Variant("swizzle_B128", swizzle=Swizzle.B128, n=64),
    ]
    if metadata_map(types.a, 2 * DENSE_K[types.a]).selectors > 1:
        found += [
            replace(one, name=f"{one.name}_other", selector=1)
            for one in (found[0], replace(found[1], negate=not types.is_integer))
        ]
    if types.element_bits == 16:
        base = Variant("", n=64)
        majors: tuple[tuple[Major, Major], ...] = (("MN", "K"), ("K", "MN"), ("MN", "MN"))
        found += [
            replace(base, name=f"major_{a}_{b}_{one.name}", swizzle=one, a_major=a, b_major=b)
            for one in (Swizzle.NONE, Swizzle.B128)
            for a, b in majors
        ]
    return found


def _descriptor(rows: int, k_bytes: int, size: int, major: Major, swizzle: Swizzle) -> int:
    width = swizzle.width_bytes
    if swizzle is Swizzle.NONE:
        across = 128 if major == "K" else 128 * (rows * size // 16)
        down = 8 * k_bytes if major == "K" else 128
    elif major == "K":
        across, down = APART, 8 * width
    else:
        down = 8 * width
        across = down * (k_bytes // size // 8)
    return MatrixDescriptor(0, across, down, 0, swizzle).encode()


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand in shared memory: its descriptor at offset 0, and how many bytes it lies in."""

    descriptor: int
    size: int


def _operand(rows: int, k_bytes: int, types: Types, major: Major, swizzle: Swizzle) -> Operand:
    size = types.element_bits // 8
    bits = _descriptor(rows, k_bytes, size, major, swizzle)
    stop = operand_span(bits, rows, k_bytes // size, size, major)[1]
    return Operand(bits, -(-stop // 1024) * 1024)


def opcode(types: Types, n: int) -> str:
    """Return the mnemonic."""
    sat = ".satfinite" if types.saturate else ""
    shape = f"m64n{n}k{2 * DENSE_K[types.a]}"
    return f"wgmma.mma_async.sp.sync.aligned.{shape}.{types.d}.{types.a}.{types.b}{sat}"


def _kernel(
    types: Types, variant: Variant, a: Operand | None, b: Operand, registers: int
) -> PtxEntry:
    names = ["image", "c", *(["a"] if a is None else []), "e", "d"]
    k = PtxEntry(
        f"{types.name}_{variant.name}", [Param(one, ".u64") for one in names], [".reqntid 128"]
    )
    thread = k.let(".b32", "thread", "mov.u32", "%tid.x")
    number = k.let(".b32", "case", "mov.u32", "%ctaid.x")
    shared = k.let(".b32", "shared", "mov.u32", SYMBOL)
    copy_image(k, thread, number, shared, (a.size if a else 0) + b.size)

    def loaded(name: str, count: int) -> list[Reg]:
        held = k.regs(".b32", name, count)
        place = row_of(k, name, thread, number, count)
        for index, one in enumerate(held):
            k.emit("ld.global.b32", one, address(place, index * THREADS * 4))
        return held

    d = loaded("c", registers)
    of_a = loaded("a", 4) if a is None else []
    e = loaded("e", variant.steps)
    units = k.let(".b32", "units", "shr.u32", shared, 4)
    wide = k.let(".b64", "base", "cvt.u64.u32", units)
    yes = k.let(".pred", "add_c", "setp.eq.u32", shared, shared)
    no = k.let(".pred", "no_c", "setp.ne.u32", shared, shared)

    def descriptor(operand: Operand, offset: int) -> Reg:
        return k.let(".b64", "desc", "add.u64", wide, f"{operand.descriptor + offset // 16:#x}")

    left = vector(of_a) if a is None else descriptor(a, 0)
    right = descriptor(b, a.size if a else 0)
    a_major = None if variant.from_registers else variant.a_major
    immediates = scales(types, a_major, variant.b_major, variant.negate)
    k.emit("bar.sync", 0)
    k.emit("wgmma.fence.sync.aligned")
    for step in range(variant.steps):
        predicate = no if step == 0 and variant.ignore_c else yes
        k.emit(
            opcode(types, variant.n), vector(d), left, right, e[step], variant.selector, predicate,
            *immediates,
        )  # fmt: skip
    k.emit("wgmma.commit_group.sync.aligned")
    k.emit("wgmma.wait_group.sync.aligned", 0)
    out = row_of(k, "d", thread, number, registers)
    for index, one in enumerate(d):
        k.emit("st.global.b32", address(out, index * THREADS * 4), one)
    k.emit("ret")
    return k


def _bytes(types: Types, distribution: str, seed: int, count: int, kind: str) -> NDArray[np.uint8]:
    """Return `count` bytes of elements."""
    if types.is_integer:
        return (words(seed, count) & np.uint64(0xFF)).astype(np.uint8)
    size = types.element_bits // 8
    return matrix(FORMATS[kind], distribution, seed, (1, count // size)).view(np.uint8).reshape(-1)


def _probe(types: Types, variant: Variant) -> tuple[Probe, PtxEntry]:
    a = (
        None
        if variant.from_registers
        else _operand(M, STORED_BYTES, types, variant.a_major, variant.swizzle)
    )
    b = _operand(variant.n, B_BYTES, types, variant.b_major, variant.swizzle)
    known = ("raw",) if types.is_integer else ("normal", "special")
    images: list[Array] = []
    sums: list[Array] = []
    of_a: list[Array] = []
    e: list[Array] = []
    for number, distribution in enumerate(known):
        seed = 300 + 1000 * number
        parts = [_bytes(types, distribution, seed, a.size, types.a)] if a else []
        parts.append(_bytes(types, distribution, seed + 1, b.size, types.b))
        images.append(np.concatenate(parts))
        c = case(types, distribution, M, variant.n, 8, seed)[2]
        sums.append(accumulator(types, c))
        held = _bytes(types, distribution, seed + 3, 4 * THREADS * 4, types.a)
        of_a.append(np.ascontiguousarray(held).view(np.uint32).reshape(4, THREADS))
        e.append(np.stack([metadata(types.a, seed + 5 + i, THREADS) for i in range(variant.steps)]))
    inputs: dict[str, Array] = {"image": np.stack(images), "c": np.stack(sums)}
    if a is None:
        inputs["a"] = np.stack(of_a)
    inputs["e"] = np.stack(e)
    c = inputs["c"]
    entry = _kernel(types, variant, a, b, c.shape[1])
    probe = Probe(
        f"wgmma_sparse.{types.name}.{variant.name}",
        "",
        entry.name,
        grid=len(known),
        block=THREADS,
        inputs=inputs,
        outputs={"d": (c.shape, np.uint32)},
        shared_bytes=(a.size if a else 0) + b.size,
        labels={"d": known},
    )
    return probe, entry


def module_of(types: Types, chosen: Sequence[Variant]) -> list[Probe]:
    """Return the probes of a type combination, all kernels in one module."""
    made = [_probe(types, variant) for variant in chosen]
    text = "\n".join([module_text(made[0][1], SYMBOL), *(entry.text() for _, entry in made[1:])])
    return [replace(probe, ptx=text) for probe, _ in made]


def probes() -> list[Probe]:
    """Return all of them."""
    return [probe for types in TYPES for probe in module_of(types, variants(types))]
