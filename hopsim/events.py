"""What the machine says while it runs, and who may listen.

Models emit, observers judge: an observer is any object with some of the methods of `Observer`; `Probe` keeps, for each
kind of event, the list of methods that want it, so that an event nobody wants costs one test of an empty list.
Observers never change the machine; one that raises stops the run.

Agents are `(cta, tids)`: the linear CTA index and the thread numbers in it, an array that nobody changes.  Asynchronous
operations have a number, unique in the launch.  Bytes of shared memory are counted from its start (the reserved first KiB
included), those of global memory are device addresses.  The `line` of an event is where its instruction stands: in a checked
run a `Place` if others share that line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple


class Place(int):
    """The PTX line of an instruction that shares it with others, and its column: equal to no other, and no plain line.

    >>> wait, branch = Place(7, 4), Place(7, 52)
    >>> f":{wait}", int(wait), wait == branch, wait < branch < 8
    (':7:4', 7, False, True)
    """

    column: int

    def __new__(cls, line: int, column: int) -> Place:
        """Return the place of an instruction."""
        place = super().__new__(cls, line)
        place.column = column
        return place

    def __reduce__(self) -> tuple[object, ...]:
        """Return how to make it again, for pickles."""
        return Place, (int(self), self.column)

    def _order(self, other: int) -> int:
        """Return a number below, equal to or above 0: where this stands to another; a plain line begins at column 0."""
        column = other.column if isinstance(other, Place) else 0
        return int(self) - int(other) or self.column - column

    def __eq__(self, other: object) -> bool:
        """Whether it is the same instruction."""
        return isinstance(other, Place) and not self._order(other)

    def __ne__(self, other: object) -> bool:
        """Whether it is another."""
        return not self == other

    def __lt__(self, other: int) -> bool:
        """Whether it stands before."""
        return self._order(other) < 0

    def __gt__(self, other: int) -> bool:
        """Whether it stands behind."""
        return self._order(other) > 0

    def __hash__(self) -> int:
        """By line and column."""
        return hash((int(self), self.column))

    def __str__(self) -> str:
        """`line:column`."""
        return f"{int(self)}:{self.column}"

    def __format__(self, spec: str) -> str:
        """The same."""
        return format(str(self), spec)


class Access(NamedTuple):
    """A load, store or read-modify-write by threads, in the generic proxy.

    `kind`: `r`, `w` or `a` (atomic).  `space`: `shared` (of CTA `owner`), `global`.
    `addresses`: an int or one per lane; `count_bytes` from each.
    `value`: what a write or an atomic leaves in its first word, an int or one per lane; None where it is not known.
    `before`: what was in that word before, of strong writes and atomics alone; None where it is not known.
    `shares`: of rows that the lanes of a warp move together, who touches which: (positions in the agent's threads,
    positions in `addresses`), pair by pair; None: each thread has its own address.
    """

    agent: Any
    line: int
    kind: str
    space: str
    owner: int
    addresses: Any
    count_bytes: int
    semantics: str
    scope: str
    value: Any = None
    shares: Any = None
    before: Any = None


class Touch(NamedTuple):
    """Bytes that an asynchronous operation reads (`r`), writes (`w`) or reduces into (`a`).

    `start` and `stop` bound them; `addresses` is None for all of them, an array of first bytes, or a function that makes
    one, with `count_bytes` from each.  `key` identifies equal address sets.  `barrier`: the mbarrier `(cta, address)` that
    tells of these bytes.  `inside`: a function that makes the addresses of the 16 bytes each that lie inside the tensor.
    """

    kind: str
    proxy: str
    space: str
    owner: int
    start: int
    stop: int
    addresses: Any = None
    count_bytes: int = 0
    key: Any = None
    barrier: Any = None
    inside: Any = None


class FlightEvent(NamedTuple):
    """An asynchronous operation was put in flight; what it will touch is known from the start.

    `kind`: `tma load`, `tma store`, `wgmma`, `cp.async`, ... as `Operation.kind`.  `tracked`: `mbarrier`, `bulk`,
    `cp.async`, `wgmma`, or empty.  `detail`: registers for wgmma `(d, a, shape)`;
    `(address of the map, swizzle period in bytes, coordinates, box sizes)` for tensor copies; of an arrive the operations
    that it follows, and its mbarrier `(cta, address)`.
    """

    agent: Any
    line: int
    kind: str
    op: int
    tracked: str
    touches: tuple[Touch, ...]
    detail: Any = None


class RegisterEvent(NamedTuple):
    """Plain instructions used registers that wgmma uses too: `uses` are (PTX line, registers read, registers written)."""

    agent: Any
    uses: Any


class OpEvent(NamedTuple):
    """`what` happened to asynchronous operation `op`: `issued`, `read` (its sources are free) or `landed`."""

    what: str
    op: Any


class BarrierEvent(NamedTuple):
    """Something happened to an mbarrier, a named barrier or a cluster barrier.

    `what`: `init`, `inval`, `arrive`, `drop`, `add_pending`, `expect_tx`, `complete_tx`, `phase` (a phase completed),
    `wait` (a wait succeeded), `peek` (a test said no).  An arrive that travels is told twice: `send` when it is
    issued, `arrive` when it lands, with the number of its operation.  `barrier`: `(cta, address)` of an mbarrier,
    `(cta, number)` of a named barrier, the cluster index; `phase`: phases completed before.
    """

    agent: Any
    line: int
    kind: str
    what: str
    barrier: Any
    phase: int
    count: int  # pyright: ignore[reportIncompatibleMethodOverride]  # of tuple, which nobody calls
    semantics: str
    scope: str
    op: int


class SyncEvent(NamedTuple):
    """A fence, a commit, a group wait that passed, a warp barrier: `what` is the mnemonic, `detail` its modifiers.

    Lanes that hand each other values tell it too (`shfl.sync`, `vote.sync`, `match.sync`, `redux.sync`); `detail` is the
    mask.

    `malloc` tells of new global memory; `detail` is (address, bytes, name).
    A checked run also tells `poll`, after each look at a word that a loop waits for, and `choice` or `round`, after others
    that decide a branch (`round`: of which one side comes to look again and does nothing meanwhile); `detail` is a `Poll`.
    """

    agent: Any
    line: int
    what: str
    detail: Any


class Poll(NamedTuple):
    """The detail of a `SyncEvent` called `poll`, `round` or `choice`: a word that others write was looked at.

    `value`: what it saw.  `ended`: in which threads that ends the loop, or takes one side of the branch; True or False for
    all of them.
    `would_end`: the same for another value.
    """

    value: Any
    ended: Any
    would_end: Callable[[int], Any]


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

    def flight(self, event: FlightEvent) -> None:
        """An asynchronous operation was issued: what it touches."""

    def register(self, event: RegisterEvent) -> None:
        """Registers that wgmma uses were used by plain instructions."""

    def barrier(self, event: BarrierEvent) -> None:
        """A barrier object changed or a wait on it succeeded."""

    def sync(self, event: SyncEvent) -> None:
        """A fence or group operation was executed."""

    def strand(self, event: StrandEvent) -> None:
        """A strand changed its state."""


class Probe:
    """For each kind of event, the methods to call."""

    __slots__ = ("access", "barrier", "flight", "operation", "register", "strand", "sync")

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self.access: list[Callable[[Access], None]] = []
        self.operation: list[Callable[[OpEvent], None]] = []
        self.flight: list[Callable[[FlightEvent], None]] = []
        self.register: list[Callable[[RegisterEvent], None]] = []
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
