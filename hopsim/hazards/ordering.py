"""Whether an earlier access is ordered before a later one, by happens-before and, across proxies, by a bridge.

First all at once (every part of the earlier one is known to everybody who makes the later one); where that fails,
thread by thread over the bytes that both touch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hopsim.hazards.clocks import (
    ANY,
    CLUSTER_SHARED,
    CTA_SHARED,
    GLOBAL,
    LANE,
    Agent,
    Clock,
    View,
    sees,
)
from hopsim.hazards.records import Eye, Ints, Part, Record, is_array

# What is missing between two accesses.
ORDER, BRIDGE, SCOPE = "order", "bridge", "scope"

Where: TypeAlias = Callable[[], tuple[int, int, Ints]]


@dataclass(slots=True)
class Gap:
    """Two conflicting accesses that nothing orders.

    Args:
        missing: `order` (no happens-before), `bridge` (only the proxies), `scope` (only the scopes are too narrow).
        first: (warp, lanes) of the earlier access that are concerned; None for an asynchronous operation.
        second: the same of the later one.
    """

    missing: str
    first: tuple[Agent, int] | None
    second: tuple[Agent, int]


def bridge_of(record: Record, other: Record) -> int:
    """Return the state space that a proxy fence between two accesses must cover."""
    if record.space == "global":
        return GLOBAL
    owner = record.owner
    return CTA_SHARED if record.cta.index == owner == other.cta.index else CLUSTER_SHARED


def find_gap(first: Record, second: Record, eyes: list[Eye], where: Where | None) -> Gap | None:
    """Return what is missing between two conflicting accesses, or None when they are ordered.

    Args:
        eyes: who makes the second access, and what they rely on now.
        where: gives (base, shift, granules) of the bytes that still remember the first one; None: all of them.
    """
    if first.tids is None:
        return _after_operation(first, second, eyes)
    if is_ordered(first, second, eyes):
        return None
    if second.tids is None:
        if first.flight is not None and first.done is not None and first.done.observers:
            # A copy of threads that an mbarrier told of is missed no more, only not bridged, or told in too narrow a scope.
            gap = _after_operation(first, second, eyes)
            if gap is not None and gap.missing != ORDER:
                return gap
        bridge = _demanded_bridge(first, second)
        return _threads_before_operation(first, second, eyes, bridge, where)
    return _threads_before_threads(first, second, eyes, where)


def is_ordered(first: Record, second: Record, eyes: list[Eye]) -> bool:
    """Whether all of the first access is known to everybody who makes the second, whichever bytes they share."""
    if first.tids is None:
        return _after_operation(first, second, eyes) is None
    if (
        first.done is not None
        and first.done.observers
        and _after_operation(first, second, eyes) is None
    ):
        return True
    bridge = _demanded_bridge(first, second)
    own = second.tids is None
    return all(
        _sees_all(view.hb, view, first.parts, agent, lanes, own, bridge)
        for agent, lanes, view in eyes
    )


def _demanded_bridge(first: Record, second: Record) -> int | None:
    """Return the state space that a proxy fence must cover where the accesses need one."""
    demands = (second.is_async or second.wants_bridge) and not first.is_async
    return bridge_of(first, second) if demands else None


class Orders:
    """Which earlier accesses are ordered before one access over all bytes that both touch.

    What is ordered over some bytes only must be asked for again over others.
    """

    __slots__ = ("_eyes", "_known", "_second")

    def __init__(self, second: Record, eyes: list[Eye]) -> None:
        self._second = second
        self._eyes = eyes
        # By number; None: over some bytes, and nobody has asked for others yet.
        self._known: dict[int, bool | None] = {}

    def __contains__(self, first: Record) -> bool:
        number = first.number
        if number not in self._known:
            return False
        known = self._known[number]
        if known is None:
            known = find_gap(first, self._second, self._eyes, None) is None
            self._known[number] = known
        return known

    def add(self, first: Record) -> None:
        """Note that an access is ordered before it over some bytes."""
        self._known.setdefault(first.number, None)


def _sees_all(
    clock: Clock,
    view: View,
    parts: list[Part],
    agent: Agent,
    lanes: int,
    own: bool,
    bridge: int | None,
) -> bool:
    for other, epoch, mask in parts:
        known = sees(clock, other, epoch, mask) or (
            own and other is agent and not mask & ~lanes and epoch <= agent.now
        )
        if not known or (bridge is not None and not sees(view.bridges[bridge], other, epoch, mask)):
            return False
    return True


def _after_operation(first: Record, second: Record, eyes: list[Eye]) -> Gap | None:
    done = first.done
    assert done is not None
    missing = ""
    for agent, lanes, view in eyes:
        if done.known_to(view.hb, agent, lanes):
            if first.is_async or not second.is_async:
                continue
            bridge = view.bridges[bridge_of(first, second)]
            if any(sees(bridge, other, epoch, mask) for other, epoch, mask in done.observers):
                continue
            found = BRIDGE
        elif view.loose is not None and done.known_to(view.loose, agent, lanes):
            found = SCOPE
        else:
            return Gap(ORDER, None, (agent, lanes))
        missing = missing or found
    return Gap(missing, None, eyes[0][:2]) if missing else None


def _epochs(record: Record) -> dict[int, list[tuple[Agent, int, int]]]:
    table: dict[int, list[tuple[Agent, int, int]]] = {}
    for agent, epoch, mask in record.parts:
        table.setdefault(agent.warp, []).append((agent, epoch, mask))
    return table


def _part_of(parts: list[tuple[Agent, int, int]], lane: int) -> tuple[Agent, int]:
    for agent, epoch, mask in parts:
        if mask >> lane & 1:
            return agent, epoch
    return parts[0][0], parts[0][1]


def _sees_thread(clock: Clock, agent: Agent, lane: int, epoch: int) -> bool:
    return clock.get(agent.key, 0) >= epoch or clock.get(agent.key + LANE + lane, 0) >= epoch


def _knows_thread(
    clock: Clock, record: Record, agent: Agent, lane: int, epoch: int, by: tuple[Agent, int]
) -> bool:
    """Whether a lane's part of an access is known, or was observed by `by` or by somebody who is known."""
    if _sees_thread(clock, agent, lane, epoch):
        return True
    if record.observations is None or record.kind == "r":
        return False
    address = record.addresses
    assert record.tids is not None
    if is_array(address):
        position = int(np.flatnonzero(record.tids == agent.warp * 32 + lane)[0])
        address = int(address[position])
    place = (record.space, record.owner, address)
    return record.observations.covers(place, (agent, epoch, lane), clock, by)


