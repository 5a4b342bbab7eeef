"""Probes of mma.sync on f64: every shape, and every rounding of one of them."""

from __future__ import annotations

import numpy as np

from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.probes.tensor import Case, Types, case
from hopsim.kernels.probes.warp_products import packed, product_kernel
from hopsim.kernels.ptx.text import module_text
from hopsim.layout.fragments import mma_a_to_registers, mma_b_to_registers, mma_c_to_registers

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
    inputs = {
        "a": packed([one[0] for one in cases], mma_a_to_registers),
        "b": packed([one[1] for one in cases], mma_b_to_registers),
        "c": packed([one[2] for one in cases], mma_c_to_registers),
    }
    counts = [value.shape[1] for value in inputs.values()]
    word = f".{rounding}" if rounding else ""
    name = f"m{m}k{k}{word.replace('.', '_')}"
    mnemonic = f"mma.sync.aligned.m{m}n{N}k{k}.row.col{word}.f64.f64.f64.f64"
    return Probe(
        f"mma_double.{name}",
        module_text(product_kernel(name, mnemonic, counts, register_bits=64), "shared_memory"),
        name,
        grid=len(cases),
        block=32,
        inputs=inputs,
        outputs={"d": ((len(cases), counts[2], 32), np.uint64)},
        labels={"d": tuple(labels)},
    )


def probes() -> list[Probe]:
    """Return a probe for each shape, and for each rounding."""
    found = [_probe(m, k, "", (100, 200)) for m, k in SHAPES]
    return found + [_probe(16, 8, rounding, (100,)) for rounding in DIRECTED]
