"""Findings as they come in: grouped by rule and pair of sites, told as `hopsim.findings.Hazard`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hopsim.findings import Access, Dim, Hazard
from hopsim.hazards.clocks import Agent
from hopsim.hazards.facts import LaunchFacts
from hopsim.hazards.records import Record
from hopsim.hazards.rules import RULES, silicon_of

Level = Literal["hazard", "note"]
OTHERS_SHOWN = 4
# Pairs of sites that are told once, whichever of the two came first.
EITHER_WAY = frozenset({"HS114", "HS500"})
WHAT = {"r": "read", "w": "write", "a": "atomic"}


def cta_text(cta: Dim) -> str:
    """Return a CTA by its coordinates: `cta (3,0,0)`."""
    return f"cta ({','.join(map(str, cta))})"


@dataclass(slots=True)
class Finding:
    """One rule broken at one pair of sites.

    `late` is asked at the end of the run for the rule that what came later proves (empty: none after all); `retold`
    gives the message, the missing edge and the hint of that rule.  `cause`: what several pairs of sites have in common
    that are told as one; `others` are the lines of those pairs.
    """

    rule: str
    level: Level
    message: str
    first: Access | None
    second: Access | None
    missing: str = ""
    hint: str = ""
    chain: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    count: int = 1
    late: Callable[[], str | None] | None = None
    retold: Callable[[str], tuple[str, str, str]] | None = None
    cause: tuple[Any, ...] | None = None
    others: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    @property
    def lines(self) -> tuple[int, int]:
        """PTX lines of both sides."""
        return (
            0 if self.first is None else self.first.line,
            0 if self.second is None else self.second.line,
        )

    @property
    def sites(self) -> tuple[set[int], set[int]]:
        """PTX lines of both sides, with those of findings that are told as this one."""
        first, second = zip(self.lines, *self.others, strict=True)
        return set(first), set(second)

    def also(self, lines: tuple[int, int]) -> None:
        """Count one more occurrence, at these lines."""
        self.count += 1
        if self.rule in EITHER_WAY and lines[::-1] == self.lines:
            return
        if lines != self.lines and lines not in self.others:
            self.others.append(lines)

    def told(self) -> Hazard:
        """Return the finding for the result."""
        rule = RULES[self.rule]
        message = self.message
        if self.others:
            shown = ", ".join(
                " -> ".join(f":{line}" for line in lines if line)
                for lines in self.others[:OTHERS_SHOWN]
            )
            more = len(self.others) - OTHERS_SHOWN
            message += f" (also {shown}{f' and {more} more' if more > 0 else ''})"
        return Hazard(
            rule=self.rule, title=rule.name, level=self.level, message=message, first=_told(self.first),
            second=_told(self.second), missing=self.missing, hint=self.hint, chain=self.chain, causes=self.causes,
            count=self.count, silicon=silicon_of(rule), ptx=rule.ptx,
        )  # fmt: skip


class Findings:
    """All findings of a run."""

    def __init__(self, facts: LaunchFacts) -> None:
        self.facts = facts
        self.found: dict[Any, Finding] = {}

    def add(self, finding: Finding) -> Finding:
        """Enter a finding, or count it when its sites are known; a hazard stands above a note."""
        key = _key(finding)
        known = self.found.get(key)
        if known is None:
            self.found[key] = finding
            return finding
        known.also(finding.lines)
        if finding.level == "hazard" and known.level == "note":
            finding.count, finding.others = known.count, known.others
            self.found[key] = finding
        return known

    def told(self) -> list[Hazard]:
        """Return the findings, hazards before notes, in the order found; what came later may name a rule better."""
        for finding in self.found.values():
            if finding.late is not None:
                better = finding.late()
                if better is not None:
                    finding.rule = better
                if better and finding.retold is not None:
                    finding.message, finding.missing, finding.hint = finding.retold(better)
        kept = [finding for finding in self.found.values() if finding.rule]
        merged: dict[Any, Finding] = {}
        for finding in kept:
            sites: tuple[Any, ...] = (_site(finding.first), _site(finding.second))
            if finding.rule in EITHER_WAY and None not in sites:
                # Which came first in this run means nothing.
                sites = tuple(sorted(sites))
            key = (finding.level, finding.rule, *sites)
            if finding.first is None or finding.second is None:
                key = (finding.level, *_key(finding))
            if key in merged:
                merged[key].count += finding.count - 1
                merged[key].also(finding.lines)
            else:
                merged[key] = finding
        ordered = sorted(merged.values(), key=lambda finding: finding.level == "note")
        return [finding.told() for finding in ordered]

    # -- sides of a finding ------------------------------------------------------------------------

    def thread_side(self, agent: Agent, mask: int, line: int, what: str, **facts: Any) -> Access:
        """Return a side that is no access to memory: a wait, an arrive, a use of registers."""
        return Access(
            what=what, cta=agent.cta.id, warp=agent.warp, lanes=mask, line=line, text=self.facts.text(line),
            proxy=facts.get("proxy", "generic"), space=facts.get("space", "shared::cta"), start=facts.get("start"),
            stop=facts.get("stop"), source=self.facts.sources.get(line), actor=facts.get("actor", ""),
            name=facts.get("name", ""), symbol=self._symbol(facts.get("space", "shared::cta"), facts.get("start")),
        )  # fmt: skip

    def side(
        self, record: Record, who: tuple[Agent, int] | None, span: tuple[int, int], name: str
    ) -> Access:
        """Return one side of a race.

        Args:
            who: the warp and lanes concerned; None for the issuer of an operation.
            span: first byte and byte after the last, in the region's own addresses.
            name: of the global allocation.
        """
        flight = record.flight
        if flight is not None:
            agent, _, mask = flight.parts[0]
            if record.is_thread and who is not None:
                agent, mask = who
        else:
            assert who is not None
            agent, mask = who
        actor = ""
        if flight is not None:
            actor = {
                "tma load": "TMA load",
                "tma store": "TMA store",
                "tma reduce": "TMA reduce",
            }.get(flight.kind, flight.kind)
            if flight.tile and record.space != "global" and not name:
                name = flight.tile
        if record.space == "global":
            space = "global"
        else:
            space = "shared::cta" if record.owner == agent.cta.index else "shared::cluster"
        return Access(
            what=WHAT[record.kind], cta=agent.cta.id, warp=agent.warp, lanes=mask, line=record.line,
            text=self.facts.text(record.line), proxy="async" if record.is_async else "generic", space=space,
            start=span[0], stop=span[1], source=self.facts.sources.get(record.line), actor=actor, name=name,
            symbol=self._symbol(space, span[0]),
        )  # fmt: skip

    def _symbol(self, space: str, start: int | None) -> str:
        return "" if start is None or space == "global" else self.facts.shared_name(start)


def _key(finding: Finding) -> tuple[Any, ...]:
    """Return what findings that are told as one have in common."""
    if finding.cause is not None:
        return (finding.rule, finding.level, finding.cause)
    return (
        finding.rule,
        _site(finding.first),
        _site(finding.second),
        finding.message if finding.first is None else "",
    )


def _told(access: Access | None) -> Access | None:
    """Return a side for the result, where a line is a line."""
    return None if access is None else replace(access, line=int(access.line))


def _site(access: Access | None) -> Any:
    return None if access is None else (access.line, access.what, access.actor)