def _threads_before_operation(
    first: Record, second: Record, eyes: list[Eye], bridge: int | None, where: Where | None
) -> Gap | None:
    tids, starts = first.spread()
    touched = _inside(starts, first.count_bytes, where)
    parts = _epochs(first)
    worst = ""
    culprits: dict[int, int] = {}
    where_from: tuple[Agent, int] | None = None
    for tid in np.unique(tids[touched]).tolist():
        lane = tid & 31
        other, epoch = _part_of(parts[tid >> 5], lane)
        for agent, lanes, view in eyes:
            mine = other is agent and bool(lanes >> lane & 1) and epoch <= agent.now
            if mine or _sees_thread(view.hb, other, lane, epoch):
                if bridge is None or _sees_thread(view.bridges[bridge], other, lane, epoch):
                    continue
                missing = BRIDGE
            elif view.loose is not None and _sees_thread(view.loose, other, lane, epoch):
                missing = SCOPE
            else:
                missing = ORDER
            if missing == ORDER or not worst:
                if missing != worst:
                    culprits = {}
                    where_from = (agent, lanes)
                worst = missing
            if missing == worst:
                culprits[other.warp] = culprits.get(other.warp, 0) | 1 << lane
            break
    if where_from is None:
        return None

    def is_known(warp: int) -> bool:
        other, epoch, _ = parts[warp][0]
        return any(view.hb.get(other.key + ANY, 0) >= epoch for _, _, view in eyes)

    # Another warp tells more than a lane of the issuer's own, and of four warps that issue together the one apart; and a
    # warp none of whose lanes is known more than lanes of one: what orders it orders these too.
    for warp, culprit in sorted(culprits.items(), key=lambda one: (is_known(one[0]), one[0])):
        other = parts[warp][0][0]
        apart = next((eye for eye in eyes if eye[0] is not other), None)
        if apart is not None:
            return Gap(worst, (other, culprit), apart[:2])
    warp = min(culprits)
    return Gap(worst, (parts[warp][0][0], culprits[warp]), where_from)


