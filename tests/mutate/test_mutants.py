"""Every synchronization that is taken from our own kernels, or from Triton's, is reported or known to be redundant."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from hopsim.cli.app import app
from hopsim.cli.file_case import FileCase
from hopsim.errors import LaunchError
from hopsim.mutate.equivalents import EQUIVALENTS
from hopsim.mutate.judge import Judgment, Score, Subject, judge
from hopsim.mutate.operators import Mutant
from hopsim.mutate.subjects import GEMMS, MICRO, OTHERS, subject_named
from hopsim.report.mutants import score_content, score_report
from tests.mutate.triton_subjects import TRITON

DATA = Path(__file__).parents[1] / "cli" / "data"


def assert_all_reported(score: Score) -> None:
    assert [str(one.mutant) for one in score.survivors] == []
    assert score.of("refused") == []
    assert score.percent == 100.0
    assert all(one.why for one in score.of("equivalent"))


@pytest.mark.parametrize(
    ("name", "every"),
    [("wgmma-simple", 6), ("warp-specialized", 6), ("mma-multistage", 6), ("stream-k", 12), ("attention", 12)],
)  # fmt: skip
def test_some_mutants_of_some_kernels(name: str, every: int) -> None:
    assert_all_reported(judge(subject_named(name), EQUIVALENTS, every=every))


@pytest.mark.slow
@pytest.mark.timeout(400)  # stream-k polls flags
@pytest.mark.parametrize("subject", [*GEMMS, *OTHERS], ids=lambda subject: subject.name)
def test_all_mutants_of_our_kernels(subject: Subject) -> None:
    assert_all_reported(judge(subject, EQUIVALENTS))


@pytest.mark.slow
@pytest.mark.parametrize("subject", MICRO, ids=lambda subject: subject.name)
def test_mutants_of_microbenchmarks(subject: Subject) -> None:
    assert_all_reported(judge(subject, EQUIVALENTS, every=3))


@pytest.mark.slow
@pytest.mark.parametrize("subject", TRITON, ids=lambda subject: subject.name)
def test_all_mutants_of_triton_kernels(subject: Subject) -> None:
    assert_all_reported(judge(subject, EQUIVALENTS))


def test_survivors_are_counted_in_words() -> None:
    one = Judgment(Mutant("removed", 7, "bar.sync 0", "", ""), "survivor")
    assert "2 mutants: 2 survivors" in score_report(Score("k", (one, one))).text.plain
    assert "1 mutant: 1 survivor\n" in score_report(Score("k", (one,))).text.plain


def test_without_reasons_mutants_survive() -> None:
    score = judge(subject_named("wgmma-simple"), every=1)
    assert [one.mutant.before.split() for one in score.survivors] == [["bar.sync", "0"]]
    assert score.percent < 100
    text = score_report(score).text.plain
    assert "1 survivor" in text
    assert "removed at :" in text
    assert score_content(score)["percent"] == score.percent


def test_a_wrong_kernel_is_no_subject() -> None:
    done = CliRunner().invoke(
        app,
        ["mutate", str(DATA / "relay_unwaited.ptx"), "--launch", str(DATA / "relay.toml"), "--jobs", "1"],
    )  # fmt: skip
    assert done.exit_code == 2
    assert "itself is hazard: HS001" in done.stderr


def test_a_file_of_somebody_else() -> None:
    words = [
        str(DATA / "relay.ptx"),
        "--launch",
        str(DATA / "relay.toml"),
        "--jobs",
        "1",
        "--verbose",
    ]
    done = CliRunner().invoke(app, ["mutate", *words])
    assert done.exit_code == 0, done.stdout
    assert done.stdout.startswith(f"{DATA / 'relay.ptx'}: 100.0 % of ")
    assert CliRunner().invoke(app, ["mutate", "x.ptx"]).exit_code == 2
    assert CliRunner().invoke(app, ["mutate", "no-such-kernel"]).exit_code == 2


def test_a_kernel_without_synchronization_has_no_score(tmp_path: Path) -> None:
    kernel, launch = tmp_path / "alone.ptx", tmp_path / "alone.toml"
    kernel.write_text(
        ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry alone() { ret; }\n"
    )
    launch.write_text("grid = 1\nblock = 32\n")
    words = [str(kernel), "--launch", str(launch), "--jobs", "1"]
    done = CliRunner().invoke(app, ["mutate", *words], terminal_width=400)
    assert done.exit_code == 0, done.stdout
    assert "nothing to mutate: no synchronization to remove or weaken" in done.stdout.replace(
        "\n", " "
    )
    assert "%" not in done.stdout


def test_only_correct_kernels_are_judged() -> None:
    class Broken:
        name = "broken"
        text = (DATA / "relay_unwaited.ptx").read_text()

        def case(self, text: str) -> object:
            return FileCase(DATA / "relay_unwaited.ptx", DATA / "relay.toml", text=text)

    with pytest.raises(LaunchError, match="mutants are made of correct kernels"):
        judge(Broken())  # type: ignore[arg-type]
