"""Findings as SARIF 2.1.0, for code hosts and editors.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", 27 March 2020.
"""

from __future__ import annotations

from typing import Any, Final

from hopsim.findings import Access, Hazard
from hopsim.hazards.rules import EFFECTS, RULES, Rule
from hopsim.report.quantities import cta_name, lanes_of
from hopsim.report.suppressions import Triage, fingerprints
from hopsim.results import LaunchResult

SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
DEADLOCK: Final = "HSDEADLOCK"
NOT_MODELLED: Final = "HSNOTMODELLED"
_EXTRA: Final = {
    DEADLOCK: ("deadlock", "warps wait for something that never comes"),
    NOT_MODELLED: ("not-modelled", "something that ran is not modelled or was not checked"),
}


def sarif_log(result: LaunchResult, found: Triage, path: str) -> dict[str, Any]:
    """Return a log with one run.

    Args:
        found: the findings that count, and those left out, which are told as suppressed.
        path: of the PTX text, relative to what the log is read in.
    """
    everything = [*found.kept, *(hazard for hazard, _ in found.left_out)]
    names = fingerprints(result.kernel, everything)
    results = [_hazard(hazard, name, path) for hazard, name in zip(everything, names, strict=True)]
    for entry, (_, why) in zip(results[len(found.kept) :], found.left_out, strict=True):
        entry["suppressions"] = [{"kind": "external", "justification": why}]
    results += _waits(result, path)
    for note in result.not_modelled:
        results.append(
            {
                "ruleId": NOT_MODELLED,
                "level": "warning",
                "message": {"text": note.why},
                "locations": [_place(path, note.line, note.text)],
            }
        )
    used = list(dict.fromkeys(entry["ruleId"] for entry in results))
    for entry in results:
        entry["ruleIndex"] = used.index(entry["ruleId"])
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "hopsim",
                        "rules": [_rule(name) for name in used],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }


def _rule(name: str) -> dict[str, Any]:
    rule: Rule | None = RULES.get(name)
    if rule is None:
        title, sentence = _EXTRA[name]
        return {"id": name, "name": title, "shortDescription": {"text": sentence}}
    effects = "; ".join(EFFECTS[letter] for letter in rule.effect.split(","))
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.sentence},
        "fullDescription": {"text": f"{rule.sentence}. PTX: {rule.ptx}. On silicon: {effects}."},
        "help": {"text": f"hopsim explain {rule.id}"},
    }


def _hazard(hazard: Hazard, name: str, path: str) -> dict[str, Any]:
    sides = [side for side in (hazard.first, hazard.second) if side is not None]
    main = hazard.second or hazard.first
    # A fault brings its instruction, on a line of its own.
    message = ": ".join(line.strip() for line in hazard.message.splitlines())
    text = [message if message.endswith(";") else f"{message}."]
    label = "Rule" if hazard.is_fault else "Missing"
    text += [f"{label}: {hazard.missing}."] if hazard.missing else []
    text += [f"Try: {hazard.hint}"] if hazard.hint else []
    entry: dict[str, Any] = {
        "ruleId": hazard.rule,
        "level": "error" if hazard.level == "hazard" else "note",
        "message": {"text": " ".join(text)},
        "locations": [] if main is None else [_place(path, main.line, main.text)],
        "partialFingerprints": {"hopsim/v1": name},
        "occurrenceCount": hazard.count,
    }
    related = [
        _place(path, side.line, side.text) | {"id": k, "message": {"text": _who(side)}}
        for k, side in enumerate(sides)
    ]
    for side in sides:
        if side.source is not None:
            related.append(
                {
                    "id": len(related),
                    "physicalLocation": {
                        "artifactLocation": {"uri": _uri(side.source.file)},
                        "region": {"startLine": max(1, side.source.line)},
                    },
                    "message": {"text": f"source of the {side.what}"},
                }
            )
    if related:
        entry["relatedLocations"] = related
    return entry


def _waits(result: LaunchResult, path: str) -> list[dict[str, Any]]:
    if result.deadlock is None:
        return []
    entries: list[dict[str, Any]] = []
    for wait in {(wait.line, wait.text): wait for wait in result.deadlock.waiting}.values():
        place = _place(path, wait.line, wait.text)
        entries.append(
            {
                "ruleId": DEADLOCK,
                "level": "error",
                "message": {"text": str(wait)},
                "locations": [place],
            }
        )
    if not entries:
        entries.append(
            {"ruleId": DEADLOCK, "level": "error", "message": {"text": str(result.deadlock)}}
        )
    return entries


def _who(side: Access) -> str:
    who = f"{side.what} by {side.actor + ', issued by ' if side.actor else ''}{cta_name(side.cta)} warp {side.warp}"
    return f"{who} lanes {lanes_of(side.lanes)}" if side.lanes else who


def _place(path: str, line: int, text: str) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(path)}}
    if line:
        place["region"] = {"startLine": line, "snippet": {"text": text}}
    return {"physicalLocation": place}


def _uri(path: str) -> str:
    """Return a path as a relative reference, which may not hold blanks or backslashes."""
    from urllib.parse import quote

    return quote(path.replace("\\", "/"), safe="/:._-~")
