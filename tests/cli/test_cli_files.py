"""Files that commands write: a path that cannot be written is told before anything runs; what ran is shown all the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hopsim.cli.app import app
from hopsim.cli.output import check_target, write_file
from hopsim.errors import ConfigError

DATA = Path(__file__).parent / "data"
SILICON = Path(__file__).parents[1] / "silicon"
SIZES = ("--m", "64", "--n", "64", "--k", "64")
LAUNCH = ("--launch", str(DATA / "scale.toml"))


def hopsim(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("gemm", *SIZES), "--ptx"),
        (("gemm", *SIZES), "--trace"),
        (("gemm", *SIZES), "--json"),
        (("attention",), "--ptx"),
        (("attention",), "--trace"),
        (("run", str(DATA / "scale.ptx"), *LAUNCH), "--trace"),
        (("check", str(DATA / "scale.ptx"), *LAUNCH), "--sarif"),
        (("check", str(DATA / "scale.ptx"), *LAUNCH), "--write-baseline"),
        (("compare", "--recorded", "--folder", str(SILICON)), "--page"),
        (("compare", "--recorded", "--folder", str(SILICON)), "--known"),
        (("calibrate", str(SILICON)), "--out"),
        (("layout", "mma", "m16n8k16"), "--svg"),
        (("layout", "copy", "--thr", "(16,8):(8,1)", "--val", "(1,8)"), "--html"),
        (("layout", "smem"), "--svg"),
        (("layout", "descriptor"), "--html"),
        (("surroundings", "maps"), "--json"),
        (("surroundings", "dependent"), "--json"),
        (("zoo", "record"), "--file"),
    ],
)
def test_a_folder_is_refused_before_anything_runs(
    command: tuple[str, ...], option: str, tmp_path: Path
) -> None:
    done = hopsim(*command, option, str(tmp_path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{option}: expected a file, got the folder {tmp_path}\n  try: ")
    done = hopsim(*command, option, str(tmp_path / "none" / "file"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{option}: there is no folder {tmp_path / 'none'}\n  try: mkdir")


@pytest.mark.parametrize("name", ["a.svg", "a.html"])
def test_a_plot_in_a_folder_s_place_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    done = hopsim("compare", "--recorded", "--plot", str(tmp_path / name))
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"--plot: expected a file, got the folder {tmp_path / name}" in done.stderr


def test_the_plot_of_a_page_is_looked_at_too(tmp_path: Path) -> None:
    (tmp_path / "a.svg").mkdir()
    done = hopsim("compare", "--recorded", "--page", str(tmp_path / "a.md"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"--page: expected a file, got the folder {tmp_path / 'a.svg'}" in done.stderr


def test_the_page_of_the_zoo_names_its_path(tmp_path: Path) -> None:
    done = hopsim("zoo", "page", str(tmp_path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{tmp_path}: expected a file, got the folder {tmp_path}\n")


def launch_file(folder: Path) -> Path:
    text = (DATA / "scale.toml").read_text()
    path = folder / "args.toml"
    path.write_text(text.replace("uninitialised = true", 'fill = 0\nsave = "y.npy"'))
    return path


def test_an_array_that_cannot_be_saved_is_told_before_the_run(tmp_path: Path) -> None:
    toml = launch_file(tmp_path)
    (tmp_path / "y.npy").mkdir()
    words = ("run", str(DATA / "scale.ptx"), "--args", str(toml), "--run-schedule", "in-order")
    done = hopsim(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{toml}: arrays.y: save: expected a file, got the folder" in done.stderr
    # Without values nothing is saved.
    assert hopsim(*words, "--no-values").exit_code == 0


def test_a_run_is_shown_although_its_files_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk that fills up while a kernel runs: no check beforehand finds that."""
    toml = launch_file(tmp_path)
    write = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if self.name != "out.json":
            raise OSError(28, "No space left on device")
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    out, trace = tmp_path / "out.json", tmp_path / "t.json"
    done = hopsim(
        "run", str(DATA / "scale.ptx"), "--args", str(toml), "--trace", str(trace), "--json", str(out)
    )  # fmt: skip
    assert done.exit_code == 2
    assert "verdict       clean" in done.stdout
    assert "saved" not in done.stdout
    lines = done.stderr.splitlines()
    array, timeline = (line for line in lines if not line.startswith("  try"))
    assert array == (
        f"{toml}: arrays.y: save: cannot write {tmp_path / 'y.npy'}: No space left on device"
    )
    assert timeline == f"--trace: cannot write {trace}: No space left on device"
    content = json.loads(out.read_text())
    assert (content["verdict"], content["exit_code"]) == ("clean", 2)
    assert content["error"]["where"] == f"{toml}: arrays.y: save"


