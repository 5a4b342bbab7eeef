from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from hopsim.cli.output import plain_text
from hopsim.errors import LaunchError
from hopsim.findings import Access, Deadlock, Hazard, SourceLocation, Wait
from hopsim.isa.support import SupportRow
from hopsim.report.columns import bar
from hopsim.report.comparison import compare_bits
from hopsim.report.deadlock import deadlock_story
from hopsim.report.hazards import hazard_findings
from hopsim.report.ladder import percent
from hopsim.report.launch import (
    beyond_choice,
    exit_code,
    launch_report,
    not_checked,
    rate,
    unfinished_rows,
)
from hopsim.report.lint import KernelLint, lint_report
from hopsim.report.quantities import (
    clock,
    grouped,
    lanes_of,
    plural,
    ranges,
    share,
    signed,
    size,
    triple,
)
from hopsim.report.stalls import stall_chart
from hopsim.report.support import support_table
from hopsim.results import CUT_OFF, LaunchResult, NotModelledNote, Occupancy
from tests.cli.golden import assert_golden

GOLDEN = Path(__file__).parent / "golden"


def launch(**more: object) -> LaunchResult:
    facts: dict[str, object] = {
        "verdict": "clean", "kernel": "gemm", "grid": (8, 4, 1), "block": (384, 1, 1), "cluster": (2, 1, 1),
        "config": "h100-sxm", "schedule": "timed", "numerics": "hopper",
    }  # fmt: skip
    return LaunchResult(**(facts | more))  # type: ignore[arg-type]


TIMED = launch(
    cycles=123_456, time_us=62.3515, clock_hz=1.98e9,
    counters={
        "hopsim__tensor_core_busy.pct": 61.24, "hopsim__tma_busy.pct": 20.0, "hopsim__mma_sync_busy.pct": 0.0,
        "lts__t_sectors_op_read.sum": 1 << 20, "lts__t_sectors_op_write.sum": 1000,
        "lts__t_sector_hit_rate.pct": 75.55, "dram__bytes_read.sum": 3_000_000, "dram__bytes_write.sum": 0,
        "l1tex__data_bank_conflicts_pipe_lsu.sum": 1234, "hopsim__dsmem_bytes.sum": 4096,
    },
    stalls={"mbarrier": 0.5, "selected": 0.25, "long_scoreboard": 0.2496, "gmma": 0.0004},
    occupancy=Occupancy(1, 12, 64, "shared memory", 168, 200_000, 32),
)  # fmt: skip


def test_a_difference_that_rounds_to_nothing_has_no_sign() -> None:
    shown = [signed(value, 1) for value in (-0.04, 0.04, 0.0, -0.06, 0.06, -1234.5)]
    assert shown == ["0.0", "0.0", "0.0", "-0.1", "+0.1", "-1,234.5"]
    assert [percent(part) for part in (-0.004, 0.004, -0.006, 0.12)] == [
        "0 %",
        "0 %",
        "-1 %",
        "+12 %",
    ]


def test_quantities() -> None:
    assert (grouped(1234567), plural(1, "warp"), plural(2, "warp")) == (
        "1,234,567",
        "1 warp",
        "2 warps",
    )
    sizes = [0, 1023, 1024, 12_345, 123_456, 3 << 30, 5 << 40]
    assert [size(n) for n in sizes] == [
        "0 B",
        "1023 B",
        "1.00 KiB",
        "12.1 KiB",
        "121 KiB",
        "3.00 GiB",
        "5.00 TiB",
    ]
    assert (share(0.12345), clock(1.98e9), triple((8, 1, 1)), triple((8, 1, 2))) == (
        "12.3 %", "1.98 GHz", "8", "8 x 1 x 2",
    )  # fmt: skip
    assert (ranges([3, 1, 2, 7, 7]), ranges([]), lanes_of(0x8000000F)) == ("1-3, 7", "", "0-3, 31")


def test_summary_of_a_timed_launch() -> None:
    text = plain_text(launch_report(TIMED, first=[("problem", "C = A B")], flops=10**12), width=100)
    assert_golden(text, GOLDEN / "timed.txt")


def test_a_bar_has_eighths_of_a_cell() -> None:
    assert [bar(part) for part in (0.0, 1 / 320, 0.5, 1.0)] == ["", "▏", "█" * 20, "█" * 40]


def test_the_chart_is_sorted_and_leaves_out_what_nobody_sees() -> None:
    lines = plain_text(stall_chart(TIMED.stalls)).splitlines()
    assert [line.split()[0] for line in lines] == ["mbarrier", "selected", "long_scoreboard"]


