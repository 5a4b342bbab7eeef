"""`hopsim explain`: every rule of the checker has words, and an example where the zoo has one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hopsim.cli.app import app
from hopsim.hazards.rules import RULES
from hopsim.report.explanations import EXPLANATIONS
from hopsim.zoo.catalog import TWINS
from tests.cli.golden import assert_golden

GOLDEN = Path(__file__).parent / "golden"


def explain(*words: str) -> Result:
    return CliRunner().invoke(app, ["explain", *words])


def test_every_rule_is_explained_and_nothing_else() -> None:
    assert list(EXPLANATIONS) == list(RULES)
    assert all(text.endswith(".") for pair in EXPLANATIONS.values() for text in pair)


@pytest.mark.parametrize("rule", RULES)
def test_each_page_has_its_parts(rule: str) -> None:
    done = explain(rule, "--json", "-")
    (one,) = json.loads(done.stdout)["rules"]
    assert (done.exit_code, one["id"]) == (0, rule)
    assert one["twins"] == sorted(one["twins"], key=one["twins"].index)
    page = explain(rule).stdout
    for part in (one["why"], one["mend"], one["ptx"]):
        assert part in page
    assert ("an example" in page) == bool(one["twins"])


def test_the_page_of_a_missing_fence() -> None:
    assert_golden(explain("HS101").stdout, GOLDEN / "explain_hs101.txt")


def test_names_work_and_unknown_rules_are_refused() -> None:
    assert explain("gen-write-to-tma-store").stdout == explain("hs101").stdout
    done = explain("HS999")
    assert (done.exit_code, "there is no rule 'HS999'" in done.stderr) == (2, True)
    assert "HS009" in explain("off-by-one").stderr


def test_the_list_has_every_rule() -> None:
    lines = explain().stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(RULES)


def test_most_rules_have_an_example() -> None:
    assert len({twin.rule for twin in TWINS}) >= 60
