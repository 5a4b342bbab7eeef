"""The result of a launch: its verdict holds together, its JSON is the same bytes each time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hopsim.errors import HopsimError
from hopsim.findings import Access, Deadlock, Hazard, SourceLocation, Wait
from hopsim.results import (
    CUT_OFF,
    LaunchResult,
    NotModelledNote,
    Occupancy,
    Verdict,
    decide_verdict,
)

ACCESS = Access(
    "write", (1, 0, 0), 4, 1, 118, "st.shared.b32 [%r1], %r2;", "generic", "shared::cta", 1024, 1028
)
HAZARD = Hazard(
    "HS101", "gen-write-to-tma-store", "hazard", "stored, then read by TMA", ACCESS, missing="fence"
)
NOTE = Hazard("HS212", "mbarrier-init-twice", "note", "initialised twice")
GAP = NotModelledNote("ex2.approx is not bit exact", 12, "ex2.approx.f32 %r1, %r2;")
WAIT = Wait(
    (0, 0, 0), 1, 1, "mbarrier", 77, "mbarrier.try_wait.parity.shared.b64 p, [%r3], 0;",
    address=0x400, phase=2, parity=0, pending_arrivals=1, expected_arrivals=2, tx_bytes=4096,
)  # fmt: skip
DEADLOCK = Deadlock((WAIT,), ("TMA load of map a, 4096 bytes",), cycle=1200)

MAKE = """
from hopsim.findings import *
from hopsim.results import *
import numpy as np
result = LaunchResult("hazard", "gemm", (8, 8, 1), (128, 1, 1),
    hazards=(Hazard("HS101", "gen-write-to-tma-store", "hazard", "x", Access(
        "write", (1, 0, 0), 4, 1, 118, "st", "generic", "shared::cta", 0, 4, SourceLocation("a.py", 3))),),
    cycles=np.int64(1234), time_us=np.float64(0.625), clock_hz=1.98e9,
    counters={name: index for index, name in enumerate({"b", "a", "d", "c"}, 1) if False}
        | {"sm__b.sum": 2, "dram__bytes_read.sum": np.uint64(7), "lts__a.pct": np.float32(0.5)},
    stalls={"long_scoreboard": 0.5, "barrier": 0.25}, occupancy=Occupancy(2, 8, 64, "shared memory", 168, 99, 132))
"""


def simple(verdict: Verdict = "clean", **more: object) -> LaunchResult:
    return LaunchResult(verdict, "k", (1, 1, 1), (32, 1, 1), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("hazards", "deadlock", "gaps", "verdict", "code"),
    [
        ((), None, (), "clean", 0),
        ((NOTE,), None, (), "clean", 0),
        ((NOTE, HAZARD), None, (GAP,), "hazard", 1),
        ((HAZARD,), DEADLOCK, (GAP,), "deadlock", 3),
        ((NOTE,), None, (GAP,), "not-modelled", 4),
    ],
)
def test_verdict_and_exit_code(
    hazards: tuple[Hazard, ...],
    deadlock: Deadlock | None,
    gaps: tuple[NotModelledNote, ...],
    verdict: Verdict,
    code: int,
) -> None:
    decided = decide_verdict(hazards, deadlock, gaps)
    assert decided == verdict
    assert simple(decided, hazards=hazards, deadlock=deadlock, not_modelled=gaps).exit_code == code


@pytest.mark.parametrize(
    ("verdict", "findings"),
    [
        ("clean", {"hazards": (HAZARD,)}),
        ("clean", {"not_modelled": (GAP,)}),
        ("clean", {"deadlock": DEADLOCK}),
        ("deadlock", {}),
        ("hazard", {"hazards": (NOTE,)}),
    ],
)
def test_a_verdict_cannot_contradict_its_findings(
    verdict: Verdict, findings: dict[str, object]
) -> None:
    with pytest.raises(ValueError, match=r"^verdict '"):
        simple(verdict, **findings)


def test_json_holds_everything_but_the_trace() -> None:
    result = simple("deadlock", deadlock=DEADLOCK, hazards=(HAZARD,), trace=_Trace())
    content = json.loads(result.json())
    assert content["format"] == 1
    assert "trace" not in content
    assert content["deadlock"]["waiting"][0]["tx_bytes"] == 4096
    assert content["hazards"][0]["first"]["start"] == 1024
    assert content["cycles"] is None
    assert list(content) == sorted(content)


def test_json_is_the_same_bytes_in_another_process_with_another_hash_seed() -> None:
    texts = [
        subprocess.run(
            [sys.executable, "-c", MAKE + "\nprint(result.json(), end='')"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1")
    ]
    assert texts[0] == texts[1]
    content = json.loads(texts[0])
    assert content["counters"] == {"dram__bytes_read.sum": 7, "lts__a.pct": 0.5, "sm__b.sum": 2}
    assert content["cycles"] == 1234


@pytest.mark.parametrize("value", [float("nan"), np.float32("inf")])
def test_json_refuses_what_it_cannot_say(value: float) -> None:
    with pytest.raises(ValueError, match="JSON cannot say"):
        simple(counters={"x": value}).json()


def test_json_refuses_objects() -> None:
    with pytest.raises(TypeError, match="JSON cannot say"):
        simple(counters={"x": object()}).json()


def test_results_are_frozen_and_equal_by_content() -> None:
    assert simple(trace=_Trace()) == simple()
    with pytest.raises(AttributeError):
        simple().cycles = 3  # type: ignore[misc]


class _Trace:
    def __init__(self) -> None:
        self.saved: list[str] = []

    def save(self, path: str | Path) -> None:
        self.saved.append(str(path))


def test_save_trace() -> None:
    trace = _Trace()
    simple(trace=trace).save_trace("t.json")
    assert trace.saved == ["t.json"]
    with pytest.raises(HopsimError) as caught:
        simple().save_trace("t.json")
    assert (
        str(caught.value)
        == "this launch recorded no timeline\n  try: trace=True at launch, or --trace FILE"
    )


def test_the_story_of_a_deadlock() -> None:
    assert str(DEADLOCK).splitlines() == [
        "deadlock: 1 warp waits and nothing is on its way to it",
        "  cta (0,0,0) warp 1 waits on mbarrier 0x400 at line 77: phase 2, waited parity 0,"
        " 1 of 2 arrivals missing, 4096 bytes missing  [mbarrier.try_wait.parity.shared.b64 p, [%r3], 0;]",
        "  in flight: TMA load of map a, 4096 bytes",
    ]
    named = Wait((0, 0, 0), 0, 0xFFFFFFFF, "bar", 9, "bar.sync 1, 256;", address=1)
    assert str(named) == "cta (0,0,0) warp 0 waits on bar 1 at line 9  [bar.sync 1, 256;]"


def test_occupancy_share() -> None:
    assert Occupancy(2, 8, 64, "shared memory", 168, 99000, 132).share == 0.125


def test_source_location_reads_as_file_line_column() -> None:
    assert str(SourceLocation("gemm.py", 12)) == "gemm.py:12"
    assert str(SourceLocation("gemm.py", 12, 5)) == "gemm.py:12:5"


def test_a_run_that_faulted_or_hangs_or_was_cut_off_is_not_finished() -> None:
    cut_off = NotModelledNote(CUT_OFF)
    assert simple().is_finished
    assert simple("not-modelled", not_modelled=(GAP,)).is_finished
    assert not simple("hazard", hazards=(HAZARD,), faulted=True).is_finished
    assert not simple("deadlock", deadlock=DEADLOCK).is_finished
    assert not simple("not-modelled", not_modelled=(cut_off,)).is_finished
