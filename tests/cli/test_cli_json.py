"""The JSON of commands that have no result of a launch: lessons, twins, errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hopsim.cli.app import app
from hopsim.learn.lessons import LESSONS
from hopsim.zoo.catalog import twin_named

PAGE = Path(__file__).parents[2] / "docs/cli.md"
KEYS = "<!-- keys: tests/cli/test_cli_json.py -->"
DATA = Path(__file__).parent / "data"
SETS = {"calibration", "judging"}
"""Keys that are there if rows of the set are."""
SILICON = Path(__file__).parents[1] / "silicon"


def content(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, [*words, "--json", "-"])
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["exit_code"] == done.exit_code
    return found


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def test_lessons_are_listed_with_what_is_done() -> None:
    assert [one["name"] for one in content("learn")["lessons"]] == [one.name for one in LESSONS]
    assert not any(one["done"] for one in content("learn")["lessons"])


def test_a_lesson_is_judged() -> None:
    lesson = LESSONS[0]
    told = content("learn", lesson.name)
    assert (told["task"], Path(told["file"]).read_text()) == (lesson.task, lesson.program)
    assert content("learn", lesson.name, "--hint")["hint"] == lesson.hints[0]
    judged = content("learn", lesson.name, "--check", told["file"])
    assert (judged["passed"], judged["verdict"], judged["exit_code"]) == (False, "hazard", 1)
    Path("mended.ptx").write_text(content("learn", lesson.name, "--solution")["solution"])
    judged = content("learn", lesson.name, "--check", "mended.ptx")
    assert (judged["passed"], judged["lost"], judged["exit_code"]) == (True, [], 0)
    assert content("learn")["lessons"][0]["done"]


def test_a_twin_is_shown_with_both_programs() -> None:
    shown, twin = content("zoo", "show", "thread-race"), twin_named("thread-race")
    assert (shown["rule"], shown["bad"]) == (twin.rule, twin.ptx(is_good=False))
    assert shown["good"] == twin.ptx(is_good=True)


def described() -> dict[str, str]:
    """Return what the page says of the keys of a command."""
    table = PAGE.read_text(encoding="utf-8").split(KEYS)[1].split("<!-- /keys -->")[0]
    return dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", table, flags=re.MULTILINE))


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (f"run {DATA / 'scale.ptx'} --template", "run --template"),
        ("ladder --m 64 --n 64 --k 64 --only pipelined", "ladder"),
        ("surroundings maps --m 64 --n 64 --k 64 --tile 64x64x64 --stages 2", "surroundings"),
        (f"mutate {DATA / 'scale.ptx'} --launch {DATA / 'scale.toml'}", "mutate"),
        ("explain HS101", "explain"),
        ("zoo list HS502", "zoo list"),
        ("zoo show HS502", "zoo show"),
        ("zoo run HS502", "zoo run"),
        ("learn", "learn"),
        ("learn 1", "learn LESSON"),
        ("learn 1 --hint", "learn LESSON --hint"),
        ("learn 1 --solution", "learn LESSON --solution"),
        ("learn 1 --check broken.ptx", "learn LESSON --check FILE"),
        (f"lint {DATA / 'scale.ptx'}", "lint"),
        ("isa wgmma.fence", "isa"),
        ("config show", "config show"),
        ("config validate", "config validate"),
        ("layout smem", "layout"),
        (f"compare --recorded --folder {SILICON} --largest 512 --only pingpong", "compare --recorded"),
        ("micro", "micro"),
        (f"micro bar_sync_32 --recorded --folder {SILICON}", "micro NAME"),
        (f"calibrate {SILICON}", "calibrate"),
    ],
)  # fmt: skip
def test_the_page_names_all_keys(words: str, command: str) -> None:
    Path("broken.ptx").write_text(LESSONS[0].program)
    found = content(*words.split())
    assert (found.pop("command").split()[0], "error" in found) == (command.split()[0], False)
    del found["exit_code"]
    parts = [re.findall(r"`(\w+)`", part) for part in described()[command].split(";")]
    assert set(found) - SETS == {key for key, *_ in parts} - SETS
    for key, *of in parts:
        if of:
            assert set(found[key][0]) == set(of), key


def test_pages_say_where_they_are(tmp_path: Path) -> None:
    assert content("zoo", "page", "zoo.md")["file"] == "zoo.md"
    assert (tmp_path / "zoo.md").exists()


def test_an_error_of_usage_is_told_in_json_too() -> None:
    for words, command, what in (
        (("gemm", "--foo"), "gemm", "No such option: --foo"),
        (("gemm", "--m", "64"), "gemm", "Missing option '--n'"),
        (("gemm", "--m", "many"), "gemm", "Invalid value for '--m'"),
        (("config", "shwo"), "config", "No such command 'shwo'"),
        (("--foo", "config"), "", "No such option: --foo"),
    ):
        told = content(*words)
        assert (told["command"], told["exit_code"]) == (command, 2)
        assert (told["error"]["kind"], what in told["error"]["what"]) == ("UsageError", True), told
    done = CliRunner().invoke(app, ["gemm", "--foo", "--json=out.json"])
    assert json.loads(Path("out.json").read_text())["error"]["what"] == "No such option: --foo"
    assert (done.exit_code, done.stdout, "No such option: --foo" in done.stderr) == (2, "", True)


def test_little_memory_is_told_in_json_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(word: str = "") -> list[object]:
        raise MemoryError("8 TiB")

    monkeypatch.setattr("hopsim.isa.support.support_matrix", fail)
    told = content("isa")
    assert (told["command"], told["exit_code"]) == ("isa", 2)
    assert told["error"] == {
        "kind": "MemoryError", "what": "not enough memory on this machine: 8 TiB", "where": "",
        "hint": "a smaller problem",
        "message": "not enough memory on this machine: 8 TiB\n  try: a smaller problem",
    }  # fmt: skip


def test_an_error_of_a_command_in_a_command_names_both() -> None:
    assert content("config", "show", "none")["command"] == "config show"


def test_an_error_in_ptx_has_its_line_and_column() -> None:
    Path("b.ptx").write_text(".version 8.7\n.target sm_90a\n  what is this")
    error = content("lint", "b.ptx")["error"]
    assert (error["kind"], error["where"]) == ("PtxError", "b.ptx:3:3")
    assert (error["line"], error["column"]) == (3, 3)


def test_json_that_cannot_be_written_is_told_once() -> None:
    done = CliRunner().invoke(app, ["isa", "--json", "none/x.json"])
    assert (done.exit_code, done.stdout, done.stderr.count("--json: ")) == (2, "", 1)
    # Another error is told beside it.
    done = CliRunner().invoke(app, ["isa", "--foo", "--json", "none/x.json"])
    assert (done.exit_code, done.stderr.count("--json: ")) == (2, 1)
    assert "No such option: --foo" in done.stderr
