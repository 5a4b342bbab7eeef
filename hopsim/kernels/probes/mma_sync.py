"""Probes of mma.sync: every shape and type that sm_90 takes and hopsim models, one warp a case."""

from __future__ import annotations

from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.probes.tensor import FP8, INT8, Case, Types, case, decisive
from hopsim.kernels.probes.warp_products import product_probe, registers_of

M, N = 16, 8
SHAPES: tuple[tuple[int, Types], ...] = (
    *((k, Types(d, "f16", "f16")) for k in (8, 16) for d in ("f32", "f16")),
    *((k, Types("f32", "bf16", "bf16")) for k in (8, 16)),
    *((k, Types("f32", "tf32", "tf32")) for k in (4, 8)),
    *((k, Types(d, a, b)) for k in (16, 32) for d in ("f32", "f16") for a in FP8 for b in FP8),
    *((k, Types("s32", a, b, sat)) for k in (16, 32) for a in INT8 for b in INT8 for sat in (False, True)),
)  # fmt: skip


def opcode(k: int, types: Types) -> str:
    """Return the mnemonic."""
    sat = ".satfinite" if types.saturate else ""
    return f"mma.sync.aligned.m16n8k{k}.row.col{sat}.{types.d}.{types.a}.{types.b}.{types.d}"


def _probe(k: int, types: Types) -> Probe:
    cases: list[Case] = []
    labels: list[str] = []
    for seed in (100, 200):
        for number, distribution in enumerate(types.distributions):
            cases.append(case(types, distribution, M, N, k, seed + number * 1000))
            labels.append(f"{distribution} {seed}")
    if not types.is_integer:
        vectors = decisive(types, M, N, k)
        cases += vectors
        labels += ["decisive"] * len(vectors)
    name = f"k{k}_{types.name}"
    return product_probe("mma_sync", name, opcode(k, types), registers_of(cases), labels)


def probes() -> list[Probe]:
    """Return a probe for each shape and type."""
    return [_probe(k, types) for k, types in SHAPES]
