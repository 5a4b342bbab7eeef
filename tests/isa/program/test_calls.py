"""What the front end makes of `call`: functions in the place of their calls, and what is wrong or not modelled."""

from __future__ import annotations

import pytest

import hopsim as hs
from hopsim.isa.program.calls import MOST_INSTRUCTIONS

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
F = (
    ".func (.param .b32 r) f(.param .b32 a, .param .f32 b)"
    "{ .reg .b32 x; ld.param.b32 x, [a]; st.param.b32 [r], x; ret; }\n"
)
VARIABLES = ".param .b32 q; .param .b32 a1; .param .f32 a2; .param .b64 w;"
REGISTERS = ".reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;"


def kernel(body: str, functions: str = F) -> hs.Kernel:
    text = f"{HEAD}{functions}.visible .entry k(.param .u64 p)\n{{ {REGISTERS} {VARIABLES}\n{body}\nret;\n}}\n"
    return hs.loads(text, "test.ptx")["k"]


def opcodes(one: hs.Kernel) -> list[str]:
    return [instruction.mnemonic for instruction in one.body.instructions]


# --- what it becomes ------------------------------------------------------------------------------


def test_a_call_costs_only_its_moves() -> None:
    one = kernel("st.param.b32 [a1], %r1; call.uni (q), f, (a1, a2); ld.param.b32 %r2, [q];")
    assert opcodes(one) == ["st.param.b32", "ld.param.b32", "st.param.b32", "ld.param.b32", "ret"]
    # The caller's variables are the function's parameters, and lie in registers.
    assert [register.name for register in one.registers] == ["%r1", "%r2", "x@f", "[q]", "[a1]"]
    assert one.placement.local_bytes == 0


def test_a_guarded_call_is_a_branch_around_it() -> None:
    one = kernel("@%p1 call (q), f, (%r1, 0f3F800000);")
    assert opcodes(one) == [
        "call", "st.param.b32", "st.param.f32", "ld.param.b32", "st.param.b32", "ret",
    ]  # fmt: skip
    call = one.body.instructions[0]
    assert call.guard is not None
    assert call.guard[1] is True


def test_each_call_has_registers_of_its_own_and_keeps_the_lines_of_the_function() -> None:
    one = kernel("call (_), f, (%r1, %f1);\ncall (_), f, (%r2, %f2);")
    assert [r.name for r in one.registers if r.name.startswith("x")] == ["x@f", "x@f.2"]
    assert [i.span.line for i in one.body.instructions if i.mnemonic == "ld.param.b32"] == [4, 4]


def test_ret_in_the_midst_goes_to_the_end_of_the_call() -> None:
    g = ".func g(){ .reg .pred p; @p ret; bra.uni L; L: ret.uni; }\n"
    one = kernel("call g;", g)
    assert opcodes(one) == ["bra", "bra.uni", "ret"]
    targets = [plan.successors for plan in one.plans]
    assert targets == [(1, 2), (2,), (-1,)]


def test_accesses_that_overlap_otherwise_go_through_local_memory() -> None:
    g = ".func g(.param .align 8 .b8 x[8]){ .reg .b64 y; ld.param.b64 y, [x]; ret; }\n"
    body = ".param .align 8 .b8 s[8]; st.param.v2.b32 [s], {%r1, %r2}; call g, (s);"
    one = kernel(body, g)
    assert opcodes(one) == ["st.local.v2.b32", "ld.local.b64", "ret"]
    assert one.placement.local_bytes == 16


def test_shared_and_local_variables_of_a_function_exist_once() -> None:
    g = ".func g(){ .shared .b32 s[4]; .local .b32 l[4]; .reg .b32 x; ld.shared.b32 x, [s]; ld.local.b32 x, [l]; }\n"
    one = kernel("call g; call g;", g)
    assert one.shared_bytes == 16
    assert one.placement.local_bytes == 16


def test_a_kernel_without_calls_is_left_as_it_is() -> None:
    one = kernel("mov.b32 %r1, 1;", F)
    assert opcodes(one) == ["mov.b32", "ret"]


