"""`hopsim mutate`: is every missing synchronization of a correct kernel reported?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopsim.cli.options import JsonOption

if TYPE_CHECKING:
    from hopsim.explore.case import Case
    from hopsim.mutate.judge import Score, Subject


def mutate(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="KERNEL|FILE.ptx", help="Kernels of hopsim; all of them."),
    ] = None,
    launch: Annotated[
        Path | None,
        typer.Option(
            "--launch",
            "--args",
            metavar="FILE.toml",
            help="How to launch FILE.ptx: see docs/cli.md.",
        ),
    ] = None,
    every: Annotated[
        int, typer.Option("--every", metavar="N", min=1, help="Take one mutant of so many.")
    ] = 1,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", min=1, help="Processes.")] = 2,
    verbose: Annotated[bool, typer.Option("--verbose", help="Tell each mutant.")] = False,
    json_file: JsonOption = None,
) -> None:
    """Remove or weaken one synchronization at a time, and check that hopsim reports it; exit 1 for survivors."""
    from hopsim.cli.output import Output
    from hopsim.mutate.equivalents import EQUIVALENTS
    from hopsim.mutate.judge import judge
    from hopsim.report.mutants import score_content, score_report

    output = Output(json_file)
    scores: list[Score] = []
    for subject in _subjects(names, launch):
        score = judge(subject, EQUIVALENTS, every=every, processes=jobs)
        output.show(score_report(score, verbose))
        scores.append(score)
    code = 1 if any(score.survivors for score in scores) else 0
    output.finish({"command": "mutate", "kernels": [score_content(one) for one in scores]}, code)


def _subjects(names: list[str] | None, launch: Path | None) -> list[Subject]:
    from hopsim.errors import ConfigError
    from hopsim.mutate.subjects import SUBJECTS, subject_named

    if launch is not None and not any(name.endswith(".ptx") for name in names or ()):
        raise ConfigError(
            f"no FILE.ptx is given that {launch} would launch",
            where="--launch",
            hint="hopsim mutate FILE.ptx --launch FILE.toml; hopsim's own kernels need no --launch",
        )
    if not names:
        return list(SUBJECTS)
    found: list[Subject] = []
    for name in names:
        if not name.endswith(".ptx"):
            found.append(subject_named(name))
        elif launch is None:
            raise ConfigError(
                f"how is {name} launched?", where="--launch", hint="--launch FILE.toml"
            )
        else:
            found.append(FileSubject(Path(name), launch))
    return found


@dataclass(frozen=True)
class FileSubject:
    """A PTX file with its launch."""

    path: Path
    launch: Path

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    @property
    def text(self) -> str:
        """PTX.

        Raises: LaunchError: the file cannot be read.
        """
        from hopsim.isa.program.kernel import load

        return load(self.path).tree.text

    def case(self, text: str) -> Case:
        """Return the launch of a changed text."""
        from hopsim.cli.file_case import FileCase

        return FileCase(self.path, self.launch, text=text)
