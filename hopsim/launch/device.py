"""What the simulator and a real device have in common: `hopsim.Gpu` and `hopsim.CudaGpu` are both a `Device`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from hopsim.isa.program.kernel import Kernel
from hopsim.launch.arrays import DeviceArray, TensorMap
from hopsim.results import LaunchResult


class Device(Protocol):
    """A GPU that kernels are launched on, with memory of its own."""

    def array(self, values: Any) -> DeviceArray:
        """Copy a numpy array (ml_dtypes included) to the device."""
        ...

    def empty(self, shape: int | Sequence[int], dtype: Any) -> DeviceArray:
        """Make an array that is not initialised."""
        ...

    def owns(self, array: DeviceArray) -> bool:
        """Whether an array lies in the memory of this GPU: the same address on another one is something else."""
        ...

    def encode(self, tensor_map: TensorMap) -> bytes:
        """Return the 128 bytes of a tensor map."""
        ...

    def launch(
        self,
        kernel: Kernel,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        cluster: int | Sequence[int] | None = None,
        args: Sequence[Any] = (),
        shared_bytes: int = 0,
        *,
        values: bool = True,
        timing: bool = True,
        check: bool = True,
        schedule: str = "timed",
        numerics: str = "hopper",
        seed: int = 0,
        max_cycles: int | None = None,
        warm: str = "nothing",
        trace: bool = False,
        observers: Sequence[Any] = (),
        progress: Callable[[float], None] | None = None,
    ) -> LaunchResult:
        """Run a kernel to its end; `hopsim.Gpu.launch` says what each argument is, `options` checks them."""
        ...


__all__ = ["Device"]
