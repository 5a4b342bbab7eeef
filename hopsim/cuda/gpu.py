"""A real device with the protocol of `hopsim.Gpu`: the same program, the same arguments, the same result type.

    gpu = CudaGpu(0)
    r = gpu.launch(kernel, grid=(8, 8), block=128, args=[a_map, c, np.int32(n)], repeats=20)
    r.time_us, r.counters["hopsim__time_us_warm"]

The device lives in a process of its own, so that neither a kernel that hangs nor one that faults takes the caller
down.  When that process has to be ended its arrays are lost, the result or error says so, and using one of them
is an error.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hopsim.cuda.assemble import assemble
from hopsim.cuda.client import DEVICE, DirectDevice, WorkerHung, WorkerLost, WorkerProcess
from hopsim.cuda.requests import DeviceFacts, DriverFailure, LaunchRequest, LaunchTimes
from hopsim.errors import DeviceError, LaunchError
from hopsim.isa.program.kernel import Kernel
from hopsim.launch.arguments import pack
from hopsim.launch.arrays import DeviceArray, TensorMap
from hopsim.launch.geometry import Geometry, geometry
from hopsim.launch.given import (
    check_contents,
    element_type,
    extents_of,
    host_array,
    host_copy,
    place_of,
)
from hopsim.launch.options import options
from hopsim.results import Deadlock, LaunchResult, NotModelledNote, decide_verdict

COMPILERS: Final = ("driver", "ptxas")
CLUSTER_MAX: Final = 16
"""CTAs of a cluster beyond the portable 8. Source: CUDA C++ Programming Guide 13.0, "Thread Block Clusters"."""
TRANSFER_LIMIT_S: Final = 120.0
COMPILE_LIMIT_S: Final = 300.0
LAUNCH_LIMIT_S: Final = 30.0
NOT_CHECKED: Final = "check=False: races were not checked, a device cannot; hs.Gpu() can"


class CudaArray:
    """An array in the memory of a device."""

    def __init__(
        self, gpu: CudaGpu, address: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self._gpu = gpu
        self._address = address
        self._generation = gpu.generation
        self.shape = shape
        self.dtype = dtype
        weakref.finalize(self, gpu.release, address, gpu.generation).atexit = False

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    @property
    def address(self) -> int:
        """Device address of the first byte.

        Raises: DeviceError: the device's process was replaced since, and the array is lost.
        """
        if self._generation != self._gpu.generation:
            raise DeviceError(
                f"an array of {self.dtype} {list(self.shape)} was lost when the device's process was replaced",
                where=self._gpu.config_name,
                hint="make it again with gpu.array(x)",
            )
        return self._address

    def lies_on(self, gpu: CudaGpu) -> bool:
        """Whether it was made on this device."""
        return self._gpu is gpu

    def numpy(self) -> NDArray[Any]:
        """Return a copy in host memory."""
        data = self._gpu.call("read", self.address, self.nbytes)
        return np.frombuffer(data, np.uint8).view(self.dtype).reshape(self.shape).copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return a copy in host memory, for numpy's own functions."""
        return host_copy(self.numpy, dtype, copy)

    def write(self, values: NDArray[Any]) -> None:
        """Replace the contents."""
        host = host_array(values)
        check_contents(host, self.shape, self.dtype)
        self._gpu.call("write", self.address, _raw(host))

    def __repr__(self) -> str:
        return f"CudaArray({self.dtype}, {self.shape}, at {self._address:#x})"


def _raw(values: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).tobytes()