def test_an_empty_function_and_a_kernel_of_nothing_but_its_call() -> None:
    one = hs.loads(f"{HEAD}.func g(){{}}\n.entry k(){{ call g; }}")["k"]
    assert opcodes(one) == ["ret"]


def test_the_address_of_a_function_is_a_number() -> None:
    one = kernel("mov.u64 %rd1, f;")
    assert one.unsupported == []
    assert one.placement.offsets["f"] == 0x1000_0000


# --- what is wrong --------------------------------------------------------------------------------

REG = ".func (.reg .b32 o) g(.reg .b32 x){ mov.b32 o, x; ret; }\n"
INTEGERS = ".func (.reg .u32 o) g(.reg .u32 i){ mov.b32 o, i; ret; }\n"
BYTES = ".func g(.param .align 8 .b8 x[16]){ ret; }\n"


@pytest.mark.parametrize(
    ("body", "functions", "what"),
    [
        ("call.uni (q), f, (a1);", F, "call of 'f': expected 2 arguments, got 1"),
        ("call.uni (q), f, (a1, a2, a1);", F, "call of 'f': expected 2 arguments, got 3"),
        ("call.uni f, (a1, a2);", F, "call of 'f': expected 1 return value, got 0"),
        ("call.uni (q, a1), f, (a1, a2);", F, "call of 'f': expected 1 return value, got 2"),
        ("call (q), f, (w, a2);", F, "call of 'f': argument 1 has 8 bytes, but parameter 'a' has 4"),
        ("call (w), f, (a1, a2);", F, "call of 'f': the return value has 8 bytes, but parameter 'r' has 4"),
        ("call (q), f, (%rd1, a2);", F, "call of 'f': argument 1 has 8 bytes, but parameter 'a' has 4"),
        ("call (q), f, (5, 1);", F,
         "call of 'f': argument 2 is an integer, but parameter 'b' is .f32; write 0f3F800000 or 0d..."),
        ("call (q), f, (_, a2);", F, "call of 'f': argument 1 is '_', which stands for what is thrown away"),
        ("call (5), f, (a1, a2);", F,
         "call of 'f': the return value is a number, expected a register or a .param variable"),
        ("call g, (p);", ".func g(.param .u64 z){ ret; }\n",
         "call of 'g': the argument is parameter 'p' of the caller: load it, and give the register"),
        ("call g, (f);", ".func g(.param .u64 z){ ret; }\n" + F,
         "call of 'g': the argument must be a register, a number or a .param variable"),
        ("call g, (%rd1);", BYTES, "call of 'g': the argument has 8 bytes, but parameter 'x' has 16"),
        (".param .align 4 .b8 s[16]; call g, (s);", BYTES,
         "call of 'g': the argument is aligned to 4 bytes, but parameter 'x' to 8"),
        (".param .align 16 .b8 s[16]; call g, (s);", BYTES,
         "call of 'g': the argument is aligned to 16 bytes, but parameter 'x' to 8"),
        (".param .b64 s; call g, (s);", ".func g(.param .align 8 .b8 x[8]){ ret; }\n",
         "call of 'g': the argument is a scalar, but parameter 'x' is an array"),
        ("call g, (7);", BYTES, "call of 'g': the argument is a number, but parameter 'x' is an array"),
        ("call (%rd1), g, (%r1);", REG, "call of 'g': the return value has 8 bytes, but parameter 'o' has 4"),
        ("call (q, q), g;", ".func (.param .b32 x, .param .b32 y) g(){ ret; }\n",
         "'g' returns 2 values: only one can be a .param"),
        ("call g, (%p1);", ".func g(.reg .pred x){ ret; }\n",
         "'g' has the predicate 'x' as a parameter, which no function can: pass an integer"),
        ("call g, (%r1);", ".entry g(.param .b32 x){ ret; }\n", "'g' is an entry: only a .func can be called"),
        ("call k;", F, "'k' is an entry: only a .func can be called"),
        ("call h, (a1);", F, "'h' is not declared"),
        ("call v;", F + ".global .u32 v;\n", "call needs a function, got v"),
        ("call.wide f;", F, "call has no modifier but .uni, got call.wide"),
        ("mov.u64 %rd1, q;", F, "the address of 'q' cannot be taken: it is a parameter of a call"),
        ("call g, (a1);", ".func g(.param .b32 x){ st.param.b32 [x], 1; ret; }\n",
         "'x' is an argument of this function: it can be read only"),
        ("call (q), g;", ".func (.param .b32 x) g(){ .reg .b32 y; ld.param.b32 y, [x]; ret; }\n",
         "'x' is what this function returns: it can be written only"),
        ("call g, (a1);", ".func g(.param .b32 x){ .reg .b32 y; ld.b32 y, [x]; ret; }\n",
         "ld.b32: x is a .param variable, expected a generic address"),
        ("call g, (a1);", ".func g(.param .b32 x){ .reg .b32 y; ld.local.b32 y, [x]; ret; }\n",
         "ld.local.b32: operand a is in .local, but x is a .param variable"),
        ("call (q), g;", ".func (.param .b32 x) g(){ st.b32 [x], 1; ret; }\n",
         "st.b32: x is a .param variable, expected a generic address"),
        ("ld.b32 %r1, [q];", F, "ld.b32: q is a .param variable, expected a generic address"),
        ("@%p1 st.param.b32 [a1], 5;", F, "'a1' is a parameter of a call: st.param.b32 of it cannot have a guard"),
        ("@!%p1 ld.param.b32 %r1, [q];", F, "'q' is a parameter of a call: ld.param.b32 of it cannot have a guard"),
        ("call (%f1), g, (%r1);", INTEGERS, "call of 'g': the return value is .f32, but parameter 'o' is .u32"),
        ("call (%r1), g, (%f1);", INTEGERS, "call of 'g': the argument is .f32, but parameter 'i' is .u32"),
        ("call (%r1), g, (1.0);", INTEGERS, "call of 'g': the argument is 1.0, but parameter 'i' is .u32"),
        ("call (%r1), g, (a2);", INTEGERS, "call of 'g': the argument is .f32, but parameter 'i' is .u32"),
        (".param .u32 z; call (q), f, (a1, z);", F, "call of 'f': argument 2 is .u32, but parameter 'b' is .f32"),
        ("mov.b64 %rd1, g; t: .calltargets g; call (%r1), %rd1, (%f1), t;", INTEGERS,
         "call of 'g': the argument is .f32, but parameter 'i' is .u32"),
        (".param .u8 z; call g, (z);", ".func g(.param .u8 x){ ret; }\n",
         "'g' has the .u8 'x' as a parameter, which no function can: declare it .b8 or 32 bits wide"),
        ("call g;", ".func g(){ ret 5; }\n", "ret: expected 0 operands, got 1"),
        ("st.param.b32 [p], %r1;", F,
         "st.param.b32: the address must be that of a .param variable that this body declares"),
        ("st.param.b64 [w], %r1;", F, "st.param.b64: operand b is .b64 (64 bits), but register %r1 is .b32 (32 bits)"),
        ("mov.u64 %rd1, f+8;", F, "mov.u64: operand a is an offset to function f, which has no parts"),
    ],
)  # fmt: skip
def test_wrong(body: str, functions: str, what: str) -> None:
    errors = kernel(body, functions).errors
    assert [error.what for error in errors] == [what]
    assert errors[0].line > 0


