from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hopsim.cli.app import app
from hopsim.cli.output import plain_text
from hopsim.report.ladder import Rung, ladder_table


def ladder(*more: str) -> Result:
    return CliRunner().invoke(app, ["ladder", *more])


def small(*more: str) -> dict[str, Any]:
    sizes = ("--m", "64", "--n", "256", "--k", "512")
    done = ladder(*sizes, "--jobs", "1", "--json", "-", *more)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_every_schedule_that_suits_a_small_problem() -> None:
    steps = small()["steps"]
    assert [step["name"] for step in steps] == [
        "mma-simple", "mma-multistage", "wgmma-simple", "pipelined", "warp-specialized", "cooperative",
        "pingpong", "split-k tma", "split-k atomic", "split-k dsmem", "stream-k", "chosen",
    ]  # fmt: skip
    for step in steps:
        assert step["tflops"] == pytest.approx(2 * 64 * 256 * 512 / step["time_us"] / 1e6)
        assert step["measured_tflops"] is None


def test_one_step_on_a_changed_machine() -> None:
    usual = small("--only", "pipelined")["steps"]
    slower = small("--only", "pipelined", "--set", "device.clock=1GHz")["steps"]
    assert [step["name"] for step in usual] == ["pipelined"]
    assert slower[0]["tflops"] < usual[0]["tflops"]


def test_a_step_that_is_not_there() -> None:
    done = ladder("--m", "64", "--n", "64", "--k", "64", "--only", "naive")
    assert done.exit_code == 2
    assert "no step is called 'naive'" in done.stderr


def test_what_an_h100_did_with_the_same_program_stands_beside_it() -> None:
    sizes = ("--m", "512", "--n", "512", "--k", "512", "--only", "pipelined", "--jobs", "1")
    folder = Path(__file__).parents[1] / "silicon" / "ladder"
    done = ladder(*sizes, "--recorded", str(folder), "--json", "-")
    (step,) = json.loads(done.stdout)["steps"]
    assert step["measured_tflops"] == pytest.approx(41.5, abs=0.1)
    assert step["measured_cycles"] == 9784
    shown = ladder(*sizes, "--recorded", str(folder))
    assert "cycles of the kernel alone" in shown.stdout
    assert "9,784" in shown.stdout
    other = ladder("--m", "64", *sizes[2:], "--recorded", str(folder), "--json", "-")
    assert json.loads(other.stdout)["steps"][0]["measured_tflops"] is None
    other = ladder("--m", "64", *sizes[2:], "--recorded", str(folder))
    words = f"device        {folder} has no measurements of 64 x 512 x 512 in bf16"
    assert words in other.stdout.splitlines()
    assert ladder(*sizes, "--recorded", str(folder.parent / "none")).exit_code == 2
    both = ladder(*sizes, "--recorded", str(folder), "--backend", "cuda")
    assert (both.exit_code, "got a recorded and a real one" in both.stderr) == (2, True)


def test_steps_without_a_recording_are_told_with_the_reason(tmp_path: Path) -> None:
    folder = Path(__file__).parents[1] / "silicon" / "ladder"
    content = json.loads((folder / "bf16.json").read_text())
    (problem,) = [one for one in content["problems"] if (one["m"], one["k"]) == (512, 512)]
    content["problems"] = [problem]
    steps = {one["step"]: one for one in problem["steps"]}
    steps["pipelined"].update(tile=[128, 128, 64], ptx_sha256="0" * 64)
    steps["cooperative"]["ptx_sha256"] = "1" * 64
    problem["steps"].remove(steps["wgmma-simple"])
    (tmp_path / "bf16.json").write_text(json.dumps(content))
    names = ("warp-specialized", "pipelined", "cooperative", "wgmma-simple")
    words = ["--m", "512", "--n", "512", "--k", "512", "--recorded", str(tmp_path), "--jobs", "1"]
    words += [word for name in names for word in ("--only", name)]
    shown = ladder(*words).stdout.splitlines()
    assert [line.strip() for line in shown if "recorded" in line] == [
        "device        cycles of the kernel alone, caches cold, as recorded",
        "not recorded  wgmma-simple: this step was not recorded",
        "pipelined: recorded with 128x128x64, 4",
        "cooperative: recorded with other options, or other PTX",
    ]
    told = json.loads(ladder(*words, "--json", "-").stdout)
    assert set(told["not_recorded"]) == set(names) - {"warp-specialized"}


