"""What a load, an addition or a box touches in global memory: lines, sectors of them, and what comes with them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from hopsim.hw.timing.line_sectors import BITS, Lines, Masks

# (first line, count, last line, sectors of the first and of the last line)
JoinKey = tuple[int, int, int, int]


class Splits(NamedTuple):
    """What the rows of a box cost because they do not begin at lines.

    Args:
        more: lines that it has more.
        parts: of sectors.  uneven: lines with such parts, which nobody shares.
        part_sectors: sectors that a slice gives in the time of looking up a part.
    """

    more: int = 0
    parts: int = 0
    uneven: int = 0
    part_sectors: float = 0.0


WHOLE_ROWS: Final = Splits()


@dataclass(slots=True)
class Footprint:
    """Lines and sectors that are wanted of global memory.

    Args:
        lines: their numbers (`L2Tags.number`).
        sectors: how many of them are wanted.
        masks: of each line, a bit for each sector that is wanted; None: whole lines.
        beside: lines that come from memory with those that are missed, into their homes, and the rest of these too.
        splits: what rows that do not begin at lines cost.
        outside_bytes: of a box that lie outside the tensor, in a line that `place` tells from others.
        key: what two requests for the same sectors have in common; None without lines.

    >>> import numpy as np
    >>> Footprint(np.arange(3, 7), 16).key, Footprint(np.arange(0), 0).key
    ((3, 4, 6, 0), None)
    """

    lines: Lines
    sectors: int
    masks: Masks | None = None
    beside: Lines | None = None
    splits: Splits = WHOLE_ROWS
    outside_bytes: int = 0
    place: Hashable = None
    key: JoinKey | None = field(init=False)

    def __post_init__(self) -> None:
        lines, masks = self.lines, self.masks
        count = len(lines)
        wanted = 0 if masks is None or not count else int(masks[0]) << 8 | int(masks[-1])
        self.key = (int(lines[0]), count, int(lines[-1]), wanted) if count else None

    def last(self, lines: int) -> Footprint:
        """Return what is wanted of so many of the last lines, without what comes beside them."""
        count = len(self.lines)
        masks = None if self.masks is None else self.masks[count - lines :]
        sectors = self.sectors * lines // count if masks is None else int(BITS[masks].sum())
        parts = self.splits.parts * lines // count
        splits = Splits(parts=parts, part_sectors=self.splits.part_sectors)
        return Footprint(self.lines[count - lines :], sectors, masks, splits=splits)


__all__ = ["WHOLE_ROWS", "Footprint", "JoinKey", "Splits"]
