"""What the machine says while it runs, and who may listen.

Models emit, observers judge: an observer is any object with some of the methods of `Observer`; `Probe` keeps, for each
kind of event, the list of methods that want it, so that an event nobody wants costs one test of an empty list.
Observers never change the machine; one that raises stops the run.

Agents are `(cta, warps, lanes)`: `cta` is the linear CTA index, `lanes` thread numbers in the CTA.  Asynchronous operations
have a number, unique in the launch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple


class Access(NamedTuple):
    """A load, store or read-modify-write by threads, or a part of an asynchronous operation.

    `kind`: `r`, `w` or `a` (atomic).  `proxy`: `generic`, `async` or `tensormap`.  `space`: `shared` (of CTA `owner`), `global`.
    `addresses`: an int or one per lane; `count_bytes` from each.  `op`: the asynchronous operation, or -1.
    """

    agent: Any
    line: int
    kind: str
    proxy: str
    space: str
    owner: int
    addresses: Any
    count_bytes: int
    semantics: str
    scope: str
    op: int


class OpEvent(NamedTuple):
    """`what` happened to asynchronous operation `op`: `issued`, `read` (its sources are free) or `landed`."""

    what: str
    op: Any


class BarrierEvent(NamedTuple):
    """Something happened to an mbarrier, a named barrier or a cluster barrier.

    `what`: `init`, `inval`, `arrive`, `expect_tx`, `complete_tx`, `phase` (a phase completed), `wait` (a wait succeeded).
    """

    agent: Any
    line: int
    kind: str
    what: str
    barrier: Any
    phase: int
    count: int
    semantics: str
    scope: str
    op: int


class SyncEvent(NamedTuple):
    """A fence, a commit, a group wait that passed, a warp barrier: `what` is the mnemonic, `detail` its modifiers."""

    agent: Any
    line: int
    what: str
    detail: Any


class StrandEvent(NamedTuple):
    """A strand `started`, was `split`, `merged`, `blocked`, `woken`, or `exited`."""

    agent: Any
    line: int
    what: str
    detail: Any


class Observer:
    """The methods a listener may have; the base class hears nothing."""

    def access(self, event: Access) -> None:
        """Bytes were read or written."""

    def operation(self, event: OpEvent) -> None:
        """An asynchronous operation was issued, finished reading, or landed."""

    def barrier(self, event: BarrierEvent) -> None:
        """A barrier object changed or a wait on it succeeded."""

    def sync(self, event: SyncEvent) -> None:
        """A fence or group operation was executed."""

    def strand(self, event: StrandEvent) -> None:
        """A strand changed its state."""


class Probe:
    """For each kind of event, the methods to call."""

    __slots__ = ("access", "barrier", "operation", "strand", "sync")

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self.access: list[Callable[[Access], None]] = []
        self.operation: list[Callable[[OpEvent], None]] = []
        self.barrier: list[Callable[[BarrierEvent], None]] = []
        self.sync: list[Callable[[SyncEvent], None]] = []
        self.strand: list[Callable[[StrandEvent], None]] = []
        for observer in observers:
            self.attach(observer)

    def attach(self, observer: Observer) -> None:
        """Put those methods of `observer` that it defines itself on their lists."""
        for name in self.__slots__:
            if getattr(type(observer), name) is not getattr(Observer, name):
                getattr(self, name).append(getattr(observer, name))