def test_a_deadlock_is_told_barrier_by_barrier() -> None:
    full = {
        "kind": "mbarrier", "address": 0xE400, "phase": 1, "parity": 1, "pending_arrivals": 1,
        "expected_arrivals": 1, "tx_bytes": 16384, "line": 214, "text": "mbarrier.try_wait",
    }  # fmt: skip
    empty = full | {
        "address": 0xE418,
        "phase": 0,
        "parity": 0,
        "line": 98,
        "tx_bytes": 0,
        "pending_arrivals": 4,
        "expected_arrivals": 4,
    }
    waits = [
        Wait(cta=(c, 0, 0), warp=w, lanes=0xFFFFFFFF, **(full if w else empty))  # type: ignore[arg-type]
        for c in range(3)
        for w in (0, 4, 5, 6, 7)
    ]
    waits.append(
        Wait((2, 0, 0), 9, 1, "bar", 300, "bar.sync", address=2, pending_arrivals=32, expected_arrivals=64,
             source=SourceLocation("gemm.cu", 12))
    )  # fmt: skip
    story = deadlock_story(Deadlock(tuple(waits), ("tma load of cta 0 (line 88)",), 4321))
    assert_golden(plain_text(story, width=100), GOLDEN / "deadlock.txt")


def hazard(count: int = 1) -> Hazard:
    write = Access(
        "write", (3, 0, 0), 5, 0xFFFFFFFF, 214, "@%p st.shared.v4.b32 [%a], %b;",
        "generic", "shared::cta", 0x8400, 0x8600,
        source=SourceLocation("gemm.cu", 77, 3),
    )  # fmt: skip
    read = Access(
        "read", (3, 0, 0), 4, 1, 231, "cp.async.bulk.tensor.2d", "async", "shared::cta", 0x8400, 0x8C00,
        actor="TMA store", name="smem",
    )  # fmt: skip
    return Hazard(
        "HS101", "generic write not bridged to a TMA store", "hazard", "the TMA store may read old data", write, read,
        missing="generic-to-async bridge for shared::cta", hint="fence.proxy.async.shared::cta; after line 214",
        chain=("line 214", "bar.sync 1,128 (line 229)", "line 231"), causes=("HS112",), count=count,
    )  # fmt: skip


def test_a_hazard_names_both_accesses_and_the_missing_edge() -> None:
    note = Hazard("HS308", "empty-wait", "note", "nothing was pending")
    text = plain_text(hazard_findings([hazard(128), note], "gemm.ptx"), width=100)
    assert_golden(text, GOLDEN / "hazards.txt")


def test_many_findings_are_counted() -> None:
    lines = plain_text(hazard_findings([hazard()] * 23)).splitlines()
    assert lines[-1] == "... and 3 findings more"


def test_a_hazard_decides_the_exit_code() -> None:
    found = launch(verdict="hazard", hazards=(hazard(),))
    assert exit_code(found) == 1
    assert "verdict       hazard: 1 hazard" in plain_text(launch_report(found))


@pytest.mark.parametrize(
    ("more", "why", "words", "code"),
    [
        (
            {"values": False, "checked": False},
            "values=False: data was not computed",
            "--no-values",
            0,
        ),
        ({"checked": False}, "check=False: races were not checked", "--no-check", 0),
        (
            {"timing": False, "schedule": "seeded", "checked": False},
            "check=False: no",
            "--no-check",
            0,
        ),
        ({}, "the run was ended by its limit of cycles or steps", "limit of cycles", 4),
    ],
)
def test_what_was_not_asked_for_is_said_but_is_no_failure(
    more: dict[str, object], why: str, words: str, code: int
) -> None:
    result = launch(verdict="not-modelled", not_modelled=(NotModelledNote(why),), **more)
    assert exit_code(result) == code
    assert bool(beyond_choice(result)) == (code == 4)
    assert words in plain_text(launch_report(result))


def test_a_run_that_did_not_finish_has_no_rate() -> None:
    took = {"cycles": 2000, "time_us": 1.0}
    cut = launch(
        verdict="not-modelled", not_modelled=(NotModelledNote(CUT_OFF, 7, "bar.sync 0;"),), **took
    )
    stuck = launch(verdict="deadlock", deadlock=Deadlock(()), **took)
    text = plain_text(launch_report(cut, flops=10**9, outcome=unfinished_rows(cut)))
    assert "cut off       after 2,000 cycles, 1.00 us; the kernel takes at least as long\n" in text
    assert "bits          not compared: the run was cut off\n" in text
    assert "not modelled  line 7: bar.sync 0;  the run was ended by its limit" in text
    assert not any(line.startswith("time ") for line in text.splitlines())
    assert (rate(cut, 10**9), rate(stuck, 10**9), rate(launch(**took), 10**9)) == (
        None,
        None,
        1000.0,
    )
    assert unfinished_rows(stuck) == [("bits", "not compared: the run came to a standstill")]
    assert unfinished_rows(launch(**took)) == []


