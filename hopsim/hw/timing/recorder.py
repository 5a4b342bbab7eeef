"""What a timeline wants to hear: intervals on named tracks, and arrows between them.

`hopsim.trace` turns them into a Perfetto file. With no recorder attached the schedule does not
build any of this.

Tracks are `(process, thread)` names: `("sm 3", "cta 17 warps 4-7")`, `("sm 3", "tma")`, `("sm 3",
"tensor core")`, `("sm 3", "cta 17 mbarrier 0x400")`.
"""

from __future__ import annotations

from typing import Protocol

Track = tuple[str, str]


class Recorder(Protocol):
    """A listener for intervals; times in cycles from the start of the launch."""

    def span(self, track: Track, name: str, start: float, stop: float, **args: object) -> None:
        """Something was busy, or waited, in `[start, stop)`."""
        ...

    def flow(
        self,
        name: str,
        source: Track,
        start: float,
        target: Track,
        stop: float,
        op: int | None = None,
    ) -> None:
        """What happened on `source` at `start` made something happen on `target` at `stop`.

        Args:
            op: of the span on `source` that did it, where it has one: copies may end at the same time.
        """
        ...
