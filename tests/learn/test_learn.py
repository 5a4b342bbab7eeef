"""Lessons: broken programs fail, solutions pass, hints are graded, pages agree, progress stays here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hopsim.cli.app import app
from hopsim.cli.learn import write_pages
from hopsim.learn.grading import grade
from hopsim.learn.lesson import Lesson
from hopsim.learn.lessons import LESSONS
from hopsim.learn.progress import progress_file, read_progress

ROOT = Path(__file__).parents[2]
every_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def learn(*words: str) -> Result:
    return CliRunner().invoke(app, ["learn", *words])


@every_lesson
def test_the_program_is_broken_and_the_solution_passes(lesson: Lesson) -> None:
    broken = grade(lesson, lesson.program)
    assert not broken.is_passed
    assert broken.checked.result.exit_code in (1, 3)
    assert grade(lesson, lesson.pair.ptx(is_good=True)).is_passed


@every_lesson
def test_each_lesson_is_whole(lesson: Lesson) -> None:
    assert len(lesson.hints) >= 3
    assert lesson.text
    assert lesson.picture
    assert lesson.after
    assert all(len(line) <= 120 for line in lesson.picture.splitlines())


def test_there_are_at_least_ten() -> None:
    assert len({lesson.name for lesson in LESSONS}) == len(LESSONS) >= 10


def test_a_lesson_is_read_mended_and_done() -> None:
    first = LESSONS[0]
    assert "0 of 12 done. Go on with: hopsim learn wait-before-you-read" in learn().stdout
    handed_out = learn(first.name)
    path = Path(f"{first.name}.ptx")
    assert handed_out.exit_code == 0
    assert first.task in handed_out.stdout
    attempt = learn(first.name, "--check", str(path))
    assert attempt.exit_code == 1
    assert "HS001" in attempt.stdout
    assert "Not yet." in attempt.stdout
    assert "the schedule that shows it" in attempt.stdout
    path.write_text(first.pair.ptx(is_good=True))
    done = learn("1", "--check", str(path))
    assert done.exit_code == 0, done.stdout
    assert f"Done. {first.after}" in done.stdout
    assert "1 of 12 done" in learn().stdout
    assert "(it was there already)" in learn(first.name).stdout


def test_hints_get_plainer_and_stay_at_the_last() -> None:
    first = LESSONS[0]
    shown = [learn("1", "--hint").stdout for _ in range(4)]
    assert shown[0] == f"Hint 1 of 3: {first.hints[0]}\n"
    assert shown[2] == shown[3] == f"Hint 3 of 3: {first.hints[2]}\n"
    assert "+ bar.sync 0;" in learn("fence-and-barrier", "--solution").stdout


def test_leaving_the_work_out_is_no_solution() -> None:
    lesson = LESSONS[0]
    text = "\n".join(line for line in lesson.program.splitlines() if "cp.async.bulk" not in line)
    graded = grade(lesson, text)
    assert graded.lost == lesson.keeps
    assert not graded.is_passed


def test_the_attempt_is_called_by_its_own_name(tmp_path: Path) -> None:
    attempt = tmp_path / "mine.ptx"
    attempt.write_text("garbage", encoding="utf-8")
    told = learn(LESSONS[0].name, "--check", str(attempt))
    assert told.exit_code == 2
    assert "mine.ptx:1:1: expected '.version'" in told.stderr.replace("\n", "")
    missing = learn(LESSONS[0].name, "--check", "nowhere.ptx")
    assert missing.exit_code == 2
    assert "cannot read nowhere.ptx: No such file or directory" in missing.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("1 --check x.ptx --hint", "--hint: expected one thing to do with a lesson, got --check and --hint"),
        ("1 --hint --solution", "--solution: expected one thing to do with a lesson, got --hint and --solution"),
        ("1 --solution --file x.ptx", "--file: expected one thing to do with a lesson, got --solution and --file"),
        ("1 --pages pages", "--pages: expected --pages alone, for it writes all lessons, got it with lesson '1'"),
        ("--hint --pages pages", "--pages: expected --pages alone, for it writes all lessons, got it with --hint"),
    ],
)  # fmt: skip
def test_options_of_which_one_would_be_ignored_are_refused(
    words: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "pages").mkdir()
    done = learn(*words.split())
    assert done.exit_code == 2
    assert told in done.stderr
    assert not list((tmp_path / "pages").iterdir())
    assert not (tmp_path / "x.ptx").exists()


def test_both_programs_of_a_solution_number_their_labels_alike() -> None:
    told = learn("what-a-phase-is", "--solution").stdout
    assert "  - WAIT_5:\n" in told
    assert "  + WAIT_5:\n" in told


def test_what_is_no_ptx_is_told() -> None:
    Path("x.ptx").write_text("hello")
    done = learn("1", "--check", "x.ptx")
    assert (done.exit_code, done.stdout, "expected '.version'" in done.stderr) == (2, "", True)
    assert learn("1", "--check", "none.ptx").exit_code == 2
    assert learn("no-such-lesson").exit_code == 2


@pytest.mark.parametrize(
    "words", [("--check", "x.ptx"), ("--hint",), ("--solution",), ("--file", "x.ptx")]
)
def test_what_is_for_a_lesson_needs_one(words: tuple[str, ...]) -> None:
    done = learn(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{words[0]}: which lesson is it for?" in done.stderr


def test_a_folder_is_no_place_for_the_program(tmp_path: Path) -> None:
    done = learn("1", "--file", str(tmp_path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"--file: expected a file, got the folder {tmp_path}" in done.stderr


def test_progress_that_cannot_be_read_is_none() -> None:
    path = progress_file()
    assert path.parts[-2:] == ("hopsim", "learn.json")
    path.parent.mkdir(parents=True)
    assert (read_progress(path).done, read_progress(path).lost) == ([], "")
    path.write_text("[]")
    assert read_progress(path).done == []
    done = learn()
    assert done.exit_code == 0
    assert f"{path}: your progress cannot be read and begins anew: it does not hold" in done.stderr
    assert learn("1", "--hint").exit_code == 0
    assert learn().stderr == ""
    home = progress_file({"HOME": "/home/somebody"})
    assert home == Path("/home/somebody/.local/share/hopsim/learn.json")


def test_a_folder_for_pages_that_is_missing_is_named(tmp_path: Path) -> None:
    done = learn("--pages", "nowhere")
    assert done.exit_code == 2
    assert f"--pages: there is no folder {tmp_path / 'nowhere'}" in done.stderr
    assert f"mkdir -p {tmp_path / 'nowhere'}" in done.stderr


def test_the_pages_agree_with_the_lessons(tmp_path: Path) -> None:
    write_pages(tmp_path)
    folder = ROOT / "docs" / "lessons"
    assert sorted(p.name for p in folder.iterdir()) == sorted(p.name for p in tmp_path.glob("*.md"))
    for path in tmp_path.glob("*.md"):
        assert (folder / path.name).read_text(encoding="utf-8") == path.read_text(
            encoding="utf-8"
        ), "hopsim learn --pages docs/lessons"


def test_an_attempt_that_cannot_be_run_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "mine.ptx"
    path.write_text("no ptx")
    name = LESSONS[0].name
    done = learn(name, "--check", str(path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "mine.ptx" in done.stderr
    content = json.loads(learn(name, "--check", str(path), "--json", "-").stdout)
    assert sorted(content) == ["command", "error", "exit_code"]
    assert "mine.ptx" in content["error"]["where"]
