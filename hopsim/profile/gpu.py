"""A simulated GPU that knows by line where the warps of its last timed launch spent their time.

>>> from hopsim.isa.program.kernel import loads
>>> head = ".version 8.7 .target sm_90a .address_size 64 "
>>> gpu = ProfilingGpu("h100-sxm")
>>> result = gpu.launch(loads(head + ".visible .entry nothing() { ret; }")["nothing"], grid=1, block=32)
>>> [(one.line, one.instructions) for one in gpu.line_times.lines]
[(1, 1)]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hopsim.errors import LaunchError
from hopsim.hw.machine.launch import Setup
from hopsim.hw.machine.schedule import Schedule
from hopsim.hw.timing.counters import STALL_NAMES
from hopsim.hw.timing.stalls import Stall
from hopsim.isa.program.kernel import Kernel
from hopsim.launch.geometry import Geometry
from hopsim.launch.options import Options
from hopsim.profile.attribution import Attribution
from hopsim.profile.schedule import ProfiledSchedule
from hopsim.profile.sources import callers_of, sources_of
from hopsim.profile.times import LineTime, LineTimes
from hopsim.runtime.gpu import Gpu


class ProfilingGpu(Gpu):
    """A `hs.Gpu` whose `line_times` are those of its last launch; it takes the same arguments."""

    def __init__(
        self, config: str = "h100-sxm", overrides: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(config, overrides)
        self._kernel: Kernel | None = None
        self._profile: Attribution | None = None

    def _setup(
        self, kernel: Kernel, shapes: Geometry, args: Sequence[Any], chosen: Options
    ) -> Setup:
        """Return what a launch needs, and begin anew."""
        self._kernel, self._profile = kernel, None
        return super()._setup(kernel, shapes, args, chosen)

    def make_schedule(
        self, chosen: Options, recorder: Any, progress: Callable[[float], None] | None
    ) -> Schedule:
        """Return the schedule that a launch follows: of a timed one, one that tells whose time it charges."""
        if chosen.schedule != "timed":
            return super().make_schedule(chosen, recorder, progress)
        regions = self.memory.regions if chosen.warm == "memory" else ()
        schedule = ProfiledSchedule(
            self.config,
            warm=[(region.base, region.size) for region in regions if region.size],
            warm_code=chosen.warm != "nothing",
            max_cycles=chosen.max_cycles,
            recorder=recorder,
            progress=progress,
        )
        self._profile = schedule.profile
        return schedule

    @property
    def line_times(self) -> LineTimes:
        """Where the warps of the last launch spent their time.

        Raises: LaunchError: nothing timed was launched.
        """
        kernel, profile = self._kernel, self._profile
        if kernel is None or profile is None:
            raise LaunchError(
                "no timed launch was made, so that no line has a time",
                hint='gpu.launch(..., schedule="timed") first',
            )
        sources, callers = sources_of(kernel), callers_of(kernel)
        text: Sequence[str] = kernel.module.lines
        return LineTimes(
            tuple(
                LineTime(
                    line,
                    text[line - 1].strip(),
                    sources.get(line),
                    callers.get(line),
                    instructions,
                    cycles,
                )
                for line, (instructions, cycles) in profile.by_line().items()
                if line
            ),
            {STALL_NAMES[one]: profile.totals[one] for one in Stall if profile.totals[one]},
        )
