"""Order and shape of the tracks of a timeline: who stands above whom, and what needs a row of its own."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar

Track = tuple[str, str]

# Top to bottom in a process; what is not named here comes last.
_RANKS: Final = ("warp", "tma", "copies", "tensor", "mbarrier")
_NUMBER: Final = re.compile(r"(0x[0-9a-f]+|\d+)")


_WARPS: Final = re.compile(r"(cta \d+) warps? (\d+)(?:-(\d+))?")
WARPGROUP_WARPS: Final = 4


def home(thread: str) -> tuple[str, str]:
    """Return the thread that shows a thread's spans, and which warps they are if not the whole warpgroup.

    >>> home("cta 3 warps 4-7"), home("cta 3 warp 5"), home("tma")
    (('cta 3 warpgroup 1', ''), ('cta 3 warpgroup 1', '5'), ('tma', ''))
    """
    found = _WARPS.fullmatch(thread)
    if found is None:
        return thread, ""
    first, last = int(found[2]), int(found[3] or found[2])
    group = first // WARPGROUP_WARPS
    if last // WARPGROUP_WARPS != group:
        return thread, ""
    some = found[0].split()[-1] if last - first + 1 < WARPGROUP_WARPS else ""
    return f"{found[1]} warpgroup {group}", some


class _Interval(Protocol):
    @property
    def start(self) -> float: ...
    @property
    def stop(self) -> float: ...


T = TypeVar("T", bound=_Interval)
Key = tuple[int, tuple[tuple[int, str], ...]]


def _natural(text: str) -> tuple[tuple[int, str], ...]:
    """Return a key that puts `sm 9` before `sm 10`."""
    parts = _NUMBER.split(text)
    return tuple((int(part, 0), "") if k % 2 else (0, part) for k, part in enumerate(parts))


def process_key(process: str) -> Key:
    """Return the order of processes: by name and number."""
    return (0, _natural(process))


def thread_key(thread: str) -> Key:
    """Return the order of threads: warps, copies, products, barriers."""
    rank = next(
        (k for k, word in enumerate(_RANKS) if re.search(rf"\b{word}", thread)), len(_RANKS)
    )
    return (rank, _natural(thread))


def lanes(spans: Iterable[T]) -> list[Sequence[T]]:
    """Spread spans over as few rows as possible so that no two of a row overlap.

    Args:
        spans: in order of their start.
    """
    rows: list[list[T]] = []
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    for span in spans:
        while busy and busy[0][0] <= span.start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            row = heapq.heappop(free)
        else:
            row = len(rows)
            rows.append([])
        rows[row].append(span)
        heapq.heappush(busy, (span.stop, row))
    return list(rows)
