"""Integer arithmetic that several pipes can do: how ptxas shares it between them, and what that makes of its rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark, Clocked
from hopsim.kernels.ptx.text import Param, Reg

TURNS: Final = (4, 20)
"""Of a loop, which stays in the nearest cache of instructions."""
CHAINS: Final = 8
ROUNDS: Final = 4
WARPS: Final = (4, 8, 16)
MIXES: Final = {
    "shl, xor": ("shl.b32 {t}, {s}, 13", "xor.b32 {s}, {s}, {t}"),
    "shl, xor, shr, xor": (
        "shl.b32 {t}, {s}, 13", "xor.b32 {s}, {s}, {t}", "shr.u32 {t}, {s}, 17", "xor.b32 {s}, {s}, {t}",
    ),
    "add, xor": ("add.s32 {s}, {s}, {y}", "xor.b32 {s}, {s}, {o}"),
    "add of a literal, xor": ("add.s32 {s}, {s}, 77", "xor.b32 {s}, {s}, {o}"),
    "add, add of a literal, prmt": (
        "add.s32 {t}, {s}, {o}", "prmt.b32 {t}, {t}, {y}, {z}", "add.s32 {s}, {t}, 77",
    ),
    "add, fma": ("add.s32 {s}, {s}, {o}", "fma.rn.f32 {f}, {f}, {g}, {g}"),
    "add of a literal, prmt, fma": (
        "add.s32 {s}, {s}, 77", "prmt.b32 {s}, {s}, {o}, {z}", "fma.rn.f32 {f}, {f}, {g}, {g}",
    ),
    "shl, xor, fma": (
        "shl.b32 {t}, {s}, 13", "xor.b32 {s}, {s}, {t}", "fma.rn.f32 {f}, {f}, {g}, {g}",
    ),
    "setp, selp, add": ("setp.gt.u32 {p}, {s}, {y}", "selp.u32 {t}, 1, 0, {p}", "add.s32 {s}, {o}, {t}"),
    "two setp, selp, add": (
        "setp.gt.u32 {p}, {s}, {y}", "setp.lt.u32 {q}, {o}, {z}", "and.pred {p}, {p}, {q}",
        "selp.u32 {t}, 1, 0, {p}", "add.s32 {s}, {o}, {t}",
    ),
    "mul.lo, mad.lo, add, xor": (
        "mul.lo.s32 {t}, {o}, {o}", "mad.lo.s32 {t}, {s}, {s}, {t}", "add.s32 {s}, {s}, {o}",
        "xor.b32 {s}, {s}, {t}",
    ),
}  # fmt: skip
"""What each chain does in turns; `s` is its integer, `o` that of the next chain, `t` what is thrown away, `f` a float."""


def mixed(warps: int) -> Benchmark:
    """Eight chains a warp; a slope is cycles for a turn: four rounds of what its label says, of each chain of each warp."""
    names = ("x", "y", "z", *(f"turns_{turns}" for turns in TURNS))
    c = Clocked(f"pipes_w{warps}", [Param(name, ".u32") for name in names])
    k = c.k
    x, y, z = (c.load(name) for name in ("x", "y", "z"))
    chains = [k.let(".b32", "s", "mad.lo.u32", c.thread, 77 + index, x) for index in range(CHAINS)]
    floats = [k.let(".b32", "f", "cvt.rn.f32.u32", one) for one in chains]
    factor = k.let(".b32", "g", "cvt.rn.f32.u32", y)
    thrown, first, second = (
        k.regs(kind, name, CHAINS) for kind, name in ((".b32", "t"), (".pred", "p"), (".pred", "q"))
    )

    def turn(texts: Sequence[str]) -> None:
        for _ in range(ROUNDS):
            for text in texts:
                for index in range(CHAINS):
                    opcode, _, rest = text.format(
                        s=chains[index], o=chains[(index + 1) % CHAINS], y=y, z=z, t=thrown[index], p=first[index],
                        q=second[index], f=floats[index], g=factor,
                    ).partition(" ")  # fmt: skip
                    k.emit(opcode, rest)

    for label, texts in MIXES.items():
        for turns in TURNS:

            def run(texts: Sequence[str] = texts, turns: int = turns) -> Reg:
                left, more = c.load(f"turns_{turns}"), k.reg(".pred", "more")
                with k.loop(left, more, "$turn", nounroll=True):
                    turn(texts)
                total = k.let(".b32", "total", "xor.b32", chains[0], floats[0])
                for one in (*chains[1:], *floats[1:]):
                    k.emit("xor.b32", total, total, one)
                return total

            c.measure(f"{label} x{turns}", run, whole_cta=True)

    def numbers(gpu: Any) -> list[Any]:
        del gpu
        return [np.uint32(one) for one in (0x3F800001, 0x3F8003, 0x00010203, *TURNS)]

    return c.benchmark(
        f"rate of integer arithmetic that several pipes can do, {warps} warps, eight chains each",
        block=32 * warps, arguments=numbers,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [mixed(warps) for warps in WARPS]
