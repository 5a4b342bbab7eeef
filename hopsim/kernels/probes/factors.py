"""Probes of products of 24 bits, and of sums whose factors a TMA load may have filled in outside of its tensor (`.oob`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.probes.scalar import is_of_factors, lines, scalar_probe
from hopsim.layout.box_shared import NAN_FILL

FILLED: Final = (NAN_FILL, NAN_FILL | 0x8000)
"""What stands for an element outside, and the same with the other sign."""
EACH: Final = 7
"""Every so many of the values of an operand are filled ones, each operand's from another on."""


def _with_filled(probe: Probe) -> Probe:
    """Return a probe of halves, or of pairs of them, some of which are filled ones."""
    operands = probe.inputs["operands"].copy()
    for number, row in enumerate(operands):
        for half in (0, 16):
            places = np.arange(number + half // 4, len(row), EACH)
            filled = np.array(FILLED, np.uint64)[places % len(FILLED)] << np.uint64(half)
            row[places] = row[places] & ~np.uint64(0xFFFF << half) | filled
    return replace(probe, inputs={"operands": operands})


def probes() -> list[Probe]:
    """Return all of them."""
    chosen = [line for line in lines() if is_of_factors(line)]
    outside = [line for line in chosen if ".oob" in line.opcode]
    products = [line for line in chosen if line not in outside]
    return [
        scalar_probe("factors.of_24_bits", products),
        _with_filled(scalar_probe("factors.outside", outside)),
    ]
