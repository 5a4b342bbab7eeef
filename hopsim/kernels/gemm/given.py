"""What `build` is given, as far as words of the command line would be taken for numbers: told before anything is planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from hopsim.errors import LaunchError
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.gemm.tile import Tile
from hopsim.launch.given import whole_number, whole_numbers
from hopsim.layout.swizzle import Swizzle

WHERE: Final = "gemm"
# Of these, None leaves the choice to the schedule.
_NUMBERS: Final = {
    "warpgroups": 2, "group_m": 8, "store_buffers": 0, "splits": 2, "a_rows": 16, "resident_ctas": 132
}  # fmt: skip
_SWITCHES: Final = ("persistent", "a_in_registers")


def check_given(problem: object, tile: object, stages: object, options: Mapping[str, Any]) -> None:
    """Check the kinds of what `build` is given; what the numbers may be is for plans and schedules to say.

    Raises: LaunchError.
    """
    if not isinstance(problem, GemmProblem):
        raise _expected(
            "problem", "a GemmProblem", problem, "GemmProblem(4096, 4096, 4096), with M, N and K"
        )
    if not isinstance(tile, Tile):
        _extents("tile", tile, 3, "tile=(128, 128, 64), with m, n and k")
    else:
        _extents("tile", (tile.m, tile.n, tile.k), 3, "Tile(128, 128, 64), with m, n and k")
    whole_number(stages, "stages", WHERE, "stages=4")
    for name, example in _NUMBERS.items():
        if options[name] is not None:
            whole_number(options[name], name, WHERE, f"{name}={example}")
    for name in _SWITCHES:
        if not isinstance(options[name], bool | None):
            raise _expected(name, "True or False", options[name], f"{name}=True")
    _extents("cluster", options["cluster"], 2, "cluster=(2, 1), along M and N")
    if not isinstance(options["swizzle"], Swizzle | None):
        names = ", ".join(f"Swizzle.{one.name}" for one in Swizzle)
        raise _expected("swizzle", f"one of {names}", options["swizzle"], "swizzle=Swizzle.B128")


def _extents(name: str, value: object, count: int, hint: str) -> None:
    is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    numbers = whole_numbers(cast("object", value)) if is_list else None
    if numbers is None or len(numbers) != count:
        raise _expected(name, f"{count} whole numbers", cast("object", value), hint)


def _expected(name: str, wanted: str, got: object, hint: str) -> LaunchError:
    return LaunchError(f"{name}: expected {wanted}, got {got!r}", where=WHERE, hint=hint)
