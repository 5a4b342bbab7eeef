"""`hopsim check`: exit codes, report, JSON, SARIF, suppressions, baselines, replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from hopsim.cli.app import app
from tests.cli.golden import GOLDEN, assert_golden

DATA = Path(__file__).parent / "data"
SCHEMA = Path(__file__).parents[1] / "data" / "sarif" / "sarif-2.1.0-rtm.5.json"
BAD = "relay_unwaited.ptx"


@pytest.fixture(autouse=True)
def in_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DATA)


def check(file: str, *more: str, launch: str = "relay.toml", seeds: int = 6) -> Result:
    many = [] if "--seed" in more else ["--seeds", str(seeds), "--jobs", "1"]
    words = ["check", file, "--launch", launch, *many, *more]
    return CliRunner().invoke(app, words)


def validate(path: Path) -> dict[str, Any]:
    jsonschema = pytest.importorskip("jsonschema", reason="extra `dev`")
    log: dict[str, Any] = json.loads(path.read_text())
    jsonschema.Draft4Validator(json.loads(SCHEMA.read_text())).validate(log)
    return log


def test_a_correct_program_is_clean_under_every_order() -> None:
    done = check("relay.ptx")
    assert done.exit_code == 0, done.stderr
    assert "verdict       clean: no hazards\n" in done.stdout
    assert (
        "orders        6 seeds and the adversarial order: the same bits as in order\n"
        in done.stdout
    )


def test_a_missing_wait_is_found_and_the_schedule_made_small() -> None:
    done = check(BAD)
    assert done.exit_code == 1
    assert_golden(done.stdout, GOLDEN / "check_unwaited.txt")


def test_one_seed_is_run_again() -> None:
    all_of_them = json.loads(check(BAD, "--json", "-").stdout)["schedules"]
    assert all_of_them["orders"] == 7
    seed = all_of_them["shown"]["seed"]
    again = json.loads(check(BAD, "--json", "-", "--seed", str(seed)).stdout)
    assert (again["schedule"], again["seed"]) == ("seeded", seed)
    assert again["schedules"]["orders"] == 1
    for part in ("shown", "comparisons", "minimal"):
        assert again["schedules"][part] == all_of_them[part]


def test_an_order_is_seen_again_with_the_options_that_it_was_run_with() -> None:
    options = ["--entry", "relay", "--strict", "--gpu", "h100-sxm", "--set", "dram.bandwidth=3TB/s"]
    told = " ".join(check(BAD, *options).stdout.split())
    assert (
        f"see it again: hopsim check {BAD} --launch relay.toml {' '.join(options)} --seed" in told
    )


def test_no_order_but_one_is_said() -> None:
    told = "orders        none was tried but the one in order, as --seeds 0 says"
    assert told in check("relay.ptx", seeds=0).stdout


def test_processes_change_nothing() -> None:
    words = ["check", BAD, "--launch", "relay.toml", "--seeds", "4", "--json", "-", "--jobs"]
    one, two = (CliRunner().invoke(app, [*words, jobs]).stdout for jobs in "12")
    assert one == two
    assert json.loads(one)["exit_code"] == 1


def test_a_note_that_is_left_out_does_not_explain_why_bits_change(tmp_path: Path) -> None:
    baseline = str(tmp_path / "known.json")
    assert check("tickets.ptx", "--write-baseline", baseline).exit_code == 1
    for words in ((), ("--suppress", "HS113"), ("--baseline", baseline)):
        done = check("tickets.ptx", *words)
        assert done.exit_code == 1, words
        assert "no rule of PTX is broken" in done.stdout


def test_suppressions_leave_findings_out() -> None:
    done = check(BAD, "--suppress", "HS001@19", "--json", "-")
    content = json.loads(done.stdout)
    assert done.exit_code == 0
    assert content["hazards"] == []
    assert content["left_out"] == [{"rule": "HS001", "lines": [19, 21], "why": "suppressed"}]
    assert check(BAD, "--suppress", "HS001@18").exit_code == 1
    assert check(BAD, "--suppress", "HS101").exit_code == 1


@pytest.mark.parametrize("text", ["HS1", "HS999", "HS001:4", "hs001"])
def test_suppressions_of_unknown_rules_are_refused(text: str) -> None:
    done = check(BAD, "--suppress", text)
    assert done.exit_code == 2
    assert f"--suppress: expected HSnnn or HSnnn@LINE, got '{text}'" in done.stderr


def test_suppressions_that_cover_nothing_are_told() -> None:
    words = ["--suppress", "HS001@1", "--suppress", "HS502", "--suppress", "HS001@19"]
    assert "left out      nothing by --suppress HS001@1, HS502\n" in check(BAD, *words).stdout
    content = json.loads(check(BAD, *words, "--json", "-").stdout)
    assert content["idle_suppressions"] == ["HS001@1", "HS502"]


def test_a_baseline_knows_findings_although_lines_move(tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    assert check(BAD, "--write-baseline", str(known)).exit_code == 0
    moved = tmp_path / "moved.ptx"
    moved.write_text("// a line more\n" + (DATA / BAD).read_text())
    done = check(str(moved), "--baseline", str(known))
    assert done.exit_code == 0, done.stdout
    assert "left out      1 finding in the baseline: HS001" in done.stdout
    other = tmp_path / "other.ptx"
    other.write_text(moved.read_text().replace("ld.shared.b32", "ld.shared.u32"))
    assert check(str(other), "--baseline", str(known)).exit_code == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "is no baseline"),
        ("{", "is no JSON"),
        (
            '{"format": 1, "findings": [{"rule": 3}]}',
            "known.json: findings[0]: expected the name of a finding, as HS001-0123456789abcdef, got {'rule': 3}",
        ),
        (
            '{"format": 1, "findings": ["HS001-0123456789abcdef", "HS001"]}',
            "findings[1]: expected the name of",
        ),
    ],
)
def test_a_baseline_that_is_none_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "known.json"
    path.write_text(text)
    done = check(BAD, "--baseline", str(path))
    assert (done.exit_code, says in done.stderr) == (2, True)
    assert "try: --write-baseline" in done.stderr
    assert check(BAD, "--baseline", str(tmp_path / "none.json")).exit_code == 2


def test_sarif_is_valid_and_names_both_places(tmp_path: Path) -> None:
    path = tmp_path / "found.sarif"
    assert check(BAD, "--sarif", str(path)).exit_code == 1
    run = validate(path)["runs"][0]
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("HS001", "error")
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["name"] == "tma-read-unwaited"
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == (BAD, 21)
    lines = [one["physicalLocation"]["region"]["startLine"] for one in result["relatedLocations"]]
    assert lines == [19, 21]


def test_sarif_of_suppressed_findings_and_of_deadlocks_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "found.sarif"
    assert check(BAD, "--sarif", str(path), "--suppress", "HS001").exit_code == 0
    (result,) = validate(path)["runs"][0]["results"]
    assert result["suppressions"] == [{"kind": "external", "justification": "suppressed"}]
    launch = tmp_path / "hang.toml"
    launch.write_text("grid = 1\nblock = 64\n")
    assert check("hang.ptx", "--sarif", str(path), launch=str(launch)).exit_code == 3
    assert {one["ruleId"] for one in validate(path)["runs"][0]["results"]} >= {"HSDEADLOCK"}
    assert check("relay.ptx", "--sarif", str(path)).exit_code == 0
    assert validate(path)["runs"][0]["results"] == []


def test_contested_rules_have_switches(tmp_path: Path) -> None:
    text = (DATA / "relay.ptx").read_text()
    assert check("relay.ptx", "--scopes").exit_code == 0
    drained = json.loads(check("relay.ptx", "--strict", "--json", "-").stdout)
    assert {one["rule"] for one in drained["hazards"]} == {"HS200"}  # init_fence: PTX before 9.3
    newer = tmp_path / "newer.ptx"
    newer.write_text(text.replace(".version 8.7", ".version 9.3"))
    assert check(str(newer), "--strict").exit_code == 0


def test_what_is_not_modelled_ends_with_4(tmp_path: Path) -> None:
    launch = tmp_path / "launch.toml"
    launch.write_text("grid = 1\nblock = 32\n")
    assert check("textures.ptx", "--entry", "sample", launch=str(launch)).exit_code == 4


def faulting(folder: Path) -> str:
    """A launch file with more threads than `scale.ptx` has elements."""
    path = folder / "outside.toml"
    path.write_text((DATA / "scale.toml").read_text().replace("block = 64", "block = 96"))
    return str(path)


def test_a_fault_that_is_left_out_leaves_the_rest_unchecked(tmp_path: Path) -> None:
    launch, known = faulting(tmp_path), str(tmp_path / "known.json")
    assert check("scale.ptx", launch=launch).exit_code == 1
    for words in (
        ["--suppress", "HS703"],
        ["--write-baseline", known],
        ["--baseline", known],
    ):
        done = check("scale.ptx", *words, "--json", "-", launch=launch)
        content = json.loads(done.stdout)
        assert (done.exit_code, content["verdict"], content["hazards"]) == (4, "not-modelled", [])
        assert [(note["line"], note["why"]) for note in content["not_modelled"]] == [
            (17, "the run ended in a fault, which is left out: nothing after it was checked")
        ]
        assert content["faulted"]
    # Another finding that is left out says nothing of the fault.
    done = check("scale.ptx", "--suppress", "HS101", "--json", "-", launch=launch)
    content = json.loads(done.stdout)
    assert (done.exit_code, content["verdict"], content["not_modelled"]) == (1, "hazard", [])


def test_sarif_tells_the_rule_of_a_fault_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "found.sarif"
    assert check("scale.ptx", "--sarif", str(path), launch=faulting(tmp_path)).exit_code == 1
    (result,) = validate(path)["runs"][0]["results"]
    text = result["message"]["text"]
    assert "\n" not in text
    assert "Rule: access outside an allocation or shared memory." in text
    assert "Missing:" not in text
    # What is unchecked because the fault is left out is told here too.
    words = ["--sarif", str(path), "--suppress", "HS703"]
    assert check("scale.ptx", *words, launch=faulting(tmp_path)).exit_code == 4
    ids = [one["ruleId"] for one in validate(path)["runs"][0]["results"]]
    assert ids == ["HS703", "HSNOTMODELLED"]


@pytest.mark.parametrize(("expected", "code"), [(2, 0), (1, 1)])
def test_arrays_are_compared_as_by_run(tmp_path: Path, expected: int, code: int) -> None:
    np.save(tmp_path / "y.npy", np.full(64, expected, np.float32))
    launch = tmp_path / "launch.toml"
    text = (DATA / "scale.toml").read_text().replace('random = "integers"', "fill = 1")
    launch.write_text(
        text.replace("uninitialised = true", 'uninitialised = true\ncompare = "y.npy"')
    )
    done = check("scale.ptx", "--json", "-", launch=str(launch))
    content = json.loads(done.stdout)
    assert (done.exit_code, content["verdict"]) == (code, "clean")
    assert [one["equal"] for one in content["comparisons"]] == [expected == 2]
    told = "y has the bits of y.npy" if expected == 2 else "y differs from y.npy"
    assert told in " ".join(check("scale.ptx", launch=str(launch)).stdout.split())


def test_arrays_of_a_run_that_faulted_are_not_compared(tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.ones(64, np.float32))
    launch = Path(faulting(tmp_path))
    text = launch.read_text()
    launch.write_text(
        text.replace("uninitialised = true", 'uninitialised = true\ncompare = "y.npy"')
    )
    done = check("scale.ptx", launch=str(launch))
    assert "bits          not compared: the run stopped at a fault\n" in done.stdout


@pytest.mark.parametrize("words", [["--seeds", "500"], ["--jobs", "2"]])
def test_one_order_takes_no_options_of_many(words: list[str]) -> None:
    done = check(BAD, "--seed", "1", *words)
    assert done.exit_code == 2
    assert f"hopsim check --seed does not use {words[0]}" in done.stderr
