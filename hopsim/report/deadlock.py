"""The story of a deadlock: a paragraph for each barrier, with what is missing and who waits for it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.text import Text

from hopsim.findings import Deadlock, Wait
from hopsim.report.quantities import cta_name, grouped, plural, ranges
from hopsim.report.story import Story

MOST_BARRIERS = 12
MOST_FLIGHTS = 8
CTA = re.compile(r"cta \(\d+,\d+,\d+\)")


def deadlock_story(deadlock: Deadlock) -> Story:
    """Return who waits on what; CTAs that wait in the same way are told once."""
    who = plural(len(deadlock.waiting), "warp")
    when = f" after cycle {grouped(deadlock.cycle)}" if deadlock.cycle is not None else ""
    verb = "waits" if len(deadlock.waiting) == 1 else "wait"
    text = Text()
    text.append(f"DEADLOCK: {who} {verb} and nothing can happen{when}\n", style="bold red")
    groups = _by_barrier(deadlock.waiting)
    for waits in list(groups.values())[:MOST_BARRIERS]:
        text.append(_paragraph(waits))
    if len(groups) > MOST_BARRIERS:
        text.append(f"  ... and {plural(len(groups) - MOST_BARRIERS, 'barrier')} more\n")
    for flight in deadlock.in_flight[:MOST_FLIGHTS]:
        text.append(f"  in flight   {flight}\n")
    if len(deadlock.in_flight) > MOST_FLIGHTS:
        text.append(f"  ... and {len(deadlock.in_flight) - MOST_FLIGHTS} more in flight\n")
    if not deadlock.in_flight:
        text.append("  in flight   nothing: no copy, product or remote arrival is on its way\n")
    for line in _told_once(deadlock.history):
        text.append(f"  before      {line}\n")
    for line in _told_once(deadlock.chains):
        text.append(f"  chain       {line}\n")
    text.rstrip()
    return Story(text)


def _told_once(lines: Sequence[str]) -> list[str]:
    """Return the lines of which another differs by its one CTA only once, with how many more there are."""
    alike: dict[str, list[str]] = {}
    for line in lines:
        ctas = set(CTA.findall(line))
        alike.setdefault(CTA.sub("cta", line) if len(ctas) == 1 else line, []).append(line)
    return [
        f"{one[0]}; likewise {plural(len(one) - 1, 'more CTA')}" if len(one) > 1 else one[0]
        for one in alike.values()
    ]


def _state(wait: Wait) -> tuple[object, ...]:
    return (
        wait.kind, wait.address, wait.phase, wait.pending_arrivals, wait.expected_arrivals, wait.tx_bytes,
    )  # fmt: skip


def _by_barrier(waiting: Sequence[Wait]) -> dict[tuple[object, ...], list[Wait]]:
    groups: dict[tuple[object, ...], list[Wait]] = {}
    for wait in waiting:
        groups.setdefault(_state(wait), []).append(wait)
    return groups


def _paragraph(waits: list[Wait]) -> str:
    one = waits[0]
    ctas = list(dict.fromkeys(wait.cta for wait in waits))
    others = f" and {plural(len(ctas) - 1, 'more CTA')}" if len(ctas) > 1 else ""
    lines = [f"  {_barrier(one)} of {cta_name(one.cta)}{others}: {_missing(one)}"]
    sites = dict.fromkeys((wait.line, wait.parity, wait.text) for wait in waits)
    for line, parity, text in sites:
        warps = [
            wait.warp
            for wait in waits
            if wait.cta == one.cta and (wait.line, wait.parity, wait.text) == (line, parity, text)
        ]
        if not warps:
            continue
        name = f"warp{'s' if len(warps) > 1 else ''} {ranges(warps)}"
        wanted = f" for parity {parity}" if parity is not None else ""
        lines.append(f"    {name} at line {line}{wanted}    {text}")
    if one.source is not None:
        lines.append(f"    source {one.source}")
    return "\n".join(lines) + "\n"


def _barrier(wait: Wait) -> str:
    if wait.address is None:
        return wait.kind
    if wait.kind != "mbarrier":
        return f"{wait.kind} {wait.address}"
    symbol = f" ({wait.symbol})" if wait.symbol else ""
    return f"mbarrier {wait.address:#x}{symbol}"


def _missing(wait: Wait) -> str:
    facts: list[str] = []
    if wait.phase is not None:
        facts.append(f"phase {wait.phase} is open")
    if wait.pending_arrivals is not None:
        of = f" of {wait.expected_arrivals}" if wait.expected_arrivals is not None else ""
        facts.append(f"{wait.pending_arrivals}{of} arrivals missing")
    if wait.tx_bytes is not None:
        facts.append(f"{grouped(wait.tx_bytes)} bytes missing" if wait.tx_bytes >= 0 else
                     f"{grouped(-wait.tx_bytes)} bytes more than expected")  # fmt: skip
    return ", ".join(facts) or "never released"
