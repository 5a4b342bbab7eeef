"""Errors in TOML files: where, what is expected, and what stands there, in hopsim's words."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from tomllib import _parser  # type: ignore[attr-defined]

import pytest

from hopsim.errors import ConfigError
from hopsim.toml_text import _REPEATED, _WORDS, parse, read

WRONG = {
    "= 1": "1:1: expected a name, a [table] or a comment, got '= 1'",
    "a. = 1": "1:4: expected a name, got '= 1'",
    "a 1": "1:3: expected = after a name, got '1'",
    "x = 1\na = 1 2": "2:7: expected the end of the line, got '2'",
    "a =": "1: expected a value, got the end of the file",
    "a =\nb = 1": "1:4: expected a value, got the end of the line",
    "a = yes": "1:5: expected a value, got 'yes'",
    "a = " + "y" * 50: "1:5: expected a value, got '" + "y" * 30 + "...'",
    "a = 2020-02-30": "1:5: expected a date that there is, got '2020-02-30'",
    "[a": "1: expected ] after the name of a table, got the end of the file",
    "[[a]\nb = 1": "1:4: expected ]] after the name of a table, got ']'",
    "a = [1 2]": "1:8: expected , or ] in a list, got '2]'",
    "a = {b = 1 c = 2}": "1:12: expected , or } in a table, got 'c = 2}'",
    'a = "C:\\dir"': "expected an escape after a backslash in a text",
    'a = "\\uXYZW"': "expected the digits of a character after a backslash in a text",
    'a = "\\ud800"': "expected a character that there is after a backslash in a text",
    'a = "b': "1: expected the end of a text, got the end of the file",
    "a = 'b": "1: expected the end of a text, got the end of the file",
    'a = """b': "1: expected the end of a text, got the end of the file",
    "a = '''b": "1: expected the end of a text, got the end of the file",
    'a = "b\nc = 1': "1:7: expected text, or the quote that ends it, got the end of the line",
    "a = 'b\nc = 'd'": "1:7: expected text, or the quote that ends it, got the end of the line",
    "a = 1\na = 2": "expected each name and table once, got one again in 'a = 2'",
    "[a]\n[b]\n[a]": "expected each name and table once, got one again in '[a]'",
    "a = {b = 1, b = 2}": "expected each name and table once, got one again in 'a = {b = 1, b = 2}'",
    "a = {b = 1}\n[a.c]": "expected each name and table once, got one again in '[a.c]'",
    "a = " + "[" * 100_000: "mine.toml: lists or tables are nested too deep",
    "a = " + "9" * 5000: "mine.toml: a whole number has too many digits",
    "a = 1\r\nb = \r\n": "2:5: expected a value, got the end of the line",
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: repr(text[:20]))
def test_what_is_wrong_with_a_text(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(text, "mine.toml")
    assert WRONG[text] in str(refused.value)
    assert refused.value.where.startswith("mine.toml")
    assert not re.search(
        r"\(at |statement|namespace|immutable|Invalid|document", str(refused.value)
    )


def test_every_word_of_the_parser_has_one_of_ours() -> None:
    said = [text for _, text in re.findall(r'raise (?:suffixed_err|TOMLDecodeError)\(\s*(?:\w+, \w+, )?f?(["\'])(.+?)\1', inspect.getsource(_parser))]  # fmt: skip
    assert len(said) > 15
    known = (*_REPEATED, *(beginning for beginning, _, _ in _WORDS), "Expected {expect!r}")
    assert [text for text in said if not text.replace("\\\\", "\\").startswith(known)] == []


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b'a = 1\nb = "\xff"\n')
    with pytest.raises(
        ConfigError, match=r"mine.toml:2: expected text in UTF-8, got the byte 0xff"
    ):
        read(path)
    path.write_bytes(b"a = 1\r\nb = 2\r\n")
    assert read(path) == {"a": 1, "b": 2}
    with pytest.raises(ConfigError, match=r"none.toml: cannot read it: No such file or directory"):
        read(tmp_path / "none.toml")
