"""Figures of accuracy against sums done by hand, and the page."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopsim.cli.output import plain_text
from hopsim.report import accuracy
from hopsim.report.accuracy import Row, clear_kendall, figures, kendall
from hopsim.report.accuracy_page import html, page, scatter

DRAM = {"dram__bytes_read.sum": 80e6, "dram__bytes_write.sum": 20e6}
ROWS = [
    Row(
        "a",
        "judging",
        (512, 512, 512),
        1000.0,
        1100.0,
        0.02,
        DRAM,
        {**DRAM, "dram__bytes_read.sum": 75e6},
    ),
    Row("b", "judging", (512, 512, 512), 2000.0, 1050.0),
    Row("c", "judging", (512, 512, 512), 1500.0, 1500.0),
    Row("a", "judging", (16, 4096, 64), 400.0, None, note="deadlock"),
    Row("a", "calibration", (64, 64, 64), 100.0, 99.0),
]


def test_figures() -> None:
    found = figures(ROWS[:4])
    assert (found.cases, found.failed, found.within) == (3, 1, 2)
    assert found.mape == pytest.approx((10 + 47.5 + 0) / 3)
    assert found.bias == pytest.approx((10 - 47.5) / 3)
    assert found.worst is ROWS[1]
    # a < c < b is measured, b < a < c predicted: one pair of three agrees.
    assert found.kendall == pytest.approx(-1 / 3)
    assert found.regret == pytest.approx(100.0)
    assert found.dram_error == pytest.approx(-5.0)


def test_nothing_to_rank() -> None:
    found = figures(ROWS[4:])
    assert (found.kendall, found.regret, found.dram_error) == (None, None, None)
    assert figures([]).worst is None


def test_small_traffic_is_not_judged() -> None:
    small = dict.fromkeys(DRAM, 1000000.0)
    assert accuracy.dram_error(Row("a", "judging", (1, 1, 1), 1.0, 1.0, None, small, DRAM)) is None


@given(st.lists(st.integers(0, 50), min_size=2, max_size=12, unique=True))
def test_kendall_of_an_order_with_itself(values: list[int]) -> None:
    assert kendall(values, values) == pytest.approx(1.0)
    assert kendall(values, [-v for v in values]) == pytest.approx(-1.0)


def test_pairs_within_the_spread_of_a_measurement_have_no_order() -> None:
    def rows(spread: float | None) -> list[Row]:
        values = [(100.0, 100.0), (103.0, 99.0), (120.0, 119.0)]
        return [Row(str(n), "judging", (1, 1, 1), *pair, spread) for n, pair in enumerate(values)]

    assert clear_kendall(rows(0.05)) == 1.0
    assert clear_kendall(rows(0.01)) == clear_kendall(rows(None)) == pytest.approx(1 / 3)
    # Nothing is told apart; a tie of predictions is no agreement.
    assert clear_kendall(rows(0.5)) == 1.0
    tied = [Row("a", "judging", (1, 1, 1), 10.0, 5.0), Row("b", "judging", (1, 1, 1), 20.0, 5.0)]
    assert clear_kendall(tied) == 0.0
    assert figures(rows(0.05)).clear_kendall == 1.0


def test_kendall_with_ties() -> None:
    assert kendall([1, 1, 2, 3], [1, 2, 3, 4]) == pytest.approx(5 / (5 * 6) ** 0.5)
    assert kendall([1, 1], [1, 2]) == 1.0


def test_table() -> None:
    lines = plain_text(accuracy.rows_table(ROWS)).splitlines()
    assert lines[1].split() == ["a", "512", "1,100", "1,000", "+10.0", "%", "judging"]
    assert lines[4].split() == [
        "a",
        "16",
        "x",
        "4096",
        "x",
        "64",
        "-",
        "400",
        "deadlock",
        "judging",
    ]
    text = plain_text(accuracy.figures_text("judging", figures(ROWS[:4])))
    assert text.startswith(
        "judging: 3 cases, 1 not simulated; MAPE 19.2 %; mean error -12.5 %; 2 within 10 %;"
    )
    assert "worst -47.5 % (b, 512)" in text


def test_counters_side_by_side() -> None:
    text = plain_text(
        accuracy.counter_table({"x": 100.0, "zero": 0.0, "only": 1.0}, {"x": 90.0, "zero": 2.0})
    )
    assert [line.split() for line in text.splitlines()[1:]] == [
        ["x", "90", "100", "-10.0", "%"], ["zero", "2", "0", "-"],
    ]  # fmt: skip


def test_page() -> None:
    text = page(ROWS, ["About."], "plot.svg")
    assert text.startswith("# Accuracy\n")
    assert "![Predicted against measured cycles](plot.svg)" in text
    assert text.index("## Calibration set") < text.index("## Judging set")
    assert "| `b` | 512 | 1,050 | 2,000 | -47.5 % |  |  |" in text
    assert "| `a` | 16 x 4096 x 64 | - | 400 | deadlock |  |  |" in text
    assert "| HBM bytes read | 1 | 6.2 % | -6.2 % |" in text
    assert "| 512 | 3 | 19.2 % | -12.5 % | -47.5 % | -0.33 | -0.33 | 100.0 % |  |  |" in text
    assert "The same programs on another H100" not in text


def test_another_device_beside_the_predictions() -> None:
    again = [replace(ROWS[0], again=980.0), replace(ROWS[1], again=2100.0), *ROWS[2:]]
    others = accuracy.measured_again(again)
    assert [row.predicted for row in others] == [980.0, 2100.0]
    assert figures(others).mape == pytest.approx(3.5)
    assert figures(others).kendall is None  # two kernels have no rank
    text = page(again, ["About."], "plot.svg")
    told = text[text.index("The same programs on another H100") :]
    assert told.index("- 2 cases\n- MAPE 3.5 %") < told.index("| M x N x K |")
    assert (
        "| 512 | 3 | 19.2 % | -12.5 % | -47.5 % | -0.33 | -0.33 | 100.0 % | 3.5 % | 1.00 |" in text
    )
    assert "| `b` | 512 | 1,050 | 2,000 | -47.5 % |  | +5.0 % |" in text
    assert text.count("on another H100") == 1  # nothing of the calibration set was measured again


def test_plot() -> None:
    tree = ElementTree.fromstring(scatter(ROWS))
    names = [one.tag.rpartition("}")[2] for one in tree]
    assert names.count("circle") == 4 + 2  # predictions, and the legend
    titles = [one.text for one in tree.iter() if one.tag.endswith("title")]
    assert titles[1] == "b, 512: -47.5 %"
    assert scatter(ROWS) in html(ROWS)
    assert scatter([]).startswith("<svg")


def test_counters_that_say_little_are_left_out_or_told_as_a_share() -> None:
    written, conflicts = "dram__bytes_write.sum", "l1tex__data_bank_conflicts_pipe_lsu.sum"
    wavefronts = "l1tex__data_pipe_lsu_wavefronts.sum"
    few = {written: 256.0, conflicts: 30.0, wavefronts: 1000.0}
    many = {written: 1e6, conflicts: 0.0, wavefronts: 500.0}
    got = {written: 9e5, conflicts: 5.0, wavefronts: 1.0}
    rows = [
        Row("a", "judging", (1, 1, 1), 1.0, 1.0, expected=expected, got=got)
        for expected in (few, many)
    ]
    assert accuracy.counter_errors(rows) == [
        ("HBM bytes written, 64 KB and more", 1, pytest.approx(10.0), pytest.approx(-10.0)),
        ("bank conflicts, of all wavefronts", 2, pytest.approx(1.75), pytest.approx(-0.75)),
    ]
