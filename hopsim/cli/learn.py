"""`hopsim learn`: lessons with broken programs to mend."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopsim.cli.options import JsonOption

if TYPE_CHECKING:
    from hopsim.cli.output import Output
    from hopsim.learn.progress import Progress


def learn(
    name: Annotated[
        str | None,
        typer.Argument(metavar="LESSON", help="Name or number; without one, list them."),
    ] = None,
    check: Annotated[
        Path | None, typer.Option("--check", metavar="FILE.ptx", help="Check an attempt.")
    ] = None,
    hint: Annotated[bool, typer.Option("--hint", help="Show the next hint.")] = False,
    solution: Annotated[bool, typer.Option("--solution", help="Show the lines to change.")] = False,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE.ptx", help="Where to put the program.")
    ] = None,
    pages: Annotated[
        Path | None,
        typer.Option("--pages", metavar="FOLDER", help="Write the lessons as Markdown."),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Read a lesson, mend its program, have it checked; progress is kept on this machine only."""
    from hopsim.cli.output import Output, check_target, write_file
    from hopsim.learn.lessons import LESSONS, lesson_named
    from hopsim.learn.pages import lesson_list, lesson_text
    from hopsim.report.zoo import marked

    output = Output(json_file)
    does = {"--check": check, "--hint": hint, "--solution": solution, "--file": file}
    _check_choice(name, [option for option, value in does.items() if value], pages)
    if pages is not None:
        write_pages(pages)
        output.finish({"command": "learn", "pages": str(pages)}, 0)
        return
    progress = _progress()
    if name is None:
        output.show(lesson_list(LESSONS, progress))
        lessons = [
            {"name": one.name, "title": one.title, "done": one.name in progress.done}
            for one in LESSONS
        ]
        output.finish({"command": "learn", "lessons": lessons}, 0)
        return
    lesson = lesson_named(name)
    content: dict[str, Any] = {"command": "learn", "lesson": lesson.name}
    if check is not None:
        _check(output, lesson.name, check, progress)
        return
    if hint:
        number = progress.next_hint(lesson.name, len(lesson.hints))
        content["hint"] = lesson.hints[number - 1]
        output.show(f"Hint {number} of {len(lesson.hints)}: {content['hint']}")
    elif solution:
        content["solution"] = lesson.pair.ptx(is_good=True)
        output.show(marked(lesson.pair))
    else:
        target = file or Path(f"{lesson.name}.ptx")
        # What somebody has begun to mend stays as it is.
        is_new = not target.is_file()
        if is_new:
            check_target(target, "--file")
            write_file(target, lesson.program, "--file")
        content |= {"title": lesson.title, "task": lesson.task, "file": str(target)}
        output.show(lesson_text(lesson, str(target), is_new))
    output.finish(content, 0)


def _check_choice(name: str | None, given: Sequence[str], pages: Path | None) -> None:
    """Refuse options of which only one can be meant.

    Args:
        given: options that are for one lesson, each of which does something else with it.
    Raises: ConfigError.
    """
    from hopsim.errors import ConfigError

    if pages is not None and (name is not None or given):
        one = given[0] if name is None else f"lesson {name!r}"
        raise ConfigError(
            f"expected --pages alone, for it writes all lessons, got it with {one}",
            where="--pages",
            hint="leave --pages out, or the rest",
        )
    if name is None and given:
        raise ConfigError(
            "which lesson is it for?",
            where=given[0],
            hint=f"hopsim learn LESSON {given[0]}; hopsim learn lists them",
        )
    if len(given) > 1:
        raise ConfigError(
            f"expected one thing to do with a lesson, got {' and '.join(given)}",
            where=given[1],
            hint=f"hopsim learn {name} {given[0]}, then hopsim learn {name} {given[1]}",
        )


def _progress() -> Progress:
    """Return what the learner has done; a file that cannot be read is told, for it is written anew."""
    from hopsim.learn.progress import progress_file, read_progress

    found = read_progress(progress_file())
    if found.lost:
        typer.echo(
            f"{found.path}: your progress cannot be read and begins anew: {found.lost}\n"
            "  try: mend the file, or delete it, before the next lesson writes it",
            err=True,
        )
    return found


def _check(output: Output, name: str, path: Path, progress: Progress) -> None:
    from hopsim.errors import ConfigError
    from hopsim.learn.grading import grade
    from hopsim.learn.lessons import lesson_named
    from hopsim.learn.pages import grade_report

    lesson = lesson_named(name)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        hint = f"hopsim learn {name} writes the program to mend"
        raise ConfigError(
            f"cannot read {path}: {error.strerror}", where="--check", hint=hint
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is no text in UTF-8", where="--check") from None
    graded = grade(lesson, text, str(path))
    output.show(grade_report(lesson, graded, str(path), text.splitlines()))
    if graded.is_passed:
        progress.passed(lesson.name)
    content = {
        "command": "learn", "lesson": lesson.name, "passed": graded.is_passed,
        "right_bits": graded.has_right_bits, "lost": list(graded.lost),
        "verdict": graded.checked.result.verdict,
    }  # fmt: skip
    output.finish(content, 0 if graded.is_passed else 1)


def write_pages(folder: Path) -> None:
    """Write one page for each lesson, and an index.

    Raises: ConfigError: there is no such folder, or it cannot be written.
    """
    from hopsim.cli.output import check_target, write_file
    from hopsim.learn.lessons import LESSONS
    from hopsim.learn.pages import lesson_index, lesson_page

    check_target(folder / "README.md", "--pages")
    for number, lesson in enumerate(LESSONS, 1):
        following = LESSONS[number] if number < len(LESSONS) else None
        write_file(folder / f"{lesson.name}.md", lesson_page(number, lesson, following), "--pages")
    write_file(folder / "README.md", lesson_index(LESSONS), "--pages")
