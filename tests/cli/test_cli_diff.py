"""`--lines` and `hopsim diff`: where the time of one run goes, and why one of two takes less."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import hopsim as hs
from hopsim.cli.app import app

GEMM = ("gemm", "--m", "128", "--n", "128", "--k", "512", "--no-values", "--schedule", "pipelined")
DATA = Path(__file__).parent / "data"


def hopsim(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the JSON of a ring of four slots and of one of two."""
    folder = tmp_path_factory.mktemp("runs")
    paths = (folder / "four.json", folder / "two.json")
    for path, stages in zip(paths, ("4", "2"), strict=True):
        done = hopsim(
            *GEMM, "--tile", "64x64x64", "--stages", stages, "--lines", "3", "--json", str(path)
        )
        assert done.exit_code == 0, done.output
    return paths


def test_lines_are_shown_the_longest_first() -> None:
    done = hopsim(*GEMM, "--lines", "3")
    assert done.exit_code == 0
    shown = done.stdout[done.stdout.index("where it went, by line (the first 3 of ") :].splitlines()
    parts = [float(line.split()[1]) for line in shown[2:]]
    assert len(parts) == 3
    assert parts == sorted(parts, reverse=True)
    assert any("mbarrier.try_wait" in line for line in shown)
    assert "where it went" not in hopsim(*GEMM).stdout


def test_lines_of_the_source_where_the_ptx_names_them(tmp_path: Path) -> None:
    text = (Path(__file__).parents[1] / "data/triton/gemm_pointers.ptx").read_text()
    assert ".loc" in text
    (tmp_path / "k.ptx").write_text(text)
    template = hopsim("run", str(tmp_path / "k.ptx"), "--template").stdout
    launch = template.replace("float32", "float16").replace(
        "shared_bytes = 0", "shared_bytes = 65536"
    )
    launch = re.sub(r"\{ int32 = 1 \}", "{ int32 = 128 }", launch)
    (tmp_path / "l.toml").write_text(launch.replace("{ float16 =", "{ float32 ="))
    done = hopsim(
        "run", str(tmp_path / "k.ptx"), "--args", str(tmp_path / "l.toml"), "--lines", "2",
        "--max-cycles", "6000", "--no-check",
    )  # fmt: skip
    assert "by line of the source" in done.stdout, done.output
    assert re.search(r"kernels?\.py:\d+", done.stdout)


def test_the_faster_one_and_what_it_has_less_of(runs: tuple[Path, Path]) -> None:
    done = hopsim("diff", str(runs[1]), str(runs[0]))
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    four, two = (json.loads(path.read_text()) for path in runs)
    assert lines[0].startswith(
        f"faster        four: {four['cycles']:,} cycles, two {two['cycles']:,}"
    )
    assert re.match(r"less +[\d,]+ warp cycles of mbarrier", lines[1])
    assert re.search(r"^stages +2 +4$", done.stdout, re.MULTILINE)
    assert re.search(r"^mbarrier.try_wait\S+ ", done.stdout, re.MULTILINE)
    # Nothing that both have is among the facts but the kernel.
    assert not re.search(r"^launch ", done.stdout, re.MULTILINE)


def test_the_json_has_the_same(runs: tuple[Path, Path]) -> None:
    told: dict[str, Any] = json.loads(
        hopsim("diff", str(runs[0]), str(runs[1]), "--json", "-").stdout
    )
    assert [one["name"] for one in told["runs"]] == ["four", "two"]
    assert told["reasons"][0]["name"] == "mbarrier"
    row = told["reasons"][0]
    assert row["difference"] == pytest.approx(row["second"] - row["first"], abs=1e-3)
    assert {one["name"] for one in told["numbers"]} >= {"cycles", "warps", "HBM read"}
    assert told["opcodes"]


def test_without_lines_the_reasons_are_those_of_the_shares(
    runs: tuple[Path, Path], tmp_path: Path
) -> None:
    content = json.loads(runs[0].read_text())
    exact = content.pop("line_times")["warp_cycles"]
    (tmp_path / "bare.json").write_text(json.dumps(content))
    told = json.loads(
        hopsim("diff", str(runs[0]), str(tmp_path / "bare.json"), "--json", "-").stdout
    )
    assert told["opcodes"] == []
    for row in told["reasons"]:
        assert row["first"] == pytest.approx(exact[row["name"]], abs=1e-2)
        assert row["second"] == pytest.approx(row["first"], rel=0.05)


