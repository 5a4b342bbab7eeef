"""The JSON of commands that have no result of a launch: lessons, twins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hopsim.cli.app import app
from hopsim.learn.lessons import LESSONS
from hopsim.zoo.catalog import twin_named


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


def test_pages_say_where_they_are(tmp_path: Path) -> None:
    assert content("zoo", "page", "zoo.md")["file"] == "zoo.md"
    assert (tmp_path / "zoo.md").exists()
