"""Each example prints exactly the `.out` file beside it; HOPSIM_UPDATE_GOLDEN=1 writes the files anew, for review."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.cli.golden import assert_golden

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


def test_there_are_examples_and_no_output_without_one() -> None:
    assert len(SCRIPTS) >= 4
    assert {path.stem for path in EXAMPLES.glob("*.out")} == {path.stem for path in SCRIPTS}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(script), run_name="__main__")
    assert_golden(capsys.readouterr().out, script.with_suffix(".out"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_readme_lists_it(script: Path) -> None:
    assert f"examples/{script.name}" in (EXAMPLES.parent / "README.md").read_text(encoding="utf-8")


def test_the_readme_shows_the_missing_fence() -> None:
    page = (EXAMPLES.parent / "README.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- fence -->\n```\n")[2].partition("```\n<!-- /fence -->")[0]
    assert shown == (EXAMPLES / "missing_fence.out").read_text(encoding="utf-8")
