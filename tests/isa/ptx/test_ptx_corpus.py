"""Every PTX file of the corpora parses, prints back to the same tree, and flattens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hopsim.isa.ptx.ast import Block, Directive, Function, Instruction, PtxModule, Statement
from hopsim.isa.ptx.declarations import parse_registers, parse_variables, simple_declaration
from hopsim.isa.ptx.lexer import Cursor, Source
from hopsim.isa.ptx.operands import OperandReader
from hopsim.isa.ptx.parser import parse
from hopsim.isa.ptx.printer import print_module
from hopsim.isa.ptx.scope import flatten

DATA = Path(__file__).parents[2] / "data"
FILES = sorted(DATA.glob("*/*.ptx"))


def read(path: Path) -> PtxModule:
    return parse(path.read_text(), path.name)


def bodies(module: PtxModule) -> list[Function]:
    return [item for item in module.items if isinstance(item, Function) and item.body is not None]


def instructions(statements: tuple[Statement, ...]) -> list[Instruction]:
    found: list[Instruction] = []
    for statement in statements:
        if isinstance(statement, Instruction):
            found.append(statement)
        elif isinstance(statement, Block):
            found += instructions(statement.statements)
    return found


def test_the_corpora_are_here() -> None:
    folders = [path.parent.name for path in FILES]
    assert (folders.count("triton_bf16"), folders.count("nvcc"), folders.count("triton")) == (
        10,
        16,
        2,
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_printing_and_parsing_again_gives_the_same_tree(path: Path) -> None:
    module = read(path)
    printed = print_module(module)
    assert parse(printed) == module
    assert print_module(parse(printed)) == printed


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_flattening_keeps_every_instruction_in_order(path: Path) -> None:
    module = read(path)
    for function in bodies(module):
        assert function.body is not None
        flat = flatten(function, module).right()
        written = instructions(function.body.statements)
        assert [(i.span, i.opcode) for i in flat.instructions] == [
            (i.span, i.opcode) for i in written
        ]
        assert [register.index for register in flat.registers] == list(range(len(flat.registers)))
        assert len({register.name for register in flat.registers}) == len(flat.registers)
        assert all(0 <= target <= len(written) for target in flat.labels.values())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_span_points_at_its_opcode_or_guard(path: Path) -> None:
    module = read(path)
    lines = module.text.split("\n")
    for function in bodies(module):
        assert function.body is not None
        for instruction in instructions(function.body.statements):
            line = lines[instruction.span.line - 1][instruction.span.column - 1 :]
            first = "@" if instruction.guard else instruction.opcode[0]
            assert line.startswith(first), (instruction.span, line)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_fast_way_reads_operands_as_the_token_walk_does(path: Path) -> None:
    source = Source(path.read_text(), path.name)
    reader = OperandReader(source)
    count = 0
    for match in re.finditer(
        r"(?<=\t)([a-z]\w*(?:\.[\w:]+)+)(\s[^;{}]*|[^;]*\}[^;]*);", source.code
    ):
        fast = reader.read(match[2], match.start(2), match[1])
        walked = OperandReader(source).walk(match.start(2), match[1]) if match[2].strip() else ()
        assert fast == walked
        count += 1
    assert count > 5


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_fast_way_reads_declarations_as_the_token_walk_does(path: Path) -> None:
    source = Source(path.read_text(), path.name)
    count = 0
    for match in re.finditer(r"(?<=\t)\.(?:reg|param|local)\s[^;(){}]*;", source.code):
        fast = simple_declaration(source, match.start())
        cursor = Cursor(source, match.start())
        is_register = match[0].startswith(".reg")
        walked = [parse_registers(cursor)] if is_register else parse_variables(cursor)
        if fast is not None:
            assert ([fast[0]], fast[0].span, fast[1]) == (
                walked,
                walked[0].span,
                cursor.previous_end,
            )
            count += 1
    assert count > 1


@pytest.mark.parametrize(
    "text",
    [".reg .b32 a, b;", ".reg .v2 .b32 a;", ".reg .b33 a;", ".reg .b32 a<0>;", ".reg .b32 a[2];", ".param .b32 a<2>;",
     ".param .align 3 .b8 a[2];", ".local .pred p;", ".param .b8 a[];", ".local .b8 a[010];", ".param .b32 a = 1;"],
)  # fmt: skip
def test_other_declarations_are_left_to_the_token_walk(text: str) -> None:
    assert simple_declaration(Source(text, "k.ptx"), 0) is None


def test_a_triton_kernel_has_its_known_parts() -> None:
    module = read(DATA / "triton_bf16" / "mm_tma_bf16_128x128x64_s3_w4_al.ptx")
    assert (module.version, module.target, module.address_size) == ((8, 7), ("sm_90a",), 64)
    (entry,) = bodies(module)
    assert (entry.kind, entry.name, entry.linkage) == ("entry", "mm_tma", ("visible",))
    assert entry.directives == (("reqntid", (128,)),)
    assert [param.dims for param in entry.params if param.dims] == [(128,)] * 3
    assert entry.params[-1].attributes == ("ptr", "global", "align 1")
    assert len(entry.params) == 20
    sections = [item.text.split()[0] for item in module.items if isinstance(item, Directive)]
    assert sections == ["1", "2", ".debug_abbrev", ".debug_info", ".debug_macinfo"]
    flat = flatten(entry, module).right()
    assert len(flat.instructions) == 543
    assert sum(i.opcode[:2] == ("wgmma", "mma_async") for i in flat.instructions) == 8
    first = flat.instructions[0]
    assert (first.mnemonic, first.loc and first.loc.line) == ("mov.b64", 18)
