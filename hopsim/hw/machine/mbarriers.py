"""mbarriers of a strand: init, arrive, expect_tx, waits, and arrivals that travel to another CTA.

The object itself, with phase, pending count and tx-count, is `barriers.Mbarrier`.

Source: PTX ISA 8.7 "mbarrier".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopsim.events import BarrierEvent
from hopsim.hw.machine.access_notes import first_of
from hopsim.hw.machine.barriers import COUNT_LIMIT, BarrierMisuse, Mbarrier
from hopsim.hw.machine.cta import Cta
from hopsim.hw.machine.memory import OFFSET_MASK, RANK_SHIFT
from hopsim.hw.machine.operations import Operation, place_of
from hopsim.hw.machine.sync import SyncOps
from hopsim.hw.machine.waiting import Wait
from hopsim.hw.machine.work import ArriveWork
from hopsim.isa.forms.form import BLOCKED
from hopsim.isa.values import Value, collapse, lanes

MBARRIER = 'PTX ISA 8.7, "mbarrier"'


class MbarrierOps(SyncOps):
    """What threads do with mbarriers."""

    peek = False

    def _shared_address(self, space: str, address: int) -> tuple[Cta, int]:
        """Return the CTA and offset of a shared or generic address."""
        found, plain = self.resolve(space, address)
        assert isinstance(plain, int)
        if found not in ("shared", "shared::cta", "shared::cluster"):
            raise self.fault(f"address {address:#x} is in {found} memory, expected shared")
        rank = plain >> RANK_SHIFT
        ctas = self.cta.cluster.ctas
        if rank >= len(ctas):
            raise self.fault(
                f"shared address {plain:#x} names CTA rank {rank}, but the cluster has {len(ctas)}"
            )
        return ctas[rank], plain & ((1 << RANK_SHIFT) - 1)

    def mbarrier_at(self, space: str, address: int) -> Mbarrier:
        """Return the mbarrier object at an address.

        Raises: MachineFault when there is none.
        """
        own = self.cta
        if space and address >> RANK_SHIFT == own.rank:
            cta, offset = own, address & OFFSET_MASK
        else:
            cta, offset = self._shared_address(space, address)
        barrier = cta.mbarriers.get(offset)
        if barrier is None:
            ended = cta.invalidated.get(offset)
            raise self.fault(
                f"there is no mbarrier at shared offset {offset:#x} of cta {cta.id_text}"
                + (f" after the mbarrier.inval at :{ended}" if ended else ""),
                f"let all who use it be through before :{ended}: pass a barrier in front of it"
                if ended
                else "mbarrier.init it first (and make the init visible to this thread)",
                'PTX ISA 8.7, "mbarrier.inval"' if ended else 'PTX ISA 8.7, "mbarrier.init"',
            )
        return barrier

    def _each(self, address: Value) -> list[tuple[int, int]]:
        """Return (address, threads) per distinct address, in lane order."""
        if isinstance(address, int):
            return [(address, self.lanes)]
        counts: dict[int, int] = {}
        for one in address.tolist():
            counts[one] = counts.get(one, 0) + 1
        return list(counts.items())

    def _lanes_at(self, address: Value, one: int) -> NDArray[np.int64]:
        """Return the threads whose address is `one`."""
        return self.tids if isinstance(address, int) else self.tids[address == one]

    def mbarrier_init(self, space: str, address: Value, count: Value) -> None:
        """mbarrier.init."""
        number = self._uniform(count, "mbarrier count")
        if not 1 <= number <= COUNT_LIMIT:
            raise self.fault(f"mbarrier count {number} is outside 1..{COUNT_LIMIT}")
        for one, _ in self._each(address):
            cta, offset = self._shared_address(space, one)
            if offset % 8:
                raise self.fault(f"mbarrier address {one:#x} is not aligned to 8 bytes")
            if offset + 8 > cta.shared.size:
                raise self.fault(
                    f"mbarrier address {one:#x} is outside shared memory ({cta.shared.size} bytes)"
                )
            self._nobody_waits(cta.mbarriers.get(offset), "mbarrier.init")
            cta.mbarriers[offset] = Mbarrier(cta, offset, number)
            cta.shared.mark(offset, offset + 8)
            self._mbarrier_event(
                "init", cta.mbarriers[offset], number, tids=self._lanes_at(address, one)
            )
        self.machine.version += 1

    def mbarrier_inval(self, space: str, address: Value) -> None:
        """mbarrier.inval."""
        for one, _ in self._each(address):
            barrier = self.mbarrier_at(space, one)
            self._nobody_waits(barrier, "mbarrier.inval")
            self._mbarrier_event("inval", barrier, 0, tids=self._lanes_at(address, one))
            del barrier.cta.mbarriers[barrier.address]
            barrier.cta.invalidated[barrier.address] = self.line
        self.machine.version += 1

    def _nobody_waits(self, barrier: Mbarrier | None, what: str) -> None:
        if barrier is not None and barrier.waiters:
            raise self.fault(
                f"{what} of {barrier.name} while {barrier.waiters[0].describe()} waits on it",
                "let everybody who waits on it pass first", f'PTX ISA 8.7, "{what}"',
            )  # fmt: skip

    def mbarrier_arrive(
        self,
        space: str,
        address: Value,
        count: Value | None,
        expect: Value | None,
        drop: bool,
        sem: str,
        scope: str,
        no_complete: bool = False,
    ) -> Any:
        """mbarrier.arrive and its kin; return the state word of the phase before the arrival."""
        times = 1 if count is None else self._uniform(count, "the arrive count")
        if not 1 <= times <= COUNT_LIMIT:
            raise self.fault(
                f"an arrive count of {times}: expected 1 to {COUNT_LIMIT}", source=MBARRIER
            )
        bytes_ = 0 if expect is None else self._uniform(expect, "the number of expected bytes")
        alone = self.lanes == 1
        states: Any = 0 if alone else np.zeros(self.lanes, np.uint64)
        for one, threads in [(first_of(address), 1)] if alone else self._each(address):
            barrier = self.mbarrier_at(space, one)
            tids = self.tids
            if alone:
                states = _state_word(barrier)
            else:
                here = slice(None) if isinstance(address, int) else address == one
                tids = tids[here]
                # Lanes arrive one after another: each sees what those before it left pending.
                states[here] = _state_word(barrier) - times * np.arange(threads)
            total = times * threads
            if no_complete and barrier.pending == total and barrier.tx == 0:
                raise self.fault(
                    f"mbarrier.arrive.noComplete is the last arrival of phase {barrier.phase} of {barrier.name}",
                    "the arrival that completes a phase must not say .noComplete", MBARRIER,
                )  # fmt: skip
            if barrier.cta is not self.cta:
                self._remote_arrive(barrier, total, bytes_ * threads, drop, sem, scope, tids)
            else:
                self._arrive(barrier, total, bytes_ * threads, drop, sem, scope, tids)
        return states if alone else collapse(states)

    def _arrive(
        self,
        barrier: Mbarrier,
        count: int,
        expect: int,
        drop: bool,
        sem: str,
        scope: str,
        tids: NDArray[np.int64],
    ) -> None:
        who = (self.identity, self.line)
        try:
            complete = self._count(barrier, who, count, expect, drop, sem, scope, tids)
        except BarrierMisuse as misuse:
            raise self.fault(misuse.what, misuse.hint, 'PTX ISA 8.7, "mbarrier"') from None
        self.machine.version += 1
        if complete:
            self._phase(barrier)

    def _remote_arrive(
        self,
        barrier: Mbarrier,
        count: int,
        expect: int,
        drop: bool,
        sem: str,
        scope: str,
        tids: NDArray[np.int64],
    ) -> None:
        """An arrive on a peer's mbarrier travels through the SM-to-SM network."""

        def land() -> None:
            number = operation.number
            try:
                complete = self._count(barrier, who, count, expect, drop, sem, scope, tids, number)
            except BarrierMisuse as misuse:
                raise self.machine.fault(misuse.what, where, misuse.hint) from None
            if complete:
                self._phase(barrier)

        who, where = (self.identity, self.line), self.where()
        operation = Operation(
            self.machine, "remote arrive", "mbarrier", [land], cta=self.cta, issuer=self, line=self.line,
            queue=(self.cta.index, "remote", int(self.tids[0])), work=ArriveWork(self.cta, barrier.cta),
        )  # fmt: skip
        self._mbarrier_event(
            "send", barrier, count, sem or "release", scope or "cta", operation.number, tids
        )
        self.machine.issue(operation)

    def _count(
        self,
        barrier: Mbarrier,
        who: tuple[Any, int],
        count: int,
        expect: int,
        drop: bool,
        sem: str,
        scope: str,
        tids: NDArray[np.int64],
        number: int = -1,
    ) -> bool:
        """Expect bytes, then arrive; return whether that completes the phase.

        Args:
            who: the strand, and the PTX line where it arrived.
            number: of the operation by which a remote arrival came.
        Raises: BarrierMisuse.
        """
        if expect:
            barrier.note("expect_tx", *who, expect)
            self._mbarrier_event("expect_tx", barrier, expect, sem, scope, number, tids)
            barrier.expect(expect)
        barrier.note("arrive" if number < 0 else "remote arrive", *who, count)
        how = "drop" if drop else "arrive"
        self._mbarrier_event(how, barrier, count, sem or "release", scope or "cta", number, tids)
        return barrier.arrive(count, drop)

    def mbarrier_expect_tx(
        self, space: str, address: Value, count_bytes: Value, sem: str, scope: str
    ) -> None:
        """mbarrier.expect_tx."""
        amount = self._uniform(count_bytes, "expected bytes")
        for one, threads in self._each(address):
            barrier = self.mbarrier_at(space, one)
            tids = self._lanes_at(address, one)
            self._mbarrier_event("expect_tx", barrier, amount * threads, sem, scope, tids=tids)
            barrier.note("expect_tx", self.identity, self.line, amount * threads)
            try:
                barrier.expect(amount * threads)
            except BarrierMisuse as misuse:
                raise self.fault(misuse.what, misuse.hint) from None
            # All arrivals and these bytes may have come before.  Source: recorded on an H100, tests/silicon/probes.
            if barrier.maybe_complete():
                self._phase(barrier)
        self.machine.version += 1

    def mbarrier_complete_tx(self, space: str, address: Value, count_bytes: Value) -> None:
        """mbarrier.complete_tx: simulate the completion of bytes."""
        amount = self._uniform(count_bytes, "completed bytes")
        for one, threads in self._each(address):
            self.complete_tx(self.mbarrier_at(space, one), amount * threads, self.line, -1)
        self.machine.version += 1

    def complete_tx(self, barrier: Mbarrier, count_bytes: int, line: int, operation: int) -> None:
        """Count bytes that arrived by an operation issued at `line`; wake waiters when the phase completes."""
        barrier.note("complete_tx", self.identity, line, count_bytes)
        self._mbarrier_event("complete_tx", barrier, count_bytes, op=operation)
        try:
            complete = barrier.complete(count_bytes)
        except BarrierMisuse as misuse:
            # The issuer may be elsewhere by now.
            where = place_of(self.machine.path, line, self.identity)
            raise self.machine.fault(misuse.what, where, misuse.hint) from None
        if complete:
            self._phase(barrier)

    def _phase(self, barrier: Mbarrier) -> None:
        self._mbarrier_event("phase", barrier, barrier.phase)
        self.machine.phase_completed(barrier)

    def mbarrier_test(
        self,
        space: str,
        address: Value,
        parity: Value | None,
        state: Value | None,
        sem: str,
        scope: str,
        may_wait: bool,
    ) -> Any:
        """mbarrier.test_wait and try_wait; return the predicate, or BLOCKED while try_wait may still wait."""
        if isinstance(address, np.ndarray) or isinstance(
            parity if state is None else state, np.ndarray
        ):
            # What counts of a state word is its phase, of a parity its low bit: mostly the same in all lanes.
            address = collapse(address) if isinstance(address, np.ndarray) else address
            if (
                isinstance(state, np.ndarray)
                and (state >> np.uint64(32) == state[0] >> np.uint64(32)).all()
            ):
                state = int(state[0])
            if isinstance(parity, np.ndarray):
                parity = collapse(parity & np.uint32(1))
            if isinstance(address, np.ndarray) or isinstance(
                parity if state is None else state, np.ndarray
            ):
                if may_wait and self.part_warps(address, parity, state) is BLOCKED:
                    return BLOCKED
                return self._test_lanes(space, address, parity, state, sem, scope)
        barrier = self._own_mbarrier(space, first_of(address))
        if _is_over(barrier, parity, state):
            barrier.used = True
            self._mbarrier_event("wait", barrier, 0, sem or "acquire", scope or "cta")
            self.peek = False
            return True
        if not may_wait or self.peek:
            self.peek = False
            self._mbarrier_event("peek", barrier, 0, sem or "acquire", scope or "cta")
            return False
        barrier.waiters.append(self)
        self.block(Wait("mbarrier", barrier, parity if state is None else state))
        return BLOCKED

    def _own_mbarrier(self, space: str, address: int) -> Mbarrier:
        barrier = self.mbarrier_at(space, address)
        if barrier.cta is not self.cta:
            raise self.fault(
                f"wait on {barrier.name} of another CTA {barrier.cta.id_text}",
                "only arrive on remote mbarriers; wait on the one in your own CTA",
                'PTX ISA 8.7, "mbarrier.test_wait"',
            )
        return barrier

    def _test_lanes(
        self,
        space: str,
        address: Value,
        parity: Value | None,
        state: Value | None,
        sem: str,
        scope: str,
    ) -> Any:
        """Lanes that test different barriers get an answer each, without waiting."""
        spread = lanes(address, self.lanes, 64).tolist()
        known = parity if state is None else state
        assert known is not None
        values = lanes(known, self.lanes, 64).tolist()
        answers: list[bool] = []
        for lane, (one, value) in enumerate(zip(spread, values, strict=True)):
            barrier = self._own_mbarrier(space, one)
            over = _is_over(
                barrier, value if state is None else None, value if state is not None else None
            )
            how = "wait" if over else "peek"
            tids = self.tids[lane : lane + 1]
            self._mbarrier_event(how, barrier, 0, sem or "acquire", scope or "cta", tids=tids)
            answers.append(over)
        return np.array(answers, np.bool_)

    def _mbarrier_event(
        self, what: str, barrier: Mbarrier, count: int, sem: str = "", scope: str = "", op: int = -1,
        tids: NDArray[np.int64] | None = None,
    ) -> None:  # fmt: skip
        if self.machine.probe.barrier:
            identity = (barrier.cta.index, barrier.address)
            agent = self.agent if tids is None else (self.cta.index, tids)
            event = BarrierEvent(
                agent, self.line, "mbarrier", what, identity, barrier.phase, count, sem, scope, op
            )
            for listen in self.machine.probe.barrier:
                listen(event)


def _state_word(barrier: Mbarrier) -> int:
    """hopsim's opaque state: phase in the upper half, pending count in the lower."""
    return (barrier.phase & 0xFFFFFFFF) << 32 | barrier.pending


def _is_over(barrier: Mbarrier, parity: Value | None, state: Value | None) -> bool:
    if state is not None:
        assert isinstance(state, int)
        # A state tells the parity of its phase only.  Source: recorded on an H100, tests/silicon/probes.
        return barrier.parity_done(state >> 32)
    assert isinstance(parity, int)
    return barrier.parity_done(parity)
