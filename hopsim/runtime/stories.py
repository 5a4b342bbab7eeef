"""Tell a deadlock: who waits on what, what is missing, what happened before, and who waits for whom.

A story is told per barrier, not per warp: its state and who waits for it, what happened on it in this phase (or, when
nothing did, in the one before), and chains of waiting that end where they began, or at a warp that exited.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from hopsim.findings import Deadlock, Wait
from hopsim.hw.machine.barriers import ClusterBarrier, Mbarrier, NamedBarrier
from hopsim.hw.machine.cta import Cta
from hopsim.hw.machine.launch import Machine

KINDS = {
    "named barrier": "bar", "cluster barrier": "barrier.cluster", "registers": "setmaxnreg", "wgmma group": "wgmma",
}  # fmt: skip
MOST_LINES = 16
MOST_FLIGHTS = 16
VERBS = {
    "arrive": "arrived", "remote arrive": "arrived from afar", "cp.async arrive": "arrived after its cp.async",
    "expect_tx": "expected {} bytes",
}  # fmt: skip


@dataclass(slots=True)
class Station:
    """A barrier, or whatever strands wait for, with those who do."""

    subject: Any
    kind: str
    waiters: list[Any] = field(default_factory=list[Any])


def deadlock_of(machine: Machine, cycle: int | None, shared_name: Callable[[int], str]) -> Deadlock:
    """Return the story of a machine in which nothing can happen.

    Args:
        shared_name: what lies at an address of shared memory.
    """
    waits: list[Wait] = []
    stuck = sorted([*machine.waiting, *machine.spinning], key=lambda strand: strand.key)
    for strand in stuck:
        waits += [_wait(machine, strand, warp, shared_name) for warp in strand.warps]
    flights = [
        f"{operation.kind} of {operation.issuer} (line {operation.line})"
        for operation in machine.flying.values()
    ]
    stations = _stations(machine, stuck)
    teller = _Teller(machine, stations)
    return Deadlock(
        tuple(waits), tuple(flights[:MOST_FLIGHTS]), cycle,
        barriers=_cut([teller.state(station) for station in stations]),
        history=_cut([line for station in stations for line in teller.history(station)]),
        chains=_cut([*teller.chains(), *teller.no_room()]),
        not_started=_not_started(machine),
    )  # fmt: skip


def _cut(lines: list[str]) -> tuple[str, ...]:
    more = len(lines) - MOST_LINES
    return tuple(lines) if more <= 0 else (*lines[:MOST_LINES], f"... and {more} more")


def _stations(machine: Machine, stuck: list[Any]) -> list[Station]:
    """Group strands by what they wait for, in order of the first one."""
    found: dict[Any, Station] = {}
    for strand in stuck:
        wait = strand.waiting
        if wait is None:
            key: Any = "spin"
            station = found.setdefault(key, Station(None, "spin"))
        else:
            key = (id(wait.subject), wait.kind, wait.detail if wait.kind == "collective" else None)
            station = found.setdefault(key, Station(wait.subject, wait.kind))
        station.waiters.append(strand)
    return list(found.values())


def _lanes_of(strand: Any, warp: int) -> int:
    mask = 0
    for tid in strand.tids.tolist():
        if tid // 32 == warp:
            mask |= 1 << tid % 32
    return mask


def _wait(machine: Machine, strand: Any, warp: int, shared_name: Callable[[int], str]) -> Wait:
    wait = strand.waiting
    instruction = machine.program[int(strand.segment)].instructions[0].instruction
    facts: dict[str, Any] = {}
    subject = None if wait is None else wait.subject
    if isinstance(subject, Mbarrier):
        facts = {
            "address": subject.address, "phase": subject.phase, "pending_arrivals": subject.pending,
            "expected_arrivals": subject.expected, "tx_bytes": subject.tx, "parity": _parity(wait),
            "symbol": shared_name(subject.address),
        }  # fmt: skip
    elif isinstance(subject, NamedBarrier):
        needed = subject.needed(strand.cta)
        facts = {
            "address": subject.number, "pending_arrivals": needed - subject.arrived, "expected_arrivals": needed,
        }  # fmt: skip
    elif isinstance(subject, ClusterBarrier):
        facts = {
            "phase": subject.phase, "pending_arrivals": subject.expected - subject.arrived,
            "expected_arrivals": subject.expected,
        }  # fmt: skip
    kind = "spin" if wait is None else str(KINDS.get(wait.kind, wait.kind))
    return Wait(
        cta=strand.cta.id, warp=warp, lanes=_lanes_of(strand, warp), kind=kind, line=strand.line,
        text=instruction.mnemonic, **facts,
    )  # fmt: skip


def _parity(wait: Any) -> int | None:
    """Return the parity a wait is for; a wait for a state word has none."""
    detail = wait.detail
    return detail & 1 if isinstance(detail, int) and detail < 1 << 32 else None


def _ranges(warps: Iterable[int]) -> str:
    runs: list[list[int]] = []
    for warp in sorted(set(warps)):
        if runs and warp == runs[-1][1] + 1:
            runs[-1][1] = warp
        else:
            runs.append([warp, warp])
    text = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
    return f"warp {text}" if len(runs) == 1 and runs[0][0] == runs[0][1] else f"warps {text}"


class _Teller:
    """Puts stations into words."""

    def __init__(self, machine: Machine, stations: list[Station]) -> None:
        self.stations = stations
        self.single = machine.grid == (1, 1, 1)
        self.machine = machine

    # -- names -------------------------------------------------------------------------------------

    def who(self, cta: Cta, warps: Iterable[int]) -> str:
        """Return `warps 4-7`, with the CTA when the grid has several."""
        text = _ranges(warps)
        return text if self.single else f"cta {cta.id_text} {text}"

    def name(self, station: Station) -> str:
        """Return what a station is called in a chain."""
        subject = station.subject
        if isinstance(subject, Mbarrier):
            return subject.name
        if isinstance(subject, NamedBarrier):
            return f"barrier {subject.number}"
        if isinstance(subject, ClusterBarrier):
            return "cluster barrier"
        if station.kind == "spin":
            return "memory"
        if station.kind == "collective":
            return f"{station.waiters[0].waiting.detail}"
        return station.kind

    def _waiters(self, station: Station, verb: str) -> str:
        """Return `warps 4-7 wait for parity 1 at :141`, by place."""
        places: dict[tuple[Any, ...], list[Any]] = {}
        for strand in station.waiters:
            parity = _parity(strand.waiting) if isinstance(station.subject, Mbarrier) else None
            partial = strand.describe() if not strand.is_whole else ""
            places.setdefault((strand.cta.index, strand.line, parity, partial), []).append(strand)
        parts: list[str] = []
        for (_, line, parity, partial), strands in list(places.items())[:MOST_LINES]:
            warps = [warp for strand in strands for warp in strand.warps]
            who = self.who(strands[0].cta, warps)
            if partial:
                lanes = partial.rpartition("lane")[2]
                who += f" lane{lanes}"
            one = len(set(warps)) == 1
            what = verb if parity is None else f"waits for parity {parity}"
            parts.append(f"{who} {what if one else _plural(what)} at :{line}")
        if len(places) > MOST_LINES:
            parts.append(f"... and {len(places) - MOST_LINES} more")
        return ", ".join(parts)

    # -- per station -------------------------------------------------------------------------------

    def state(self, station: Station) -> str:
        """Return one line: the barrier, what is missing, who waits for it."""
        subject, cta = station.subject, station.waiters[0].cta
        if isinstance(subject, Mbarrier):
            return (
                f"{subject.name} of cta {subject.cta.id_text}: phase {subject.phase} open, {subject.pending} of "
                f"{subject.expected} arrivals missing, tx {subject.tx}; {self._waiters(station, 'waits for it')}"
            )
        if isinstance(subject, NamedBarrier):
            needed = subject.needed(cta)
            return (
                f"barrier {subject.number} of cta {cta.id_text}: {needed - subject.arrived} of {needed} threads missing; "
                f"{self._waiters(station, 'waits for it')}"
            )
        if isinstance(subject, ClusterBarrier):
            return (
                f"cluster barrier of cluster {subject.cluster.index}: phase {subject.phase} open, "
                f"{subject.expected - subject.arrived} of {subject.expected} threads missing; "
                f"{self._waiters(station, 'waits for it')}"
            )
        if station.kind == "registers":
            count = station.waiters[0].waiting.detail[0]
            return (
                f"registers of cta {cta.id_text}: {cta.free_registers} free; "
                f"{self._waiters(station, f'wants {count} registers a thread')}"
            )
        if station.kind == "collective":
            what = station.waiters[0].waiting.detail
            if str(what).startswith("wgmma"):
                group = station.waiters[0].warpgroup.number
                return (
                    f"{what}: {self._waiters(station, f'waits for the rest of warpgroup {group}')}"
                )
            return f"{what}: {self._waiters(station, 'waits for the other lanes of its mask')}"
        if station.kind == "spin":
            return f"memory: {self._waiters(station, 'spins')}, and nobody changes what they read"
        return f"{station.kind}: {self._waiters(station, 'waits')}"

    def history(self, station: Station) -> list[str]:
        """Return one line: what happened on a barrier in this phase, or in the last one in which anything did."""
        subject = station.subject
        if isinstance(subject, NamedBarrier):
            arrived = [f"{self._by(who)} arrived at :{line}" for who, line in subject.parties]
            if not arrived:
                return []
            cta = station.waiters[0].cta
            return [
                f"barrier {subject.number} of cta {cta.id_text}: {'; '.join([*arrived, *self._exits(cta)])}"
            ]
        if not isinstance(subject, Mbarrier) or not subject.history:
            return []
        phase = subject.history[-1][0]
        told: dict[tuple[str, int], list[tuple[Any, int]]] = {}
        for number, what, who, line, count in subject.history:
            if number == phase:
                told.setdefault((what, line), []).append((who, count))
        parts: list[str] = []
        for (what, line), entries in told.items():
            total = sum(count for _, count in entries)
            if what == "complete_tx":
                parts.append(f"{total} bytes came by :{line}")
                continue
            cta, warps = entries[0][0][0], sorted({warp for who, _ in entries for warp in who[1]})
            verb = VERBS[what].format(total)
            many = f" ({total})" if what != "expect_tx" and total != len(entries) else ""
            who = _ranges(warps) if self.single else f"cta {cta} {_ranges(warps)}"
            parts.append(f"{who} {verb}{many} at :{line}")
        parts += self._exits(subject.cta)
        if phase < subject.phase:
            parts.append(f"nothing since phase {subject.phase} opened")
        return [f"{subject.name} of cta {subject.cta.id_text}, phase {phase}: {'; '.join(parts)}"]

    def _by(self, who: Any) -> str:
        return _ranges(who[1]) if self.single else f"cta {who[0]} {_ranges(who[1])}"

    def _exits(self, cta: Cta) -> list[str]:
        gone = _exited(cta)
        return [f"{self.who(cta, gone)} exited"] if gone else []

    # -- who waits for whom ------------------------------------------------------------------------

    def chains(self) -> list[str]:
        """Return chains of waiting, each told once: `warp 0 -> mbarrier 0x408 -> warp 1 -> ...`."""
        place = {strand: station for station in self.stations for strand in station.waiters}
        told: set[str] = set()
        seen: set[Any] = set()
        lines: list[str] = []
        for station in self.stations:
            first = station.waiters[0]
            if first in seen or station.kind == "spin":
                continue
            steps, line = [first], self._me(first)
            while True:
                here = place[steps[-1]]
                seen.update(here.waiters)
                line += f" -> {self.name(here)}"
                supplier, text = self._supplier(here)
                line += f" -> {text}"
                if supplier is None or supplier in steps:
                    break
                if place[supplier].kind == "spin":
                    line += " (spins)"
                    break
                steps.append(supplier)
            if line not in told:
                told.add(line)
                lines.append(line)
        return lines

    def no_room(self) -> list[str]:
        """Return one line when CTAs never started, because those that wait hold all places of the chip."""
        count = _not_started(self.machine)
        held = len({strand.cta for station in self.stations for strand in station.waiters})
        if not count:
            return []
        total = math.prod(self.machine.grid)
        return [
            f"{count} of {total} CTAs (never started) -> room: the chip holds only {held} at once -> those that wait"
        ]

    def _me(self, strand: Any) -> str:
        return self.who(strand.cta, self._together(strand))

    def _together(self, strand: Any) -> list[int]:
        """Return the warps that wait where this strand waits, in its CTA."""
        station = next(station for station in self.stations if strand in station.waiters)
        return [
            warp for other in station.waiters if other.cta is strand.cta and other.line == strand.line
            for warp in other.warps
        ]  # fmt: skip

    def _supplier(self, station: Station) -> tuple[Any, str]:
        """Return a strand that could end the wait but is stuck itself, or None and who left, in words."""
        subject, cta = station.subject, station.waiters[0].cta
        if isinstance(subject, Mbarrier):
            ctas, done = (
                (subject.cta.cluster.ctas if len(subject.cta.cluster.ctas) > 1 else [cta]),
                self._arrived(subject),
            )
        elif isinstance(subject, ClusterBarrier):
            ctas, done = subject.cluster.ctas, set[tuple[str, int]]()
        else:
            ctas, done = [cta], set[tuple[str, int]]()
        if isinstance(subject, NamedBarrier):
            done = {(who[0], warp) for who, _ in subject.parties for warp in who[1]}
        stuck = [
            strand for other in self.stations if other is not station for strand in other.waiters
            if strand.cta in ctas and not all((strand.cta.id_text, warp) in done for warp in strand.warps)
        ]  # fmt: skip
        stuck.sort(key=lambda strand: (strand.cta is not cta, strand.key))
        if stuck:
            return stuck[0], self._me(stuck[0])
        for one in ctas:
            gone = _exited(one)
            if gone:
                return None, f"{self.who(one, gone)} (exited)"
        return None, "nobody"

    def _arrived(self, barrier: Mbarrier) -> set[tuple[str, int]]:
        """Return (CTA, warp) of those who arrived in the open phase."""
        return {
            (who[0], warp) for phase, what, who, _, _ in barrier.history if phase == barrier.phase and "arrive" in what
            for warp in who[1]
        }  # fmt: skip


def _not_started(machine: Machine) -> int:
    return (machine.cluster_count - machine.clusters_started) * machine.cluster_size


def _exited(cta: Cta) -> list[int]:
    return [warp for warp in range((cta.machine.threads + 31) // 32) if not cta.live_lanes(warp)]


def _plural(verb: str) -> str:
    first, _, rest = verb.partition(" ")
    return f"{first.removesuffix('s')} {rest}".rstrip()
