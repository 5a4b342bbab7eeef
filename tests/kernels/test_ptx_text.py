from __future__ import annotations

import pytest

from hopsim.kernels.ptx.text import Param, PtxEntry, address, module_text, vector


def test_a_name_that_is_taken_gets_a_number() -> None:
    b = PtxEntry("k", [], [])
    assert [b.reg(".b32", "x").name for _ in range(3)] == ["%x", "%x_2", "%x_3"]
    assert [b.label("LOOP") for _ in range(2)] == ["LOOP", "LOOP_2"]
    assert b.regs(".f32", "x", 2)[1].name == "%x_4_1"


def test_operands() -> None:
    b = PtxEntry("k", [], [])
    r = b.reg(".b32", "r")
    assert address(r) == "[%r]"
    assert address(r, 16) == "[%r+16]"
    assert address("p") == "[p]"
    assert vector([r, 4]) == "{%r, 4}"


def test_blocks_hold_their_own_declarations_and_guards_print_both_ways() -> None:
    b = PtxEntry("k", [Param("m", ".b8", 128), Param("n", ".u32")], [".reqntid 128"])
    p = b.let(".pred", "p", "setp.eq.s32", 1, 1)
    with b.block():
        b.comment("inner")
        again = b.label("AGAIN")
        b.place(again)
        b.let(".b32", "x", "mov.b32", 7, note="seven")
        b.emit("bra", again, guard=p)
        b.emit("bra", again, unless=p)
    b.emit("ret")
    assert module_text(b, "smem").splitlines() == [
        ".version 8.7",
        ".target sm_90a",
        ".address_size 64",
        "",
        ".extern .shared .align 1024 .b8 smem[];",
        "",
        ".visible .entry k(",
        "    .param .align 64 .b8 m[128],",
        "    .param .u32 n",
        ")",
        ".reqntid 128",
        "{",
        "    .reg .pred %p;",
        "",
        "    setp.eq.s32             %p, 1, 1;",
        "    {",
        "        .reg .b32 %x;",
        "",
        "        // inner",
        "    AGAIN:",
        "        mov.b32                 %x, 7;                              // seven",
        "        @%p bra                 AGAIN;",
        "        @!%p bra                AGAIN;",
        "    }",
        "    ret;",
        "}",
    ]


def test_declarations_wrap() -> None:
    b = PtxEntry("k", [], [])
    for _ in range(7):
        b.reg(".b32", "x")
    lines = [line.strip() for line in b.text().splitlines() if ".reg" in line]
    assert lines == [".reg .b32 %x, %x_2, %x_3, %x_4, %x_5, %x_6;", ".reg .b32 %x_7;"]


def test_text_inside_an_open_block_is_our_own_mistake() -> None:
    b = PtxEntry("k", [], [])
    with b.block(), pytest.raises(AssertionError, match="open block"):
        b.text()


def test_a_loop_counts_down() -> None:
    k = PtxEntry("count", [], [])
    left, more = k.let(".b32", "left", "mov.u32", 6), k.reg(".pred", "more")
    with k.loop(left, more, "$again", step=2):
        k.emit("bar.sync", 0)
    lines = [" ".join(line.split()) for line in k.text().splitlines()]
    start = lines.index("$again:")
    assert lines[start : start + 5] == [
        "$again:", "bar.sync 0;", f"sub.u32 {left}, {left}, 2;", f"setp.ne.u32 {more}, {left}, 0;", f"@{more} bra $again;"
    ]  # fmt: skip
