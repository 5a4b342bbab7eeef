"""Atomics on shared memory of which ptxas makes loops of compare and swap, and those that it does not, for comparison.

The loop loads the word, computes, and swaps if the word is still the same; of lanes and warps that meet at a word one
succeeds each time.
Source: machine code of ptxas 13.0 (LDS, FADD, ATOMS.CAST.SPIN; in the window of a cluster LD and ATOM.CAST.SPIN).
"""

from __future__ import annotations

from typing import Final

from hopsim.kernels.micro.clocked import Benchmark, Clocked
from hopsim.kernels.ptx.text import Reg, address

LENGTHS: Final = (2, 6)
SHARED_BYTES: Final = 32 * 8

KINDS: Final = {
    "f32": ("add.f32", ".b32", "cvt.rn.f32.u32"),
    "f64": ("add.f64", ".b64", "cvt.rn.f64.u32"),
    "f16x2": ("add.noftz.f16x2", ".b32", "mov.b32"),
    "u64": ("add.u64", ".b64", "cvt.u64.u32"),
    "u32": ("add.u32", ".b32", "mov.b32"),
}
"""Operation, register, and how a register gets the value that is added: of a lane, since ones are counted otherwise."""

WORDS: Final = {
    "one lane": (True, 0), "lanes on one word": (False, 0), "lanes on 16 words": (False, 15),
    "lanes on 32 words": (False, 31),
}  # fmt: skip
"""Whether the first lane of a warp is alone, and which bits of a lane's number tell its word."""

TARGETS: Final = {
    "cta": "of the CTA",
    "own": "of the CTA, by the window of the cluster",
    "peer": "of the first CTA of two, by the second one",
    "all": "of the first CTA of four, by all",
}
"""Name: whose shared memory, and who adds."""


def swaps(kind: str, target: str, warps: int, operation: str = "red") -> Benchmark:
    """Additions of a whole CTA; a slope is cycles for one of each warp.

    Args:
        kind: of value.
        target: see `TARGETS`.
        warps: of the CTA.
        operation: `red`, or `atom`, whose result is waited for.
    """
    opcode, register, convert = KINDS[kind]
    size = 8 if register == ".b64" else 4
    ctas = {"all": 4, "peer": 2}.get(target, 1)
    # In the window of a cluster some CTAs add to the first one's memory.
    is_cluster = target != "cta"
    c = Clocked(f"swaps_{operation}_{kind}_{target}_w{warps}")
    c.own_row(len(LENGTHS) * len(WORDS))
    lane = c.k.let(".b32", "lane", "and.b32", c.thread, 31)
    value = c.k.let(register, "value", convert, lane)
    others = c.k.let(".pred", "others", "setp.ne.u32", lane, 0)
    rank = c.k.let(".b32", "rank", "mov.u32", "%cluster_ctarank")
    zeroed = c.k.let(".b32", "zeroed", "mad.lo.u32", lane, size, c.shared)
    is_first = c.k.let(".pred", "is_first_warp", "setp.lt.u32", c.thread, 32)
    zero = "0" if size == 4 else c.k.let(".b64", "none", "mov.b64", 0)
    c.k.emit(f"st.shared.b{8 * size}", address(zeroed), zero, guard=is_first)
    c.k.emit("bar.sync", 0)
    base, space = c.shared, "shared::cta"
    if is_cluster:
        base = c.k.let(".b32", "target", "mapa.shared::cluster.u32", c.shared, 0)
        space = "shared::cluster"
    stays = c.k.let(".pred", "stays", "setp.eq.u32", rank, 0) if target == "peer" else None
    for label, (is_alone, mask) in WORDS.items():
        place = base
        if mask:
            word = c.k.let(".b32", "word", "and.b32", lane, mask)
            place = c.k.let(".b32", "place", "mad.lo.u32", word, size, base)
        for length in LENGTHS:

            def run(length: int = length, place: Reg = place, is_alone: bool = is_alone) -> None:
                after = c.k.label("$after")
                if stays is not None:
                    c.k.emit("bra", after, guard=stays)
                if is_alone:
                    c.k.emit("bra", after, guard=others)
                for _ in range(length):
                    if operation == "red":
                        c.k.emit(f"red.{space}.{opcode}", address(place), value)
                    else:
                        c.k.emit(f"atom.{space}.{opcode}", value, address(place), value)
                c.k.place(after)

            if is_cluster:
                c.k.emit("barrier.cluster.arrive")
                c.k.emit("barrier.cluster.wait")
            c.measure(f"{label} x{length}", run, whole_cta=True)
    if is_cluster:
        c.k.emit("barrier.cluster.arrive")
        c.k.emit("barrier.cluster.wait")
    return c.benchmark(
        f"{operation} of {kind} on shared memory {TARGETS[target]}, {warps} warps", grid=ctas, cluster=ctas,
        block=32 * warps, rows=ctas, shared_bytes=SHARED_BYTES,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all benchmarks of this group."""
    return [
        *(swaps(kind, "cta", warps) for kind in KINDS for warps in (1, 8)),
        swaps("f32", "cta", 1, "atom"), swaps("f32", "cta", 32),
        *(swaps(kind, target, 1) for kind in ("f32", "u64", "u32") for target in ("own", "peer")),
        *(swaps("f32", target, 8) for target in ("own", "peer")),
        *(swaps(kind, "all", warps) for kind in ("f32", "u32") for warps in (1, 8)),
        swaps("f32", "peer", 1, "atom"), swaps("u32", "peer", 1, "atom"),
    ]  # fmt: skip
