"""The tile of a CTA, and which tiles wgmma and the swizzles of shared memory can take."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hopsim.errors import LaunchError
from hopsim.kernels.gemm.problem import ElementType

ATOM_M = 64
"""Rows of one wgmma. Source: PTX ISA 8.7 "wgmma.mma_async"."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Elements of C that a CTA computes at a time (`m` x `n`), and of K in a stage (`k`)."""

    m: int
    n: int
    k: int

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"


def nearest_multiple(number: int, step: int, most: int) -> int:
    """Return the positive multiple of a step that is nearest to a number, no more than a limit.

    >>> nearest_multiple(95, 64, 256), nearest_multiple(0, 64, 256), nearest_multiple(999, 64, 256)
    (64, 64, 256)
    """
    return min(max(round(number / step), 1) * step, most // step * step)


def check_tile(tile: Tile, dtype: ElementType, warpgroups: int, takes_turns: bool) -> None:
    """Refuse a tile that wgmma or the swizzles of its operands cannot take.

    Args:
        dtype: element type of A and B.
        warpgroups: those that compute; they split the rows.
        takes_turns: each of them has a tile of its own instead.
    Raises: LaunchError.
    """
    if warpgroups not in (1, 2):
        raise LaunchError(
            f"warpgroups must be 1 or 2, got {warpgroups}", where="gemm", hint="1 or 2 warpgroups"
        )
    rows = ATOM_M if takes_turns else ATOM_M * warpgroups
    if tile.m < 1 or tile.m % rows or tile.m > 256:
        raise LaunchError(
            f"tile m must be a multiple of {rows} (64 rows a wgmma, {warpgroups} "
            f"warpgroup(s)) up to 256, got {tile.m}",
            where="gemm",
            hint=f"tile {replace(tile, m=nearest_multiple(tile.m, rows, 256))}",
        )
    columns = 16 if dtype.sum_ptx == "s32" else 8
    if not columns <= tile.n <= 256 or tile.n % columns:
        raise LaunchError(
            f"tile n must be a multiple of {columns} from {columns} to 256, got {tile.n}",
            where="gemm",
            hint=f"tile {replace(tile, n=nearest_multiple(tile.n, columns, 256))}",
            source='PTX ISA 8.7, "wgmma.mma_async"',
        )
    row_bytes = tile.k * dtype.size
    if row_bytes not in (32, 64) and (row_bytes < 1 or row_bytes % 128):
        unit = 128 // dtype.size
        raise LaunchError(
            f"tile k of {tile.k} {dtype.name} is {row_bytes} bytes, expected 32, 64 or a "
            "multiple of 128 (a swizzle width)",
            where="gemm",
            hint=f"k = {unit // 4}, {unit // 2}, {unit} or {2 * unit}",
        )
