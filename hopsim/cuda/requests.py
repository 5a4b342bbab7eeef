"""What the caller and the process that owns the device say to each other: plain, picklable records."""

from __future__ import annotations

from dataclasses import dataclass

Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What the driver tells about a device.

    Args:
        name: for example `NVIDIA H100 80GB HBM3`.
        driver: version of the driver, for example `580.159.04`, or of CUDA where that is not readable.
        capability: compute capability, (9, 0) for sm_90.
        sm_count: streaming multiprocessors.
        l2_bytes: capacity of L2.
        memory_bytes: device memory.
        shared_per_cta_bytes: most shared memory that a CTA may ask for.
        clock_hz: highest SM clock.
    """

    name: str
    driver: str
    capability: tuple[int, int]
    sm_count: int
    l2_bytes: int
    memory_bytes: int
    shared_per_cta_bytes: int
    clock_hz: float


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One launch of a loaded kernel.

    Args:
        image: key under which the module was loaded.
        entry: name of the kernel.
        grid: CTAs.  block: threads.  cluster: CTAs, None where the launch names none.
        shared_bytes: dynamic shared memory.
        parameters: the parameter space.  offsets: where each parameter starts in it.
        cooperative: whether its CTAs meet at the barrier of the grid, so that all must be on the device at once.
        timed: whether to measure the launch.
        repeats: further launches that are only timed, on memory that is put back afterwards.
        measure_clock: whether to read the SM clock around the repeated launches.
    """

    image: str
    entry: str
    grid: Triple
    block: Triple
    cluster: Triple | None
    shared_bytes: int
    parameters: bytes
    offsets: tuple[int, ...]
    cooperative: bool = False
    timed: bool = True
    repeats: int = 0
    measure_clock: bool = False


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """What one launch told.

    Args:
        cold_us: with L2 flushed before; median where repeated.  None when not timed.
        warm_us: mean of back-to-back launches; None unless repeated.
        clock_hz: SM clock during those; None unless asked.
        registers: registers of a thread.  local_bytes: local memory of a thread (spills included).
    """

    cold_us: float | None
    warm_us: float | None
    clock_hz: float | None
    registers: int
    local_bytes: int


class DriverFailure(Exception):
    """The driver refused a call, or a kernel failed.

    Args:
        what: the call and the driver's own words.
        name: name of the error code, for example `CUDA_ERROR_ILLEGAL_ADDRESS`.
        is_fatal: whether the context is lost, and all of its memory with it.
        hint: what to try.
    """

    def __init__(self, what: str, name: str = "", is_fatal: bool = False, hint: str = "") -> None:
        super().__init__(what, name, is_fatal, hint)
        self.what = what
        self.name = name
        self.is_fatal = is_fatal
        self.hint = hint
