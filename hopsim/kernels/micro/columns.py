"""TMA loads of pixels: columns of an im2col map, and tiled boxes of the same bytes.

One thread of each CTA walks over an image of its own, 16 x 16 pixels, which a walk before brought into L2: column after
column from the top, and again.  Offsets of 1 keep a filter of 3 x 3 with a padding of 1 inside the image; without them its
first row and column lie outside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, mean_of_rows
from hopsim.kernels.micro.streams import SLOTS_BYTES
from hopsim.kernels.ptx.text import Param, address, vector
from hopsim.launch.arrays import TensorMap

SIDE: Final = 16
"""Pixels along W and H."""
LOADS: Final = 64
"""Of one walk."""
LINE_SIDE: Final = SIDE * SIDE


@dataclass(frozen=True, slots=True)
class Walk:
    """What each CTA loads.

    Args:
        pixels: of a load, a multiple of 16 below 256.
        channels: of 16 bits, all that the tensor has.
        ctas: of the grid.
        depth: loads in flight.
        kind: `im2col`, or `tile` for boxes of so many whole rows of pixels.
        offset: of an im2col load, along each spatial dimension.
        rank: of the map: 4 for W and H, 3 for one line of pixels, 5 with a D of 1.
        step: element stride along W.
    """

    pixels: int
    channels: int
    ctas: int
    depth: int
    kind: str = "im2col"
    offset: int = 1
    rank: int = 4
    step: int = 1

    @property
    def name(self) -> str:
        """A name for a benchmark."""
        more = f"_r{self.rank}" if self.rank != 4 else ""
        more += f"_off{self.offset}" if self.offset != 1 else ""
        more += f"_step{self.step}" if self.step != 1 else ""
        return (
            f"columns_{self.kind}_{self.ctas}x{self.pixels}px_{self.channels}c_d{self.depth}{more}"
        )

    @property
    def load_bytes(self) -> int:
        """Bytes of a load."""
        return 2 * self.pixels * self.channels

    @property
    def advance(self) -> int:
        """By which the coordinate that walks grows from load to load."""
        return self.pixels * self.step // (1 if self.rank == 3 else SIDE)

    @property
    def swizzle(self) -> str:
        """Of the map: as wide as a pixel."""
        return f"{2 * self.channels}B" if self.channels < 64 else "128B"


def _arguments(walk: Walk) -> Callable[[Any], list[Any]]:
    side = (LINE_SIDE,) if walk.rank == 3 else (SIDE, SIDE)
    depth = (1,) if walk.rank == 5 else ()
    shape = (walk.ctas, *depth, *side, walk.channels)
    spatial = walk.rank - 2
    steps = (1, walk.step, *(1,) * (walk.rank - 2))

    def arguments(gpu: Any) -> list[Any]:
        array = gpu.array(np.zeros(shape, np.float16))
        if walk.kind == "tile":
            rows = walk.pixels // SIDE
            box = (walk.channels, SIDE, rows, 1)
            return [TensorMap(array, box, walk.swizzle)]
        padding = (-1,) * (spatial if walk.rank < 5 else 2)
        lower = (*padding, 0) if walk.rank == 5 else padding
        return [
            TensorMap(
                array, (walk.channels, walk.pixels), walk.swizzle, lower_corner=lower, upper_corner=lower,
                element_strides=steps,
            )
        ]  # fmt: skip

    return arguments


def walk(one: Walk) -> Benchmark:
    """Return the benchmark: cycles of a walk and its bytes."""
    assert one.depth * one.load_bytes <= SLOTS_BYTES, one
    assert LOADS % one.depth == 0, one
    c = Clocked(one.name, [Param("map", ".b8", 128)], [".reqntid 32"])
    k = c.k
    c.own_row(1)
    place = c.address_of("map", "map")
    k.emit("prefetch.tensormap", address(place))
    image = k.let(".b32", "image", "mov.u32", "%ctaid.x")
    barriers = [address(c.shared, SLOTS_BYTES + 8 * slot) for slot in range(one.depth)]
    c.init_barriers(barriers)
    at, left = k.reg(".b32", "at"), k.reg(".b32", "left")
    ends, more = k.reg(".pred", "ends"), k.reg(".pred", "more")
    parity = k.let(".b32", "parity", "mov.u32", 0)
    offset = k.let(".b16", "offset", "mov.u16", one.offset)
    still = k.let(".b16", "still", "mov.u16", 0)
    is_tile = one.kind == "tile"
    first = 0 if is_tile else -1
    last = (LINE_SIDE if one.rank == 3 else SIDE) + first - one.advance
    coordinates = {
        3: (0, at, image),
        4: (0, first, at, image),
        5: (0, first, at, 0, image),
    }[one.rank]
    offsets = {3: (offset,), 4: (offset, offset), 5: (offset, offset, still)}[one.rank]

    def issue(slot: int) -> None:
        k.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barriers[slot], one.load_bytes)
        mode = "tile" if is_tile else "im2col"
        k.emit(
            f"cp.async.bulk.tensor.{one.rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes",
            address(c.shared, slot * one.load_bytes), f"[{place}, {vector(coordinates)}]", barriers[slot],
            *(() if is_tile else (vector(offsets),)),
        )  # fmt: skip
        k.emit("setp.ge.s32", ends, at, last)
        k.emit("add.s32", at, at, one.advance)
        k.emit("selp.b32", at, first, at, ends)

    def once() -> None:
        k.emit("mov.b32", at, first)
        c.walk_ring(barriers, parity, LOADS // one.depth, issue, left, more)

    done = c.label_and_leave_but_first()
    once()
    c.measure_one("walk", once)
    k.place(done)
    kind = "tiled boxes" if is_tile else "columns"
    return c.benchmark(
        f"{LOADS} {kind} of {one.pixels} pixels of {one.channels} channels, {one.depth} in flight, {one.ctas} SMs",
        grid=one.ctas, block=32, rows=one.ctas, summary=mean_of_rows, shared_bytes=SLOTS_BYTES + 64,
        arguments=_arguments(one), amounts={"walk": float(LOADS * one.load_bytes * one.ctas)},
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    found = [
        Walk(pixels, 64, ctas, depth, kind)
        for kind in ("tile", "im2col")
        for ctas in (1, SMS)
        for pixels in (16, 64, 128)
        for depth in (1, 4)
    ]
    found += [Walk(64, 64, ctas, 4, offset=0) for ctas in (1, SMS)]
    found += [Walk(64, 32, 1, depth, kind) for kind in ("tile", "im2col") for depth in (1, 4)]
    found += [Walk(64, 16, 1, depth) for depth in (1, 4)]
    found += [Walk(64, 64, 1, depth, rank=rank) for rank in (3, 5) for depth in (1, 4)]
    found += [Walk(64, 64, 1, depth, step=2) for depth in (1, 4)]
    return [walk(one) for one in found]
