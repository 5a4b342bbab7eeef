"""The figures of the README's text are those of the recordings; HOPSIM_UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import re
from pathlib import Path

from hopsim.zoo.catalog import TWINS
from hopsim.zoo.silicon import read_recording
from tests.cli.golden import assert_golden

README = Path(__file__).parents[2] / "README.md"


def zoo_figures() -> str:
    entries = read_recording().entries
    # What only costs time, or is contested, gets a note and is not wrong.
    twins = [twin for twin in TWINS if twin.level == "hazard"]
    silicon = [entries[twin.name].bad for twin in twins if twin.name in entries]
    hidden = sum(not (one.wrong or one.hang or one.error) for one in silicon)
    told = [any(entries[twin.name].sanitizer.values()) for twin in twins if twin.name in entries]
    named = sum(not twin.missed for twin in twins)
    return (
        f"| of {len(twins)} wrong programs | |\n|---|---|\n"
        f"| hopsim names the rule, on one run, with no GPU | {named} |\n"
        f"| compute-sanitizer reports something, all four tools, on an H100 | {sum(told)} |\n"
        f"| the H100 gives the right bits in 20 of 20 runs all the same | {hidden} |\n"
    )


def test_the_zoo() -> None:
    page = README.read_text(encoding="utf-8")
    block = f"<!-- zoo -->\n{zoo_figures()}<!-- /zoo -->"
    made, count = re.subn("<!-- zoo -->.*<!-- /zoo -->", lambda _: block, page, flags=re.DOTALL)
    assert count == 1
    assert_golden(made, README)
