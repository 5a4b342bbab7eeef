"""The strand with all instruction families: what `ctx` is in the declarations of `hopsim.isa.ops`.

Each family is a layer on the one below: control flow and registers (`strand`), memory (`access`), lanes that meet
(`convergence`), setmaxnreg (`register_moves`), barriers and fences (`sync`), `mbarriers`, wgmma (`tensor`), lanes of a warp
(`warp`), thread-group copies (`copies`), bulk copies (`bulk`), tensor copies (`tma`), calls of CUDA's device runtime
(`device_runtime`).

What the hardware would trap at, or leave undefined, raises MachineFault with CTA, warp, lane and line; what PTX allows and
hopsim lacks raises NotModelled.
"""

from __future__ import annotations

from hopsim.hw.machine.device_runtime import DeviceRuntime


class Strand(DeviceRuntime):
    """A strand that can execute every modelled instruction."""
