from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hopsim.cli.app import app
from hopsim.errors import DeviceError
from tests.cli.golden import GOLDEN, assert_golden

README = Path(__file__).parents[2] / "README.md"
UNTIMED = ("--run-schedule", "in-order", "--no-check")


def hopsim(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def gemm(m: int, n: int, k: int, *more: str) -> Result:
    return hopsim("gemm", "--m", str(m), "--n", str(n), "--k", str(k), *more)


def json_of(result: Result) -> dict[str, Any]:
    return json.loads(result.stdout)


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "e4m3"])
@pytest.mark.parametrize("schedule", ["pipelined", "warp-specialized"])
def test_ragged_sizes_have_the_reference_s_bits(dtype: str, schedule: str) -> None:
    done = gemm(200, 328, 144, "--dtype", dtype, "--schedule", schedule, *UNTIMED)
    assert done.exit_code == 0
    assert "bits          C has the bits of the reference: all 65,600 elements equal" in done.stdout


def test_summary_of_an_untimed_run() -> None:
    done = gemm(128, 128, 64, "--run-schedule", "seeded", "--seed", "3", "--no-check")
    assert (done.exit_code, done.stderr) == (0, "")
    assert_golden(done.stdout, GOLDEN / "gemm_seeded.txt")


def test_a_timed_run_says_where_the_time_went() -> None:
    done = gemm(128, 128, 256, "--no-check")
    assert done.exit_code == 0
    labels = [
        line.split("  ")[0]
        for line in done.stdout.splitlines()
        if line and not line.startswith(" ")
    ]
    expected = [
        "problem",
        "choice",
        "kernel",
        "launch",
        "run",
        "bits",
        "verdict",
        "not checked",
        "time",
        "busy",
    ]
    assert labels[:10] == expected
    assert {"L2", "HBM", "occupancy", "where the warps' time went", "mbarrier"} <= set(labels)
    assert re.search(r"us at 1\.\d\d GHz, ", done.stdout)


@pytest.mark.parametrize("schedule", ["pipelined", "warp-specialized"])
def test_everything_checked_is_clean(schedule: str) -> None:
    done = gemm(128, 128, 128, "--tile", "64x64x64", "--schedule", schedule)
    assert done.exit_code == 0, done.stdout
    assert "verdict       clean: no hazards" in done.stdout


@pytest.mark.slow
def test_the_readme_shows_the_summary_of_the_demo() -> None:
    done = gemm(512, 512, 512, "--dtype", "bf16", "--schedule", "warp-specialized")
    assert done.exit_code == 0
    block = f"<!-- gemm -->\n```\n$ hopsim gemm --m 512 --n 512 --k 512\n{done.stdout}```\n<!-- /gemm -->"
    page = README.read_text(encoding="utf-8")
    if os.environ.get("HOPSIM_UPDATE_GOLDEN"):
        page = re.sub("<!-- gemm -->.*<!-- /gemm -->", lambda _: block, page, flags=re.DOTALL)
        README.write_text(page, encoding="utf-8")
    assert block in page


def test_json_alone_on_standard_output_is_the_same_on_every_run() -> None:
    command = ("--no-check", "--json", "-")
    first, second = gemm(128, 64, 128, *command), gemm(128, 64, 128, *command)
    assert first.stdout_bytes == second.stdout_bytes
    content = json_of(first)
    assert (content["command"], content["exit_code"], content["verdict"]) == (
        "gemm",
        0,
        "not-modelled",
    )
    assert content["comparison"] == {
        "against": "the reference", "different": 0, "elements": 8192, "equal": True, "first": None, "name": "C",
    }  # fmt: skip
    assert content["gemm"]["tile"] == "64x16x64"
    assert content["tflops"] == pytest.approx(content["gemm"]["flops"] / content["time_us"] / 1e6)
    assert content["not_checked"] == ["races: the hazard checker was off (--no-check)"]
    assert content["beyond_choice"] == []


