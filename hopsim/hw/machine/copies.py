"""cp.async and its groups, st.async and red.async.

Source: PTX ISA 8.7 "cp.async", "cp.async.commit_group", "cp.async.wait_group", "st.async".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopsim.events import FlightEvent, Touch
from hopsim.hw.machine.barriers import BarrierMisuse
from hopsim.hw.machine.copy_groups import Copy, GroupLog
from hopsim.hw.machine.memory import OFFSET_MASK, RANK_SHIFT, Region, RegionFault
from hopsim.hw.machine.operations import Operation
from hopsim.hw.machine.waiting import Wait
from hopsim.hw.machine.warp import WarpOps
from hopsim.hw.machine.work import CopyWork
from hopsim.isa.forms.form import BLOCKED
from hopsim.isa.values import Value, lanes

SOURCE_HINT = "check the bounds or the mask of the copy"


class CopyOps(WarpOps):
    """Copies tracked by thread groups or by a peer's mbarrier."""

    def group_log(self, kind: str) -> GroupLog:
        """Return the CTA's log of `cp.async` or `bulk` groups."""
        logs = self.cta.async_groups
        log = logs.get(kind)
        if log is None:
            log = logs[kind] = GroupLog()
        return log

    @property
    def thread_mask(self) -> int:
        """The threads of this strand as a bit mask."""
        first, last = int(self.tids[0]), int(self.tids[-1])
        if last - first + 1 == self.lanes:
            return ((1 << self.lanes) - 1) << first
        mask = 0
        for tid in self.tids.tolist():
            mask |= 1 << tid
        return mask

    def track(self, kind: str, operation: Operation) -> Copy:
        """Enter an operation of this strand's threads into the log of its kind."""
        copy = Copy(self.thread_mask, operation)
        self.group_log(kind).open.append(copy)
        return copy

    def copy_progress(self, kind: str, copy: Copy, landed: bool) -> None:
        """Note that a copy has read its source, or landed, and let waiting threads look."""
        copy.read = True
        copy.landed = copy.landed or landed
        log = self.group_log(kind)
        waiters, log.waiters = log.waiters, []
        for strand in waiters:
            self.machine.wake(strand)
        log.prune()

    def wait_for_groups(self, kind: str, newest: int | None, reading: bool) -> Any:
        """Block until at most `newest` groups of this strand's threads are pending."""
        log = self.group_log(kind)
        if log.pending_beyond(self.thread_mask, newest, reading):
            log.waiters.append(self)
            self.block(Wait(f"{kind} group", log, (newest, reading)))
            return BLOCKED
        return None

    # -- cp.async ----------------------------------------------------------------------------------

    def cp_async(
        self,
        b: Value,
        a: Value,
        count_bytes: int,
        source_bytes: Value | None,
        fetch_bytes: int,
        through_l1: bool,
    ) -> None:
        """cp.async: each lane copies `count_bytes` from global address a to shared address b.

        Args:
            fetch_bytes: what a miss brings into L2 at least.
            through_l1: whether what comes is in L1 first (`.ca`).
        """
        space, target = self.resolve("shared::cta", b)
        _, source = self.resolve("global", a)
        # (Nobody changes the array of a register.)
        targets = lanes(target, self.lanes, 64).astype(np.uint64, copy=False)
        sources = lanes(source, self.lanes, 64).astype(np.uint64, copy=False)
        asked = sources
        if source_bytes is None:
            source_bytes = count_bytes
        else:
            largest = source_bytes if isinstance(source_bytes, int) else int(source_bytes.max())
            if largest > count_bytes:
                raise self.fault(f"cp.async: source size {largest} is larger than {count_bytes}")
            if not isinstance(source_bytes, int):
                asked = sources[source_bytes > 0]
            elif not source_bytes:
                asked = sources[:0]
        sizes = lanes(source_bytes, self.lanes, 32)
        region = self.region(space, targets)
        try:
            region.check(targets, count_bytes, count_bytes)
        except RegionFault as fault:
            raise self.fault(
                f"cp.async to shared: {fault.what}",
                positions=np.flatnonzero(targets == fault.address),
                kind=fault.kind,
            ) from None
        copy: Copy
        line = self.line
        parts, where = None, ""
        if self.machine.values:
            parts, where = self._sources(sources, sizes, count_bytes), self.where()

        def land() -> None:
            if parts is not None:
                try:
                    _copy_lanes(region, targets, sources, sizes, parts, count_bytes)
                except RegionFault as fault:
                    raise self.machine.fault(
                        f"cp.async from global: {fault.what}", where, SOURCE_HINT, fault.kind
                    ) from None
            elif region.written is not None:
                for start in (targets - np.uint64(region.base)).tolist():
                    region.mark(start, start + count_bytes, False)
            self.copy_progress("cp.async", copy, True)

        operation = Operation(
            self.machine, "cp.async", "cp_async", [land], cta=self.cta, issuer=self, line=line,
            work=CopyWork("load", asked, count_bytes, self.lanes, (self.cta,), fetch_bytes, through_l1),
        )  # fmt: skip
        copy = self.track("cp.async", operation)
        if self.machine.probe.flight:
            to = (targets & np.uint64(OFFSET_MASK)).astype(np.int64)
            write = Touch(
                "w",
                "generic",
                "shared",
                self.cta.index,
                int(to.min()),
                int(to.max()) + count_bytes,
                to,
                count_bytes,
            )
            read = Touch(
                "r", "generic", "global", -1, int(sources.min()), int(sources.max()) + count_bytes,
                sources.astype(np.int64), count_bytes,
            )  # fmt: skip
            self.tell_flight(operation, "cp.async", (read, write) if sizes.all() else (write,))
        self.machine.issue(operation)

    def _sources(
        self, sources: NDArray[np.uint64], sizes: NDArray[Any], count_bytes: int
    ) -> list[tuple[Region, NDArray[np.int64]]]:
        """Group the lanes that bring data by the allocation they read from, and check bounds and alignment."""
        memory = self.machine.memory
        bringing = np.flatnonzero(sizes)
        if not len(bringing):
            return []
        try:
            region = memory.find(int(sources[bringing[0]]))
            last = int(sources[bringing].max()) + count_bytes
            if (
                (sizes == count_bytes).all()
                and last <= region.base + region.size
                and sources.min() >= region.base
            ):
                region.check(sources, count_bytes, count_bytes)
                return [(region, bringing)]
            groups: dict[int, tuple[Region, list[int]]] = {}
            for lane in bringing.tolist():
                address = int(sources[lane])
                region = memory.find(address)
                region.check(address, int(sizes[lane]), 1)
                if address % count_bytes:
                    raise RegionFault(
                        f"address {address:#x} is not aligned to {count_bytes} bytes",
                        address,
                        "misaligned",
                    )
                groups.setdefault(region.base, (region, []))[1].append(lane)
        except RegionFault as fault:
            raise self.fault(
                f"cp.async from global: {fault.what}",
                SOURCE_HINT,
                positions=np.flatnonzero((sources == fault.address) & (sizes > 0)),
                kind=fault.kind,
            ) from None
        return [(region, np.array(lanes_there)) for region, lanes_there in groups.values()]

    def tell_flight(
        self, operation: Operation, tracked: str, touches: tuple[Touch, ...], detail: Any = None
    ) -> None:
        """Tell observers what an operation that is about to be issued will touch."""
        event = FlightEvent(
            self.agent, self.line, operation.kind, operation.number, tracked, touches, detail
        )
        for listen in self.machine.probe.flight:
            listen(event)

    def cp_async_commit(self) -> None:
        """cp.async.commit_group."""
        self.group_log("cp.async").commit(self.thread_mask)
        self._sync_event("cp.async.commit_group", None)

    def cp_async_wait(self, newest: int | None) -> Any:
        """cp.async.wait_group, or wait_all for None."""
        blocked = self.wait_for_groups("cp.async", newest, False)
        if blocked is None:
            self._sync_event("cp.async.wait_group", newest)
        return blocked

    def cp_async_mbarrier(self, space: str, address: Value, no_increment: bool) -> None:
        """cp.async.mbarrier.arrive: an arrival that follows this strand's earlier copies."""
        mine = self.thread_mask
        log = self.group_log("cp.async")
        earlier = [copy for copy in log.open if copy.threads & mine]
        earlier += [copy for group in log.groups for copy in group.copies if copy.threads & mine]
        for one, threads in self._each(address):
            barrier = self.mbarrier_at(space, one)
            if not no_increment:
                barrier.add_pending(threads)
                self._mbarrier_event("add_pending", barrier, threads)
            who, line, where = self.identity, self.line, self.where()

            landing: list[Operation] = []

            def land(
                barrier: Any = barrier,
                threads: int = threads,
                landing: list[Operation] = landing,
                who: Any = who,
                line: int = line,
                where: str = where,
            ) -> None:
                barrier.note("cp.async arrive", who, line, threads)
                self._mbarrier_event(
                    "arrive", barrier, threads, "release", "cta", landing[0].number
                )
                try:
                    complete = barrier.arrive(threads)
                except BarrierMisuse as misuse:
                    raise self.machine.fault(misuse.what, where, misuse.hint) from None
                if complete:
                    self._phase(barrier)

            operation = Operation(
                self.machine, "cp.async arrive", "mbarrier", [land], cta=self.cta, issuer=self, line=line,
            )  # fmt: skip
            operation.after = [copy.operation for copy in earlier if not copy.landed]
            landing.append(operation)
            if self.machine.probe.flight:
                numbers = tuple(copy.operation.number for copy in earlier)
                event = FlightEvent(
                    (self.cta.index, self._lanes_at(address, one)), line, operation.kind, operation.number, "", (),
                    (numbers, (barrier.cta.index, barrier.address)),
                )  # fmt: skip
                for listen in self.machine.probe.flight:
                    listen(event)
            self.machine.issue(operation)

    # -- st.async, red.async -----------------------------------------------------------------------

    def async_store(
        self,
        address: Value,
        barrier_address: Value,
        word: int,
        values: list[Any],
        reduce: Callable[[int, int], int] | None,
    ) -> None:
        """st.async and red.async: words into a peer's shared memory, counted on the peer's mbarrier."""
        targets = lanes(address, self.lanes, 64).tolist()
        barriers = lanes(barrier_address, self.lanes, 64).tolist()
        known = all(value is not None for value in values)
        columns = [lanes(value, self.lanes, word * 8).tolist() for value in values] if known else []
        size = word * len(values)
        line = self.line
        kind = "st.async" if reduce is None else "red.async"
        for lane, (target, where) in enumerate(zip(targets, barriers, strict=True)):
            region = self.shared_region("shared::cluster", target)
            barrier = self.mbarrier_at("shared::cluster", where)
            try:
                offset = region.check(target, size, size)
            except RegionFault as fault:
                raise self.fault(f"{kind}: {fault.what}", kind=fault.kind) from None
            assert isinstance(offset, int)
            if region is not barrier.cta.shared:
                raise self.fault(
                    f"{kind} writes to CTA rank {target >> RANK_SHIFT}, but its mbarrier is in CTA rank "
                    f"{barrier.cta.rank}", "map both addresses to the same CTA", 'PTX ISA 8.7, "st.async"',
                )  # fmt: skip
            words = [column[lane] for column in columns]
            landing: list[Operation] = []

            def land(
                region: Any = region, offset: int = offset, words: list[int] = words, barrier: Any = barrier,
                landing: list[Operation] = landing,
            ) -> None:  # fmt: skip
                view = region.views[word]
                for k, value in enumerate(words):
                    index = offset // word + k
                    view[index] = value if reduce is None else reduce(int(view[index]), value)
                if reduce is None or not known:
                    region.mark(offset, offset + size, known)
                self.complete_tx(barrier, size, line, landing[0].number)

            operation = Operation(
                self.machine, kind, "cp_async", [land], cta=self.cta, issuer=self, line=self.line,
                work=CopyWork("peer", target, size, 1, (barrier.cta,)),
            )  # fmt: skip
            landing.append(operation)
            if self.machine.probe.flight:
                owner: int = barrier.cta.index  # the same CTA, as tested above
                touch = Touch(
                    "w" if reduce is None else "a", "generic", "shared", owner, offset, offset + size,
                    barrier=(barrier.cta.index, barrier.address),
                )  # fmt: skip
                event = FlightEvent(
                    (self.cta.index, self.tids[lane : lane + 1]),
                    line,
                    kind,
                    operation.number,
                    "mbarrier",
                    (touch,),
                )
                for listen in self.machine.probe.flight:
                    listen(event)
            self.machine.issue(operation)


def _copy_lanes(
    region: Region,
    targets: NDArray[np.uint64],
    sources: NDArray[np.uint64],
    sizes: NDArray[Any],
    parts: list[tuple[Region, NDArray[np.int64]]],
    count_bytes: int,
) -> None:
    """Copy the bytes of each lane; what a lane does not bring is zero."""
    starts = targets.astype(np.int64) - region.base
    word = min(count_bytes, 8)
    view = region.views[word]
    if (sizes != count_bytes).any():
        for start in starts.tolist():
            region.data[start : start + count_bytes] = 0
    for origin, lanes_there in parts:
        whole = sizes[lanes_there] == count_bytes
        chosen = lanes_there[whole]
        if len(chosen):
            index = starts[chosen] // word
            for k, column in enumerate(origin.load(sources[chosen], word, count_bytes // word)):
                view[index + k] = column
        for lane in lanes_there[~whole].tolist():
            start, first, size = (
                int(starts[lane]),
                int(sources[lane]) - origin.base,
                int(sizes[lane]),
            )
            origin.check_written(first, first + size)
            region.data[start : start + size] = origin.data[first : first + size]
    if region.written is not None:
        for start in starts.tolist():
            region.mark(start, start + count_bytes)
