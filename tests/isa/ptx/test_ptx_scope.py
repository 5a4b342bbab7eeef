"""Scope resolution: which name means what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hopsim.errors import PtxError
from hopsim.isa.ptx.ast import Function, Immediate, Sink, SourceLoc
from hopsim.isa.ptx.flat import (
    FlatAddress,
    FlatBody,
    FlatNegated,
    FlatOperand,
    FlatPair,
    FlatVector,
    LabelRef,
    Register,
    SymbolRef,
)
from hopsim.isa.ptx.parser import parse
from hopsim.isa.ptx.scope import flatten

HEADER = """.version 8.7
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 smem[];
.global .u32 cell = 7;
.const .f32 weights[4];
.func helper(.param .b32 a);
"""


def flat(text: str, params: str = ".param .u64 arg") -> FlatBody:
    module = parse(f"{HEADER}.entry k({params})\n{{\n{text}\n}}")
    (entry,) = [item for item in module.items if isinstance(item, Function) and item.body]
    return flatten(entry, module).right()


def operands(text: str) -> tuple[FlatOperand, ...]:
    return (
        flat(f".reg .b32 %r<5>;\n.reg .b64 %rd<3>;\n.reg .pred p;\n{text}").instructions[0].operands
    )


def shown(body: FlatBody) -> list[tuple[str, list[str | int]]]:
    """Each instruction as opcode with register names and branch targets."""
    return [
        (
            instruction.mnemonic,
            [
                operand.target if isinstance(operand, LabelRef) else operand.name
                for operand in instruction.operands
                if isinstance(operand, (LabelRef, Register, SymbolRef))
            ],
        )
        for instruction in body.instructions
    ]


def test_registers_come_in_order_of_first_use() -> None:
    body = flat(
        ".reg .b32 %r<100000>, unused;\n.reg .pred p;\n.reg .f64 d;\n"
        "setp.eq.b32 p, %r7, %r99999;\n@p mov.f64 d, 0d3FF0000000000000;\n@!p ret;"
    )
    assert body.registers == (
        Register("p", "pred", 1, 0),
        Register("%r7", "b32", 32, 1),
        Register("%r99999", "b32", 32, 2),
        Register("d", "f64", 64, 3),
    )
    assert [i.guard for i in body.instructions] == [
        None,
        (body.registers[0], False),
        (body.registers[0], True),
    ]


WAIT = """{{
.reg .pred P1;
LAB_WAIT:
mbarrier.try_wait.parity.shared::cta.b64 P1, [smem], 0;
@P1 bra DONE;
bra LAB_WAIT;
DONE:
}}
"""


def test_block_scoped_names_are_reused() -> None:
    body = flat(WAIT.format() * 3 + "ret;")
    assert [register.name for register in body.registers] == ["P1", "P1@2", "P1@3"]
    assert body.labels == {
        "LAB_WAIT": 0,
        "DONE": 3,
        "LAB_WAIT@2": 3,
        "DONE@2": 6,
        "LAB_WAIT@3": 6,
        "DONE@3": 9,
    }
    targets = [i.operands[0] for i in body.instructions if i.opcode == ("bra",)]
    assert targets == [
        LabelRef("DONE", 3),
        LabelRef("LAB_WAIT", 0),
        LabelRef("DONE@2", 6),
        LabelRef("LAB_WAIT@2", 3),
        LabelRef("DONE@3", 9),
        LabelRef("LAB_WAIT@3", 6),
    ]


def test_labels_are_found_innermost_first_and_before_they_stand() -> None:
    body = flat("bra L;\n{ bra L;\n{ bra L; bra OUT; }\nL: ret;\n}\nL: ret;\nOUT:")
    assert shown(body) == [
        ("bra", [5]),
        ("bra", [4]),
        ("bra", [4]),
        ("bra", [6]),
        ("ret", []),
        ("ret", []),
    ]
    assert body.labels == {"L": 5, "OUT": 6, "L@2": 4}


def test_a_register_hides_an_outer_one_from_its_declaration_on() -> None:
    body = flat(
        ".reg .b32 x;\nmov.b32 x, 0;\n{ mov.b32 x, 1;\n.reg .b32 x;\nmov.b32 x, 2; }\nmov.b32 x, 3;"
    )
    assert shown(body) == [
        ("mov.b32", ["x"]),
        ("mov.b32", ["x"]),
        ("mov.b32", ["x@2"]),
        ("mov.b32", ["x"]),
    ]


def test_families_nest_and_share_prefixes() -> None:
    body = flat(
        ".reg .b32 %r<5>, %r1<3>;\nmov.b32 %r4, %r12;\n"
        "{ .reg .b16 %r<3>;\nmov.b32 %r2, %r4; }\nmov.b32 %r2, 0;"
    )
    assert [(register.name, register.type) for register in body.registers] == [
        ("%r4", "b32"),
        ("%r12", "b32"),
        ("%r2@2", "b16"),
        ("%r2", "b32"),
    ]


def test_a_single_register_hides_a_family_member() -> None:
    body = flat(".reg .b32 %r<5>;\n{ .reg .b64 %r1;\nmov.b64 %r1, 0; }\nmov.b32 %r1, 0;")
    assert [(register.name, register.type) for register in body.registers] == [
        ("%r1@2", "b64"),
        ("%r1", "b32"),
    ]


def test_register_names_stay_unique_when_a_family_comes_later() -> None:
    body = flat("{ .reg .b64 %r1;\nmov.b64 %r1, 0; }\n{ .reg .b32 %r<5>;\nmov.b32 %r1, 0; }")
    assert [(register.name, register.type) for register in body.registers] == [
        ("%r1", "b64"),
        ("%r1@2", "b32"),
    ]


def test_vector_registers() -> None:
    body = flat(
        ".reg .v4 .s32 abcd;\n.reg .v2 .f32 v<2>;\n.reg .b32 %r1;\n"
        "mov.s32 abcd.y, %r1;\nst.shared.v4.s32 [smem], abcd;\nmov.f32 v1.g, v1.r;"
    )
    names = ["abcd.x", "abcd.y", "abcd.z", "abcd.w", "%r1", "v1.x", "v1.y"]
    assert [register.name for register in body.registers] == names
    registers = body.registers
    assert body.instructions[0].operands == (registers[1], registers[4])
    assert body.instructions[1].operands[1] == FlatVector(registers[:4])
    assert body.instructions[2].operands == (registers[6], registers[5])


@pytest.mark.parametrize(
    "name",
    [
        "%tid.x", "%ntid.y", "%ctaid.z", "%nctaid.w", "%clusterid.x", "%nclusterid.x",
        "%cluster_ctaid.x", "%cluster_nctaid.x", "%cluster_ctarank", "%cluster_nctarank",
        "%is_explicit_cluster", "%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%gridid",
        "%lanemask_lt", "%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo",
        "%envreg0", "%envreg31", "%dynamic_smem_size", "%total_smem_size", "%aggr_smem_size",
        "%reserved_smem_offset_begin", "%reserved_smem_offset_1", "%pm0", "%pm7_64",
        "%current_graph_exec", "%tid",
    ],
)  # fmt: skip
def test_special_register(name: str) -> None:
    assert operands(f"mov.b32 %r1, {name};")[1] == SymbolRef("special", name)


@pytest.mark.parametrize("name", ["%envreg32", "%pm8", "%tod", "%envreg01"])
def test_no_special_register(name: str) -> None:
    with pytest.raises(PtxError, match=f"'{name}' is not declared"):
        operands(f"mov.b32 %r1, {name};")


def test_a_declaration_hides_a_special_register() -> None:
    body = flat(".reg .u32 %laneid;\nmov.u32 %laneid, 0;")
    assert body.instructions[0].operands[0] == Register("%laneid", "u32", 32, 0)


@pytest.mark.parametrize(
    ("text", "operand"),
    [
        ("smem", SymbolRef("shared", "smem")),
        ("cell", SymbolRef("global", "cell")),
        ("weights+8", SymbolRef("const", "weights", 8)),
        ("arg", SymbolRef("param", "arg")),
        ("helper", SymbolRef("function", "helper")),
        ("k", SymbolRef("function", "k")),
        ("WARP_SZ", Immediate("int", 32, "")),
        ("WARP_SZ+1", Immediate("int", 33, "")),
        ("[arg+4]", FlatAddress(SymbolRef("param", "arg"), 4)),
        ("[16]", FlatAddress(Immediate("int", 16, ""))),
        ("_", Sink()),
        ("-1", Immediate("int", -1, "")),
    ],
)
def test_symbol_operand(text: str, operand: FlatOperand) -> None:
    assert operands(f"mov.b32 {text};") == (operand,)


def test_structured_operands() -> None:
    found = flat(
        ".reg .b32 %r<3>;\n.reg .b64 m;\n.reg .pred p, q;\n"
        "op [m, {%r1, 0}], {%r1, _}, %r2|p, !q, [%r1+-16];"
    )
    m, r1, r2, p, q = found.registers
    assert found.instructions[0].operands == (
        FlatAddress(m, 0, (r1, Immediate("int", 0, ""))),
        FlatVector((r1, Sink())),
        FlatPair(r2, p),
        FlatNegated(q),
        FlatAddress(r1, -16),
    )


def test_variables_get_unique_names() -> None:
    body = flat(
        ".shared .align 8 .b8 bars[16];\n.reg .b32 r;\n"
        "{ .param .b64 param0;\nst.param.b64 [param0], 1;\ncall helper, (param0); }\n"
        "{ .param .b32 param0;\nst.param.b32 [param0+4], 1; }\nmov.b32 r, bars;"
    )
    assert [(v.space, v.name) for v in body.variables] == [
        ("shared", "bars"),
        ("param", "param0"),
        ("param", "param0@2"),
    ]
    assert [i.operands for i in body.instructions[:3]] == [
        (FlatAddress(SymbolRef("param", "param0")), Immediate("int", 1, "")),
        (SymbolRef("function", "helper"), FlatVector((SymbolRef("param", "param0"),))),
        (FlatAddress(SymbolRef("param", "param0@2"), 4), Immediate("int", 1, "")),
    ]
    assert body.instructions[3].operands[1] == SymbolRef("shared", "bars")


def test_branch_targets_become_a_vector_of_labels() -> None:
    body = flat(".reg .b32 r;\nts: .branchtargets A, B;\nbrx.idx r, ts;\nA: ret;\nB: ret;")
    assert body.instructions[0].operands[1] == FlatVector((LabelRef("A", 1), LabelRef("B", 2)))


def test_call_through_a_prototype() -> None:
    body = flat(
        ".reg .b64 f;\n.param .b32 r;\n"
        "proto : .callprototype (.param .b32 _) _ ();\ncall (r), f, (), proto;"
    )
    assert body.instructions[0].operands == (
        FlatVector((SymbolRef("param", "r"),)),
        Register("f", "b64", 64, 0),
        FlatVector(()),
        SymbolRef("prototype", "proto"),
    )


def test_register_parameters_of_a_function() -> None:
    module = parse(
        HEADER + ".func (.reg .u32 rv) g (.reg .u32 a, .param .b32 b)\n{ mov.u32 rv, a; }"
    )
    function = module.items[-1]
    assert isinstance(function, Function)
    assert [register.name for register in flatten(function, module).right().registers] == [
        "rv",
        "a",
    ]


def test_loc_holds_until_the_next_one() -> None:
    body = flat("ret;\n.loc 1 5 2\nret;\n{ ret;\n.loc 2 6 3\n}\nret;")
    assert [i.loc for i in body.instructions] == [
        None,
        SourceLoc(1, 5, 2),
        SourceLoc(1, 5, 2),
        SourceLoc(2, 6, 3),
    ]


def test_a_module_without_text_can_be_flattened() -> None:
    module = replace(parse(HEADER + ".entry k() { .reg .b32 x; mov.b32 x, y; }"), text="")
    entry = module.items[-1]
    assert isinstance(entry, Function)
    with pytest.raises(PtxError) as caught:
        flatten(entry, module).right()
    assert str(caught.value) == (
        "<ptx>:8:27: 'y' is not declared\n"
        "  try: a label needs 'y:' in this body, a variable a declaration before its use"
    )


def test_all_that_is_wrong_is_told_by_line_and_once() -> None:
    text = """
        .reg .b32 %r<2>;
        .reg .pred p, p;
        mov.u32 %r0, nowhere;
        add.u32 %r1, nowhere, %r2;
        @%r0 bra there;
        add.u32 %r1, %r0, %r0;
        .reg .b32 %r1;
    """
    module = parse(f"{HEADER}.entry k()\n{{{text}}}")
    (entry,) = [item for item in module.items if isinstance(item, Function) and item.body]
    body, errors = flatten(entry, module)
    first = HEADER.count("\n") + 1
    assert [(error.line - first, error.what) for error in errors] == [
        (3, f"'p' is already declared in this scope, on line {first + 3}"),
        (4, "'nowhere' is not declared"),
        (6, "the guard '%r0' is .b32, expected .pred"),
        (8, f"'%r1' is already declared in this scope, on line {first + 2}"),
    ]
    assert [instruction.span.line - first for instruction in body.instructions] == [7]
    with pytest.raises(PtxError, match="'p' is already declared"):
        flatten(entry, module).right()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (".global .u64 at = nothing;", "'nothing' is not declared before 'at', which begins as its address"),
        (".global .u64 at = at;", "'at' is not declared before 'at', which begins as its address"),
        (".global .u64 at = a; .global .u32 a;", "'a' is not declared before 'at', which begins as its address"),
        (".reg .b64 %rd1; .const .u64 at = %rd1;", "'%rd1' is not declared before 'at', which begins as its address"),
        (".const .u64 at = smem;", "'at' cannot begin as the address of 'smem', which is '.shared'"),
        (".const .u64 at = arg;", "'at' cannot begin as the address of 'arg', which is '.param'"),
    ],
)  # fmt: skip
def test_a_variable_of_a_body_begins_as_an_address_under_the_rules_of_the_module(
    text: str, what: str
) -> None:
    """Source: ptxas 13.0 refuses them."""
    with pytest.raises(PtxError) as caught:
        flat(f"{text}\nret;")
    assert caught.value.what == what
