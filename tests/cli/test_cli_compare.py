"""`hopsim compare`, `micro`, `calibrate` and `record` on the command line, without a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import hopsim as hs
from hopsim.cli.app import app
from hopsim.cli.compact_json import dumps

SILICON = Path(__file__).parents[1] / "silicon"
COPY = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry copy(.param .u64 x)
{
    .reg .b32 %t, %a;
    .reg .b64 %p;

    ld.param.u64 %p, [x];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %p, %t, 4, %p;
    ld.global.u32 %a, [%p];
    st.global.u32 [%p], %a;
    ret;
}
"""
LAUNCH = """
grid = [4, 2]
block = 32
[arrays.x]
shape = [32]
dtype = "uint32"
fill = 0
[[args]]
kind = "array"
array = "x"
"""
EXPORT = """"ID","Kernel Name","Grid Size","gpc__cycles_elapsed.max","smsp__inst_executed.sum"
"","","","cycle","inst"
"0","copy","(4, 2, 1)","5,000","56"
"""


def hopsim(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(("expected", "code"), [(0, 0), (7, 1)])
def test_arrays_of_a_program_are_compared_as_by_run(
    expected: int, code: int, tmp_path: Path
) -> None:
    np.save(tmp_path / "same.npy", np.full(32, expected, np.uint32))
    launch = LAUNCH.replace("fill = 0", 'fill = 0\ncompare = "same.npy"')
    for name, text in (("k.ptx", COPY), ("l.toml", launch), ("ncu.csv", EXPORT)):
        (tmp_path / name).write_text(text)
    words = ["--args", str(tmp_path / "l.toml"), "--ncu", str(tmp_path / "ncu.csv")]
    done = hopsim("compare", str(tmp_path / "k.ptx"), *words, "--json", str(tmp_path / "out.json"))
    assert done.exit_code == code, done.stderr
    told = "x has the bits of same.npy" if code == 0 else "x differs from same.npy"
    assert told in done.stdout
    content = json.loads((tmp_path / "out.json").read_text())
    assert [one["equal"] for one in content["comparisons"]] == [code == 0]


def test_recorded_programs(tmp_path: Path) -> None:
    arguments = [
        "compare",
        "--recorded",
        "--folder",
        str(SILICON),
        "--only",
        "warp_specialized_e4m3",
        "--quick",
        "--jobs",
        "1",
    ]
    known, page = tmp_path / "known.json", tmp_path / "accuracy.md"
    arguments += ["--known", str(known), "--set", "device.sm_count=132"]
    first = hopsim(*arguments, "--json", "-", "--page", str(page))
    assert first.exit_code == 0, first.output
    content = json.loads(first.stdout)
    assert {row["kernel"] for row in content["rows"]} == {
        "gemm_warp_specialized_e4m3_bf16_128x256x128_s4_w2_persistent"
    }
    assert content["judging"]["cases"] == len(content["rows"]) == 5
    assert content["judging"]["mape_percent"] > 0
    assert "![Predicted against measured cycles](accuracy.svg)" in page.read_text()
    assert (tmp_path / "accuracy.svg").read_text().startswith("<svg")
    # The second time nothing is simulated: the file of predictions stays as it is.
    written = known.read_bytes()
    second = hopsim(*arguments, "--json", "-")
    assert json.loads(second.stdout)["rows"] == content["rows"]
    assert known.read_bytes() == written
    assert "†" not in page.read_text()


def test_predictions_of_earlier_models_are_taken_if_asked_for_and_marked(tmp_path: Path) -> None:
    known, page = tmp_path / "known.json", tmp_path / "accuracy.md"
    arguments = ["compare", "--recorded", "--folder", str(SILICON), "--only", "64x64x64_s6_w1"]
    arguments += ["--largest", "512", "--jobs", "1", "--known", str(known), "--page", str(page)]
    first = hopsim(*arguments, "--json", "-")
    (row,) = json.loads(first.stdout)["rows"]
    kept = json.loads(known.read_text())
    (key,) = kept
    kept[key].update(model="0123456789abcdef", cycles=12_345)
    known.write_text(json.dumps(kept))
    taken = hopsim(*arguments, "--earlier", "--json", "-")
    (earlier,) = json.loads(taken.stdout)["rows"]
    assert (earlier["predicted_cycles"], earlier["is_of_earlier_model"]) == (12_345, True)
    assert "| 12,345† |" in page.read_text()
    assert "† 1 of these 1 predictions are of an earlier model" in page.read_text()
    # Not asked for, it is simulated anew.
    assert json.loads(hopsim(*arguments, "--json", "-").stdout)["rows"] == [row]
    assert "†" not in page.read_text()


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    arguments = ["compare", "--recorded", "--folder", str(SILICON), "--known", str(known)]
    for text, words in (
        ("{", "not JSON"),
        ("[1]", "not predictions"),
        ('{"a": 1}', "not predictions"),
    ):
        known.write_text(text)
        refused = hopsim(*arguments)
        assert refused.exit_code == 2
        assert words in refused.stderr.replace("these are ", "")
        assert known.read_text() == text


def test_one_program_and_an_export(tmp_path: Path) -> None:
    for name, text in (("k.ptx", COPY), ("l.toml", LAUNCH), ("ncu.csv", EXPORT)):
        (tmp_path / name).write_text(text)
    arguments = ["compare", str(tmp_path / "k.ptx"), "--args", str(tmp_path / "l.toml")]
    done = hopsim(*arguments, "--ncu", str(tmp_path / "ncu.csv"))
    assert done.exit_code == 0, done.output
    lines = {line.split()[0]: line.split() for line in done.stdout.splitlines()[1:]}
    assert lines["gpc__cycles_elapsed.max"][2] == "5,000"
    assert lines["smsp__inst_executed.sum"][1:3] == ["56", "56"]
    (tmp_path / "ncu.csv").write_text(EXPORT.replace("(4, 2, 1)", "(3, 1, 1)"))
    refused = hopsim(*arguments, "--ncu", str(tmp_path / "ncu.csv"))
    assert refused.exit_code == 2
    assert "no launch of copy with a grid of (4, 2, 1)" in refused.stderr
    # Where the file says how many threads a CTA had, these count too; one launch without a metric leaves it to others.
    head, units, row = EXPORT.splitlines()
    wide = f'{head},"Block Size"\n{units},""\n{row},"(64, 1, 1)"\n'
    (tmp_path / "ncu.csv").write_text(wide)
    refused = hopsim(*arguments, "--ncu", str(tmp_path / "ncu.csv"))
    assert refused.exit_code == 2
    assert "no launch of copy with a grid of (4, 2, 1) and blocks of (32, 1, 1)" in refused.stderr
    assert "it has copy with a grid of (4, 2, 1) and blocks of (64, 1, 1)" in refused.stderr
    missing = row.replace('"0"', '"1"').replace("5,000", "n/a").replace("56", "58")
    same = wide + f'{row},"(32, 1, 1)"\n{missing},"(32, 1, 1)"\n'
    (tmp_path / "ncu.csv").write_text(same)
    done = hopsim(*arguments, "--ncu", str(tmp_path / "ncu.csv"))
    lines = {line.split()[0]: line.split() for line in done.stdout.splitlines()[1:]}
    assert lines["gpc__cycles_elapsed.max"][2] == "5,000"
    assert lines["smsp__inst_executed.sum"][2] == "57"
    for export in (b"\x89\x00", b'"ID","cycles"\n"0","5"\n'):
        (tmp_path / "ncu.csv").write_bytes(export)
        refused = hopsim(*arguments, "--ncu", str(tmp_path / "ncu.csv"))
        assert (refused.exit_code, refused.exception.__class__) == (2, SystemExit)
        assert "ncu.csv is no export of Nsight Compute" in refused.stderr
    assert hopsim(*arguments).exit_code == 2


def test_launches_of_a_transposed_grid_or_block_are_others(tmp_path: Path) -> None:
    head, units, row = EXPORT.splitlines()
    turned = row.replace("(4, 2, 1)", "(2, 4, 1)").replace("5,000", "9,000")
    again = row.replace("5,000", "5,200")
    lines = [f'{head},"Block Size"', f'{units},""', f'{row},"(32, 1, 1)"', f'{turned},"(32, 1, 1)"']
    lines += [
        f'{row.replace("5,000", "9,000")},"(1, 32, 1)"',
        f'{again.replace("0", "1", 1)},"(32, 1, 1)"',
    ]
    export = "\n".join(lines)
    for name, text in (("k.ptx", COPY), ("l.toml", LAUNCH), ("ncu.csv", export)):
        (tmp_path / name).write_text(text)
    words = [
        "compare",
        str(tmp_path / "k.ptx"),
        "--args",
        str(tmp_path / "l.toml"),
        "--ncu",
        str(tmp_path / "ncu.csv"),
    ]
    done = hopsim(*words)
    assert "ncu.csv, median of 2 launches" in done.stdout.replace("\n", "")
    told = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line}
    assert told["gpc__cycles_elapsed.max"][2] == "5,100"
    assert json.loads(hopsim(*words, "--json", "-").stdout)["ncu_launches"] == 2


