"""Tables on terminals of usual widths: names and numbers are there in full."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console, RenderableType
from typer.testing import CliRunner

from hopsim.cli import output
from hopsim.cli.app import app
from hopsim.cli.config import facts_table
from hopsim.cli.output import plain_text
from hopsim.config import load
from hopsim.hazards.rules import RULES
from hopsim.learn.lessons import LESSONS
from hopsim.report.accuracy import Row, counter_table, rows_table
from hopsim.report.columns import Bar, Column, Columns, Kind, Words, blocks, fold
from hopsim.report.explain import rule_list
from hopsim.report.fp8 import fp8_table
from hopsim.report.ladder import Rung, ladder_table
from hopsim.report.stalls import MEANINGS, stall_chart
from hopsim.report.surroundings import Way, ways_table
from hopsim.report.zoo import zoo_table
from hopsim.zoo.catalog import ROOMS
from hopsim.zoo.silicon import read_recording

WIDTHS = (80, 100)
PARTS = re.compile(r"[^\s_]+_?|_")


def screen(stream: io.StringIO, width: int) -> Console:
    return Console(
        file=stream, force_terminal=True, width=width, color_system=None, highlight=False, emoji=False, markup=False,
    )  # fmt: skip


def on_terminal(table: RenderableType, width: int) -> list[str]:
    stream = io.StringIO()
    screen(stream, width).print(table)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def result(cycles: int, time_us: float) -> Any:
    return SimpleNamespace(cycles=cycles, time_us=time_us, verdict="clean")


def fp8() -> Columns:
    errors = SimpleNamespace(relative=1.28e-4, worst=1.16e-3)
    outcomes: Any = [
        SimpleNamespace(name=name, result=result(cycles, 6000.0), is_exact=exact, sums=errors, whole=errors)
        for name, cycles, exact in (("fp8-scaled", 234_567, True), ("fp8", 10_728, False))
    ]  # fmt: skip
    return fp8_table(outcomes, 10**12)


def ways() -> Columns:
    launches: Any = [SimpleNamespace(name="copy_map", result=result(4_629, 1.0))] * 3
    label = "dependent (prologue and launch, at most 5,275, hidden)"
    return ways_table(
        [
            Way("plain", "clean", True, tuple(launches[:1]), 7_855),
            Way(label, "not-modelled", False, tuple(launches), 12_022_449),
        ]
    )


def cases() -> Columns:
    sizes = ((4096, 4096, 4096), (16, 28672, 16384))
    names = ("gemm_warp_specialized_e4m3", "mm_bf16_128x256x64_persistent_pointers")
    note = (
        "an instruction that is not modelled, and many more words about it than there are columns"
    )
    rows = [
        Row(name, "calibration", size, 11_234_567.0, 10_234_567.0)
        for name in names
        for size in sizes
    ]
    rows[0] = Row(names[0], "judging", sizes[1], 234_567.0, 210_100.0, is_earlier=True)
    return rows_table([*rows, Row(names[1], "judging", sizes[1], 1_234.0, None, note=note)])  # fmt: skip


def counters() -> Columns:
    names = (
        "smsp__inst_executed.sum", "sm__inst_executed_pipe_tensor_op_gmma.sum", "lts__t_sectors_op_read.sum",
        "l1tex__data_bank_conflicts_pipe_lsu.sum", "cycles at the measured clock",
    )  # fmt: skip
    expected = {name: 1.23456e12 / 7**n for n, name in enumerate(names)}
    return counter_table(expected, {name: 1.1 * value for name, value in expected.items()})


def rungs(with_silicon: bool) -> Columns:
    rate, cycles = (320.5, 1_464_381.0) if with_silicon else (None, None)
    return ladder_table(
        [
            Rung(
                "warp-specialized",
                "128x256x64, 4",
                1_282_482,
                400.0,
                "tensor core",
                rate,
                False,
                cycles,
            ),
            Rung(
                "split-k atomic",
                "128x128x64, 1",
                21_464_381,
                31.4,
                "device memory",
                rate,
                False,
                cycles,
            ),
        ]
    )


TABLES = {
    "stalls": lambda: stall_chart({name: 0.5 / 2**n + 0.001 for n, name in enumerate(MEANINGS)}),
    "ladder": lambda: rungs(False),
    "ladder and silicon": lambda: rungs(True),
    "fp8": fp8,
    "zoo": lambda: zoo_table([twin for room in ROOMS.values() for twin in room], read_recording()),
    "rules": lambda: rule_list(RULES.values()),
    "ways": ways,
    "compare": cases,
    "counters": counters,
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", TABLES)
def test_names_and_numbers_are_there_in_full(name: str, width: int) -> None:
    assert_full(name, TABLES[name](), width)


def assert_full(name: str, table: Columns, width: int) -> None:
    lines = on_terminal(table, width)
    text = "\n".join(lines)
    assert max(map(len, lines)) <= width
    assert "…" not in text
    heads = [one.head for one in table.columns if one.kind in (Kind.NAME, Kind.NUMBER)]
    assert [word for head in heads for word in head.split() if word not in text] == []
    for row in table.rows:
        cells = list(zip(table.columns, row, strict=True))
        names = [str(cell) for one, cell in cells if one.kind is Kind.NAME]
        # Names may fold: between words, or behind what joins their parts.
        assert [part for cell in names for part in PARTS.findall(cell) if part not in text] == []
        if name != "compare":
            assert [word for cell in names for word in cell.split() if word not in text] == []
        numbers = [
            re.escape(str(cell))
            for one, cell in cells
            if one.kind is Kind.NUMBER and cell and not isinstance(cell, Words)
        ]
        # One line has all numbers of a row.
        assert re.search(r"(^|\s)" + r"\s.*?".join(numbers), text, re.MULTILINE), (numbers, text)


@pytest.mark.parametrize("name", TABLES)
def test_what_is_no_terminal_has_no_width(name: str) -> None:
    """Neither fold nor cut: a line each for the header and the rows."""
    table = TABLES[name]()
    lines = plain_text(table).splitlines()
    assert len(lines) == len(table.rows) + any(one.head for one in table.columns)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "command",
    [
        "gemm --m 64 --n 64 --k 64 --no-values", "fp8 --m 128 --n 128 --k 128", "zoo list", "explain", "learn",
        "layout mma m16n8k16", "layout copy --thr (16,8):(8,1) --val (1,8)", "layout smem", "layout descriptor",
        "micro shared_memory_latency --recorded", "calibrate",
    ],
)  # fmt: skip
def test_every_command_with_a_table(
    command: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is longer than a few letters of what a file gets is on the screen too, but for bars."""
    plain = CliRunner().invoke(app, command.split())
    stream = io.StringIO()
    monkeypatch.setattr(output, "terminal", lambda: screen(stream, width))
    assert CliRunner().invoke(app, command.split()).exit_code == plain.exit_code == 0
    lines = stream.getvalue().splitlines()
    shown = {word for line in lines for word in line.split()}
    wanted = {word for word in plain.stdout.split() if re.search(r"\d", word)}
    whole = re.sub(r"\s", "", stream.getvalue())
    assert max(map(len, lines)) <= width
    assert "…" not in whole
    # What is longer than its column may be broken behind what joins its parts; numbers alone are not.
    lacking = wanted - shown
    assert [word for word in lacking if re.fullmatch(r"[-+~]?[\d,.]+(e[-+]\d+)?%?", word)] == []
    assert [one for one in LESSONS if command == "learn" and one.name not in shown] == []


