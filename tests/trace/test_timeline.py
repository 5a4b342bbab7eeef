from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import hopsim as hs
from hopsim.kernels.gemm.kernel import build
from hopsim.kernels.gemm.launch import launch_dry
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.gemm.tile import Tile
from hopsim.trace.timeline import Span, Timeline
from hopsim.trace.tracks import lanes, process_key, thread_key

TMA, TENSOR, WARPS, FULL = (
    ("sm 0", "tma"), ("sm 0", "tensor core"), ("sm 0", "cta 0 warps 4-7"), ("sm 0", "cta 0 mbarrier 0x400"),
)  # fmt: skip


def small() -> Timeline:
    """Two copies in flight complete a phase, which wakes a warpgroup, which multiplies."""
    timeline = Timeline(clock_hz=1.98e9, title="gemm")
    timeline.span(TMA, "load", 10, 110, line=7, op=1)
    timeline.span(TMA, "load", 12, 130.5, line=8, op=2)
    timeline.span(FULL, "phase 0", 0, 130.5)
    timeline.span(WARPS, "mbarrier", 20, 140, line=30)
    timeline.span(WARPS, "run", 140, 150)
    timeline.span(TENSOR, "4 x m64n64k16.bf16", 150, 278)
    timeline.flow("bytes", TMA, 130.5, FULL, 130.5)
    timeline.flow("mbarrier", FULL, 130.5, WARPS, 140)
    return timeline


def test_what_stands_on_a_line_is_shown_with_its_intervals() -> None:
    timeline = small()
    timeline.lines = ["", *["nop;"] * 5, "cp.async.bulk  [%r1],\t[%rd2];  // the tile"]
    told = {
        e["args"]["line"]: e["args"].get("ptx")
        for e in timeline.events()
        if "line" in e.get("args", {})
    }
    assert told == {7: "cp.async.bulk [%r1], [%rd2];", 8: None, 30: None}
    assert all("ptx" not in e.get("args", {}) for e in small().events())


def named(events: list[dict[str, Any]], kind: str) -> list[str]:
    return [event["args"]["name"] for event in events if event["name"] == kind]


