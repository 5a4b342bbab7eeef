"""Who knows what: vector clocks of warps and, where they differ, of single lanes.

A warp counts its epochs: every release ends one.  A clock maps keys to epochs: "everything that this agent did up to
this epoch came before".  Keys of a warp: the warp itself (all its lanes), each lane, `ANY` (the latest epoch of any lane, a
quick bound), and `INIT` for each lane (its inits of mbarriers only).  Negative keys say that a CTA has started.

A `View` is what an agent may rely on: `hb` (happens-before), the same with edges whose scope is too narrow (`loose`),
and per state space the generic history that the async proxy may rely on (`bridges`; the last one is for tensor maps).
`past` is what merely came before, because bytes came that were sent after it: nothing may be read on the strength of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

Clock: TypeAlias = dict[int, int]

KEYS_PER_WARP: Final = 128
LANE: Final = 1
ANY: Final = 33
INIT: Final = 34
NEVER: Final = 1 << 60
LOG_LENGTH: Final = 256
MET_KEPT: Final = 32

# State spaces that a proxy fence can name, and the proxy of tensor maps.
CTA_SHARED, CLUSTER_SHARED, GLOBAL, MAPS = 0, 1, 2, 3
# Key of a clock that says that the grids before this one are complete.
GRIDS: Final = -(1 << 40)


def raise_to(into: Clock, other: Clock) -> None:
    """Join a clock into another."""
    if not into:
        into.update(other)
        return
    get = into.get
    for key, epoch in other.items():
        if get(key, 0) < epoch:
            into[key] = epoch


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the bits that are set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class View:
    """What an agent, or somebody who learns from it, may rely on."""

    __slots__ = ("bridges", "hb", "loose", "past")

    def __init__(
        self, hb: Clock, loose: Clock | None, bridges: tuple[Clock, Clock, Clock, Clock]
    ) -> None:
        self.hb = hb
        self.loose = loose
        self.bridges = bridges
        self.past: Clock | None = None

    @classmethod
    def empty(cls) -> View:
        """Return a view of nothing."""
        return cls({}, None, ({}, {}, {}, {}))

    def copy(self) -> View:
        """Return an independent copy."""
        a, b, c, d = self.bridges
        loose = None if self.loose is None else dict(self.loose)
        view = View(dict(self.hb), loose, (dict(a), dict(b), dict(c), dict(d)))
        if self.past is not None:
            view.past = dict(self.past)
        return view

    def join(self, other: View, bridges: bool = True) -> None:
        """Learn all that `other` knows; `bridges=False` leaves out what was fenced elsewhere."""
        if self.loose is not None or other.loose is not None:
            self.join_loosely(other)
        elif other.past is not None:
            self.follow(other.past)
        raise_to(self.hb, other.hb)
        if bridges:
            for mine, theirs in zip(self.bridges, other.bridges, strict=True):
                if theirs:
                    raise_to(mine, theirs)

    def join_loosely(self, other: View) -> None:
        """Note what an edge of too narrow a scope would carry."""
        if self.loose is None:
            self.loose = dict(self.hb)
        raise_to(self.loose, other.hb if other.loose is None else other.loose)
        if other.past is not None:
            self.follow(other.past)

    def follow(self, past: Clock) -> None:
        """Note what came before, whether or not anybody published it."""
        if self.past is None:
            self.past = {}
        raise_to(self.past, past)

    def covers(self, agent: Agent, epoch: int, mask: int) -> bool:
        """Whether what lanes of a warp did in an epoch came before, be it through edges of too narrow a scope or none."""
        known = (self.hb if self.loose is None else self.loose, self.past)
        return any(clock and sees(clock, agent, epoch, mask) for clock in known)

    def bridge(self, space: int, key: int, epoch: int) -> None:
        """Let the async proxy rely on all that is known, and on `key` up to `epoch`."""
        clock = self.bridges[space]
        raise_to(clock, self.hb)
        if clock.get(key, 0) < epoch:
            clock[key] = epoch


class Agent:
    """One warp of a CTA.

    `view` is what all its lanes know; `parts` are lanes that know more, as (mask, view), disjoint.
    """

    __slots__ = (
        "acquiring",
        "copies",
        "copy_groups",
        "cta",
        "dirty",
        "epochs",
        "exit_line",
        "exited",
        "exits",
        "fresh",
        "gathered",
        "key",

        "live",
        "loads",
        "log",
        "met",
        "now",
        "number",
        "parts",
        "passed",
        "peeks",
        "registers",
        "releasing",
        "store_groups",
        "stores",
        "view",
        "warp",
    )  # fmt: skip

    def __init__(self, number: int, cta: Any, warp: int, live: int) -> None:
        self.number = number
        self.key = number * KEYS_PER_WARP
        self.cta = cta
        self.warp = warp
        self.live = live
        self.exited = 0
        self.exit_line = 0
        # Who left when: (epoch, lanes, PTX line).
        self.exits: list[tuple[int, int, int]] = []
        # Whether it accessed memory, or learned something, since its last proxy fence.
        self.dirty = False
        self.now = 1
        self.view = View.empty()
        self.parts: list[tuple[int, View]] = []
        # What ended each epoch: (kind, PTX line).
        self.epochs: dict[int, tuple[str, int]] = {}
        # Edges into this warp: (epoch, lanes, PTX line, what, node with `sources()`).
        self.log: deque[tuple[int, int, int, str, Any]] = deque(maxlen=LOG_LENGTH)
        # Patterns of fences, by lane: those that let later relaxed writes publish, the last of each scope that no wider one
        # followed, widest first; and what a later acquire fence learns.
        self.releasing: dict[int, list[Any]] = {}
        self.acquiring: dict[int, list[Any]] = {}
        # Copies not yet committed, and groups, of cp.async and of bulk stores.
        self.copies: list[Any] = []
        self.copy_groups: list[Any] = []
        self.stores: list[Any] = []
        self.store_groups: list[Any] = []
        self.registers: Any = None
        # The last tests of mbarriers that said no, by the lanes that made them: (barrier, phase, PTX line).
        self.peeks: dict[int, tuple[Any, int, int]] = {}
        # What it passed cluster barriers after, data or not: warp number to epoch.
        self.passed: dict[int, int] = {}
        # wgmma that it knows to be complete: (epoch, who issued it).
        self.met: deque[tuple[int, Any]] = deque(maxlen=MET_KEPT)
        # Collectives that order no memory (`shfl.sync`, ...), the last of an epoch: (epoch, lanes, event).
        self.gathered: deque[tuple[int, int, int]] = deque(maxlen=MET_KEPT)
        # How many copies it has issued that an mbarrier tells of.
        self.loads = 0
        # The phase it waited for last and has not made use of yet: (barrier, index, PTX line, lanes).
        self.fresh: tuple[Any, int, int, int] | None = None

    def is_whole(self, mask: int) -> bool:
        """Whether `mask` holds every lane that has not exited."""
        return not self.live & ~mask

    def is_every(self, mask: int) -> bool:
        """Whether `mask` holds every lane there ever was: to exit publishes nothing of what a lane did."""
        return not (self.live | self.exited) & ~mask

    def eyes(self, mask: int) -> list[tuple[int, View]]:
        """Return the views of these lanes: (lanes, view)."""
        if not self.parts:
            return [(mask, self.view)]
        found: list[tuple[int, View]] = []
        for lanes, view in self.parts:
            if lanes & mask:
                found.append((lanes & mask, view))
                mask &= ~lanes
        if mask:
            found.append((mask, self.view))
        return found

    def own(self, mask: int) -> list[View]:
        """Return the views of exactly these lanes to change, after setting the lanes apart where they are not whole."""
        if self.is_whole(mask):
            return [self.view, *(view for _, view in self.parts)]
        kept: list[tuple[int, View]] = []
        mine: list[View] = []
        rest = mask
        for lanes, view in self.parts:
            inside = lanes & mask
            if not inside:
                kept.append((lanes, view))
                continue
            rest &= ~lanes
            outside = lanes & ~mask
            if outside:
                kept.append((outside, view))
                view = view.copy()
            kept.append((inside, view))
            mine.append(view)
        if rest:
            view = self.view.copy()
            kept.append((rest, view))
            mine.append(view)
        self.parts = kept
        return mine

    def peek(self, mask: int, tested: tuple[Any, int, int] | None) -> None:
        """Lanes have tested a phase in vain; None: they have seen one complete."""
        if self.peeks and (len(self.peeks) > 1 or mask not in self.peeks):
            rest = {lanes & ~mask: known for lanes, known in self.peeks.items()}
            rest.pop(0, None)
            self.peeks = rest
        if tested is not None:
            self.peeks[mask] = tested
        else:
            self.peeks.pop(mask, None)

    def stamp(self, clock: Clock, mask: int) -> None:
        """Write into a clock what these lanes themselves have done so far."""
        now, key = self.now, self.key
        if self.is_every(mask):
            clock[key] = now
            return
        for lane in bits(mask):
            clock[key + LANE + lane] = now
        clock[key + ANY] = now

    def release(self, mask: int) -> View:
        """Return what these lanes did and know, for others to learn; does not end the epoch."""
        eyes = self.eyes(mask)
        view = eyes[0][1].copy()
        for _, other in eyes[1:]:
            view.join(other)
        self.stamp(view.hb, mask)
        if view.loose is not None:
            self.stamp(view.loose, mask)
        return view

    def leave_behind(self, mask: int, kind: str, line: int) -> Clock:
        """End the epoch and return all that came before: for those who can tell that these lanes got this far."""
        past: Clock = {}
        for _, view in self.eyes(mask):
            raise_to(past, view.hb if view.loose is None else view.loose)
            raise_to(past, view.past or {})
        self.stamp(past, mask)
        self.end_epoch(kind, line)
        return past

    def acquire(self, mask: int, view: View, bridges: bool = True) -> None:
        """Let these lanes learn."""
        self.dirty = True
        if not self.parts and self.is_whole(mask):
            self.view.join(view, bridges)
            return
        for mine in self.own(mask):
            mine.join(view, bridges)

    def acquire_loosely(self, mask: int, view: View) -> None:
        """Let these lanes learn through an edge whose scope is too narrow."""
        for mine in self.own(mask):
            mine.join_loosely(view)

    def fence_proxy(self, mask: int, spaces: tuple[int, ...]) -> None:
        """Bridge what these lanes know and did to the async proxy."""
        every = self.is_every(mask)
        for view in self.own(mask):
            for space in spaces:
                if every:
                    view.bridge(space, self.key, self.now)
                else:
                    raise_to(view.bridges[space], view.hb)
                    self.stamp(view.bridges[space], mask)

    def meet(self, mask: int) -> None:
        """Order these lanes among each other, as bar.warp.sync does."""
        view = self.release(mask)
        if self.is_whole(mask):
            self.view = view
            self.parts = []
        else:
            self.acquire(mask, view)

    def end_epoch(self, kind: str, line: int) -> int:
        """Begin a new epoch and return the one that ended."""
        ended = self.now
        self.epochs[ended] = (kind, line)
        self.now = ended + 1
        if len(self.epochs) > 4 * LOG_LENGTH:
            for epoch in sorted(self.epochs)[: 2 * LOG_LENGTH]:
                del self.epochs[epoch]
        return ended


def sees(clock: Clock, agent: Agent, epoch: int, mask: int) -> bool:
    """Whether a clock covers what lanes `mask` of a warp did in `epoch`."""
    get = clock.get
    if get(agent.key, 0) >= epoch:
        return True
    if get(agent.key + ANY, 0) < epoch:
        return False
    return all(get(agent.key + LANE + lane, 0) >= epoch for lane in bits(mask))


class Done:
    """The completion of an asynchronous operation: who has observed it, and when.

    The list may be shared by all operations of one mbarrier phase or one group.
    """

    __slots__ = ("observers",)

    def __init__(self) -> None:
        self.observers: list[tuple[Agent, int, int]] = []

    def observe(self, agent: Agent, mask: int) -> None:
        """Note that these lanes know."""
        self.observers.append((agent, agent.now, mask))

    def known_to(self, clock: Clock, agent: Agent, mask: int) -> bool:
        """Whether lanes `mask` of `agent`, who rely on `clock`, know that the operation is complete."""
        get = clock.get
        for other, epoch, lanes in self.observers:
            if other is agent and not mask & ~lanes:
                return True
            if get(other.key, 0) >= epoch:
                return True
            if get(other.key + ANY, 0) >= epoch and any(
                get(other.key + LANE + lane, 0) >= epoch for lane in bits(lanes)
            ):
                return True
        return False


class MapRead(Done):
    """The end of a load's reading of its tensor map: it is complete, or a wait covered a bulk group committed after it.

    Args:
        landed: the completion of the load.
        waited: of its issuer's bulk group.
    """

    __slots__ = ("landed", "waited")

    def __init__(self, landed: Done, waited: Done) -> None:
        super().__init__()
        self.landed = landed
        self.waited = waited

    def known_to(self, clock: Clock, agent: Agent, mask: int) -> bool:
        """Whether lanes `mask` of `agent`, who rely on `clock`, know that the map is read."""
        return self.landed.known_to(clock, agent, mask) or self.waited.known_to(clock, agent, mask)
