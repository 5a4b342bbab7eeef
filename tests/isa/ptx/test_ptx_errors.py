"""What is said about wrong PTX: exact texts, with place, line, caret and hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopsim.errors import PtxError
from hopsim.isa.ptx.ast import Function
from hopsim.isa.ptx.parser import parse
from hopsim.isa.ptx.scope import flatten

CASES = (Path(__file__).parents[2] / "data" / "ptx_errors.txt").read_text().split("\n==== ")[1:]
HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"
KERNEL = ".entry k(.param .u64 p)\n{\n\t.reg .b32 %r<5>;\n\t.reg .pred %p<3>;\n"


def parse_and_flatten(text: str) -> None:
    module = parse(text, "k.ptx")
    for item in module.items:
        if isinstance(item, Function) and item.body is not None:
            flatten(item, module)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.split(": ", 1)[1].split("\n")[0])
def test_message(case: str) -> None:
    head, expected = case.split("\n----\n")
    kind, _, text = head.partition("\n")
    if kind != "text":
        text = HEADER + (f"{KERNEL}{text}\n\tret;\n}}\n" if kind == "body" else text)
    with pytest.raises(PtxError) as caught:
        parse_and_flatten(text)
    assert str(caught.value) == expected.rstrip("\n")


@pytest.mark.parametrize("align", [0, 3, 24])
def test_alignments_are_powers_of_two(align: int) -> None:
    text = f"{HEADER}.shared .align {align} .b8 x[32];\n"
    with pytest.raises(
        PtxError, match=f"k.ptx:4:16: an alignment must be a power of two, got {align}"
    ):
        parse(text, "k.ptx")


def test_the_table_is_read() -> None:
    assert len(CASES) > 100


def test_flattening_a_mere_declaration_is_refused() -> None:
    module = parse(HEADER + ".extern .func f();", "k.ptx")
    (function,) = module.items
    assert isinstance(function, Function)
    with pytest.raises(PtxError) as caught:
        flatten(function, module)
    assert str(caught.value) == (
        "k.ptx:4:1: function 'f' is only declared here: it has no body\n"
        "    .extern .func f();\n"
        "    ^"
    )
