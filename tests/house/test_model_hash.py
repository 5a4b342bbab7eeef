"""The hash of the model: what decides a simulation changes it, what only explains it does not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hopsim.cli.model_hash import MODEL, code_of, model_hash

PACKAGE = Path(__file__).parents[2] / "hopsim"
SOURCE = '''"""What it is."""

CYCLES = 7  # measured
"""Of what."""
TEXT = """
# not a comment

not a docstring"""


def twice(value: int) -> int:
    """Return it twice.

    Source: none.
    """
    # because
    return 2 * value
'''
CODE = '''CYCLES = 7
TEXT = """
# not a comment

not a docstring"""
def twice(value: int) -> int:
    return 2 * value
'''


def test_comments_docstrings_and_empty_lines_are_not_code() -> None:
    assert code_of(SOURCE) == CODE


@pytest.mark.parametrize(
    "change",
    [("7", "8"), ("2 * value", "value * 2"), ("# not a", "# no"), ("comment\n\n", "comment\n")],
)
def test_numbers_statements_and_texts_are(change: tuple[str, str]) -> None:
    changed = SOURCE.replace(*change)
    assert changed != SOURCE
    assert code_of(changed) != CODE


def test_a_string_beside_other_code_on_its_line_takes_none_of_it_away() -> None:
    for source in ('"what"; CYCLES = 7\n', '"""what\nit is"""; CYCLES = 7\n', 'class A: "what"\n'):
        assert code_of(source) == source


def test_nothing_but_texts_is_taken_from_the_model() -> None:
    paths = [path for name in MODEL for path in (PACKAGE / name).rglob("*.py")]
    assert len(paths) > 100
    for path in paths:
        source = path.read_text(encoding="utf-8")
        assert _statements(code_of(source)) == _statements(source), path


def _statements(source: str) -> list[str]:
    """Return all expressions but constants; of those of a `raise`, whose words go, what they are made of."""
    tree = ast.parse(source)
    raised = {
        part for one in ast.walk(tree) if isinstance(one, ast.Raise) for part in ast.walk(one)
    }
    told = {part for one in raised if isinstance(one, ast.JoinedStr) for part in ast.walk(one)}
    return [
        type(one).__name__ if one in raised else ast.dump(one)
        for one in ast.walk(tree)
        if isinstance(one, ast.expr) and not isinstance(one, ast.Constant) and one not in told
    ]


RAISE = """def check(n: int) -> None:
    if n < 0:
        raise ValueError(
            f"got {n}",  # why
            "words", n,
        ) from None
"""


@pytest.mark.parametrize(
    "change",
    [
        ('f"got {n}"', '"expected more"'), ('"words"', '"no words"'), ("  # why", ""),
        ('"words", n', '"words",\n            n'),
    ],
)  # fmt: skip
def test_the_words_of_an_error_are_no_code(change: tuple[str, str]) -> None:
    changed = RAISE.replace(*change)
    assert changed != RAISE
    assert code_of(changed) == code_of(RAISE)


@pytest.mark.parametrize(
    "change",
    [
        ("ValueError", "TypeError"), ('"words", n', '"words", n + 1'), (" from None", ""), ("n < 0", "n < 1"),
        ('"words", ', ""),
    ],
)  # fmt: skip
def test_what_is_raised_and_when_is(change: tuple[str, str]) -> None:
    changed = RAISE.replace(*change)
    assert changed != RAISE
    assert code_of(changed) != code_of(RAISE)


def test_a_raise_beside_other_code_on_its_line_stays() -> None:
    source = 'if CYCLES: raise ValueError("words")\n'
    assert code_of(source) == source


def test_settings_change_it() -> None:
    assert model_hash("h100-sxm") == model_hash("h100-sxm", {})
    assert model_hash("h100-sxm") != model_hash("h100-sxm", {"dram.bandwidth": "4.8TB/s"})
