"""How long launches take, and the SM clock while they run."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hopsim.cuda.driver import Driver
from hopsim.cuda.programs import Programs
from hopsim.cuda.requests import DeviceFacts, LaunchRequest

CLOCK_PTX: Final = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry read_clocks(.param .u64 out)
{
    .reg .b32 %sm;
    .reg .b64 %place, %ticks, %nanoseconds;

    ld.param.u64            %place, [out];
    mov.u32                 %sm, %smid;
    mad.wide.u32            %place, %sm, 16, %place;
    mov.u64                 %ticks, %clock64;
    mov.u64                 %nanoseconds, %globaltimer;
    st.global.v2.u64        [%place], {%ticks, %nanoseconds};
    ret;
}
"""


class LaunchTimer:
    """Measures launches of one device.

    Args:
        driver: with the context of the device set.
        facts: of the device.
        programs: of the device; the one that reads clocks becomes one of them.
    """

    def __init__(self, driver: Driver, facts: DeviceFacts, programs: Programs) -> None:
        self._driver = driver
        self._facts = facts
        self._programs = programs
        self._scratch: int | None = None
        self._clocks: int | None = None

    def flush(self) -> None:
        """Put other bytes into all of L2."""
        size = 2 * self._facts.l2_bytes
        if self._scratch is None:
            self._scratch = int(self._driver.call("cuMemAlloc", size))
        self._driver.call("cuMemsetD32Async", self._scratch, 0, size // 4, 0)

    def timed(self, work: Callable[[], None]) -> float:
        """Return the microseconds between two events around `work`."""
        start, stop = (self._driver.call("cuEventCreate", 0) for _ in range(2))
        self._driver.call("cuEventRecord", start, 0)
        work()
        self._driver.call("cuEventRecord", stop, 0)
        self._driver.call("cuEventSynchronize", stop)
        elapsed = float(self._driver.call("cuEventElapsedTime", start, stop))
        for event in (start, stop):
            self._driver.call("cuEventDestroy", event)
        return elapsed * 1e3

    def measure(
        self, go: Callable[[], None], repeats: int, reads_clock: bool
    ) -> tuple[float, float, float | None]:
        """Time launches, of which each changes memory as it does.

        Returns: microseconds of a launch with L2 flushed before, the median; of launches back to back, the mean; Hz of the
            SM clock during those, None unless it is read.
        """

        def many() -> None:
            for _ in range(repeats):
                go()

        go()
        cold: list[float] = []
        for _ in range(repeats):
            self.flush()
            cold.append(self.timed(go))
        go()
        read = self._clock_readers() if reads_clock else None
        if read is None:
            warm = self.timed(many) / repeats
        else:
            # Nothing waits between the readings: the counters start anew when the device falls idle.
            read[0]()
            warm = self.timed(many) / repeats
            read[1]()
        clock = None if read is None else self._clock_hz()
        return median(cold), warm, clock

    def _clock_readers(self) -> tuple[Callable[[], None], Callable[[], None]]:
        """Return two launches that read clock and nanoseconds of each SM, into two tables of zeros."""
        count = self._facts.sm_count
        self._programs.load("clocks", CLOCK_PTX.encode())
        if self._clocks is None:
            self._clocks = int(self._driver.call("cuMemAlloc", 2 * 16 * count))
        self._driver.call("cuMemsetD32", self._clocks, 0, 2 * 4 * count)

        def launcher(table: int) -> Callable[[], None]:
            assert self._clocks is not None
            place = (self._clocks + table * 16 * count).to_bytes(8, "little")
            one = (1, 1, 1)
            return self._programs.launcher(
                LaunchRequest("clocks", "read_clocks", (count, 1, 1), one, None, 0, place, (0,))
            )

        return launcher(0), launcher(1)

    def _clock_hz(self) -> float | None:
        self._driver.call("cuCtxSynchronize")
        count = self._facts.sm_count
        assert self._clocks is not None
        data = np.empty((2, count, 2), np.int64)
        self._driver.call("cuMemcpyDtoH", data.ctypes.data, self._clocks, data.nbytes)
        return clock_hz(*data)


def clock_hz(before: NDArray[np.int64], after: NDArray[np.int64]) -> float | None:
    """Return the SM clock between two readings: the median over the SMs that took part in both.

    Args:
        before, after: clock and nanoseconds of each SM, zero where no CTA ran; shape (SMs, 2).
    """
    cycles, nanoseconds = (after - before).T
    seen = (before[:, 1] != 0) & (after[:, 1] != 0) & (cycles > 0) & (nanoseconds > 0)
    if not seen.any():
        return None
    return float(np.median(cycles[seen] / nanoseconds[seen]) * 1e9)