def test_bars_give_way_first_then_notes_then_names() -> None:
    table = Columns(
        Column("name"), Column("count", Kind.NUMBER), Column(kind=Kind.BAR), Column(kind=Kind.NOTE)
    )
    table.add_row("one long name", "1,234,567", Bar(1.0), "what this row is about")
    table.add_row("b", "1", Bar(0.5), "more")
    table.add_row("", "", Bar(0.25))
    assert on_terminal(table, 70) == [
        "name               count",
        "one long name  1,234,567  ████████████████████  what this row is about",
        "b                      1  ██████████            more",
        "                          █████",
    ]
    # The bar is gone, and with it the row that had nothing else.
    assert on_terminal(table, 43) == [
        "name              count",
        "one long name 1,234,567 what this row is",
        "                        about",
        "b                     1 more",
    ]
    assert on_terminal(table, 20) == [
        "name           count",
        "one long   1,234,567",
        "name",
        "b                  1",
    ]


def test_what_never_fits_goes_on_below() -> None:
    table = Columns(Column("name"), *(Column(f"n{i}", Kind.NUMBER) for i in range(4)))
    table.add_row("a", *["1,234,567"] * 4)
    assert on_terminal(table, 30) == [
        "name         n0         n1",
        "a     1,234,567  1,234,567",
        "",
        "name         n2         n3",
        "a     1,234,567  1,234,567",
    ]