def test_json_in_a_file_leaves_the_summary_on_the_screen(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    done = gemm(64, 64, 64, *UNTIMED, "--json", str(path))
    assert "bits" in done.stdout
    assert json.loads(path.read_text())["command"] == "gemm"


def test_timing_only() -> None:
    done = gemm(512, 512, 512, "--no-values", "--json", "-")
    content = json_of(done)
    assert (done.exit_code, content["comparison"], content["values"]) == (0, None, False)
    assert content["cycles"] > 0
    assert content["not_checked"] == ["values: no data was moved or computed (--no-values)"]


def test_both_that_were_left_out_are_told() -> None:
    words = [
        "values: no data was moved or computed (--no-values)",
        "races: the hazard checker was off (--no-check)",
    ]
    options = ("--no-values", "--no-check")
    assert json_of(gemm(64, 64, 64, *options, "--json", "-"))["not_checked"] == words
    assert all(line in gemm(64, 64, 64, *options).stdout for line in words)


def test_float32_sums_are_held_against_their_bound() -> None:
    done = gemm(128, 64, 128, "--numerics", "float32", *UNTIMED)
    assert done.exit_code == 0
    assert "bits          not compared: --numerics float32 is an approximation" in done.stdout
    assert "within the bound of f32 sums" in done.stdout


def test_options_of_the_kernel_are_kept() -> None:
    content = json_of(
        gemm(
            256, 256, 128, "--tile", "64x64x32", "--stages", "3", "--warpgroups", "1", "--cluster", "2x1",
            "--persistent", "--group-m", "2", "--out-dtype", "f32", *UNTIMED, "--json", "-",
        )
    )  # fmt: skip
    kernel = content["gemm"]
    assert (kernel["tile"], kernel["stages"], kernel["warpgroups"], kernel["chosen"]) == (
        "64x64x32",
        3,
        1,
        [],
    )
    assert (kernel["cluster"], kernel["persistent"], kernel["group_m"]) == ([2, 1], True, 2)
    assert kernel["out_dtype"] == "f32"
    assert content["comparison"]["equal"]


def test_overrides_change_the_prediction() -> None:
    command = ("--no-values", "--json", "-", "--tile", "64x64x64")
    plain = json_of(gemm(256, 256, 256, *command))["cycles"]
    far = json_of(gemm(256, 256, 256, *command, "--set", "dram.latency=5000cycles"))["cycles"]
    assert far > plain + 4000


def test_the_timeline_and_the_ptx_are_saved(tmp_path: Path) -> None:
    trace, ptx = tmp_path / "t.json", tmp_path / "k.ptx"
    done = gemm(128, 128, 128, "--no-check", "--trace", str(trace), "--ptx", str(ptx))
    assert f"timeline      saved to {trace}; open it at https://ui.perfetto.dev" in done.stdout
    assert {event["ph"] for event in json.loads(trace.read_text())["traceEvents"]} == {
        "M",
        "X",
        "C",
        "s",
        "f",
    }
    assert ptx.read_text().startswith(".version 8.7")
    assert hopsim("lint", str(ptx)).exit_code == 0


def test_a_deadline_is_not_modelled(tmp_path: Path) -> None:
    done = gemm(256, 256, 256, "--no-values", "--max-cycles", "4500")
    assert done.exit_code == 4
    assert "the run was ended by its limit of cycles or steps" in done.stdout
    assert "cut off       after 4,501 cycles, " in done.stdout
    assert "TFLOP/s" not in done.stdout


@pytest.mark.parametrize("limit", [("--max-cycles", "50"), (*UNTIMED, "--max-cycles", "50")])
def test_what_was_cut_off_is_not_compared(limit: tuple[str, ...], tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    done = gemm(64, 64, 64, *limit, "--json", str(told))
    content = json.loads(told.read_text())
    assert done.exit_code == content["exit_code"] == 4
    assert "bits          not compared: the run was cut off\n" in done.stdout
    assert (content["comparison"], content["tflops"]) == (None, None)


def test_without_values_no_operand_takes_memory() -> None:
    words = "gemm --m 16384 --n 16384 --k 16384 --no-values --max-cycles 1 --json -"
    code = (
        "from pathlib import Path\nfrom typer.testing import CliRunner\nfrom hopsim.cli.app import app\n"
        f"done = CliRunner().invoke(app, {words.split()})\n"
        "peak = Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0]\n"
        "print(done.exit_code, peak)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    exit_code, peak_kib = map(int, done.stdout.split())
    assert exit_code == 4
    assert peak_kib < 300 << 10  # one operand takes 512 MiB


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (("--k", "12"), 2, "row pitch of A and B must be a multiple of 16 bytes for TMA, got 24"),
        (("--tile", "100x64x64"), 2, "gemm: tile m must be a multiple of 64 (64 rows a wgmma, 1"),
        (("--tile", "65x64x64", "--warpgroups", "2"), 2, "gemm: tile m must be a multiple of 128"),
        (("--tile", "64x36x64", "--cluster", "2x1"), 2, "gemm: tile n must be a multiple of 8"),
        (("--tile", "64x72x64", "--cluster", "2x1"), 2, "try: make n a multiple of 16"),
        (("--stages", "0"), 2, "gemm: stages must be 2 to 64"),
        (("--tile", "96x64x64"), 2, "(s)) up to 256, got 96\n  try: tile 128x64x64"),
        (("--tile", "64x100x64"), 2, "from 8 to 256, got 100\n  try: tile 64x96x64"),
        (("--stages", "99"), 2, "in schedule warp-specialized, got 99\n  try: 4 stages"),
        (("--m", "0"), 2, "m must be from 1 to 2147483647, got 0\n  try: m of 1 or more"),
        (("--cluster", "3x1"), 2, "got (3,1)\n  try: a cluster of (2,1), 2x1 on the command line"),
        (("--warpgroups", "0"), 2, "gemm: warpgroups must be 1 or 2"),
        (
            ("--tile", "64x64"),
            2,
            "--tile: expected 3 positive numbers joined by x, got '64x64'\n  try: --tile 128x128x64\n",
        ),
        (
            ("--tile", "64x64x0"),
            2,
            "--tile: expected 3 positive numbers joined by x, got '64x64x0'",
        ),
        (("--cluster", "3"), 2, "--cluster: expected 2 positive numbers joined by x"),
        (("--stages", "40"), 2, "40 stages"),
        (("--set", "nonsense"), 2, "--set: expected KEY=VALUE, got 'nonsense'"),
        (("--set", "dram.bandwith=1TB/s"), 2, "did you mean 'dram.bandwidth'?"),
        (("--set", "l2.line=1B", "--set", "l2.line=2B"), 2, "l2.line is set twice"),
        (("--gpu", "h1000"), 2, "no configuration named 'h1000'"),
        (
            ("--trace", "t.json", *UNTIMED),
            2,
            "a timeline needs time, and the schedule in-order knows none",
        ),
        (("--trace", "/no/such/folder/t.json"), 2, "there is no folder /no/such/folder"),
        (("--ptx", "/no/such/folder/k.ptx"), 2, "--ptx: there is no folder /no/such/folder"),
        (("--ptx", "-"), 2, "--ptx: expected a file, got -: only --json writes to standard output"),
        (("--trace", "-"), 2, "--trace: expected a file, got -: only --json writes"),
        (
            ("--json", "/no/such/folder/r.json", *UNTIMED),
            2,
            "--json: there is no folder /no/such/folder",
        ),
        (("--json", ".", *UNTIMED), 2, "--json: expected a file, got the folder ."),
        (
            ("--persistent", "--schedule", "pipelined"),
            2,
            "schedule pipelined does not take persistent",
        ),
        *(
            (
                ("--schedule", "mma-simple", *words),
                2,
                f"gemm: schedule mma-simple does not take {told}\n  try: leave it out, or a schedule that takes it: {taker}",
            )
            for words, told, taker in (
                (("--cluster", "2x1"), "cluster, got 2x1", "warp-specialized, cooperative"),
                (("--persistent",), "persistent, got true", "warp-specialized, cooperative"),
                (("--swizzle", "32B"), "swizzle, got 32B", "wgmma-simple, pipelined"),
                (("--a-major", "MN"), "a_major, got MN", "wgmma-simple, pipelined"),
                (("--splits", "2"), "splits, got 2", "split-k"),
            )
        ),
        (
            ("--schedule", "wgmma-simple", "--stages", "2"),
            2,
            "gemm: stages must be 1 in schedule wgmma-simple, got 2\n  try: leave it out, or a schedule that takes",
        ),
        (
            ("--n", "64", "--schedule", "split-k", "--splits", "8", "--reduction", "dsmem"),
            2,
            "gemm: none of 9 tiles fits what is given; of 64x16x64: a cluster adds up 2, 4 or 8 parts",
        ),
        (
            ("--backend", "cuda", "--set", "l2.line=1B"),
            2,
            "--set: a real device has its own numbers",
        ),
        (("--dtype", "int4"), 2, "Invalid value for '--dtype'"),
    ],
)
def test_mistakes_are_told_without_a_traceback(
    more: tuple[str, ...], code: int, message: str
) -> None:
    done = gemm(64, 64, 64, *more)
    assert done.exit_code == code
    assert done.stdout == ""
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_no_device_is_a_device_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(index: int) -> None:
        raise DeviceError(
            "no driver", where=f"CUDA device {index}", hint="pip install 'hopsim[cuda]'"
        )

    monkeypatch.setattr("hopsim.cuda.gpu.CudaGpu", missing)
    done = gemm(64, 64, 64, "--backend", "cuda")
    assert (done.exit_code, done.stdout) == (5, "")
    assert done.stderr == "CUDA device 0: no driver\n  try: pip install 'hopsim[cuda]'\n"


def test_an_error_is_told_in_json_too() -> None:
    done = gemm(64, 64, 12, "--json", "-")
    content = json_of(done)
    assert (content["command"], content["exit_code"], content["error"]["kind"]) == (
        "gemm",
        2,
        "LaunchError",
    )
    assert content["error"]["hint"] == "pad k to 16"
