"""Parameters are loaded from the constant bank where they are used, in each basic block."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopsim.config import load
from hopsim.hw.timing.constant_bank import ConstantBank
from hopsim.hw.timing.costs import CostTable, SegmentCost
from hopsim.kernels.probes.probe import load_module
from tests.hw.timing.kernels import kernel

CONFIG = load("h100-sxm")
LINE = CONFIG.issue.constant_line_bytes
PARAMS = ".param .u64 out, .param .align 64 .b8 far[256], .param .u32 last"
CUTLASS = Path(__file__).parents[2] / "silicon" / "libraries" / "cutlass"


def bank_of(body: str) -> ConstantBank:
    made = kernel(body, PARAMS)
    return ConstantBank(made.program(True), {one.name: one.offset for one in made.params}, LINE)


def costs_of(body: str) -> list[SegmentCost]:
    made = kernel(body, PARAMS)
    offsets = {one.name: one.offset for one in made.params}
    return CostTable(CONFIG, made.program(True), 32, offsets).segments


def test_each_block_loads_what_it_reads() -> None:
    bank = bank_of("""
        ld.param.u32 %r0,[far]; ld.param.u32 %r1,[last]; setp.eq.u32 %p0,%r0,1; @%p0 bra OVER; bar.sync 0;
        add.u32 %r2,%r0,%r1; add.u32 %r2,%r2,%r1; OVER: add.u32 %r3,%r0,%r2; ret;""")
    assert len(bank.gone) == 2
    counts = [bank.of[number].count for number in sorted(bank.of)]
    # The first block compares one, what is jumped over adds both, the end reads one again.
    assert counts == [1, 2, 1]
    assert [sorted(bank.of[number].lines) for number in sorted(bank.of)] == [[1], [1, 5], [1]]


def test_one_load_fills_a_vector() -> None:
    bank = bank_of("ld.param.v2.u32 {%r0,%r1},[far+8]; add.u32 %r2,%r0,%r1; ret;")
    assert [(one.count, len(one.registers)) for one in bank.of.values()] == [(1, 2)]


def test_addresses_are_followed_through_registers() -> None:
    bank = bank_of("""
        mov.b64 %rd0,far; add.s64 %rd1,%rd0,192; ld.param.u32 %r0,[%rd1+-64]; ld.param.u32 %r1,[%rd0+64];
        add.u32 %r2,%r0,%r1; ret;""")
    assert [sorted(one.lines) for one in bank.of.values()] == [[2, 3]]


@pytest.mark.parametrize(
    "body",
    [
        # By a predicate; into a register that is written elsewhere too; from an address that is computed.
        "@%p0 ld.param.u32 %r0,[far]; add.u32 %r2,%r0,1; ret;",
        "ld.param.u32 %r0,[far]; add.u32 %r0,%r0,1; ret;",
        "mov.b64 %rd0,far; cvt.u64.u32 %rd1,%r3; add.u64 %rd0,%rd0,%rd1; ld.param.u32 %r0,[%rd0]; add.u32 %r1,%r0,1; ret;",
    ],
)  # fmt: skip
def test_others_stay_where_they_are(body: str) -> None:
    bank = bank_of(body)
    assert not bank.gone
    assert not bank.of


def test_the_innermost_loop_keeps_what_it_reads() -> None:
    bank = bank_of("""
        ld.param.u32 %r0,[far]; mov.u32 %r1,0; AGAIN: add.u32 %r1,%r1,%r0; setp.lt.u32 %p1,%r1,%r0; @%p1 bra AGAIN; ret;""")
    assert {number: one.count for number, one in bank.of.items()} == {0: 1}


def test_nothing_is_loaded_before_a_clock_that_stands_before_it() -> None:
    bank = bank_of("add.u32 %r3,%r3,1; mov.u64 %rd0,%clock64; ld.param.u32 %r0,[far]; add.u32 %r1,%r0,1; ret;")  # fmt: skip
    assert list(bank.of) == [1]


def test_who_reads_waits_for_the_load() -> None:
    near = costs_of("ld.param.u32 %r0,[far]; add.u32 %r1,%r0,1; st.shared.u32 [%r2],%r1; ret;")
    none = costs_of("mov.u32 %r0,7; add.u32 %r1,%r0,1; st.shared.u32 [%r2],%r1; ret;")
    waits = sum(cost.span for cost in near) - sum(cost.span for cost in none)
    # Half of the loads are of a kind that nobody waits for.
    assert waits == pytest.approx(CONFIG.issue.latency_cycles["lsu_const"] / 2, abs=4)


@pytest.mark.parametrize(
    ("program", "loads"),
    [
        # LDC and ULDC in machine code of ptxas 13.0.
        ("cooperative_bf16_128x128x64", 145), ("cooperative_bf16_mn_128x256x64_2x2", 98),
        ("cp_async_bf16_128x128x64", 35), ("warp_specialized_bf16_64x128x64_2x1", 43),
    ],
)  # fmt: skip
def test_as_many_as_ptxas_makes(program: str, loads: int) -> None:
    """Some more are of the number of CTAs and of the stack pointer, which are no parameters."""
    module = load_module((CUTLASS / f"{program}.ptx").read_text())
    (entry,) = module
    made = module[entry]
    offsets = {one.name: one.offset for one in made.params}
    bank = ConstantBank(made.program(True), offsets, LINE)
    assert sum(one.count for one in bank.of.values()) == pytest.approx(loads, rel=0.25)
