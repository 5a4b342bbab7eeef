"""The catalogue of rules agrees with its page, with the advice, and with what the twins show."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from hopsim.errors import ConfigError
from hopsim.hazards.advice_texts import ADVICE
from hopsim.hazards.facts import CheckOptions
from hopsim.hazards.faults import KINDS, WORDS
from hopsim.hazards.rules import EFFECTS, RULES
from hopsim.zoo import catalog
from hopsim.zoo.silicon import read_recording
from tests.hazards.twins import TWINS

PAGE = (Path(__file__).parents[2] / "docs" / "hazards.md").read_text(encoding="utf-8")
FOUND = {"checked": "any order", "by-fault": "when met", "pending": "not looked for"}


def test_the_page_has_each_rule_with_its_sentence() -> None:
    rows = [line for line in PAGE.splitlines() if re.match(r"\| HS\d{3} \|", line)]
    assert rows == [
        f"| {rule.id} | {rule.name} | {rule.sentence} | {rule.ptx} | "
        f"{rule.effect.replace(',', ', ')} | {FOUND[rule.status]} |"
        for rule in RULES.values()
    ]


def test_each_row_of_the_page_is_in_the_table_of_its_hundred() -> None:
    hundred = ""
    for line in PAGE.splitlines():
        if found := re.match(r"### HS(\d)xx:", line):
            hundred = found[1]
        elif found := re.match(r"\| HS(\d)\d{2} \|", line):
            assert found[1] == hundred, line


def test_the_page_has_each_switch() -> None:
    switches = {field.name for field in dataclasses.fields(CheckOptions)} - {"strict"}
    section = PAGE.partition("## Contested rules")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == switches


def test_strict_turns_every_switch() -> None:
    default, strict = CheckOptions().resolved(), CheckOptions(strict=True).resolved()
    for field in dataclasses.fields(CheckOptions):
        assert getattr(default, field.name) != getattr(strict, field.name), field.name


@pytest.mark.parametrize(
    ("switch", "position", "words"),
    [
        ("mbarrier_scope", "allways", "expected 'data' or 'always', got 'allways'"),
        ("strict", "yes", "expected False or True, got 'yes'"),
        ("init_fence", 1, "expected False or True, got 1"),
    ],
)
def test_a_position_that_a_switch_does_not_have_is_refused(
    switch: str, position: object, words: str
) -> None:
    with pytest.raises(ConfigError, match=f"CheckOptions: {switch}: {words}"):
        CheckOptions(**{switch: position})


def test_ids_are_in_order_and_names_are_used_once() -> None:
    assert list(RULES) == sorted(RULES)
    assert len({rule.name for rule in RULES.values()}) == len(RULES)
    for rule in RULES.values():
        assert set(rule.effect.split(",")) <= set(EFFECTS)


def test_what_silicon_did_is_among_what_a_rule_says_it_does() -> None:
    entries = read_recording().entries
    for twin in catalog.TWINS:
        entry = entries.get(twin.name)
        # A pair that the device refuses altogether says nothing of the rule.
        if entry is None or entry.good.error:
            continue
        bad = entry.bad
        # What shows in no run depends on time, only costs time, or has no effect that anybody has seen.
        seen = "E" if bad.error else "H" if bad.hang else "S" if bad.wrong else "SPCU"
        said = set(RULES[twin.rule].effect.split(","))
        assert said & set(seen), twin.name
        assert "U" in seen or "U" not in said, twin.name


def test_advice_and_faults_name_known_rules() -> None:
    assert set(ADVICE) <= set(RULES)
    assert {*KINDS.values(), *(rule for _, rule in WORDS)} <= set(RULES)


def test_all_rules_that_are_looked_for_have_a_twin() -> None:
    shown = {rule for twin in TWINS for words, _, _ in twin.expected for rule in words.split()}
    # HSn00 and HS703's kin catch what no named class takes; HS400 is strict only; HS603 and HS608 are in the zoo.
    general = {"HS000", "HS200", "HS400", "HS700", "HS603", "HS608"}
    looked_for = {rule.id for rule in RULES.values() if rule.status != "pending"}
    assert looked_for - general <= shown, sorted(looked_for - general - shown)
