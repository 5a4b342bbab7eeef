"""A launch that can be made again and again: what schedules, mutants and lessons are tried on.

A case is plain data, so that it can be sent to other processes; it makes the kernel once and the arrays afresh for
every run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np

from hopsim.cuda.gpu import CudaGpu
from hopsim.isa.program.kernel import Kernel
from hopsim.launch.arrays import DeviceArray
from hopsim.results import LaunchResult
from hopsim.runtime.gpu import Gpu

Device = Gpu | CudaGpu


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one launch, in order, and the arrays among them by name."""

    args: Sequence[Any]
    arrays: Mapping[str, DeviceArray]


class Case(Protocol):
    """A launch, described."""

    @property
    def grid(self) -> int | tuple[int, ...]:
        """CTAs."""
        ...

    @property
    def block(self) -> int | tuple[int, ...]:
        """Threads of a CTA."""
        ...

    @property
    def cluster(self) -> int | tuple[int, ...] | None:
        """CTAs of a cluster."""
        ...

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory."""
        ...

    def kernel(self) -> Kernel:
        """Make the kernel."""
        ...

    def arguments(self, gpu: Device) -> Arguments:
        """Put the inputs on a device; the same bits each time."""
        ...


def launch(
    case: Case, kernel: Kernel, gpu: Device, **options: Any
) -> tuple[LaunchResult, Arguments]:
    """Launch a case once, and return the result with the arrays as the kernel left them."""
    made = case.arguments(gpu)
    result = gpu.launch(
        kernel, case.grid, case.block, case.cluster, made.args, case.shared_bytes, **options
    )
    return result, made


def digests(arrays: Mapping[str, DeviceArray]) -> dict[str, str]:
    """Return a fingerprint of the bits of each array."""
    found: dict[str, str] = {}
    for name, array in arrays.items():
        data = np.ascontiguousarray(array.numpy()).reshape(-1).view(np.uint8)
        found[name] = blake2b(data.tobytes(), digest_size=8).hexdigest()
    return found
