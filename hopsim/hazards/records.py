"""What the checker remembers of an access: who, when, which bytes, through which proxy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from hopsim.hazards.clocks import Agent, Clock, Done, View

Ints = NDArray[np.int64]
# First byte of each thread's access; an int when they agree; a function that makes the array; None: one range of bytes.
Addresses: TypeAlias = "int | Ints | Callable[[], Ints] | None"

# Operations that fill shared memory and tell an mbarrier.
LOADS: Final = frozenset({"tma load", "bulk load", "bulk peer copy", "bulk peer reduce"})
# Words into a peer's shared memory, counted on its mbarrier.
REMOTE_STORES: Final = frozenset({"st.async", "red.async"})

# Who an access belongs to: the warp, its epoch, the lanes.
Part = tuple[Agent, int, int]
# Who looks: the warp, the lanes, what they rely on.
Eye = tuple[Agent, int, View]


class Flight:
    """An asynchronous operation.

    Args:
        kind: `tma load`, `tma store`, `wgmma`, ...
        parts: who issued it.
        tracked: what tells that it is complete.
    """

    __slots__ = (
        "aims", "burst", "group", "kind", "known", "landed", "left_at", "left_by", "left_open", "left_usefully", "line",
        "number", "parts", "past", "raced", "read", "records", "seq", "tile", "told", "tracked",
    )  # fmt: skip

    def __init__(
        self, kind: str, number: int, parts: list[Part], line: int, tracked: str, seq: int
    ) -> None:
        self.kind = kind
        self.number = number
        self.parts = parts
        self.line = line
        self.tracked = tracked
        self.seq = seq
        # Complete, and (for copies out of shared memory) sources free.
        self.landed = Done()
        self.read = self.landed
        # What it signals: (barrier, its phase at issue, the bytes that it tells of).
        self.aims: list[tuple[Any, int, Record]] = []
        # Number of the group it was committed in (None: not committed), and the wait that left it pending: its PTX line, and
        # the N that would have covered the group.
        self.group: int | None = None
        self.left_at: tuple[int, int] | None = None
        # The last such wait, even if another has covered the group since.
        self.left_by: tuple[int, int] | None = None
        # Where a wait leaves it pending for want of a commit: PTX lines of the copy to be committed, and of the wait.
        self.left_open: tuple[int, int] | None = None
        # Whether that wait covered some other group, so that it was of use.
        self.left_usefully = False
        # What its issuer relied on when the wait that had left it pending covered it, a finding having named it in between.
        self.known: Clock | None = None
        # PTX line of the first operation of its kind that was issued with it.
        self.burst = line
        # What came before it, if its issuer had not arrived on the barrier and so said it already.
        self.past: Clock | None = None
        # Its data was found used too early: what else follows from that is not told.
        self.raced = False
        # Some finding names it.
        self.told = False
        # The tile that it copies, as `tile_words` tells it.
        self.tile = ""
        self.records: list[Record] = []

    @property
    def site(self) -> tuple[int, ...]:
        """What copies of one place in the program for one mbarrier have in common; empty for other operations."""
        return (self.line, *(id(barrier) for barrier, _, _ in self.aims)) if self.aims else ()

    @property
    def agent(self) -> Agent:
        """The first warp that issued it."""
        return self.parts[0][0]


def tile_words(box: tuple[int, ...], origin: tuple[int, ...]) -> str:
    """Return the tile of a tensor copy in words, sizes and coordinates innermost first; of an im2col copy its pixels."""
    start = ", ".join(map(str, origin))
    if len(box) == len(origin):
        return f"box {'x'.join(map(str, box))} at ({start})"
    channels, pixels = box
    return f"{pixels} pixels of {channels} channels from ({start})"


class Record:
    """One access of some threads, or one part of an asynchronous operation.

    Args:
        kind: `r`, `w` or `a`.
        is_async: async proxy (else generic).
        parts: who did it and in which epoch; for cp.async the epoch is `NEVER` until it was waited for.
        space: `shared` or `global`.  owner: CTA whose shared memory it is.
        addresses: first byte of each thread's access (an int when they agree), or None: `start` to `stop`.
        tids: thread numbers, for accesses of threads.
        shares: (positions in `tids`, positions in `addresses`) of rows that lanes touch together, pair by pair; None: each
            thread has its own address.
        scope: of a strong access; empty for a weak one.
        done: what must be observed before the bytes may be relied on; None for threads.
    """

    __slots__ = (
        "addresses", "before", "count_bytes", "cta", "done", "flight", "fresh", "inside", "is_async", "is_map", "is_nc",
        "is_void", "kind", "line", "number", "observations", "over", "owner", "parts", "scope", "seq", "shares", "space",
        "start", "stop", "tids", "unwritten", "used", "uses", "wants_bridge",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        kind: str,
        is_async: bool,
        cta: Any,
        parts: list[Part],
        line: int,
        space: str,
        owner: int,
        start: int,
        stop: int,
        addresses: Addresses,
        count_bytes: int,
        tids: Ints | None,
        scope: str,
        flight: Flight | None,
        done: Done | None,
        seq: int,
        shares: tuple[Ints, Ints] | None = None,
    ) -> None:
        self.number = number
        self.kind = kind
        self.is_async = is_async
        self.cta = cta
        self.parts = parts
        self.line = line
        self.space = space
        self.owner = owner
        self.start = start
        self.stop = stop
        self.addresses = addresses
        self.count_bytes = count_bytes
        self.tids = tids
        self.scope = scope
        self.flight = flight
        self.done = done
        self.seq = seq
        self.shares = shares
        # It read bytes that nobody had written yet: a later write is the one it should have waited for.
        self.unwritten = False
        # Writes that it went over with nothing between them: who waited for those reads too late.
        self.over: tuple[Record, ...] = ()
        # A load with .nc: nobody of the grid may write what it reads.
        self.is_nc = False
        # It ends an mbarrier: no data is left in its bytes.
        self.is_void = False
        # Where it is noted who observed it, for a strong access of threads.
        self.observations: Any = None
        # Makes the addresses of the 16 bytes each that a tensor store leaves inside the tensor; None: all of them.
        self.inside: Callable[[], Ints] | None = None
        # It reads a tensor map.
        self.is_map = False
        # It is generic, but what stands before it must be bridged as if it were not (contested: st.async).
        self.wants_bridge = False
        # An earlier read of the same data by the same instruction and warps.
        self.before: Record | None = None
        # The phase (barrier, index, PTX line of the wait, lanes) that its agent had waited for just before, not used yet.
        self.fresh: tuple[Any, int, int, int] | None = None
        # An operation's bytes were read by somebody who had waited for them; it read such bytes.
        self.used = False
        self.uses = False

    @property
    def is_thread(self) -> bool:
        """Whether each of its threads made its own part: plain accesses, and cp.async."""
        return self.tids is not None

    def spread(self) -> tuple[Ints, Ints]:
        """Return (thread, first byte) of every thread's access, or of each of its accesses."""
        assert self.tids is not None
        addresses = self.addresses
        if isinstance(addresses, int):
            return self.tids, np.full(len(self.tids), addresses, np.int64)
        assert is_array(addresses)
        if self.shares is not None:
            threads, rows = self.shares
            return self.tids[threads], addresses[rows]
        return self.tids, addresses


def is_array(addresses: Addresses) -> TypeGuard[Ints]:
    """Whether every thread has its own address, known now."""
    return isinstance(addresses, np.ndarray)


def write_the_same(first: Record, second: Record) -> bool:
    """Whether one instruction made both accesses, and wrote the same bytes both times."""
    return "r" not in (first.kind, second.kind) and (
        (first.line, first.start, first.stop) == (second.line, second.start, second.stop)
    )


def share_a_warp(first: Record, second: Record) -> bool:
    """Whether a warp that made the second access had a part in the first one."""
    return any(one is other for one, _, _ in first.parts for other, _, _ in second.parts)
