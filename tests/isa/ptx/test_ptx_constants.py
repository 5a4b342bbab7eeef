"""Literals and constant expressions: exact kinds, values and spellings; ptxas 13.0 gives the same bits."""

from __future__ import annotations

import pytest

from hopsim.errors import NotModelled
from hopsim.isa.ptx.ast import Function, Immediate, Instruction
from hopsim.isa.ptx.nesting import MOST_NESTED
from hopsim.isa.ptx.parser import parse


def constant(text: str) -> Immediate:
    module = parse(
        f".version 8.7\n.target sm_90a\n.address_size 64\n.entry k() {{ mov.b64 %rd1, {text}; }}"
    )
    (entry,) = module.items
    assert isinstance(entry, Function)
    assert entry.body is not None
    (instruction,) = entry.body.statements
    assert isinstance(instruction, Instruction)
    operand = instruction.operands[1]
    assert isinstance(operand, Immediate)
    return operand


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("0", "int", 0),
        ("17", "int", 17),
        ("-16", "int", -16),
        ("- 5", "int", -5),
        ("017", "int", 15),
        ("0x1F", "int", 31),
        ("0X1f", "int", 31),
        ("-0x10", "int", -16),
        ("0x1FU", "int", 31),
        ("0b101", "int", 5),
        ("0B11U", "int", 3),
        ("7U", "int", 7),
        ("0U", "int", 0),
        ("4611686293305294848", "int", 4611686293305294848),
        ("9223372036854775808", "int", 1 << 63),
        ("-9223372036854775808", "int", 1 << 63),
        ("18446744073709551615", "int", (1 << 64) - 1),
        ("0xFFFFFFFFFFFFFFFF", "int", (1 << 64) - 1),
        ("0f3F800000", "f32", 0x3F800000),
        ("0F7fc00000", "f32", 0x7FC00000),
        ("0d3FF0000000000000", "f64", 0x3FF0000000000000),
        ("1.5", "f64", 0x3FF8000000000000),
        ("-1.5", "f64", 0xBFF8000000000000),
        ("1.", "f64", 0x3FF0000000000000),
        (".5", "f64", 0x3FE0000000000000),
        ("1e3", "f64", 0x408F400000000000),
        ("2.5e-1", "f64", 0x3FD0000000000000),
        ("(3+4)*2", "int", 14),
        ("3 + 4 * 2", "int", 11),
        ("10 - 3 - 2", "int", 5),
        ("-7/2", "int", -3),
        ("-7 % 2", "int", -1),
        ("1<<4|1", "int", 17),
        ("~3", "int", (1 << 64) - 4),
        ("!3", "int", 0),
        ("!0", "int", 1),
        ("1<2&&3>=4", "int", 0),
        ("0||5", "int", 1),
        ("1==1 ? 7 : 8", "int", 7),
        ("6^5", "int", 3),
        ("0xF0>>4", "int", 15),
        ("(.u64)-1", "int", (1 << 64) - 1),
        ("(.s64)0xFFFFFFFFFFFFFFFF", "int", -1),
        ("2*WARP_SZ", "int", 64),
        ("WARP_SZ*2+1", "int", 65),
        ("-WARP_SZ", "int", -32),
        ("(-1 > 1U)+1", "int", 2),
        ("(-1 > 1)+1", "int", 1),
        ("-1U/2", "int", (1 << 63) - 1),
        ("(7U-8)/2", "int", (1 << 63) - 1),
        ("~0>>1", "int", (1 << 63) - 1),
        ("(-1|0)/2", "int", 0),
        ("(1 ? -1 : 1U)/2", "int", 0),
        ("9223372036854775808*2+5", "int", 5),
        ("0x7FFFFFFFFFFFFFFF+1 > 0", "int", 0),
        ("1<<64", "int", 1),
        ("-1>>70", "int", -1),
        ("-0d3FF0000000000000", "f64", 0xBFF0000000000000),
        ("1.5*2.5", "f64", 0x400E000000000000),
        ("0.1+0.2", "f64", 0x3FD3333333333334),
        ("-(1.5-2.5)/4.0", "f64", 0x3FD0000000000000),
        ("1e308*10.0", "f64", 0x7FF0000000000000),
        ("(1.5 < 2.0)+1", "int", 2),
    ],
)
def test_value_of(text: str, kind: str, value: int) -> None:
    found = constant(text)
    assert (found.kind, found.value, found.text) == (kind, value, text)


@pytest.mark.parametrize(
    ("before", "after", "value"),
    [
        ("(", ")", 5), ("~", "", 5), ("!", "", 1), ("(.s64)", "", 5), ("1?", ":3", 5), ("0?3:", "", 5),
        ("(1||0&&1|0^1&1==1<2<<3+4*", ")", 1),
    ],
)  # fmt: skip
def test_so_deep_and_no_deeper(before: str, after: str, value: int) -> None:
    assert constant(before * MOST_NESTED + "5" + after * MOST_NESTED).value == value
    deeper = MOST_NESTED + 1
    with pytest.raises(NotModelled) as caught:
        constant(before * deeper + "5" + after * deeper)
    assert (
        caught.value.what == f"parts of a constant nested over {MOST_NESTED} deep are not modelled"
    )
    assert caught.value.where.startswith("<ptx>:4:")
