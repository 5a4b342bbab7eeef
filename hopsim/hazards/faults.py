"""What the machine itself stops at, told as findings: the hardware would trap, or PTX leaves the effect undefined."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hopsim.errors import FaultPlace, MachineFault
from hopsim.findings import FAULT, Access
from hopsim.hazards.findings import Finding, Findings
from hopsim.hazards.rules import RULES
from hopsim.hazards.world import WARP

# Kind of a fault -> rule: their messages hold names of the program, so that no word of them tells anything.
KINDS: Final[Mapping[str, str]] = {
    "assertion": "HS700", "outside": "HS703", "misaligned": "HS704", "unwritten": "HS702", "read-only": "HS700",
}  # fmt: skip
# What a fault without a kind says, in hopsim's own words -> rule; the first that matches.
WORDS: Final[tuple[tuple[str, str], ...]] = (
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

ELECT: Final = (
    "let one thread alone execute :{line}, and issue the copies whose bytes it expects:  elect.sync _|p, -1;  @p ..."
    "  (in one warp)"
)


def rule_of(fault: MachineFault) -> str:
    """Return the rule that a fault belongs to."""
    if fault.kind:
        return KINDS[fault.kind]
    # The source line that may follow is of no account: other instructions may stand on it.
    said = fault.what.partition("\n")[0]
    for pattern, rule in WORDS:
        if re.search(pattern, said):
            return rule
    return "HS700"


def _is_shared(fault: MachineFault) -> bool:
    """Whether a fault is about shared memory, where barriers lie; names of the program, and a second line, tell nothing."""
    said = fault.what.partition("\n")[0]
    if fault.kind == "assertion":
        return False
    if fault.kind:
        return "shared" in said.partition(": ")[0] or "shared memory of cta" in said
    return "shared" in said or "barrier" in said


def _lacks_elect(rule: str, place: FaultPlace, mnemonic: str, said: str) -> bool:
    """Whether all lanes expect the bytes of a phase, of which the mbarrier counts one, or a few: one of them should."""
    if rule not in ("HS206", "HS221") or ".expect_tx" not in mnemonic:
        return False
    # No lanes are named where all of a warp fault, or several warps.
    lanes = place.lanes.bit_count() or WARP
    if rule == "HS221":
        return lanes > 1
    counted = re.search(r"more of (\d+)", said)
    return counted is not None and 2 * int(counted[1]) <= lanes


def enter(findings: Findings, fault: MachineFault) -> None:
    """Enter a fault as the last finding of a run."""
    rule = rule_of(fault)
    place = fault.where if isinstance(fault.where, FaultPlace) else None
    line = 0 if place is None else place.line
    text = findings.facts.text(line)
    if rule == "HS211" and "multicast::cluster" in text:
        rule = "HS204"
    is_shared = _is_shared(fault)
    if rule == "HS702" and is_shared:
        rule = "HS701"
    hint = fault.hint or f"read PTX ISA, {RULES[rule].ptx}"
    if place is not None and _lacks_elect(rule, place, findings.facts.mnemonic(line), fault.what):
        rule, hint = "HS207", ELECT.format(line=line)
    side: Access | None = None
    if place is not None:
        side = Access(
            what=FAULT, cta=place.cta, warp=place.warp, lanes=place.lanes, line=line, text=text, proxy="generic",
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
            hint,
        )
    )
