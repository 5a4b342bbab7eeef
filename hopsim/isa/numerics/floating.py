"""Floating-point arithmetic of PTX on raw bits, correctly rounded: factories that bind type and modifiers.

    >>> add = make_add("f32", "rz", ftz=True)
    >>> hex(add(0x3F800000, 0x33800001))  # 1 + (2**-24 and a bit), toward zero
    '0x3f800000'

Types: f16, f16x2, bf16, bf16x2, f32, f64.  Operands and results are registers (`hopsim.isa.values`).
NaN results are canonical: 0x7FFFFFFF (f32), 0x7FFF (f16, bf16).  f64 keeps the payload of an operand: b
goes before c, c before a; `div` takes a before b.  Source: recorded on an H100, tests/silicon/probes.

Minimum, sign bits and comparisons are in `ordering`, `.approx` forms in `approximate`.

Source: PTX ISA 8.7 "Floating Point Instructions", "Half Precision Floating Point Instructions".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hopsim.isa.numerics import exact
from hopsim.isa.numerics.formats import F64, FORMATS, FloatFormat
from hopsim.isa.numerics.rounding import (
    Float64Array,
    Kernel,
    Rounding,
    clamp_negative,
    flush_subnormal,
    lift,
    round_float64,
    saturate,
    set_canonical_nan,
    set_nan_f64,
    some,
    to_float64,
    to_odd,
    two_product,
    two_sum,
)
from hopsim.isa.values import Array, Value

Unary: TypeAlias = Callable[[Value], Value]
Binary: TypeAlias = Callable[[Value, Value], Value]
Ternary: TypeAlias = Callable[[Value, Value, Value], Value]
Operation = Literal["add", "sub", "mul", "fma", "div", "sqrt", "rcp"]
Odd: TypeAlias = Callable[..., Float64Array]


def element(type_name: str) -> tuple[FloatFormat, int]:
    """The format of one element, and how many a register holds."""
    if type_name.endswith("x2"):
        return FORMATS[type_name.removesuffix("x2")], 2
    return FORMATS[type_name], 1


def finish(
    kernel: Kernel,
    type_name: str,
    ftz: bool,
    sat: bool = False,
    relu: bool = False,
    exact: tuple[Odd, Rounding] | None = None,
) -> Callable[..., Value]:
    """Wrap a kernel on words with the modifiers, and lift it to registers.

    Args:
        exact: computes the result rounded to odd in float64, and the rounding mode, where `.ftz` also flushes what
            only rounding made the smallest normal number.
    """
    fmt, parts = element(type_name)
    if not (ftz or sat or relu):
        return lift(kernel, fmt.width_bits, parts)

    def modified(*words: Array) -> Array:
        if ftz:
            words = tuple(flush_subnormal(x, fmt) for x in words)
        result = kernel(*words)
        if ftz:
            result = flush_subnormal(result, fmt)
            if exact is not None:
                result = _flush_tiny(result, words, fmt, *exact)
        if relu:
            result = clamp_negative(result, fmt)
        return saturate(result, fmt) if sat else result

    return lift(modified, fmt.width_bits, parts)


def _flush_tiny(
    result: Array, words: Sequence[Array], fmt: FloatFormat, odd: Odd, rounding: Rounding
) -> Array:
    """Flush results that only the lack of exponents rounded up to the smallest normal number.

    Source: recorded on an H100, tests/silicon/probes: the result is rounded as if exponents had no end, and flushed
    when that is below the smallest normal number.
    """
    border = result & (fmt.sign_bit - 1) == 1 << fmt.fraction_bits
    if some(border):
        exact = odd(*(to_float64(x, fmt) for x in words))
        scaled = round_float64(exact * 2.0**-fmt.smallest_exponent, fmt, rounding)
        tiny = border & (scaled & (fmt.sign_bit - 1) < fmt.one)
        result = np.where(tiny, result & fmt.sign_bit, result).astype(result.dtype)
    return result


# ------------------------------------------------------------------------------- arithmetic kernels


def _native_f32(operation: Callable[..., NDArray[np.float32]]) -> Kernel:
    """Operations that numpy's float32 rounds correctly to nearest."""
    fmt = FORMATS["f32"]

    def kernel(*words: Array) -> Array:
        result = operation(*(x.view(np.float32) for x in words))
        return set_canonical_nan(result.view(np.uint32), np.isnan(result), fmt)

    return kernel


