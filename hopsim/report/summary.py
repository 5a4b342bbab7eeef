"""`hs.summary(result)`: what the command line shows of a launch, for Python and for notebooks.

>>> from hopsim.results import LaunchResult
>>> print(summary(LaunchResult(verdict="clean", kernel="k", grid=(1, 1, 1), block=(32, 1, 1), cycles=4000)))
kernel        k
launch        grid 1, block 32
run           numerics , on
verdict       clean: no hazards
time          4,000 cycles
"""

from __future__ import annotations

from typing import Any, Final

from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin

from hopsim.profile.times import LineTimes
from hopsim.report.launch import launch_report
from hopsim.report.lines import line_report
from hopsim.report.plain import plain_text
from hopsim.results import LaunchResult

LINES: Final = 20


class Summary(JupyterMixin):
    """Text where it is printed, a page where a notebook shows it, a renderable for rich."""

    def __init__(self, content: RenderableType) -> None:
        self._content = content

    def __rich__(self) -> RenderableType:
        return self._content

    def __str__(self) -> str:
        return plain_text(self._content).strip("\n")

    __repr__ = __str__


def summary(told: LaunchResult | LineTimes, *, path: str = "", lines: int = LINES) -> Summary:
    """Return what `hopsim run` shows of a launch, or `--lines` of a `ProfilingGpu`'s `line_times`.

    Args:
        told: what `gpu.launch` gave, or `gpu.line_times`.
        path: of the PTX, for the places of findings.
        lines: how many lines are shown.
    Raises: TypeError: it is neither.
    """
    given: Any = told
    if isinstance(given, LaunchResult):
        return Summary(launch_report(given, path=path))
    if isinstance(given, LineTimes):
        return Summary(Group(*line_report(given, lines)))
    raise TypeError(
        f"expected a LaunchResult or line_times of a ProfilingGpu, got {type(given).__name__}"
    )
