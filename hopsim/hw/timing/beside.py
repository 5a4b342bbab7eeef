"""Arithmetic beside working tensor cores, whose sums take a part of the ways to the registers.

Most pipes are slower then, and stand in each other's way; only fp32 instructions that follow each other hardly suffer, but
a warp alone cannot issue in every cycle.  The tensor cores lose in their turn.

Source: hopsim's recordings on an H100 (tests/silicon/micro.json, beside_wgmma_*, slowed_wgmma_*), and on an H200 of `ex2`
without .ftz (tests/silicon/h200/micro.json, beside_wgmma_*_softmax): what stands around it takes a slot each.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from hopsim.config.groups import Issue
from hopsim.hw.timing.machine_code import WIDE

SHORT: Final = "fp32"
"""The pipe that all lanes of a warp pass at once."""
MUFU: Final = "mufu"
FMA: Final = "fma"


class Beside:
    """What a straight run takes of the ways to the registers, instruction by instruction.

    Args:
        issue: intervals and gaps.
    """

    def __init__(self, issue: Issue) -> None:
        self._issue = issue
        self._intervals = issue.crowded_interval_cycles
        self._port = self._intervals["alu"]
        self._after_slow = False
        # Cycles of the way that instructions of slow pipes take, and how many they are; others; instructions by pipe.
        self._slow = self._slow_count = self._others = 0.0
        self._counts: defaultdict[str, float] = defaultdict(float)

    def takes(self, unit: str, issued: float, *, is_fma: bool, is_wide: bool) -> float:
        """Add machine instructions of a unit; return how much later the warp issues the next.

        Args:
            is_fma: a sum of products, of fp32.
            is_wide: the two halves of 64 bits.
        """
        issue = self._issue
        self._counts[FMA if is_fma and unit == SHORT else unit] += issued
        if unit == SHORT:
            gap = issue.crowded_after_cycles if self._after_slow else issue.crowded_gap_cycles
            self._after_slow = False
            return issued * gap
        if unit not in self._intervals:
            self._others += issued
            self._after_slow = False
            return issued * issue.crowded_gap_cycles
        self._after_slow = True
        way = self._intervals[WIDE] if unit == WIDE else self._port
        if is_wide:
            way = issue.crowded_half_cycles
        self._slow += issued * way
        self._slow_count += issued * (way / self._port if unit == WIDE else 1.0)
        return issued * (issue.crowded_mufu_cycles if unit == MUFU else way)

    def passes(self, issued: float) -> float:
        """Add machine instructions that are issued and do nothing, as products that only small operands need; as `takes`."""
        self._others += issued
        return issued * self._issue.crowded_gap_cycles

    @property
    def slots(self) -> float:
        """Issue slots of the run: ptxas mixes instructions of different pipes."""
        short = self._counts[SHORT] + self._counts[FMA]
        mixed = min(self._slow_count, short)
        alone = (short - mixed) * self._intervals[SHORT]
        return self._slow + mixed * self._issue.crowded_mixed_cycles + alone + self._others

    @property
    def lost(self) -> float:
        """What the tensor cores lose: to fp32 instructions that follow each other, and to wide products."""
        counts, lost = self._counts, self._issue.products_lost_cycles
        short = counts[SHORT] + counts[FMA]
        alone = max(0.0, 1.0 - self._slow_count / short) if short else 0.0
        return (
            alone * (counts[SHORT] * lost[SHORT] + counts[FMA] * lost[FMA])
            + counts[WIDE] * lost[WIDE]
        )


__all__ = ["SHORT", "Beside"]
