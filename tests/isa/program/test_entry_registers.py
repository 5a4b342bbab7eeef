"""Registers at entry of kernels that move them: a table, and that ptxas says the same."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import hopsim as hs
from hopsim.launch.geometry import registers_per_thread

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
TABLE: list[tuple[str, str, int | None]] = [
    ("", "inc 232, dec 40", None),
    (".maxntid 256", "inc 232, dec 40", None),
    (".reqntid 1024", "inc 232, dec 40", None),
    (".minnctapersm 1", "inc 232, dec 40", None),
    (".maxntid 16 .minnctapersm 64", "inc 232, dec 24", None),
    (".maxntid 65 .minnctapersm 22", "inc 232, dec 24", None),
    (".maxntid 256 .minnctapersm 9", "inc 232, dec 24", None),
    (".maxntid 256 .minnctapersm 1", "inc 232, dec 40", 232),
    (".reqntid 256 .minnctapersm 1", "dec 40, inc 232", 232),
    (".maxntid 128 .minnctapersm 1", "dec 24, inc 120", 120),
    (".maxntid 128 .minnctapersm 1", "inc 240, inc 160", 240),
    (".maxntid 128 .minnctapersm 1", "dec 24, inc 24", 24),
    (".maxntid 128 .minnctapersm 1", "inc 256, dec 24", 255),
    (".maxntid 128 .minnctapersm 1", "dec 96", 255),
    (".maxntid 256, 2 .minnctapersm 1", "inc 232, dec 40", 128),
    (".maxntid 384 .minnctapersm 1", "inc 232, dec 40", 168),
    (".maxntid 384 .minnctapersm 1", "inc 120, dec 40", 120),
    (".maxntid 384 .minnctapersm 2", "inc 232, dec 40", 80),
    (".maxntid 100 .minnctapersm 8", "inc 232, dec 24", 64),
    (".maxntid 33 .minnctapersm 17", "inc 232, dec 24", 56),
    (".maxntid 1024 .minnctapersm 2", "inc 232, dec 24", 32),
    (".maxnreg 128", "inc 232, dec 40", 128),
    (".maxnreg 101", "inc 120, dec 24", 101),
    (".maxnreg 240", "inc 120, dec 24", 120),
    (".maxnreg 300", "dec 24", 255),
    (".maxnreg 10", "inc 120, dec 24", 24),
    (".reqntid 1024 .maxnreg 240", "inc 232, dec 24", 232),
    (".maxntid 256 .minnctapersm 3 .maxnreg 100", "inc 232, dec 24", 80),
    (".maxntid 256 .minnctapersm 9 .maxnreg 100", "inc 232, dec 24", 100),
]
"""Directives, what the two warpgroups ask for, registers at entry (None: not known)."""


def text_of(directives: str, asked: str) -> str:
    first, second = ("setmaxnreg.{}.sync.aligned.u32 {};".format(*one.split()) for one in (*asked.split(", "), asked)[:2])  # fmt: skip
    return (
        f"{HEAD}.visible .entry k() {directives} {{\n.reg .pred %p;\n.reg .b32 %r;\nmov.u32 %r, %tid.x;\n"
        f"setp.ge.u32 %p, %r, 128;\n@%p bra P;\n{first}\nret;\nP: {second if ', ' in asked else ''}\nret;\n}}\n"
    )


@pytest.mark.parametrize(("directives", "asked", "expected"), TABLE)
def test_registers_at_entry_come_from_directives_and_the_most_asked_for(
    directives: str, asked: str, expected: int | None
) -> None:
    kernel = hs.loads(text_of(directives, asked))["k"]
    assert kernel.entry_registers == expected
    if expected is not None:
        assert {registers_per_thread(kernel, threads, 65536) for threads in (32, 128)} == {expected}


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not on PATH")
def test_ptxas_says_the_same(tmp_path: Path) -> None:
    source = tmp_path / "k.ptx"
    for directives, asked, expected in TABLE:
        source.write_text(text_of(directives, asked), encoding="utf-8")
        told = subprocess.run(
            ["ptxas", "-arch=sm_90a", "-v", str(source), "-o", str(tmp_path / "k.cubin")],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        output = told.stdout + told.stderr
        used = re.search(r"Used (\d+) registers", output)
        assert used is not None
        known = None if "'setmaxnreg' ignored" in output else int(used[1])
        assert (directives, asked, known) == (directives, asked, expected)


@pytest.mark.parametrize("bound", [".minnctapersm 1", ""])
def test_a_kernel_whose_warpgroups_take_and_give_is_clean_and_told_where_ptxas_ignores_it(
    bound: str,
) -> None:
    """232 registers a thread are what 256 threads start with; without `.minnctapersm` nothing moves."""
    kernel = hs.loads(text_of(f".maxntid 256 {bound}", "inc 232, dec 40"))["k"]
    result = hs.Gpu("h100-sxm").launch(kernel, grid=1, block=256, args=[])
    assert result.verdict == "clean"
    told = [(hazard.rule, hazard.level) for hazard in result.hazards]
    assert told == ([] if bound else [("HS602", "note")])


def test_no_registers_wait_where_ptxas_ignores_setmaxnreg() -> None:
    """240 registers for 384 threads are more than an SM has: acted out, it would never end."""
    text = text_of(".reqntid 384", "inc 240, inc 240")
    result = hs.Gpu("h100-sxm").launch(hs.loads(text)["k"], grid=1, block=384, args=[])
    assert (result.verdict, {hazard.rule for hazard in result.hazards}) == ("clean", {"HS602"})
