"""What the machine itself stops at, told as findings: the hardware would trap, or PTX leaves the effect undefined."""

from __future__ import annotations

import re
from typing import Final

from hopsim.errors import MachineFault
from hopsim.events import Place
from hopsim.hazards.findings import Finding, Findings
from hopsim.hazards.rules import RULES
from hopsim.results import FAULT, Access

# What a fault says -> rule; the first that matches.
KINDS: Final[tuple[tuple[str, str], ...]] = (
    # The words of an assertion are the program's own.
    (r"Assertion `.*` failed", "HS700"),
    (r"there is no mbarrier at", "HS211"),
    (r"noComplete|needs only 0 more of 0", "HS220"),
    (r"arrivals? on mbarrier", "HS206"),
    (r"wait on mbarrier .* of another CTA", "HS219"),
    (r"shared::cta access to address .* of CTA rank", "HS218"),
    (r"tx-count of", "HS221"),
    (r"mbarrier\.inval of", "HS214"),
    (r"mbarrier count", "HS200"),
    (r"wgmma\S* (executed by|needs a warpgroup)", "HS015"),
    (r"aligned barrier .* executed by 1 lanes", "HS507"),
    (r"aligned barrier", "HS506"),
    (r"barrier\.cluster", "HS404"),
    (r"is used with .* threads while others", "HS504"),
    (r"threads arrived on barrier", "HS513"),
    (r"elect\.sync", "HS508"),
    (r"descriptor", "HS604"),
    (r"\.shared::cta destination in another CTA", "HS607"),
    (r"a tensor map in [\w:]+ memory", "HS608"),
    (r"bulk copy of \d+ bytes|address .* of a bulk copy|of a tensor copy is not aligned", "HS606"),
    (r"never written", "HS702"),
    (r"not aligned", "HS704"),
    (
        r"leave |in no allocation|outside shared memory|end beyond|ends beyond|names CTA rank|reaches global",
        "HS703",
    ),
)
WHERE: Final = re.compile(r":(\d+)(?::(\d+))?: cta \((\d+),(\d+),(\d+)\)(?: warps? (\d+))?")


def rule_of(fault: MachineFault) -> str:
    """Return the rule that a fault belongs to."""
    # The source line that may follow is of no account: other instructions may stand on it.
    said = fault.what.partition("\n")[0]
    for pattern, rule in KINDS:
        if re.search(pattern, said):
            return rule
    return "HS700"


def enter(findings: Findings, fault: MachineFault) -> None:
    """Enter a fault as the last finding of a run."""
    rule = rule_of(fault)
    place = WHERE.search(fault.where)
    line, column, *who = (0, 0) if place is None else (int(one or 0) for one in place.groups())
    if column:
        line = Place(line, column)
    text = findings.facts.text(line)
    if rule == "HS211" and "multicast::cluster" in text:
        rule = "HS204"
    # The instruction that may follow on a second line names both spaces where it copies between them.
    is_shared = "shared" in fault.what.partition("\n")[0]
    if rule == "HS702" and is_shared:
        rule = "HS701"
    side: Access | None = None
    if place is not None:
        x, y, z, warp = who
        side = Access(
            what=FAULT, cta=(x, y, z), warp=warp, lanes=0, line=line, text=text, proxy="generic",
            space="shared::cta" if is_shared else "global", source=findings.facts.sources.get(line),
        )  # fmt: skip
    findings.add(
        Finding(
            rule,
            "hazard",
            fault.what,
            None,
            side,
            RULES[rule].sentence,
            fault.hint or f"read PTX ISA, {RULES[rule].ptx}",
        )
    )
