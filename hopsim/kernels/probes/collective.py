"""Probes of what the lanes of a warp do together: shfl, vote, match, redux, elect, activemask.

Two warps run; the second one executes everything under a branch that only lanes 8 to 23 take.  In another probe the lanes
of one warp have parted, and meet from two places of the program.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hopsim.kernels.probes.bits import below, words
from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.ptx.text import Param, PtxEntry, Reg, address, module_text

WARP = 32
THREADS = 64
FIRST_LANES = 12
ALL = 0xFFFFFFFF
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
    return found


def _operands(k: PtxEntry, thread: Reg) -> tuple[Reg, Reg, Reg, Reg, Reg]:
    """Return where a thread's results go, and what it has: a word, a small number, 64 bits, whether it is odd."""
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
    return places["out"], x, few, wide, odd


def _entry() -> tuple[PtxEntry, Reg]:
    k = PtxEntry("collective", [Param("x", ".u64"), Param("few", ".u64"), Param("out", ".u64")], [])
    return k, k.let(".b32", "thread", "mov.u32", "%tid.x")


def _probe(k: PtxEntry, name: str, threads: int, labels: Sequence[str]) -> Probe:
    k.emit("ret")
    return Probe(
        f"collective.{name}",
        module_text(k, "shared_memory"),
        "collective",
        grid=1,
        block=threads,
        inputs={
            "x": words(31, threads).astype(np.uint32),
            "few": below(32, threads, 4).astype(np.uint32),
        },
        outputs={"out": ((len(labels), threads), np.uint32)},
        labels={"out": tuple(labels)},
    )


def _together() -> Probe:
    """All lanes of a warp, or those of a part of it, at one place."""
    k, thread = _entry()
    out, x, few, wide, odd = _operands(k, thread)
    second = k.let(".pred", "second", "setp.ge.u32", thread, 32)
    labels: list[str] = []
    other, end = k.label("$second_warp"), k.label("$end")
    k.emit("bra", other, guard=second)
    for mask, is_part in ((ALL, False), (PART, True)):
        if is_part:
            k.place(other)
            lane = k.let(".b32", "lane", "sub.u32", thread, 40)
            outside = k.let(".pred", "outside", "setp.ge.u32", lane, 16)
            k.emit("bra", end, guard=outside)
        found = _forms(k, mask, x, few, wide, odd, is_part)
        found.append(("activemask", k.let(".b32", "active", "activemask.b32")))
        for label, result in found:
            k.emit("st.global.b32", address(out, len(labels) * THREADS * 4), result)
            labels.append(f"{label} mask {mask:#010x}")
        k.emit("bra", end)
    k.place(end)
    return _probe(k, "all", THREADS, labels)


def _apart() -> Probe:
    """The first lanes of a warp at one place, the others at another; all are in the mask."""
    k, thread = _entry()
    out, x, few, wide, odd = _operands(k, thread)
    others = k.let(".pred", "others", "setp.ge.u32", thread, FIRST_LANES)
    place, end = k.label("$others"), k.label("$end")
    k.emit("bra", place, guard=others)
    labels: list[str] = []
    for start in (None, place):
        if start is not None:
            k.place(start)
        labels = []
        for label, result in _forms(k, ALL, x, few, wide, odd, is_part=False):
            k.emit("st.global.b32", address(out, len(labels) * WARP * 4), result)
            labels.append(f"{label} from two places")
        k.emit("bra", end)
    k.place(end)
    return _probe(k, "two_places", WARP, labels)


def probes() -> list[Probe]:
    """Return the probes of collective instructions."""
    return [_together(), _apart()]
