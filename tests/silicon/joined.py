"""Shares of look-ups: of what SMs are given, what L2 is asked for; as Nsight Compute counted them, and simulated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np

from hopsim.kernels.micro.clocked import Benchmark
from hopsim.kernels.probes.probe import load_module
from hopsim.runtime.gpu import Gpu

FOLDER: Final = Path(__file__).parent


def rows(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    listed = json.loads((folder / "l2_joined.json").read_text(encoding="utf-8"))
    return {row["name"]: row for row in listed}


def recorded_share(row: dict[str, Any]) -> float:
    return row["look_ups"] / row["sectors_to_sms"]


def simulated(one: Benchmark, values: bool = True) -> tuple[float, dict[str, float]]:
    """Return the share of look-ups of one launch out of cold memory, and its figures.

    Args:
        values: whether what it loads decides where it goes.
    """
    gpu = Gpu()
    results = gpu.array(np.zeros((one.grid, len(one.labels)), np.uint64))
    counters = gpu.launch(
        load_module(one.ptx)[one.entry], one.grid, one.block, one.cluster,
        [*one.arguments(gpu), results], one.shared_bytes, values=values, check=False,
    ).counters  # fmt: skip
    merged = counters["hopsim__l2_merged_bytes.sum"] / counters["hopsim__l2_requested_bytes.sum"]
    return 1.0 - merged, one.summary(results.numpy(), one.labels)
