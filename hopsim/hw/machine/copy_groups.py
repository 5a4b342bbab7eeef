"""Groups of copies that belong to threads: what is open, what was committed, and what of it is pending.

A group belongs to the threads that committed it.  Threads that step together commit together, so groups are kept per
commit with the set of their threads; a strand waits for the groups of its own threads.

Source: PTX ISA 8.7 "cp.async.commit_group", "cp.async.wait_group", "cp.async.bulk.commit_group".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hopsim.hw.machine.operations import Operation


@dataclass(slots=True, eq=False)
class Copy:
    """One operation of a thread group: `threads` is a bit mask over thread numbers; `read` says its source is free."""

    threads: int
    operation: Operation
    read: bool = False
    landed: bool = False


@dataclass(slots=True, eq=False)
class CopyGroup:
    """Copies committed together by `threads`."""

    threads: int
    copies: list[Copy]
    has_landed: bool = False

    def pending(self, reading: bool) -> bool:
        """Whether some copy has not landed (or, for `reading`, not read its source)."""
        if self.has_landed:
            return False
        if reading:
            return any(not copy.read for copy in self.copies)
        # Asked again and again as long as newer groups are on their way.
        self.has_landed = all(copy.landed for copy in self.copies)
        return not self.has_landed


class GroupLog:
    """Copies of one kind in a CTA: not yet committed, and groups in order."""

    __slots__ = ("groups", "open", "waiters")

    def __init__(self) -> None:
        self.open: list[Copy] = []
        self.groups: list[CopyGroup] = []
        self.waiters: list[Any] = []

    def commit(self, threads: int) -> None:
        """Move the open copies of `threads` into a group."""
        mine = [copy for copy in self.open if copy.threads & threads]
        self.open = [copy for copy in self.open if not copy.threads & threads]
        self.groups.append(CopyGroup(threads, mine))

    def pending_beyond(self, threads: int, newest: int | None, reading: bool) -> bool:
        """Whether groups of `threads` other than the `newest` last ones are pending (None: copies not committed too)."""
        if newest is None:
            if any(copy.threads & threads and not copy.landed for copy in self.open):
                return True
            newest = 0
        mine = [group for group in self.groups if group.threads & threads]
        return any(group.pending(reading) for group in mine[: len(mine) - newest])

    def prune(self) -> None:
        """Forget groups that are complete and older than any that is not."""
        groups = self.groups
        while len(groups) > 16 and not groups[0].pending(False):
            groups.pop(0)


__all__ = ["Copy", "CopyGroup", "GroupLog"]
