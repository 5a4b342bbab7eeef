"""cuBLAS of the same problem, to measure a ladder against: through PyTorch, which brings it.

Inside the process there must be a device.  Without PyTorch there is nothing to compare with, and `Cublas` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import DeviceError
from hopsim.kernels.gemm.problem import GemmProblem

_FLUSH_BYTES: Final = 1 << 30
"""Far more than L2 holds: while it is written the host has the time to launch what follows."""


class Cublas:
    """A B^T by cuBLAS, for operands that stay on the device.

    Args:
        problem: bf16, fp16, e4m3, tf32 or int8 operands; C is of the problem's type.
        a, b: as they lie in memory, (m, k) and (n, k).
    Raises: DeviceError: PyTorch or its device is not there.
    """

    def __init__(self, problem: GemmProblem, a: NDArray[Any], b: NDArray[Any]) -> None:
        try:
            torch: Any = import_module("torch")
        except ImportError:
            raise DeviceError(
                "cuBLAS is measured through PyTorch", hint="pip install torch"
            ) from None
        if not torch.cuda.is_available():
            raise DeviceError("PyTorch finds no device")
        self._torch = torch
        kinds = {
            "bf16": torch.bfloat16, "fp16": torch.float16, "e4m3": torch.float8_e4m3fn, "tf32": torch.float32,
            "f32": torch.float32, "int8": torch.int8, "s32": torch.int32,
        }  # fmt: skip
        bits = {1: np.uint8, 2: np.int16, 4: np.int32}

        def tensor(values: NDArray[Any]) -> Any:
            raw = bits[values.dtype.itemsize]
            held = torch.from_numpy(np.ascontiguousarray(values).view(raw))
            return held.cuda().view(kinds[problem.dtype])

        self._a, self._b = tensor(a), tensor(b).T
        self._out = kinds[problem.out_dtype]
        self._dtype = problem.dtype
        torch.backends.cuda.matmul.allow_tf32 = True
        self._one = torch.from_numpy(np.ones((), np.float32)).cuda()
        self._flushed = torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device="cuda")

    def go(self) -> Any:
        """Launch it."""
        if self._dtype == "int8":
            return self._torch._int_mm(self._a, self._b)
        if self._dtype != "e4m3":
            return self._torch.matmul(self._a, self._b)
        return self._torch._scaled_mm(
            self._a, self._b, scale_a=self._one, scale_b=self._one, out_dtype=self._out,
            use_fast_accum=True,
        )  # fmt: skip

    def times_us(self, repeats: int) -> tuple[float, float]:
        """Return the time of a launch with L2 flushed (median), and of one of many back to back (mean)."""
        torch = self._torch
        for _ in range(3):
            self.go()
        cold: list[float] = []
        for _ in range(repeats):
            self._flushed.zero_()
            cold.append(self._timed(self.go))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):  # so that small products do not wait for the host
            for _ in range(repeats):
                self.go()
        graph.replay()
        return median(cold), self._timed(graph.replay) / repeats

    def _timed(self, work: Callable[[], Any]) -> float:
        start, stop = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        stop.record()
        self._torch.cuda.synchronize()
        return 1e3 * float(start.elapsed_time(stop))
