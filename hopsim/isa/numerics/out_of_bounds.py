"""`.oob` of half-precision sums: a factor that a TMA load filled in outside of its tensor makes the result 0.

Source: PTX ISA 8.7 "fma", "Tensor Fill"; recorded on an H200 (tests/silicon/h200/probes/factors.npz): either factor, of
either sign, and no other NaN; what is added does not count, nor does it when it is one.
"""

from __future__ import annotations

import numpy as np

from hopsim.isa.numerics.integer import Ternary
from hopsim.isa.values import Array, Value
from hopsim.layout.box_shared import NAN_FILL

MAGNITUDE = 0x7FFF


def make_oob(fused: Ternary) -> Ternary:
    """Return `fma.rn.oob` of one half.

    Args:
        fused: what it is of other factors.
    """

    def oob(a: Value, b: Value, c: Value) -> Value:
        outside: Array | bool = (a & MAGNITUDE == NAN_FILL) | (b & MAGNITUDE == NAN_FILL)
        if isinstance(outside, np.ndarray):
            return np.where(outside, np.uint16(0), fused(a, b, c))
        return 0 if outside else fused(a, b, c)

    return oob
