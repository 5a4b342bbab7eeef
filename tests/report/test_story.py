"""Findings on a narrow terminal keep their shape; in a file no line is broken."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from hopsim.cli.output import plain_text
from hopsim.report.story import Story, shape
from tests.report.test_columns import on_terminal

FINDING = """HS001 tma-read-unwaited  relay.ptx:19 -> :21
  what     shared data used with no wait on its load
  write    async    cp.async.bulk.shared::cluster.global    bulk load, issued by cta (0,0,0)
  try      before :21, loop on mbarrier.try_wait.parity on the mbarrier named at :19

  in flight   nothing: no copy, product or remote arrival is on its way
    warps 0-1 at line 17 for parity 0    mbarrier.try_wait.parity.shared::cta.b64
"""


def test_lines_go_on_below_their_words() -> None:
    assert on_terminal(Story(Text(FINDING.rstrip())), 60) == [
        "HS001 tma-read-unwaited  relay.ptx:19 -> :21",
        "  what     shared data used with no wait on its load",
        "  write    async    cp.async.bulk.shared::cluster.global",
        "           bulk load, issued by cta (0,0,0)",
        "  try      before :21, loop on mbarrier.try_wait.parity on",
        "           the mbarrier named at :19",
        "",
        "  in flight   nothing: no copy, product or remote arrival is",
        "              on its way",
        "    warps 0-1 at line 17 for parity 0",
        "      mbarrier.try_wait.parity.shared::cta.b64",
    ]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100])
def test_no_line_is_too_long_and_no_word_is_lost(width: int) -> None:
    shown = on_terminal(Story(Text(FINDING)), width)
    assert max(map(len, shown)) <= width
    assert "".join("".join(shown).split()) == "".join(FINDING.split())


def test_in_a_file_no_line_is_broken() -> None:
    assert plain_text(Story(Text(FINDING))).rstrip() == FINDING.rstrip()
    assert str(Story(Text(FINDING))) == FINDING


def test_colours_stay_with_their_words() -> None:
    stream = io.StringIO()
    console = Console(
        file=stream, force_terminal=True, width=24, color_system="standard", no_color=False
    )
    console.print(Story(Text.assemble("  what     ", ("a missing wait", "red"))))
    assert [line.rstrip() for line in stream.getvalue().splitlines()] == [
        "  what     \x1b[31ma missing\x1b[0m",
        "           \x1b[31mwait\x1b[0m",
    ]


def test_paragraphs_fill_the_width_and_pictures_stay() -> None:
    prose = Story(
        Text("One thread asks for\na copy of a tile.\n\n    TMA   | copy |\nDone."), is_prose=True
    )
    assert on_terminal(prose, 28) == [
        "One thread asks for a copy",
        "of a tile.",
        "",
        "    TMA   | copy |",
        "Done.",
    ]
    assert plain_text(prose).splitlines()[0] == "One thread asks for"


@pytest.mark.parametrize(
    ("line", "begins"),
    [("", (0, 2)), ("try", (0, 2)), ("  a label that is long  x", (2, 4)), ("  x  y", (5, 5))],
)
def test_where_words_begin(line: str, begins: tuple[int, int]) -> None:
    assert shape(line) == begins