def test_tracks_spans_and_counters() -> None:
    events = small().events()
    assert named(events, "process_name") == ["sm 0"]
    assert named(events, "thread_name") == [
        "cta 0 warpgroup 1",
        "tma",
        "tma #2",
        "tensor core",
        "cta 0 mbarrier 0x400",
    ]
    spans = [(e["tid"], e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"]
    assert spans == [
        (1, "mbarrier", 20, 120), (1, "run", 140, 10), (2, "load", 10, 100), (3, "load", 12, 118.5),
        (4, "4 x m64n64k16.bf16", 150, 128), (5, "phase 0", 0, 130.5),
    ]  # fmt: skip
    counted = [(e["name"], e["ts"], e["args"]["count"]) for e in events if e["ph"] == "C"]
    assert counted == [
        ("TMA operations in flight", 10, 1), ("TMA operations in flight", 12, 2),
        ("TMA operations in flight", 110, 1), ("TMA operations in flight", 130.5, 0),
        ("wgmma groups in flight", 150, 1), ("wgmma groups in flight", 278, 0),
    ]  # fmt: skip


def test_a_part_of_a_warpgroup_is_shown_with_it() -> None:
    timeline = Timeline()
    timeline.span(("sm 0", "cta 0 warps 4-7"), "run", 0, 10)
    timeline.span(("sm 0", "cta 0 warp 4"), "bulk_group", 10, 20, line=9)
    timeline.span(("sm 0", "cta 0 warps 5-7"), "barrier", 10, 30)
    events = timeline.events()
    assert named(events, "thread_name") == ["cta 0 warpgroup 1", "cta 0 warpgroup 1 #2"]
    assert [(e["tid"], e.get("args")) for e in events if e["ph"] == "X"] == [
        (1, None), (1, {"line": 9, "warps": "4"}), (2, {"warps": "5-7"}),
    ]  # fmt: skip


def test_arrows_lie_on_the_slices_they_join() -> None:
    events = small().events()
    arrows = [(e["ph"], e["name"], e["id"], e["tid"], e["ts"]) for e in events if e["ph"] in "sf"]
    assert arrows == [
        ("s", "bytes", 1, 3, 130), ("f", "bytes", 1, 5, 130),
        ("s", "mbarrier", 2, 5, 130), ("f", "mbarrier", 2, 1, 140),
    ]  # fmt: skip
    slices = [(e["tid"], e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X"]
    for _, _, _, tid, time in arrows:
        assert any(tid == own and start <= time < stop for own, start, stop in slices)


def test_an_arrow_from_nowhere_is_not_written() -> None:
    timeline = Timeline()
    timeline.span(TMA, "load", 10, 20)
    timeline.flow("bytes", TMA, 500, TMA, 15)
    timeline.flow("bytes", TMA, 15, FULL, 15)
    assert [event for event in timeline.events() if event["ph"] in "sf"] == []


def test_only_the_first_sms_are_kept_and_the_rest_is_counted() -> None:
    timeline = Timeline(sms_max=2)
    for sm in (5, 12, 7, 5):
        timeline.span((f"sm {sm}", "tma"), "load", 0, 1)
    timeline.flow("bytes", ("sm 7", "tma"), 0, ("sm 5", "tma"), 1)
    timeline.span(("chip", "launch"), "grid", 0, 1)
    assert named(timeline.events(), "process_name") == ["chip", "sm 5", "sm 12"]
    assert (
        timeline.metadata()["left_out"] == "2 spans and flows of 1 more SMs; the first 2 are shown"
    )


def test_the_file_says_what_its_times_are(tmp_path: Path) -> None:
    small().save(tmp_path / "t.json")
    content = json.loads((tmp_path / "t.json").read_text())
    assert content["otherData"] == {
        "clock_hz": 1.98e9, "kernel": "gemm", "shown": ["sm 0"],
        "timestamps": "SM cycles from the start of the launch: 1 us on the screen is 1 cycle",
    }  # fmt: skip
    assert content["traceEvents"] == small().events()


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.json", "b.json", "a.json.gz", "b.json.gz"):
        small().save(tmp_path / name)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()
    assert (
        gzip.decompress((tmp_path / "a.json.gz").read_bytes()) == (tmp_path / "a.json").read_bytes()
    )


def test_processes_and_threads_are_in_the_order_that_people_read() -> None:
    assert sorted(["sm 10", "sm 9", "chip"], key=process_key) == ["chip", "sm 9", "sm 10"]
    threads = [
        "cta 1 mbarrier 0x10",
        "tensor core",
        "tma",
        "cta 1 mbarrier 0x8",
        "cta 10 warp 0",
        "cta 2 warps 4-7",
        "x",
    ]
    assert sorted(threads, key=thread_key) == [
        "cta 2 warps 4-7", "cta 10 warp 0", "tma", "tensor core", "cta 1 mbarrier 0x8", "cta 1 mbarrier 0x10", "x",
    ]  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20))))
def test_no_two_spans_of_a_row_overlap_and_rows_are_as_few_as_possible(
    pairs: list[tuple[int, int]],
) -> None:
    spans = sorted(
        (Span("x", start, start + length, {}) for start, length in pairs),
        key=lambda s: (s.start, s.stop),
    )
    rows = lanes(spans)
    assert sorted(span for row in rows for span in row if span) == sorted(spans)
    for row in rows:
        assert all(a.stop <= b.start for a, b in pairwise(row))
    lasting = [span for span in spans if span.stop > span.start]
    most = max((sum(s.start <= t.start < s.stop for s in lasting) for t in lasting), default=0)
    assert len(rows) <= max(most + (len(lasting) < len(spans)), 0)