def test_other_warps_and_other_problems_are_said(runs: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    more = ["gemm", "--m", "128", "--n", "128", "--k", "256", "--no-values", "--json", str(other)]
    assert hopsim(*more).exit_code == 0
    done = hopsim("diff", str(runs[0]), str(other))
    assert "they do not do the same: the problems differ" in done.stdout
    assert re.search(r"other has [\d.]+ times the warps", done.stdout)
    assert not re.search(r"^less ", done.stdout, re.MULTILINE)
    assert "the same" in hopsim("diff", str(other), str(other)).stdout


def test_a_result_of_python_is_taken(tmp_path: Path) -> None:
    head = ".version 8.7\n.target sm_90a\n.address_size 64\n"
    kernel = hs.loads(head + ".visible .entry nothing() { ret; }")["nothing"]
    path = tmp_path / "r.json"
    path.write_text(hs.Gpu().launch(kernel, grid=1, block=32).json())
    assert hopsim("diff", str(path), str(path)).exit_code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot read"),
        ("{", "is no JSON"),
        ("[1]", "is not the JSON of one launch"),
        ('{"command": "lint"}', "is not the JSON of one launch, it is that of hopsim lint"),
    ],
)
def test_files_of_something_else(
    text: str | None, words: str, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "x.json").write_text(text)
    refused = hopsim("diff", str(runs[0]), str(tmp_path / "x.json"))
    assert (refused.exit_code, words in refused.stderr) == (2, True), refused.output
    assert "try: hopsim run, gemm or attention with --json FILE" in refused.stderr


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"cycles": "x"}, "cycles: expected a number or null, got 'x'"),
        ({"cycles": True}, "cycles: expected a number or null, got True"),
        ({"time_us": [1]}, "time_us: expected a number or null, got [1]"),
        ({"stalls": [1]}, "stalls: expected a table, got [1]"),
        ({"stalls": {"gmma": None}}, "stalls.gmma: expected a number, got None"),
        ({"counters": {"a": "b"}}, "counters.a: expected a number, got 'b'"),
        ({"grid": "64"}, "grid: expected three positive whole numbers, got '64'"),
        ({"block": [64]}, "block: expected three positive whole numbers, got [64]"),
        ({"kernel": 3}, "kernel: expected text, got 3"),
        ({"occupancy": [1]}, "occupancy: expected a table or null, got [1]"),
        ({"occupancy": {"sms_used": [1]}}, "occupancy.sms_used: expected a number or text, got [1]"),
        ({"not_modelled": ["a"]}, "not_modelled.0: expected a table, got 'a'"),
        ({"not_modelled": [{"line": 1}]}, "not_modelled.0: expected a table with why, got one without"),
        ({"gemm": 3}, "gemm: expected a table or null, got 3"),
        ({"set": 3}, "set: expected a table, got 3"),
        ({"tflops": "1"}, "tflops: expected a number or null, got '1'"),
        ({"line_times": {"lines": []}}, "line_times: expected a table with warp_cycles, got one without"),
        (
            {"line_times": {"warp_cycles": {}, "lines": [{"text": "ret;", "warp_cycles": 1}]}},
            "line_times.lines.0.warp_cycles: expected a table, got 1",
        ),
        ({"deadlock": 0, "cycles": 0, "verdict": 1}, "verdict: expected text, got 1"),
        ({"cycles": 10**400}, "cycles: expected a number or null, got 1000"),
    ],
)  # fmt: skip
def test_inner_fields_of_another_kind_are_named(
    changed: dict[str, Any], words: str, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(json.loads(runs[0].read_text()) | changed))
    refused = hopsim("diff", str(runs[1]), str(path))
    assert (refused.exit_code, refused.stdout) == (2, ""), refused.output
    assert f"x.json is not the JSON of one launch: {words}" in refused.stderr


def test_what_one_run_does_not_have_is_not_zero(runs: tuple[Path, Path], tmp_path: Path) -> None:
    content = json.loads(runs[0].read_text())
    for name in ("occupancy", "tflops", "line_times"):
        del content[name]
    content |= {"counters": {"a": 1}, "stalls": {"selected": 0.5}}
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps(content))
    for pair, values in (((runs[0], bare), r"[\d.]+ +-"), ((bare, runs[0]), r"- +[\d.]+")):
        shown = hopsim("diff", *map(str, pair))
        assert shown.exit_code == 0, shown.output
        assert "-100" not in shown.stdout
        for name in ("registers a thread", "tensor cores busy", "instructions", "TFLOP/s"):
            assert re.search(
                rf"^{name} +{values}", shown.stdout.replace(",", "").replace(" %", ""), re.MULTILINE
            )
        assert "warp cycles of" not in shown.stdout
    told = json.loads(hopsim("diff", str(runs[0]), str(bare), "--json", "-").stdout)
    (row,) = [one for one in told["numbers"] if one["name"] == "registers a thread"]
    assert (row["first"] > 0, row["second"]) == (True, None)
    assert (told["reasons"], told["opcodes"]) == ([], [])


def test_runs_without_time_are_refused(runs: tuple[Path, Path], tmp_path: Path) -> None:
    path = str(tmp_path / "x.json")
    for options in (["--run-schedule", "in-order"], ["--max-cycles", "10"]):
        hopsim(*GEMM, *options, "--json", path)
        refused = hopsim("diff", str(runs[0]), path)
        assert refused.exit_code == 2
        assert "has no time to compare" in refused.stderr
    for options in (["--run-schedule", "in-order"], ["--backend", "cuda"]):
        refused = hopsim(*GEMM, "--lines", "3", *options)
        assert refused.exit_code == 2
        assert "--lines: " in refused.stderr
