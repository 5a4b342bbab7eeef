"""cp.async.bulk.tensor, cp.reduce.async.bulk.tensor, prefetches of boxes and of tensor maps.

A tiled copy moves a box of a tensor, an im2col copy a column of pixels.  Neither copies anything when it executes: the
operation lands later, when the schedule says.
"""

from __future__ import annotations

from typing import Any, Final

from hopsim.isa.context import Context
from hopsim.isa.forms.form import shared_form
from hopsim.isa.ops.async_copy import CLUSTER, HINT, REDUCE, TX
from hopsim.isa.values import Value

DIM: Final = ("1d", "2d", "3d", "4d", "5d")
PIXEL_DIM: Final = ("3d", "4d", "5d")
"""An im2col map has channels, one to three spatial dimensions, and images."""
STORED: Final = ("tile", "im2col_no_offs")
TENSOR = 'PTX ISA 8.7, "cp.async.bulk.tensor"'


def _coordinates(slots: dict[str, str]) -> dict[str, int]:
    return {"c": int(slots["dim"][0])}


def _pixels(slots: dict[str, str]) -> dict[str, int]:
    """Return how many coordinates the first pixel has, and how many offsets."""
    rank = int(slots["dim"][0])
    return {"c": rank, "o": max(1, rank - 2)}


def _pixel_problem(slots: dict[str, str]) -> str:
    mode = slots.get("mode", "im2col")
    if mode.startswith("im2col") and slots["dim"] not in PIXEL_DIM:
        return f".{mode} takes .3d, .4d or .5d, not .{slots['dim']}"
    return ""


@shared_form(
    "cp.async.bulk.tensor.{dim}.{dst}.global{.mode}.{tx}{.hint} [b], [a, {c}], [m], policy:u64?", dim=DIM, counts=_coordinates, dst=CLUSTER,
    mode=("tile",), tx=TX, hint=HINT, unit="tma", effects=("reads map box async", "writes [b] async", "completes_tx [m]"),
    source=TENSOR,
)  # fmt: skip
def tensor_load(dim: str, dst: str, mode: str, tx: str, hint: str) -> Any:
    """Copies a box of a tensor into shared memory and counts its bytes on an mbarrier."""

    def run(
        ctx: Context, b: Value, a: Value, coordinates: Any, m: Value, policy: Value | None = None
    ) -> None:
        ctx.tma_load(b, a, coordinates, None, m, None, dst)

    return run


@shared_form(
    "cp.async.bulk.tensor.{dim}.{dst}.global{.mode}.{tx}.multicast::cluster{.hint} [b], [a, {c}], [m], k:u16, "
    "policy:u64?",
    dim=DIM, counts=_coordinates, dst=("shared::cluster",), mode=("tile",), tx=TX, hint=HINT, unit="tma",
    effects=("reads map box async", "writes [b] of each CTA async", "completes_tx [m] of each CTA"), source=TENSOR,
)  # fmt: skip
def tensor_load_multicast(dim: str, dst: str, mode: str, tx: str, hint: str) -> Any:
    """The same box into the shared memory of every CTA of a mask, each with its own mbarrier."""

    def run(
        ctx: Context,
        b: Value,
        a: Value,
        coordinates: Any,
        m: Value,
        k: Value,
        policy: Value | None = None,
    ) -> None:
        ctx.tma_load(b, a, coordinates, None, m, k, dst)

    return run


@shared_form(
    "cp.async.bulk.tensor.{dim}.{dst}.global.im2col.{tx}{.hint} [b], [a, {c}], [m], {o}:b16, policy:u64?", dim=DIM,
    counts=_pixels, check=_pixel_problem, dst=CLUSTER, tx=TX, hint=HINT, unit="tma",
    effects=("reads map column async", "writes [b] async", "completes_tx [m]"), source=TENSOR,
)  # fmt: skip
def im2col_load(dim: str, dst: str, tx: str, hint: str) -> Any:
    """Copies a column of pixels, each moved by the offsets, into shared memory and counts its bytes on an mbarrier."""

    def run(
        ctx: Context,
        b: Value,
        a: Value,
        coordinates: Any,
        m: Value,
        offsets: Any,
        policy: Value | None = None,
    ) -> None:
        ctx.tma_load(b, a, coordinates, offsets, m, None, dst)

    return run


