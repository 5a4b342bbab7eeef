"""What is typed wrong is told with what is expected there, what was typed, and what may have been meant."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

from hopsim.cli.app import app
from hopsim.cli.usage import reword

GEMM = ("gemm", "--m", "64", "--n", "64", "--k", "64")
DATA = Path(__file__).parent / "data"


def hopsim(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["--dtype", "bf8"], "expected one of bf16, fp16, e4m3, tf32, int8, got 'bf8'"),
        (["--schedule", "ping-pong"], "got 'ping-pong'. Did you mean 'pingpong'?"),
        (["--swizzle=64b"], "expected one of none, 32B, 64B, 128B, got '64b'. Did you mean '64B'?"),
        (["--seed", "-1"], "--seed"),
        (["--stages", "many"], "--stages"),
    ],
)
def test_options(typed: list[str], words: str) -> None:
    refused = hopsim(*GEMM, *typed)
    assert refused.exit_code == 2
    assert words in refused.stderr
    assert "Value error" not in refused.stderr
    told = hopsim(*GEMM, *typed, "--json", "-")
    assert words in json.loads(told.stdout)["error"]["what"]


@pytest.mark.parametrize(
    ("message", "typed", "words"),
    [
        (
            "Input should be greater than or equal to 0",
            ["--seed=-1"],
            "expected at least 0, got '-1'",
        ),
        (
            "Input should be a valid integer, unable to parse string as an integer",
            ["--seed", "x"],
            "expected a whole number, got 'x'",
        ),
        ("Input should be less than or equal to 9", [], "expected at most 9"),
        ("'a' is not one of 'x', 'y'.", [], "expected one of x, y, got 'a'"),
        ("Missing parameter: m", [], "Missing parameter: m"),
    ],
)
def test_messages_of_a_parser(message: str, typed: list[str], words: str) -> None:
    error = SimpleNamespace(message=message, param=SimpleNamespace(opts=["--seed"]))
    reword(error, typed)
    assert error.message == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gird = 1\nblock = 64\n", "grid is missing\n  try: is 'gird' meant to be 'grid'?"),
        (
            'grid = 1\nblock = 64\nargs = [{ array = "x" }]\n[arrays.x]\ndtype = "bf16"\nshape = 4\nfill = 0\n',
            "got 'bf16'\n  try: did you mean \"bfloat16\"?",
        ),
        (
            "grid = 1\nblock = 64\nargs = [{ f32 = 2.5 }]\n",
            "kind is missing\n  try: { float32 = 2.5 }",
        ),
        (
            "grid = 1\nblock = 64\nargs = [{ int32 = 1e3 }]\n",
            "expected a whole number for int32, got 1000.0\n  try: value = 1000",
        ),
    ],
)
def test_launch_files(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "l.toml").write_text(text)
    refused = hopsim("run", str(DATA / "hang.ptx"), "--args", str(tmp_path / "l.toml"))
    assert refused.exit_code == 2
    assert words in refused.stderr


@pytest.mark.parametrize(("command", "option"), [("run", "--args"), ("check", "--launch")])
def test_without_a_launch_file(command: str, option: str) -> None:
    refused = hopsim(command, "k.ptx" if command == "check" else str(DATA / "hang.ptx"))
    assert refused.exit_code == 2
    assert f"{option}: how is the kernel launched?" in refused.stderr
    assert "--template > FILE.toml, fill it in" in refused.stderr


def test_an_image_has_the_name_of_one(tmp_path: Path) -> None:
    for option, name in (("--svg", "x.png"), ("--html", "x.svg")):
        refused = hopsim("layout", "smem", option, str(tmp_path / name))
        assert refused.exit_code == 2
        assert f"{option}: expected a name that ends in" in refused.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["learn", "fip-the-parity"], "flip-the-parity"),
        (["learn", "wait"], "wait-before-you-read, who-has-waited"),
        (["zoo", "show", "thred-race"], "thread-race"),
    ],
)
def test_names_that_are_nearly_right(words: list[str], near: str) -> None:
    refused = hopsim(*words)
    assert (refused.exit_code, f"try: {near}" in refused.stderr) == (2, True), refused.stderr
