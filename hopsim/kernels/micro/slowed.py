"""wgmma of one warpgroup while others do arithmetic: what passes the registers beside the sums makes the products slower."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.beside import (
    ADDRESSES,
    ARITHMETIC,
    CHAINS,
    PRODUCTS,
    WARPGROUP,
    Registers,
    keep_halves,
)
from hopsim.kernels.micro.clocked import Benchmark, Clocked
from hopsim.kernels.micro.tensor import A_BYTES, multiply, operands
from hopsim.kernels.ptx.text import Param

COLUMNS: Final = (64, 128)
CYCLES: Final = 8192
"""Of the products, with nothing beside them."""
TURNS: Final = 250
"""Of the arithmetic: it goes on when the products are done."""
BESIDE: Final[dict[str, tuple[str, ...]]] = {
    "nothing": (),
    **ARITHMETIC,
    "add.f32": ("add.f32 {s}, {s}, {y}",),
    "add.s32, xor": ("add.s32 {s}, {s}, {y}", "xor.b32 {s}, {s}, {z}"),
    **{
        name: ADDRESSES[name]
        for name in ("lop3.b32", "add.s64", "mul.wide.u32", "mad.wide.u32", "setp, selp")
    },
}


def slowed(n: int, warps: int) -> Benchmark:
    """Cycles of the same products beside each kind of arithmetic.

    Args:
        n: columns of the products.
        warps: that do arithmetic, eight independent chains each.
    """
    names = ("x", "y", "z", "products", "turns")
    c = Clocked(
        f"slowed_wgmma_n{n}_w{warps}", [Param(name, ".u32") for name in names],
        [f".reqntid {WARPGROUP + 32 * warps}"],
    )  # fmt: skip
    k = c.k
    x, y, z = (c.load(name) for name in ("x", "y", "z"))
    multiplies = k.let(".pred", "multiplies", "setp.lt.u32", c.thread, WARPGROUP)
    own = k.let(".b32", "own", "add.u32", x, c.thread)
    chains = [k.let(".b32", "s", "add.u32", own, index) for index in range(CHAINS)]
    wide = [k.let(".b64", "w", "mul.wide.u32", one, y) for one in chains]
    fixed = k.let(".b64", "fixed", "mul.wide.u32", own, z)
    half, high = k.regs(".b32", "half", CHAINS), k.regs(".b32", "high", CHAINS)
    chosen = k.regs(".pred", "chosen", CHAINS)
    sums = k.regs(".b32", "acc", n // 2)
    for register in sums:
        k.emit("mov.b32", register, 0)

    registers = Registers(chains, wide, half, high, chosen, y, z, fixed)

    for label, texts in BESIDE.items():
        computes, met = k.label("$computes"), k.label("$met")
        k.emit("bar.sync", 0)
        k.emit("bra", computes, unless=multiplies)
        before = c.clock()
        a, b, yes = operands(c)
        left, more = c.load("products"), k.reg(".pred", "more")
        with k.loop(left, more, "$products"):
            multiply(c, PRODUCTS, sums, a, b, yes, 1, 1, 0, 0)
        after = c.clock()
        k.emit("sub.u64", after, after, before)
        c.store(label, after)
        k.emit("bra", met)
        k.place(computes)
        if texts:
            left, more = c.load("turns"), k.reg(".pred", "more")
            with k.loop(left, more, "$turn"):
                registers.rounds(c, texts)
        k.place(met)
    for register in (*sums, *chains):
        c.keep(register)
    for one in wide:
        keep_halves(c, one)

    def numbers(gpu: Any) -> list[Any]:
        del gpu
        groups = CYCLES // (PRODUCTS * n // 2)
        return [np.uint32(one) for one in (0x3F800001, 0x3F800003, 0x00010203, groups, TURNS)]

    return c.benchmark(
        f"products of {n} columns while {warps} other warps do arithmetic",
        block=WARPGROUP + 32 * warps, arguments=numbers, shared_bytes=A_BYTES + 256 * 128,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [*(slowed(n, warps) for n in COLUMNS for warps in (4, 8)), slowed(COLUMNS[-1], 1)]
