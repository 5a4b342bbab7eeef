"""How Nsight Compute is run: a stand-in takes its place, which writes what it was asked for."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

import pytest

from hopsim.errors import DeviceError
from hopsim.kernels.measured.ncu import profile

METRICS = ("gpc__cycles_elapsed.max", "dram__bytes_read.sum")
EXPORT = """
"ID","Kernel Name","Grid Size","gpc__cycles_elapsed.max","dram__bytes_read.sum","other__one.sum"
"","","","cycle","byte",""
"0","gemm_x(A)","(8, 2, 1)","1,000","64","7"
"1","empty()","(1, 1, 1)","5","n/a","7"
"""


@pytest.fixture
def ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file whose Python code stands for `ncu`; `arguments` and `log` are known there."""
    code = tmp_path / "code.py"
    script = tmp_path / "bin" / "ncu"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {sys.executable} {code} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    return code


def stand_in(code: Path, body: str) -> None:
    head = """
    import subprocess, sys, time
    arguments = sys.argv[1:]
    log = arguments[arguments.index("--log-file") + 1]
    """
    code.write_text(textwrap.dedent(head) + textwrap.dedent(body))


def test_launches_with_the_metrics_asked_for(ncu: Path, tmp_path: Path) -> None:
    stand_in(
        ncu,
        f"open(log, 'w').write({EXPORT!r}); open(log + '.asked', 'w').write(' '.join(arguments))",
    )
    told: list[str] = []
    log = tmp_path / "ncu.csv"
    found = profile("some.module", "what", METRICS, log, 60.0, told.append, "^gemm")
    assert [(one.kernel, one.grid, dict(one.metrics)) for one in found] == [
        ("gemm_x(A)", (8, 2, 1), {"gpc__cycles_elapsed.max": 1000.0, "dram__bytes_read.sum": 64.0}),
        ("empty()", (1, 1, 1), {"gpc__cycles_elapsed.max": 5.0}),
    ]
    assert told == []
    asked = (tmp_path / "ncu.csv.asked").read_text()
    assert "--clock-control none" in asked
    assert f"--metrics {','.join(METRICS)} -k regex:^gemm --log-file {log}" in asked
    assert asked.endswith(f"{sys.executable} -m some.module what")


def test_a_failure_is_told_and_what_was_written_counts(ncu: Path, tmp_path: Path) -> None:
    stand_in(ncu, f"open(log, 'w').write({EXPORT!r}); print('no permission'); sys.exit(3)")
    told: list[str] = []
    found = profile("m", "a", METRICS, tmp_path / "ncu.csv", 60.0, told.append)
    assert len(found) == 2
    assert told == ["ncu ended with 3: no permission\n"]


def test_a_hang_ends_with_all_its_children(ncu: Path, tmp_path: Path) -> None:
    stand_in(
        ncu,
        f"""
        open(log, "w").write({EXPORT!r})
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        time.sleep(600)
        """,
    )
    told: list[str] = []
    found = profile("m", "a", METRICS, tmp_path / "ncu.csv", 3.0, told.append)
    assert len(found) == 2
    assert told == ["ncu was ended after 3 s"]


def test_nothing_written_and_no_ncu_are_errors(
    ncu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(ncu, "")
    with pytest.raises(DeviceError, match="ncu wrote nothing"):
        profile("m", "a", METRICS, tmp_path / "ncu.csv", 60.0, print)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DeviceError, match="ncu is not on PATH"):
        profile("m", "a", METRICS, tmp_path / "ncu.csv", 60.0, print)
