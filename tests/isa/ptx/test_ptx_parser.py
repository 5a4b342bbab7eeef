"""The parser on small texts: exact trees."""

from __future__ import annotations

import pytest

import hopsim as hs
from hopsim.errors import NotModelled
from hopsim.isa.ptx.ast import (
    Address,
    AddressByte,
    Block,
    Directive,
    Function,
    GenericAddress,
    Guard,
    Immediate,
    Instruction,
    Label,
    LocDirective,
    Name,
    Negated,
    Operand,
    Pair,
    PtxModule,
    RegisterDeclaration,
    Sink,
    SourceLoc,
    Span,
    Statement,
    Sum,
    Variable,
    Vector,
)
from hopsim.isa.ptx.nesting import MOST_NESTED
from hopsim.isa.ptx.parser import parse
from hopsim.isa.ptx.printer import print_instruction, print_module

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"
ANYWHERE = Span(1, 1)


def module(text: str) -> PtxModule:
    return parse(HEADER + text)


def body(text: str) -> tuple[Statement, ...]:
    (entry,) = module(f".entry k()\n{{\n{text}\n}}").items
    assert isinstance(entry, Function)
    assert entry.body is not None
    return entry.body.statements


def instruction(text: str) -> Instruction:
    (statement,) = body(text)
    assert isinstance(statement, Instruction)
    return statement


def integer(value: int) -> Immediate:
    return Immediate("int", value, str(value))


def name(text: str) -> Name:
    return Name(text)


@pytest.mark.parametrize(
    ("text", "operand"),
    [
        ("%r1", name("%r1")),
        ("remAddr32", name("remAddr32")),
        ("$L__BB0_1", name("$L__BB0_1")),
        ("a$b", name("a$b")),
        ("%tid.x", Name("%tid", "x")),
        ("abcd.w", Name("abcd", "w")),
        ("quad.r", Name("quad", "r")),
        ("_", Sink()),
        ("-16", integer(-16)),
        ("!%p1", Negated(name("%p1"))),
        ("! %p1", Negated(name("%p1"))),
        ("%r1|%p2", Pair(name("%r1"), name("%p2"))),
        ("%r1 | %p2", Pair(name("%r1"), name("%p2"))),
        ("_|%p2", Pair(Sink(), name("%p2"))),
        ("%p1|_", Pair(name("%p1"), Sink())),
        ("table+8", Sum(name("table"), 8)),
        ("table + -8", Sum(name("table"), -8)),
        ("[%r33]", Address(name("%r33"))),
        ("[ %r33 + 0 ]", Address(name("%r33"))),
        ("[%r1+-16]", Address(name("%r1"), -16)),
        ("[%r1+0x10]", Address(name("%r1"), 16)),
        ("[sym+4*2]", Address(name("sym"), 8)),
        ("[16]", Address(integer(16))),
        ("[%rd1, {%r1, %r2}]", Address(name("%rd1"), 0, (name("%r1"), name("%r2")))),
        ("[%rd1, {%r1, 0, -1}]", Address(name("%rd1"), 0, (name("%r1"), integer(0), integer(-1)))),
        ("{%r1, %r2}", Vector((name("%r1"), name("%r2")))),
        ("{ _ , %rs1 }", Vector((Sink(), name("%rs1")))),
        ("{%r1, 5, -1}", Vector((name("%r1"), integer(5), integer(-1)))),
        ("{%r1, 0x5}", Vector((name("%r1"), integer(5)))),
        ("{vv.x}", Vector((Name("vv", "x"),))),
    ],
)
def test_operand(text: str, operand: Operand) -> None:
    assert instruction(f"op.b32 {text};").operands == (operand,)
    assert instruction(f"op.b32 {text}, %r9;").operands == (operand, name("%r9"))
    assert instruction(f"op.b32 %r9, {text} ;").operands == (name("%r9"), operand)


@pytest.mark.parametrize(
    ("text", "guard", "opcode"),
    [
        ("ret;", None, ("ret",)),
        ("@%p1 ret;", Guard(Name("%p1"), False), ("ret",)),
        ("@!%p1 bra.uni L;", Guard(Name("%p1"), True), ("bra", "uni")),
        ("@ ! P ret;", Guard(Name("P"), True), ("ret",)),
        ("mov .u32 %r1, 0;", None, ("mov", "u32")),
        (
            "mbarrier.init.shared::cta.b64 [%r1], 1;",
            None,
            ("mbarrier", "init", "shared::cta", "b64"),
        ),
        ("wgmma.fence.sync.aligned;", None, ("wgmma", "fence", "sync", "aligned")),
        ("bar.sync\t0;", None, ("bar", "sync")),
    ],
)
def test_guard_and_opcode(text: str, guard: Guard | None, opcode: tuple[str, ...]) -> None:
    found = instruction(text)
    assert (found.guard, found.opcode) == (guard, opcode)


