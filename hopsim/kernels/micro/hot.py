"""Rows that many SMs read at once, and rows that many lanes of an SM read at once.

The way `mma-multistage` copies A: four warps copy 64 rows of 64 bytes with `cp.async`, four lanes a row, three stages
ahead, and rows beyond the end of the matrix are its last row, once more.
"""

from __future__ import annotations

from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, mean_of_rows, zeros
from hopsim.kernels.ptx.text import Param, address

ROWS, ROW_BYTES = 64, 64
STEPS = 64
STAGES = 4
THREADS = 128


def clamped(ctas: int, inside: int, pitch_bytes: int, is_own: bool = False) -> Benchmark:
    """Copies of 64 rows along K, 64 bytes further each time, that L2 has.

    Args:
        inside: rows of the matrix; the others are its last one.
        is_own: whether each CTA reads a matrix of its own.
    """
    whose = "own" if is_own else "same"
    c = Clocked(
        f"hot_rows_{ctas}_{inside}of{ROWS}_p{pitch_bytes}_{whose}", [Param("data", ".u64")],
        [f".reqntid {THREADS}"],
    )  # fmt: skip
    c.own_row(1)
    base = c.load("data", ".b64", "ld.param.u64")
    if is_own:
        cta = c.k.let(".b32", "cta", "mov.u32", "%ctaid.x")
        c.k.emit("mad.wide.u32", base, cta, inside * pitch_bytes, base)
    lanes, half = ROW_BYTES // 16, THREADS * 16 // ROW_BYTES
    chunk = c.k.let(".b32", "chunk", "and.b32", c.thread, lanes - 1)
    own = c.k.let(".b32", "own_row", "shr.u32", c.thread, lanes.bit_length() - 1)
    c.k.emit("mad.wide.u32", base, chunk, 16, base)
    sources = [c.k.reg(".b64", "source") for _ in range(0, ROWS, half)]
    rows = [c.k.let(".b32", "row", "add.u32", own, first) for first in range(0, ROWS, half)]
    for row in rows:
        c.k.emit("min.u32", row, row, inside - 1)
    to = c.k.let(".b32", "to", "mad.lo.u32", c.thread, 16, c.shared)
    left, more = c.k.reg(".b32", "left"), c.k.reg(".pred", "more")
    slot = c.k.reg(".b32", "slot")

    def stage() -> None:
        for index, source in enumerate(sources):
            c.k.emit(
                "cp.async.cg.shared.global", address(slot, index * half * ROW_BYTES), address(source), 16
            )  # fmt: skip
            c.k.emit("add.u64", source, source, ROW_BYTES)
        c.k.emit("cp.async.commit_group")
        c.k.emit("add.u32", slot, slot, ROWS * ROW_BYTES)

    def walk() -> None:
        for source, row in zip(sources, rows, strict=True):
            c.k.emit("mad.wide.u32", source, row, pitch_bytes, base)
        c.k.emit("mov.u32", slot, to)
        for _ in range(STAGES - 1):
            stage()
        c.k.emit("mov.u32", left, STEPS - STAGES + 1)
        with c.k.loop(left, more, "$walk"):
            c.k.emit("cp.async.wait_group", STAGES - 2)
            c.k.emit("bar.sync", 0)
            stage()
            end = c.k.let(".b32", "end", "add.u32", to, STAGES * ROWS * ROW_BYTES)
            around = c.k.let(".pred", "around", "setp.ge.u32", slot, end)
            c.k.emit("selp.b32", slot, to, slot, around)
        c.k.emit("cp.async.wait_all")

    walk()
    c.measure("walk", walk, whole_cta=True)
    return c.benchmark(
        f"cp.async of {ROWS} rows of {ROW_BYTES} bytes, {inside} of them different, {pitch_bytes} bytes apart, "
        f"{STEPS} times along K, {ctas} SMs, {whose} rows",
        grid=ctas, block=THREADS, rows=ctas, summary=mean_of_rows, shared_bytes=STAGES * ROWS * ROW_BYTES,
        arguments=zeros((ctas if is_own else 1) * inside * pitch_bytes + pitch_bytes),
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [clamped(ctas, inside, 8192) for ctas in (1, 16, SMS) for inside in (64, 32, 16, 1)]
    found += [clamped(SMS, inside, 4096) for inside in (64, 32, 16)]
    return found + [clamped(SMS, inside, 4096, is_own=True) for inside in (16, 1)]
