"""Findings of the hazard checker: rule, both accesses, the edges there are, the edge that is missing, what to add."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from hopsim.findings import Access, Hazard
from hopsim.hazards.rules import RULES
from hopsim.report.quantities import cta_name, grouped, lanes_of, plural
from hopsim.report.story import Story

MOST_FINDINGS = 20
LABEL_WIDTH = 9


def hazard_findings(hazards: Sequence[Hazard], path: str = "") -> Story:
    """Return the findings, one paragraph each.

    Args:
        path: of the PTX text, for the places.
    """
    text = Text()
    for hazard in hazards[:MOST_FINDINGS]:
        _finding(text, hazard, path)
    if len(hazards) > MOST_FINDINGS:
        text.append(f"... and {plural(len(hazards) - MOST_FINDINGS, 'finding')} more\n")
    text.rstrip()
    return Story(text)


def _finding(text: Text, hazard: Hazard, path: str) -> None:
    places = [
        f":{access.line}"
        for access in (hazard.first, hazard.second)
        if access is not None and access.line
    ]
    times = f"  ({grouped(hazard.count)} occurrences)" if hazard.count > 1 else ""
    text.append(
        f"{hazard.rule} {hazard.title}",
        style="bold red" if hazard.level == "hazard" else "bold yellow",
    )
    text.append(f"  {path}{' -> '.join(places)}{times}\n" if places else f"{times}\n")
    _line(text, "note" if hazard.level == "note" else "what", hazard.message)
    for access in (hazard.first, hazard.second):
        if access is not None:
            _line(text, access.what, _access(access))
    _line(text, "chain", "  ->  ".join(hazard.chain))
    _line(text, "rule" if hazard.is_fault else "missing", hazard.missing)
    _line(text, "causes", "; ".join(_cause(rule) for rule in hazard.causes))
    _line(text, "try", hazard.hint)
    _line(text, "silicon", hazard.silicon)
    _line(text, "PTX", hazard.ptx)


def _cause(rule: str) -> str:
    known = RULES.get(rule)
    return rule if known is None else f"{rule} {known.name}"


def _line(text: Text, label: str, what: str) -> None:
    if what:
        text.append(f"  {label:<{LABEL_WIDTH - 1}} {what}\n")


def _access(access: Access) -> str:
    who = f"{cta_name(access.cta)} warp {access.warp}"
    if access.lanes:
        who += f" lanes {lanes_of(access.lanes)}"
    by = f"{access.actor}, issued by " if access.actor else ""
    place = f"{access.name} " if access.name else ""
    if access.start is not None and access.stop is not None:
        place += f"{access.space} {access.start:#x}..{access.stop - 1:#x}"
        place += f" ({access.symbol})" if access.symbol else ""
    else:
        place += access.space
    source = f"  ({access.source})" if access.source is not None else ""
    return f"{access.proxy:<8} {_opcode(access.text)}    {by}{who}    {place}{source}"


def _opcode(text: str) -> str:
    """Return an instruction without guard and operands; its line stands above."""
    words = text.split()
    kept = words[1:] if words and words[0].startswith("@") else words
    return kept[0].rstrip(";") if kept else ""
