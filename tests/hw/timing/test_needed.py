"""What is needed of a program's values, against machine code of ptxas 13.0."""

from __future__ import annotations

import pytest

from hopsim.config import load
from hopsim.hw.timing.costs import CostTable
from hopsim.hw.timing.needed import halved, known
from tests.hw.timing.kernels import kernel

CONFIG = load("h100-sxm")
SHARED = ".shared .align 16 .b8 s[256];"


def halves(body: str) -> set[str]:
    """Names of the registers of which only the lower half is needed."""
    made = kernel(f"{body} ret;", declarations=SHARED)
    found = halved([bound for segment in made.program(True) for bound in segment.instructions])
    return {one.name for one in made.registers if one.index in found}


def count(body: str) -> int:
    """Machine instructions, less the `ret`."""
    program = kernel(f"{body} ret;", declarations=SHARED).program(True)
    return sum(cost.counted for cost in CostTable(CONFIG, program).segments) - 1


@pytest.mark.parametrize(
    ("body", "found"),
    [
        # A generic address that is used in shared memory: IMAD, or LEA.
        ("add.s64 %rd1,%rd0,%rd2; ld.shared.f32 %f0,[%rd1];", {"%rd0", "%rd1", "%rd2"}),
        ("add.s64 %rd1,%rd0,%rd2; cvt.u32.u64 %r1,%rd1; st.shared.u32 [s],%r1;", {"%rd1"}),
        # All of it is needed by a generic or global access, a store of it, a comparison, a shift to the right.
        ("add.s64 %rd1,%rd0,%rd2; ld.global.f32 %f0,[%rd1];", set[str]()),
        ("add.s64 %rd1,%rd0,%rd2; ld.shared.f32 %f0,[%rd1]; ld.f32 %f1,[%rd1];", set[str]()),
        ("add.s64 %rd1,%rd0,%rd2; st.shared.u64 [s],%rd1;", set[str]()),
        ("add.s64 %rd1,%rd0,%rd2; cvt.sat.u32.u64 %r1,%rd1; st.shared.u32 [s],%r1;", set[str]()),
        ("add.s64 %rd1,%rd0,%rd2; st.shared.v2.u64 [%rd1],{%rd1,%rd1};", set[str]()),
        ("add.s64 %rd1,%rd0,%rd2; setp.ne.s64 %p0,%rd1,0; ld.shared.f32 %f0,[%rd1];", set[str]()),
        ("add.s64 %rd1,%rd0,%rd2; shr.u64 %rd3,%rd1,4; ld.shared.f32 %f0,[%rd3];", {"%rd3"}),
    ],
)
def test_registers_of_which_only_the_lower_half_is_needed(body: str, found: set[str]) -> None:
    assert halves(body) & {"%rd1", "%rd3"} == found & {"%rd1", "%rd3"}


def test_what_needs_no_upper_half_is_one_instruction() -> None:
    load_it = "ld.shared.f32 %f0,[%rd1];"
    assert count("add.s64 %rd1,%rd0,%rd2;" + load_it) == 2
    # IMAD: the product is part of the sum; the literal is the offset of the address.
    product = "mul.wide.u32 %rd2,%r0,4; add.s64 %rd1,%rd0,%rd2;"
    assert count(product + load_it) == 2
    assert count(product + "add.s64 %rd3,%rd1,64; ld.shared.f32 %f0,[%rd3];") == 2
    # Offsets of offsets.
    further = "add.s64 %rd4,%rd3,4; ld.shared.f32 %f1,[%rd4];"
    assert count(product + "add.s64 %rd3,%rd1,64; ld.shared.f32 %f0,[%rd3];" + further) == 3


def known_lines(body: str) -> list[str]:
    program = kernel(f"{body} ret;").program(True)
    instructions = [bound for segment in program for bound in segment.instructions]
    found = known(instructions)
    return [bound.instruction.mnemonic for bound in instructions if id(bound) in found]


def test_comparisons_of_literals_are_known() -> None:
    """As `wgmma` has its scale-d in CUTLASS and DeepGEMM."""
    use = "@%p0 mov.b32 %r5,%r6;"
    assert known_lines("mov.b32 %r0,1; setp.ne.b32 %p0,%r0,0;" + use) == ["mov.b32", "setp.ne.b32"]
    # The copy stays where something else reads it.
    also = "add.s32 %r7,%r0,%r6;"
    assert known_lines("mov.b32 %r0,1; setp.ne.b32 %p0,%r0,0;" + use + also) == ["setp.ne.b32"]
    # Not known: another value may be there, or the copy is guarded.
    assert known_lines("mov.b32 %r0,1; mov.b32 %r0,%r6; setp.ne.b32 %p0,%r0,0;" + use) == []
    assert known_lines("@%p1 mov.b32 %r0,1; setp.ne.b32 %p0,%r0,0;" + use) == []
    assert known_lines("mov.b32 %r0,1; @%p1 setp.ne.b32 %p0,%r0,0;" + use) == []
    # A literal that nobody compares is another matter.
    assert known_lines("mov.b32 %r0,1;") == []
