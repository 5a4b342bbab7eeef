"""tensormap.replace and tensormap.cp_fenceproxy: tensor maps changed on the device."""

from __future__ import annotations

from typing import Any, Final

from hopsim.isa.context import Context
from hopsim.isa.forms.form import shared_form
from hopsim.isa.values import Value
from hopsim.layout.tensormap import MAP_BYTES

REPLACE: Final = 'PTX ISA 8.7, "tensormap.replace"'
SPACE: Final = ("global", "shared::cta")
AXIS: Final = {"n": range(5)}
NUMBERED: Final = {"elemtype": 13, "fill_mode": 2, "interleave_layout": 3, "swizzle_mode": 4}
"""Fields whose value is one of so many, from 0 on, and an immediate."""


def _field(field: str, space: str) -> Any:
    def run(ctx: Context, a: Value, v: Value) -> None:
        ctx.replace_map_field(space, a, field, 0, v)

    return run


def _field_of_axis(field: str, space: str) -> Any:
    def run(ctx: Context, a: Value, n: int, v: Value) -> None:
        ctx.replace_map_field(space, a, field, n, v)

    return run


def _declare_numbered(field: str, count: int) -> None:
    @shared_form(f"tensormap.replace.tile.{field}{{.space}}.b1024.b32 [a], #v:b32", limits={"v": range(count)},
                 space=SPACE, unit="tma_sync", effects=("writes [a]",), source=REPLACE)  # fmt: skip
    def replace_numbered(space: str) -> Any:
        """Changes a mode of a tensor map in memory, given by its number."""
        return _field(field, space)


for _name, _count in NUMBERED.items():
    _declare_numbered(_name, _count)


@shared_form("tensormap.replace.tile.rank{.space}.b1024.b32 [a], v:b32", space=SPACE, unit="tma_sync",
             effects=("writes [a]",), source=REPLACE)  # fmt: skip
def tensormap_replace_rank(space: str) -> Any:
    """Changes the rank of a tensor map in memory, which is one less than the number of axes."""
    return _field("rank", space)


@shared_form("tensormap.replace.tile.global_address{.space}.b1024.b64 [a], v:b64", space=SPACE, unit="tma_sync",
             effects=("writes [a]",), source=REPLACE)  # fmt: skip
def tensormap_replace_address(space: str) -> Any:
    """Changes where the tensor of a map in memory lies."""
    return _field("global_address", space)


@shared_form("tensormap.replace.tile.{field}{.space}.b1024.b32 [a], #n:b32, v:u32", limits=AXIS,
             field=("box_dim", "global_dim", "element_stride"), space=SPACE, unit="tma_sync", effects=("writes [a]",),
             source=REPLACE)  # fmt: skip
def tensormap_replace_axis(field: str, space: str) -> Any:
    """Changes what a tensor map in memory says of one axis, counted from the innermost."""
    return _field_of_axis(field, space)


@shared_form("tensormap.replace.tile.global_stride{.space}.b1024.b64 [a], #n:b32, v:b64", limits=AXIS, space=SPACE,
             unit="tma_sync", effects=("writes [a]",), source=REPLACE)  # fmt: skip
def tensormap_replace_stride(space: str) -> Any:
    """Changes the stride in bytes of one axis of a tensor map in memory."""
    return _field_of_axis("global_stride", space)


@shared_form(
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{scope}.sync.aligned [b], [a], #n:b32", limits={"n": (MAP_BYTES,)},
    scope=("cta", "cluster", "gpu", "sys"), unit="tma_sync", effects=("reads [a]", "writes [b]", "proxy fence"),
    source='PTX ISA 8.7, "tensormap.cp_fenceproxy"',
)  # fmt: skip
def tensormap_cp_fenceproxy(scope: str) -> Any:
    """Copies a tensor map from shared to global memory and publishes it."""

    def run(ctx: Context, b: Value, a: Value, n: Value) -> None:
        ctx.copy_map(b, a, scope)

    return run
