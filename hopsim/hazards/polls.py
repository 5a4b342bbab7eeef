"""Words that loops wait for: what ends a wait must stay there until everybody who waits for it has looked.

Reads and writes of such a word are strong, so that no two of them race.  But where nothing orders the look that ended a
wait before the write that replaces the value, a slower thread may find only the later value, and wait for ever.  Which
values end a wait is asked of the program itself.  If a value that would do is there at last, whose writer went on without
that look, a slower thread finds that one: readers of a sequence lock wait for any even number.  A thread that writes the
word itself has looked, and so have the lanes that looked in the same instruction; a compare-and-swap or an exchange takes
the value on purpose (locks): DEVIATIONS D-POLL.

Source: PTX ISA 8.7 "Memory Consistency Model", "Morally strong operations", "Causality order"; barriers of kernels' own
making, as in the reports that HS406 collects.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hopsim.events import Access as AccessEvent
from hopsim.events import Poll, SyncEvent
from hopsim.findings import Access, Wait
from hopsim.hazards.clocks import Agent, View, bits, sees
from hopsim.hazards.findings import Finding, Findings
from hopsim.hazards.rules import RULES
from hopsim.hazards.world import World

TAKES: Final = re.compile(r"^atom\S*\.(cas|exch)\b")
REPLACED_KEPT: Final = 8

# State space, owner, address.
Place = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Look:
    """Lanes of a warp that a value let go on, and what else would have."""

    agent: Agent
    mask: int
    epoch: int
    line: int
    poll: Poll
    positions: dict[int, int]

    def would_end(self, value: int) -> bool:
        """Whether another value would have let all of these lanes go on."""
        return _in_all(
            self.poll.would_end(value), [self.positions[lane] for lane in bits(self.mask)]
        )


@dataclass(frozen=True, slots=True)
class Replaced:
    """A value that a write took away."""

    number: int
    value: int
    agent: Agent
    mask: int
    epoch: int
    line: int


@dataclass(slots=True)
class Overrun:
    """A look whose value a write took away before others may have had it.

    Args:
        is_over: whether a later write, which does not come after the look, has brought another value that does.
    """

    look: Look
    finding: Finding
    is_over: bool = False


class Word:
    """A word that strong writes change."""

    __slots__ = ("count_bytes", "looks", "overruns", "replaced", "value")

    def __init__(self, count_bytes: int) -> None:
        self.count_bytes = count_bytes
        self.value: int | None = None
        self.looks: list[Look] = []
        self.overruns: list[Overrun] = []
        self.replaced: deque[Replaced] = deque(maxlen=REPLACED_KEPT)


@dataclass(slots=True)
class Spin:
    """Lanes that wait for a word: what they had learned of its values when they began, and what they saw last."""

    place: Place
    mask: int
    known: set[int]
    look: Look | None = None


class Polls:
    """Watches every word that the program waits for in a loop."""

    def __init__(self, world: World, findings: Findings) -> None:
        self.world = world
        self.findings = findings
        self.words: dict[Place, Word] = {}
        self.spins: dict[tuple[int, int], list[Spin]] = {}
        # What belongs to a finding, by its identity.
        self._overruns: dict[int, list[Overrun]] = {}

    # -- what happens ------------------------------------------------------------------------------

    def access(self, event: AccessEvent, kind: str, agent: Agent, mask: int, address: int) -> None:
        """A strong access of lanes of a warp to one address, before it is learned from."""
        lines = self.world.facts.poll_lines
        if not lines:
            return
        view = agent.eyes(mask)[0][1]
        place = (event.space, event.owner, address)
        word = self.words.get(place)
        if word is None:
            word = self.words[place] = Word(event.count_bytes)
        if kind != "r":
            self._written(event, word, place, agent, mask, view)
        elif event.line in lines:
            self._looks(word, place, agent, mask, event.line, view)

    def _looks(
        self, word: Word, place: Place, agent: Agent, mask: int, line: int, view: View
    ) -> None:
        spins = self.spins.setdefault((agent.number, line), [])
        if any(spin.place == place and not mask & ~spin.mask for spin in spins):
            return
        known = {
            one.number for one in word.replaced if _knows(view, one.agent, one.epoch, one.mask)
        }
        spins.append(Spin(place, mask, known))

    def looked(self, event: SyncEvent) -> None:
        """A loop has looked at its word, and goes on or goes round."""
        poll: Poll = event.detail
        tids: list[int] = event.agent[1].tolist()
        for agent, mask in self.world.parties(event.agent):
            positions = {tid & 31: k for k, tid in enumerate(tids) if tid >> 5 == agent.warp}
            spins = self.spins.get((agent.number, event.line), [])
            for spin in spins:
                mine = spin.mask & mask
                if not mine:
                    continue
                ended = sum(1 << lane for lane in bits(mine) if _at(poll.ended, positions[lane]))
                seen = Look(agent, mine, agent.now, event.line, poll, positions)
                word = self.words[spin.place]
                word.value = int(_at(poll.value, positions[mine.bit_length() - 1]))
                spin.look = seen
                if ended:
                    self._ended(word, seen, ended)
                    spin.mask &= ~ended
            spins[:] = [spin for spin in spins if spin.mask]

    @staticmethod
    def _ended(word: Word, seen: Look, mask: int) -> None:
        kept = [look for look in word.looks if look.agent is not seen.agent or look.mask & ~mask]
        look = Look(seen.agent, mask, seen.epoch, seen.line, seen.poll, seen.positions)
        word.looks = [*kept, look]

    def _written(
        self, event: AccessEvent, word: Word, place: Place, agent: Agent, mask: int, view: View
    ) -> None:
        value = _written_value(event, agent, mask)
        if word.value is not None and word.value != value:
            number = self.world.next_record()
            word.replaced.append(Replaced(number, word.value, agent, mask, agent.now, event.line))
        word.value = value
        for one in word.overruns:
            look = one.look
            one.is_over = (
                value is not None
                and look.would_end(value)
                and not _knows(view, look.agent, look.epoch, look.mask)
            )
        takes = TAKES.match(self.world.facts.mnemonic(event.line)) is not None
        kept: list[Look] = []
        for look in word.looks:
            if look.agent is agent and mask & sum(1 << lane for lane in look.positions):
                continue
            if _knows(view, look.agent, look.epoch, look.mask):
                continue
            if takes or value is None or look.would_end(value):
                kept.append(look)
            else:
                self._overrun(word, place, look, agent, mask, event.line)
        word.looks = kept

    # -- telling -----------------------------------------------------------------------------------

    def _overrun(
        self, word: Word, place: Place, look: Look, agent: Agent, mask: int, line: int
    ) -> None:
        finding = self.findings.add(
            Finding(
                "HS406", "hazard", RULES["HS406"].sentence,
                self._side(word, place, look.agent, look.mask, look.line, "read"),
                self._side(word, place, agent, mask, line, "write"),
                f"an edge from the look at :{look.line} that ends the wait to the write at :{line}, which takes the "
                "value away",
                f"before :{line}, wait for all who loop at :{look.line}:  bar.sync 0;  (or let the word only grow, and "
                "loop while it is less)",
            )
        )  # fmt: skip
        one = Overrun(look, finding)
        word.overruns.append(one)
        all_of = self._overruns.setdefault(id(finding), [])
        all_of.append(one)
        finding.late = lambda: "" if all(overrun.is_over for overrun in all_of) else None

    def missed(self, wait: Wait) -> Finding | None:
        """Return why lanes that loop for ever do: the value that they wait for was there, and was replaced."""
        agent = self.world.cta(self.world.facts.index_of(wait.cta)).agents[wait.warp]
        for spin in self.spins.get((agent.number, wait.line), ()):
            word, look = self.words[spin.place], spin.look
            if look is None:
                continue
            for one in word.replaced:
                if (
                    one.number not in spin.known
                    and one.agent is not agent
                    and look.would_end(one.value)
                ):
                    return Finding(
                        "HS406", "hazard", RULES["HS406"].sentence,
                        self._side(word, spin.place, agent, spin.mask, wait.line, "read"),
                        self._side(word, spin.place, one.agent, one.mask, one.line, "write"),
                        f"the value that ends the loop at :{wait.line} stood there until :{one.line} replaced it",
                        f"before :{one.line}, wait for all who loop at :{wait.line}:  bar.sync 0;  (or let the word only "
                        "grow, and loop while it is less)",
                    )  # fmt: skip
        return None

    def _side(
        self, word: Word, place: Place, agent: Agent, mask: int, line: int, what: str
    ) -> Access:
        space, owner, address = place
        if space == "shared":
            space = "shared::cta" if owner == agent.cta.index else "shared::cluster"
        region = self.world.global_region(address) if space == "global" else None
        start = address - region.base if region is not None else address
        return self.findings.thread_side(
            agent, mask, line, what, space=space, start=start, stop=start + word.count_bytes,
            name="" if region is None else region.name,
        )  # fmt: skip


def _knows(view: View, agent: Agent, epoch: int, mask: int) -> bool:
    """Whether a view holds what lanes did, be it through edges of too narrow a scope: those are told elsewhere."""
    known = view.hb if view.loose is None else view.loose
    return sees(known, agent, epoch, mask)


def _at(value: Any, position: int) -> Any:
    return value[position] if isinstance(value, np.ndarray) else value


def _in_all(value: Any, positions: list[int]) -> bool:
    return bool(value[positions].all()) if isinstance(value, np.ndarray) else bool(value)


def _written_value(event: AccessEvent, agent: Agent, mask: int) -> int | None:
    """Return what the last of the lanes leaves there."""
    value = event.value
    if value is None or isinstance(value, int):
        return value
    last = agent.warp * 32 + mask.bit_length() - 1
    position = int(np.flatnonzero(event.agent[1] == last)[0])
    return int(value[position])
