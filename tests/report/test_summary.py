"""What Python and notebooks show of a launch: a line as its repr, all of it as its summary."""

from __future__ import annotations

import re

import pytest

import hopsim as hs
from hopsim.findings import Hazard
from hopsim.report.summary import summary
from hopsim.results import LaunchResult

SHAPE = {"grid": (1, 1, 1), "block": (32, 1, 1)}
HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"


def test_a_result_is_one_line_in_a_notebook() -> None:
    result = LaunchResult(verdict="clean", kernel="k", cycles=5084, time_us=2.567, **SHAPE)
    assert repr(result) == "<LaunchResult of k: clean, 5,084 cycles, 2.57 us>"
    hazard = Hazard("HS101", "gen-write-to-tma-store", "hazard", "stored, then read by TMA")
    found = LaunchResult(verdict="hazard", kernel="k", hazards=(hazard, hazard), **SHAPE)
    assert repr(found) == "<LaunchResult of k: hazard, HS101>"


def test_a_summary_is_text_and_a_page() -> None:
    gpu = hs.ProfilingGpu()
    result = gpu.launch(hs.loads(HEAD + ".visible .entry k() { ret; }")["k"], grid=1, block=32)
    shown = hs.summary(result)
    assert re.match(r"kernel +k\nlaunch +grid 1, block 32\n", str(shown))
    assert repr(shown) == str(shown)
    assert "where the warps' time went" in str(shown)
    page = shown._repr_mimebundle_(("text/html",), ())["text/html"]
    assert page.startswith("<pre")
    assert "grid 1, block 32" in page
    lines = str(hs.summary(gpu.line_times))
    assert lines.startswith("where it went, by line (all 1)")
    assert ":4" in lines


def test_what_has_no_summary_is_told() -> None:
    with pytest.raises(TypeError, match="expected a LaunchResult or line_times .* got int"):
        summary(3)
