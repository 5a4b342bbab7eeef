"""Probes of what the lanes of a warp do together: shfl, vote, match, redux, elect, activemask.

Two warps run; the second one executes everything under a branch that only lanes 8 to 23 take.
"""

from __future__ import annotations

import numpy as np

from hopsim.kernels.probes.bits import below, words
from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.ptx.text import Param, PtxEntry, Reg, address, module_text

THREADS = 64
PART = 0x00FFFF00
# (mode, b: a number, or None for an operand that differs by lane, c: clamp and segment mask)
SHUFFLES: tuple[tuple[str, int | None, int], ...] = (
    ("up", 1, 0), ("up", 0, 0), ("up", 5, 0x1000), ("up", 31, 0), ("up", 3, 0x1800),
    ("down", 1, 31), ("down", 7, 0x181F), ("down", 31, 31), ("down", 2, 0x1F),
    ("bfly", 1, 31), ("bfly", 4, 31), ("bfly", 3, 0x181F), ("bfly", 7, 0x180F), ("bfly", 2, 0x1C1F),
    ("idx", 9, 31), ("idx", 12, 31), ("idx", 3, 0x181F), ("idx", 40, 31),
)  # fmt: skip
REDUCTIONS = (
    *((op, kind) for op in ("add", "min", "max") for kind in ("u32", "s32")),
    *((op, "b32") for op in ("and", "or", "xor")),
)


def _forms(
    k: PtxEntry, mask: int, x: Reg, few: Reg, wide: Reg, odd: Reg, is_part: bool
) -> list[tuple[str, Reg]]:
    found: list[tuple[str, Reg]] = []

    def keep(label: str, result: Reg) -> None:
        found.append((label, result))

    def flag(label: str, predicate: Reg) -> None:
        keep(label, k.let(".b32", "flag", "selp.b32", 1, 0, predicate))

    for mode, b, c in SHUFFLES:
        # Reading a lane outside the mask is undefined: a part of the warp keeps to xor within 8 lanes.
        if is_part and not (mode == "bfly" and b in (1, 4, 3)):
            continue
        d, p = k.reg(".b32", "d"), k.reg(".pred", "p")
        k.emit(f"shfl.sync.{mode}.b32", f"{d}|{p}", x, b if b is not None else few, c, mask)
        keep(f"shfl.{mode} {b} {c:#x}", d)
        flag(f"shfl.{mode} {b} {c:#x} predicate", p)
    for mode in ("all", "any", "uni"):
        for name, predicate in (
            ("odd", odd),
            ("true", k.let(".pred", "true", "setp.eq.u32", mask, mask)),
        ):
            flag(
                f"vote.{mode} {name}",
                k.let(".pred", "v", f"vote.sync.{mode}.pred", predicate, mask),
            )
    keep("vote.ballot", k.let(".b32", "ballot", "vote.sync.ballot.b32", odd, mask))
    keep("match.any.b32", k.let(".b32", "same", "match.any.sync.b32", few, mask))
    keep("match.any.b64", k.let(".b32", "same", "match.any.sync.b64", wide, mask))
    for kind, value in (("b32", few), ("b64", wide), ("b32", k.let(".b32", "one", "mov.u32", 5))):
        d, p = k.reg(".b32", "d"), k.reg(".pred", "p")
        k.emit(f"match.all.sync.{kind}", f"{d}|{p}", value, mask)
        keep(f"match.all.{kind} {value}", d)
        flag(f"match.all.{kind} {value} predicate", p)
    for op, kind in REDUCTIONS:
        keep(f"redux.{op}.{kind}", k.let(".b32", "r", f"redux.sync.{op}.{kind}", x, mask))
    d, p = k.reg(".b32", "leader"), k.reg(".pred", "elected")
    k.emit("elect.sync", f"{d}|{p}", mask)
    keep("elect", d)
    flag("elect predicate", p)
    keep("activemask", k.let(".b32", "active", "activemask.b32"))
    return found


def probes() -> list[Probe]:
    """Return the probe of collective instructions."""
    k = PtxEntry("collective", [Param("x", ".u64"), Param("few", ".u64"), Param("out", ".u64")], [])
    thread = k.let(".b32", "thread", "mov.u32", "%tid.x")
    places = {
        name: k.let(".b64", name, "ld.param.u64", f"[{name}]") for name in ("x", "few", "out")
    }
    for place in places.values():
        k.emit("mad.wide.u32", place, thread, 4, place)
    x = k.let(".b32", "x", "ld.global.b32", address(places["x"]))
    few = k.let(".b32", "few", "ld.global.b32", address(places["few"]))
    wide = k.let(".b64", "wide", "mov.b64", f"{{{x}, {few}}}")
    k.emit("shl.b64", wide, wide, 34, note="so that some lanes agree in all 64 bits")
    one = k.let(".b32", "one", "and.b32", few, 1)
    odd = k.let(".pred", "odd", "setp.ne.u32", one, 0)
    second = k.let(".pred", "second", "setp.ge.u32", thread, 32)
    labels: list[str] = []
    other, end = k.label("$second_warp"), k.label("$end")
    k.emit("bra", other, guard=second)
    for mask, is_part in ((0xFFFFFFFF, False), (PART, True)):
        if is_part:
            k.place(other)
            lane = k.let(".b32", "lane", "sub.u32", thread, 40)
            outside = k.let(".pred", "outside", "setp.ge.u32", lane, 16)
            k.emit("bra", end, guard=outside)
        for label, result in _forms(k, mask, x, few, wide, odd, is_part):
            k.emit("st.global.b32", address(places["out"], len(labels) * THREADS * 4), result)
            labels.append(f"{label} mask {mask:#010x}")
        k.emit("bra", end)
    k.place(end)
    k.emit("ret")
    return [
        Probe(
            "collective.all",
            module_text(k, "shared_memory"),
            "collective",
            grid=1,
            block=THREADS,
            inputs={
                "x": words(31, THREADS).astype(np.uint32),
                "few": below(32, THREADS, 4).astype(np.uint32),
            },
            outputs={"out": ((len(labels), THREADS), np.uint32)},
            labels={"out": tuple(labels)},
        )
    ]
