"""Probes of mma.sp: every shape, type and sparsity selector, one warp a case."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopsim.isa.values import Array
from hopsim.kernels.probes.bits import below
from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.probes.tensor import FP8, INT8, Types, case
from hopsim.kernels.probes.warp_products import product_probe, registers_of
from hopsim.layout.sparse import metadata_map

M, N = 16, 8
DISTRIBUTIONS = ("normal", "wide", "special", "raw")
PAIRS = np.array([0x4, 0x8, 0xC, 0x9, 0xD, 0xE], np.uint32)
"""Metadata of a chunk: two of four places, in order."""
HALVES = np.array([0x4, 0xE], np.uint32)
"""Of two tf32 elements: the first or the second."""


@dataclass(frozen=True, slots=True)
class Product:
    """One sparse product.

    Args:
        k: of the shape: elements of A, stored or not.
        types: of the operands; `nibble` says that they are those of 4 bits in place of 8.
    """

    k: int
    types: Types
    nibble: bool = False

    @property
    def kinds(self) -> tuple[str, str]:
        """PTX types of A and B."""
        a, b = self.types.a, self.types.b
        return (a.replace("8", "4"), b.replace("8", "4")) if self.nibble else (a, b)


PRODUCTS: tuple[Product, ...] = (
    *(Product(k, Types(d, "f16", "f16")) for k in (16, 32) for d in ("f32", "f16")),
    *(Product(k, Types("f32", "bf16", "bf16")) for k in (16, 32)),
    *(Product(k, Types("f32", "tf32", "tf32")) for k in (8, 16)),
    *(Product(64, Types("f32", a, b)) for a in FP8 for b in FP8),
    *(Product(k, Types("s32", a, b, sat)) for k in (32, 64) for a in INT8 for b in INT8 for sat in (False, True)),
    *(Product(k, Types("s32", a, b, sat), True) for k in (64, 128) for a in INT8 for b in INT8 for sat in (False, True)),
)  # fmt: skip


def metadata(kind: str, seed: int, lanes: int) -> NDArray[np.uint32]:
    """Return a word for each lane whose eight nibbles are as PTX wants them."""
    known = HALVES if kind == "tf32" else PAIRS
    nibbles = known[below(seed, lanes * 8, len(known))].reshape(lanes, 8)
    return np.bitwise_or.reduce(nibbles << np.arange(0, 32, 4, dtype=np.uint32), axis=1)


def _cases(one: Product) -> tuple[list[tuple[Array, Array, Array]], list[str]]:
    width = 2 if one.nibble else 1
    known = ("raw", "extreme") if one.types.is_integer else DISTRIBUTIONS
    cases: list[tuple[Array, Array, Array]] = []
    for number, distribution in enumerate(known):
        seed = 100 + number * 1000
        a, _, c = case(one.types, distribution, M, N, one.k // 2 // width, seed)
        _, b, _ = case(one.types, distribution, M, N, one.k // width, seed + 7)
        cases.append((a, b, c))
    return cases, list(known)


def _probe(one: Product, selector: int) -> Probe:
    a_kind, b_kind = one.kinds
    cases, labels = _cases(one)
    inputs = registers_of(cases)
    inputs["e"] = np.stack([metadata(a_kind, 11 + i, 32) for i in range(len(cases))])[:, None]
    d, sat = one.types.d, ".satfinite" * one.types.saturate
    name = f"k{one.k}_{d}_{a_kind}_{b_kind}{'_sat' * one.types.saturate}_{selector}"
    mnemonic = f"mma.sp::ordered_metadata.sync.aligned.m{M}n{N}k{one.k}.row.col{sat}.{d}.{a_kind}.{b_kind}.{d}"
    return product_probe("mma_sparse", name, mnemonic, inputs, labels, selector=selector)


def probes() -> list[Probe]:
    """Return a probe for each product and selector."""
    return [
        _probe(one, selector)
        for one in PRODUCTS
        for selector in range(metadata_map(one.kinds[0], one.k).selectors)
    ]
