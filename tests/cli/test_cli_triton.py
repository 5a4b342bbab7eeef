"""A Triton kernel as a user would run it: template, launch file, bits, a wait taken out, an arrival taken out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from hopsim.cli.app import app
from tests.kernels.triton_programs import BF16, problem

SIZE = 256
(PROGRAM,) = (one for one in BF16 if one.name == "mm_tma_bf16_128x128x64_s3_w4_al")
MAP = '{{ tensor_map = "{name}", box = [64, 128], swizzle = "128B" }}'
SHAPE = f"{{ int32 = {SIZE} }}, {{ int32 = {SIZE} }}, {{ int64 = {SIZE} }}, {{ int64 = 1 }}"
LAUNCH = f"""
grid = 4
block = 128
shared_bytes = {PROGRAM.shared_bytes}
args = [
{"".join(f"  {MAP.format(name=name)}, {SHAPE},{chr(10)}" for name in "abc")}
  {{ int32 = {SIZE} }}, {{ int32 = {SIZE} }}, {{ int32 = {SIZE} }}, {{ null = true }}, {{ null = true }},
]

[arrays.a]
npy = "a.npy"
dtype = "bfloat16"

[arrays.b]
npy = "b.npy"
dtype = "bfloat16"

[arrays.c]
dtype = "bfloat16"
shape = [{SIZE}, {SIZE}]
uninitialised = true
compare = "exact.npy"
"""
WAIT = re.compile(r"waitLoop:\n.*\n.*waitLoop;\n")
ARRIVE = "@%p20 mbarrier.arrive.expect_tx.shared.b64 _, [%r52], 32768;"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    a, b, exact = problem((SIZE, SIZE, SIZE), "bf16", "bf16")
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    np.save(tmp_path / "exact.npy", np.frombuffer(exact, a.dtype).reshape(SIZE, SIZE))
    (tmp_path / "launch.toml").write_text(LAUNCH)
    return tmp_path


def hopsim(folder: Path, command: str, ptx: str, *more: str) -> Result:
    (folder / "k.ptx").write_text(ptx)
    given = ["--launch", str(folder / "launch.toml")]
    return CliRunner().invoke(app, [command, str(folder / "k.ptx"), *given, *more])


def test_the_bits_are_those_of_the_reference(folder: Path) -> None:
    done = hopsim(folder, "run", PROGRAM.ptx)
    assert done.exit_code == 0, done.stderr
    assert "c has the bits of exact.npy: all 65,536 elements equal" in done.stdout
    assert "verdict       clean: no hazards" in done.stdout
    quick = hopsim(folder, "run", PROGRAM.ptx, "--no-values", "--json", "-")
    assert quick.exit_code == 0
    assert json.loads(quick.stdout)["cycles"] > 5000


def test_a_wait_taken_out(folder: Path) -> None:
    without = WAIT.sub("", PROGRAM.ptx, count=1)
    assert without != PROGRAM.ptx
    # Cold, the code comes so late that the data is there; that is luck.
    assert "HS001 tma-read-unwaited" in hopsim(folder, "run", without).stdout
    done = hopsim(folder, "run", without, "--warm", "code")
    assert done.exit_code == 1
    # An arrival too many ends it: what c holds then is no result.
    assert "bits          not compared: the run stopped at a fault" in done.stdout
    assert "HS001 tma-read-unwaited" in done.stdout
    checked = hopsim(folder, "check", without, "--seeds", "4", "--tries", "1", "--jobs", "1")
    assert checked.exit_code == 1
    assert "a fault in " in checked.stdout
    assert "1 arrival on mbarrier 0x18400, but phase 0 needs only 0 more of 1" in checked.stdout


def test_an_arrival_taken_out(folder: Path) -> None:
    assert PROGRAM.ptx.count(ARRIVE) == 1
    done = hopsim(folder, "run", PROGRAM.ptx.replace(ARRIVE, ""))
    assert done.exit_code == 3
    told = done.stdout[done.stdout.index("DEADLOCK") :]
    assert (
        "mbarrier 0x18410 (global_smem+0x18010) of cta (0,0,0) and 3 more CTAs: phase 0 is open, 1 of 1 arrivals missing, "
        "32,768 bytes more than expected" in told
    )
    # What is the same in every CTA is told once.
    assert told.count("-> mbarrier 0x18410 -> nobody; likewise 3 more CTAs") == 1
    assert told.count("before   ") == 1
    assert "before the copies, one thread: mbarrier.arrive.expect_tx with 32768 bytes" in told


def test_forgotten_shared_memory(folder: Path) -> None:
    (folder / "launch.toml").write_text(LAUNCH.replace("shared_bytes", "#"))
    done = hopsim(folder, "run", PROGRAM.ptx)
    assert done.exit_code == 1
    assert "launched with shared_bytes=0: give the bytes of dynamic shared memory" in done.stdout


def test_a_template_has_a_line_for_each_parameter(folder: Path) -> None:
    (folder / "k.ptx").write_text(PROGRAM.ptx)
    printed = CliRunner().invoke(app, ["run", str(folder / "k.ptx"), "--template"])
    assert printed.exit_code == 0
    lines = printed.stdout.splitlines()
    assert lines[:4] == [
        'entry = "mm_tma"',
        "grid = 1  # CTAs: a number, or [x, y, z]",
        "block = 128  # as .reqntid says",
        "shared_bytes = 0  # dynamic shared memory: this kernel uses it",
    ]
    start = lines.index("args = [")
    arguments = [line.split("#")[0].strip() for line in lines[start + 1 : lines.index("]")]]
    width = ["{ int32 = 1 },"] * 2 + ["{ int64 = 1 },"] * 2
    maps = [f'{{ tensor_map = "a{n}", box = [64, 128], swizzle = "128B" }},' for n in range(3)]
    assert arguments == [
        maps[0], *width, maps[1], *width, maps[2], *width, *["{ int32 = 1 },"] * 3,
        # Triton's scratch, which this kernel does not read.
        *["{ null = true },"] * 2,
    ]  # fmt: skip
    # It is a launch file: with the shared memory, something runs.
    filled = printed.stdout.replace("shared_bytes = 0", f"shared_bytes = {PROGRAM.shared_bytes}")
    (folder / "launch.toml").write_text(filled)
    done = hopsim(folder, "run", PROGRAM.ptx, "--no-values")
    assert done.exit_code == 0, done.stderr


def test_how_to_launch_must_be_told(folder: Path) -> None:
    (folder / "k.ptx").write_text(PROGRAM.ptx)
    done = CliRunner().invoke(app, ["run", str(folder / "k.ptx")])
    assert done.exit_code == 2
    assert "--template" in done.stderr


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("addd.s32", "addd.s32 is wrong PTX or not modelled (did you mean add?)"),
        (
            "add.st.s32",
            "add.st.s32 is wrong PTX or not modelled: no form of add has .st; did you mean .sat?",
        ),
        ("tcgen05.ld", "tcgen05.ld is wrong PTX or not modelled\n"),
    ],
)
def test_lint_says_what_is_strange(folder: Path, wrong: str, says: str) -> None:
    (folder / "k.ptx").write_text(PROGRAM.ptx.replace("add.s32 ", wrong + " ", 1))
    done = CliRunner().invoke(app, ["lint", str(folder / "k.ptx")])
    assert done.exit_code == 4
    assert says in done.stdout
    assert "1 instruction not modelled" in done.stdout
