"""Random modules print and parse back to themselves."""

from __future__ import annotations

import struct

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hopsim.errors import PtxError
from hopsim.isa.ptx.ast import (
    Address,
    AddressByte,
    Block,
    Directive,
    Element,
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
from hopsim.isa.ptx.parser import parse
from hopsim.isa.ptx.printer import print_module, print_operand
from hopsim.isa.types import TYPES

SPAN = Span(1, 1)

identifiers = st.sampled_from(
    ["%r0", "%r15", "p", "P1", "$L__BB0_1", "_a", "a$b", "ret", "mov", "x", "%px", "U", "e3", "f00"]
)
any_identifiers = st.from_regex(
    r"\A(?:[A-Za-z][A-Za-z0-9_$]{0,8}|[_$%][A-Za-z0-9_$]{1,8})\Z"
).filter(lambda name: name not in ("WARP_SZ", "generic"))
names = identifiers.map(Name)
components = st.builds(Name, identifiers, st.sampled_from("xyzwrgba"))
registers = names | components
offsets = st.integers(-(1 << 31), 1 << 31).filter(bool)


def decimal_float(value: float) -> Immediate:
    bits = int.from_bytes(struct.pack(">d", value), "big")
    return Immediate("f64", bits, repr(value))


integers = st.integers(-(1 << 63), (1 << 64) - 1)
whole_immediates = st.one_of(
    integers.map(lambda value: Immediate("int", value, "")),
    st.integers(0, (1 << 64) - 1).map(lambda value: Immediate("int", value, hex(value))),
)
float_immediates = st.one_of(
    st.integers(0, (1 << 32) - 1).map(lambda bits: Immediate("f32", bits, "")),
    st.integers(0, (1 << 64) - 1).map(lambda bits: Immediate("f64", bits, "")),
    st.floats(allow_nan=False, allow_infinity=False).map(decimal_float),
)
immediates = whole_immediates | float_immediates
int_immediates = integers.map(lambda value: Immediate("int", value, ""))
elements = st.one_of(registers, immediates, st.just(Sink()))
lists = st.lists(elements, min_size=1, max_size=5).map(tuple)
addresses = st.one_of(
    st.builds(Address, registers, st.just(0) | offsets, st.just(()) | lists),
    st.builds(Address, int_immediates),
)
operands: st.SearchStrategy[Operand] = st.one_of(
    registers,
    immediates,
    st.builds(Sum, names, offsets),
    st.builds(Element, names, st.none() | names, offsets),
    addresses,
    lists.map(Vector),
    st.builds(Pair, registers | st.just(Sink()), registers | st.just(Sink())),
    registers.map(Negated),
    st.just(Sink()),
)
words = st.sampled_from(["b32", "sync", "shared::cta", "mbarrier::complete_tx::bytes", "m64n8k16"])
opcodes = st.tuples(st.sampled_from(["add", "cp", "x", "a_b1"]), st.lists(words, max_size=3)).map(
    lambda parts: (parts[0], *parts[1])
)
guards = st.none() | st.builds(Guard, names, st.booleans())
instructions = st.builds(
    Instruction,
    st.just(SPAN),
    guards,
    opcodes,
    st.lists(operands, max_size=4).map(tuple),
)
call_lists = st.lists(registers | int_immediates, max_size=3).map(tuple).map(Vector)
calls = st.builds(
    Instruction,
    st.just(SPAN),
    guards,
    st.sampled_from([("call",), ("call", "uni")]),
    st.tuples(call_lists, names, call_lists) | st.tuples(names) | st.tuples(names, call_lists),
)
types = st.sampled_from(["b8", "b16", "u32", "s64", "f32", "b64"])
aligns = st.none() | st.sampled_from([1, 8, 128])
initial_values = {"f32": float_immediates, "b64": immediates}
vectors = st.sampled_from([0, 0, 2, 4])
dims = st.lists(st.integers(1, 3), max_size=2).map(tuple)


@st.composite
def variables(draw: st.DrawFn, space: str) -> Variable:
    is_global = space in ("global", "const")
    size, kind = draw(dims), draw(types)
    vector = 0 if space == "param" else draw(vectors)
    init = None
    if is_global and draw(st.booleans()):
        count = vector or 1
        for extent in size:
            count *= extent
        addresses = st.one_of(
            names,
            st.builds(Sum, names, offsets),
            st.builds(GenericAddress, names, st.just(0) | offsets),
        )
        parts = st.builds(AddressByte, st.sampled_from((0xFF, 0xFF00, 0xFF << 56)), addresses)
        element = initial_values.get(kind, whole_immediates) | parts
        if TYPES[kind].bytes >= 4:
            element |= addresses
        init = tuple(draw(st.lists(element, min_size=count, max_size=count)))
    linkage = draw(st.sampled_from([(), ("visible",), ("extern",), ("weak",)]))
    attributes: tuple[str, ...] = ()
    if space == "param":
        pointers = [(), ("ptr",), ("ptr", "global"), ("ptr", "shared", "align 4")]
        attributes = draw(st.sampled_from(pointers))
    elif space == "global":
        attributes = draw(st.sampled_from([(), ("attribute(.managed)",)]))
    return Variable(
        SPAN,
        space,
        kind,
        draw(identifiers),
        draw(aligns),
        size,
        vector,
        init,
        linkage if is_global else (),
        attributes,
    )


declarations = st.builds(
    RegisterDeclaration,
    st.just(SPAN),
    st.sampled_from(["pred", "b32", "f64"]),
    st.lists(st.tuples(identifiers, st.none() | st.integers(0, 9999)), min_size=1, max_size=3).map(
        tuple
    ),
    vectors,
)
locs = st.builds(
    LocDirective,
    st.just(SPAN),
    st.builds(SourceLoc, st.integers(0, 9), st.integers(0, 9999), st.integers(0, 99)),
    st.sampled_from(["", ", function_name $L__info0, inlined_at 1 20 44"]),
)
directives = st.sampled_from(
    [
        Directive(SPAN, "pragma", '"nounroll"'),
        Directive(SPAN, "branchtargets", "A, B"),
        Directive(SPAN, "callprototype", "(.param .b32 _) _ (.param .b32 _)"),
    ]
)
statements: st.SearchStrategy[Statement] = st.recursive(
    st.one_of(
        instructions,
        calls,
        st.builds(Label, st.just(SPAN), identifiers),
        declarations,
        variables("shared"),
        variables("local"),
        locs,
        directives,
    ),
    lambda inner: st.lists(inner, max_size=4).map(lambda items: Block(SPAN, tuple(items))),
    max_leaves=8,
)
bodies = st.lists(statements, max_size=6).map(lambda items: Block(SPAN, tuple(items)))
performance = st.lists(
    st.sampled_from([("reqntid", (8, 8, 2)), ("maxclusterrank", (8,)), ("explicitcluster", ())]),
    max_size=2,
).map(tuple)
parameters = st.lists(variables("param"), max_size=3).map(tuple)


@st.composite
def functions(draw: st.DrawFn) -> Function:
    kind = draw(st.sampled_from(["entry", "func"]))
    return Function(
        SPAN,
        kind,
        draw(identifiers),
        draw(st.sampled_from([(), ("visible",), ("weak",)])),
        draw(parameters) if kind == "func" else (),
        draw(parameters),
        draw(performance) if kind == "entry" else (),
        draw(st.none() | bodies),
        draw(st.sampled_from([(), (Directive(SPAN, "pragma", '"nounroll"'),)])),
    )


module_directives = st.sampled_from(
    [
        Directive(SPAN, "file", '1 "a.cu"'),
        Directive(SPAN, "section", ".debug_x {\n.b8 1,2\n}"),
        Directive(SPAN, "pragma", '"nounroll", "nounroll"'),
    ]
)
modules = st.builds(
    PtxModule,
    st.tuples(st.integers(8, 99), st.integers(0, 9)),
    st.sampled_from([("sm_90a",), ("sm_90a", "debug")]),
    st.just(64),
    st.lists(
        st.one_of(variables("global"), variables("const"), functions(), module_directives),
        max_size=3,
    ).map(tuple),
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=50)
@given(modules)
def test_a_printed_module_parses_back(module: PtxModule) -> None:
    assert parse(print_module(module)) == module


@given(operands, st.sampled_from(["{}", " {} ", "\n\t{}\n", "/* c */{}// d\n"]))
def test_a_printed_operand_parses_back(operand: Operand, layout: str) -> None:
    text = layout.format(print_operand(operand))
    module = parse(f".version 8.7\n.target sm_90a\n.entry k() {{ op {text}, {text}; }}")
    (entry,) = module.items
    assert isinstance(entry, Function)
    assert entry.body == Block(SPAN, (Instruction(SPAN, None, ("op",), (operand, operand)),))


@given(any_identifiers)
def test_any_identifier_names_a_register_or_a_label(name: str) -> None:
    text = f".version 8.7\n.target sm_90a\n.entry k() {{ .reg .b32 {name}; op {name}; {name}: }}"
    (entry,) = parse(text).items
    assert isinstance(entry, Function)
    assert entry.body is not None
    assert entry.body.statements == (
        RegisterDeclaration(SPAN, "b32", ((name, None),)),
        Instruction(SPAN, None, ("op",), (Name(name),)),
        Label(SPAN, name),
    )


@given(st.text(alphabet='ret;.{}[]()@!%r1,+-0x5 \n/*"_:|=abc', max_size=60))
def test_any_body_parses_or_is_refused_with_a_place(text: str) -> None:
    place = (3, 1)
    try:
        parse(f".version 8.7\n.target sm_90a\n.entry k() {{ {text} }}\n")
    except PtxError as error:
        place = (error.line, error.column)
    assert place >= (3, 1)