class CudaGpu:
    """One real sm_90 device.

    Args:
        index: the driver's number of the device.
        isolate: whether the device gets a process of its own; without one, calls are quicker, a hang hangs the
            caller and a fault ends the use of CUDA in this process.
        compiler: `driver` compiles PTX as it is loaded, `ptxas` runs the toolkit's assembler.
        time_limit_s: a launch that takes longer is a deadlock (isolated devices only).
    Raises: DeviceError: no driver, no device, not sm_90, or the extra `cuda` is not installed.
    """

    backend = "cuda"

    def __init__(
        self,
        index: int = 0,
        *,
        isolate: bool = True,
        compiler: str = "driver",
        time_limit_s: float = LAUNCH_LIMIT_S,
    ) -> None:
        if compiler not in COMPILERS:
            raise DeviceError(f"compiler {compiler!r}: expected one of {', '.join(COMPILERS)}")
        self._connect: Callable[[], WorkerProcess | DirectDevice] = lambda: (
            WorkerProcess((index,), DEVICE) if isolate else DirectDevice((index,), DEVICE)
        )
        self.time_limit_s = time_limit_s
        self._compiler = compiler
        self._where = f"CUDA device {index}"
        self._device: WorkerProcess | DirectDevice | None = None
        self._loaded: set[str] = set()
        self.generation = 0
        self.facts: DeviceFacts = self.call("facts")

    @property
    def config_name(self) -> str:
        """The device's name."""
        return self.facts.name

    # -- the process that owns the device ----------------------------------------------------------

    def _connection(self) -> WorkerProcess | DirectDevice:
        if self._device is None:
            try:
                self._device = self._connect()
            except DriverFailure as failure:
                raise DeviceError(failure.what, where=self._where, hint=failure.hint) from None
            except (WorkerHung, WorkerLost) as problem:
                raise DeviceError(
                    f"the device's process did not start: {problem or 'no answer'}",
                    where=self._where,
                ) from None
        return self._device

    def _replace(self) -> None:
        """Forget the device's process and all that was in it; the next call starts another."""
        if self._device is not None:
            self._device.close()
        self._device = None
        self._loaded.clear()
        self.generation += 1

    def call(self, method: str, *arguments: Any, limit_s: float = TRANSFER_LIMIT_S) -> Any:
        """Call a method of `hopsim.cuda.device.Device` where the device lives.

        Raises: DeviceError.
        """
        try:
            return self._ask(method, arguments, limit_s)
        except WorkerHung:
            raise DeviceError(
                f"no answer to {method} within {limit_s:g} s; the device's process was ended, "
                "and all arrays on it are lost",
                where=self._where,
            ) from None

    def _ask(self, method: str, arguments: tuple[Any, ...], limit_s: float) -> Any:
        try:
            return self._connection().call(method, *arguments, limit_s=limit_s)
        except DriverFailure as failure:
            lost = ""
            if failure.is_fatal:
                self._replace()
                lost = "; its process was ended, and all arrays on it are lost"
            raise DeviceError(
                f"{failure.what}{lost}", where=self._where, hint=failure.hint
            ) from None
        except WorkerLost as problem:
            self._replace()
            raise DeviceError(
                f"the device's process ended ({problem}), and all arrays on it are lost",
                where=self._where,
            ) from None
        except WorkerHung:
            self._replace()
            raise

    def release(self, address: int, generation: int) -> None:
        """Free the memory of an array that is no longer used."""
        if generation == self.generation and self._device is not None:
            with suppress(DeviceError):  # then the memory is gone with its process
                self.call("free", address)

    def close(self) -> None:
        """End the device's process; arrays on it are lost."""
        self._replace()

    def __enter__(self) -> CudaGpu:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- memory ------------------------------------------------------------------------------------

    def array(self, values: Any) -> CudaArray:
        """Copy a numpy array (ml_dtypes included) to the device.

        Raises: LaunchError: it is no array of numbers, or a big-endian one.
        """
        host = host_array(values)
        made = self.empty(host.shape, host.dtype)
        self.call("write", made.address, _raw(host))
        return made

    def empty(self, shape: int | Sequence[int], dtype: Any) -> CudaArray:
        """Make an array that is not initialised.

        Raises: LaunchError: no such shape or element type.
        """
        extents, kind = extents_of(shape), element_type(dtype)
        size = int(np.prod(extents, dtype=np.int64)) * kind.itemsize
        return CudaArray(self, int(self.call("allocate", size)), extents, kind)

    def owns(self, array: DeviceArray) -> bool:
        """Whether an array was made on this device."""
        return isinstance(array, CudaArray) and array.lies_on(self)

    # -- launch ------------------------------------------------------------------------------------

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
        repeats: int = 0,
        measure_clock: bool = False,
        time_limit_s: float | None = None,
    ) -> LaunchResult:
        """Run a kernel to its end.

        It takes what `hopsim.Gpu.launch` does, which is checked alike.  What a device cannot follow is an error (`values`,
        `numerics`, `trace`, `observers`); what only chooses how a simulation goes is ignored (`check`, `schedule`, `seed`,
        `max_cycles`, `warm`, `progress`).

        Args:
            grid: CTAs.  block: threads of a CTA.  cluster: CTAs of a cluster (None: what the kernel requires, or 1).
            args: one per parameter.
            shared_bytes: dynamic shared memory.
            timing: whether to time the launch, by events, with L2 flushed before it.
            repeats: launches that are only timed before the one that counts: `time_us` is then the median of that
                many with L2 flushed, `hopsim__time_us_warm` the mean of as many back to back.  Memory is put back
                after them.
            measure_clock: whether to read the SM clock over the back-to-back launches (needs `repeats`); gives
                `clock_hz` and, with it, `cycles`.
            time_limit_s: instead of the device's own.
        Raises: LaunchError, DeviceError.
        """
        del check
        chosen = options(
            kernel, values=values, timing=timing, schedule=schedule, numerics=numerics, seed=seed, max_cycles=max_cycles,
            warm=warm, trace=trace, progress=progress,
        )  # fmt: skip
        for holds, what in (
            (chosen.values, "values=False"), (chosen.numerics == "hopper", f"numerics={chosen.numerics!r}"),
            (not chosen.trace, "trace=True"),
            (not observers, "observers"), (repeats > 0 or not measure_clock, "measure_clock without repeats"),
        ):  # fmt: skip
            if not holds:
                raise LaunchError(
                    f"a device cannot do {what}",
                    where=place_of(kernel),
                )
        shapes = geometry(
            kernel, grid, block, cluster, shared_bytes, self.facts.shared_per_cta_bytes, CLUSTER_MAX
        )
        parameters = bytes(pack(kernel, args, self))
        key = self._load(kernel)
        names_cluster = (
            shapes.cluster != (1, 1, 1) or kernel.directive("explicitcluster") is not None
        )
        request = LaunchRequest(
            image=key,
            entry=kernel.name,
            grid=shapes.grid,
            block=shapes.block,
            cluster=shapes.cluster if names_cluster else None,
            shared_bytes=shapes.dynamic_shared_bytes,
            parameters=parameters,
            offsets=tuple(param.offset for param in kernel.params),
            cooperative=kernel.syncs_grid,
            timed=timing,
            repeats=repeats,
            measure_clock=measure_clock,
        )
        limit = self.time_limit_s if time_limit_s is None else time_limit_s
        try:
            times = self._ask("launch", (request,), limit)
        except WorkerHung:
            return self._hung(kernel, shapes, limit, timing)
        return self._result(kernel, shapes, times, timing)

    def encode(self, tensor_map: TensorMap) -> bytes:
        """Return the driver's 128 bytes of a tensor map."""
        assert tensor_map.array.address >= 0, "reading the address raises when the array is lost"
        return self.call("encode", tensor_map.spec)

    def _load(self, kernel: Kernel) -> str:
        key = f"{self._compiler}:{kernel.module.hash}"
        if key not in self._loaded:
            text = kernel.module.tree.text
            image = (
                assemble(text, kernel.module.path) if self._compiler == "ptxas" else text.encode()
            )
            self.call("load", key, image, limit_s=COMPILE_LIMIT_S)
            self._loaded.add(key)
        return key

    def _hung(self, kernel: Kernel, shapes: Geometry, limit_s: float, timing: bool) -> LaunchResult:
        story = f"kernel {kernel.name} was still running after {limit_s:g} s on {self.config_name}"
        lost = NotModelledNote(
            "the device's process was ended: all arrays on it are lost, make them again"
        )
        return self._record(
            kernel,
            shapes,
            timing,
            deadlock=Deadlock((), (story,)),
            notes=(NotModelledNote(NOT_CHECKED), lost),
        )

    def _result(
        self, kernel: Kernel, shapes: Geometry, times: LaunchTimes, timing: bool
    ) -> LaunchResult:
        counters: dict[str, int | float] = {
            "launch__registers_per_thread": times.registers,
            "hopsim__local_bytes_per_thread": times.local_bytes,
        }
        if times.cold_us is not None:
            counters["hopsim__time_us_cold"] = times.cold_us
        if times.warm_us is not None:
            counters["hopsim__time_us_warm"] = times.warm_us
        cycles = None
        if times.clock_hz is not None and times.cold_us is not None:
            cycles = round(times.cold_us * times.clock_hz / 1e6)
        return self._record(
            kernel, shapes, timing, notes=(NotModelledNote(NOT_CHECKED),), counters=counters, cycles=cycles,
            time_us=times.cold_us, clock_hz=times.clock_hz,
        )  # fmt: skip

    def _record(
        self,
        kernel: Kernel,
        shapes: Geometry,
        timing: bool,
        *,
        notes: tuple[NotModelledNote, ...],
        deadlock: Deadlock | None = None,
        **facts: Any,
    ) -> LaunchResult:
        return LaunchResult(
            verdict=decide_verdict((), deadlock, notes),
            kernel=kernel.name,
            grid=shapes.grid,
            block=shapes.block,
            cluster=shapes.cluster,
            deadlock=deadlock,
            not_modelled=notes,
            backend=self.backend,
            config=self.config_name,
            numerics="silicon",
            timing=timing,
            checked=False,
            **facts,
        )
