"""Which tile of C a cluster computes: the order.

Work is counted in cluster tiles ("units"): `cluster` CTAs compute `cluster` neighbouring tiles.
Units are walked in groups: `group` neighbours along one mode of C, and inside a group one after the
other along the other mode, so that CTAs running at the same time share rows of A and columns of B in L2.

| order | groups along | in a group |
|---|---|---|
| row | M | 1 tile |
| column | N | 1 tile |
| grouped | M | `group_m` units (Triton's order) |
| blocks-m, blocks-n | M, N | 16 tiles (DeepGEMM's order: along the mode whose operand is not multicast) |

>>> [unit_of(i, 3, 2, 2) for i in range(6)]
[(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
>>> [unit_of(i, 2, 3, 2, "n") for i in range(6)]
[(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (1, 2)]
"""

from __future__ import annotations

from typing import Final, Literal

Mode = Literal["m", "n"]

_BLOCKS = 16
"""Source: deepseek-ai/DeepGEMM scheduler, blocks of one group: 8 or 16."""

ORDERS: Final[dict[str, tuple[Mode, int]]] = {
    "row": ("m", 1),
    "column": ("n", 1),
    "grouped": ("m", 0),
    "blocks-m": ("m", _BLOCKS),
    "blocks-n": ("n", _BLOCKS),
}
"""Groups' mode and tiles; 0 stands for `group_m` units."""


def unit_of(
    index: int, units_m: int, units_n: int, group: int, along: Mode = "m"
) -> tuple[int, int]:
    """Return (along M, along N) of the cluster tile that is walked as number `index`."""
    if along == "n":
        unit_n, unit_m = unit_of(index, units_n, units_m, group)
        return unit_m, unit_n
    number, within = divmod(index, group * units_n)
    first = number * group
    rows = min(units_m - first, group)
    along_n, along_m = divmod(within, rows)
    return first + along_m, along_n


def walk_order(order: str, group_m: int, cluster: tuple[int, int]) -> tuple[Mode, int]:
    """Return along which mode the groups of an order lie, and how many units each has.

    Args:
        cluster: tiles of a unit along M and along N.
    """
    along, tiles = ORDERS[order]
    if not tiles:
        return along, group_m
    return along, max(1, tiles // cluster[along == "n"])