def test_a_launch_gives_its_timeline_the_ptx(tmp_path: Path) -> None:
    kernel = build("wgmma-simple", GemmProblem(64, 64, 64), Tile(64, 64, 64), 1)
    launch_dry(hs.Gpu(), kernel, trace=True).save_trace(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    told = [event["args"] for event in events if "line" in event.get("args", {})]
    assert told
    lines = kernel.ptx.splitlines()
    for args in told:
        assert args["ptx"].split()[0] in lines[args["line"] - 1]


def test_the_copy_that_ends_a_phase_is_told_by_its_number() -> None:
    timeline = Timeline()
    timeline.span(TMA, "load", 10, 110, op=1)
    timeline.span(TMA, "load", 12, 110, op=2)
    timeline.span(FULL, "phase 0", 0, 110)
    timeline.flow("bytes", TMA, 110, FULL, 110, 2)
    arrows = [(e["ph"], e["tid"], e["ts"]) for e in timeline.events() if e["ph"] in "sf"]
    assert arrows == [("s", 2, 109.5), ("f", 3, 109.5)]


def test_no_arrow_ends_before_it_starts() -> None:
    timeline = Timeline()
    timeline.span(TMA, "load", 109.6, 110, op=1)
    timeline.span(FULL, "phase 0", 0, 110)
    timeline.flow("bytes", TMA, 110, FULL, 110, 1)
    # What began when the phase was over did not end it.
    timeline.span(TMA, "load", 120, 130, op=2)
    timeline.flow("bytes", TMA, 130, FULL, 110, 2)
    arrows = [(e["ph"], e["ts"]) for e in timeline.events() if e["ph"] in "sf"]
    assert arrows == [("s", 109.6), ("f", 109.6)]


def test_slices_that_touch_do_not_overlap_when_they_are_rounded() -> None:
    timeline = Timeline()
    timeline.span(TENSOR, "first", 0.0004, 100.0009)
    timeline.span(TENSOR, "second", 100.0009, 200)
    first, second = (e for e in timeline.events() if e["ph"] == "X")
    assert round(first["ts"] + first["dur"], 3) == second["ts"] == 100.001


def test_arrows_of_a_launch_lead_from_the_copy_that_ended_a_phase(tmp_path: Path) -> None:
    kernel = build("warp-specialized", GemmProblem(256, 256, 256), Tile(128, 128, 64), 2)
    launch_dry(hs.Gpu(), kernel, trace=True).save_trace(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]

    def nanoseconds(time: float) -> int:
        return round(time * 1000)

    def end(span: dict[str, Any]) -> int:
        return nanoseconds(span["ts"]) + nanoseconds(span["dur"])

    def under(arrow: dict[str, Any]) -> dict[str, Any]:
        row = [s for s in spans if (s["pid"], s["tid"]) == (arrow["pid"], arrow["tid"])]
        time = nanoseconds(arrow["ts"])
        (found,) = [s for s in row if nanoseconds(s["ts"]) <= time < end(s)]
        return found

    tails = {event["id"]: event for event in events if event["ph"] == "s"}
    tips = {event["id"]: event for event in events if event["ph"] == "f"}
    assert set(tails) == set(tips)
    assert all(tails[k]["ts"] <= tips[k]["ts"] for k in tails)
    brought = [k for k in tails if tails[k]["name"] == "bytes"]
    # Four CTAs, each of which loads four stages.
    assert len(brought) == 16
    for k in brought:
        assert end(under(tails[k])) == end(under(tips[k]))
    rows: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for span in sorted(spans, key=lambda s: s["ts"]):
        rows.setdefault((span["pid"], span["tid"]), []).append(span)
    for row in rows.values():
        assert all(end(a) <= nanoseconds(b["ts"]) for a, b in pairwise(row))


def test_what_is_in_flight_when_a_run_is_cut_off_is_shown_to_its_end(tmp_path: Path) -> None:
    kernel = build("warp-specialized", GemmProblem(64, 64, 256), Tile(64, 64, 64), 2)
    run = launch_dry(hs.Gpu(), kernel, trace=True, max_cycles=6000)
    run.save_trace(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    loads = [event for event in events if event["name"] == "tma load"]
    assert loads
    assert max(load["ts"] + load["dur"] for load in loads) >= 6000
