"""What single instructions compute, by hand-worked examples, and what a guard leaves alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.isa.ops.assembly import execute

NAN, INF = 0x7FFFFFFF, 0x7F800000
ONE, TWO, THREE, HALF = 0x3F800000, 0x40000000, 0x40400000, 0x3F000000

INTEGER = [
    ("add.u32 r0, r1, r2;", {"r1": 0xFFFFFFFF, "r2": 3}, 2),
    ("add.s16 h0, h1, 0x8000;", {"h1": 0x8001}, 1),
    ("add.sat.s32 r0, r1, 1;", {"r1": 0x7FFFFFFF}, 0x7FFFFFFF),
    ("add.u16x2 r0, r1, r2;", {"r1": 0x0001FFFF, "r2": 0x00010001}, 0x00020000),
    ("sub.u64 rd0, rd1, 1;", {"rd1": 0}, (1 << 64) - 1),
    ("sub.sat.s32 r0, r1, 1;", {"r1": 0x80000000}, 0x80000000),
    ("mul.lo.s32 r0, r1, -3;", {"r1": 5}, 0xFFFFFFF1),
    ("mul.hi.s32 r0, r1, -3;", {"r1": 5}, 0xFFFFFFFF),
    ("mul.hi.u32 r0, r1, r1;", {"r1": 0xFFFFFFFF}, 0xFFFFFFFE),
    ("mul.wide.s32 rd0, r1, -3;", {"r1": 5}, (1 << 64) - 15),
    ("mul.wide.u32 rd0, r1, r1;", {"r1": 0xFFFFFFFF}, 0xFFFFFFFE00000001),
    ("mul.wide.u16 r0, h1, h1;", {"h1": 0xFFFF}, 0xFFFE0001),
    ("mul.wide.s16 r0, h1, 2;", {"h1": 0xFFFF}, 0xFFFFFFFE),
    ("mad.lo.s32 r0, r1, r2, r3;", {"r1": 0x10000, "r2": 0x10001, "r3": 7}, 0x10007),
    ("mad.wide.s32 rd0, r1, 4, rd2;", {"r1": 0xFFFFFFFF, "rd2": 1000}, 996),
    ("mad.wide.u16 r0, h1, h1, r2;", {"h1": 0xFFFF, "r2": 0xFFFFFFFF}, 0xFFFE0000),
    ("mad.hi.sat.s32 r0, r1, r1, r2;", {"r1": 0x7FFFFFFF, "r2": 0x7FFFFFFF}, 0x7FFFFFFF),
    ("mul24.lo.u32 r0, r1, r2;", {"r1": 0xFF000003, "r2": 0x01000005}, 15),
    ("mul24.lo.s32 r0, r1, r2;", {"r1": 0x00FFFFFF, "r2": 5}, 0xFFFFFFFB),
    ("mul24.hi.u32 r0, r1, r2;", {"r1": 0x00FFFFFF, "r2": 0x00FFFFFF}, 0xFFFFFE00),
    ("mul24.hi.s32 r0, r1, r2;", {"r1": 0x00800000, "r2": 0x00800000}, 0x40000000),
    ("mad24.lo.u32 r0, r1, r2, r3;", {"r1": 0x01000003, "r2": 5, "r3": 0xFFFFFFFF}, 14),
    ("mad24.hi.s32 r0, r1, 3, r3;", {"r1": 0xFFFFFFFF, "r3": 2}, 1),
    ("mad24.hi.sat.s32 r0, r1, r1, r2;", {"r1": 0x007FFFFF, "r2": 0x7FFFFFFF}, 0x7FFFFFFF),
    ("sad.s32 r0, r1, r2, 10;", {"r1": 0xFFFFFFFF, "r2": 4}, 15),
    ("div.s32 r0, r1, 2;", {"r1": 0xFFFFFFF9}, 0xFFFFFFFD),
    ("rem.s32 r0, r1, 2;", {"r1": 0xFFFFFFF9}, 0xFFFFFFFF),
    ("div.u64 rd0, rd1, 10;", {"rd1": (1 << 64) - 1}, 1844674407370955161),
    ("abs.s16 h0, h1;", {"h1": 0xFFFE}, 2),
    ("neg.s32 r0, r1;", {"r1": 1}, 0xFFFFFFFF),
    ("neg.s64 rd0, -5;", {}, 5),
    ("neg.ftz.f16x2 r0, r1;", {"r1": 0x00013C00}, 0x8000BC00),
    ("abs.ftz.f16x2 r0, r1;", {"r1": 0x8001BC00}, 0x00003C00),
    ("set.eq.bf16.u32 h0, r1, 7;", {"r1": 7}, 0x3F80),
    ("set.lt.bf16.f32 h0, f1, f1;", {"f1": 0x3F800000}, 0),
    ("min.s32 r0, r1, 3;", {"r1": 0xFFFFFFFF}, 0xFFFFFFFF),
    ("min.u32 r0, r1, 3;", {"r1": 0xFFFFFFFF}, 3),
    ("max.u16x2 r0, r1, r2;", {"r1": 0x00020001, "r2": 0x00010002}, 0x00020002),
    ("min.s16x2 r0, r1, r2;", {"r1": 0xFFFF0001, "r2": 0x00010002}, 0xFFFF0001),
    ("min.relu.s16x2 r0, r1, r2;", {"r1": 0xFFFF0001, "r2": 0x00010002}, 0x00000001),
    ("max.relu.s16x2 r0, r1, r2;", {"r1": 0xFFFF0001, "r2": 0xFFFE0002}, 0x00000002),
    ("max.relu.s32 r0, r1, r2;", {"r1": 0xFFFFFFFF, "r2": 0xFFFFFFFE}, 0),
    ("max.s32.relu r0, r1, r2;", {"r1": 0xFFFFFFFF, "r2": 0xFFFFFFFE}, 0),
    ("min.s16x2.relu r0, r1, r2;", {"r1": 0xFFFF0001, "r2": 0x00010002}, 0x00000001),
    ("add.s32.sat r0, r1, 1;", {"r1": 0x7FFFFFFF}, 0x7FFFFFFF),
    (
        "vabsdiff4.u32.u32.u32 r0, r1, r2, r3;",
        {"r1": 0x01FF0507, "r2": 0x02010505, "r3": 9},
        0x01FE0002,
    ),
    (
        "vabsdiff4.u32.u32.u32.add r0, r1, r2, r3;",
        {"r1": 0x01FF0507, "r2": 0x02010505, "r3": 10},
        0x10B,
    ),
    ("vabsdiff4.s32.s32.u32.sat r0, r1, r2, r3;", {"r1": 0x80FF7F00, "r2": 0xFF000080}, 0x7F017F7F),
    ("vabsdiff2.u32.s32.s32 r0, r1, r2, r3;", {"r1": 0x80000001, "r2": 0x7FFF0003}, 0xFFFF0002),
    (
        "vabsdiff2.u32.u32.u32.add r0, r1, r2, r3;",
        {"r1": 0xFFFF0001, "r2": 0x00000003, "r3": 0xFFFF0000},
        1,
    ),
    ("popc.b64 r0, rd1;", {"rd1": (1 << 63) + 3}, 3),
    ("clz.b32 r0, r1;", {"r1": 1}, 31),
    ("bfind.shiftamt.u32 r0, r1;", {"r1": 1}, 31),
    ("bfind.s32 r0, r1;", {"r1": 0xFFFFFFFF}, 0xFFFFFFFF),
    ("brev.b32 r0, r1;", {"r1": 1}, 0x80000000),
    ("fns.b32 r0, r1, 0, 3;", {"r1": 0xB2}, 5),
    ("fns.b32 r0, r1, 1, r2;", {"r1": 0xB2, "r2": 1}, 1),
    ("fns.b32 r0, r1, r2, -2;", {"r1": 0xB2, "r2": 6}, 4),
    ("fns.b32 r0, r1, 7, -4;", {"r1": 0xB2}, 1),
    ("fns.b32 r0, r1, 7, -5;", {"r1": 0xB2}, 0xFFFFFFFF),
    ("fns.b32 r0, r1, 0, 5;", {"r1": 0xB2}, 0xFFFFFFFF),
    ("fns.b32 r0, r1, 4, 0;", {"r1": 0xB2}, 4),
    ("fns.b32 r0, r1, 3, 0;", {"r1": 0xB2}, 0xFFFFFFFF),
    ("fns.b32 r0, r1, 32, -1;", {"r1": 0xFFFFFFFF}, 0xFFFFFFFF),
    ("fns.b32 r0, 0x80000000, 31, 1;", {}, 31),
    ("bfe.u32 r0, r1, 4, 14;", {"r1": 0x12345678}, 0x567),
    ("bfe.s32 r0, r1, 4, 4;", {"r1": 0xF0}, 0xFFFFFFFF),
    ("bfi.b32 r0, r1, r2, 8, 8;", {"r1": 0xAB, "r2": 0xFFFFFFFF}, 0xFFFFABFF),
    ("szext.clamp.s32 r0, r1, 8;", {"r1": 0x80}, 0xFFFFFF80),
    ("bmsk.clamp.b32 r0, 4, 8;", {}, 0xFF0),
    ("dp4a.s32.s32 r0, r1, r2, r3;", {"r1": 0xFF010203, "r2": 0x01010101, "r3": 10}, 15),
    ("dp4a.u32.s32 r0, r1, r2, 0;", {"r1": 0xFF000000, "r2": 0xFF000000}, 0xFFFFFF01),
    ("dp2a.hi.u32.u32 r0, r1, r2, 1;", {"r1": 0x00030002, "r2": 0x0504FFFF}, 24),
]
LOGIC = [
    ("and.b32 r0, r1, 0xF0;", {"r1": 0xFF}, 0xF0),
    ("or.b64 rd0, rd1, 1;", {"rd1": 1 << 63}, (1 << 63) + 1),
    ("xor.b16 h0, h1, -1;", {"h1": 0x00FF}, 0xFF00),
    ("not.b32 r0, r1;", {"r1": 0}, 0xFFFFFFFF),
    ("cnot.b32 r0, r1;", {"r1": 0}, 1),
    ("and.pred p0, p1, !p2;", {"p1": True, "p2": False}, True),
    ("xor.pred p0, p1, p2;", {"p1": True, "p2": True}, False),
    ("or.pred p0, p1, -1;", {}, True),
    ("not.pred p0, p1;", {"p1": False}, True),
    ("lop3.b32 r0, r1, r2, r3, 0x96;", {"r1": 12, "r2": 10, "r3": 1}, 7),
    ("lop3.b32 r0, r1, r2, r3, 0xCA;", {"r1": 0xF0, "r2": 0xAA, "r3": 0x55}, 0xA5),
    ("shl.b32 r0, r1, 32;", {"r1": 1}, 0),
    ("shl.b16 h0, h1, r2;", {"h1": 0xFFFF, "r2": 12}, 0xF000),
    ("shr.s32 r0, r1, 40;", {"r1": 0x80000000}, 0xFFFFFFFF),
    ("shr.u32 r0, r1, 4;", {"r1": 0x80000000}, 0x08000000),
    ("shr.b64 rd0, rd1, 63;", {"rd1": 1 << 63}, 1),
    ("shf.l.wrap.b32 r0, r1, r2, 36;", {"r1": 0xF0000000, "r2": 1}, 0x1F),
    ("shf.r.clamp.b32 r0, r1, r2, 36;", {"r1": 5, "r2": 9}, 9),
    ("prmt.b32 r0, r1, r2, 0x7410;", {"r1": 0x03020100, "r2": 0x07060504}, 0x07040100),
    ("prmt.b32.f4e r0, r1, r2, 1;", {"r1": 0x03020100, "r2": 0x07060504}, 0x04030201),
]
COMPARE = [
    ("setp.lt.s32 p0, r1, 0;", {"r1": 0x80000000}, True),
    ("setp.lt.u32 p0, r1, 1;", {"r1": 0x80000000}, False),
    ("setp.lo.u32 p0, r1, 1;", {}, True),
    ("setp.hs.u64 p0, rd1, 1;", {"rd1": (1 << 64) - 1}, True),
    ("setp.ge.s64 p0, rd1, -1;", {"rd1": (1 << 64) - 1}, True),
    ("setp.eq.s16 p0, h1, -1;", {"h1": 0xFFFF}, True),
    ("setp.ne.b32 p0, r1, 5;", {"r1": 5}, False),
    ("setp.lt.and.s32 p0, r1, 0, !p2;", {"r1": 0xFFFFFFFF, "p2": True}, False),
    ("setp.eq.f32 p0, f1, 0f80000000;", {"f1": 0}, True),
    ("setp.neu.f32 p0, f1, f1;", {"f1": NAN}, True),
    ("setp.ne.f32 p0, f1, f1;", {"f1": NAN}, False),
    ("setp.nan.f32 p0, f1, f2;", {"f1": ONE, "f2": NAN}, True),
    ("setp.gt.ftz.f32 p0, f1, 0f00000000;", {"f1": 1}, False),
    ("setp.gt.f32 p0, f1, 0f00000000;", {"f1": 1}, True),
    ("setp.lt.f64 p0, fd1, 0d3FF0000000000000;", {"fd1": 0x3FE << 52}, True),
    ("setp.gt.bf16 p0, h1, h2;", {"h1": 0x4000, "h2": 0x3F80}, True),
    ("setp.eq.or.f16 p0, h1, h2, p3;", {"h1": 0x7E00, "h2": 0x7E00, "p3": True}, True),
    ("set.lt.u32.s32 r0, r1, 0;", {"r1": 0xFFFFFFFF}, 0xFFFFFFFF),
    ("set.gt.f32.f32 f0, f1, f2;", {"f1": TWO, "f2": ONE}, ONE),
    ("set.eq.bf16.bf16 h0, h1, h1;", {"h1": 0x3F80}, 0x3F80),
    ("set.eq.and.u16.f16 h0, h1, h1, p2;", {"h1": 0x3C00, "p2": True}, 0xFFFF),
    ("selp.b32 r0, r1, 7, p2;", {"r1": 5, "p2": False}, 7),
    ("selp.f64 fd0, fd1, fd2, !p3;", {"fd1": 5, "p3": False}, 5),
    ("slct.u32.s32 r0, r1, 9, r2;", {"r1": 5, "r2": 0x80000000}, 9),
    ("slct.f32.f32 f0, f1, f2, f3;", {"f1": ONE, "f2": TWO, "f3": 0x80000000}, ONE),
    ("slct.f32.f32 f0, f1, f2, f3;", {"f1": ONE, "f2": TWO, "f3": NAN}, TWO),
    ("slct.ftz.f32.f32 f0, f1, f2, f3;", {"f1": ONE, "f2": TWO, "f3": 0x80000001}, ONE),
]
MOVES = [
    ("mov.b32 r0, 0f3F800000;", {}, ONE),
    ("mov.u32 r0, %tid.x;", {}, 7),
    ("mov.u32 r0, smem;", {}, 0x420),
    ("mov.b64 rd0, smem+4;", {}, 0x424),
    ("mov.pred p0, -1;", {}, True),
    ("mov.b32 r0, {h1, h2};", {"h1": 0x1234, "h2": 0xABCD}, 0xABCD1234),
    ("mov.b64 rd0, {r1, r2};", {"r1": 1, "r2": 2}, 0x200000001),
    ("mov.b64 fd0, {f1, f2};", {"f1": ONE, "f2": TWO}, 0x400000003F800000),
    ("mov.b64 rd0, {h1, h2, h3, h4};", {"h1": 1, "h2": 2, "h3": 3, "h4": 4}, 0x0004000300020001),
    ("mov.b32 {_, h0}, r1;", {"r1": 0xABCD1234}, 0xABCD),
    ("mov.b64 {r0, _}, rd1;", {"rd1": 0x200000001}, 1),
    ("mov.b16 {_, b0}, h1;", {"h1": 0xABCD}, 0xAB),
    ("mov.b128 {_, rd0}, q1;", {"q1.lo": 5, "q1.hi": 6}, 6),
    ("mov.b128 {_, _, _, r0}, q1;", {"q1.lo": 5, "q1.hi": 0xABCD << 32}, 0xABCD),
]
WIDE = [
    ("mov.b128 q0, q1;", {"q1.lo": 1, "q1.hi": 2}, (1, 2)),
    ("mov.b128 q0, {rd1, 7};", {"rd1": 1}, (1, 7)),
    (
        "mov.b128 q0, {r1, r2, r3, r4};",
        {"r1": 1, "r2": 2, "r3": 3, "r4": 4},
        (0x200000001, 0x400000003),
    ),
]
FLOAT = [
    ("add.f32 f0, f1, f2;", {"f1": ONE, "f2": ONE}, TWO),
    ("sub.f32 r0, r1, r2;", {"r1": THREE, "r2": ONE}, TWO),
    ("mul.sat.f32 f0, f1, f1;", {"f1": TWO}, ONE),
    ("fma.rn.f32 f0, f1, f2, f3;", {"f1": TWO, "f2": ONE, "f3": ONE}, THREE),
    ("fma.rn.relu.bf16x2 r0, r1, r2, r3;", {"r1": 0x3F80BF80, "r2": 0x3F803F80}, 0x3F800000),
    ("add.f16x2 r0, r1, r2;", {"r1": 0x3C004000, "r2": 0x3C003C00}, 0x40004200),
    ("div.rn.f32 f0, f1, f2;", {"f1": ONE, "f2": THREE}, 0x3EAAAAAB),
    ("div.full.f32 f0, f1, f2;", {"f1": ONE, "f2": TWO}, HALF),
    ("rcp.rn.f32 f0, f1;", {"f1": TWO}, HALF),
    ("sqrt.rz.f32 f0, f1;", {"f1": TWO}, 0x3FB504F3),
    ("sqrt.rp.f32 f0, f1;", {"f1": TWO}, 0x3FB504F4),
    ("ex2.approx.ftz.f32 f0, f1;", {"f1": ONE}, TWO),
    ("lg2.approx.f32 f0, f1;", {"f1": TWO}, ONE),
    ("tanh.approx.f32 f0, f1;", {"f1": INF}, ONE),
    ("min.f32 f0, f1, f2;", {"f1": NAN, "f2": ONE}, ONE),
    ("max.NaN.f32 f0, f1, f2;", {"f1": NAN, "f2": ONE}, NAN),
    ("min.xorsign.abs.f32 f0, f1, f2;", {"f1": 0xBF800000, "f2": TWO}, 0xBF800000),
    ("abs.f16 h0, h1;", {"h1": 0xBC00}, 0x3C00),
    ("neg.ftz.f32 f0, f1;", {"f1": 1}, 0x80000000),
    ("neg.bf16x2 r0, r1;", {"r1": 0x3F80BF80}, 0xBF803F80),
    ("copysign.f32 f0, f1, f2;", {"f1": 0x80000000, "f2": ONE}, 0xBF800000),
    ("testp.subnormal.f32 p0, f1;", {"f1": 1}, True),
    ("mul.rn.f64 fd0, fd1, fd1;", {"fd1": 0x4000 << 48}, 0x4010 << 48),
]
CONVERT = [
    ("cvt.u64.u32 rd0, r1;", {"r1": 0xFFFFFFFF}, 0xFFFFFFFF),
    ("cvt.s64.s32 rd0, r1;", {"r1": 0xFFFFFFFF}, (1 << 64) - 1),
    ("cvt.u32.u64 r0, rd1;", {"rd1": 0x1_2345_6789}, 0x23456789),
    ("cvt.u16.u32 r0, r1;", {"r1": 0x12345}, 0x2345),
    ("cvt.s16.s32 r0, r1;", {"r1": 0x18000}, 0xFFFF8000),
    ("cvt.u32.u16 r0, h1;", {"h1": 0x8000}, 0x8000),
    ("cvt.s32.s8 r0, r1;", {"r1": 0x1234FF80}, 0xFFFFFF80),
    ("cvt.u8.u32 h0, r1;", {"r1": 0x1FF}, 0xFF),
    ("cvt.s8.u32 h0, r1;", {"r1": 0x80}, 0xFF80),
    ("cvt.sat.u8.s32 h0, r1;", {"r1": 0xFFFFFFFF}, 0),
    ("cvt.sat.s8.s32 h0, r1;", {"r1": 0xFFFFFF00}, 0xFF80),
    ("cvt.u64.u32 rd0, %tid.x;", {}, 7),
    ("cvt.rn.f32.s32 f0, r1;", {"r1": 0xFFFFFFFE}, 0xC0000000),
    ("cvt.rn.f16.f32 h0, f1;", {"f1": ONE}, 0x3C00),
    ("cvt.f32.bf16 f0, h1;", {"h1": 0x3F80}, ONE),
    ("cvt.bf16.f16 h0, h1;", {"h1": 0x3C00}, 0x3F80),
    ("cvt.rzi.s32.f32 r0, f1;", {"f1": 0xBFC00000}, 0xFFFFFFFF),
    ("cvt.rzi.s32.f32 r0, f1;", {"f1": 0x7F000000}, 0x7FFFFFFF),
    ("cvt.rmi.f32.f32 f0, f1;", {"f1": 0xBFC00000}, 0xC0000000),
    ("cvt.sat.f32.f32 f0, f1;", {"f1": TWO}, ONE),
    ("cvt.rna.tf32.f32 r0, r1;", {"r1": 0x3F801000}, 0x3F802000),
    ("cvt.rn.bf16x2.f32 r0, f1, f2;", {"f1": ONE, "f2": TWO}, 0x3F804000),
    ("cvt.rn.satfinite.e4m3x2.f32 h0, f1, f2;", {"f1": ONE, "f2": TWO}, 0x3840),
    ("cvt.rn.f16x2.e4m3x2 r0, h1;", {"h1": 0x3840}, 0x3C004000),
    ("cvt.pack.sat.u16.s32 r0, r1, r2;", {"r1": 0xFFFFFFFF, "r2": 0x12345}, 0x0000FFFF),
    ("cvt.pack.sat.s8.s32.b32 r0, r1, r2, r3;", {"r1": 0xFFFFFF00, "r2": 300, "r3": 0x1ABCD}, 0xABCD807F),
    ("cvt.pack.sat.u4.s32.b32 r0, r1, r2, r3;", {"r1": 20, "r2": 3, "r3": 0x5}, 0x5F3),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [*INTEGER, *LOGIC, *COMPARE, *MOVES, *FLOAT, *CONVERT],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_value(text: str, values: dict[str, Any], expected: int | bool) -> None:
    registers = execute(text, values).registers
    (result,) = [value for name, value in registers.items() if name.lstrip("prbhfd") == "0"]
    assert result == expected, f"{result:#x}"
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("setp.lt.s32 p0|p1, r2, r3;", {"r2": 1, "r3": 2}, (True, False)),
        ("setp.lt.or.s32 p0|p1, r2, r3, p4;", {"r2": 1, "r3": 2, "p4": True}, (True, True)),
        ("setp.equ.xor.f32 p0|p1, f2, f3, p4;", {"f2": NAN, "p4": True}, (False, True)),
        ("setp.eq.f16x2 p0|p1, r2, r3;", {"r2": 0x3C000000, "r3": 0x40008000}, (True, False)),
        ("setp.lt.and.bf16x2 p0|p1, r2, r3, p4;", {"r2": 0, "r3": 0x3F803F80, "p4": True}, (True, True)),
        ("lop3.or.b32 r0|p1, r2, r3, r4, 0x80, p5;", {"r2": 6, "r3": 3, "r4": 2}, (2, True)),
        ("lop3.and.b32 r0|p1, r2, r3, r4, 0x80, p5;", {"r2": 6, "r3": 3, "r4": 2}, (2, False)),
        ("mov.b32 {h0, h1}, r2;", {"r2": 0xABCD1234}, (0x1234, 0xABCD)),
        ("mov.v2.u32 {r0, r1}, {r2, 7};", {"r2": 5}, (5, 7)),
        ("mov.v2.b32 {r0, r1}, {r1, r0};", {"r0": 5, "r1": 6}, (6, 5)),
        ("mov.v2.b16 {h0, h1}, {h1, h1};", {"h1": 6}, (6, 6)),
    ],
)  # fmt: skip
def test_two_results(text: str, values: dict[str, Any], expected: tuple[Any, Any]) -> None:
    registers = execute(text, values).registers
    results = [registers.get(f"{kind}{k}") for k in (0, 1) for kind in ("p", "r", "h")]
    assert tuple(value for value in results if value is not None) == expected


@pytest.mark.parametrize(("text", "values", "expected"), WIDE)
def test_a_register_of_128_bits(
    text: str, values: dict[str, Any], expected: tuple[int, int]
) -> None:
    registers = execute(text, values).registers
    assert (registers["q0.lo"], registers["q0.hi"]) == expected


def test_packed_setp_with_one_predicate_compares_the_low_halves() -> None:
    registers = execute("setp.eq.f16x2 p0, r1, r2;", {"r1": 0x3C000000, "r2": 0x40000000}).registers
    assert registers["p0"] is True


# --- the carry flag -------------------------------------------------------------------------------

word64 = st.integers(0, (1 << 64) - 1)
word32 = st.integers(0, (1 << 32) - 1)


@given(word64, word64)
def test_wide_sum_and_difference_through_the_carry(a: int, b: int) -> None:
    values = {"r1": a & 0xFFFFFFFF, "r2": a >> 32, "r3": b & 0xFFFFFFFF, "r4": b >> 32}
    registers = execute(
        (
            "add.cc.u32 r5, r1, r3;",
            "addc.u32 r6, r2, r4;",
            "sub.cc.u32 r7, r1, r3;",
            "subc.cc.u32 r8, r2, r4;",
        ),
        values,
    ).registers
    assert registers["r6"] << 32 | registers["r5"] == a + b & (1 << 64) - 1
    assert registers["r8"] << 32 | registers["r7"] == a - b & (1 << 64) - 1


@given(word32, word32, word64)
def test_wide_multiply_add_through_the_carry(a: int, b: int, c: int) -> None:
    registers = execute(
        ("mad.lo.cc.u32 r5, r1, r2, r3;", "madc.hi.u32 r6, r1, r2, r4;"),
        {"r1": a, "r2": b, "r3": c & 0xFFFFFFFF, "r4": c >> 32},
    ).registers
    assert registers["r6"] << 32 | registers["r5"] == a * b + c & (1 << 64) - 1


def test_only_cc_forms_leave_a_carry() -> None:
    registers = execute("addc.u32 r0, r1, 0;", {"r1": 0xFFFFFFFF, "CC.CF": True}).registers
    assert (registers["r0"], registers["CC.CF"]) == (0, True)
    registers = execute("addc.cc.u32 r0, r1, 0;", {"r1": 0, "CC.CF": True}).registers
    assert (registers["r0"], registers["CC.CF"]) == (1, False)


def test_a_uniform_difference_of_two_signs_is_added_to_an_array() -> None:
    values = {"r1": 0xFFFFFFFF, "r2": 4, "r3": np.array([0, 10], np.uint32)}
    assert execute("sad.s32 r0, r1, r2, r3;", values).registers["r0"].tolist() == [5, 15]


# --- addresses ------------------------------------------------------------------------------------


def test_address_conversions_ask_the_threads() -> None:
    outcome = execute(
        (
            "cvta.shared.u64 rd1, rd0;",
            "cvta.to.param::entry.u64 rd2, rd1;",
            "isspacep.global p0, rd1;",
        ),
        {"rd0": 0x420},
    )
    assert outcome.threads.calls == [
        ("to_generic", "shared", 0x420), ("from_generic", "param", 0x1420), ("is_space", "global", 0x1420),
    ]  # fmt: skip
    assert outcome.registers["rd2"] == 0x420
    assert outcome.registers["p0"] is True


# --- cache policies -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "upper"),
    [
        ("L2::evict_first.b64 rd0;", 0x12F),
        ("L2::evict_last.b64 rd0, 1.0;", 0x14F),
        ("L2::evict_normal.L2::evict_first.b64 rd0, 0.5;", 0x177),
        ("L2::evict_unchanged.L2::evict_unchanged.b64 rd0, 0.75;", 0x10B),
        ("L2::evict_first.b64 rd0, 0.3;", 0x124),
        ("L2::evict_first.b64 rd0, 0.03;", 0x120),
    ],
)
def test_a_cache_policy_has_the_bits_that_ptxas_writes(text: str, upper: int) -> None:
    assert execute(f"createpolicy.fractional.{text}", {}).registers["rd0"] == upper << 52


def test_a_cache_policy_of_fractions_in_registers() -> None:
    fractions = np.array([1.0, 0.5, 0.0625], np.float32).view(np.uint32)
    made = execute("createpolicy.fractional.L2::evict_last.b64 rd0, f1;", {"f1": fractions})
    assert made.registers["rd0"].tolist() == [0x14F << 52, 0x147 << 52, 0x140 << 52]


# --- guards ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("guard", "p", "expected"),
    [("@p1", True, 8), ("@p1", False, 1), ("@!p1", True, 1), ("@!p1", False, 8)],
)
def test_uniform_guard(guard: str, p: bool, expected: int) -> None:
    assert (
        execute(f"{guard} add.u32 r0, r2, 3;", {"p1": p, "r0": 1, "r2": 5}).registers["r0"]
        == expected
    )


@pytest.mark.parametrize(
    "text", ["add.u32 r0, r2, 3;", "shl.b32 r0, r2, 1;", "cvt.u32.u64 r0, rd3;"]
)
def test_guard_that_differs_between_lanes(text: str) -> None:
    p = np.arange(32) % 3 == 0
    values: dict[str, Any] = {"r2": np.arange(32, dtype=np.uint32), "rd3": 77}
    everywhere = execute(text, values).registers["r0"]
    guarded = execute(f"@!p1 {text}", {**values, "p1": p, "r0": 99}).registers["r0"]
    assert guarded.dtype == np.uint32
    assert guarded.tolist() == np.where(p, 99, everywhere).tolist()


def test_guarded_pair_keeps_old_predicates() -> None:
    p = np.array([True, False] * 16)
    registers = execute(
        "@p4 setp.eq.u32 p0|p1, r2, 0;", {"p4": p, "p0": False, "p1": False}
    ).registers
    assert registers["p0"].tolist() == p.tolist()
    assert not registers["p1"].any()


OUT = 0x7FF7
"""What a TMA load fills in outside of its tensor."""


@pytest.mark.parametrize(
    ("a", "b", "c", "expected"),
    [
        (OUT, 1, 1, 0), (1, OUT, 1, 0), (OUT | 0x8000, 1, 1, 0), (OUT, OUT, OUT, 0), (OUT, 0x7FFF, 0x7FFF, 0),
        (1, 1, OUT, 0x7FFF), (OUT - 1, 1, 1, 0x7FFF), (0x7FFF, 1, 1, 0x7FFF), (1, 1, 1, 2),
    ],
)  # fmt: skip
@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize(
    ("kind", "one", "two"), [("f16", 0x3C00, 0x4000), ("bf16", 0x3F80, 0x4000)]
)
def test_a_factor_that_was_filled_in_makes_a_sum_0(
    kind: str, one: int, two: int, relu: str, a: int, b: int, c: int, expected: int
) -> None:
    """Source: recorded on an H200, all of 10 values each for a, b and c (4,000 results)."""
    numbers = {1: one, 2: two}
    a, b, c, expected = (numbers.get(bits, bits) for bits in (a, b, c, expected))
    text = f"fma.rn.oob{relu}.{kind} h0, h1, h2, h3;"
    assert execute(text, {"h1": a, "h2": b, "h3": c}).registers["h0"] == expected
    text = f"fma.rn.oob{relu}.{kind}x2 r0, r1, r2, r3;"
    pair = {"r1": a << 16 | one, "r2": b << 16 | one, "r3": c << 16 | one}
    assert execute(text, pair).registers["r0"] == expected << 16 | two
