"""The functions that CUDA's device runtime has, which a text declares and the driver's linker finds.

Source: CUDA C++ Programming Guide 13.0 "Formatted Output", "Assertion", "Dynamic Global Memory Allocation and Operations";
parameters as nvcc 13.0 declares them.
"""

from __future__ import annotations

from typing import Final

from hopsim.isa.program.signatures import Signature
from hopsim.isa.program.symbols import size_of

RUNTIME: Final[dict[str, tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "vprintf": ((4,), (8, 8)),
    "__assertfail": ((), (8, 8, 4, 8, 8)),
    "malloc": ((8,), (8,)),
    "free": ((), (8,)),
}
"""Bytes of what each returns and takes; the instructions are in `hopsim.isa.ops.device_runtime`."""


def runtime_problem(name: str, declared: Signature) -> str:
    """Return how a text declares a function of the runtime wrongly, or the empty string."""
    wanted = RUNTIME[name]
    got = tuple(tuple(size_of(v) for v in part) for part in declared)
    if got == wanted:
        return ""
    shown = [
        " and ".join(f"({', '.join(map(str, part))})" for part in one) for one in (wanted, got)
    ]
    return f"'{name}' of CUDA's device runtime returns and takes {shown[0]} bytes, here {shown[1]}"
