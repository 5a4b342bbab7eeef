"""hopsim: run real Hopper PTX on a laptop, with H100 bits, found races and predicted cycles.

    import hopsim as hs
    module = hs.load("gemm.ptx")
    gpu = hs.Gpu("h100-sxm")
    a = gpu.array(x)
    r = gpu.launch(module["gemm"], grid=(8, 8), block=128, args=[hs.TensorMap(a, box=(64, 128), swizzle="128B"), ...])
    print(hs.summary(r))          # verdict, cycles, busy units, occupancy, where the warps' time went, findings
    r.verdict, r.cycles, r.hazards, r.counters, r.stalls, r.json()

`hs.ProfilingGpu` is an `hs.Gpu` that also knows the warps' time by line (`line_times`), `hs.CudaGpu` a real device. What is
wrong is told by a `HopsimError` (`PtxError`, `LaunchError`, `ConfigError`, ...), which says where, what, and what to try.

Names are loaded when first used, so that importing the package is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopsim.cuda.gpu import CudaGpu
    from hopsim.errors import (
        ConfigError,
        DeviceError,
        HopsimError,
        LaunchError,
        MachineFault,
        NotModelled,
        PtxError,
        TensorMapError,
        ValuesNeeded,
    )
    from hopsim.hazards.facts import CheckOptions
    from hopsim.isa.program.kernel import Kernel, Module, load, loads
    from hopsim.launch.arrays import ParamBytes, TensorMap
    from hopsim.profile.gpu import ProfilingGpu
    from hopsim.report.summary import summary
    from hopsim.results import LaunchResult
    from hopsim.runtime.gpu import Gpu

__version__ = "0.1.0"

_HOMES = {
    "hopsim.cuda.gpu": ("CudaGpu",),
    "hopsim.errors": (
        "ConfigError", "DeviceError", "HopsimError", "LaunchError", "MachineFault", "NotModelled", "PtxError",
        "TensorMapError", "ValuesNeeded",
    ),
    "hopsim.hazards.facts": ("CheckOptions",),
    "hopsim.isa.program.kernel": ("Kernel", "Module", "load", "loads"),
    "hopsim.results": ("LaunchResult",),
    "hopsim.launch.arrays": ("ParamBytes", "TensorMap"),
    "hopsim.profile.gpu": ("ProfilingGpu",),
    "hopsim.report.summary": ("summary",),
    "hopsim.runtime.gpu": ("Gpu",),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_PACKAGES = ("kernels", "reference")

__all__ = [
    "CheckOptions", "ConfigError", "CudaGpu", "DeviceError", "Gpu", "HopsimError", "Kernel", "LaunchError", "LaunchResult",
    "MachineFault", "Module", "NotModelled", "ParamBytes", "ProfilingGpu", "PtxError", "TensorMap", "TensorMapError",
    "ValuesNeeded", "load", "loads", "summary",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is not None:
        return getattr(import_module(home), name)
    if name in _PACKAGES:
        return import_module(f"hopsim.{name}")
    raise AttributeError(f"module 'hopsim' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF, *_PACKAGES})
