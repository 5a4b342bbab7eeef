"""The Triton kernels of tests/data as subjects of mutation, launched as their host code would."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from hopsim.explore.case import Arguments, Case, Device
from hopsim.isa.program.kernel import Kernel, loads
from hopsim.launch.arrays import TensorMap

DATA = Path(__file__).parents[1] / "data"
ENTRIES: dict[str, dict[str, Any]] = {
    entry["kernel"]: entry
    for entry in json.loads((DATA / "triton_bf16" / "triton_bf16.json").read_text(encoding="utf-8"))
}


@dataclass(frozen=True)
class TmaCase:
    """One of the bf16 kernels that load and store by TMA, on m x n x k."""

    kernel_name: str
    ptx: str
    sizes: tuple[int, int, int]
    cluster: None = None

    @property
    def entry(self) -> dict[str, Any]:
        return ENTRIES[self.kernel_name]

    @property
    def grid(self) -> int:
        tile = self.entry["tile"]
        return -(-self.sizes[0] // tile["bm"]) * -(-self.sizes[1] // tile["bn"])

    @property
    def block(self) -> Any:
        return self.entry["block"]

    @property
    def shared_bytes(self) -> int:
        return self.entry["shared_bytes"]

    def kernel(self) -> Kernel:
        return loads(self.ptx, f"{self.kernel_name}.ptx")[self.entry["entry"]]

    def arguments(self, gpu: Device) -> Arguments:
        m, n, k = self.sizes
        rng = np.random.default_rng(m + n + k)
        kind = ml_dtypes.bfloat16
        a = gpu.array(rng.integers(-3, 4, (m, k)).astype(kind))
        b = gpu.array(rng.integers(-3, 4, (n, k)).astype(kind))
        c = gpu.array(np.zeros((m, n), kind))
        tile = self.entry["tile"]
        inner = min(64, tile["bk"])
        boxes = ((inner, tile["bm"]), (inner, tile["bn"]), (min(64, tile["bn"]), tile["bm"]))
        args: list[Any] = []
        for array, box in zip((a, b, c), boxes, strict=True):
            rows, columns = array.shape
            args += [TensorMap(array, box=box, swizzle="128B"), np.int32(rows), np.int32(columns)]
            args += [np.int64(columns), np.int64(1)]
        args += [np.int32(m), np.int32(n), np.int32(k), None, None]
        return Arguments(args, {"c": c})


@dataclass(frozen=True)
class TmaSubject:
    name: str
    sizes: tuple[int, int, int]

    @property
    def text(self) -> str:
        return (DATA / "triton_bf16" / f"{self.name}.ptx").read_text(encoding="utf-8")

    def case(self, text: str) -> Case:
        return TmaCase(self.name, text, self.sizes)


TRITON = (
    TmaSubject("mm_tma_bf16_64x64x64_s4_w4_al", (64, 64, 384)),
    TmaSubject("mm_tma_bf16_128x128x64_s3_w4_al", (128, 128, 384)),
    TmaSubject("mm_tma_bf16_128x128x128_s2_w8_al", (128, 128, 512)),
)