def test_an_export_without_what_is_to_be_compared_is_refused(tmp_path: Path) -> None:
    for name, text in (("k.ptx", COPY), ("l.toml", LAUNCH)):
        (tmp_path / name).write_text(text)
    export = tmp_path / "ncu.csv"
    arguments = ["compare", str(tmp_path / "k.ptx"), "--args", str(tmp_path / "l.toml")]
    arguments += ["--ncu", str(export)]
    head = '"ID","Kernel Name","Grid Size","Metric Name","Metric Unit","Metric Value"\n'
    row = '"{}","{}","(4, 2, 1)","{}","","7"\n'
    # The page that `ncu --csv` writes of its own accord has words and none of the counters.
    export.write_text(head + row.format(0, "copy", "Elapsed Cycles"))
    refused = hopsim(*arguments)
    assert refused.exit_code == 2
    assert (
        "of the counters that hopsim predicts none\n  try: ncu --csv --page raw" in refused.stderr
    )
    export.write_text(
        head + row.format(0, "reduce", "a__b.sum") + row.format(1, "scan", "a__b.sum")
    )
    refused = hopsim(*arguments)
    assert (
        "try: it has reduce with a grid of (4, 2, 1); scan with a grid of (4, 2, 1)"
        in refused.stderr
    )
    counted = "smsp__inst_executed.sum"
    export.write_text(
        head + row.format(0, "copy<1>()", counted) + row.format(1, "copy<2>()", counted)
    )
    refused = hopsim(*arguments)
    assert "which of these" in refused.stderr
    assert "is copy? copy<1>(); copy<2>()\n  try: ncu --print-kernel-base mangled" in refused.stderr
    export.write_text(head + row.format(0, "copy", counted))
    done = hopsim(*arguments)
    assert done.exit_code == 0, done.output
    assert "the file has no gpc__cycles_elapsed.max, so that cycles are not compared" in done.stdout


