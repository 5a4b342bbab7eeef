"""A probe of one im2col copy: a column of pixels that is loaded, stored or reduced.

The tensor holds the numbers of its elements, so that what is loaded says where it came from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopsim.kernels.probes.probe import Arrays, load_module
from hopsim.kernels.ptx.text import Param, PtxEntry, Reg, address, module_text, vector
from hopsim.launch.arrays import TensorMap
from hopsim.launch.device import Device
from hopsim.layout.tensormap import row_major_strides

SHARED = "memory"
THREADS = 128
BARRIER_AT = 0
TILE_AT = 1024
MOST_SHARED_BYTES = 32 << 10
TRIES = 64
"""Waits for a column, each of up to a millisecond or so: one that counts other bytes ends all the same."""
OUTSIDE = 0xA5
"""Every byte of shared memory before a load."""


@dataclass(frozen=True)
class Column:
    """One im2col copy.

    Args:
        shape: of the tensor, outermost first: images, (D, (H,)) W, channels.
        channels, pixels: of the column.
        lower, upper: corners of the map, W first.
        start: coordinates of the first pixel: channel, W, (H, (D)), image.
        offsets: of a load, W first, as the instruction has them, in 16 bits.
        steps: element strides, channels first.
        dtype: of the map.
        swizzle, oob_fill: of the map.
        at: bytes from 1,024 in shared memory to the column.
        op: `load`, `store`, or the operation of a reduction.
        pad: elements between rows of channels.
    """

    shape: tuple[int, ...]
    channels: int
    pixels: int
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    start: tuple[int, ...]
    offsets: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    dtype: str = "uint16"
    swizzle: str = "none"
    oob_fill: str = "zeros"
    at: int = 0
    op: str = "load"
    pad: int = 0

    @property
    def rank(self) -> int:
        """Dimensions of the tensor."""
        return len(self.shape)

    @property
    def item(self) -> int:
        """Bytes of an element."""
        return int(STORED[self.dtype].itemsize)


STORED: Mapping[str, np.dtype[Any]] = {
    "uint8": np.dtype(np.uint8), "uint16": np.dtype(np.uint16), "float16": np.dtype(np.uint16),
    "bfloat16": np.dtype(np.uint16), "uint32": np.dtype(np.uint32), "float32": np.dtype(np.uint32),
    "tfloat32": np.dtype(np.uint32), "float64": np.dtype(np.uint64),
}  # fmt: skip
"""As what the elements of a map are kept here."""


def _entry(column: Column) -> PtxEntry:
    """Return the kernel of such a copy; what differs otherwise it is given."""
    spatial = column.rank - 2
    params = [
        Param("map", ".b8", 128), Param("out", ".u64"), *(Param(f"c{i}", ".s32") for i in range(column.rank)),
        *(Param(f"o{i}", ".u16") for i in range(spatial)), Param("at", ".u32"), Param("size", ".u32"),
        Param("bytes", ".u32"),
    ]  # fmt: skip
    k = PtxEntry("column", params, [f".reqntid {THREADS}"])
    smem = k.let(".b32", "smem", "mov.u32", SHARED)
    thread = k.let(".b32", "thread", "mov.u32", "%tid.x")
    size = k.let(".b32", "size", "ld.param.u32", "[size]")
    first = k.let(".pred", "first", "setp.eq.u32", thread, 0)
    _each_word(k, thread, size, lambda place: _fill(k, column, smem, place))
    barrier = address(smem, BARRIER_AT)
    k.emit("mbarrier.init.shared::cta.b64", barrier, 1, guard=first)
    k.emit("fence.proxy.async")
    k.emit("bar.sync", 0)
    at = k.let(".b32", "at", "ld.param.u32", "[at]")
    tile = address(k.let(".b32", "tile", "add.u32", smem, at))
    tensor_map = k.let(".b64", "map", "mov.u64", "map")
    tensor_map = k.let(".b64", "generic_map", "cvta.param.u64", tensor_map)
    coordinates = [k.let(".b32", f"c{i}", "ld.param.s32", f"[c{i}]") for i in range(column.rank)]
    offsets = [k.let(".b16", f"o{i}", "ld.param.u16", f"[o{i}]") for i in range(spatial)]
    box = f"[{tensor_map}, {vector(coordinates)}]"
    skip = k.label("$skip")
    k.emit("bra", skip, unless=first)
    dim = f"{column.rank}d"
    if column.op == "load":
        count = k.let(".b32", "bytes", "ld.param.u32", "[bytes]")
        k.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barrier, count)
        k.emit(
            f"cp.async.bulk.tensor.{dim}.shared::cluster.global.im2col.mbarrier::complete_tx::bytes",
            tile, box, barrier, vector(offsets),
        )  # fmt: skip
        _await(k, barrier)
    else:
        verb = "cp.async" if column.op == "store" else "cp.reduce.async"
        op = "" if column.op == "store" else f".{column.op}"
        k.emit(
            f"{verb}.bulk.tensor.{dim}.global.shared::cta{op}.im2col_no_offs.bulk_group", box, tile
        )
        k.emit("cp.async.bulk.commit_group")
        k.emit("cp.async.bulk.wait_group", 0)
    k.place(skip)
    k.emit("bar.sync", 0)
    if column.op == "load":
        out = k.let(".b64", "out", "ld.param.u64", "[out]")
        _each_word(k, thread, size, lambda place: _show(k, smem, out, place))
    k.emit("ret")
    return k


def _each_word(k: PtxEntry, thread: Reg, size: Reg, body: Callable[[Reg], None]) -> None:
    """Write a walk of all threads over the words of the tile's place."""
    place = k.let(".b32", "place", "shl.b32", thread, 2)
    again, done = k.label("$again"), k.label("$done")
    ends = k.reg(".pred", "ends")
    k.place(again)
    k.emit("setp.ge.u32", ends, place, size)
    k.emit("bra", done, guard=ends)
    body(place)
    k.emit("add.u32", place, place, 4 * THREADS)
    k.emit("bra", again)
    k.place(done)