def test_tma_instruction() -> None:
    found = instruction(
        "@%p2 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%r1], [%rd2, {%r3, %r4}], [%r5];"
    )
    assert found.opcode[-1] == "mbarrier::complete_tx::bytes"
    assert found.operands == (
        Address(name("%r1")),
        Address(name("%rd2"), 0, (name("%r3"), name("%r4"))),
        Address(name("%r5")),
    )


@pytest.mark.parametrize(
    ("text", "operands"),
    [
        ("call.uni f;", (name("f"),)),
        ("call f, (a, 5);", (name("f"), Vector((name("a"), integer(5))))),
        ("call (r), f, ();", (Vector((name("r"),)), name("f"), Vector(()))),
        (
            "call.uni \n(r), \nf, \n(\na, \nb\n)\n, proto_1;",
            (Vector((name("r"),)), name("f"), Vector((name("a"), name("b"))), name("proto_1")),
        ),
    ],
)
def test_call_lists_are_vectors(text: str, operands: tuple[Operand, ...]) -> None:
    found = instruction(text)
    assert found.operands == operands
    assert instruction(print_instruction(found)) == found


def test_blocks_and_labels() -> None:
    statements = body("{ .reg .pred P1;\nLAB: bra DONE;\nDONE:\n}\nout : ret;")
    assert statements == (
        Block(
            ANYWHERE,
            (
                RegisterDeclaration(ANYWHERE, "pred", (("P1", None),)),
                Label(ANYWHERE, "LAB"),
                Instruction(ANYWHERE, None, ("bra",), (name("DONE"),)),
                Label(ANYWHERE, "DONE"),
            ),
        ),
        Label(ANYWHERE, "out"),
        Instruction(ANYWHERE, None, ("ret",), ()),
    )


def test_register_declarations() -> None:
    assert body(".reg .b32 %r<5>, q;\n.reg .v4 .s32 abcd;\n.reg .v2 .u32 v<3>;") == (
        RegisterDeclaration(ANYWHERE, "b32", (("%r", 5), ("q", None))),
        RegisterDeclaration(ANYWHERE, "s32", (("abcd", None),), 4),
        RegisterDeclaration(ANYWHERE, "u32", (("v", 3),), 2),
    )


def test_a_pragma_of_a_function_stands_among_its_directives() -> None:
    (function,) = module(
        '.entry k() .reqntid 32 .pragma "nounroll"; .minnctapersm 2 { ret; }'
    ).items
    assert isinstance(function, Function)
    assert function.directives == (("reqntid", (32,)), ("minnctapersm", (2,)))
    assert function.pragmas == (Directive(ANYWHERE, "pragma", '"nounroll"'),)


def test_loc_and_text_directives() -> None:
    statements = body(
        ".loc\t1 18 0   // a.py:18:0\n"
        ".loc 2 43 17, function_name $L__info0, inlined_at 1 20 44\n"
        '.pragma "nounroll";\n'
        '.pragma "used_bytes_mask 0xF; x";\n'
        "ts: .branchtargets A, B;\n"
        "p : .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);"
    )
    assert statements == (
        LocDirective(ANYWHERE, SourceLoc(1, 18, 0)),
        LocDirective(
            ANYWHERE, SourceLoc(2, 43, 17), ", function_name $L__info0, inlined_at 1 20 44"
        ),
        Directive(ANYWHERE, "pragma", '"nounroll"'),
        Directive(ANYWHERE, "pragma", '"used_bytes_mask 0xF; x"'),
        Label(ANYWHERE, "ts"),
        Directive(ANYWHERE, "branchtargets", "A, B"),
        Label(ANYWHERE, "p"),
        Directive(ANYWHERE, "callprototype", "(.param .b32 _) _ (.param .b32 _, .param .b32 _)"),
    )


def test_comments_do_not_move_anything() -> None:
    text = "/* one\n two */ mov.b32 /* x, y; */ %r1, // {\n  5; // done\n"
    (found,) = body(text)
    assert isinstance(found, Instruction)
    assert found == Instruction(ANYWHERE, None, ("mov", "b32"), (name("%r1"), integer(5)))
    assert found.span == Span(7, 9)


def test_line_markers_of_a_preprocessor_are_comments() -> None:
    (found,) = body('# 1 "a.cu" 2\n mov.b32 %r1, 5;\n  #line 7\n')
    assert isinstance(found, Instruction)
    assert found.span == Span(7, 2)


def test_guarded_instruction_starts_at_the_guard() -> None:
    (found,) = body("\t@!%p1 bra L;")
    assert isinstance(found, Instruction)
    assert found.span == Span(6, 2)


