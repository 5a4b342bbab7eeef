"""Audits over all forms: no text fits two forms, mistakes are named, the lists of real PTX find their forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopsim.errors import NotModelled, PtxError
from hopsim.isa.catalog import FORMS
from hopsim.isa.forms import decode as decoder
from hopsim.isa.forms.absent import ABSENT
from hopsim.isa.forms.form import UNITS, Form
from hopsim.isa.forms.operand_rules import Mismatch
from hopsim.isa.program.wmma import is_lowered
from hopsim.isa.support import support_matrix
from tests.isa.ops.assembly import FIRST_LINE, bind, body_of, execute, own_forms, sample, spellings

DATA = Path(__file__).parents[2] / "data"

# --- overlap --------------------------------------------------------------------------------------

# (first form, second form): why one text may fit both.  An entry that is not needed any more fails the test.
OVERLAPS: dict[tuple[str, str], str] = {}


def fitting(text: str) -> list[Form]:
    body = body_of(text)
    (instruction,) = body.instructions
    found: list[Form] = []
    for form, slots in FORMS.find(instruction.opcode):
        if form.check is not None and form.check(slots):
            continue
        try:
            decoder._Binder(instruction, form, slots, body.carry).bind()
        except Mismatch:
            continue
        found.append(form)
    return found


def test_a_text_fits_one_form() -> None:
    seen: set[tuple[str, str]] = set()
    for form in own_forms():
        chosen = spellings(form)
        for slots in chosen[:: max(1, len(chosen) // 40)]:
            text, _ = sample(form, slots)
            for other in fitting(text):
                if other is not form:
                    seen.add((form.syntax, other.syntax))
    assert seen == set(OVERLAPS)


def test_every_spelling_is_distinct() -> None:
    for form in own_forms():
        chosen = spellings(form)
        texts = {sample(form, slots)[0] for slots in chosen}
        assert len(texts) == len(chosen), form.syntax


# --- mistakes -------------------------------------------------------------------------------------


def problem(text: str) -> tuple[str, int, int, str]:
    with pytest.raises(PtxError) as caught:
        bind(text)
    error = caught.value
    return error.what, error.line - FIRST_LINE, error.column, error.source


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("add.u32 r0, r1;", "add.u32: expected 3 operands, got 2"),
        ("add.u32 r0, r1, rd2;", "add.u32: operand b is .u32 (32 bits), but register rd2 is .b64 (64 bits)"),
        ("add.u32 rd0, r1, r2;", "add.u32: operand d is .u32 (32 bits), but register rd0 is .b64 (64 bits)"),
        ("add.u32 5, r1, r2;", "add.u32: destination d must be a register"),
        ("add.u32 r0, {r1, r2}, r3;", "add.u32: operand a must be a register or an immediate"),
        ("mul.wide.u32 r0, r1, r2;", "mul.wide.u32: operand d is .u64 (64 bits), but register r0 is .b32 (32 bits)"),
        ("shl.b64 rd0, rd1, rd2;", "shl.b64: operand b is .u32 (32 bits), but register rd2 is .b64 (64 bits)"),
        ("setp.lt.b32 p0, r1, r2;",
         "setp.lt.b32: comparison .lt does not apply to .b32, expected one of eq ne"),
        ("setp.lo.s32 p0, r1, r2;",
         "setp.lo.s32: comparison .lo does not apply to .s32, expected one of eq ne lt le gt ge"),
        ("setp.eq.ftz.f64 p0, fd1, fd2;",
         "setp.eq.ftz.f64: .ftz does not apply to .f64, expected .f32, .f16 or .f16x2"),
        ("setp.eq.s32 r0, r1, r2;",
         "setp.eq.s32: operand d is .pred (1 bits), but register r0 is .b32 (32 bits)"),
        ("set.eq.s64.b32 rd0, r1, r2;",
         "set.eq.s64.b32: a .s64 result is not legal, expected one of u32 s32 f32 u16 s16 f16 bf16"),
        ("slct.ftz.f32.s32 f0, f1, f2, r3;", "slct.ftz.f32.s32: slct takes .ftz only where c is .f32"),
        ("add.f32 f0, f1, 1;",
         "add.f32: an integer literal where .f32 is expected; write 0f3F800000 or 0d..."),
        ("fma.rn.sat.relu.f16 h0, h1, h2, h3;", "fma.rn.sat.relu.f16: fma takes .sat or .relu, not both"),
        ("neg.ftz.bf16 h0, h1;", "neg.ftz.bf16: .ftz does not apply to .bf16, expected .f32, .f16 or .f16x2"),
        ("cvt.f16.f32 h0, f1;", "cvt.f16.f32: rounding of .f32 to .f16: expected one of .rn .rz .rm .rp, got none"),
        ("cvt.rn.s32.f32 r0, f1;",
         "cvt.rn.s32.f32: rounding of .f32 to .s32: expected one of .rni .rzi .rmi .rpi, got .rn"),
        ("cvt.rn.f32.f16 f0, h1;", "cvt.rn.f32.f16: rounding of .f16 to .f32: expected none, got .rn"),
        ("cvt.rn.sat.bf16.f32 h0, f1;",
         "cvt.rn.sat.bf16.f32: modifiers of .f32 to .bf16: expected .ftz or .relu or .relu .satfinite or .satfinite "
         "or none, got .sat"),
        ("cvt.sat.u32.u16 r0, h1;", "cvt.sat.u32.u16: every .u16 fits .u32, so .sat does not apply"),
        ("cvt.rn.e4m3x2.f32 h0, f1, f2;",
         "cvt.rn.e4m3x2.f32: modifiers of .f32 to .e4m3x2: expected .relu .satfinite or .satfinite, got none"),
        ("cvt.u32.u64 h0, rd1;", "cvt.u32.u64: operand d is .u32 (32 bits), but register h0 is .b16 (16 bits)"),
        ("mov.b32 {r0, r1}, r2;", "mov.b32: destination d must be a register"),
        ("isspacep.global p0, h1;",
         "isspacep.global: operand a is .u64 (64 bits), but register h1 is .b16 (16 bits)"),
        ("bra r0;", "bra: operand target must be a label"),
    ],
)  # fmt: skip
def test_operand_mistake(text: str, what: str) -> None:
    got, line, _, source = problem(text)
    assert got == what
    assert line == 0
    assert source.startswith('PTX ISA 8.7, "')


def test_the_whole_message() -> None:
    with pytest.raises(PtxError) as caught:
        bind("  sad.u32 r0, r1, r2;")
    assert str(caught.value) == (
        f"test.ptx:{FIRST_LINE}:3: sad.u32: expected 4 operands, got 3\n"
        "      sad.u32 r0, r1, r2;\n"
        "      ^\n"
        "  try: the form is  sad.{t} d, a, b, c\n"
        '  (PTX ISA 8.7, "sad")'
    )


@pytest.mark.parametrize(
    "text",
    [
        "add.b32 r0, r1, r2;",
        "add.cc.b32 r0, r1, r2;",
        "sub.s16x2 r0, r1, r2;",
        "mul.wide.u64 rd0, rd1, rd2;",
        "fma.f32 f0, f1, f2, f3;",
        "ex2.f32 f0, f1;",
        "mov.f16 h0, h1;",
        "vadd.u32.u32.u32 r0, r1, r2;",
    ],
)
def test_an_unknown_form_is_not_modelled(text: str) -> None:
    with pytest.raises(NotModelled, match="not modelled"):
        bind(text)


def test_what_is_said_to_be_absent_is_not_declared() -> None:
    assert not set(ABSENT) & set(FORMS.by_word)


# --- control --------------------------------------------------------------------------------------


def test_branches_name_their_target() -> None:
    body = body_of(
        "bra.uni L;",
        "@p0 bra L;",
        "ts: .branchtargets L, M;",
        "brx.idx r0, ts;",
        "L:",
        "ret;",
        "M:",
    )
    bound = [decoder.decode(instruction, body.carry) for instruction in body.instructions]
    targets = [[label.target for label in one.targets] for one in bound]
    assert targets == [[3], [3], [3, 4], []]
    assert (bound[1].reads, bound[2].reads) == (frozenset({0}), frozenset({1}))
    assert {one.form.unit for one in bound} == {"branch"}


# --- the lists of real PTX ------------------------------------------------------------------------


def mnemonics(stage: int) -> list[str]:
    return (DATA / f"mnemonics_stage{stage}.txt").read_text().split()


def is_declared(mnemonic: str) -> bool:
    opcode = tuple(mnemonic.split("."))
    if opcode[0] == "wmma":
        return is_lowered(opcode)
    return any(f.check is None or not f.check(slots) for f, slots in FORMS.find(opcode))


def test_the_lists_are_whole() -> None:
    assert [len(mnemonics(stage)) for stage in (1, 2, 3, 4)] == [87, 56, 139, 263]


@pytest.mark.parametrize("stage", [1, 2, 3, 4])
def test_what_compilers_emit_is_declared(stage: int) -> None:
    assert [name for name in mnemonics(stage) if not is_declared(name)] == []


# --- the support matrix ---------------------------------------------------------------------------


def test_support_matrix_lists_every_form_with_its_facts() -> None:
    rows = support_matrix()
    assert len(rows) == len(list(FORMS)) + 3  # wmma, which other forms stand for
    assert [row.name for row in rows] == sorted(row.name for row in rows)
    for row in rows:
        assert row.unit in UNITS
        assert row.source.startswith("PTX ISA 8.7"), row
        assert row.doc, row.syntax


def test_support_matrix_of_one_opcode() -> None:
    (row,) = support_matrix("sad")
    assert (row.syntax, row.unit, row.purity, row.spellings) == (
        "sad.{t} d, a, b, c",
        "alu",
        "pure",
        6,
    )
    assert row.slots == (("t", ("u16", "u32", "u64", "s16", "s32", "s64"), False),)
    assert row.doc == "c plus the absolute difference of a and b, wrapping."
    assert {row.name for row in support_matrix("cvt")} == {"cvt", "cvt.pack.sat"}
    assert support_matrix("cv") == []


def test_clock_registers_are_left_to_their_own_form() -> None:
    assert bind("mov.u64 rd0, %clock64;").form.factory.__module__ != "hopsim.isa.ops.moves"


def test_a_special_register_is_read_when_the_instruction_runs() -> None:
    assert execute("mov.b32 r0, %laneid;", {}).registers["r0"] == 7
