"""Programmatic dependent launch of two products: X = A B^T, then Y = X D^T.

The first kernel says early that the next grid may start (`griddepcontrol.launch_dependents`, which
promises nothing about memory); the second does what needs no X (barriers, tensor maps, its place)
and waits for the first grid's memory (`griddepcontrol.wait`) before its first copy.

hopsim runs one grid at a time (D-GRIDDEP), so the overlap is not simulated but bounded: what the
second launch does before its wait is timed by a launch of the same kernel that ends there.  All of it
can hide under the first grid where CTAs of both fit on an SM together; otherwise only the launch
itself can, and CTAs start as those of the first grid leave.

Source: PTX ISA 8.7 "griddepcontrol"; CUDA C++ Programming Guide 13.0, "Programmatic Dependent Launch
and Synchronization".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from hopsim.errors import LaunchError
from hopsim.isa.program.kernel import loads
from hopsim.kernels.gemm.frame import SHARED_SYMBOL, emit_frame, new_entry
from hopsim.kernels.gemm.kernel import GemmKernel, build
from hopsim.kernels.gemm.launch import launch
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.gemm.ring import emit_barriers
from hopsim.kernels.gemm.roles import emit_roles
from hopsim.kernels.gemm.scheduler import emit_walk
from hopsim.kernels.gemm.warp_specialized import emit_consumer, emit_producer
from hopsim.kernels.ptx.limits import (
    REGISTER_FILE,
    RESERVED_PER_CTA_BYTES,
    SHARED_PER_SM_BYTES,
    THREADS_PER_SM,
)
from hopsim.kernels.ptx.text import PtxEntry, module_text
from hopsim.kernels.surroundings.end_to_end import NamedLaunch
from hopsim.launch.device import Device


@dataclass(frozen=True, slots=True)
class Pair:
    """Two dependent products.

    Args:
        x, y: what they computed.
        launches: both, in order.
        hidden_cycles: the most that a dependent launch hides; 0 for a plain one, None if untimed.
        fits_beside: whether CTAs of both kernels fit on an SM together.
    """

    x: NDArray[Any]
    y: NDArray[Any]
    launches: tuple[NamedLaunch, NamedLaunch]
    hidden_cycles: int | None
    fits_beside: bool

    @property
    def cycles(self) -> int | None:
        """Cycles from the first to the last, at best; None if untimed."""
        first, second = (one.result.cycles for one in self.launches)
        if first is None or second is None or self.hidden_cycles is None:
            return None
        return first + max(second - self.hidden_cycles, 0)


def emit_dependent(
    name: str, plan: GemmPlan, *, signals: bool, waits: bool, ends_at_wait: bool = False
) -> PtxEntry:
    """Return the entry of a `warp-specialized` GEMM in a chain.

    Args:
        signals: it lets the next grid start.  waits: it waits for the grid before.
        ends_at_wait: it does nothing after that, to time what comes before.
    """
    b = new_entry(name, plan)
    frame = emit_frame(b, plan)
    walk = emit_walk(b, plan, frame)
    emit_barriers(b, plan, frame)
    if signals:
        b.emit("griddepcontrol.launch_dependents", note="the next grid may start")
    if waits:
        b.emit("griddepcontrol.wait", note="the grid before is complete and its memory visible")
    if ends_at_wait:
        b.emit("ret")
        return b
    emit_roles(
        b, plan, frame,
        producer=lambda: emit_producer(b, plan, frame, walk),
        consumer=lambda: emit_consumer(b, plan, frame, walk),
    )  # fmt: skip
    return b


def run_pair(
    gpu: Device,
    a: NDArray[Any],
    b: NDArray[Any],
    d: NDArray[Any],
    *,
    dtype: str = "bf16",
    dependent: bool = True,
    tile: tuple[int, int, int] = (128, 128, 64),
    stages: int = 3,
    warpgroups: int = 1,
    **options: Any,
) -> Pair:
    """Run X = A B^T and Y = X D^T as two launches of one stream.

    Args:
        a: (m, k).  b: (n, k).  d: (l, n).  All of type `dtype`, which X and Y have too.
        dependent: with programmatic dependent launch.
        options: handed to `gpu.launch`.

    Raises: LaunchError: the shapes do not chain, or the hardware cannot do it.
    """
    if d.shape[1] != b.shape[0]:
        raise LaunchError(
            f"D must have {b.shape[0]} columns, as B has rows, got {d.shape[1]}", where="dependent"
        )
    first = GemmProblem(a.shape[0], b.shape[0], a.shape[1], dtype)
    second = GemmProblem(a.shape[0], d.shape[0], b.shape[0], dtype)
    kernels = [
        _kernel(problem, tile, stages, warpgroups, signals=dependent and not i, waits=dependent and i > 0)
        for i, problem in enumerate((first, second))
    ]  # fmt: skip
    made = launch(gpu, kernels[0], a, b, **options)
    done = launch(gpu, kernels[1], made.c, d, **options)
    fits = _fits_beside(kernels[0].plan)
    hidden: int | None = 0
    if dependent:
        hidden = _hidden(gpu, kernels[1], fits, made.c, d, options)
    launches = (NamedLaunch("first", made.result), NamedLaunch("second", done.result))
    return Pair(made.c, done.c, launches, hidden, fits)


def _kernel(
    problem: GemmProblem,
    tile: tuple[int, int, int],
    stages: int,
    warpgroups: int,
    **how: bool,
) -> GemmKernel:
    kernel = build("warp-specialized", problem, tile, stages, warpgroups=warpgroups)
    text = module_text(emit_dependent(kernel.entry, kernel.plan, **how), SHARED_SYMBOL)
    return replace(kernel, ptx=text)


def _fits_beside(plan: GemmPlan) -> bool:
    """Return whether two CTAs of a plan run on one SM at once."""
    return (
        2 * (plan.shared_bytes + RESERVED_PER_CTA_BYTES) <= SHARED_PER_SM_BYTES
        and 2 * plan.threads <= THREADS_PER_SM
        and 2 * plan.threads * plan.entry_registers <= REGISTER_FILE
    )


def _hidden(
    gpu: Device,
    kernel: GemmKernel,
    fits: bool,
    x: NDArray[Any],
    d: NDArray[Any],
    options: dict[str, Any],
) -> int | None:
    """Return the cycles of a launch that ends at its wait, or of one that does nothing at all."""
    if fits:
        entry = emit_dependent(
            kernel.entry, kernel.plan, signals=False, waits=True, ends_at_wait=True
        )
        ended = replace(kernel, ptx=module_text(entry, SHARED_SYMBOL))
        return launch(gpu, ended, x, d, **options).result.cycles
    empty = PtxEntry("nothing", (), [f".reqntid {kernel.block}"])
    empty.emit("ret")
    module = loads(module_text(empty, SHARED_SYMBOL))
    done = gpu.launch(module["nothing"], kernel.grid, kernel.block, 1, [], 0, **options)
    return done.cycles