def test_body_variables() -> None:
    assert body(
        ".shared .align 8 .b8 bars[16];\n.local .v2 .f32 pair;\n.param .b64 a;\n"
        ".shared .f32 x, y[2];"
    ) == (
        Variable(ANYWHERE, "shared", "b8", "bars", 8, (16,)),
        Variable(ANYWHERE, "local", "f32", "pair", None, (), 2),
        Variable(ANYWHERE, "param", "b64", "a"),
        Variable(ANYWHERE, "shared", "f32", "x"),
        Variable(ANYWHERE, "shared", "f32", "y", None, (2,)),
    )


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        (
            ".extern .shared .align 16 .b8 smem[];",
            Variable(ANYWHERE, "shared", "b8", "smem", 16, (0,), linkage=("extern",)),
        ),
        (
            ".visible .global .u32 cell = 7;",
            Variable(ANYWHERE, "global", "u32", "cell", init=(integer(7),), linkage=("visible",)),
        ),
        (
            ".const .align 4 .b8 w[4] = {0, 0, 192, 63};",
            Variable(
                ANYWHERE, "const", "b8", "w", 4, (4,), init=tuple(map(integer, (0, 0, 192, 63)))
            ),
        ),
        (
            ".global .u64 t[4] = {f, generic(x), generic(x)+4, x+8};",
            Variable(
                ANYWHERE,
                "global",
                "u64",
                "t",
                dims=(4,),
                init=(
                    Name("f"),
                    GenericAddress(Name("x")),
                    GenericAddress(Name("x"), 4),
                    Sum(Name("x"), 8),
                ),
            ),
        ),
        (
            ".global .u8 t[2] = {0XFF(generic(x)+4), 0xff00 (x)};",
            Variable(
                ANYWHERE,
                "global",
                "u8",
                "t",
                dims=(2,),
                init=(
                    AddressByte(0xFF, GenericAddress(Name("x"), 4)),
                    AddressByte(0xFF00, Name("x")),
                ),
            ),
        ),
        (
            ".global .s32 z[2][2] = {{1, 2}, {3}};",
            Variable(
                ANYWHERE, "global", "s32", "z", dims=(2, 2), init=tuple(map(integer, (1, 2, 3, 0)))
            ),
        ),
        (
            ".global .v2 .f32 p[2] = {{1.0, 2.0}, {0f3F800000, 3.0}};",
            Variable(
                ANYWHERE,
                "global",
                "f32",
                "p",
                dims=(2,),
                vector=2,
                init=(
                    Immediate("f64", 0x3FF0000000000000, ""),
                    Immediate("f64", 0x4000000000000000, ""),
                    Immediate("f32", 0x3F800000, ""),
                    Immediate("f64", 0x4008000000000000, ""),
                ),
            ),
        ),
        (
            ".global .attribute( .managed ) .u32 m;",
            Variable(ANYWHERE, "global", "u32", "m", attributes=("attribute(.managed)",)),
        ),
        (
            ".global .u32 big[3] = {1};",
            Variable(ANYWHERE, "global", "u32", "big", dims=(3,), init=(integer(1),)),
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Variable) else "",
)  # fmt: skip
def test_module_variable(text: str, variable: Variable) -> None:
    assert module(text).items == (variable,)


def test_thousands_of_unused_variables() -> None:
    text = "\n".join(f".global .align 1 .b8 _ZN4cute{i}_E[1];" for i in range(3000))
    assert len(module(text).items) == 3000


def test_entry_header() -> None:
    (entry,) = module(
        ".weak .entry k(\n.param .align 64 .b8 x[128],\n.param .u64 .ptr .global .align 1 y,\n"
        ".param .u64 .ptr z\n)\n.maxntid 384, 1, 1\n.minnctapersm 2\n.maxnreg 168\n"
        ".explicitcluster\n.reqnctapercluster 2, 1, 1\n{ }"
    ).items
    assert entry == Function(
        ANYWHERE,
        "entry",
        "k",
        ("weak",),
        (),
        (
            Variable(ANYWHERE, "param", "b8", "x", 64, (128,)),
            Variable(ANYWHERE, "param", "u64", "y", attributes=("ptr", "global", "align 1")),
            Variable(ANYWHERE, "param", "u64", "z", attributes=("ptr",)),
        ),
        (
            ("maxntid", (384, 1, 1)),
            ("minnctapersm", (2,)),
            ("maxnreg", (168,)),
            ("explicitcluster", ()),
            ("reqnctapercluster", (2, 1, 1)),
        ),
        Block(ANYWHERE, ()),
    )