def test_lists_of_numbers_fold_behind_commas() -> None:
    table = Columns(Column("name"), Column("values", Kind.NUMBER, is_left=True))
    table.add_row("a.key", Words("8,16,16,16,18"))
    table.add_row("another.key", "1980MHz")
    assert on_terminal(table, 21) == [
        "name         values",
        "a.key        8,16,16,",
        "             16,18",
        "another.key  1980MHz",
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_names_and_numbers_of_a_configuration_are_there_in_full(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = facts_table(load("h100-sxm"))
    assert_full("config show", table, width)
    stream = io.StringIO()
    monkeypatch.setattr(output, "terminal", lambda: screen(stream, width))
    assert CliRunner().invoke(app, ["config", "show"]).exit_code == 0
    assert [line.rstrip() for line in stream.getvalue().splitlines()] == on_terminal(table, width)


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_sources_stand_below_their_numbers_where_they_would_be_a_narrow_column(width: int) -> None:
    hardware = load("h100-sxm")
    lines = on_terminal(facts_table(hardware), width)
    assert max(map(len, lines)) <= width
    below = [line for line in lines if line.startswith("    ") and line[4:5].strip()]
    text = " ".join(line.strip() for line in below)
    assert [one.key for one in hardware.facts if " ".join(one.source.split()) not in text] == []


def test_notes_stand_beside_or_below_their_rows() -> None:
    table = Columns(Column(), Column(kind=Kind.NOTE), least_note=12)
    table.add_row("a.name.of.twenty.cell", "words that explain it")
    assert on_terminal(table, 46) == ["a.name.of.twenty.cell  words that explain it"]
    assert on_terminal(table, 39) == [
        "a.name.of.twenty.cell  words that",
        "                       explain it",
    ]
    assert on_terminal(table, 30) == ["a.name.of.twenty.cell", "    words that explain it"]
    table = Columns(Column("name"), Column("why", kind=Kind.NOTE), least_note=12)
    table.add_row("a.name.of.twenty.cell", "words that explain it")
    table.add_row("b", "others")
    assert on_terminal(table, 30) == [
        "name",
        "a.name.of.twenty.cell",
        "    words that explain it",
        "b",
        "    others",
    ]


def test_long_words_break_at_their_joints_and_numbers_do_not() -> None:
    assert fold("8,16,16,18", 6) == ["8,16,", "16,18"]
    assert fold("lts__t_sectors_op_read.sum", 12) == ["lts__t_", "sectors_op_", "read.sum"]
    assert fold("took 1,234.5 of 10", 9) == ["took", "1,234.5", "of 10"]
    assert fold("", 9) == []
    assert blocks((4, 50), 20, 2) == [(0, 1)]
