"""Probes of wmma on f64, as those of the other types."""

from __future__ import annotations

from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.probes.tensor import Types
from hopsim.kernels.probes.wmma import LAYOUTS, probe_of

TYPES = Types("f64", "f64", "f64")


def probes() -> list[Probe]:
    """Return two probes: A by rows and B by columns, and the other way."""
    return [probe_of("wmma_double", "m8n8k4", TYPES, "f64", layouts) for layouts in LAYOUTS]