def test_function_headers() -> None:
    items = module(
        ".extern .func (.param .b32 r) vprintf\n(\n.param .b64 a,\n.param .b64 b\n)\n;\n"
        ".func f;\n"
        ".func stop() .noreturn { trap; }\n"
        ".func halt() .noreturn;\n"
        ".func (.reg .u32 rv) g (.reg .u32 a) { mov.u32 rv, a; }"
    ).items
    functions = [item for item in items if isinstance(item, Function)]
    assert [(f.name, f.linkage, len(f.returns), len(f.params)) for f in functions] == [
        ("vprintf", ("extern",), 1, 2),
        ("f", (), 0, 0),
        ("stop", (), 0, 0),
        ("halt", (), 0, 0),
        ("g", (), 1, 1),
    ]
    assert [f.directives for f in functions][2:4] == [(("noreturn", ()),), (("noreturn", ()),)]
    assert [f.body is None for f in functions] == [True, True, False, True, False]
    assert functions[4].params[0].space == "reg"


def test_module_directives_are_kept_as_text() -> None:
    items = module(
        '.file\t1 "/src//a.cu", 12, 34 // x\n.pragma "nounroll";\n.func g() { }\n.func h();\n'
        ".alias h, g;\n.section .debug_x { // comment\n.b8 1   // DW\n.b8 108,103\n}\n"
        ".section\t.debug_macinfo\t{\t}\n"
    ).items
    assert [(d.name, d.text) for d in items if isinstance(d, Directive)] == [
        ("file", '1 "/src//a.cu", 12, 34'),
        ("pragma", '"nounroll"'),
        ("alias", "h, g"),
        ("section", ".debug_x {\n.b8 1\n.b8 108,103\n}"),
        ("section", ".debug_macinfo\t{\t}"),
    ]


@pytest.mark.parametrize("version", ["8.7", "9.4", "12.34"])
def test_any_version_is_accepted(version: str) -> None:
    major, minor = version.split(".")
    assert parse(f".version {version}\n.target sm_90a").version == (int(major), int(minor))


def test_target_options_and_default_address_size() -> None:
    parsed = parse(".version 9.0\n.target sm_90a, debug\n")
    assert (parsed.target, parsed.address_size, parsed.items) == (("sm_90a", "debug"), 64, ())


def test_windows_line_ends() -> None:
    text = HEADER + '.file 1 "a.cu"\n.entry k()\n{\n.loc 1 2 3\nret;\n}\n'
    assert parse(text.replace("\n", "\r\n")) == parse(text)


def test_blocks_in_blocks_so_deep_and_no_deeper() -> None:
    def kernel(depth: int) -> hs.Kernel:
        body = f'.pragma "nounroll"; L: bra L; {"{" * depth} .reg .b32 %r; mov.b32 %r, 1; {"}" * depth}'
        return hs.loads(
            f".version 8.7\n.target sm_90a\n.address_size 64\n.entry k() {{\n{body}\n}}"
        )["k"]

    # The body of the function is one more.
    deepest = kernel(MOST_NESTED - 1)
    assert deepest.unsupported == []
    assert deepest.kept_loops == (5,)
    assert parse(print_module(deepest.module.tree)) == deepest.module.tree
    with pytest.raises(
        NotModelled, match=rf"^<ptx>:5:\d+: blocks nested over {MOST_NESTED} deep are not"
    ):
        kernel(MOST_NESTED)


def test_a_name_with_a_number_stands_for_so_many_variables() -> None:
    first, *_, last = module(".global .u32 a, g<3>, b;").items
    names = [
        item.name for item in module(".global .u32 a, g<3>, b;").items if isinstance(item, Variable)
    ]
    assert names == ["a", "g0", "g1", "g2", "b"]
    assert isinstance(first, Variable)
    assert isinstance(last, Variable)
    assert (first.type, last.type) == ("u32", "u32")
    assert [
        one.name for one in body(".shared .align 8 .b64 s<2>;") if isinstance(one, Variable)
    ] == ["s0", "s1"]
    assert module(".global .u32 g<0>;").items == ()
    with pytest.raises(
        NotModelled, match=r"^<ptx>:4:14: 'g<100000>' is 100,000 variables: over 10,000 of one name"
    ):
        module(".global .u32 g<100000>;")
    for wrong in (".global .u32 g<2>[3];", ".global .u32 g<2> = 1;", ".global .u32 g[3]<2>;"):
        with pytest.raises(hs.PtxError, match="can be neither an array nor begin with values"):
            module(wrong)
    twice = hs.loads(f"{HEADER}.global .u32 g1; .global .u32 g<2>; .entry k() {{ ret; }}")["k"]
    with pytest.raises(hs.PtxError, match="'g1' is already defined"):
        assert twice.errors
