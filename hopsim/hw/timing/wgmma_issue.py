"""wgmma from its issue to the commit of its group: each warpgroup has a queue on the tensor cores of its SM."""

from __future__ import annotations

from collections.abc import Callable

from hopsim.hw.machine.operations import Operation
from hopsim.hw.machine.tensor_queue import Group, Warpgroup
from hopsim.hw.machine.work import TensorWork
from hopsim.hw.timing.actor import Actor
from hopsim.hw.timing.sm import Sm
from hopsim.hw.timing.stalls import Stall
from hopsim.hw.timing.tensor_core import WarpgroupQueue

Commit = Callable[[Actor, Group, WarpgroupQueue, float], None]


class WgmmaIssue:
    """Issues wgmma of all warpgroups.

    Args:
        stalls: warp cycles by reason, to count in.
        commit: called with (actor, group, queue, time) for groups that have operations.
        serialised: warpgroups of a CTA that wait for each of their wgmma before the next, because ptxas makes them; 0: none.
    """

    def __init__(self, stalls: list[float], commit: Commit, serialised: int = 0) -> None:
        self._stalls = stalls
        self._commit = commit
        self._serialised = serialised
        self._queues: dict[Warpgroup, WarpgroupQueue] = {}

    def forget(self, warpgroup: Warpgroup, sm: Sm) -> None:
        """Drop the queue of a warpgroup that has exited."""
        queue = self._queues.pop(warpgroup, None)
        if queue is not None:
            sm.tensor.dismiss(queue)

    def book(self, actor: Actor, operation: Operation, time: float, hidden: float = 0.0) -> float:
        """Book a wgmma; return when what follows it can issue.

        A full queue holds its issue.

        Args:
            time: when it could be issued.
            hidden: cycles of what follows that pass while it is waited for, if it is serialised.
        """
        work: TensorWork = operation.work
        tensor = actor.sm.tensor
        queue = self._queues.get(work.warpgroup)
        if queue is None:
            queue = self._queues[work.warpgroup] = tensor.admit()
        issue = tensor.book(queue, time, work)
        if issue > time:
            self._stalls[Stall.MATH_PIPE_THROTTLE] += (issue - time) * actor.warps
        if not self._serialised:
            return issue
        assert queue.open is not None, "an operation was just booked"
        done = tensor.complete(queue.open)
        # Its other warpgroups have the same to issue meanwhile.
        held = max(done - hidden - issue, hidden * (self._serialised - 1))
        self._stalls[Stall.GMMA] += held * actor.warps
        return issue + held

    def commit(self, actor: Actor, group: Group, time: float) -> None:
        """Commit a group at `time`; one without operations has nothing to land."""
        if group.operations:
            self._commit(actor, group, self._queues[group.owner], time)


__all__ = ["WgmmaIssue"]