def test_a_file_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, mode: int) -> bool:
        return False

    monkeypatch.setattr("os.access", refuse)
    with pytest.raises(ConfigError, match=f"--out: cannot write .*: no permission for {tmp_path}"):
        check_target(tmp_path / "a", "--out")
    (tmp_path / "a").touch()
    with pytest.raises(ConfigError, match=f"no permission for {tmp_path / 'a'}"):
        check_target(tmp_path / "a", "--out")


def test_text_and_bytes_are_written_as_they_are(tmp_path: Path) -> None:
    write_file(tmp_path / "a", "é\n", "--out")
    write_file(tmp_path / "b", memoryview(b"\x00\n"), "--out")
    assert (tmp_path / "a").read_bytes() == b"\xc3\xa9\n"
    assert (tmp_path / "b").read_bytes() == b"\x00\n"
    with pytest.raises(ConfigError, match="--out: cannot write"):
        write_file(tmp_path, "", "--out")


@pytest.mark.parametrize("option", ["--ptx", "--trace", "--json"])
def test_an_empty_name_is_no_folder(option: str) -> None:
    done = hopsim("gemm", "--m", "64", "--n", "64", "--k", "64", option, "")
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{option}: expected a file, got ''\n" in done.stderr


def test_two_options_do_not_name_one_file(tmp_path: Path) -> None:
    file, same = tmp_path / "same", tmp_path / "." / "same"
    done = hopsim("gemm", *SIZES, "--json", str(file), "--trace", str(same))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "the file of --" in done.stderr
    assert "too, which would be lost\n  try: another file\n" in done.stderr
    assert json.loads(file.read_text())["exit_code"] == 2


def test_files_are_written_where_nobody_reads_on(tmp_path: Path) -> None:
    """As behind `| head -1`: the exit code is that of the run."""
    file = tmp_path / "a.json"
    words = [sys.executable, "-m", "hopsim", "gemm", *SIZES, "--no-check", "--json", str(file)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        started.stdout.close()
        assert started.stderr is not None
        said = started.stderr.read()
        assert (started.wait(), said) == (0, "")
    assert json.loads(file.read_text())["exit_code"] == 0


PLAIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("locale", [{"PYTHONIOENCODING": "latin-1"}, PLAIN], ids=["latin-1", "C"])
def test_another_encoding_gets_plain_signs_and_the_names_of_files(
    locale: dict[str, str], tmp_path: Path
) -> None:
    text = (
        (DATA / "scale.toml")
        .read_text()
        .replace("uninitialised = true", 'fill = 0\nsave = "ü.npy"')
    )
    launch, trace = tmp_path / "è.toml", tmp_path / "ö.json"
    launch.write_text(text)
    words = [
        sys.executable,
        "-m",
        "hopsim",
        "run",
        str(DATA / "scale.ptx"),
        "--args",
        str(launch),
        "--trace",
        str(trace),
    ]
    done = subprocess.run(words, capture_output=True, env={**os.environ, **locale}, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b" ##" in done.stdout
    assert (tmp_path / "ü.npy").exists()
    assert json.loads(trace.read_text())["traceEvents"]
    assert "ö.json".encode("utf-8" if locale is PLAIN else "latin-1") in done.stdout
    # Nor does an error end in a traceback.
    launch.write_text(text.replace("grid = 1", 'grid = "ü█"'))
    done = subprocess.run(words, capture_output=True, env={**os.environ, **locale}, check=False)
    assert done.returncode == 2
    assert b"grid: expected a whole number" in done.stderr
    assert b"Traceback" not in done.stderr