@pytest.mark.parametrize(
    ("functions", "what"),
    [
        (".func g();\n.func g(.param .b32 x){ ret; }\n", "0 parameters there, 1 here"),
        (".func (.reg .b32 r) g();\n.func g(){ ret; }\n", "1 return values there, 0 here"),
        (".func g(.param .b32 x);\n.func g(.param .b64 y){ ret; }\n", "'.param .b32 x' there, '.param .b64 y' here"),
        (".func g(.param .b32 x);\n.func g(.param .u32 x){ ret; }\n", "'.param .b32 x' there, '.param .u32 x' here"),
        (".func g(.param .b32 x);\n.func g(.reg .b32 x){ ret; }\n", "'.param .b32 x' there, '.reg .b32 x' here"),
        (".func g(.param .b32 x);\n.func g(.param .align 8 .b32 x){ ret; }\n",
         "'.param .b32 x' there, '.param .align 8 .b32 x' here"),
        (".func (.param .b8 r[4]) g();\n.func (.param .b8 r[8]) g(){ ret; }\n",
         "'.param .b8 r[4]' there, '.param .b8 r[8]' here"),
        (".func g();\n.entry g(){ ret; }\n", ".func there, .entry here"),
    ],
)  # fmt: skip
def test_declarations_of_a_function_agree(functions: str, what: str) -> None:
    with pytest.raises(hs.PtxError) as caught:
        _ = kernel("", functions).errors
    assert caught.value.what == f"'g' is declared otherwise on line 4: {what}"
    assert caught.value.line == 5


