"""What Nsight Compute counts for a few PTX instructions, against machine code of ptxas 13.0."""

from __future__ import annotations

import pytest

from hopsim.config import load
from hopsim.hw.timing.costs import CostTable
from hopsim.hw.timing.machine_code import MachineCode
from tests.hw.timing.kernels import kernel

CONFIG = load("h100-sxm")


def counts(body: str, declarations: str = "") -> int:
    """Machine instructions of all segments, less the `ret`."""
    program = kernel(f"{body} ret;", declarations=declarations).program(True)
    return sum(cost.counted for cost in CostTable(CONFIG, program).segments) - 1


@pytest.mark.parametrize(
    ("body", "number"),
    [
        ("add.s64 %rd1,%rd0,%rd0;", 2),
        ("mul.wide.u32 %rd1,%r0,%r1;", 1),
        ("mad.wide.s32 %rd1,%r0,%r1,%rd0;", 1),
        ("mad.wide.s32 %rd1,%r0,4,%rd0;", 1),
        ("mad.wide.u32 %rd1,%r0,4,%rd0;", 2),
        ("cvt.u64.u32 %rd1,%r0;", 0),
        ("or.b64 %rd1,%rd0,4611686293305294848;", 1),
        ("or.b64 %rd1,%rd0,%rd2;", 2),
        ("bfe.u32 %r1,%r0,4,14;", 2),
        ("mov.b32 %r0,0; mov.b32 %r1,0;", 1),
        ("wgmma.commit_group.sync.aligned;", 0),
    ],
)
def test_single_instructions(body: str, number: int) -> None:
    assert counts(body) == number


def test_a_shift_and_an_addition_are_one() -> None:
    assert counts("shl.b32 %r1,%r0,3; add.s32 %r2,%r1,%r3;") == 1
    # The second use is a LEA of its own, as in machine code.
    assert counts("shl.b32 %r1,%r0,3; add.s32 %r2,%r1,%r3; add.s32 %r4,%r1,%r5;") == 2
    assert counts("shl.b32 %r1,%r0,%r6; add.s32 %r2,%r1,%r3;") == 2
    assert counts("shl.b32 %r1,%r0,3; mov.b32 %r1,%r4; mov.b32 %r5,%r4; add.s32 %r2,%r1,%r3;") == 3


def test_an_addition_of_a_literal_becomes_an_offset() -> None:
    shared = ".shared .align 16 .b8 s[256];"
    add, store = "add.s32 %r1,%r0,64;", "st.shared.u32 [%r1],%r2;"
    assert counts(add + store, shared) == 1
    assert counts(add + store + "st.shared.u32 [%r1+4],%r3;", shared) == 2
    # The sum is needed elsewhere, changes, or is no literal's.
    assert counts(add + store + "st.shared.u32 [%r4],%r1;", shared) == 3
    assert counts(add + store + "add.s32 %r1,%r0,68;" + store, shared) == 4
    assert counts("add.s32 %r1,%r0,%r5;" + store, shared) == 2
    assert counts("add.s32 %r1,%r1,64;" + store, shared) == 2


def slots(body: str) -> float:
    """Issue slots of what makes %rd2, which is stored then."""
    store = "st.global.u64 [%rd3],%rd2; ret;"
    programs = [kernel(made + store).program(True) for made in (body, "")]
    taken = [sum(cost.slots for cost in CostTable(CONFIG, one).segments) for one in programs]
    return taken[0] - taken[1]


def test_what_is_no_machine_instruction_takes_no_slot() -> None:
    """Descriptors of wgmma: an upper half that is zero, and literals that change the lower half alone."""
    pipe = CONFIG.issue.interval_cycles["alu"]
    extended = "cvt.u64.u32 %rd1,%r0;"
    assert slots(extended) == 0
    assert slots(extended + "add.s64 %rd2,%rd1,4611686293305294850;") == pipe
    assert slots(extended + "or.b64 %rd2,%rd1,4611686293305294848;") == pipe
    # The upper half of other sums needs the carry.
    assert slots("add.s64 %rd2,%rd1,4611686293305294850;") == 2 * pipe


PRODUCT = "mul.wide.u32 %rd4,%r0,16;"


def test_an_address_with_a_product_is_one_instruction() -> None:
    """IMAD.WIDE, of which two cannot be in its pipe within four cycles; the product alone is not made any more."""
    load = "add.s64 %rd5,%rd6,%rd4; ld.global.u32 %r1,[%rd5];"
    assert counts(PRODUCT + load) == 2
    assert counts(PRODUCT + load + "add.s64 %rd7,%rd8,%rd4; st.global.u32 [%rd7],%r1;") == 4
    # Whoever else reads the product has it made.
    assert counts(PRODUCT + load + "st.global.u64 [%rd5],%rd4;") == 4
    # No address, as of a descriptor; a product that has several values.
    assert counts(PRODUCT + "add.s64 %rd5,%rd6,%rd4; st.global.u64 [%rd9],%rd5;") == 4
    assert counts("mov.b64 %rd4,%rd3;" + PRODUCT + load) == 5


@pytest.mark.parametrize("number", [1, 4])
def test_wide_sums_take_their_pipe(number: int) -> None:
    sums = "".join(f"add.s64 %rd{10 + one},%rd6,%rd4;" for one in range(number))
    loads = "".join(f"ld.global.u32 %r1,[%rd{10 + one}];" for one in range(number))
    program = kernel(PRODUCT + sums + loads + "ret;").program(True)
    first = CostTable(CONFIG, program).segments[0]
    assert first.slots >= number * CONFIG.issue.interval_cycles["imad_wide"]
    assert first.lost == 0.0  # no wgmma in the program


WGMMA = (
    "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3},%rd1,%rd2,%p0,1,1,0,0;"
    "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
)


@pytest.mark.parametrize(
    ("text", "uniform"),
    [
        # What only makes a descriptor, however long the way.
        ("shr.u32 %r1,%r0,4; cvt.u64.u32 %rd3,%r1; add.s64 %rd1,%rd3,2;", ["shr", "add"]),
        ("mul.wide.u32 %rd3,%r0,1024; add.s64 %rd1,%rd4,%rd3;", ["mul", "add"]),
        # Also stored, or an address.
        ("add.s64 %rd1,%rd3,2; st.global.u64 [%rd5],%rd1;", []),
        (
            "shr.u32 %r1,%r0,4; cvt.u64.u32 %rd1,%r1; add.u32 %r2,%r1,1; st.global.u32 [%rd5],%r2;",
            [],
        ),
    ],
)
def test_descriptors_are_made_by_the_uniform_datapath(text: str, uniform: list[str]) -> None:
    program = kernel(text + WGMMA + "ret;").program(True)
    code = MachineCode(CONFIG, program)
    found = [one for part in program for one in part.instructions if code.unit(one) == "uniform"]
    assert [one.instruction.opcode[0] for one in found if code.issued(one)] == uniform
    assert all(code.issued(one) <= 1 for one in found)
    # One instruction to issue, but copies are executed with it.
    sums = [code.counted([one]) for one in found if one.instruction.opcode[0] == "add"]
    assert sums == [2] * uniform.count("add")
