"""Recordings that are damaged, or something else: told with the file and what is wrong in it, before anything runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hopsim.cli.app import app

SILICON = Path(__file__).parents[1] / "silicon"
SIZES = ("--m", "512", "--n", "512", "--k", "512", "--only", "pipelined", "--jobs", "1")
READERS = {
    "micro": ("micro.json", ("micro", "arithmetic_0", "--recorded", "--folder")),
    "ladder": ("bf16.json", ("ladder", *SIZES, "--recorded")),
    "compare": ("judging/gemm_own.json", ("compare", "--recorded", "--folder")),
    "calibrate": ("micro.json", ("calibrate",)),
}
"""By command: the file that it reads in a folder, and the words before the folder."""
DAMAGED = {
    "cut off": ('[{"name": ', "not JSON: "),
    "no text": (b"\x93NUMPY\xff", "not JSON: "),
    "null": ("null", "expected a "),
    "a number": ("3", "expected a "),
    "deep": ("[" * 100_000, "not JSON: "),
}


def hopsim(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def refused(command: str, content: str | bytes, folder: Path) -> str:
    """Run a command on a recording; return what it says, beginning with the file."""
    name, words = READERS[command]
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = hopsim(*words, str(folder))
    assert (done.exit_code, type(done.exception)) == (2, SystemExit), done.output
    assert done.stderr.startswith(f"{file}: "), done.stderr
    assert "try: a file that hopsim record made" in done.stderr
    return done.stderr.removeprefix(f"{file}: ")


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("command", READERS)
def test_a_damaged_recording_is_told(command: str, damage: str, tmp_path: Path) -> None:
    content, words = DAMAGED[damage]
    assert refused(command, content, tmp_path).startswith(words)


ELSE: list[tuple[str, Any, str]] = [
        ("micro", [{"cycles": {}}], "0: expected a table with name, got one without"),
        ("micro", [{"name": "a", "slopes": {"x": "7"}}], "0.slopes.x: expected a number, got '7'"),
        ("calibrate", {"name": "a"}, "expected a list, got {'name': 'a'}"),
        ("calibrate", [[]], "0: expected a table, got []"),
        ("compare", [{"kernel": "a"}], "0: expected a table with entry, got one without"),
        ("compare", ["kernel"], "0: expected a table, got 'kernel'"),
        ("ladder", {"problems": []}, "expected a table with dtype, got one without"),
        ("ladder", {"dtype": "bf16", "problems": {}}, "problems: expected a list, got {}"),
        (
            "ladder",
            {"dtype": "bf16", "problems": [{"m": 1, "n": 1, "k": 1, "cublas": {}, "steps": [{"error": "x"}, {"step": "y"}]}]},
            "steps.1: expected a table with words, got one without",
        ),
]  # fmt: skip


@pytest.mark.parametrize(("command", "content", "words"), ELSE)
def test_a_recording_of_something_else_is_told(
    command: str, content: Any, words: str, tmp_path: Path
) -> None:
    assert refused(command, json.dumps(content), tmp_path).startswith(words)


def test_one_wrong_number_in_a_recording_is_told_with_its_place(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = json.loads((SILICON / "judging" / "gemm_own.json").read_text())
    rows[2]["measured"][1]["cycles"] = [12729.0, None]
    told = refused("compare", json.dumps(rows), tmp_path)
    assert told.startswith("2.measured.1.cycles.1: expected a number, got None")


def test_numbers_that_differ_by_nothing_calibrate_nothing(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = json.loads((SILICON / "micro.json").read_text())
    for row in rows:
        row["cycles"] = dict.fromkeys(row["cycles"], 7)
    (tmp_path / "micro.json").write_text(json.dumps(rows))
    (tmp_path / "judging").mkdir()
    shutil.copy(SILICON / "judging" / "empty_kernel.json", tmp_path / "judging")
    done = hopsim("calibrate", str(tmp_path))
    assert (done.exit_code, type(done.exception)) == (2, SystemExit)
    assert "has recordings that should differ and do not" in done.stderr


@pytest.mark.parametrize("name", ["mine", "mine.json"])
def test_a_configuration_has_a_name_by_which_it_is_found(name: str, tmp_path: Path) -> None:
    done = hopsim("calibrate", str(SILICON), "--out", str(tmp_path / name))
    assert done.exit_code == 2
    assert f"--out: expected a name that ends in .toml, got {tmp_path / name}" in done.stderr
    assert f"try: --out {tmp_path / 'mine.toml'}" in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / name).exists()
