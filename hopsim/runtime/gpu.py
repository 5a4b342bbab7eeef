"""The simulated GPU: the one place that wires front end, machine, schedule and observers.

gpu = Gpu("h100-sxm")
r = gpu.launch(kernel, grid=(8, 8), block=128, args=[a_map, c, np.int32(n)])
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hopsim.config import HardwareConfig, load
from hopsim.errors import LaunchError, MachineFault
from hopsim.events import Observer, Probe
from hopsim.hazards.checker import Checker
from hopsim.hazards.facts import CheckOptions
from hopsim.hw.machine.launch import Machine, Setup
from hopsim.hw.machine.memory import GlobalMemory, Region
from hopsim.hw.machine.schedule import Outcome, Schedule
from hopsim.hw.machine.untimed import Adversarial, InOrder, Seeded
from hopsim.hw.timing.occupancy import occupancy, resident_ctas
from hopsim.isa.program.kernel import Kernel
from hopsim.launch.arguments import pack
from hopsim.launch.arrays import DeviceArray, TensorMap
from hopsim.launch.geometry import Geometry, geometry, registers_per_thread
from hopsim.launch.given import (
    check_contents,
    element_type,
    extents_of,
    host_array,
    host_copy,
)
from hopsim.launch.options import Options, options
from hopsim.results import CUT_OFF, LaunchResult, NotModelledNote, decide_verdict
from hopsim.runtime.checking import launch_facts, watched_program
from hopsim.runtime.listeners import listeners_of, readings_of
from hopsim.runtime.loaded_modules import LoadedModules
from hopsim.runtime.places import Places, placed_program, places_of
from hopsim.runtime.rare_collection import rare_collection
from hopsim.runtime.stories import deadlock_of

BEYOND_SHARED: Final = re.compile(
    r"leave shared memory|outside shared memory|beyond the \d+ (bytes )?of shared memory"
)


class SimArray:
    """An array in simulated global memory."""

    def __init__(self, region: Region, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._region = region
        self.shape = shape
        self.dtype = dtype

    @property
    def address(self) -> int:
        """Device address of the first byte."""
        return self._region.base

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self._region.size

    def lies_in(self, memory: GlobalMemory) -> bool:
        """Whether it is an allocation of this memory."""
        return memory.holds(self._region)

    def numpy(self) -> NDArray[Any]:
        """Return a copy in host memory."""
        return self._region.data[: self._region.size].view(self.dtype).reshape(self.shape).copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return a copy in host memory, for numpy's own functions: `np.testing.assert_array_equal(x, expected)`."""
        return host_copy(self.numpy, dtype, copy)

    def write(self, values: NDArray[Any]) -> None:
        """Replace the contents."""
        host = host_array(values)
        check_contents(host, self.shape, self.dtype)
        self._region.data[: self._region.size] = _bytes(host)
        self._region.mark(0, self._region.size)

    def __repr__(self) -> str:
        return f"SimArray({self.dtype}, {self.shape}, at {self.address:#x})"


def _name_of(kind: np.dtype[Any], extents: Sequence[int]) -> str:
    """Return what messages call an array; the fields of a structured type would fill them."""
    elements = f"of {kind.itemsize}-byte records" if kind.names else f"{kind}"
    return f"array {elements}{list(extents)}"


def _bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


