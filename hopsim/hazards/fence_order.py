"""The order of fence.sc as an edge: what comes before one fence is visible after another that must follow it.

A fence F1 comes before a strong write X in order (be it through a barrier), somebody observes X, or a read-modify-write in
the chain that X begins, and a fence F2 comes after that look.  Were F2 the earlier one, the look would come before X: so F1
comes first, and two such fences whose scopes hold each other synchronize.  A fence of any other kind does not, and neither
the write nor the look need be in the thread of a fence, as those of release and acquire patterns must.

Source: PTX ISA 8.7 "Memory Consistency Model": "Fence-SC Order", "Synchronizes", "Observation Order", "Causality Order".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from hopsim.hazards.clocks import KEYS_PER_WARP, Agent, Clock, View, bits, sees
from hopsim.hazards.fences import Fence
from hopsim.hazards.observations import Carried, Look, Word, are_strong
from hopsim.hazards.world import includes, reach

KEPT: Final = 64


@dataclass(frozen=True, slots=True)
class _Due:
    """What a fence.sc after a look learns, and which lanes have learned it, by warp number."""

    look: Look
    carried: Carried
    learned: dict[int, int] = field(default_factory=dict[int, int])


class FenceOrder:
    """All fence.sc, what the chains of strong writes after them carry, and the looks at these."""

    def __init__(self) -> None:
        # The last of each warp, by its number.
        self._fences: dict[int, deque[Fence]] = {}
        self._dues: dict[int, deque[_Due]] = {}

    @property
    def is_used(self) -> bool:
        """Whether anybody executed a fence.sc."""
        return bool(self._fences)

    def enter(self, fence: Fence) -> None:
        """Note a fence.sc."""
        self._fences.setdefault(fence.agent.number, deque(maxlen=KEPT)).append(fence)

    def note(self, word: Word, look: Look) -> None:
        """Take a strong access, before its word remembers it."""
        carried: Carried = {}
        last = word.last
        if look.kind != "w" and last is not None and word.carried and are_strong(last, look):
            carried = word.carried
            if look.is_told:
                dues = self._dues.setdefault(look.agent.number, deque(maxlen=KEPT))
                dues.append(_Due(look, carried))
        if look.kind != "r":
            word.carried = self._add_known(look, carried)

    def _add_known(self, look: Look, carried: Carried) -> Carried:
        """Return what a chain carries behind a write: also what fences knew that come before it."""
        agent = look.agent
        eyes = agent.eyes(look.mask)
        # Of several lanes that store to one word, nobody knows whose value stays.
        is_one = look.kind == "a" or not look.mask & look.mask - 1
        numbers = _warps(self._fences, agent, [view.hb for _, view in eyes])
        found = dict(carried)
        for number in numbers:
            for fence in reversed(self._fences[number]):
                known = [fence.known(view.hb) for _, view in eyes]
                if is_one:
                    lanes = fence.mask & look.mask if fence.agent is agent else 0
                    for one in known:
                        lanes |= one
                else:
                    lanes = fence.mask
                    for one in known:
                        lanes &= one
                if not lanes:
                    continue
                whom = reach(fence.scope, fence.agent.cta)
                mine = found.get(whom)
                if mine is None:
                    found[whom] = fence.before(lanes), frozenset((fence.agent.cta,))
                elif not sees(mine[0].hb, fence.agent, fence.epoch, lanes):
                    view = fence.before(lanes)
                    view.join(mine[0])
                    found[whom] = view, mine[1] | {fence.agent.cta}
                if lanes == fence.mask and fence.is_every and not whom[0]:
                    # It covers the earlier ones of its warp.
                    break
        return found

    def learn(self, agent: Agent, mask: int, scope: str) -> None:
        """Let lanes that execute a fence.sc learn from those before it."""
        if not self._dues:
            return
        eyes = agent.eyes(mask)
        learned: list[tuple[int, View]] = []
        for number in _warps(self._dues, agent, [view.hb for _, view in eyes]):
            for due in self._dues[number]:
                look = due.look
                lanes = mask & look.mask if look.agent is agent else 0
                for those, view in eyes:
                    if any(
                        sees(view.hb, look.agent, look.epoch, 1 << lane) for lane in bits(look.mask)
                    ):
                        lanes |= those
                lanes &= ~due.learned.get(agent.number, 0)
                if not lanes:
                    continue
                is_all = True
                for whom, (view, ctas) in due.carried.items():
                    if whom == reach(whom[0], agent.cta) and all(
                        includes(scope, cta, agent.cta) for cta in ctas
                    ):
                        learned.append((lanes, view))
                    else:
                        is_all = False
                if is_all:
                    due.learned[agent.number] = due.learned.get(agent.number, 0) | lanes
        for lanes, view in learned:
            agent.acquire(lanes, view)


def _warps(
    table: dict[int, deque[Fence]] | dict[int, deque[_Due]], agent: Agent, clocks: Iterable[Clock]
) -> list[int]:
    """Return the warps in a table that clocks name, the agent's own first: what it knows covers most others."""
    named = {key // KEYS_PER_WARP for clock in clocks for key in clock if key > 0}
    named.discard(agent.number)
    own = [agent.number] if agent.number in table else []
    return own + [number for number in sorted(named) if number in table]
