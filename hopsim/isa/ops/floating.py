"""Floating-point arithmetic on f64, f32, f16, bf16 and pairs of halves.

A missing rounding modifier means `.rn`, and lets an assembler take a product into a sum: `hopsim.isa.program.contraction`.

Guess (D-SEQUENCE): the unit of correctly rounded `div`, `rcp` and `sqrt` is `mufu` (`fp64` for f64): ptxas expands them to a
software sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hopsim.isa.forms.form import form
from hopsim.isa.numerics import approximate, floating, integer, ordering
from hopsim.isa.numerics.out_of_bounds import make_oob
from hopsim.isa.types import ScalarType
from hopsim.isa.values import Predicate, Value

ROUND: Final = ("rn", "rz", "rm", "rp")
NEAREST: Final = ("rn",)
FTZ: Final = ("ftz",)
SAT: Final = ("sat",)
RELU: Final = ("relu",)
HALF: Final = ("f16", "f16x2")
BRAIN: Final = ("bf16", "bf16x2")
HALVES: Final = (*HALF, *BRAIN)


def _source(name: str) -> str:
    return f'PTX ISA 8.7, "{name}"'


# --- add, sub, mul, fma, mad ----------------------------------------------------------------------


def _declare_binary(name: str, make: Callable[..., Any], doc: str) -> None:
    """Declare add, sub or mul on every type."""

    def f32(rnd: str, ftz: str, sat: str) -> Any:
        return make("f32", rnd or "rn", ftz=bool(ftz), sat=bool(sat))

    def f64(rnd: str) -> Any:
        return make("f64", rnd or "rn")

    def half(rnd: str, ftz: str, sat: str, t: ScalarType) -> Any:
        return make(t.name, rnd or "rn", ftz=bool(ftz), sat=bool(sat))

    def brain(rnd: str, t: ScalarType) -> Any:
        return make(t.name, rnd or "rn")

    for factory in (f32, f64, half, brain):
        factory.__doc__ = doc
    source = _source(name)
    f32_operands = "d:f32, a:f32, b:f32"
    form(
        f"{name}{{.rnd}}{{.ftz}}{{.sat}}.f32 {f32_operands}",
        rnd=ROUND, ftz=FTZ, sat=SAT, unit="fp32", source=source,
    )(f32)  # fmt: skip
    form(f"{name}{{.rnd}}.f64 d:f64, a:f64, b:f64", rnd=ROUND, unit="fp64", source=source)(f64)
    form(
        f"{name}{{.rnd}}{{.ftz}}{{.sat}}.{{t}} d, a, b",
        rnd=NEAREST, ftz=FTZ, sat=SAT, t=HALF, unit="fp16", source=source,
    )(half)  # fmt: skip
    form(f"{name}{{.rnd}}.{{t}} d, a, b", rnd=NEAREST, t=BRAIN, unit="fp16", source=source)(brain)


_declare_binary("add", floating.make_add, "a + b.")
_declare_binary("sub", floating.make_sub, "a - b.")
_declare_binary("mul", floating.make_mul, "a * b.")


def _declare_fused(name: str) -> None:
    """Declare fma, or mad, which is the same on sm_90."""

    def f32(rnd: Any, ftz: str, sat: str) -> Any:
        """a * b + c, rounded once."""
        return floating.make_fma("f32", rnd, ftz=bool(ftz), sat=bool(sat))

    def f64(rnd: Any) -> Any:
        """a * b + c, rounded once."""
        return floating.make_fma("f64", rnd)

    source = _source(name)
    form(
        f"{name}.{{rnd}}{{.ftz}}{{.sat}}.f32 d:f32, a:f32, b:f32, c:f32",
        rnd=ROUND, ftz=FTZ, sat=SAT, unit="fp32", source=source,
    )(f32)  # fmt: skip
    form(f"{name}.{{rnd}}.f64 d:f64, a:f64, b:f64, c:f64", rnd=ROUND, unit="fp64", source=source)(
        f64
    )


_declare_fused("fma")
_declare_fused("mad")


def _fma_half_problem(slots: dict[str, str]) -> str:
    return "fma takes .sat or .relu, not both" if slots["sat"] and slots["relu"] else ""


@form(
    "fma.rn{.ftz}{.sat}{.relu}.{t} d, a, b, c",
    ftz=FTZ, sat=SAT, relu=RELU, t=HALF, check=_fma_half_problem, unit="fp16", source=_source("fma"),
)  # fmt: skip
def fma_half(ftz: str, sat: str, relu: str, t: ScalarType) -> Callable[..., Value]:
    """a * b + c, rounded once."""
    return floating.make_fma(t.name, "rn", ftz=bool(ftz), sat=bool(sat), relu=bool(relu))


@form("fma.rn{.relu}.{t} d, a, b, c", relu=RELU, t=BRAIN, unit="fp16", source=_source("fma"))
def fma_brain(relu: str, t: ScalarType) -> Callable[..., Value]:
    """a * b + c, rounded once."""
    return floating.make_fma(t.name, "rn", relu=bool(relu))


@form("fma.rn.oob{.relu}.{t} d, a, b, c", relu=RELU, t=HALVES, unit="fp16", source=_source("fma"))
def fma_oob(relu: str, t: ScalarType) -> Callable[..., Value]:
    """a * b + c, rounded once; 0 where a or b is what a TMA load fills in outside of its tensor."""
    one = t.name.removesuffix("x2")
    oob = make_oob(floating.make_fma(one, "rn", relu=bool(relu)))
    return oob if one == t.name else integer.make_packed16(oob)


# --- div, rcp, sqrt and the approximate functions -------------------------------------------------


@form(
    "div.{rnd}{.ftz}.f32 d:f32, a:f32, b:f32",
    rnd=ROUND, ftz=FTZ, unit="mufu", source=_source("div"),
)  # fmt: skip
def div_f32(rnd: Any, ftz: str) -> Callable[..., Value]:
    """a / b, correctly rounded."""
    return floating.make_div("f32", rnd, ftz=bool(ftz))


@form("div.{rnd}.f64 d:f64, a:f64, b:f64", rnd=ROUND, unit="fp64", source=_source("div"))
def div_f64(rnd: Any) -> Callable[..., Value]:
    """a / b, correctly rounded."""
    return floating.make_div("f64", rnd)


@form(
    "div.{how}{.ftz}.f32 d:f32, a:f32, b:f32",
    how=("approx", "full"), ftz=FTZ, joined=1, unit="mufu", source=_source("div"),
)  # fmt: skip
def div_approximate(how: str, ftz: str) -> Callable[..., Value]:
    """a / b by a reciprocal."""
    return approximate.make_divide(ftz=bool(ftz), full=how == "full")


@form("rcp.{rnd}{.ftz}.f32 d:f32, a:f32", rnd=ROUND, ftz=FTZ, unit="mufu", source=_source("rcp"))
def rcp_f32(rnd: Any, ftz: str) -> Callable[..., Value]:
    """1 / a, correctly rounded."""
    return floating.make_rcp("f32", rnd, ftz=bool(ftz))


@form("rcp.{rnd}.f64 d:f64, a:f64", rnd=ROUND, unit="fp64", source=_source("rcp"))
def rcp_f64(rnd: Any) -> Callable[..., Value]:
    """1 / a, correctly rounded."""
    return floating.make_rcp("f64", rnd)


@form("sqrt.{rnd}{.ftz}.f32 d:f32, a:f32", rnd=ROUND, ftz=FTZ, unit="mufu", source=_source("sqrt"))
def sqrt_f32(rnd: Any, ftz: str) -> Callable[..., Value]:
    """The square root, correctly rounded."""
    return floating.make_sqrt("f32", rnd, ftz=bool(ftz))


@form("sqrt.{rnd}.f64 d:f64, a:f64", rnd=ROUND, unit="fp64", source=_source("sqrt"))
def sqrt_f64(rnd: Any) -> Callable[..., Value]:
    """The square root, correctly rounded."""
    return floating.make_sqrt("f64", rnd)


def _declare_approximate(name: Any, doc: str, types: tuple[str, ...] = ()) -> None:
    """Declare `name.approx{.ftz}.f32`, and `name.approx` on the halves of `types`."""

    def f32(ftz: str) -> Any:
        return approximate.make_approximate(name, "f32", ftz=bool(ftz))

    def half(t: ScalarType) -> Any:
        return approximate.make_approximate(name, t.name)

    f32.__doc__ = half.__doc__ = doc
    syntax = f"{name}.approx{{.ftz}}.f32 d:f32, a:f32"
    form(syntax, ftz=FTZ, unit="mufu", source=_source(name))(f32)
    if types:
        form(f"{name}.approx.{{t}} d, a", t=types, unit="mufu", source=_source(name))(half)


_declare_approximate("rcp", "1 / a.")
_declare_approximate("sqrt", "The square root.")
_declare_approximate("rsqrt", "1 over the square root.")
_declare_approximate("ex2", "2 to the power of a.", HALF)
_declare_approximate("lg2", "The logarithm to base 2.")
_declare_approximate("sin", "The sine of an angle in radians.")
_declare_approximate("cos", "The cosine of an angle in radians.")


@form("ex2.approx.ftz.{t} d, a", t=BRAIN, unit="mufu", source=_source("ex2"))
def ex2_brain(t: ScalarType) -> Callable[..., Value]:
    """2 to the power of a."""
    return approximate.make_approximate("ex2", t.name, ftz=True)


@form("tanh.approx.{t} d, a", t=("f32", *HALVES), unit="mufu", source=_source("tanh"))
def tanh(t: ScalarType) -> Callable[..., Value]:
    """The hyperbolic tangent."""
    return approximate.make_approximate("tanh", t.name)


@form("rcp.approx.ftz.f64 d:f64, a:f64", unit="mufu", source=_source("rcp.approx.ftz.f64"))
def rcp_approximate_f64() -> Callable[..., Value]:
    """1 / a; the low 32 bits are zero."""
    return approximate.make_approximate("rcp", "f64", ftz=True)


@form("rsqrt.approx.ftz.f64 d:f64, a:f64", unit="mufu", source=_source("rsqrt.approx.ftz.f64"))
def rsqrt_approximate_f64() -> Callable[..., Value]:
    """1 over the square root; the low 32 bits are zero."""
    return approximate.make_approximate("rsqrt", "f64", ftz=True)


@form("rsqrt.approx.f64 d:f64, a:f64", unit="mufu", source=_source("rsqrt"))
def rsqrt_approximate_refined_f64() -> Callable[..., Value]:
    """1 over the square root, to about the last bit."""
    return approximate.make_rsqrt_f64()


# --- min, max, signs, tests -----------------------------------------------------------------------


def _declare_extreme(name: str, make: Callable[..., Any], doc: str) -> None:
    """Declare min or max on every type, and with `.xorsign.abs`."""

    def flushing(ftz: str, nan: str, t: ScalarType) -> Any:
        return make(t.name, ftz=bool(ftz), propagate_nan=bool(nan))

    def flushing_xorsign(ftz: str, nan: str, t: ScalarType) -> Any:
        return make(t.name, ftz=bool(ftz), propagate_nan=bool(nan), xorsign_abs=True)

    def brain(nan: str, t: ScalarType) -> Any:
        return make(t.name, propagate_nan=bool(nan))

    def brain_xorsign(nan: str, t: ScalarType) -> Any:
        return make(t.name, propagate_nan=bool(nan), xorsign_abs=True)

    def f64() -> Any:
        return make("f64")

    for factory in (flushing, brain, f64):
        factory.__doc__ = doc
    for factory in (flushing_xorsign, brain_xorsign):
        factory.__doc__ = f"{doc[:-1]}, by magnitude, with the product of the signs."
    source = _source(name)
    nan = ("NaN",)
    for types, unit in ((("f32",), "alu"), (HALF, "fp16")):
        options: dict[str, Any] = {
            "ftz": FTZ,
            "nan": nan,
            "t": types,
            "unit": unit,
            "source": source,
        }
        form(f"{name}{{.ftz}}{{.nan}}.{{t}} d, a, b", **options)(flushing)
        form(f"{name}{{.ftz}}{{.nan}}.xorsign.abs.{{t}} d, a, b", **options)(flushing_xorsign)
    options = {"nan": nan, "t": BRAIN, "unit": "fp16", "source": source}
    form(f"{name}{{.nan}}.{{t}} d, a, b", **options)(brain)
    form(f"{name}{{.nan}}.xorsign.abs.{{t}} d, a, b", **options)(brain_xorsign)
    form(f"{name}.f64 d:f64, a:f64, b:f64", unit="fp64", source=source)(f64)


_declare_extreme(
    "min", ordering.make_min, "The smaller operand; the other one where one is NaN, unless .NaN."
)
_declare_extreme(
    "max", ordering.make_max, "The larger operand; the other one where one is NaN, unless .NaN."
)


def _sign_problem(slots: dict[str, str]) -> str:
    if slots["ftz"] and slots["t"] not in ("f32", "f16", "f16x2"):
        return f".ftz does not apply to .{slots['t']}, expected .f32, .f16 or .f16x2"
    return ""


def _declare_sign(name: str, make: Callable[..., Any], doc: str) -> None:
    """Declare abs or neg on every type."""

    def factory(ftz: str, t: ScalarType) -> Any:
        return make(t.name, ftz=bool(ftz))

    factory.__doc__ = doc
    options: dict[str, Any] = {"ftz": FTZ, "check": _sign_problem, "source": _source(name)}
    for types, unit in ((("f32",), "alu"), (HALVES, "fp16"), (("f64",), "fp64")):
        form(f"{name}{{.ftz}}.{{t}} d, a", t=types, unit=unit, **options)(factory)


_declare_sign("abs", ordering.make_abs, "The magnitude: the sign bit cleared.")
_declare_sign("neg", ordering.make_neg, "The sign bit flipped.")


@form("copysign.{t} d, a, b", t=("f32", "f64"), unit="alu", source=_source("copysign"))
def copysign(t: ScalarType) -> Callable[..., Value]:
    """The magnitude of b with the sign of a."""
    return ordering.make_copysign(t.name)


@form(
    "testp.{what}.{t} d:pred, a",
    what=("finite", "infinite", "number", "notanumber", "normal", "subnormal"), t=("f32", "f64"),
    unit="alu", source=_source("testp"),
)  # fmt: skip
def testp(what: Any, t: ScalarType) -> Callable[..., Predicate]:
    """Whether a float has a property; zeros count as normal."""
    return ordering.make_testp(what, t.name)
