"""`hopsim zoo`, and recordings of silicon with a device that is made up."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from hopsim.cli.app import app
from hopsim.cuda.gpu import CudaGpu
from hopsim.errors import ConfigError, DeviceError
from hopsim.report.zoo import comparison_page, side_by_side
from hopsim.runtime.gpu import Gpu
from hopsim.zoo.catalog import ROOMS, TWINS, twin_named
from hopsim.zoo.silicon import (
    Entry,
    Observed,
    Recording,
    first_message,
    observe,
    read_recording,
    record,
    recording_text,
    sanitize,
    sanitize_all,
)

ROOT = Path(__file__).parents[2]
TWIN = twin_named("thread-race")


class SimulatedDevice(Gpu):
    """Takes the calls of a device; `fails` is raised by every second launch."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.fails = fails
        self.launches = 0

    def launch(self, *args: Any, time_limit_s: float = 0, **options: Any) -> Any:
        self.launches += 1
        if self.fails and self.launches % 2 == 0:
            raise DeviceError("an illegal address\nmore")
        return super().launch(*args, schedule="seeded", seed=self.launches, check=False, **options)

    def close(self) -> None:
        pass


def zoo(*words: str) -> Result:
    return CliRunner().invoke(app, ["zoo", *words])


def test_list_has_every_twin_and_filters() -> None:
    listed = json.loads(zoo("list", "--json", "-").stdout)["twins"]
    assert [one["name"] for one in listed] == [twin.name for twin in TWINS]
    assert "HS500  thread-race" in zoo("list", "HS500").stdout
    assert zoo("list", "HS501", "thread-race").stdout.count("\n") == 3


def test_show_marks_the_lines_that_differ() -> None:
    text = zoo("show", "thread-race").stdout
    assert "  + bar.sync 0;\n" in text
    assert "    ld.shared.b32 %r1, [%r5+0];\n" in text
    assert zoo("show", "thread-race", "--ptx", "bad").stdout == TWIN.ptx(False)
    assert zoo("show", "thread-race", "--ptx", "worse").exit_code == 2
    assert zoo("show", "no-such-twin").exit_code == 2


def test_run_judges_both() -> None:
    done = zoo("run", "HS501", "--json", "-")
    (one,) = json.loads(done.stdout)["twins"]
    assert (done.exit_code, one["is_right"], one["found"], one["good"]) == (0, True, ["HS501"], [])
    assert zoo("run", "thread-race").stdout.endswith("1 of 1 twins are judged as the zoo expects\n")


def test_the_page_agrees_with_the_zoo() -> None:
    page = comparison_page(ROOMS, read_recording())
    assert (ROOT / "docs" / "zoo.md").read_text(encoding="utf-8") == page, (
        "hopsim zoo page docs/zoo.md"
    )


def test_the_counts_agree_with_the_zoo() -> None:
    table = side_by_side(ROOMS, read_recording())
    assert table in (ROOT / "docs" / "hazards.md").read_text(encoding="utf-8"), table


def test_a_device_is_observed() -> None:
    gpu = cast(CudaGpu, SimulatedDevice())
    assert observe(gpu, TWIN, is_good=True, runs=6) == Observed(6, 0)
    bad = observe(gpu, TWIN, is_good=False, runs=6)
    assert bad.runs == 6
    assert 0 < bad.wrong <= 6
    assert str(bad) == f"wrong in {bad.wrong} of 6"
    hang = observe(gpu, twin_named("missing-arriver"), is_good=False, runs=6)
    assert (hang, str(hang)) == (Observed(0, 0, hang=True), "hang")
    broken = cast(CudaGpu, SimulatedDevice(fails=True))
    assert str(observe(broken, TWIN, is_good=True)) == "error: an illegal address"
    assert str(Observed(20, 0)) == "hidden in 20 runs"


def test_recordings_are_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "silicon.json"
    assert read_recording(path) == Recording({}, {})
    entries = record(cast(CudaGpu, SimulatedDevice()), [TWIN], runs=2)
    made = Recording({"device": "made up"}, entries)
    path.write_text(recording_text(made), encoding="utf-8")
    again = read_recording(path)
    assert again == made
    assert again.silicon(twin_named("smem-scratch-reuse")) == "not recorded"
    assert again.sanitizer(TWIN) == "not recorded"
    path.write_text("{}")
    with pytest.raises(ConfigError, match="no recording of format 1"):
        read_recording(path)


def test_compute_sanitizer_is_asked_with_each_tool(tmp_path: Path) -> None:
    program = tmp_path / "sanitizer"
    program.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        "tool = sys.argv[2]\n"
        "print('========= COMPUTE-SANITIZER\\n========= Error: a race' if tool == 'racecheck' else '')\n"
        "sys.exit(77 if tool == 'racecheck' else 0)\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    other = twin_named("missing-arriver")
    told: list[str] = []
    both = sanitize_all(str(program), [other, TWIN], [other.name], told.append)
    found = both[TWIN.name]
    assert found == {"memcheck": "", "racecheck": "Error: a race", "synccheck": "", "initcheck": ""}
    assert list(both) == [other.name, TWIN.name]
    assert len(told) == 8
    entry = Entry(Observed(1, 1), Observed(1, 0), found)
    assert Recording({}, {TWIN.name: entry}).sanitizer(TWIN) == "racecheck"
    assert first_message("nothing") == "reported, with no message"
    with pytest.raises(ConfigError, match="cannot run"):
        sanitize(str(tmp_path / "none"), TWIN, "memcheck")


def test_inputs_differ_in_neighbouring_words() -> None:
    case = TWIN.case(is_good=True)
    gpu = Gpu()
    words = case.arguments(gpu).args[0].numpy()
    assert (words[1:64] != words[:63]).all()
    assert np.unique(words).size > 16
