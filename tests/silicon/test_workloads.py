"""CUDA C++ kernels without a tensor core in mind: the bits of an H100, and its cycles as far as hopsim has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hopsim.kernels.measured import workloads

FOLDER = Path(__file__).parent
CONTENT: dict[str, Any] = json.loads(
    (FOLDER / workloads.FOLDER / "workloads.json").read_text(encoding="utf-8")
)
PAIRS = workloads.with_rows(FOLDER, CONTENT)
WITHIN = 0.2
FURTHER: dict[str, float] = {}
"""Kernels whose cycles are further off, and by how much: D-WORKLOADS says why."""
