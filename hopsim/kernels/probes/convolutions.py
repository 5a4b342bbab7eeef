"""Whole kernels as probes: hopsim's own convolutions, whose activations come through im2col maps."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hopsim.isa.numerics.formats import FORMATS
from hopsim.kernels.convolution.launch import build, launch
from hopsim.kernels.convolution.problem import ConvProblem
from hopsim.kernels.gemm.launch import NUMPY_TYPES
from hopsim.kernels.probes.bits import matrix
from hopsim.kernels.probes.probe import Arrays
from hopsim.launch.device import Device

_FORMATS = {"bf16": "bf16", "fp16": "f16"}


@dataclass(frozen=True)
class ConvProbe:
    """One convolution of ordinary numbers, whose output counts as raw bits.

    Args:
        name: begins with `convolutions.`.
        problem: sizes, filter, type.
        options: of `hopsim.kernels.convolution.launch.build`.
    """

    name: str
    problem: ConvProblem
    options: Mapping[str, Any]
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    notes: frozenset[str] = field(default_factory=frozenset[str])

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the program and of the problem, which decides the operands."""
        kernel = build(self.problem, **self.options)
        return hashlib.sha256(f"{kernel.ptx}{self.problem}".encode()).hexdigest()

    def operands(self) -> tuple[Any, Any]:
        """Return activations and filters."""
        p = self.problem
        fmt, kind = FORMATS[_FORMATS[p.dtype]], NUMPY_TYPES[p.dtype]
        x, w = (
            matrix(fmt, "normal", seed, (int(np.prod(shape[:-1])), shape[-1])).view(kind)
            for seed, shape in ((61, p.x_shape), (62, p.w_shape))
        )
        return x.reshape(p.x_shape), w.reshape(p.w_shape)

    def run(self, gpu: Device, **options: Any) -> Arrays:
        """Run it and return the output."""
        done = launch(gpu, build(self.problem, **self.options), *self.operands(), **options)
        return {"y": done.y.view(np.uint16)}


_CASES: tuple[tuple[str, ConvProblem, dict[str, Any]], ...] = (
    ("plain", ConvProblem(2, 9, 11, 64, 64), {"tile": (64, 64), "stages": 3}),
    ("ragged", ConvProblem(1, 14, 14, 96, 72, (3, 2), (2, 1), (1, 0), (1, 2)), {"tile": (128, 64), "stages": 3}),
    ("point", ConvProblem(2, 10, 12, 128, 136, (1, 1), padding=(0, 0)), {"tile": (128, 128), "persistent": True}),
    ("strided", ConvProblem(1, 16, 16, 64, 64, (5, 5), (2, 2), (2, 2), dtype="fp16"), {"tile": (64, 64)}),
    ("dilated", ConvProblem(1, 12, 10, 128, 64, dilation=(3, 2), padding=(3, 2)), {"tile": (128, 64)}),
    ("few_channels", ConvProblem(3, 8, 7, 8, 16, (7, 7), (3, 2), (3, 3)), {"tile": (64, 16), "stages": 2}),
)  # fmt: skip


def probes() -> list[ConvProbe]:
    """Return the convolutions."""
    return [
        ConvProbe(f"convolutions.{name}", problem, options) for name, problem, options in _CASES
    ]
