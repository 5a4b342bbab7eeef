"""The figures of the README's text are those of the recordings and of the pages; HOPSIM_UPDATE_GOLDEN=1 writes the zoo's anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hopsim.zoo.catalog import TWINS
from hopsim.zoo.silicon import read_recording
from tests.cli.golden import assert_golden

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"


def zoo_figures() -> str:
    entries = read_recording().entries
    # What only costs time, or is contested, gets a note and is not wrong; what nobody has recorded cannot be compared.
    twins = [twin for twin in TWINS if twin.level == "hazard" and twin.name in entries]
    silicon = [entries[twin.name].bad for twin in twins]
    hidden = sum(not (one.wrong or one.hang or one.error) for one in silicon)
    told = [any(entries[twin.name].sanitizer.values()) for twin in twins]
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


def found(pattern: str, text: str) -> tuple[str, ...]:
    """Return the groups of a pattern that a text has just once."""
    matches = list(re.finditer(pattern, text, flags=re.MULTILINE))
    assert len(matches) == 1, (pattern, len(matches))
    return matches[0].groups()


def flowing(path: Path) -> str:
    """Return a page without its line breaks."""
    return " ".join(path.read_text(encoding="utf-8").split())


def test_the_ladder() -> None:
    page = (DOCS / "ladder.md").read_text(encoding="utf-8")
    steps, within = found(r"^\| all \| \| \d+ \| \d+ \| (\d+) \| [\d.]+ % \| (\d+) \| \|$", page)
    (right,) = found(r"^([\d.]+) % of the pairs are in the right order", page)
    readme = flowing(README)
    assert f"{right} % of the pairs of steps that an H100 separates" in readme
    assert f"{within} of {steps} steps within 10 %" in readme


OTHERS = {
    "27 in CUDA C++": ("workloads.md", r"^54 launches of 27 kernels; "),
    "32 in CUDA C++": ("workloads.md", r"^63 launches of 32 kernels; "),
    "fourteen GEMMs of CUTLASS 4.2.0": ("libraries.md", r"^## GEMMs of CUTLASS 4.2.0, H100\n\n"),
    "the same": ("libraries.md", r"^## GEMMs of CUTLASS 4.2.0, H200\n\n"),
    "FlashAttention-3": ("libraries.md", r"^## FlashAttention-3 as FlashInfer 0.7.4 has it, H200\n\n"),
    "DeepGEMM's fp8": ("libraries.md", r"^## DeepGEMM's fp8 GEMMs as TensorRT-LLM has them, H200\n\n"),
    "convolutions of ours": ("convolutions.md", "^"),
}  # fmt: skip
"""How a row of the README begins, its page, and what stands before the figures there."""


@pytest.mark.parametrize("row", OTHERS)
def test_the_kernels_of_others(row: str) -> None:
    page, before = OTHERS[row]
    (told,) = found(
        rf"^\| {re.escape(row)}.* \| ([\d, ]+) % \|[^|]*\|$", README.read_text(encoding="utf-8")
    )
    figures = found(
        rf"{before}MAPE ([\d.]+) %, median ([\d.]+) %, worst [+-]([\d.]+) %",
        (DOCS / page).read_text(encoding="utf-8"),
    )
    assert [int(one) for one in told.split(", ")] == [round(float(one)) for one in figures]


def test_the_table_of_accuracy() -> None:
    _, *sets = re.split(
        r"^## (?:Calibration|Judging) set$", (DOCS / "accuracy.md").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )  # fmt: skip
    named = ("calibration", "another H100", "judging", "another H100 on the judging set")
    parts = [part for text in sets for part in text.split("The same programs on another H100")]
    assert len(parts) == len(named)
    for name, text in zip(named, parts, strict=True):
        if name != "another H100":
            assert accuracy_row(name) == accuracy_cells(text), name
    (within,) = found(r"^- (\d+) within 10 %$", parts[2])
    (cases,) = found(r"^- (\d+) cases$", parts[2])
    assert f"{within} of the {cases} are within 10 %" in flowing(README)


def accuracy_row(name: str) -> str:
    """Return the figures that the README has of a set."""
    (row,) = found(rf"^\| {name}[^|]*\| (.*) \|$", README.read_text(encoding="utf-8"))
    return row


def accuracy_cells(text: str) -> str:
    """Return those of its list on the page of accuracy."""
    (cases,) = found(r"^- (\d+) cases$", text)
    (mape,) = found(r"^- MAPE ([\d.]+ %)$", text)
    (worst,) = found(r"^- worst ([+-][\d.]+ %)", text)
    (regret,) = found(r"^- largest regret ([\d.]+ %)$", text)
    kendall, clear = found(
        r"^- Kendall within a size ([\d.]+) \(.*; ([\d.]+) of pairs that silicon", text
    )
    return f"{cases} | {mape} | {worst} | {regret} | {kendall} | {clear}"
