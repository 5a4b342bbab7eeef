"""Who a strand is and where it stands, for events and messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import FaultPlace, MachineFault, ValuesNeeded
from hopsim.hw.machine.operations import Identity, describe, place_of
from hopsim.hw.machine.thread_groups import WARP

if TYPE_CHECKING:
    from hopsim.hw.machine.cta import Cta
    from hopsim.hw.machine.launch import Machine


class Placed:
    """Threads of a CTA that stand at an instruction.

    `tids` are thread numbers, in `warps`; `segment` is the number of the compiled segment that comes next.
    """

    machine: Machine
    cta: Cta
    tids: NDArray[np.int64]
    warps: range
    segment: int

    @property
    def key(self) -> tuple[int, int]:
        """(linear CTA index, first thread): a stable order of strands."""
        return (self.cta.index, int(self.tids[0]))

    @property
    def agent(self) -> tuple[int, NDArray[np.int64]]:
        """(linear CTA index, thread numbers): who acts, for events."""
        return (self.cta.index, self.tids)

    @property
    def line(self) -> int:
        """PTX line of the instruction at the head of the current segment."""
        return self.machine.program[self.segment].line

    @property
    def identity(self) -> Identity:
        """Who this is now, to be put into words later: CTA, warps, thread numbers."""
        return (self.cta.id, self.warps, self.tids)

    def describe(self) -> str:
        """Return `cta (x,y,z) warp w lanes a-b` for messages."""
        return describe(self.identity)

    def where(self, positions: Any = None) -> FaultPlace:
        """Return the place of the current instruction for error messages.

        Args:
            positions: of the threads of this strand that it is about (those of the first one's warp are named); None: all.
        """
        cta, warps, tids = self.identity
        if positions is not None:
            tids = tids[np.atleast_1d(positions)]
            warp = int(tids[0]) // WARP
            warps, tids = range(warp, warp + 1), tids[tids // WARP == warp]
        return place_of(self.machine.path, self.line, (cta, warps, tids))

    def fault(
        self,
        what: str,
        hint: str = "",
        source: str = "",
        *,
        positions: Any = None,
        kind: str = "",
    ) -> MachineFault:
        """Make (not raise) a fault at the current instruction; see `where` and `MachineFault`."""
        return MachineFault(what, where=self.where(positions), hint=hint, source=source, kind=kind)

    def need_values(self, line: int) -> None:
        """Stop a `values=False` run where control flow or an address depends on data."""
        raise ValuesNeeded(
            "control flow, an address or a count depends on data that values=False does not compute",
            where=f"{self.machine.path}:{line}: {self.describe()}",
            hint="run with values=True",
        )
