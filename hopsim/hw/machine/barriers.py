"""Barrier objects: mbarriers, named CTA barriers, the cluster barrier.  State and rules only; strands wait on them.

Source: PTX ISA 8.7 "mbarrier", "bar, barrier", "barrier.cluster".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hopsim.hw.machine.cta import Cluster, Cta

TX_LIMIT: Final = (1 << 20) - 1
COUNT_LIMIT: Final = (1 << 20) - 1
# What may mend an arrival too many; the first only where a phase has all its arrivals and still lacks bytes.
RAN_AHEAD: Final = (
    "before arriving for the next phase, wait until this one is over and its slot is empty, with a parity that flips each "
    "time the ring wraps around; or "
)
FEWER_ARRIVALS: Final = (
    "initialise the mbarrier with the number of arrivals of each phase, or arrive less often"
)


class BarrierMisuse(Exception):
    """A rule of a barrier object was broken; the caller adds who and where."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


class Mbarrier:
    """An mbarrier object in shared memory.

    `phase` counts completed phases; `pending` is the number of arrivals the current phase still needs, `tx` its
    tx-count (signed: bytes may arrive before they are expected).
    """

    __slots__ = (
        "address",
        "arrivals",
        "cta",
        "expected",
        "history",
        "pending",
        "phase",
        "tx",
        "used",
        "waiters",
    )

    def __init__(self, cta: Cta, address: int, count: int) -> None:
        self.cta = cta
        self.address = address
        self.expected = count
        self.pending = count
        self.tx = 0
        self.phase = 0
        self.used = False
        self.waiters: list[Any] = []
        # (phase, what, who, line, count) of the current phase and the one before, for the story of a deadlock.
        self.history: list[tuple[int, str, Any, int, int]] = []
        self.arrivals = 0

    @property
    def name(self) -> str:
        """`mbarrier 0x...` with the offset in shared memory."""
        return f"mbarrier {self.address:#x}"

    def note(self, what: str, who: Any, line: int, count: int) -> None:
        """Remember an operation for the deadlock story."""
        history = self.history
        if history and what == "complete_tx":
            phase, last, _, at, so_far = history[-1]
            if (phase, last, at) == (self.phase, what, line):
                history[-1] = (phase, what, who, line, so_far + count)
                return
        history.append((self.phase, what, who, line, count))
        if len(history) > 64:
            del history[:32]

    def expect(self, count_bytes: int) -> None:
        """Raise the tx-count of the current phase."""
        self.used = True
        self.tx += count_bytes
        self._check_tx()

    def complete(self, count_bytes: int) -> bool:
        """Lower the tx-count; return whether the phase completed."""
        self.tx -= count_bytes
        self._check_tx()
        return self.maybe_complete()

    def arrive(self, count: int, drop: bool = False) -> bool:
        """Count arrivals; return whether the phase completed."""
        self.used = True
        if count > self.pending:
            raise BarrierMisuse(
                f"{count} arrival{'' if count == 1 else 's'} on {self.name}, but phase {self.phase} needs only "
                f"{self.pending} more of {self.expected}",
                (RAN_AHEAD if self.expected and not self.pending else "") + FEWER_ARRIVALS,
            )
        self.pending -= count
        if drop:
            self.expected -= count
        return self.maybe_complete()

    def add_pending(self, count: int) -> None:
        """Add pending arrivals to the current phase (cp.async.mbarrier.arrive without .noinc)."""
        self.pending += count

    def parity_done(self, parity: int) -> bool:
        """Whether the phase with this parity has completed: true for the phase before the current one."""
        return (self.phase & 1) != (parity & 1)

    def _check_tx(self) -> None:
        if not -TX_LIMIT <= self.tx <= TX_LIMIT:
            raise BarrierMisuse(
                f"the tx-count of {self.name} is {self.tx}, outside -{TX_LIMIT}..{TX_LIMIT}",
                "expect at most 1 MiB - 1 bytes a phase",
            )

    def maybe_complete(self) -> bool:
        """Complete the phase when nothing is missing; return whether it did."""
        if self.pending == 0 and self.tx == 0:
            self.phase += 1
            self.pending = self.expected
            return True
        return False


class NamedBarrier:
    """One of the 16 barriers of a CTA.

    Warps arrive as a whole: `arrived` counts 32 threads for each, whether lanes of it have exited or not; `partial` holds
    the lanes of warps of which some are still to come.  `count` is the number of threads the barrier waits for; None: all
    warps that have not exited.
    """

    __slots__ = ("arrived", "count", "number", "partial", "parties", "red", "waiters")

    def __init__(self, number: int) -> None:
        self.number = number
        self.arrived = 0
        self.count: int | None = None
        self.partial: dict[int, int] = {}
        self.waiters: list[Any] = []
        self.parties: list[tuple[Any, int]] = []
        self.red: list[Any] = []

    @property
    def is_idle(self) -> bool:
        """Whether nobody has arrived since the last use."""
        return not self.arrived and not self.partial

    def needed(self, cta: Cta) -> int:
        """Return how many threads it waits for, in whole warps."""
        return 32 * cta.live_warps if self.count is None else self.count

    def enter(self, warp: int, lanes: int, live: int) -> None:
        """Let lanes of a warp arrive; the warp has arrived when its last live lane has.

        Raises: BarrierMisuse: a lane is here already.
        """
        here = self.partial.get(warp, 0)
        if here & lanes:
            raise BarrierMisuse(
                f"lanes {here & lanes:#x} of warp {warp} arrive twice on barrier {self.number} before the rest of the warp",
                "all lanes of a warp take part in each use of a barrier",
            )
        here |= lanes
        if here & live == live:
            self.partial.pop(warp, None)
            self.arrived += 32
        else:
            self.partial[warp] = here

    def reset(self) -> None:
        """Make the barrier ready for its next use."""
        self.arrived = 0
        self.count = None
        self.partial = {}
        self.waiters = []
        self.parties = []
        self.red = []


class ClusterBarrier:
    """The hardware barrier of a cluster: each thread arrives once, then waits."""

    __slots__ = ("arrived", "cluster", "phase", "waiters")

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.phase = 0
        self.arrived = 0
        self.waiters: list[Any] = []

    @property
    def expected(self) -> int:
        """Threads of the cluster that have not exited; one that arrives and exits is not waited for, nor counted."""
        return sum(cta.live for cta in self.cluster.ctas)
