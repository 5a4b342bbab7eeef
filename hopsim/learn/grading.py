"""Is a learner's program right: the rules of PTX, many orders, the result, and still the same technique?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hopsim.explore.examine import Checked, examine
from hopsim.explore.sweep import IN_ORDER, Hardware, plan_of, run
from hopsim.learn.lesson import Lesson
from hopsim.zoo.twin import TwinCase

SEEDS = 12


@dataclass(frozen=True, slots=True)
class Grade:
    """What hopsim says of an attempt.

    Args:
        checked: the run and the orders.
        has_right_bits: whether the result is that of the solution.
        lost: opcodes that the lesson is about and that are gone.
    """

    checked: Checked
    has_right_bits: bool
    lost: tuple[str, ...]

    @property
    def is_passed(self) -> bool:
        """Whether the lesson is done."""
        return (
            self.checked.result.verdict == "clean"
            and not self.checked.schedules.differing
            and self.has_right_bits
            and not self.lost
        )


def grade(lesson: Lesson, text: str, path: str = "") -> Grade:
    """Judge an attempt; `path` is what messages call it.

    Raises: HopsimError: it cannot be run.
    """
    case = TwinCase(lesson.pair, text, path)
    kernel = case.kernel()
    checked = examine(case, kernel=kernel, seeds=SEEDS)
    found = {instruction.mnemonic for instruction in kernel.body.instructions}
    lost = tuple(name for name in lesson.keeps if not any(_is(one, name) for one in found))
    bits = checked.schedules.baseline.bits
    return Grade(checked, bits == _solution_bits(lesson), lost)


def _is(mnemonic: str, name: str) -> bool:
    return re.match(rf"{re.escape(name)}(\.|$)", mnemonic) is not None


def _solution_bits(lesson: Lesson) -> Mapping[str, str]:
    case = lesson.pair.case(is_good=True)
    return run(case, case.kernel(), plan_of(IN_ORDER), IN_ORDER, Hardware()).ending.bits