def test_one_program_that_ends_in_a_deadlock_says_so(tmp_path: Path) -> None:
    (tmp_path / "l.toml").write_text("grid = 1\nblock = 64\n")
    (tmp_path / "ncu.csv").write_text(EXPORT.replace("copy", "hang").replace("(4, 2, 1)", "1"))
    hang = Path(__file__).parent / "data" / "hang.ptx"
    done = hopsim(
        "compare", str(hang), "--args", str(tmp_path / "l.toml"), "--ncu", str(tmp_path / "ncu.csv")
    )
    assert (done.exit_code, "DEADLOCK" in done.stdout) == (3, True), done.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare"], "what is to be compared?"),
        (["compare", "k.ptx", "--recorded"], "expected one of --recorded and a program, got both"),
        (["compare", "--recorded", "--role", "none"], "--role"),
        (["compare", "--recorded", "--folder", "nowhere"], "no measurements"),
        (
            ["compare", "--recorded", "--folder", str(SILICON), "--only", "nothing"],
            "no measured program",
        ),
        (["micro", "nobody"], "no microbenchmark has 'nobody'"),
        (["micro", "bar_sync_32", "--recorded", "--folder", "nowhere"], "there is no nowhere"),
        (
            ["compare", "--recorded", "--plot", "x.png"],
            "--plot: expected a name that ends in .svg or .html, got x.png",
        ),
        (
            ["compare", "--recorded", "--page", "x.svg"],
            "--page: expected a name that does not end in .svg",
        ),
        (["calibrate", "nowhere"], "there is no nowhere"),
        (["record", "nowhere"], "there is no folder nowhere"),
    ],
)
def test_mistakes(arguments: list[str], words: str) -> None:
    done = hopsim(*arguments)
    assert done.exit_code == 2
    assert words in done.stderr


