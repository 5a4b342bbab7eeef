"""Probes of mma.sync on f64: every shape, and every rounding of one of them."""

from __future__ import annotations

from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.probes.tensor import Case, Types, case
from hopsim.kernels.probes.warp_products import product_probe, registers_of

N = 8
SHAPES = ((8, 4), (16, 4), (16, 8), (16, 16))
"""M and K."""
TYPES = Types("f64", "f64", "f64")
DIRECTED = ("rz", "rm", "rp")


def _probe(m: int, k: int, rounding: str, seeds: tuple[int, ...]) -> Probe:
    cases: list[Case] = []
    labels: list[str] = []
    for seed in seeds:
        for number, distribution in enumerate(TYPES.distributions):
            cases.append(case(TYPES, distribution, m, N, k, seed + number * 1000))
            labels.append(f"{distribution} {seed}")
    word = f".{rounding}" if rounding else ""
    name = f"m{m}k{k}{word.replace('.', '_')}"
    mnemonic = f"mma.sync.aligned.m{m}n{N}k{k}.row.col{word}.f64.f64.f64.f64"
    return product_probe(
        "mma_double", name, mnemonic, registers_of(cases), labels, register_bits=64
    )


def probes() -> list[Probe]:
    """Return a probe for each shape, and for each rounding."""
    found = [_probe(m, k, "", (100, 200)) for m, k in SHAPES]
    return found + [_probe(16, 8, rounding, (100,)) for rounding in DIRECTED]
