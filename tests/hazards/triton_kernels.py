"""Launch the Triton kernels of tests/data as their host code would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import hopsim as hs

DATA = Path(__file__).parents[1] / "data"
BF16: list[dict[str, Any]] = json.loads(
    (DATA / "triton_bf16" / "triton_bf16.json").read_text(encoding="utf-8")
)


def operands(
    m: int, n: int, k: int, kind: Any
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]]:
    rng = np.random.default_rng(m + n + k)
    a, b = rng.integers(-3, 4, (m, k)), rng.integers(-3, 4, (n, k))
    return a.astype(kind), b.astype(kind), (a @ b.T).astype(np.float32)


def run_bf16(entry: dict[str, Any], sizes: tuple[int, int, int], **options: Any) -> hs.LaunchResult:
    m, n, k = sizes
    tile = entry["tile"]
    a, b, exact = operands(m, n, k, ml_dtypes.bfloat16)
    gpu = hs.Gpu()
    arrays = (gpu.array(a), gpu.array(b), gpu.array(np.zeros((m, n), ml_dtypes.bfloat16)))
    boxes = (
        (min(64, tile["bk"]), tile["bm"]),
        (min(64, tile["bk"]), tile["bn"]),
        (min(64, tile["bn"]), tile["bm"]),
    )
    args: list[Any] = []
    for array, box, (rows, columns) in zip(arrays, boxes, ((m, k), (n, k), (m, n)), strict=True):
        args += [hs.TensorMap(array, box=box, swizzle="128B"), np.int32(rows), np.int32(columns)]
        args += [np.int64(columns), np.int64(1)]
    args += [np.int32(m), np.int32(n), np.int32(k), None, None]
    kernel = hs.load(DATA / "triton_bf16" / f"{entry['kernel']}.ptx")[entry["entry"]]
    grid = -(-m // tile["bm"]) * -(-n // tile["bn"])
    result = gpu.launch(
        kernel, grid, entry["block"], args=args, shared_bytes=entry["shared_bytes"], **options,
    )  # fmt: skip
    rounded = exact.astype(ml_dtypes.bfloat16)
    assert np.array_equal(arrays[2].numpy().view(np.uint16), rounded.view(np.uint16))
    return result
