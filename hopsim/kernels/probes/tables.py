"""Record what the multi-function unit gives for every mantissa: the tables of `hopsim.isa.numerics.mufu`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from hopsim.isa.numerics import mufu
from hopsim.isa.values import Array
from hopsim.kernels.probes.approximate import elementwise
from hopsim.launch.device import Device

FORMS: Final = {
    name: f"{name}.approx{'' if name == 'tanh' else '.ftz'}.f32" for name in mufu.FUNCTIONS
}
HALVES: Final = {"f16": (0x7C00, "tanh.approx.f16"), "bf16": (0x7F80, "tanh.approx.bf16")}
"""The word of infinity, the last that is kept, and the form."""


def record(gpu: Device, function: str, inputs: Array) -> Array:
    """Return the words that the approximate f32 `function` gives for `inputs` (f32)."""
    form = FORMS[function]
    padded = np.concatenate([inputs, np.ones(-inputs.size % 512, np.float32)])
    probe = elementwise(function, 32, (form,), (padded.view(np.uint32),))
    return probe.run(gpu)["out"][0, : inputs.size]


def write(gpu: Device, folder: Path) -> dict[str, int]:
    """Write every table; return how many answers each has. On a simulated device this gives the tables it has."""
    written: dict[str, int] = {}
    for name in mufu.FUNCTIONS:
        answers = record(gpu, name, mufu.inputs(name))
        np.savez_compressed(folder / f"{name}.npz", allow_pickle=False, **mufu.pack(answers))
        written[name] = answers.size
    every = np.arange(1 << 15, dtype=np.uint16)
    halves: dict[str, Array] = {}
    for name, (last, form) in HALVES.items():
        probe = elementwise(name, 16, (form,), (every,))
        halves[name] = probe.run(gpu)["out"][0, : last + 1]
    np.savez_compressed(folder / "tanh_halves.npz", allow_pickle=False, **halves)
    written["tanh_halves"] = sum(array.size for array in halves.values())
    return written
