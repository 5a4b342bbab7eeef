"""The zoo: each bad twin is reported on one run in order, each good twin is not, under any order; ptxas takes them all."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from hopsim.explore.examine import check_once
from hopsim.explore.sweep import IN_ORDER, Hardware, orders, plan_of, run, sweep
from hopsim.hazards.rules import RULES
from hopsim.zoo.catalog import ROOMS, TWINS, twin_named, twins_of
from hopsim.zoo.trial import check_twin, rules_of, strict_hazards, try_twin
from hopsim.zoo.twin import Twin, TwinCase

every_twin = pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)


@every_twin
def test_bad_is_found_and_good_is_silent(twin: Twin) -> None:
    trial = try_twin(twin)
    assert (trial.found, trial.bad.verdict) == (tuple(sorted(twin.expected)), twin.verdict)
    assert [hazard.rule for hazard in trial.good.hazards] == []
    assert trial.good.verdict == "clean"
    causes = {cause for hazard in trial.bad.hazards for cause in hazard.causes}
    is_named = twin.rule in causes | set(trial.found)
    assert is_named == (not twin.missed), "what hopsim misses says why, and only that"


@every_twin
def test_good_is_the_same_under_any_order(twin: Twin) -> None:
    case = twin.case(is_good=True)
    kernel = case.kernel()
    baseline = run(case, kernel, plan_of(IN_ORDER), IN_ORDER, Hardware()).ending
    endings = sweep(case, orders(4), kernel=kernel)
    assert [str(one.order) for one in endings if one.differs(baseline)] == []


# What stands on one line is told apart by instruction: real compilers join the lines of inline assembly.
@pytest.mark.parametrize("width", [1 << 20, 2], ids=["all", "two"])
@every_twin
def test_lines_do_not_matter(twin: Twin, width: int) -> None:
    for is_good in (True, False):
        case = TwinCase(twin, joined(twin.ptx(is_good), width))
        told = check_once(case, case.kernel())[0]
        alone = check_twin(twin, is_good)
        assert told.verdict == alone.verdict
        for level in ("hazard", "note"):
            assert rules_of(told, level) == rules_of(alone, level)


def joined(text: str, width: int) -> str:
    """Return a text with the lines of its body joined, some to a line."""
    head, body = re.sub(r"//.*", "", text).split("{\n", 1)
    lines = body.splitlines()
    rows = [" ".join(lines[at : at + width]) for at in range(0, len(lines), width)]
    return head + "{\n" + "\n".join(rows) + "\n"


@every_twin
def test_strict_mode_says_what_the_zoo_says(twin: Twin) -> None:
    assert strict_hazards(twin) == twin.strict


@every_twin
def test_ptxas_takes_both(twin: Twin) -> None:
    ptxas = shutil.which("ptxas")
    if ptxas is None:
        pytest.skip("ptxas is not on the path")
    for is_good in (True, False):
        done = subprocess.run(
            [ptxas, "-arch=sm_90a", "-o", "/dev/null", "-"],
            input=twin.ptx(is_good), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


@every_twin
def test_twins_differ_and_say_how(twin: Twin) -> None:
    bad, good = twin.ptx(False).splitlines(), twin.ptx(True).splitlines()
    assert bad != good
    assert twin.rule in RULES
    assert twin.story.count("Bad: ") == 1


def test_names_are_unique_and_lead_to_twins() -> None:
    assert len({twin.name for twin in TWINS}) == len(TWINS) >= 60
    assert sum(map(len, ROOMS.values())) == len(TWINS)
    assert all(twin_named(twin.name) is twin for twin in TWINS)
    assert [twin.name for twin in twins_of("HS112")] == ["barrier-as-proxy-fence"]
