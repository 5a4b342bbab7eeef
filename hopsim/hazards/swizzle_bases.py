"""Tiles of a swizzled tensor map that do not begin at a multiple of the period of the swizzle (HS603).

The swizzle permutes bits of shared addresses, not of offsets from the base. So `wgmma`, which does the same, reads such a
tile rightly, as CUTLASS has it; threads whose index goes by the offset from the base do not.

Source: PTX ISA 8.7, "Swizzling Modes"; CUDA Programming Guide, "TMA Swizzle".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hopsim.events import Access, FlightEvent
from hopsim.hazards.findings import Finding, Findings
from hopsim.hazards.records import Flight
from hopsim.hazards.rules import RULES


@dataclass(slots=True, eq=False)
class _Tile:
    """A tile that a load leaves off the period; `note` is what is told of it as long as no thread reads it."""

    start: int
    stop: int
    note: Finding


class SwizzleBases:
    """Tiles off the period of their swizzle, by the CTA that holds them."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._tiles: dict[int, list[_Tile]] = {}

    def issued(self, event: FlightEvent, flight: Flight) -> None:
        """A tensor copy was issued: of a store threads have written the tile, of a load who reads it is to be seen."""
        period = event.detail[1]
        for touch in event.touches:
            if touch.space != "shared":
                continue
            is_load = touch.kind == "w"
            if is_load:
                self._forget(touch.owner, touch.start, touch.stop)
            if touch.start % period == 0:
                continue
            finding = self._finding(event, flight, touch.start, touch.stop, period)
            if is_load:
                finding = replace(finding, level="note")
                tiles = self._tiles.setdefault(touch.owner, [])
                tiles.append(_Tile(touch.start, touch.stop, finding))
            self._findings.add(finding)

    def access(self, event: Access) -> None:
        """Threads that read such a tile make a hazard of it; what they write is no part of it any more."""
        tiles = self._tiles.get(event.owner)
        if not tiles or event.space != "shared":
            return
        first, last = _bounds(event.addresses)
        start, stop = first, last + event.count_bytes
        if event.kind == "w":
            self._forget(event.owner, start, stop)
            return
        for tile in tiles:
            if tile.start < stop and start < tile.stop:
                self._findings.add(replace(tile.note, level="hazard"))
                tiles.remove(tile)
                return

    def _forget(self, owner: int, start: int, stop: int) -> None:
        tiles = self._tiles.get(owner)
        if tiles:
            self._tiles[owner] = [
                tile for tile in tiles if tile.stop <= start or stop <= tile.start
            ]

    def _finding(
        self, event: FlightEvent, flight: Flight, start: int, stop: int, period: int
    ) -> Finding:
        agent, _, mask = flight.parts[0]
        side = self._findings.thread_side(
            agent, mask, event.line, "tile", start=start, stop=stop, actor=event.kind, proxy="async"
        )
        return Finding(
            "HS603", "hazard", RULES["HS603"].sentence, None, side,
            f"a base aligned to {period} bytes, the period of the swizzle; it is {start:#x}",
            f"align the tile to {period} bytes",
        )  # fmt: skip


def _bounds(addresses: Any) -> tuple[int, int]:
    if isinstance(addresses, np.ndarray):
        return int(addresses.min()), int(addresses.max())
    return addresses, addresses


__all__ = ["SwizzleBases"]