@shared_form(
    "cp.async.bulk.tensor.{dim}.{dst}.global.im2col.{tx}.multicast::cluster{.hint} [b], [a, {c}], [m], {o}:b16, k:u16, "
    "policy:u64?",
    dim=DIM, counts=_pixels, check=_pixel_problem, dst=("shared::cluster",), tx=TX, hint=HINT, unit="tma",
    effects=("reads map column async", "writes [b] of each CTA async", "completes_tx [m] of each CTA"), source=TENSOR,
)  # fmt: skip
def im2col_load_multicast(dim: str, dst: str, tx: str, hint: str) -> Any:
    """The same column into the shared memory of every CTA of a mask, each with its own mbarrier."""

    def run(
        ctx: Context,
        b: Value,
        a: Value,
        coordinates: Any,
        m: Value,
        offsets: Any,
        k: Value,
        policy: Value | None = None,
    ) -> None:
        ctx.tma_load(b, a, coordinates, offsets, m, k, dst)

    return run


@shared_form(
    "cp.async.bulk.tensor.{dim}.global.shared::cta{.mode}.bulk_group{.hint} [a, {c}], [b], policy:u64?", dim=DIM, counts=_coordinates,
    mode=STORED, check=_pixel_problem, hint=HINT, unit="tma",
    effects=("reads [b] async", "writes map box async", "bulk group"), source=TENSOR,
)  # fmt: skip
def tensor_store(dim: str, mode: str, hint: str) -> Any:
    """Copies a box, or a column of pixels, from shared memory into a tensor."""

    def run(
        ctx: Context, a: Value, coordinates: Any, b: Value, policy: Value | None = None
    ) -> None:
        ctx.tma_store(b, a, coordinates, mode == "im2col_no_offs", "")

    return run


@shared_form(
    "cp.reduce.async.bulk.tensor.{dim}.global.shared::cta.{op}{.mode}.bulk_group{.hint} [a, {c}], [b], policy:u64?",
    dim=DIM, counts=_coordinates, op=REDUCE, mode=STORED, check=_pixel_problem, hint=HINT, unit="tma",
    effects=("reads [b] async", "reads and writes map box async", "bulk group"),
    source='PTX ISA 8.7, "cp.reduce.async.bulk.tensor"',
)  # fmt: skip
def tensor_reduce(dim: str, op: str, mode: str, hint: str) -> Any:
    """Reduces a box, or a column of pixels, from shared memory into a tensor; the type is the tensor's."""

    def run(
        ctx: Context, a: Value, coordinates: Any, b: Value, policy: Value | None = None
    ) -> None:
        ctx.tma_store(b, a, coordinates, mode == "im2col_no_offs", op)

    return run


@shared_form("cp.async.bulk.prefetch.tensor.{dim}.L2.global{.mode}{.hint} [a, {c}], policy:u64?", dim=DIM, counts=_coordinates,
             mode=("tile",), hint=HINT, unit="tma", source='PTX ISA 8.7, "cp.async.bulk.prefetch.tensor"')  # fmt: skip
def tensor_prefetch(dim: str, mode: str, hint: str) -> Any:
    """Brings a box into L2."""

    def run(ctx: Context, a: Value, coordinates: Any, policy: Value | None = None) -> None:
        ctx.tma_prefetch(a, coordinates, None)

    return run


@shared_form("cp.async.bulk.prefetch.tensor.{dim}.L2.global.im2col{.hint} [a, {c}], {o}:b16, policy:u64?", dim=DIM,
             counts=_pixels, check=_pixel_problem, hint=HINT, unit="tma", source='PTX ISA 8.7, "cp.async.bulk.prefetch.tensor"')  # fmt: skip
def im2col_prefetch(dim: str, hint: str) -> Any:
    """Brings a column of pixels into L2."""

    def run(
        ctx: Context, a: Value, coordinates: Any, offsets: Any, policy: Value | None = None
    ) -> None:
        ctx.tma_prefetch(a, coordinates, offsets)

    return run


@shared_form("prefetch{.space}.tensormap [a]", space=("param", "const"), quiet=True, unit="tma_sync",
             source='PTX ISA 8.7, "prefetch.tensormap"')  # fmt: skip
def prefetch_tensormap(space: str) -> Any:
    """Brings a tensor map closer."""

    def run(ctx: Context, a: Value) -> None:
        ctx.prefetch_map(a)

    return run
