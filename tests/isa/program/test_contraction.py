"""Products in sums: what is one `fma` is what ptxas makes one of, and computes as it does."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import hopsim as hs
from hopsim.isa.program.kernel import Kernel
from tests.isa.program.contractions import PROGRAMS, WIDTHS, Program

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
OPERATIONS = ("fma", "mul", "add")
MACHINE = re.compile(r"\b[FDH](FMA|MUL|ADD)2?(\.MMA)?(\.\w+)* (.*?) ;")
CASES = [(name, kind) for name, one in PROGRAMS.items() for kind in one.kinds]


def entry(name: str, program: str, kind: str) -> str:
    """Return a kernel of one program."""
    width = WIDTHS[kind]
    register = kind if kind in ("f32", "f64") else f"b{width}"
    loads = "".join(f"ld.global.b{width} %x{i}, [%a+{i * width // 8}];\n" for i in range(6))
    number = iter(range(10))

    def store(found: re.Match[str]) -> str:
        return f"st.global.b{width} [%o+{next(number) * width // 8}], {found[1]}"

    body = re.sub(r"OUT (%\w+)", store, program.replace("KIND", kind)).replace("; ", ";\n")
    if kind != "f32":
        body = re.sub(r"setp[^;]*;", "", body)
    return (
        f".visible .entry {name}(.param .u64 p, .param .u64 q)\n{{\n.reg .{register} %x<6>, %y<10>;\n"
        ".reg .b64 %a, %o;\n.reg .pred %p0;\n.reg .b32 %r<3>;\n"
        "ld.param.u64 %a, [p];\nld.param.u64 %o, [q];\nld.global.u32 %r0, [%a+96];\nld.global.u32 %r1, [%a+100];\n"
        f"{loads}{body}\nret;\n}}\n"
    )


def loaded(program: str, kind: str = "f32") -> Kernel:
    return hs.loads(HEAD + entry("k", program, kind))["k"]


def run(program: str, *values: np.float32) -> NDArray[np.float32]:
    gpu = hs.Gpu("h100-sxm")
    out = gpu.array(np.zeros(4, np.float32))
    given = gpu.array(np.array([*values, *[1.0] * (32 - len(values))], np.float32))
    result = gpu.launch(loaded(program), 1, 1, args=[given, out])
    assert result.verdict == "clean"
    return out.numpy()


def counted(program: Program) -> list[int]:
    return [program.fma, program.mul, program.add]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_what_is_one_instruction_is_one_here(name: str, kind: str) -> None:
    program = PROGRAMS[name]
    found = Counter(
        one.form.base[0].replace("sub", "add")
        for one in loaded(program.text, kind).instructions
        if any(word in WIDTHS for word in one.instruction.opcode)
    )
    dead = name == "dead use"
    assert [found[one] - (dead and one == "mul") for one in OPERATIONS] == counted(program)


@pytest.mark.skipif(
    shutil.which("ptxas") is None or shutil.which("nvdisasm") is None,
    reason="ptxas and nvdisasm are not installed",
)
def test_it_is_what_ptxas_makes_of_them(tmp_path: Path) -> None:
    source, binary = tmp_path / "k.ptx", tmp_path / "k.cubin"
    names = {f"k{number:03}": case for number, case in enumerate(CASES)}
    texts = [entry(at, PROGRAMS[name].text, kind) for at, (name, kind) in names.items()]
    source.write_text(HEAD + "".join(texts))
    subprocess.run(["ptxas", "-arch=sm_90a", str(source), "-o", str(binary)], check=True)
    listed = subprocess.run(
        ["nvdisasm", "-c", str(binary)], check=True, capture_output=True, text=True
    ).stdout
    made: dict[tuple[str, str], list[int]] = {}
    for part in listed.split("\n.text.")[1:]:
        at, _, code = part.partition(":")
        found = Counter([operation(one) for one in MACHINE.finditer(code)])
        made[names[at]] = [found[one] for one in OPERATIONS]
    assert made == {case: counted(PROGRAMS[case[0]]) for case in made}
    assert len(made) == len(CASES)


def operation(machine: re.Match[str]) -> str:
    """Return what a machine instruction is here; nothing for a literal that is moved or a value that is negated."""
    operands = machine[4]
    if operands.count("RZ") == 2 or (machine[1] == "ADD" and "RZ" in operands):
        return ""
    return "mul" if operands.endswith("-RZ") else machine[1].lower()


# --- values ---------------------------------------------------------------------------------------

NEAR_ONE = np.float32(1 + 2**-12)
SQUARE = NEAR_ONE * NEAR_ONE
TINY = np.float32(2**-24)
"""What a rounding takes from the square."""


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("mul.f32 %y0, %x0, %x1; sub.f32 %y1, %x2, %y0; OUT %y1;", -TINY),
        ("mul.f32 %y0, %x0, %x1; sub.f32 %y1, %y0, %x2; OUT %y1;", TINY),
        ("mul.f32 %y0, %x0, %x1; neg.f32 %y0, %y0; add.f32 %y1, %y0, %x2; OUT %y1;", -TINY),
        ("mul.f32 %y0, %x0, %x1; neg.f32 %y2, %y0; sub.f32 %y1, %x2, %y2; neg.f32 %x2, %x2; add.f32 %y1, %y1, %x2; add.f32 %y1, %y1, %x2; OUT %y1;", 0.0),
        ("mul.f32 %y0, %x0, %x1; mul.f32 %y0, %y0, 0fBF800000; add.f32 %y1, %x2, %y0; OUT %y1;", -TINY),
        ("mul.f32 %y0, %x0, %x1; mov.f32 %x0, %x3; sub.f32 %y1, %y0, %x2; OUT %y1;", TINY),
        ("mul.f32 %x0, %x0, %x1; sub.f32 %x0, %x0, %x2; OUT %x0;", TINY),
        ("mul.rn.f32 %y0, %x0, %x1; sub.f32 %y1, %y0, %x2; OUT %y1;", 0.0),
        ("mul.f32 %y0, %x0, %x1; sub.rn.f32 %y1, %y0, %x2; OUT %y1;", 0.0),
        ("mul.f32 %y0, %x0, %x1; sub.f32 %y1, %y0, %x2; OUT %y0; OUT %y1;", SQUARE),
    ],
)  # fmt: skip
def test_the_product_is_not_rounded(program: str, value: float) -> None:
    assert run(program, NEAR_ONE, NEAR_ONE, SQUARE)[0] == np.float32(value)


def test_of_two_products_the_first_is_not_rounded() -> None:
    program = "mul.f32 %y0, %x0, %x1; mul.f32 %y1, %x0, %x1; sub.f32 %y2, A, B; OUT %y2;"
    # Equal products are no case of their own where nothing else has them.
    first = run(program.replace("A", "%y0").replace("B", "%y1"), NEAR_ONE, NEAR_ONE)
    second = run(program.replace("A", "%y1").replace("B", "%y0"), NEAR_ONE, NEAR_ONE)
    assert first[0] == second[0] == TINY


def test_halves_are_fused_each() -> None:
    gpu = hs.Gpu("h100-sxm")
    near_one = np.float16(1 + 2**-6)
    square = near_one * near_one
    words = np.array([[near_one] * 2, [near_one] * 2, [square] * 2, *[[0, 0]] * 29], np.float16)
    out = gpu.array(np.zeros((4, 2), np.float16))
    text = "mul.KIND %y0, %x0, %x1; sub.KIND %y1, %y0, %x2; OUT %y1;"
    gpu.launch(loaded(text, "f16x2"), 1, 1, args=[gpu.array(words), out])
    assert (out.numpy()[0] == np.float16(2**-12)).all()


def test_the_sum_keeps_its_line_and_guard_and_labels_keep_their_instructions() -> None:
    text = "mul.f32 %y0, %x0, %x1; @%p0 bra far; add.f32 %y1, %y0, %x2; OUT %y1; far: mul.f32 %y2, %x0, %x1; @%p0 add.f32 %x3, %y2, %x2; OUT %x3; @%p0 bra far;"
    kernel = loaded("setp.gt.f32 %p0, %x3, 0f00000000;" + text)
    (fused,) = [one for one in kernel.instructions if one.form.name == "fma"]
    lines = kernel.module.lines
    assert "add.f32 %x3" in lines[fused.line - 1]
    assert fused.instruction.guard is not None
    targets = {
        kernel.instructions[label.target].line
        for one in kernel.instructions
        for label in one.targets
    }
    # The product behind the label is gone, so that the label stands before the sum.
    assert targets == {fused.line}


def test_a_text_for_debugging_is_not_optimised() -> None:
    kernel = hs.loads(
        HEAD.replace("sm_90a", "sm_90a, debug") + entry("k", PROGRAMS["sum"].text, "f32")
    )["k"]
    names = [one.form.name for one in kernel.instructions]
    assert names[-4:] == ["mul", "add", "st", "ret"]


def test_one_instruction_takes_the_time_of_one() -> None:
    def cycles(step: str) -> int:
        gpu = hs.Gpu("h100-sxm")
        given, out = gpu.array(np.ones(32, np.float32)), gpu.array(np.zeros(4, np.float32))
        program = step * 256 + "OUT %x0;"
        result = gpu.launch(loaded(program), 1, 32, args=[given, out])
        assert result.cycles is not None
        return result.cycles

    fused = cycles("mul.f32 %y0, %x0, %x1; sub.f32 %x0, %x2, %y0; ")
    assert fused == cycles("fma.rn.f32 %x0, %x0, %x1, %x2; ")
    assert fused < cycles("mul.rn.f32 %y0, %x0, %x1; sub.f32 %x0, %x2, %y0; ")
