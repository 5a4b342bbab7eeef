"""Asynchronous operations in flight.

An operation is issued by a strand and lands later, when the schedule says, in one or two stages: for a copy out of shared
memory the first stage reads the source (`.read` waits end), the second writes the destination; everything else has one.
The machine never lands an operation by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import FaultPlace

if TYPE_CHECKING:
    from hopsim.hw.machine.launch import Machine


Identity = tuple[tuple[int, int, int], range, NDArray[np.int64]]
"""Who a strand is at some time: CTA, warps, thread numbers."""


def describe(identity: Identity) -> str:
    """Return `cta (x,y,z) warp w lanes a-b` of a strand's identity."""
    (x, y, z), warps, tids = identity
    cta = f"({x},{y},{z})"
    text = (
        f"cta {cta} warp {warps[0]}"
        if len(warps) == 1
        else f"cta {cta} warps {warps[0]}-{warps[-1]}"
    )
    if len(tids) < 32:
        numbers = [tid % 32 for tid in tids.tolist()]
        text += f" lane {numbers[0]}" if len(numbers) == 1 else f" lanes {numbers[0]}-{numbers[-1]}"
    return text


def place_of(path: str, line: int, identity: Identity) -> FaultPlace:
    """Return the place of an instruction that somebody executes."""
    cta, warps, tids = identity
    mask = 0
    if len(warps) == 1 and len(tids) < 32:
        mask = sum(1 << tid % 32 for tid in tids.tolist())
    return FaultPlace(f"{path}:{line}: {describe(identity)}", line, cta, warps[0], mask)


class Operation:
    """One asynchronous operation.

    Args:
        issuer: the strand that issued it.
        kind: `tma load`, `tma store`, `tma reduce`, `bulk load`, `bulk store`, `wgmma`, `cp.async`, `remote arrive`, ...
        unit: the unit that times it.
        stages: what to do at each stage.
        queue: operations of one queue land in order (None: any order).
        work: facts the timing model books with (bytes, box, shape); by kind.
    """

    __slots__ = (
        "_issuer",
        "after",
        "cta",
        "done",
        "group",
        "kind",
        "line",
        "machine",
        "number",
        "queue",
        "stages",
        "unit",
        "work",
    )

    def __init__(
        self,
        machine: Machine,
        kind: str,
        unit: str,
        stages: list[Callable[[], None]],
        *,
        cta: Any,
        issuer: Any,
        line: int,
        queue: Any = None,
        work: Any = None,
    ) -> None:
        self.machine = machine
        self.number = machine.next_operation_number()
        self.kind = kind
        self.unit = unit
        self.stages = stages
        self.cta = cta
        self._issuer = issuer.identity
        self.line = line
        self.queue = queue
        self.work = work
        self.group: Any = None
        self.done = False
        # Operations that must have landed first (cp.async.mbarrier.arrive follows the copies).
        self.after: list[Operation] = []

    @property
    def issuer(self) -> str:
        """Who issued it, in words."""
        return describe(self._issuer)

    @property
    def place(self) -> FaultPlace:
        """Where it was issued."""
        return place_of(self.machine.path, self.line, self._issuer)

    @property
    def may_land(self) -> bool:
        """Whether everything it follows has landed."""
        return all(operation.done for operation in self.after)

    def land(self) -> bool:
        """Do the next stage; return whether the operation is finished."""
        assert self.stages, (self.kind, self.number, "landed twice")
        self.machine.version += 1
        stage = self.stages.pop(0)
        stage()
        if not self.stages:
            self.done = True
        return self.done
