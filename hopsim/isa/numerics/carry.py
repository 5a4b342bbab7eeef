"""Extended-precision integer arithmetic of PTX: each operation also takes and gives the carry flag CC.CF.

A carry is a predicate (bool, or an array of bool), so that `add.cc` calls with `False` and `addc` with
the flag the last instruction left.  Subtractions add the complement: their flag is the adder's carry, which is set where
nothing is borrowed, so that what `sub.cc` leaves can be read by `addc` and the other way round.

    >>> make_add_carry(32)(0xFFFFFFFF, 1, False)
    (0, True)

Source: PTX ISA 8.7 "Extended-Precision Integer Arithmetic Instructions"; that the flag of a subtraction is the carry of its
adder, which the text leaves open, is an H100's (`sub.cc` followed by `addc`), and nvcc's 128-bit division builds on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from hopsim.isa.numerics.integer import Binary, full_array
from hopsim.isa.numerics.integer_products import make_mul_hi, make_mul_lo
from hopsim.isa.values import Predicate, Value

AddCarry: TypeAlias = Callable[[Value, Value, Predicate], tuple[Value, Predicate]]
MadCarry: TypeAlias = Callable[[Value, Value, Value, Predicate], tuple[Value, Predicate]]


def _all_ints(*values: Value) -> bool:
    return not any(isinstance(value, np.ndarray) for value in values)


def make_add_carry(width: int) -> AddCarry:
    """`add.cc`, `addc`, `addc.cc`: a + b + carry and the carry out."""
    mask = (1 << width) - 1

    def add_carry(a: Value, b: Value, carry: Predicate) -> tuple[Value, Predicate]:
        if _all_ints(a, b, carry):
            total = a + b + carry
            return total & mask, total > mask
        left = full_array(a, width)
        partial = left + b
        total = partial + carry
        return total, (partial < left) | (total < partial)

    return add_carry


def make_sub_carry(width: int) -> AddCarry:
    """`sub.cc`, `subc`, `subc.cc`: a + ~b + carry, and the carry out: set where nothing is borrowed."""
    mask = (1 << width) - 1

    def sub_carry(a: Value, b: Value, carry: Predicate) -> tuple[Value, Predicate]:
        if _all_ints(a, b, carry):
            total = a - b - (not carry)
            return total & mask, total >= 0
        left = full_array(a, width)
        borrow = np.logical_not(carry)
        partial = left - b
        total = partial - borrow
        return total, (partial <= left) & (total <= partial)

    return sub_carry


def make_mad_carry(width: int, half: Literal["lo", "hi"], signed: bool) -> MadCarry:
    """`mad.{lo,hi}.cc`, `madc.{lo,hi}[.cc]`: one half of a * b, plus c, plus carry."""
    multiply: Binary = make_mul_lo(width) if half == "lo" else make_mul_hi(width, signed)
    add = make_add_carry(width)
    return lambda a, b, c, carry: add(multiply(a, b), c, carry)
