"""Loads and reductions of a warp that touch several lines at once.

The way `mma-simple` reads its operands and split-k's atomic reduction writes its sums: eight rows of a matrix, four
lanes each.  Of its four warps, two by two, those beside each other read the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, mean_of_rows, zeros
from hopsim.kernels.ptx.text import Param, Reg, address, vector

PITCH = 8192
LANES = 32
HALVES = (0, 16)
"""Bytes of a sector that a lane's two loads begin at: the first of all rows, then the second, as ptxas orders them."""
STEPS = 32
"""Of a walk; not unrolled, so that each waits for its own loads."""
LESS_L1_BYTES = 160 * 1024
"""Of shared memory, so that L1 holds less than what is walked over."""


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


def _load_all(c: Clocked, places: Sequence[str], total: Reg) -> None:
    """Load words, all before the first is waited for, and add them up: ptxas moves no use before a reading of the clock."""
    held = [c.k.let(".b32", "v", "ld.global.b32", place) for place in places]
    c.k.emit("xor.b32", total, total, c.k.let(".b32", "now", "mov.u32", "%clock"))
    for one in held:
        c.k.emit("xor.b32", total, total, one)


def walk(lines: int, warps: int, ctas: int) -> Benchmark:
    """Loads along rows, 32 bytes further each time, out of L1: as an operand is read slice by slice."""
    groups = 4
    c = Clocked(
        f"gather_walk_{lines}_w{warps}_{ctas}", [Param("data", ".u64")], [f".reqntid {32 * warps}"]
    )
    c.own_row(1)
    part = groups * lines * PITCH
    base = _place(c, "data", lines, 4, part)
    cta = c.k.let(".b32", "cta", "mov.u32", "%ctaid.x")
    c.k.emit("mad.wide.u32", base, cta, part * warps, base)
    total, left = c.k.let(".b32", "total", "mov.u32", 0), c.k.reg(".b32", "left")
    at, more = c.k.reg(".b64", "at"), c.k.reg(".pred", "more")

    def once() -> Reg:
        c.k.emit("mov.b64", at, base)
        c.k.emit("mov.u32", left, STEPS)
        with c.k.loop(left, more, "$walk", nounroll=True):
            places = [
                address(at, group * lines * PITCH + half)
                for half in HALVES
                for group in range(groups)
            ]
            _load_all(c, places, total)
            c.k.emit("add.u64", at, at, 32)
        return total

    c.keep(once())
    c.measure("walk", once, whole_cta=True)
    size = ctas * warps * part + 4 * PITCH
    return c.benchmark(
        f"loads along rows 8 KiB apart, {lines} lines an instruction, {STEPS * 2 * groups} instructions a warp, "
        f"{warps} warps on each of {ctas} SMs",
        grid=ctas, block=32 * warps, rows=ctas, summary=mean_of_rows,
        arguments=zeros(size),
    )  # fmt: skip


def tiles(a_groups: int, b_groups: int, ctas: int, *, is_cold: bool = False) -> Benchmark:
    """Loads of four warps, two by two, along rows of A that two share, and of B that two others do, slice by slice.

    Args:
        a_groups, b_groups: eight rows each, of a warp.
        ctas: one an SM, each with rows of its own.
        is_cold: whether they come out of device memory; else L2 has them.
    """
    warps, rows_of_group = 4, 8
    where = "_cold" if is_cold else ""
    c = Clocked(
        f"gather_tiles_{a_groups}x{b_groups}_{ctas}{where}",
        [Param("data", ".u64")],
        [f".reqntid {LANES * warps}"],
    )
    c.own_row(1)
    part = rows_of_group * PITCH
    base = _place(c, "data", rows_of_group, 4, 0)
    cta = c.k.let(".b32", "cta", "mov.u32", "%ctaid.x")
    c.k.emit("mad.wide.u32", base, cta, 2 * (a_groups + b_groups) * part, base)
    warp = c.k.let(".b32", "warp", "shr.u32", c.thread, 5)
    above = c.k.let(".b32", "above", "and.b32", warp, 1)
    beside = c.k.let(".b32", "beside", "shr.u32", warp, 1)
    a = c.k.let(".b64", "a", "mad.wide.u32", above, a_groups * part, base)
    b = c.k.let(".b64", "b", "mad.wide.u32", beside, b_groups * part, base)
    c.k.emit("add.u64", b, b, 2 * a_groups * part)
    total, left = c.k.let(".b32", "total", "mov.u32", 0), c.k.reg(".b32", "left")
    more = c.k.reg(".pred", "more")
    rows = [(a, number) for number in range(a_groups)] + [(b, number) for number in range(b_groups)]

    def once() -> Reg:
        c.k.emit("mov.u32", left, STEPS)
        with c.k.loop(left, more, "$walk", nounroll=True):
            places = [
                address(operand, number * part + half)
                for half in HALVES
                for operand, number in rows
            ]
            _load_all(c, places, total)
            for operand in (a, b):
                c.k.emit("add.u64", operand, operand, 32)
        return total

    if not is_cold:
        c.keep(once())
        for operand in (a, b):
            c.k.emit("sub.u64", operand, operand, 32 * STEPS)
    c.measure("walk", once, whole_cta=True)
    return c.benchmark(
        f"loads along rows 8 KiB apart, {a_groups} and {b_groups} groups of eight rows a warp, two by two warps on each of "
        f"{ctas} SMs" + (", out of device memory" if is_cold else ""),
        grid=ctas, block=LANES * warps, rows=ctas, summary=mean_of_rows, is_cold=is_cold, shared_bytes=LESS_L1_BYTES,
        arguments=zeros((ctas * 2 * (a_groups + b_groups) + 1) * part),
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
    found += [walk(lines, warps, 1) for lines in (1, 2, 4, 16, 32) for warps in (1, 4)]
    found += [
        tiles(*groups, ctas, is_cold=is_cold)
        for groups in ((2, 2), (4, 2), (4, 4), (4, 8))
        for ctas in (1, SMS)
        for is_cold in (False, True)
    ]
    for kind in ("f32", "v2.f32"):
        for lines in (1, 8):
            found += [reductions(kind, lines, ctas) for ctas in (1, SMS)]
    found += [reductions("v2.f32", 8, SMS, sharing=2)]
    found += [reductions("v2.f32", lines, SMS, is_cold=True) for lines in (1, 8)]
    found += [reductions("v2.f32", 8, SMS, sharing, is_cold=True) for sharing in (2, 4)]
    return found
