"""Python expressions that stand for an operation: the generated code holds them in place of a call.

A template is evaluated for Python ints and for unsigned numpy arrays alike; `{0}`, `{1}`, ... are the operand
expressions.  `w` and `y` are scratch names of the generated function.

    >>> eval(wrapping("{0} + {1}", 32).format(4294967295, 3))
    2
"""

from __future__ import annotations


def wrapping(expression: str, width_bits: int) -> str:
    """Return `expression` modulo 2**width_bits; arrays of that width wrap by themselves."""
    mask = (1 << width_bits) - 1
    return f"(w & {mask} if (w := {expression}).__class__ is int else w)"


def as_signed(name: str, width_bits: int) -> str:
    """Return the Python int that the raw bits in variable `name` mean in two's complement."""
    sign = 1 << (width_bits - 1)
    return f"(({name} ^ {sign}) - {sign})"


def signed_number(expression: str, width_bits: int) -> str:
    """Return the number that raw bits mean in two's complement: a Python int, or an array of the signed dtype."""
    number = as_signed("w", width_bits)
    return f"({number} if (w := {expression}).__class__ is int else w.view('i{width_bits // 8}'))"


def wide_product(width_bits: int, signed: bool) -> str:
    """Return the double-width product of operands {0} and {1}."""
    wide = 2 * width_bits
    if signed:
        mask = (1 << wide) - 1
        exact = f"{as_signed('w', width_bits)} * {as_signed('y', width_bits)} & {mask}"
    else:
        exact = "w * y"
    # A wrapped product of sign-extended factors is the exact signed product modulo 2**wide.
    left, right = (f"widen({{{k}}}, {width_bits}, {wide}, {signed})" for k in (0, 1))
    ints = "(w := {0}).__class__ is int and (y := {1}).__class__ is int"
    return f"({exact} if {ints} else {left} * {right})"


def resize(from_bits: int, to_bits: int, signed: bool) -> str:
    """Return operand {0} cut or extended (by its sign when `signed`) to `to_bits`."""
    if from_bits == to_bits:
        return "{0}"
    mask = (1 << to_bits) - 1
    new = to_bits // 8
    array = f"w.astype('u{new}')"
    number = "w"
    if to_bits < from_bits:
        number = f"w & {mask}"
    elif signed:
        number = f"{as_signed('w', from_bits)} & {mask}"
        array = f"w.view('i{from_bits // 8}').astype('i{new}').view('u{new}')"
    return f"({number} if (w := {{0}}).__class__ is int else {array})"


def choose(predicate: int, when_true: int, when_false: int, width_bits: int) -> str:
    """Return, per lane, one of two operands by a predicate operand (all given by their numbers)."""
    p, a, b = (f"{{{k}}}" for k in (predicate, when_true, when_false))
    return (
        f"({a} if (w := {p}) is True else {b} if w is False else select(w, {a}, {b}, {width_bits}))"
    )
