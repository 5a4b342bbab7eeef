"""Findings that are known: left out by `--suppress`, or because a baseline file has them.

A baseline knows a finding by what does not change when lines move: the rule, the kernel, the instructions of both sides,
and the how many-th of its kind it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from hopsim.errors import ConfigError
from hopsim.findings import Hazard

BASELINE_FORMAT: Final = 1
PATTERN: Final = re.compile(r"(HS\d{3})(?:@(\d+))?")
FINGERPRINT: Final = re.compile(r"HS\d{3}-[0-9a-f]{16}")
"""Of a finding in a baseline, see `fingerprints`."""


@dataclass(frozen=True, slots=True)
class Suppression:
    """A rule, everywhere or at one PTX line of either side."""

    rule: str
    line: int | None

    def __str__(self) -> str:
        return self.rule if self.line is None else f"{self.rule}@{self.line}"

    def covers(self, hazard: Hazard) -> bool:
        """Whether it leaves out a finding."""
        if hazard.rule != self.rule:
            return False
        return self.line is None or self.line in lines_of(hazard)


def parse_suppression(text: str, known: Iterable[str]) -> Suppression:
    """Return the suppression that `HS101` or `HS101@43` says.

    Args:
        known: all rule ids.
    Raises: ConfigError: it says neither, or there is no such rule.
    """
    found = PATTERN.fullmatch(text)
    if found is None or found.group(1) not in set(known):
        raise ConfigError(
            f"expected HSnnn or HSnnn@LINE, got {text!r}",
            where="--suppress",
            hint="hopsim explain lists the rules",
        )
    return Suppression(found.group(1), int(found.group(2)) if found.group(2) else None)


def lines_of(hazard: Hazard) -> list[int]:
    """Return the PTX lines of both sides."""
    return [side.line for side in (hazard.first, hazard.second) if side is not None and side.line]


def fingerprints(kernel: str, hazards: Sequence[Hazard]) -> list[str]:
    """Return a name for each finding that stays the same when lines are added or removed elsewhere."""
    seen: dict[tuple[str, ...], int] = {}
    names: list[str] = []
    for hazard in hazards:
        sides = [side.text if side is not None else "" for side in (hazard.first, hazard.second)]
        key = (hazard.rule, kernel, *sides)
        seen[key] = seen.get(key, 0) + 1
        text = "\n".join((*key, str(seen[key])))
        names.append(f"{hazard.rule}-{blake2b(text.encode(), digest_size=8).hexdigest()}")
    return names


@dataclass(frozen=True, slots=True)
class Triage:
    """Findings that count, and those that are left out, each with why.

    Args:
        idle: suppressions that cover no finding: perhaps a line moved, perhaps it is mended.
    """

    kept: tuple[Hazard, ...]
    left_out: tuple[tuple[Hazard, str], ...]
    idle: tuple[Suppression, ...] = ()


def triage(
    hazards: Sequence[Hazard],
    kernel: str,
    suppressions: Sequence[Suppression] = (),
    baseline: Iterable[str] = (),
) -> Triage:
    """Return which findings count."""
    old = set(baseline)
    kept: list[Hazard] = []
    left_out: list[tuple[Hazard, str]] = []
    for hazard, name in zip(hazards, fingerprints(kernel, hazards), strict=True):
        if any(one.covers(hazard) for one in suppressions):
            left_out.append((hazard, "suppressed"))
        elif name in old:
            left_out.append((hazard, "in the baseline"))
        else:
            kept.append(hazard)
    idle = tuple(one for one in suppressions if not any(one.covers(hazard) for hazard in hazards))
    return Triage(tuple(kept), tuple(left_out), idle)
