"""Why a wait is in vain, and how sure that is: what the modules that explain a hang (`stuck`) have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from hopsim.findings import Wait
from hopsim.hazards.clocks import Agent
from hopsim.hazards.findings import Finding, Findings
from hopsim.hazards.rules import RULES
from hopsim.hazards.world import CtaState

# How sure a reason is: the surest ones are told, the others are taken for their consequences.
SURE, LIKELY, PERHAPS, ELSE, LAST = range(5)
Weighed: TypeAlias = tuple[int, Finding]
"""How sure, and what."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a wait is in vain: the rule, the state of the barrier, what to do, and which warp left instead, if one did."""

    rule: str
    state: str
    hint: str
    weight: int = SURE
    gone: Agent | None = None


def finding_of(findings: Findings, cta: CtaState, wait: Wait, what: str, why: Reason) -> Finding:
    """Return the finding of a wait in vain, of which `what` names the kind."""
    agent = cta.agents[wait.warp]
    space = "register" if wait.kind == "setmaxnreg" else "shared::cta"
    if wait.kind == "spin" and ".shared" not in wait.text:
        space = "global"
    side = findings.thread_side(agent, wait.lanes or agent.live, wait.line, what, space=space)
    gone = why.gone
    left = None if gone is None else findings.thread_side(gone, gone.exited, gone.exit_line, "exit")
    return Finding(why.rule, "hazard", RULES[why.rule].sentence, left, side, why.state, why.hint)
