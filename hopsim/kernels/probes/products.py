"""Whole kernels as probes: hopsim's own GEMMs on small, partly ragged problems."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hopsim.isa.numerics.formats import FORMATS
from hopsim.kernels.gemm.kernel import build
from hopsim.kernels.gemm.launch import NUMPY_TYPES, run
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.probes.bits import matrix
from hopsim.kernels.probes.probe import Arrays
from hopsim.launch.device import Device

_FORMATS = {"bf16": "bf16", "fp16": "f16", "e4m3": "e4m3"}


@dataclass(frozen=True)
class GemmProbe:
    """One GEMM: operands of ordinary numbers, and C as raw bits.

    Args:
        name: begins with `products.`.
        problem: sizes and types.
        options: of `hopsim.kernels.gemm.launch.run`.
    """

    name: str
    problem: GemmProblem
    options: Mapping[str, Any]
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    notes: frozenset[str] = field(default_factory=frozenset[str])

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the program and of the problem, which decides the operands."""
        options = dict(self.options)
        kernel = build(
            options.pop("schedule"),
            self.problem,
            options.pop("tile"),
            options.pop("stages"),
            **options,
        )
        return hashlib.sha256(f"{kernel.ptx}{self.problem}".encode()).hexdigest()

    def run(self, gpu: Device, **options: Any) -> Arrays:
        """Run it and return C."""
        p = self.problem
        fmt = FORMATS[_FORMATS[p.dtype]]
        a, b = (
            matrix(fmt, "normal", seed, (rows, p.k)).view(NUMPY_TYPES[p.dtype])
            for seed, rows in ((51, p.m), (52, p.n))
        )
        made: Any = gpu
        done = run(made, p, a, b, launch_options=options, **self.options)
        return {"c": done.c.view({2: np.uint16, 4: np.uint32}[done.c.dtype.itemsize])}


_CASES: tuple[tuple[GemmProblem, dict[str, Any]], ...] = (
    (GemmProblem(200, 136, 160), {"schedule": "pipelined", "tile": (64, 64, 64), "stages": 3}),
    (GemmProblem(128, 256, 256), {"schedule": "pipelined", "tile": (128, 256, 64), "stages": 3, "warpgroups": 2}),
    (GemmProblem(200, 136, 160, "fp16"), {"schedule": "warp-specialized", "tile": (64, 64, 64), "stages": 3}),
    (GemmProblem(256, 128, 192, "bf16", "f32"), {"schedule": "warp-specialized", "tile": (128, 64, 64), "stages": 2,
                                                 "cluster": (2, 1)}),
    (GemmProblem(200, 136, 272, "e4m3"), {"schedule": "warp-specialized", "tile": (64, 64, 128), "stages": 2}),
    (GemmProblem(256, 256, 512, "e4m3", "f32"), {"schedule": "warp-specialized", "tile": (128, 256, 128), "stages": 3,
                                                 "warpgroups": 2, "persistent": True}),
)  # fmt: skip


def probes() -> list[GemmProbe]:
    """Return the GEMMs."""
    return [
        GemmProbe(
            f"products.{options['schedule']}_{p.dtype}_{p.out_dtype}_{p.m}x{p.n}x{p.k}", p, options
        )
        for p, options in _CASES
    ]
