"""mma.sync, mma.sp and wgmma.mma_async.sp: their spellings are ptxas's, and what is wrong in them is told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hopsim.isa.catalog import FORMS
from hopsim.isa.forms.form import Form
from hopsim.isa.program.kernel import loads
from tests.isa.ops.assembly import opcode, refused, spellings

REGISTERS = ".reg .b32 %r<400>; .reg .b64 %d; .reg .f64 %f<32>; .reg .pred %p;"
HEAD = f".version 8.7\n.target sm_90a\n.address_size 64\n.entry k()\n{{\n{REGISTERS}\n"
MODULES = ("mma", "mma_sparse", "wgmma_sparse")
NARROW = "m64n8k"
"""Of wgmma the shapes of eight columns stand for all, and two wider ones."""
WIDE = ("m64n64k", "m64n24k", "m64n256k")


def products() -> list[tuple[Form, dict[str, str]]]:
    found: list[tuple[Form, dict[str, str]]] = []
    for form in FORMS:
        if form.factory.__module__.rsplit(".", 1)[-1] in MODULES:
            for slots in spellings(form):
                if form.unit == "mma" or slots["shape"].startswith((NARROW, *WIDE)):
                    found.append((form, slots))
    return found


def text(form: Form, slots: dict[str, str], selector: int = 0) -> str:
    """Return a spelling with its operands, all of registers of their own."""
    counts = form.counts(slots) if form.counts else {}
    operands: list[str] = []
    used = 0
    for spec in form.operands:
        if spec.shape == "vector" or (spec.shape == "maybe_vector" and counts[spec.name] > 1):
            letter = "f" if spec.type == "f64" else "r"
            names = (f"%{letter}{used + index}" for index in range(counts[spec.name]))
            operands.append("{" + ", ".join(names) + "}")
            used += counts[spec.name]
        elif spec.name == "e":
            operands.append("%r399")
        elif spec.name == "f":
            operands.append(str(selector))
        elif spec.immediate:
            operands.append("0" if spec.name in ("ta", "tb") else "1")
        else:
            operands.append({"u64": "%d", "pred": "%p"}[spec.type])
    return f"{opcode(form, slots)} {', '.join(operands)};"


def wrong(lines: list[str]) -> dict[int, str]:
    """What hopsim says of the lines that it refuses, by index."""
    first = HEAD.count("\n") + 1
    errors = loads(HEAD + "\n".join(lines) + "\nret;\n}\n")["k"].errors
    return {error.line - first: error.what for error in errors if error.line is not None}


def test_every_spelling_is_read() -> None:
    lines = [text(form, slots) for form, slots in products()]
    assert len(lines) > 300
    assert wrong(lines) == {}


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not installed")
def test_ptxas_takes_every_spelling(tmp_path: Path) -> None:
    lines = [text(form, slots) for form, slots in products()]
    bad = refused(lines, tmp_path, HEAD)
    assert [(lines[index], message) for index, message in bad.items()] == []


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not installed")
def test_selectors_are_those_that_ptxas_takes(tmp_path: Path) -> None:
    sparse = [one for one in products() if any(spec.name == "f" for spec in one[0].operands)]
    lines = [text(form, slots, selector) for form, slots in sparse for selector in range(5)]
    told = wrong(lines)
    other = {lines[index] for index in set(told) ^ set(refused(lines, tmp_path, HEAD))}
    # PTX has 0 and 1 there; ptxas 13.0 refuses the others with sums in f16, and not with those in f32.
    assert {line.split(" ")[0].split(".aligned.")[1] for line in other} == {
        "m16n8k32.row.col.f32.f16.f16.f32"
    }
    assert {line.split(", ")[-1] for line in other} == {"2;", "3;"}
    assert len(told) > 50
    assert all("the sparsity selector is" in what for what in told.values())


A, C = "{%r1, %r2, %r3, %r4}", "{%r5, %r6, %r7, %r8}"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (f"mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {C}, {A}, {A}, {C}, %r9, 2;", "the sparsity selector is 2, expected 0 or 1"),
        (f"mma.sp.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32 {C}, {A}, {A}, {C}, %r9, 1;", "the sparsity selector is 1, expected 0"),
        (f"mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {C}, {A}, {A}, {C}, %r9, %r10;", "immediate"),
        (f"mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {C}, {A}, {{%r1}}, {C};", "operand b must have 2 items, got 1"),
        (f"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {C}, {A}, {A}, {C};", "must have 2 items, got 4"),
        (f"wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.bf16.bf16 {C}, %d, %d, %r9, 0, %p, 1, 1, 0, 0;", "k must be 32, got 16"),
        (f"wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16 {C}, %d, %d, %r9, 2, %p, 1, 1, 0, 0;", "the sparsity selector is 2, expected 0 or 1"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(line: str, what: str) -> None:
    assert what in wrong([line])[0]