def _inside(starts: Ints, count_bytes: int, where: Where | None) -> NDArray[np.bool_]:
    """Return which accesses touch one of the granules."""
    if where is None:
        return np.ones(len(starts), np.bool_)
    base, shift, cells = where()
    first = (starts - base) >> shift
    found = np.isin(first, cells)
    for k in range(1, count_bytes >> shift):
        found |= np.isin(first + k, cells)
    return found


def _threads_before_threads(
    first: Record, second: Record, eyes: list[Eye], where: Where | None
) -> Gap | None:
    x_tids, x_starts = first.spread()
    y_tids, y_starts = second.spread()
    chosen = _inside(y_starts, second.count_bytes, where)
    y_tids, y_starts = y_tids[chosen], y_starts[chosen]
    x_index, y_index = overlaps(x_starts, first.count_bytes, y_starts, second.count_bytes)
    same_cta = first.cta is second.cta
    x, y = x_tids[x_index], y_tids[y_index]
    parts = _epochs(first)
    if same_cta:
        same = x == y
        if same.any():
            # A thread's own plain access is ordered before its later ones; its own cp.async only once waited for.
            waited = first.flight is None or all(
                epoch <= agent.now for agent, epoch, _ in first.parts
            )
            if waited:
                x, y = x[~same], y[~same]
    if not len(x):
        return None
    codes = np.unique((x >> 5) * 64 + (y >> 5))
    # No order at all tells more than a scope, and two warps tell more than lanes of one: what orders them orders these too.
    # So does a warp none of whose lanes is known.
    worst = (False, False, False)
    found: Gap | None = None
    for code in codes.tolist():
        x_warp, y_warp = code >> 6, code & 63
        mine = [eye for eye in eyes if eye[0].warp == y_warp]
        if all(
            all(sees(view.hb, agent, epoch, mask) for agent, epoch, mask in parts[x_warp])
            for _, _, view in mine
        ):
            continue
        here = ((x >> 5) == x_warp) & ((y >> 5) == y_warp)
        pairs = np.unique((x[here] & 31) * 32 + (y[here] & 31)).tolist()
        for pair in pairs:
            x_lane, y_lane = pair >> 5, pair & 31
            other, epoch = _part_of(parts[x_warp], x_lane)
            agent, _, view = next(eye for eye in mine if eye[1] >> y_lane & 1)
            by = (agent, y_lane)
            if _knows_thread(view.hb, first, other, x_lane, epoch, by):
                continue
            narrow = view.loose is not None and _knows_thread(
                view.loose, first, other, x_lane, epoch, by
            )
            missing = SCOPE if narrow else ORDER
            rank = (not narrow, agent is not other, view.hb.get(other.key + ANY, 0) < epoch)
            if found is None or rank > worst:
                worst = rank
                found = Gap(missing, (other, 1 << x_lane), (agent, 1 << y_lane))
            elif rank == worst:
                assert found.first is not None
                if found.first[0] is other and found.second[0] is agent:
                    found.first = (other, found.first[1] | 1 << x_lane)
                    found.second = (agent, found.second[1] | 1 << y_lane)
    return found


def overlaps(x_starts: Ints, x_bytes: int, y_starts: Ints, y_bytes: int) -> tuple[Ints, Ints]:
    """Return the pairs (index of x, index of y) whose byte ranges overlap."""
    order = np.argsort(x_starts, kind="stable")
    ordered = x_starts[order]
    low = np.searchsorted(ordered, y_starts - x_bytes, side="right")
    high = np.searchsorted(ordered, y_starts + y_bytes, side="left")
    counts = high - low
    total = int(counts.sum())
    y_index = np.repeat(np.arange(len(y_starts), dtype=np.int64), counts)
    within = np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    x_index = order[np.repeat(low, counts) + within]
    return x_index, y_index
