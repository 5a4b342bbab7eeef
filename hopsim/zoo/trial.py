"""`try_twin`: is hopsim right about a twin?"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hopsim.explore.examine import check_once
from hopsim.hazards.facts import CheckOptions
from hopsim.results import LaunchResult
from hopsim.zoo.twin import Twin

STRICT_VERSION = "9.3"
"""In strict mode texts of older versions would all need a proxy fence after `mbarrier.init`."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What hopsim says of both twins on one run in order."""

    twin: Twin
    bad: LaunchResult
    good: LaunchResult

    @property
    def found(self) -> tuple[str, ...]:
        """Rules of the findings of the bad twin, of its level, sorted."""
        return rules_of(self.bad, self.twin.level)

    @property
    def is_right(self) -> bool:
        """Whether the bad twin gives what the zoo expects, and the good one nothing at all."""
        return (
            self.found == tuple(sorted(self.twin.expected))
            and self.bad.verdict == self.twin.verdict
            and not self.good.hazards
            and self.good.verdict == "clean"
        )


def rules_of(result: LaunchResult, level: str = "hazard") -> tuple[str, ...]:
    """Return the rules of the findings of a run that have a level, sorted, each once."""
    return tuple(sorted({hazard.rule for hazard in result.hazards if hazard.level == level}))


def check_twin(twin: Twin, is_good: bool, options: CheckOptions | None = None) -> LaunchResult:
    """Run one twin in order, with the checker."""
    case = twin.case(is_good)
    return check_once(case, case.kernel(), options=options)[0]


def try_twin(twin: Twin) -> Trial:
    """Run both twins."""
    return Trial(twin, check_twin(twin, is_good=False), check_twin(twin, is_good=True))


def strict_hazards(twin: Twin) -> tuple[str, ...]:
    """Return the rules of the hazards that the good twin has in strict mode."""
    newer = replace(twin, version=STRICT_VERSION)
    return rules_of(check_twin(newer, is_good=True, options=CheckOptions(strict=True)))