def test_a_device_tells_time_and_no_races() -> None:
    result = launch(
        verdict="not-modelled", not_modelled=(NotModelledNote("check=False: races were not checked"),), checked=False,
        backend="cuda", config="NVIDIA H100", schedule="", numerics="silicon", time_us=12.5,
    )  # fmt: skip
    assert exit_code(result) == 0
    assert plain_text(launch_report(result, flops=10**9)).splitlines()[2:] == [
        "run           numerics silicon, on NVIDIA H100",
        "verdict       not-modelled",
        "not checked   races: a device cannot look for them, the simulator can",
        "time          12.50 us, 80.0 TFLOP/s",
    ]


def test_an_untimed_schedule_says_that_it_knows_no_cycles() -> None:
    assert not_checked(launch(timing=False, schedule="seeded")) == (
        "time: the schedule seeded knows no cycles",
    )
    assert not_checked(launch()) == ()


def test_an_instruction_outside_the_model_is_shown_with_its_line() -> None:
    note = NotModelledNote("sparse wgmma", 12, "wgmma.mma_async.sp")
    result = launch(verdict="not-modelled", not_modelled=(note,))
    assert exit_code(result) == 4
    assert "not modelled  line 12: wgmma.mma_async.sp  sparse wgmma" in plain_text(
        launch_report(result)
    )


def test_equal_bits() -> None:
    x = np.asarray([1.0, np.nan, -0.0], ml_dtypes.bfloat16)
    comparison = compare_bits("C", x, x.copy(), "the reference")
    assert comparison.is_equal
    assert plain_text(comparison) == "C has the bits of the reference: all 3 elements equal\n"


def test_the_first_difference_shows_numbers_and_bits() -> None:
    expected = np.asarray([[1.0, 0.0], [2.5, 3.0]], ml_dtypes.bfloat16)
    got = np.asarray([[1.0, -0.0], [2.5, 4.0]], ml_dtypes.bfloat16)
    comparison = compare_bits("C", got, expected, "the reference")
    assert (comparison.different, comparison.first and comparison.first.index) == (2, (0, 1))
    assert plain_text(comparison).splitlines() == [
        "C differs from the reference in 2 of 4 elements",
        "first at C[0, 1]: expected 0 (0x0000), got -0 (0x8000)",
    ]


def test_other_shapes_cannot_be_compared() -> None:
    with pytest.raises(
        LaunchError,
        match=r"x cannot be compared with y.npy: it is int32 \[2\], the other int32 \[3\]",
    ):
        compare_bits("x", np.zeros(2, np.int32), np.zeros(3, np.int32), "y.npy")


def test_lint_lists_lines_then_a_line_for_each_entry() -> None:
    kernels = [
        KernelLint("good", 12),
        KernelLint("odd", 3, ((7, "tex.2d r, [t];", "textures are not modelled"),)),
        KernelLint("bad", 0, (), ("k.ptx:9: unknown", "k.ptx:12: no type")),
        KernelLint("poor", 3, ((22, "rcp.f8 r, s;", "no such form"),), ("k.ptx:20: no label",)),
    ]
    assert plain_text(lint_report("k.ptx", kernels)).splitlines() == [
        "k.ptx:7: tex.2d r, [t];",
        "    textures are not modelled",
        "k.ptx:9: unknown",
        "k.ptx:12: no type",
        "k.ptx:20: no label",
        "k.ptx:22: rcp.f8 r, s;",
        "    no such form",
        "k.ptx: good: ok, all 12 instructions modelled",
        "k.ptx: odd: 1 instruction not modelled",
        "k.ptx: bad: 2 errors",
        "k.ptx: poor: 1 error, 1 instruction not modelled",
    ]
    assert plain_text(lint_report("k.ptx", [])) == "k.ptx: ok, but it has no entry\n"


def test_support_matrix() -> None:
    shapes = tuple(f"m64n{n}k16" for n in range(8, 257, 8))
    rows = [
        SupportRow(
            "abs",
            "abs{.ftz}.f32 d, a",
            (("ftz", ("ftz",), True),),
            "alu",
            "pure",
            (),
            "PTX ISA",
            "A.",
            2,
        ),
        SupportRow(
            "mma",
            "mma.{shape} d, a",
            (("shape", shapes, False),),
            "mma",
            "pure",
            (),
            "PTX ISA",
            "B.",
            32,
        ),
    ]
    assert plain_text(support_table(rows)).splitlines() == [
        "abs{.ftz}.f32 d, a",
        "    .ftz? ftz",
        "    A.  unit alu; PTX ISA",
        "mma.{shape} d, a",
        "    .shape  m64n8k16 m64n16k16 m64n24k16 ... m64n256k16  (32 choices)",
        "    B.  unit mma; PTX ISA",
        "2 forms of 2 instructions",
    ]
