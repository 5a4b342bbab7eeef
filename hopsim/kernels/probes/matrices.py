"""Probes of ldmatrix, stmatrix and movmatrix: which lane holds what."""

from __future__ import annotations

import numpy as np

from hopsim.kernels.probes.bits import words
from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.ptx.text import Param, PtxEntry, address, module_text, vector

SYMBOL = "shared_memory"
TILE_BYTES = 4 * 8 * 16
"""Four matrices of eight rows of 16 bytes."""


def _probe(count: int, trans: str, is_store: bool) -> Probe:
    word = "stmatrix" if is_store else "ldmatrix"
    name = f"{word}_x{count}{trans.replace('.', '_')}"
    k = PtxEntry(name, [Param("given", ".u64"), Param("out", ".u64")], [])
    lane = k.let(".b32", "lane", "mov.u32", "%tid.x")
    given = k.let(".b64", "given", "ld.param.u64", "[given]")
    out = k.let(".b64", "out", "ld.param.u64", "[out]")
    shared = k.let(".b32", "shared", "mov.u32", SYMBOL)
    k.emit("mad.wide.u32", given, lane, 16, given)
    k.emit("mad.wide.u32", out, lane, 16, out)
    mine = k.let(".b32", "mine", "mad.lo.u32", lane, 16, shared)
    # Rows are taken in an order that is not that of the lanes, so that addresses count.
    row = k.let(".b32", "row", "xor.b32", lane, 5)
    k.emit("mad.lo.u32", row, row, 16, shared)
    four = k.regs(".b32", "w", 4)
    k.emit("ld.global.v4.b32", vector(four), address(given))
    opcode = f"{word}.sync.aligned.m8n8.x{count}{trans}.shared.b16"
    if is_store:
        zero = [0, 0, 0, 0]
        k.emit("st.shared.v4.b32", address(mine), vector(zero))
        k.emit("bar.warp.sync", -1)
        k.emit(opcode, address(row), vector(four[:count]))
        k.emit("bar.warp.sync", -1)
        k.emit("ld.shared.v4.b32", vector(four), address(mine))
    else:
        k.emit("st.shared.v4.b32", address(mine), vector(four))
        k.emit("bar.warp.sync", -1)
        k.emit(opcode, vector(four[:count]), address(row))
    k.emit("st.global.v4.b32", address(out), vector(four))
    k.emit("ret")
    return _made(name, k)


def _made(name: str, k: PtxEntry) -> Probe:
    return Probe(
        f"matrices.{name}",
        module_text(k, SYMBOL),
        name,
        grid=1,
        block=32,
        inputs={"given": words(41, TILE_BYTES // 8).view(np.uint32)},
        outputs={"out": ((32, 4), np.uint32)},
        shared_bytes=TILE_BYTES,
    )


def _movmatrix() -> Probe:
    k = PtxEntry("movmatrix", [Param("given", ".u64"), Param("out", ".u64")], [])
    lane = k.let(".b32", "lane", "mov.u32", "%tid.x")
    given = k.let(".b64", "given", "ld.param.u64", "[given]")
    out = k.let(".b64", "out", "ld.param.u64", "[out]")
    k.emit("mad.wide.u32", given, lane, 16, given)
    k.emit("mad.wide.u32", out, lane, 16, out)
    for index in range(4):
        x = k.let(".b32", "x", "ld.global.b32", address(given, 4 * index))
        y = k.let(".b32", "y", "movmatrix.sync.aligned.m8n8.trans.b16", x)
        k.emit("st.global.b32", address(out, 4 * index), y)
    k.emit("ret")
    return _made("movmatrix", k)


def probes() -> list[Probe]:
    """Return the probes of matrix moves."""
    made = [
        _probe(count, trans, is_store)
        for is_store in (False, True)
        for count in (1, 2, 4)
        for trans in ("", ".trans")
    ]
    return [*made, _movmatrix()]