def test_a_declaration_may_name_parameters_otherwise_and_spell_out_their_alignment() -> None:
    functions = ".func g(.param .b32 x);\n.func g(.param .align 4 .b32 y){ ret; }\n"
    assert kernel("call g, (a1);", functions).errors == []


def test_parameters_of_the_function_itself_may_be_guarded() -> None:
    g = (
        ".func (.param .b32 r) g(.param .b32 x)"
        "{ .reg .b32 y; .reg .pred p; @p ld.param.b32 y, [x]; @p st.param.b32 [r], y; ret; }\n"
    )
    assert kernel("call (q), g, (a1);", g).errors == []


def test_a_mistake_in_a_function_is_told_once_however_often_it_is_called() -> None:
    g = ".func g(){\n.reg .b32 x;\nadd.u32 x, x;\nmov.b32 x, y;\n}\n"
    errors = kernel("call g; call g;\ncall g;", g).errors
    assert [(error.line, error.what) for error in errors] == [
        (6, "add.u32: expected 3 operands, got 2"),
        (7, "'y' is not declared"),
    ]


def test_the_whole_message() -> None:
    with pytest.raises(hs.PtxError) as caught:
        _ = kernel("call.uni (q), f, (a1);").body
    assert str(caught.value) == (
        "test.ptx:7:1: call of 'f': expected 2 arguments, got 1\n"
        "    call.uni (q), f, (a1);\n"
        "    ^\n"
        '  (PTX ISA 8.7, "call", "Parameter State Space")'
    )


# --- what is not modelled -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "functions", "line", "why"),
    [
        ("call g;", ".func g();\n.func h(){ call g; }\n.func g(){ call h; }\n", 5,
         "recursion is not modelled: g -> h -> g; hopsim puts the body of a function where it is called;"
         " write a loop instead"),
        (".reg .b128 %q; call (%q), g, ();", ".func (.reg .b128 q) g() { ret; }\n", 7,
         "a register of .b128 as an argument or a result is not modelled; two of .b64 are, or a .param variable"),
        ("call g;", ".extern .func g();\n", 7, "function 'g' has no body in this file; hopsim does not link files"),
        ("call g;", ".func g(){ ret.commit_group; }\n", 4,
         "ret.commit_group is wrong PTX or not modelled: no form of ret has .commit_group"),
        ("st.param.b32 [q+4], 1; call (q), f, (q, a2);", F, 7,
         "bytes 4 to 7 are outside of parameter 'q', which has 4"),
        ("call (q), g, (q);", ".func (.param .b32 r) g(.param .b32 a) { .reg .b64 x; mov.b64 x, a;\ncvta.param.u64 x, x; }\n", 5,
         "cvta.param of a function's parameter: an H100 gives an address at which the parameter is not; only an entry's have one"),
    ],
)  # fmt: skip
def test_not_modelled(body: str, functions: str, line: int, why: str) -> None:
    ((number, _, reason),) = kernel(body, functions).unsupported
    assert (number, reason) == (line, why)


@pytest.mark.parametrize("inside", ["", "membar.cta; "])
def test_growth_without_bound_is_refused_and_ends(inside: str) -> None:
    functions = f".func g0(){{ {inside} }}\n"
    functions += "".join(f".func g{n}(){{ call g{n - 1}; call g{n - 1}; }}\n" for n in range(1, 40))
    ((line, text, why),) = kernel("call g39;", functions).unsupported
    assert (line, text) == (46, "call g39;")
    assert f"over {MOST_INSTRUCTIONS:,}" in why
