"""Where loops ask for news: the reads at which ptxas puts a YIELD, if the loop may part a warp."""

from __future__ import annotations

from typing import Any

import pytest

from hopsim.isa.program.yielding import yielding
from tests.hw.timing.kernels import kernel

BARRIER = ".shared .align 8 .b64 barrier;"


def asked(body: str) -> list[str]:
    """Return the opcodes at which others go on."""
    program: Any = kernel(body, declarations=BARRIER).program(True)
    return [
        ".".join(program[number].instructions[0].instruction.opcode)
        for number in sorted(yielding(program))
    ]


def loop(read: str) -> str:
    return f"$again: {read} setp.eq.u32 %p1,%r1,0; @%p1 bra $again; ret;"


@pytest.mark.parametrize(
    "read",
    [
        "ld.relaxed.gpu.global.u32 %r1,[%rd1];",
        "ld.acquire.cta.shared.u32 %r1,[%r2];",
        "ld.volatile.global.u32 %r1,[%rd1];",
        "atom.global.cas.b32 %r1,[%rd1],0,1;",
        "atom.shared.exch.b32 %r1,[%r2],0;",
    ],
)
def test_a_read_of_what_others_change_in_a_loop(read: str) -> None:
    assert asked(loop(read)) == [read.split()[0]]
    assert asked(f"{read} ret;") == []


@pytest.mark.parametrize(
    "read",
    [
        "ld.global.u32 %r1,[%rd1];",
        "mov.u32 %r1,%clock;",
        "mbarrier.try_wait.parity.shared.b64 %p2,[barrier],0; selp.u32 %r1,1,0,%p2;",
        "st.volatile.global.u32 [%rd1],%r2; add.u32 %r1,%r1,1;",
    ],
)
def test_others_stay_where_they_wait(read: str) -> None:
    assert asked(loop(read)) == []


def test_of_two_loops_each_has_its_own() -> None:
    ask = "ld.relaxed.gpu.global.u32 %r1,[%rd1];"
    text = loop(ask).replace(" ret;", f" {ask} " + loop("atom.global.exch.b32 %r1,[%rd1],0;"))
    text = text.replace("$again", "$first", 2)
    assert asked(text) == ["ld.relaxed.gpu.global.u32", "atom.global.exch.b32"]
