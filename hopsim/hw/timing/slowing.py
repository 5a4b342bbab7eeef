"""Arithmetic that slows wgmma: its operands and results take ways to the registers that the sums of products need.

Source: hopsim's recordings on an H100 (tests/silicon/micro.json, slowed_wgmma_*): products take 1.5 times as long beside
fma of one warp a sub-partition, 2.6 times beside add, and wait for two warps that add in every cycle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

MOST_LOST: Final = 0.99
"""Of the time: products come through in the end."""


@dataclass(slots=True)
class Slowing:
    """A run of arithmetic: from when until when (SM cycles), and the share of that time which products lose."""

    start: float
    end: float
    share: float


class Slowed:
    """What slows the tensor cores of one SM."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        self._runs: list[Slowing] = []

    def __bool__(self) -> bool:
        return bool(self._runs)

    def add(self, start: float, end: float, lost: float, now: float) -> Slowing:
        """Let products lose some cycles between two times; what ended before `now` is forgotten."""
        self._runs = [one for one in self._runs if one.end > now]
        run = Slowing(start, end, lost / (end - start))
        self._runs.append(run)
        return run

    def after(self, start: float, cycles: float) -> float:
        """Return when products that begin at some time and take so many cycles alone are done."""
        now, left = start, cycles
        while self._runs:
            share, until = 0.0, math.inf
            for run in self._runs:
                if run.start > now:
                    until = min(until, run.start)
                elif run.end > now:
                    share += run.share
                    until = min(until, run.end)
            rate = 1.0 - min(share, MOST_LOST)
            if (until - now) * rate >= left:
                return now + left / rate
            left -= (until - now) * rate
            now = until
        return now + left


__all__ = ["Slowed", "Slowing"]