class Gpu:
    """One simulated GPU with its own memory; two of them in one process do not see each other.

    Args:
        config: name of a configuration (`h100-sxm`) or path of a TOML file.
        overrides: `{"dram.bandwidth": "4.8TB/s"}`.
    Raises: ConfigError.
    """

    backend = "sim"

    def __init__(
        self, config: str | Path = "h100-sxm", overrides: Mapping[str, Any] | None = None
    ) -> None:
        self.config: HardwareConfig = load(config, overrides)
        self.memory = GlobalMemory()
        self._modules = LoadedModules(self.memory)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.config.name}>"

    # -- memory ------------------------------------------------------------------------------------

    def array(self, values: Any) -> SimArray:
        """Copy a numpy array (ml_dtypes included) to the device.

        Raises: LaunchError: it is no array of numbers, or a big-endian one, or there is no room for it.
        """
        host = host_array(values)
        region = self._allocate(host.nbytes, _name_of(host.dtype, host.shape), _bytes(host))
        return SimArray(region, host.shape, host.dtype)

    def empty(self, shape: int | Sequence[int], dtype: Any) -> SimArray:
        """Make an array that is not initialised: reading it before it is written is found.

        Raises: LaunchError: no such shape or element type, or no room for it.
        """
        extents, kind = extents_of(shape), element_type(dtype)
        region = self._allocate(math.prod(extents) * kind.itemsize, _name_of(kind, extents))
        return SimArray(region, extents, kind)

    def _allocate(self, size: int, name: str, data: NDArray[np.uint8] | None = None) -> Region:
        """Reserve device memory; fewer bytes may be there than the device has, since the host holds them."""
        capacity = self.config.dram.capacity_bytes
        room = capacity - self.memory.allocated_bytes
        hint = "a smaller array; a new hs.Gpu() begins with empty memory"
        if size > room:
            raise LaunchError(
                f"out of memory: {name} takes {size:,} bytes, {room:,} of {capacity:,} are left",
                hint=hint,
            )
        try:
            return self.memory.allocate(size, name, data)
        except MemoryError:
            raise LaunchError(
                f"out of memory: this computer has no room for {name}, {size:,} bytes", hint=hint
            ) from None

    def owns(self, array: DeviceArray) -> bool:
        """Whether an array lies in this GPU's memory."""
        return isinstance(array, SimArray) and array.lies_in(self.memory)

    # -- launch ------------------------------------------------------------------------------------

    def encode(self, tensor_map: TensorMap) -> bytes:
        """Return the 128 bytes of a tensor map in hopsim's own format."""
        return tensor_map.spec.encode()

    @rare_collection()
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
        check: bool | CheckOptions = True,
        schedule: str = "timed",
        numerics: str = "hopper",
        seed: int = 0,
        max_cycles: int | None = None,
        warm: str = "nothing",
        trace: bool = False,
        observers: Sequence[Observer] = (),
        progress: Callable[[float], None] | None = None,
    ) -> LaunchResult:
        """Run a kernel to its end.

        Args:
            grid: CTAs.  block: threads of a CTA.  cluster: CTAs of a cluster (None: what the kernel requires, or 1).
            args: one per parameter.
            shared_bytes: dynamic shared memory.
            values: whether data is computed; without it only time and order are.
            timing: whether to predict cycles; False runs the in-order schedule.
            check: whether to look for hazards; `CheckOptions` say how contested rules are read.  In a checked run a
                fault of the machine is a finding.
            schedule: `timed`, `in-order`, `seeded` or `adversarial`.
            numerics: `hopper` (the tensor core's bits) or `float32` (faster, approximate).
            seed: of the seeded schedule.
            max_cycles: end a timed run after so many cycles, an untimed one after so many steps.
            warm: what a launch before this one left in the caches of a timed run: `nothing`, the `code`, or code and
                `memory` (all arrays, as far as L2 holds them).
            trace: whether to record a timeline (timed runs only).
            observers: further listeners, see `hopsim.events`.
            progress: called now and then with the share of CTAs that are done.
        Raises: LaunchError, NotModelled, MachineFault (with `check=False`; it keeps what was printed), ValuesNeeded.
        """
        chosen = options(
            kernel, values=values, timing=timing, schedule=schedule, numerics=numerics, seed=seed, max_cycles=max_cycles,
            warm=warm, trace=trace, progress=progress,
        )  # fmt: skip
        readings, listeners = readings_of(check, kernel), listeners_of(observers, kernel)
        device = self.config.device
        shapes = geometry(
            kernel,
            grid,
            block,
            cluster,
            shared_bytes,
            device.shared_per_cta_max_bytes,
            device.cluster_size_max,
        )
        setup = self._setup(kernel, shapes, args, chosen)
        recorder = None
        if chosen.trace:
            from hopsim.trace.timeline import Timeline

            recorder = Timeline(title=kernel.name, lines=kernel.module.lines)
        plan = self.make_schedule(chosen, recorder, progress)
        checker = None
        places: Places = {}
        if readings is not None and chosen.values:
            places = places_of(kernel)
            setup = replace(setup, program=placed_program(setup.program, places))
            facts = launch_facts(kernel, setup.program, places, shapes, self.memory)
            checker = Checker(facts, readings)
            listeners.append(checker)
        probe = Probe(listeners)
        if probe.register:
            setup = replace(setup, program=watched_program(setup.program, places, probe))
        machine = Machine(setup, plan, probe)
        try:
            outcome = plan.run(machine)
        except MachineFault as fault:
            said = fault.what
            fault.add_source_text(kernel.module.lines)
            if kernel.placement.has_dynamic_shared and BEYOND_SHARED.search(said):
                fault.add_hint(
                    f"the kernel was launched with shared_bytes={shapes.dynamic_shared_bytes}:"
                    " give the bytes of dynamic shared memory that it was written for"
                )
            fault.printed = "".join(machine.printed)
            if checker is None:
                raise
            checker.fault(fault)
            outcome = Outcome("fault")
        return self._result(kernel, shapes, machine, outcome, checker, recorder, chosen)

    def _setup(
        self, kernel: Kernel, shapes: Geometry, args: Sequence[Any], chosen: Options
    ) -> Setup:
        device = self.config.device
        block = pack(kernel, args, self)
        padded = np.zeros((len(block) + 15) // 16 * 16 or 16, np.uint8)
        padded[: len(block)] = np.frombuffer(bytes(block), np.uint8)
        parameters = Region(0, padded, len(block), "the kernel parameters")
        parameters.read_only = True
        program = kernel.program(chosen.values)
        # As many as there can be, however few registers they take.
        fewest = occupancy(device, shapes.threads, 1, shapes.shared_bytes)
        places = resident_ctas(device, fewest.ctas_per_sm, math.prod(shapes.cluster))
        return Setup(
            path=kernel.module.path,
            program=program,
            register_widths=kernel.register_widths,
            grid=shapes.grid,
            block=shapes.block,
            cluster=shapes.cluster,
            shared_bytes=shapes.shared_bytes,
            dynamic_shared_bytes=shapes.dynamic_shared_bytes,
            local_bytes=kernel.placement.local_bytes,
            registers_per_thread=registers_per_thread(
                kernel, shapes.threads, device.registers_per_sm
            ),
            parameters=parameters,
            symbols=self._modules.symbols(kernel),
            workspace=self._modules.workspace(kernel, math.prod(shapes.grid), places),
            memory=self.memory,
            values=chosen.values,
            follows_bytes=not chosen.values and kernel.deciding.follows_bytes,
            numerics=chosen.numerics,
            sm_count=device.sm_count,
            places=places,
            explicit_cluster=shapes.cluster != (1, 1, 1),
            # The checker finds reads of shared memory that nobody wrote, and goes on.
            track_initialisation=False,
            has_register_bound=kernel.has_register_bound,
            moves_registers=kernel.entry_registers is not None,
            kept_loops=kernel.kept_loops,
            serialised_wgmma=bool(kernel.serialised_wgmma),
            parameter_offsets={one.name: one.offset for one in kernel.params},
        )

    def make_schedule(
        self, chosen: Options, recorder: Any, progress: Callable[[float], None] | None
    ) -> Schedule:
        """Return the schedule that a launch follows; `hopsim.explore` has GPUs that follow one of their own.

        Args:
            recorder: a `Recorder`, for a timed launch with a trace; None: nobody hears of it.
            progress: as `launch` takes it.
        """
        limit, warm = chosen.max_cycles, chosen.warm
        steps = {} if limit is None else {"step_limit": limit}
        if chosen.schedule == "in-order":
            return InOrder(**steps)
        if chosen.schedule == "seeded":
            return Seeded(chosen.seed, resident_clusters=4, **steps)
        if chosen.schedule == "adversarial":
            return Adversarial(resident_clusters=4, **steps)
        from hopsim.hw.timing.schedule import TimedSchedule

        regions = self.memory.regions if warm == "memory" else ()
        return TimedSchedule(
            self.config,
            warm=[(region.base, region.size) for region in regions if region.size],
            warm_code=warm != "nothing",
            max_cycles=limit,
            recorder=recorder,
            progress=progress,
        )

    def _result(
        self,
        kernel: Kernel,
        shapes: Geometry,
        machine: Machine,
        outcome: Outcome,
        checker: Checker | None,
        recorder: Any,
        chosen: Options,
    ) -> LaunchResult:
        cycles = None if outcome.cycles is None else round(outcome.cycles)
        deadlock = None
        if outcome.ended == "deadlock":
            deadlock = deadlock_of(machine, cycles, kernel.placement.shared_name)
        notes: list[NotModelledNote] = []
        if outcome.ended == "cap":
            # Somebody who is in the midst of it: a loop without end stands there.
            stepping = min(machine.spinning, key=lambda strand: strand.key, default=None)
            line = stepping.line if stepping is not None else 0
            text = kernel.module.lines[line - 1].strip() if line else ""
            notes.append(NotModelledNote(CUT_OFF, int(line), text))
        if not chosen.values:
            notes.append(
                NotModelledNote("values=False: data was not computed, so races were not checked")
            )
            if kernel.branches_not_taken:
                lines = ", ".join(str(one.line) for one in kernel.branches_not_taken)
                notes.append(
                    NotModelledNote(
                        f"values=False: branches on data over computations were not taken (:{lines})"
                    )
                )
        elif checker is None:
            notes.append(NotModelledNote("check=False: races were not checked"))
        hazards = () if checker is None else tuple(checker.finish(deadlock))
        if deadlock is not None:
            waiting = tuple(replace(wait, line=int(wait.line)) for wait in deadlock.waiting)
            deadlock = replace(deadlock, waiting=waiting)
        if checker is not None:
            notes += checker.not_modelled
        facts = outcome.facts
        # The timed schedule says what load does to the clock.
        clock = float(facts.get("clock_hz", self.config.device.clock_hz))
        if recorder is not None:
            recorder.clock_hz = clock
        return LaunchResult(
            verdict=decide_verdict(hazards, deadlock, notes),
            kernel=kernel.name,
            grid=shapes.grid,
            block=shapes.block,
            cluster=shapes.cluster,
            hazards=hazards,
            deadlock=deadlock,
            not_modelled=tuple(notes),
            cycles=cycles,
            time_us=None if cycles is None else cycles / clock * 1e6,
            clock_hz=clock,
            counters=facts.get("counters", {}),
            stalls=facts.get("stalls", {}),
            occupancy=facts.get("occupancy"),
            printed="".join(machine.printed),
            backend=self.backend,
            config=self.config.name,
            schedule=chosen.schedule,
            seed=chosen.seed,
            numerics=chosen.numerics,
            values=chosen.values,
            timing=chosen.schedule == "timed",
            checked=checker is not None,
            faulted=outcome.ended == "fault",
            trace=recorder,
        )
