"""Latency and rate of wgmma: types, N, operand sources, warpgroups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hopsim.isa.wgmma import DENSE_K
from hopsim.kernels.micro.clocked import Benchmark, Clocked
from hopsim.kernels.ptx.text import Operand, Reg, vector
from hopsim.layout.descriptor import MatrixDescriptor
from hopsim.layout.swizzle import Swizzle

COLUMNS = (8, 16, 32, 64, 96, 128, 192, 256)
COUNTS = (1, 4, 16, 64)
A_BYTES, B_BYTES = 64 * 128, 256 * 128
PAIRS = 0x44444444
"""Metadata: of each four elements the first two."""
TYPES = ("bf16", "f16", "tf32", "e4m3", "s8")
SCALES = {"bf16": (1, 1, 0, 0), "f16": (1, 1, 0, 0), "tf32": (1, 1), "e4m3": (1, 1), "s8": ()}


def operands(c: Clocked) -> tuple[Reg, Reg, Reg]:
    """Return the descriptors of a tile of A and of one of B behind it, K-major, and a predicate that is true."""
    units = c.k.let(".b32", "units", "shr.u32", c.shared, 4)
    base = c.k.let(".b64", "base", "cvt.u64.u32", units)
    tile = MatrixDescriptor(0, 16, 1024, 0, Swizzle.B128)
    a = c.k.let(".b64", "a", "add.u64", base, f"{tile.encode():#x}")
    b = c.k.let(".b64", "b", "add.u64", base, f"{replace(tile, start_addr=A_BYTES).encode():#x}")
    return a, b, c.k.let(".pred", "yes", "setp.eq.u32", units, units)


def multiply(
    c: Clocked, count: int, sums: Sequence[Reg], a: Operand, b: Reg, yes: Reg, *scales: int
) -> None:
    """Write a group of bf16 products into the same sums, and the wait for it."""
    c.k.emit("wgmma.fence.sync.aligned")
    for _ in range(count):
        c.k.emit(
            f"wgmma.mma_async.sync.aligned.m64n{2 * len(sums)}k16.f32.bf16.bf16",
            vector(sums), a, b, yes, *scales,
        )  # fmt: skip
    c.k.emit("wgmma.commit_group.sync.aligned")
    c.k.emit("wgmma.wait_group.sync.aligned", 0)


def wgmma(
    kind: str, n: int, warpgroups: int, from_registers: bool = False, *, is_sparse: bool = False
) -> Benchmark:
    """Groups of 1, 4, 16 and 64 products into one accumulator, each group waited for."""
    source = "RS" if from_registers else "SS"
    sp, k = ("_sp", 2 * DENSE_K[kind]) if is_sparse else ("", DENSE_K[kind])
    c = Clocked(
        f"wgmma{sp}_{kind}_n{n}_{source}_w{warpgroups}", directives=[f".reqntid {128 * warpgroups}"]
    )
    d_type = "s32" if kind == "s8" else "f32"
    opcode = f"wgmma.mma_async{'.sp' * is_sparse}.sync.aligned.m64n{n}k{k}.{d_type}.{kind}.{kind}"
    registers = c.k.regs(".b32", "acc", n // 2)
    for register in registers:
        c.k.emit("mov.b32", register, 0)
    a_registers = c.k.regs(".b32", "ra", 4)
    for register in a_registers:
        c.k.emit("mov.b32", register, 0)
    units = c.k.let(".b32", "units", "shr.u32", c.shared, 4)
    warpgroup = c.k.let(".b32", "warpgroup", "shr.u32", c.thread, 7)
    wide = c.k.let(".b64", "base", "cvt.u64.u32", units)
    own = c.k.let(".b64", "own", "mad.wide.u32", warpgroup, A_BYTES // 16, wide)
    tile = MatrixDescriptor(0, 16, 1024, 0, Swizzle.B128)
    a = c.k.let(".b64", "a", "add.u64", own, f"{tile.encode():#x}")
    b_bits = replace(tile, start_addr=A_BYTES * 3).encode()
    b = c.k.let(".b64", "b", "add.u64", wide, f"{b_bits:#x}")
    yes = c.k.let(".pred", "yes", "setp.eq.u32", units, units)
    scales = SCALES[kind][:-1] if from_registers and len(SCALES[kind]) == 4 else SCALES[kind]
    left = vector(a_registers) if from_registers else a
    metadata = [c.k.let(".b32", "metadata", "mov.b32", PAIRS), 0] if is_sparse else []
    for count in COUNTS:

        def group(count: int = count) -> None:
            c.k.emit("wgmma.fence.sync.aligned")
            for _ in range(count):
                c.k.emit(opcode, vector(registers), left, b, *metadata, yes, *scales)
            c.k.emit("wgmma.commit_group.sync.aligned")
            c.k.emit("wgmma.wait_group.sync.aligned", 0)

        c.k.emit("bar.sync", 0)
        c.measure(f"wgmma x{count}", group)
    for register in registers:
        c.keep(register)
    return c.benchmark(
        f"wgmma{'.sp' * is_sparse} {kind} m64n{n} {source}, {warpgroups} warpgroups",
        block=128 * warpgroups,
        shared_bytes=A_BYTES * 3 + B_BYTES,
    )


def benchmarks() -> list[Benchmark]:
    """Return all wgmma benchmarks."""
    found = [wgmma("bf16", n, groups) for n in COLUMNS for groups in (1, 2)]
    found += [wgmma("bf16", n, 1, True) for n in COLUMNS]
    found += [wgmma(kind, n, 1) for kind in TYPES[1:] for n in (8, 64, 128, 256)]
    found += [wgmma(kind, n, 1, True) for kind in ("e4m3", "tf32") for n in (64, 256)]
    found += [wgmma("bf16", 128, 3), wgmma("bf16", 256, 2, True), wgmma("e4m3", 256, 2)]
    return found
