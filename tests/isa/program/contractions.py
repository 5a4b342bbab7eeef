"""Programs, and what ptxas 13.0 made of their products and sums for sm_90a at its default, -O3.

Each is PTX on registers %x0 to %x5, loaded from memory, in `KIND`; what it names with OUT is stored.  With each stands its
floating-point machine code, in the order of execution: `fma`, `mul`, `add`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

WIDTHS: Final = {"f32": 32, "f64": 64, "f16": 16, "f16x2": 32, "bf16": 16, "bf16x2": 32}
FLOATS: Final = ("f32", "f64", "f16", "f16x2", "bf16", "bf16x2")


class Program(NamedTuple):
    """A program, the types that it is for, and how many machine instructions of each kind it has."""

    text: str
    fma: int
    mul: int
    add: int
    kinds: tuple[str, ...] = ("f32",)


PRODUCT = "mul.KIND %y0, %x0, %x1;"
SUM = "add.KIND %y1, %y0, %x2; OUT %y1;"
TEST = "setp.gt.f32 %p0, %x3, 0f00000000;"
TWO = "mul.KIND %y0, %x0, %x1; mul.KIND %y1, %x2, %x3;"


def between(text: str) -> str:
    """Return a program with something between a product and the sum of it."""
    return f"{TEST} {PRODUCT} {text} {SUM}"


PROGRAMS: Final = {
    "sum": Program(PRODUCT + SUM, 1, 0, 0, FLOATS),
    "difference": Program(PRODUCT + "sub.KIND %y1, %y0, %x2; OUT %y1;", 1, 0, 0, FLOATS),
    "taken away": Program(PRODUCT + "sub.KIND %y1, %x2, %y0; OUT %y1;", 1, 0, 0, FLOATS),
    "mul.rn": Program("mul.rn.KIND %y0, %x0, %x1;" + SUM, 0, 1, 1, FLOATS),
    "add.rn": Program(PRODUCT + "add.rn.KIND %y1, %y0, %x2; OUT %y1;", 0, 1, 1, FLOATS),
    "add.rz": Program(PRODUCT + "add.rz.KIND %y1, %y0, %x2; OUT %y1;", 0, 1, 1, ("f32", "f64")),
    "both .ftz": Program("mul.ftz.KIND %y0, %x0, %x1; add.ftz.KIND %y1, %y0, %x2; OUT %y1;", 1, 0, 0, ("f32", "f16", "f16x2")),
    "mul.ftz": Program("mul.ftz.KIND %y0, %x0, %x1;" + SUM, 0, 1, 1, ("f32", "f16", "f16x2")),
    "add.ftz": Program(PRODUCT + "add.ftz.KIND %y1, %y0, %x2; OUT %y1;", 0, 1, 1, ("f32", "f16", "f16x2")),
    "mul.sat": Program("mul.sat.KIND %y0, %x0, %x1;" + SUM, 0, 1, 1, ("f32", "f16", "f16x2")),
    "add.sat": Program(PRODUCT + "add.sat.KIND %y1, %y0, %x2; OUT %y1;", 1, 0, 0, ("f32", "f16", "f16x2")),
    "neg between": Program(PRODUCT + "neg.KIND %y2, %y0; add.KIND %y1, %y2, %x2; OUT %y1;", 1, 0, 0, ("f32", "f64", "f16", "f16x2", "bf16")),
    "neg.ftz between": Program(PRODUCT + "neg.ftz.f32 %y2, %y0; add.f32 %y1, %y2, %x2; OUT %y1;", 0, 1, 1),
    "neg of .ftz": Program("mul.ftz.f32 %y0, %x0, %x1; neg.f32 %y2, %y0; add.ftz.f32 %y1, %y2, %x2; OUT %y1;", 1, 0, 0),
    "abs between": Program(PRODUCT + "abs.KIND %y2, %y0; add.KIND %y1, %y2, %x2; OUT %y1;", 0, 1, 1, ("f32", "f64", "f16x2")),
    "mov between": Program(PRODUCT + "mov.b32 %y2, %y0; add.f32 %y1, %y2, %x2; OUT %y1;", 1, 0, 0),
    "neg is kept": Program(PRODUCT + "neg.f32 %y2, %y0; add.f32 %y1, %y2, %x2; OUT %y1; mul.f32 %y3, %y0, %x3; OUT %y3;", 0, 2, 1),
    "product and its neg": Program(PRODUCT + "neg.f32 %y2, %y0; add.f32 %y1, %y2, %x2; add.f32 %y3, %y0, %x3; OUT %y1; OUT %y3;", 2, 0, 0),
    "t + t": Program(PRODUCT + "add.KIND %y1, %y0, %y0; OUT %y1;", 0, 1, 1, ("f32", "f64", "f16x2")),
    "t - -t": Program(PRODUCT + "neg.f32 %y2, %y0; sub.f32 %y1, %y0, %y2; OUT %y1;", 0, 1, 1),
    "three sums": Program(PRODUCT + "sub.KIND %y1, %x2, %y0; add.KIND %y2, %y0, %x3; add.KIND %y3, %y0, %x4; OUT %y1; OUT %y2; OUT %y3;", 3, 0, 0, ("f32", "f64")),
    "stored too": Program(PRODUCT + SUM + "OUT %y0;", 0, 1, 1, ("f32", "f64", "f16x2")),
    "multiplied too": Program(PRODUCT + SUM + "mul.f32 %y2, %y0, %x4; OUT %y2;", 0, 2, 1),
    "added to a product too": Program(PRODUCT + SUM + "fma.rn.f32 %y2, %x3, %x4, %y0; OUT %y2;", 1, 1, 1),
    "summed with .rn too": Program(PRODUCT + SUM + "add.rn.f32 %y2, %x3, %y0; OUT %y2;", 0, 1, 2),
    "dead use": Program(PRODUCT + SUM + "mul.f32 %y2, %y0, %y0;", 1, 0, 0),
    "factor 3": Program("mul.f32 %y0, %x0, 0f40400000;" + SUM, 1, 0, 0),
    "factor 0": Program("mul.f32 %y0, %x0, 0f00000000;" + SUM, 1, 0, 0),
    "summand 1": Program(PRODUCT + "sub.f32 %y1, %y0, 0f3F800000; OUT %y1;", 1, 0, 0),
    "times 1": Program(PRODUCT + "mul.f32 %y2, %y0, 0f3F800000; add.f32 %y1, %y2, %x2; OUT %y1;", 1, 0, 0),
    "times -1": Program(PRODUCT + "mul.f64 %y2, %y0, 0dBFF0000000000000; add.f64 %y1, %y2, %x2; OUT %y1;", 1, 0, 0, ("f64",)),
    "two": Program(TWO + "add.KIND %y2, %y0, %y1; OUT %y2;", 1, 1, 0, ("f32", "f64", "f16x2", "bf16x2")),
    "first is made too": Program(TWO + "sub.f32 %y2, %y0, %y1; OUT %y2; OUT %y0;", 1, 1, 0),
    "first has two sums": Program(TWO + "add.f32 %y2, %y0, %y1; add.f32 %y3, %y0, %x4; OUT %y2; OUT %y3;", 1, 1, 1),
    "both have two sums": Program(TWO + "add.f32 %y2, %y0, %y1; sub.f32 %y3, %y1, %y0; OUT %y2; OUT %y3;", 2, 1, 0),
    "one takes what another lacks": Program(
        "mul.f32 %y0, %x4, %x1; sub.f32 %y2, %y0, %x0; mul.f32 %y3, %x3, %x3; sub.f32 %y4, %y3, %y0; add.f32 %y5, %x0, %y3;"
        "sub.f32 %y6, %x0, %y0; sub.f32 %y7, %x1, %y0; add.f32 %y8, %x5, %y3; OUT %y2; OUT %y4; OUT %y5; OUT %y6; OUT %y7; OUT %y8;",
        4, 1, 2),
    "in place": Program("mul.f32 %x0, %x0, %x1; add.f32 %x0, %x0, %x2; OUT %x0;", 1, 0, 0),
    "written again": Program(PRODUCT + SUM + "mul.f32 %y0, %x4, %x5; OUT %y0;", 1, 1, 0),
    "factor written between": Program(PRODUCT + "mul.f32 %x0, %x4, %x5;" + SUM + "OUT %x0;", 1, 1, 0),
    "guarded sum": Program(TEST + PRODUCT + "mov.f32 %y1, %x5; @%p0 add.f32 %y1, %y0, %x2; OUT %y1;", 1, 0, 0),
    "guarded sums": Program(TEST + PRODUCT + "mov.f32 %y1, %x5; @%p0 sub.f32 %y1, %y0, %x2; @!%p0 add.f32 %y1, %y0, %x3; OUT %y1;", 2, 0, 0),
    "guarded product": Program(TEST + "mov.f32 %y0, %x5; @%p0 mul.f32 %y0, %x0, %x1;" + SUM, 0, 1, 1),
    "both guarded": Program(TEST + "mov.f32 %y0, %x4; mov.f32 %y1, %x5; @%p0 mul.f32 %y0, %x0, %x1; @%p0 add.f32 %y1, %y0, %x2; OUT %y1;", 0, 1, 1),
    "label": Program(PRODUCT + "here: " + SUM, 1, 0, 0),
    "sum in a branch": Program(between("mov.f32 %y1, %x5; @%p0 bra there;").replace("OUT", "there: OUT"), 0, 1, 1),
    "both in a branch": Program(TEST + "mov.f32 %y1, %x5; @%p0 bra there;" + PRODUCT + SUM.replace("OUT", "there: OUT"), 1, 0, 0),
    "leaves between": Program(between("@%p0 exit;"), 0, 1, 1),
    **{
        name: Program(between(f"{name};"), fma, 1 - fma, 1 - fma)
        for name, fma in {
            "bar.sync 0": 1, "membar.cta": 0, "fence.acq_rel.gpu": 0, "fence.proxy.async": 1, "@%p0 bar.sync 0": 0,
            "st.global.f32 [%o+64], %x3": 1, "@%p0 st.global.f32 [%o+64], %x3": 0, "@%p0 prefetch.global.L2 [%a]": 0,
            "ld.volatile.global.f32 %x4, [%a+64]": 1,
            "rem.u32 %r2, %r0, %r1; st.global.u32 [%o+64], %r2": 1, "div.s32 %r2, %r0, 7; st.global.u32 [%o+64], %r2": 0,
        }.items()
    },
    "guarded load": Program(between("@%p0 ld.global.f32 %y5, [%a+64];") + "OUT %y5;", 0, 1, 1),
    "guarded load of a parameter": Program(between("@%p0 ld.param.u64 %o, [p];"), 0, 1, 1),
}  # fmt: skip
