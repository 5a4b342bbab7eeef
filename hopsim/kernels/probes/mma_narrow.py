"""Probes of mma.sync on integers of 8 (m8n8k16), 4 and 1 bits: every shape and type."""

from __future__ import annotations

import itertools

import numpy as np

from hopsim.isa.values import Array
from hopsim.kernels.probes.bits import below, words
from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.probes.warp_products import product_probe, registers_of

N = 8
BYTES = ((8, 16),)
NIBBLES = ((8, 32), (16, 32), (16, 64))
BITS = ((8, 128), (16, 128), (16, 256))
"""M and K."""
SEEDS = (100, 200)
EXTREMES = (0x00, 0x7F, 0x80, 0xFF, 0x77, 0x88, 0x78, 0x87)
"""Bytes whose elements, of 8 or 4 bits, are at the ends of their range."""


def _packed(seed: int, rows: int, row_bytes: int, is_extreme: bool) -> Array:
    count = rows * row_bytes
    found = words(seed, count) & np.uint64(0xFF)
    if is_extreme:
        found = np.array(EXTREMES, np.uint64)[below(seed, count, len(EXTREMES))]
    return found.astype(np.uint8).reshape(rows, row_bytes)


def _sums(seed: int, m: int, is_extreme: bool) -> Array:
    c = words(seed, m * N).reshape(m, N)
    if is_extreme:
        c = np.uint64(0x7FFFFFFF) + (c & np.uint64(1)) ^ (c >> np.uint64(8) & np.uint64(0x3FF))
    return c.astype(np.uint32)


def _probe(m: int, k: int, bits: int, name: str, words_: str) -> Probe:
    row_bytes = k * bits // 8
    chosen = [(seed, is_extreme) for seed in SEEDS for is_extreme in (False, True)]
    cases = [
        (_packed(s, m, row_bytes, e), _packed(s + 1, N, row_bytes, e), _sums(s + 2, m, e))
        for s, e in chosen
    ]
    mnemonic = f"mma.sync.aligned.m{m}n{N}k{k}.row.col{words_}"
    labels = [f"{'extreme' if e else 'raw'} {s}" for s, e in chosen]
    return product_probe("mma_narrow", f"m{m}k{k}_{name}", mnemonic, registers_of(cases), labels)


def probes() -> list[Probe]:
    """Return a probe for each shape and type."""
    found: list[Probe] = []
    for shapes, bits in ((BYTES, 8), (NIBBLES, 4)):
        kinds = (f"s{bits}", f"u{bits}")
        for (m, k), a, b, sat in itertools.product(shapes, kinds, kinds, ("", ".satfinite")):
            name = f"{a}_{b}{'_sat' * bool(sat)}"
            found.append(_probe(m, k, bits, name, f"{sat}.s32.{a}.{b}.s32"))
    for (m, k), operation in itertools.product(BITS, ("and", "xor")):
        found.append(_probe(m, k, 1, f"b1_{operation}", f".s32.b1.b1.s32.{operation}.popc"))
    return found
