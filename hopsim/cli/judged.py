"""What the commands share that run a kernel of ours: a launch with values or without, and what is judged of its output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from hopsim.report.comparison import Comparison
    from hopsim.report.facts import Row
    from hopsim.results import LaunchResult


class Done(Protocol):
    """A finished launch and its output."""

    @property
    def result(self) -> LaunchResult:
        """What the launch gave."""
        ...


D = TypeVar("D", bound=Done)
Given = TypeVar("Given")


@dataclass(frozen=True)
class Outcome:
    """Whether an output is right; without one nothing is wrong with it.

    Args:
        rows: of the report.  content: of the JSON.
    """

    is_right: bool = True
    rows: list[Row] = field(default_factory=list["Row"])
    content: dict[str, Any] = field(default_factory=lambda: {"comparison": None})


def run_judged(
    dry: Callable[[], LaunchResult],
    operands: Callable[[], Given],
    run: Callable[[Given], D],
    judge: Callable[[D, Given], Outcome],
    *,
    values: bool,
) -> tuple[LaunchResult, Outcome]:
    """Launch a kernel and judge its output, if it ended and values were computed.

    Args:
        dry: launches it without values.
        operands: makes what `run` launches it on, and `judge` judges the launch by.
    """
    from hopsim.report.launch import unfinished_rows

    if not values:
        return dry(), Outcome()
    given = operands()
    done = run(given)
    if not done.result.is_finished:
        return done.result, Outcome(rows=unfinished_rows(done.result))
    return done.result, judge(done, given)


def outcome_of_bits(comparison: Comparison) -> Outcome:
    """Return the outcome that a comparison of bits says."""
    return Outcome(
        comparison.is_equal,
        [("bits", comparison.__rich__())],
        {"comparison": {**asdict(comparison), "equal": comparison.is_equal}},
    )