def _nan_order(operation: Operation, words: Sequence[Array]) -> list[Array]:
    """Operands from the weakest NaN to the strongest: a, c, b; for `div` b, a."""
    if operation == "div":
        return [words[1], words[0]]
    return [words[0], *words[:0:-1]]


def _native_f64(operation: Operation, compute: Callable[..., Float64Array]) -> Kernel:
    def kernel(*words: Array) -> Array:
        result = compute(*(x.view(np.float64) for x in words))
        return set_nan_f64(result.view(np.uint64), _nan_order(operation, words))

    return kernel


def _sum_odd(a: Float64Array, b: Float64Array, rounding: Rounding) -> Float64Array:
    """a + b rounded to odd; for .rm with the IEEE sign of an exact zero."""
    total, error = two_sum(a, b)
    if rounding == "rm":
        cancelled = (total == 0) & (np.signbit(a) != np.signbit(b))
        total = np.where(cancelled, -0.0, total)
    return to_odd(total, error)


def _reciprocal(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.float32(1) / x


def _reciprocal64(x: Float64Array) -> Float64Array:
    return 1.0 / x


def _divide_odd(a: Float64Array, b: Float64Array) -> Float64Array:
    """a / b of numbers from f32 or narrower, rounded to odd."""
    quotient = a / b
    product, error = two_product(quotient, b)
    rest = (a - product) - error  # exact but for its last bits; only its sign counts
    return to_odd(quotient, np.where(np.isfinite(quotient), np.sign(rest) * np.sign(b), 0))


def _reciprocal_odd(a: Float64Array) -> Float64Array:
    return _divide_odd(np.ones_like(a), a)


def _multiply64(a: Float64Array, b: Float64Array) -> Float64Array:
    return a * b  # exact for factors of at most 24 bits


def _sqrt_odd(a: Float64Array) -> Float64Array:
    """Square root of numbers from f32 or narrower, rounded to odd."""
    root = np.sqrt(a)
    square, error = two_product(root, root)
    return to_odd(root, np.where(np.isfinite(root), np.sign((a - square) - error), 0))


def _fma_f32_nearest(a: Array, b: Array, c: Array) -> Array:
    """`fma.rn.f32`: the product is exact in float64, so only its sum with c can round twice.

    Rounding twice errs only where the float64 sum lies on a midpoint of two f32 (its low 29 bits are
    0x10000000) or where the f32 is subnormal or zero: those lanes' sums are first made odd.
    """
    addend = c.view(np.float32).astype(np.float64)
    product = a.view(np.float32).astype(np.float64) * b.view(np.float32)
    total = product + addend
    result = total.astype(np.float32)
    bits = result.view(np.uint32)
    midpoint = total.view(np.uint64) & 0x1FFFFFFF == 0x10000000
    if some(midpoint) or some(bits & 0x7F800000 == 0):
        result = to_odd(*two_sum(product, addend)).astype(np.float32)
        bits = result.view(np.uint32)
    return set_canonical_nan(bits, np.isnan(result), FORMATS["f32"])


def _odd(operation: Operation, rounding: Rounding) -> Callable[..., Float64Array]:
    """The exact result of an operation on f16, bf16 or f32, rounded to odd in float64."""

    def sums(sign: float) -> Callable[[Float64Array, Float64Array], Float64Array]:
        return lambda a, b: _sum_odd(a, sign * b, rounding)

    def fused(a: Float64Array, b: Float64Array, c: Float64Array) -> Float64Array:
        return _sum_odd(a * b, c, rounding)  # the product has at most 48 bits

    operations: dict[str, Callable[..., Float64Array]] = {
        "add": sums(1.0),
        "sub": sums(-1.0),
        "mul": _multiply64,
        "fma": fused,
        "div": _divide_odd,
        "sqrt": _sqrt_odd,
        "rcp": _reciprocal_odd,
    }
    return operations[operation]


def _narrow(operation: Operation, fmt: FloatFormat, rounding: Rounding) -> Kernel:
    """Kernels for f16, bf16 and f32 through round-to-odd in float64."""
    compute = _odd(operation, rounding)

    def kernel(*words: Array) -> Array:
        return round_float64(compute(*(to_float64(x, fmt) for x in words)), fmt, rounding)

    return kernel


_NATIVE_F32: Final[dict[str, Callable[..., NDArray[np.float32]]]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
    "rcp": _reciprocal,
}
_NATIVE_F64: Final[dict[str, Callable[..., Float64Array]]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
    "rcp": _reciprocal64,
}


def _exact_f64(operation: Operation, rounding: Rounding) -> Kernel:
    """f64 kernels lane by lane in exact arithmetic; numpy answers where an operand is not finite."""

    def scalar(x: list[float]) -> int:
        if operation in ("add", "sub"):
            return exact.fma_f64(x[0], 1.0, x[1] if operation == "add" else -x[1], rounding)
        if operation == "mul":
            if x[0] and x[1]:
                return exact.fma_f64(x[0], x[1], 0.0, rounding)
            return F64.sign_bit if np.signbit(x[0]) != np.signbit(x[1]) else 0
        if operation == "fma":
            return exact.fma_f64(x[0], x[1], x[2], rounding)
        if operation == "sqrt":
            return exact.sqrt_f64(x[0], rounding)
        return exact.divide_f64(*((1.0, x[0]) if operation == "rcp" else (x[0], x[1])), rounding)

    def native(*values: Float64Array) -> Float64Array:
        if operation == "fma":  # reached for specials only: a finite product must not overflow
            a, b, c = values
            finite = np.isfinite(a) & np.isfinite(b)
            return np.where(finite, np.sign(a) * np.sign(b), a * b) + c
        return _NATIVE_F64[operation](*values)

    def kernel(*words: Array) -> Array:
        columns = np.broadcast_arrays(*(x.view(np.float64) for x in words))
        result = _native_f64(operation, native)(*(x.view(np.uint64) for x in columns))
        plain = np.logical_and.reduce([np.isfinite(x) for x in columns])
        if operation in ("div", "rcp"):
            plain &= columns[-1] != 0
        if operation == "sqrt":
            plain &= columns[0] > 0
        for lane in np.nonzero(plain)[0]:
            result[lane] = scalar([float(x[lane]) for x in columns])
        return result

    return kernel


def _fma_f64_nearest(a: Array, b: Array, c: Array) -> Array:
    """`fma.rn.f64` (Boldo and Melquiond); lanes with extreme exponents go the exact way.

    With a zero there is at most one rounding, and numpy's is right.
    """
    x, y, z = np.broadcast_arrays(a.view(np.float64), b.view(np.float64), c.view(np.float64))
    high, low = two_product(x, y)
    tail, tail_error = two_sum(z, low)
    head, head_error = two_sum(high, tail)
    fused = head + to_odd(*two_sum(tail_error, head_error))
    usual, zero = zip(*(_usual_or_zero(part) for part in (x, y, z)), strict=True)
    factors = (usual[0] | zero[0]) & (usual[1] | zero[1])
    has_zero = (zero[0] | zero[1] | zero[2]) & factors & (usual[2] | zero[2])
    if has_zero.any():
        fused = np.where(has_zero, x * y + z, fused)
    safe = has_zero | (usual[0] & usual[1] & usual[2])
    result = fused.view(np.uint64)
    if not safe.all():
        rest = ~safe
        words = (np.ascontiguousarray(part[rest]).view(np.uint64) for part in (x, y, z))
        result[rest] = _exact_f64("fma", "rn")(*words)
    return result


def _usual_or_zero(values: Float64Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which numbers have exponents far from the ends of the range, and which are zero."""
    magnitude = np.abs(values)
    return (magnitude > 2.0**-400) & (magnitude < 2.0**400), magnitude == 0


def _kernel(operation: Operation, fmt: FloatFormat, rounding: Rounding) -> Kernel:
    if fmt.name == "f64":
        if rounding == "rn" and operation == "fma":
            return _fma_f64_nearest
        if rounding == "rn":
            return _native_f64(operation, _NATIVE_F64[operation])
        return _exact_f64(operation, rounding)
    if fmt.name == "f32" and rounding == "rn":
        if operation == "fma":
            return _fma_f32_nearest
        return _native_f32(_NATIVE_F32[operation])
    return _narrow(operation, fmt, rounding)


# ----------------------------------------------------------------------------------------- factories


def make_add(
    type_name: str, rounding: Rounding = "rn", *, ftz: bool = False, sat: bool = False
) -> Binary:
    """`add{.rnd}{.ftz}{.sat}`."""
    kernel = _kernel("add", element(type_name)[0], rounding)
    return finish(kernel, type_name, ftz, sat)


def make_sub(
    type_name: str, rounding: Rounding = "rn", *, ftz: bool = False, sat: bool = False
) -> Binary:
    """`sub{.rnd}{.ftz}{.sat}`."""
    kernel = _kernel("sub", element(type_name)[0], rounding)
    return finish(kernel, type_name, ftz, sat)


def make_mul(
    type_name: str, rounding: Rounding = "rn", *, ftz: bool = False, sat: bool = False
) -> Binary:
    """`mul{.rnd}{.ftz}{.sat}`."""
    kernel = _kernel("mul", element(type_name)[0], rounding)
    return finish(kernel, type_name, ftz, sat, exact=(_odd("mul", rounding), rounding))


def make_fma(
    type_name: str,
    rounding: Rounding = "rn",
    *,
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
) -> Ternary:
    """`fma.rnd{.ftz}{.sat}{.relu}` (and `mad` on floats): one rounding of a * b + c."""
    kernel = _kernel("fma", element(type_name)[0], rounding)
    return finish(kernel, type_name, ftz, sat, relu, (_odd("fma", rounding), rounding))


def _directed(operation: Operation, rounding: Rounding) -> tuple[Odd, Rounding] | None:
    """Software sequences flush like the hardware in directed modes only.  Source: as `_flush_tiny`."""
    return None if rounding == "rn" else (_odd(operation, rounding), rounding)


def make_div(type_name: str, rounding: Rounding = "rn", *, ftz: bool = False) -> Binary:
    """`div.rnd{.ftz}`, correctly rounded; `.approx` and `.full` are in `approximate`."""
    kernel = _kernel("div", element(type_name)[0], rounding)
    return finish(kernel, type_name, ftz, exact=_directed("div", rounding))


def make_sqrt(type_name: str, rounding: Rounding = "rn", *, ftz: bool = False) -> Unary:
    """`sqrt.rnd{.ftz}`, correctly rounded."""
    kernel = _kernel("sqrt", element(type_name)[0], rounding)
    return finish(kernel, type_name, ftz)


def make_rcp(type_name: str, rounding: Rounding = "rn", *, ftz: bool = False) -> Unary:
    """`rcp.rnd{.ftz}`: 1 / a, correctly rounded."""
    kernel = _kernel("rcp", element(type_name)[0], rounding)
    return finish(kernel, type_name, ftz, exact=_directed("rcp", rounding))
