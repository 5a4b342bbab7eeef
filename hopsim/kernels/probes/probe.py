"""A probe: one small kernel with fixed inputs, whose outputs are the same bits wherever it runs.

    outputs = probe.run(gpu)           # gpu: hopsim.Gpu or hopsim.CudaGpu

What a real H100 answers is kept as a recording; the simulator is compared with it, bit by bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopsim.isa.program.kernel import Module, loads
from hopsim.launch.arrays import DeviceArray
from hopsim.launch.device import Device

Arrays = dict[str, NDArray[Any]]
UNTOUCHED = 0xA5
"""Every byte of an output before the launch."""


@dataclass(frozen=True)
class Probe:
    """One kernel and what to run it on.

    Its parameters are the addresses of its inputs, then of its outputs.

    Args:
        name: unique among all probes; begins with the name of its group.
        ptx: the module.  entry: which of its kernels.
        grid: CTAs.  block: threads of a CTA.  cluster: CTAs of a cluster.
        inputs: arrays in the order of the parameters.
        outputs: shape and type of each output, in the order of the parameters.
        shared_bytes: dynamic shared memory.
        labels: what each row of an output is, for messages.
        notes: outputs that tell something about the device and are not the same everywhere: they are recorded and
            not compared.
    """

    name: str
    ptx: str
    entry: str
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    inputs: Mapping[str, NDArray[Any]]
    outputs: Mapping[str, tuple[tuple[int, ...], Any]]
    cluster: int | tuple[int, ...] = 1
    shared_bytes: int = 0
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    notes: frozenset[str] = field(default_factory=frozenset[str])

    @property
    def group(self) -> str:
        """The recording that it belongs to."""
        return self.name.partition(".")[0]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the program and of everything it is given."""
        digest = hashlib.sha256(self.ptx.encode())
        shape = (self.entry, self.grid, self.block, self.cluster, self.shared_bytes)
        digest.update(repr(shape).encode())
        for name, values in self.inputs.items():
            digest.update(f"{name} {values.dtype} {values.shape}".encode())
            digest.update(np.ascontiguousarray(values).view(np.uint8).tobytes())
        return digest.hexdigest()

    def run(self, gpu: Device, **options: Any) -> Arrays:
        """Run it and return its outputs.

        Args:
            options: of `gpu.launch`.
        """
        given = [gpu.array(values) for values in self.inputs.values()]
        made: dict[str, DeviceArray] = {}
        for name, (shape, dtype) in self.outputs.items():
            kind = np.dtype(dtype)
            size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
            blank = np.full(size, UNTOUCHED, np.uint8).view(kind).reshape(shape)
            made[name] = gpu.array(blank)
        gpu.launch(
            load_module(self.ptx)[self.entry],
            self.grid,
            self.block,
            self.cluster,
            [*given, *made.values()],
            self.shared_bytes,
            **options,
        )
        return {name: array.numpy() for name, array in made.items()}


@lru_cache(maxsize=64)
def load_module(ptx: str) -> Module:
    """Return the parsed module of a text, parsed once."""
    return loads(ptx)
