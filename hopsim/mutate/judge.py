"""Are all mutants of a correct kernel reported?

score = judge(subject, equivalents)
score.percent, [str(mutant) for mutant in score.survivors]
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol

from hopsim.errors import HopsimError, LaunchError, PtxError
from hopsim.explore.case import Case
from hopsim.explore.examine import check_once
from hopsim.hazards.facts import CheckOptions
from hopsim.mutate.equivalents import Equivalent
from hopsim.mutate.operators import Mutant, mutants
from hopsim.results import LaunchResult

STRICT: Final = CheckOptions(strict=True)
STEPS_MAX: Final = 60_000
"""A mutant that takes more is one that never ends; the launches of the subjects take some thousands."""


class Subject(Protocol):
    """A correct kernel with its launch; plain data, so that other processes can have it."""

    @property
    def name(self) -> str:
        """Unique."""
        ...

    @property
    def text(self) -> str:
        """PTX."""
        ...

    def case(self, text: str) -> Case:
        """Return the launch of a changed text."""
        ...


@dataclass(frozen=True, slots=True)
class Judgment:
    """What became of one mutant.

    Args:
        outcome: `reported`; `contested` (only strict mode reports it); `equivalent`; `survivor`; `refused` (no legal
            PTX).
        rules: of the hazards found.
        why: the reason why it is equivalent, or was refused.
    """

    mutant: Mutant
    outcome: str
    rules: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """All judgments of one subject."""

    subject: str
    judgments: tuple[Judgment, ...]

    def of(self, outcome: str) -> list[Judgment]:
        """Return the judgments with an outcome."""
        return [one for one in self.judgments if one.outcome == outcome]

    @property
    def survivors(self) -> list[Judgment]:
        """Mutants that hopsim should have reported."""
        return self.of("survivor")

    @property
    def percent(self) -> float:
        """Reported of all that should be: contested, equivalent and refused ones are not counted."""
        reported = len(self.of("reported"))
        counted = reported + len(self.survivors)
        return 100.0 if not counted else 100.0 * reported / counted


def judge_mutant(
    subject: Subject,
    mutant: Mutant,
    equivalents: Sequence[Equivalent] = (),
    contested: frozenset[str] = frozenset(),
) -> Judgment:
    """Run one mutant in order with the checker, and in strict mode when that finds nothing.

    Args:
        contested: rules that the subject itself breaks in strict mode.
    """
    case = subject.case(mutant.ptx)
    try:
        kernel = case.kernel()
        result, _ = check_once(case, kernel, max_steps=STEPS_MAX)
    except (PtxError, LaunchError) as error:
        return Judgment(mutant, "refused", why=error.what)
    except HopsimError as error:
        return Judgment(mutant, "reported", why=error.what)
    rules = tuple(sorted(_hazards(result)))
    if rules or result.verdict in ("deadlock", "not-modelled"):
        return Judgment(mutant, "reported", rules or (result.verdict,))
    strict, _ = check_once(case, kernel, options=STRICT, max_steps=STEPS_MAX)
    more = sorted(_hazards(strict) - contested)
    if more:
        return Judgment(mutant, "contested", tuple(more), "reported in strict mode")
    for equivalent in equivalents:
        if equivalent.covers(subject.name, mutant, subject.text):
            return Judgment(mutant, "equivalent", why=equivalent.why)
    return Judgment(mutant, "survivor")


def _hazards(result: LaunchResult) -> set[str]:
    return {hazard.rule for hazard in result.hazards if hazard.level == "hazard"}


class _Worker:
    subject: Subject
    equivalents: Sequence[Equivalent]
    contested: frozenset[str]


def _begin(subject: Subject, equivalents: Sequence[Equivalent], contested: frozenset[str]) -> None:
    _Worker.subject, _Worker.equivalents, _Worker.contested = subject, equivalents, contested


def _judge(mutant: Mutant) -> Judgment:
    return judge_mutant(_Worker.subject, mutant, _Worker.equivalents, _Worker.contested)


def judge(
    subject: Subject,
    equivalents: Sequence[Equivalent] = (),
    *,
    every: int = 1,
    processes: int = 1,
    tell: Callable[[Judgment], None] | None = None,
) -> Score:
    """Judge the mutants of a subject.

    Args:
        every: take one mutant of so many.
        processes: how many to use; 1 stays in this one.
        tell: is told each judgment as it comes.
    Raises: LaunchError: the subject itself is not clean.
    """
    case = subject.case(subject.text)
    kernel = case.kernel()
    result, _ = check_once(case, kernel)
    if result.verdict != "clean":
        raise LaunchError(
            f"{subject.name} itself is {result.verdict}: {', '.join(h.rule for h in result.hazards)}",
            hint="mutants are made of correct kernels",
        )
    contested = frozenset(_hazards(check_once(case, kernel, options=STRICT)[0]))
    chosen = mutants(kernel)[::every]
    found: list[Judgment] = []
    if processes <= 1:
        for mutant in chosen:
            found.append(judge_mutant(subject, mutant, equivalents, contested))
            if tell is not None:
                tell(found[-1])
        return Score(subject.name, tuple(found))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        processes, context, initializer=_begin, initargs=(subject, equivalents, contested)
    ) as pool:
        for one in pool.map(_judge, chosen, chunksize=2):
            found.append(one)
            if tell is not None:
                tell(one)
    return Score(subject.name, tuple(found))
