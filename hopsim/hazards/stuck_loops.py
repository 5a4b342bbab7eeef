"""Loops that wait for a word which nobody changes any more."""

from __future__ import annotations

import re
from typing import Final

from hopsim.findings import Deadlock, Wait
from hopsim.hazards.findings import Findings
from hopsim.hazards.polls import Polls
from hopsim.hazards.reasons import ELSE, LIKELY, SURE, Reason, Weighed, finding_of
from hopsim.hazards.world import World

STRONG_WRITE: Final = re.compile(
    r"\bst\.(release|relaxed|volatile|mmio)\b|\batom\b|\bred(\.async)?\b"
)


def explain_loops(
    world: World, findings: Findings, polls: Polls, deadlock: Deadlock | None
) -> list[Weighed]:
    """Return a finding for each loop that has no end."""
    if deadlock is None:
        return []
    found: list[Weighed] = []
    told: set[int] = set()
    for wait in deadlock.waiting:
        if wait.kind != "spin":
            continue
        missed = polls.missed(wait)
        if missed is not None:
            found.append((SURE, missed))
        elif wait.line not in told and not wait.text.startswith("mbarrier"):
            told.add(wait.line)
            why = _why_spinning(world, wait, deadlock)
            cta = world.cta(world.facts.index_of(wait.cta))
            found.append((why.weight, finding_of(findings, cta, wait, "spin", why)))
    return found


def _why_spinning(world: World, wait: Wait, deadlock: Deadlock) -> Reason:
    """Return why a loop has no end: nobody is left who writes what it reads, or who would is stuck or has no room."""
    later = any(
        STRONG_WRITE.search(world.facts.text(line))
        for other in deadlock.waiting
        if other.kind != "spin"
        for line in world.facts.lines_after(other.line)
    )
    state = f"the loop at :{wait.line} reads the same for ever: nobody changes it any more"
    hint = f"write what ends the loop at :{wait.line} before its writer exits or waits for these threads"
    if ".cas" in wait.text or ".exch" in wait.text:
        hint = f"release what :{wait.line} takes, on every path:  atom.exch or st.release of the value it waits for"
    elif "." not in wait.text.removesuffix(".uni"):
        state = f"the loop at :{wait.line} reads nothing that others could change"
        hint = "give the loop a way out"
    elif deadlock.not_started:
        state += f", while {deadlock.not_started} CTAs wait for room on the chip"
        hint = "launch no more CTAs than the chip holds at once, or let none wait for a later one"
    return Reason("HS514", state, hint, ELSE if later else LIKELY)
