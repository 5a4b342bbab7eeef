"""Loads and reductions of a warp that touch several lines at once.

The way `mma-simple` reads its operands and split-k's atomic reduction writes its sums: eight rows of a matrix, four
lanes each.
"""

from __future__ import annotations

from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, mean_of_rows, zeros
from hopsim.kernels.ptx.text import Param, Reg, address, vector

PITCH = 8192
LANES = 32


def _place(c: Clocked, name: str, lines: int, item_bytes: int, part_bytes: int) -> Reg:
    """Return the address of this lane: 32 / lines lanes side by side in each of so many rows; each warp has its own."""
    base = c.load(name, ".b64", "ld.param.u64")
    lane = c.k.let(".b32", "lane", "and.b32", c.thread, LANES - 1)
    warp = c.k.let(".b32", "warp", "shr.u32", c.thread, 5)
    row = c.k.let(".b32", "row", "div.u32", lane, LANES // lines)
    column = c.k.let(".b32", "column", "rem.u32", lane, LANES // lines)
    c.k.emit("mad.wide.u32", base, row, PITCH, base)
    c.k.emit("mad.wide.u32", base, column, item_bytes, base)
    c.k.emit("mad.wide.u32", base, warp, part_bytes, base)
    return base


def walk(lines: int, warps: int, ctas: int) -> Benchmark:
    """Loads along rows, 32 bytes further each time, that L2 has: as an operand is read slice by slice."""
    steps, groups = 32, 4
    c = Clocked(f"gather_walk_{lines}_w{warps}_{ctas}", [Param("data", ".u64")], [f".reqntid {32 * warps}"])  # fmt: skip
    c.own_row(1)
    part = groups * lines * PITCH
    base = _place(c, "data", lines, 4, part)
    cta = c.k.let(".b32", "cta", "mov.u32", "%ctaid.x")
    c.k.emit("mad.wide.u32", base, cta, part * warps, base)
    total, left = c.k.let(".b32", "total", "mov.u32", 0), c.k.reg(".b32", "left")
    at, more = c.k.reg(".b64", "at"), c.k.reg(".pred", "more")

    def once() -> Reg:
        c.k.emit("mov.b64", at, base)
        c.k.emit("mov.u32", left, steps)
        with c.k.loop(left, more, "$walk"):
            held = c.k.regs(".b32", "v", 2 * groups)
            for index, one in enumerate(held):
                offset = index // 2 * lines * PITCH + index % 2 * 16
                c.k.emit("ld.global.b32", one, address(at, offset))
            for one in held:
                c.k.emit("xor.b32", total, total, one)
            c.k.emit("add.u64", at, at, 32)
        return total

    c.keep(once())
    c.measure("walk", once, whole_cta=True)
    size = ctas * warps * part + 4 * PITCH
    return c.benchmark(
        f"loads along rows 8 KiB apart, {lines} lines an instruction, {steps * 2 * groups} instructions a warp, "
        f"{warps} warps on each of {ctas} SMs",
        grid=ctas, block=32 * warps, rows=ctas, summary=mean_of_rows,
        arguments=zeros(size),
    )  # fmt: skip


def reductions(
    kind: str, lines: int, ctas: int, sharing: int = 1, is_cold: bool = False
) -> Benchmark:
    """`red` of f32 by four warps until all is done, then a fence; bytes a clock.

    Args:
        kind: "f32" or "v2.f32".
        sharing: CTAs that add to the same words.
        is_cold: whether L2 holds nothing at each launch; else it holds other bytes that have to be written back.
    """
    size = 8 if kind.startswith("v2") else 4
    times, warps = 64, 4
    words = kind.replace(".", "_")
    name = f"red_{words}_{lines}_{ctas}_s{sharing}" + ("_clean" if is_cold else "")
    c = Clocked(name, [Param("data", ".u64")], [f".reqntid {32 * warps}"])
    c.own_row(1)
    width = LANES // lines * size
    base = _place(c, "data", lines, size, lines * PITCH)
    cta = c.k.let(".b32", "cta", "mov.u32", "%ctaid.x")
    part = c.k.let(".b32", "part", "div.u32", cta, sharing)
    c.k.emit("mad.wide.u32", base, part, warps * lines * PITCH, base)
    value = c.k.let(".f32", "value", "cvt.rn.f32.u32", c.thread)
    given = vector([value, value]) if size == 8 else value

    def body() -> None:
        for index in range(times):
            offset = index * width % PITCH
            c.k.emit(f"red.relaxed.gpu.global.add.{kind}", address(base, offset), given)
        c.k.emit("fence.acq_rel.gpu")

    c.measure("red and fence", body, whole_cta=True)
    return c.benchmark(
        f"red.add.{kind} over {lines} lines, {times} a warp, {warps} warps on each of {ctas} SMs, then a fence"
        + (f", {sharing} CTAs to the same words" if sharing > 1 else "") + (", L2 clean" if is_cold else ""),
        grid=ctas, block=32 * warps, rows=ctas, summary=mean_of_rows, is_cold=is_cold,
        amounts={"red and fence": float(times * warps * LANES * size * ctas)},
        arguments=zeros(-(-ctas // sharing) * warps * lines * PITCH + PITCH),
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [walk(8, warps, ctas) for warps in (1, 4, 8) for ctas in (1, SMS)]
    for kind in ("f32", "v2.f32"):
        for lines in (1, 8):
            found += [reductions(kind, lines, ctas) for ctas in (1, SMS)]
    found += [reductions("v2.f32", 8, SMS, sharing=2)]
    found += [reductions("v2.f32", lines, SMS, is_cold=True) for lines in (1, 8)]
    found += [reductions("v2.f32", 8, SMS, sharing, is_cold=True) for sharing in (2, 4)]
    return found