def test_recorded_cycles_of_the_kernel_go_before_rates_that_include_the_launch() -> None:
    rungs = [
        Rung("pipelined", "64x32x64, 4", 9000, 40.0, "latency", 30.0, False, 10000.0),
        Rung("pingpong", "64x64x64, 4", 12000, 30.0, "latency"),
    ]
    assert [rung.off for rung in rungs] == [pytest.approx(-0.1), None]
    assert plain_text(ladder_table(rungs)).splitlines() == [
        "schedule   tile, stages  cycles  TFLOP/s   gain  device    off  bound by",
        "pipelined  64x32x64, 4    9,000     40.0         10,000  -10 %  latency   ████████████████████████████████████████",
        "                                                                          ████████████████████████████████████",
        "pingpong   64x64x64, 4   12,000     30.0  -25 %                 latency   ██████████████████████████████",
    ]  # fmt: skip


def test_the_table_sets_silicon_beside_the_simulation() -> None:
    rungs = [
        Rung("wgmma-simple", "128x128x64, 1", 464381, 400.0, "latency", 320.0),
        Rung("pingpong", "128x128x64, 4", 282482, 800.0, "tensor core", 760.0, True),
    ]
    assert plain_text(ladder_table(rungs)).splitlines() == [
        "schedule      tile, stages     cycles  TFLOP/s    gain  device    off  bound by",
        "wgmma-simple  128x128x64, 1   464,381    400.0           320.0  +25 %  latency      ████████████████████",
        "                                                                                    ████████████████",
        "pingpong      128x128x64, 4  ~282,482   ~800.0  +100 %   760.0   +5 %  tensor core  ████████████████████████████████████████",
        "                                                                                    ██████████████████████████████████████",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "more",
    [
        ("--schedule", "chosen"),
        ("--schedule", "mma-simple"),
        ("--schedule", "mma-multistage"),
        ("--schedule", "wgmma-simple", "--a-major", "MN", "--swizzle", "32B", "--a-in-registers"),
        ("--schedule", "cooperative", "--cluster", "2x1", "--order", "blocks-m"),
        ("--schedule", "pingpong", "--b-major", "MN"),
        ("--schedule", "split-k", "--splits", "2", "--reduction", "dsmem", "--tile", "64x64x32"),
        ("--schedule", "split-k", "--splits", "3", "--out-dtype", "f32"),
        ("--schedule", "stream-k"),
    ],
    ids=lambda more: " ".join(more[1:4]),
)
def test_gemm_runs_every_schedule(more: tuple[str, ...]) -> None:
    sizes = ("--m", "72", "--n", "136", "--k", "208")
    done = CliRunner().invoke(
        app, ["gemm", *sizes, *more, "--run-schedule", "in-order", "--no-check", "--json", "-"]
    )
    assert done.exit_code == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["comparison"]["equal"]
    assert content["gemm"]["schedule"] in (more[1], "warp-specialized")


def test_a_chosen_kernel_comes_with_its_reasons() -> None:
    sizes = ("--m", "16", "--n", "64", "--k", "64")
    done = CliRunner().invoke(
        app, ["gemm", *sizes, "--schedule", "chosen", "--no-check", "--json", "-"]
    )
    reasons = json.loads(done.stdout)["gemm"]["choice"]
    assert reasons[0].startswith("tile 64x16x64: 1 wave on 132 SMs, the fewest of 40 tiles")
    assert len(reasons) == 5
