"""What ptxas makes of instructions that are part of others, as its machine code has them."""

from __future__ import annotations

import pytest

from tests.hw.timing.test_machine_code import counts

KEEP = "st.global.u32 [%rd1],%r9;"
"""Keeps a result; one machine instruction."""
DECLARATIONS = ".reg .b64 %g<4>;"


def made(body: str) -> int:
    """Machine instructions, less the store of the result."""
    return counts(body + KEEP, DECLARATIONS) - 1


@pytest.mark.parametrize(
    ("body", "number"),
    [
        ("and.b32 %r5,%r1,%r2; or.b32 %r9,%r5,%r3;", 1),  # LOP3
        ("and.b32 %r5,%r1,255; or.b32 %r9,%r5,%r3;", 1),
        ("not.b32 %r5,%r1; and.b32 %r9,%r5,%r3;", 1),
        ("and.b32 %r5,%r1,%r2; or.b32 %r6,%r5,%r3; xor.b32 %r9,%r6,%r4;", 2),
        ("and.b32 %r5,%r1,%r2; or.b32 %r6,%r5,%r3; xor.b32 %r9,%r5,%r6;", 2),  # the first is needed twice
        ("and.b32 %r5,%r1,255; or.b32 %r9,%r5,15;", 2),  # two literals
        ("add.s32 %r5,%r1,%r2; add.s32 %r9,%r5,%r3;", 1),  # IADD3
        ("sub.s32 %r5,%r1,%r2; add.s32 %r9,%r5,%r3;", 1),
        ("add.s32 %r5,%r1,%r2; add.s32 %r6,%r5,%r3; add.s32 %r9,%r6,%r4;", 2),
        ("mul.lo.s32 %r5,%r1,%r2; add.s32 %r9,%r5,%r3;", 1),  # IMAD
        ("shl.b32 %r5,%r1,3; sub.s32 %r9,%r3,%r5;", 1),
        ("shl.b32 %r5,%r1,3; xor.b32 %r9,%r3,%r5;", 2),
        ("min.s32 %r5,%r1,%r2; min.s32 %r9,%r5,%r3;", 1),  # VIMNMX3
        ("min.s32 %r5,%r1,%r2; max.s32 %r9,%r5,%r3;", 2),
        ("setp.lt.s32 %p1,%r1,%r2; setp.gt.s32 %p2,%r3,%r4; and.pred %p3,%p1,%p2; selp.b32 %r9,%r1,%r2,%p3;", 3),
        ("shl.b64 %rd4,%rd2,3; add.s64 %rd5,%rd4,%rd3; cvt.u32.u64 %r9,%rd5;", 1),  # LEA
        ("shl.b64 %rd4,%rd2,3; add.s64 %rd5,%rd4,%rd3; st.global.u64 [%rd1],%rd5;", 3),  # LEA, LEA.HI.X, STG
        ("cvt.s64.s32 %rd4,%r1; add.s64 %rd5,%rd4,%rd3; cvt.u32.u64 %r9,%rd5;", 1),
        ("cvt.s64.s32 %rd4,%r1; add.s64 %rd5,%rd4,%rd3; st.global.u64 [%rd1],%rd5;", 3),
        ("cvta.to.global.u64 %rd4,%rd2; cvt.u32.u64 %r9,%rd4;", 0),
        ("neg.f32 %f5,%f1; fma.rn.f32 %f6,%f5,%f2,%f3; cvt.rzi.s32.f32 %r9,%f6;", 2),
        ("abs.f32 %f5,%f1; add.f32 %f6,%f5,%f2; cvt.rzi.s32.f32 %r9,%f6;", 2),
        ("abs.f32 %f5,%f1; fma.rn.f32 %f6,%f5,%f2,%f3; cvt.rzi.s32.f32 %r9,%f6;", 3),  # FFMA has none
    ],
)  # fmt: skip
def test_as_in_machine_code(body: str, number: int) -> None:
    assert made(body) == number


def test_what_is_guarded_or_written_twice_stays() -> None:
    assert made("@%p1 and.b32 %r5,%r1,%r2; or.b32 %r9,%r5,%r3;") == 2
    both = "and.b32 %r5,%r1,%r2; @%p1 mov.b32 %r5,7; or.b32 %r9,%r5,%r3;"
    assert made(both) == made("@%p1 mov.b32 %r5,7;") + 2
