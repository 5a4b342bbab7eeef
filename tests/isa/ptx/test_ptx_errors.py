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
            flatten(item, module).right()


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


@pytest.mark.parametrize(
    ("directives", "what"),
    [
        (".maxntid 0", "'.maxntid' takes positive numbers, got 0"),
        (".maxntid 128, 0", "'.maxntid' takes positive numbers, got 0"),
        (".maxnreg 0", "'.maxnreg' takes positive numbers, got 0"),
        (".maxntid 128 .reqntid 128", "'.maxntid' and '.reqntid' exclude each other"),
        (".reqnctapercluster 2 .maxclusterrank 4", "'.reqnctapercluster' and '.maxclusterrank' exclude"),
    ],
)  # fmt: skip
def test_directives_that_ptxas_refuses(directives: str, what: str) -> None:
    with pytest.raises(PtxError) as caught:
        parse(f"{HEADER}.entry k() {directives} {{ ret; }}\n", "k.ptx")
    assert caught.value.what.startswith(what)


@pytest.mark.parametrize(
    ("version", "target", "first"), [("7.8", "sm_90a", "8.0"), ("7.7", "sm_90", "7.8"), ("6.9", "sm_80", "7.0")]
)  # fmt: skip
def test_a_target_is_not_older_than_its_ptx(version: str, target: str, first: str) -> None:
    text = f".version {version}\n.target {target}\n.address_size 64\n"
    with pytest.raises(PtxError) as caught:
        parse(text, "k.ptx")
    assert caught.value.what == f"{target} needs .version {first} or later, got {version}"
    parse(text.replace(version, first), "k.ptx")


@pytest.mark.parametrize(
    ("text", "got", "hint"),
    [
        ("", "an empty file", "nvcc -arch=sm_90a -ptx"),
        (" \r\n\n", "an empty file", "nvcc -arch=sm_90a -ptx"),
        ("// PTX\n/* of\nnothing */\n", "nothing but comments", "nvcc -arch=sm_90a -ptx"),
        ("#include <cuda.h>\n", "'#'", "nvcc -arch=sm_90a -ptx"),
        ("\ufeff" + HEADER, "a byte order mark (U+FEFF)", "without it: ptxas takes none"),
        ("\xa0" + HEADER, "U+00A0 (NO-BREAK SPACE)", "a PTX file begins with .version"),
        ("\x01" + HEADER, "U+0001 (a control character)", "a PTX file begins with .version"),
    ],
)
def test_a_text_that_does_not_begin_as_ptx_says_what_it_begins_with(
    text: str, got: str, hint: str
) -> None:
    with pytest.raises(PtxError) as caught:
        parse(text, "k.ptx")
    assert caught.value.what == f"expected '.version' at the start of the file, got {got}"
    assert hint in caught.value.hint
    assert str(caught.value).startswith("k.ptx:1:1: ")


@pytest.mark.parametrize(
    ("target", "column", "what", "hint"),
    [
        ("foo", 9, "expected an architecture like sm_90a after '.target', got 'foo'", "write .target sm_90a"),
        ("compute_90a", 9, "expected an architecture like sm_90a after '.target', got 'compute_90a'", "write .target sm_90a"),
        ("debug, sm_90a", 9, "expected an architecture like sm_90a after '.target', got 'debug'", "write .target sm_90a"),
        ("sm_5x", 9, "expected an architecture like sm_90a after '.target', got 'sm_5x'", "write .target sm_90a"),
        ("sm_90a, debag", 17, "unknown target option 'debag': expected one of debug, texmode_unified, texmode_independent", "did you mean 'debug'?"),
    ],
)  # fmt: skip
def test_targets_that_ptxas_does_not_know(target: str, column: int, what: str, hint: str) -> None:
    with pytest.raises(PtxError) as caught:
        parse(f".version 8.7\n.target {target}\n", "k.ptx")
    assert (caught.value.what, caught.value.hint) == (what, hint)
    assert (caught.value.line, caught.value.column) == (2, column)


def test_the_table_is_read() -> None:
    assert len(CASES) > 100


def test_flattening_a_mere_declaration_is_refused() -> None:
    module = parse(HEADER + ".extern .func f();", "k.ptx")
    (function,) = module.items
    assert isinstance(function, Function)
    with pytest.raises(PtxError) as caught:
        flatten(function, module).right()
    assert str(caught.value) == (
        "k.ptx:4:1: function 'f' is only declared here: it has no body\n"
        "    .extern .func f();\n"
        "    ^"
    )


@pytest.mark.parametrize(
    ("variable", "what"),
    [
        (".f32 x = 2", "a .f32 begins as a float, got '2'"),
        (".f64 x[2] = {1.0, 1+1}", "a .f64 begins as a float, got '1+1'"),
        (".f32 x[2][2] = {{1.0}, {2}}", "a .f32 begins as a float, got '2'"),
        (".u64 x = 1.5", "a .u64 begins as an integer, got '1.5'"),
        (".u8 x[3] = {1, 0f3F800000}", "a .u8 begins as an integer, got '0f3F800000'"),
        (".b16 x = 1.5", "a .b16 begins as an integer, got '1.5'"),
        (".f16 x = 1.5", "a .f16 cannot have an initial value"),
        (".f16x2 x = 1", "a .f16x2 cannot have an initial value"),
    ],
)
def test_initial_values_of_the_wrong_kind(variable: str, what: str) -> None:
    with pytest.raises(PtxError) as caught:
        parse(f"{HEADER}.global {variable};\n", "k.ptx")
    assert caught.value.what == what


@pytest.mark.parametrize(
    "variable",
    [".b32 x = 1.5", ".b64 x = 0f3F800000", ".f32 x = 0d3FF0000000000000", ".b16 x = 1", ".u32 x[2] = {-1}"],
)  # fmt: skip
def test_initial_values_that_ptxas_takes(variable: str) -> None:
    parse(f"{HEADER}.global {variable};\n", "k.ptx")