def _fill(k: PtxEntry, column: Column, smem: Reg, place: Reg) -> None:
    to = k.let(".b32", "to", "add.u32", smem, place)
    if column.op == "load":
        k.emit(
            "st.shared.b32", address(to, TILE_AT), int.from_bytes(bytes([OUTSIDE]) * 4, "little")
        )
    else:  # numbers that differ, small enough that sums of halves are exact
        word = k.let(".b32", "word", "mul.lo.u32", place, 0x0101_0203)
        k.emit("st.shared.b32", address(to, TILE_AT), word)


def _show(k: PtxEntry, smem: Reg, out: Reg, place: Reg) -> None:
    source = k.let(".b32", "source", "add.u32", smem, place)
    word = k.let(".b32", "seen", "ld.shared.b32", address(source, TILE_AT))
    wide = k.let(".b64", "wide", "cvt.u64.u32", place)
    target = k.let(".b64", "target", "add.u64", out, wide)
    k.emit("st.global.b32", address(target), word)


def _await(k: PtxEntry, barrier: str) -> None:
    left = k.let(".b32", "left", "mov.u32", TRIES)
    done, more = k.reg(".pred", "landed"), k.reg(".pred", "more")
    loop, ready = k.label("$wait"), k.label("$ready")
    k.place(loop)
    k.emit("mbarrier.try_wait.parity.shared::cta.b64", done, barrier, 0)
    k.emit("bra", ready, guard=done)
    k.emit("sub.u32", left, left, 1)
    k.emit("setp.ne.u32", more, left, 0)
    k.emit("bra", loop, guard=more)
    k.emit("trap")
    k.place(ready)


@dataclass(frozen=True)
class ColumnProbe:
    """A probe of one column.

    Args:
        name: begins with `im2col.`.
        column: what is copied.
    """

    name: str
    column: Column
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    notes: frozenset[str] = field(default_factory=frozenset[str])

    @property
    def ptx(self) -> str:
        """The module."""
        return module_text(_entry(self.column), SHARED)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the program and of what it copies."""
        return hashlib.sha256(f"{self.ptx}{self.column}".encode()).hexdigest()

    def tensor(self) -> NDArray[Any]:
        """Return the tensor: each element its number, from 1 on; of types of 8 bits the low bits of it."""
        c = self.column
        padded = (*c.shape[:-1], c.shape[-1] + c.pad)
        numbers = np.arange(1, int(np.prod(padded)) + 1, dtype=np.int64)
        if c.dtype in ("float32", "tfloat32"):
            numbers = numbers * 0x0101_3579  # bits that rounding and not-a-numbers change
        return numbers.astype(STORED[c.dtype]).reshape(padded)

    def run(self, gpu: Device, **options: Any) -> Arrays:
        """Run it and return what is in shared memory after a load, in the tensor after a store."""
        c = self.column
        tensor = gpu.array(self.tensor())
        dims = tuple(reversed(c.shape))
        padded = (dims[0] + c.pad, *dims[1:])
        tensor_map = TensorMap(
            tensor, (c.channels, c.pixels), c.swizzle, dims=dims, strides=row_major_strides(padded, c.item),
            element_strides=c.steps or None, dtype=c.dtype, oob_fill=c.oob_fill, lower_corner=c.lower,
            upper_corner=c.upper,
        )  # fmt: skip
        geometry = tensor_map.spec.geometry
        size = -(-(c.at + geometry.shared_bytes + 16) // 16) * 16
        out = gpu.array(np.zeros(size, np.uint8))
        gpu.launch(
            load_module(self.ptx)["column"], 1, THREADS, 1,
            [
                tensor_map, out, *map(np.int32, c.start), *map(np.uint16, c.offsets or (0,) * (c.rank - 2)),
                np.uint32(TILE_AT + c.at), np.uint32(size), np.uint32(geometry.tx_bytes),
            ],
            TILE_AT + MOST_SHARED_BYTES,
            **options,
        )  # fmt: skip
        return {"shared": out.numpy()} if c.op == "load" else {"tensor": tensor.numpy()}