@pytest.mark.parametrize(
    "option",
    [
        "--folder tests/silicon",
        "--only gemm",
        "--role judging",
        "--quick",
        "--largest 512",
        "--jobs 2",
        "--known known.json",
        "--earlier",
        "--page page.md",
        "--plot plot.svg",
    ],
)
def test_one_program_refuses_options_of_the_recorded_ones(option: str) -> None:
    name = option.split()[0]
    done = hopsim("compare", "copy.ptx", "--args", "copy.toml", "--device", "0", *option.split())
    assert done.exit_code == 2
    assert done.stderr == (
        f"{name}: hopsim compare KERNEL.ptx does not use {name}\n"
        f"  try: leave {name} out, or hopsim compare --recorded\n"
    )


@pytest.mark.parametrize(
    "option", ["--args x.toml", "--launch x.toml", "--entry copy", "--ncu ncu.csv", "--device 0"]
)
def test_recorded_programs_refuse_options_of_one_program(option: str) -> None:
    name = option.split()[0].replace("--launch", "--args")
    done = hopsim("compare", "--recorded", "--only", "nothing", *option.split())
    assert done.exit_code == 2
    assert done.stderr == (
        f"{name}: hopsim compare --recorded does not use {name}\n"
        f"  try: leave {name} out, or hopsim compare KERNEL.ptx --args FILE\n"
    )


def test_earlier_predictions_need_a_file() -> None:
    done = hopsim("compare", "--recorded", "--only", "nothing", "--earlier")
    assert done.exit_code == 2
    assert "--earlier: predictions of earlier models are taken from a file" in done.stderr


def test_microbenchmarks() -> None:
    assert "streams: rates of L2 and device memory" in hopsim("micro").stdout
    done = hopsim("micro", "bar_sync_32", "--recorded", "--folder", str(SILICON))
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "bar_sync_32: bar.sync of 32 threads"
    assert lines[1].split() == ["cycles", "a", "step", "sim", "recorded", "difference"]
    assert lines[2].split()[:1] == ["bar.sync"]
    assert lines[2].split()[2] == "14.0"


def test_calibrate(tmp_path: Path) -> None:
    out = tmp_path / "calibrated.toml"
    done = hopsim("calibrate", str(SILICON), "--out", str(out), "--json", "-")
    assert done.exit_code == 0, done.output
    values = {row["key"]: row for row in json.loads(done.stdout)["values"]}
    assert values["smem.latency"]["recorded"] == "23cycles"
    gpu = hs.Gpu(out)
    assert gpu.config.smem.latency_cycles == 23
    (fact,) = (one for one in gpu.config.facts if one.key == "smem.latency")
    assert (
        fact.source
        == "hopsim calibrate, tests/silicon/micro.json: shared_memory_latency, ld.shared.b32"
    )


def test_recording_needs_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(index: int, **options: object) -> None:
        raise hs.DeviceError("no driver", where=f"CUDA device {index}")

    monkeypatch.setattr("hopsim.cuda.gpu.CudaGpu", missing)
    done = hopsim("record", str(tmp_path))
    assert done.exit_code == 5
    assert done.stderr == "CUDA device 0: no driver\n"


def test_json_for_diffs() -> None:
    value = {"a": [1, 2], "b": {"c": 3}, "d": [{"e": "x" * 120}], "f": []}
    text = dumps(value)
    assert json.loads(text) == value
    assert text.splitlines()[:3] == ["{", ' "a": [1, 2],', ' "b": {"c": 3},']


def test_the_page_names_what_waschosen_by() -> None:
    from hopsim.cli.compare import Role, about, chosen_by

    folder = Path("tests/silicon")
    assert chosen_by(folder, "", None, None, "h100-sxm") == ""
    assert (
        chosen_by(Path("a b"), "mm_", Role.JUDGING, 512, "h200-sxm")
        == "--folder 'a b' --only mm_ --role judging --largest 512 --gpu h200-sxm"
    )
    plain, chosen = about("", {}), about("--only mm_", {})
    assert chosen[: len(plain)] == plain
    assert "Made with `--only mm_`" in chosen[-1]
