"""Plain bulk copies and reductions of the TMA unit, and the groups of bulk stores.

A load reads global and writes shared memory when it lands, then counts its bytes on the mbarrier of each destination.
A store has two stages: it reads shared memory (then `.read` waits end), later writes global memory.

Source: PTX ISA 8.7 "Data Movement and Conversion Instructions: Bulk copy".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hopsim.events import Touch
from hopsim.hw.machine.barriers import Mbarrier
from hopsim.hw.machine.copies import CopyOps
from hopsim.hw.machine.copy_groups import Copy
from hopsim.hw.machine.cta import Cta
from hopsim.hw.machine.memory import OFFSET_MASK, RANK_SHIFT, Region, RegionFault
from hopsim.hw.machine.operations import Operation
from hopsim.hw.machine.work import CopyWork
from hopsim.isa.program.codegen import pick
from hopsim.isa.types import ScalarType
from hopsim.isa.values import Value
from hopsim.layout.reduction import combine
from hopsim.layout.tensormap_types import TensorDataType

BULK = 'PTX ISA 8.7, "cp.async.bulk"'
TENSOR = 'PTX ISA 8.7, "cp.async.bulk.tensor"'
REDUCE_TYPES = {
    "u32": TensorDataType.UINT32, "s32": TensorDataType.INT32, "u64": TensorDataType.UINT64,
    "s64": TensorDataType.INT64, "b32": TensorDataType.UINT32, "b64": TensorDataType.UINT64,
    "f16": TensorDataType.FLOAT16, "bf16": TensorDataType.BFLOAT16, "f32": TensorDataType.FLOAT32,
    "f64": TensorDataType.FLOAT64,
}  # fmt: skip


class BulkOps(CopyOps):
    """Bulk copies without a tensor map, and what those with one need too."""

    # -- operands ----------------------------------------------------------------------------------

    def _destinations(self, address: int, mask: int | None, space: str) -> list[tuple[Cta, int]]:
        """Return (CTA, shared offset) of each destination of a load."""
        offset = address & OFFSET_MASK
        ctas = self.cta.cluster.ctas
        if mask is None:
            rank = address >> RANK_SHIFT
            if rank >= len(ctas):
                raise self.fault(
                    f"the destination {address:#x} names CTA rank {rank} of {len(ctas)}",
                    source=TENSOR,
                )
            if space == "shared::cta" and rank != self.cta.rank:
                raise self.fault(
                    "a .shared::cta destination in another CTA", "use .shared::cluster", TENSOR
                )
            return [(ctas[rank], offset)]
        if mask >> len(ctas) or mask == 0:
            raise self.fault(
                f"multicast mask {mask:#x} for a cluster of {len(ctas)} CTAs", source=TENSOR
            )
        return [(cta, offset) for cta in ctas if mask >> cta.rank & 1]

    def _each_lane(self, method: str, *values: Any) -> None:
        """Issue a bulk instruction once for each lane that executes it, with the lane's own operands."""
        if self.lanes == 1:
            getattr(self, method)(*values)
            return
        for lane in range(self.lanes):
            chosen = np.zeros(self.lanes, np.bool_)
            chosen[lane] = True
            view, k = self.choose(chosen)
            getattr(view, method)(*(_of_lane(value, k) for value in values))

    def _each_distinct(self, method: str, *values: Any) -> None:
        """Issue a store or a prefetch once for each set of equal operands, for all lanes that have them.

        It does the same however often it is done, and ptxas loops over what differs between lanes, not over lanes: of
        operands that are the same in a warp it makes one UTMASTG (DEVIATIONS D-ONCE).  Source: machine code of ptxas 13.0.
        """
        differing: list[NDArray[Any]] = [
            one for one in _operands(values) if isinstance(one, np.ndarray)
        ]
        if not differing:
            getattr(self, method)(*values)
            return
        rows = np.stack([one.astype(np.uint64) for one in differing], axis=1)
        left = np.ones(self.lanes, np.bool_)
        while left.any():
            first = int(np.argmax(left))
            chosen = left & (rows == rows[first]).all(axis=1)
            left &= ~chosen
            if chosen.all():
                self.settle()
            view, _ = self.choose(chosen)
            getattr(view, method)(*(_of_lane(value, first) for value in values))

    def _barriers(
        self, address: Value, destinations: list[tuple[Cta, int]], multicast: bool
    ) -> list[Mbarrier]:
        where = self._uniform(address, "the mbarrier address")
        if not multicast:
            return [self.mbarrier_at("shared::cluster", where)]
        offset = where & OFFSET_MASK
        return [
            self.mbarrier_at("shared::cluster", (cta.rank << RANK_SHIFT) | offset)
            for cta, _ in destinations
        ]

    def complete_tx_of(self, barrier: Mbarrier, count_bytes: int, operation: Operation) -> None:
        """Count the bytes of an operation that landed."""
        self.complete_tx(barrier, count_bytes, operation.line, operation.number)

    # -- plain bulk copies -------------------------------------------------------------------------

    def _bulk_size(self, count_bytes: Value, *addresses: int) -> int:
        size = self._uniform(count_bytes, "the size of a bulk copy")
        if size % 16 or size == 0:
            raise self.fault(
                f"a bulk copy of {size} bytes: the size must be a positive multiple of 16",
                "copy whole 16 bytes, and what is left over by plain loads and stores",
                BULK,
            )
        for address in addresses:
            if address % 16:
                raise self.fault(
                    f"the address {address:#x} of a bulk copy is not aligned to 16 bytes",
                    "align the array (.align 16; in CUDA alignas(16)), and begin at a multiple of 16 bytes",
                    BULK,
                )
        return size

    def _global(self, address: int, size: int) -> Region:
        try:
            region = self.machine.memory.find(address)
            region.check(address, size, 1)
        except RegionFault as fault:
            raise self.fault(
                f"bulk copy: {fault.what}", "check address and size", BULK, kind=fault.kind
            ) from None
        return region

    def _shared_bytes(self, cta: Cta, offset: int, size: int) -> None:
        if offset + size > cta.shared.size:
            raise self.fault(
                f"shared bytes {offset:#x}..{offset + size - 1:#x} end beyond the {cta.shared.size} of shared memory",
                source=BULK,
            )

    def bulk_load(
        self,
        shared: Value,
        source: Value,
        count_bytes: Value,
        barrier: Value,
        mask: Value | None,
        space: str,
    ) -> None:
        """cp.async.bulk from global to shared memory."""
        self._each_lane("_bulk_load", shared, source, count_bytes, barrier, mask, space)

    def _bulk_load(
        self,
        shared: Value,
        source: Value,
        count_bytes: Value,
        barrier: Value,
        mask: Value | None,
        space: str,
    ) -> None:
        target = self._uniform(shared, "the shared destination")
        origin = self._uniform(source, "the global source")
        size = self._bulk_size(count_bytes, target, origin)
        _, plain = self.resolve("shared::cluster", target)
        assert isinstance(plain, int)
        which = None if mask is None else self._uniform(mask, "the multicast mask")
        destinations = self._destinations(plain, which, space)
        barriers = self._barriers(barrier, destinations, which is not None)
        region = self._global(origin, size)
        first = origin - region.base
        for cta, offset in destinations:
            self._shared_bytes(cta, offset, size)
        machine = self.machine
        operation: Operation

        def land() -> None:
            for cta, offset in destinations:
                if machine.values:
                    cta.shared.data[offset : offset + size] = region.data[first : first + size]
                cta.shared.mark(offset, offset + size, machine.values)
            for one in barriers:
                self.complete_tx_of(one, size, operation)

        operation = Operation(
            machine, "bulk load", "tma", [land], cta=self.cta, issuer=self, line=self.line,
            work=CopyWork("load", origin, size, 1, tuple(cta for cta, _ in destinations)),
        )  # fmt: skip
        if machine.probe.flight:
            places = [
                run_of("w", cta, offset, size, barriers[min(k, len(barriers) - 1)])
                for k, (cta, offset) in enumerate(destinations)
            ]
            self.tell_flight(operation, "mbarrier", (run_of("r", None, origin, size), *places))
        machine.issue(operation)

    def bulk_peer(
        self,
        target: Value,
        source: Value,
        count_bytes: Value,
        barrier: Value,
        reduce: str = "",
        kind: ScalarType | None = None,
    ) -> None:
        """cp.async.bulk and cp.reduce.async.bulk from this CTA's shared memory into a peer's."""
        self._each_lane("_bulk_peer", target, source, count_bytes, barrier, reduce, kind)

    def _bulk_peer(
        self,
        target: Value,
        source: Value,
        count_bytes: Value,
        barrier: Value,
        reduce: str,
        kind: ScalarType | None,
    ) -> None:
        to = self._uniform(target, "the destination")
        origin = self._uniform(source, "the source")
        size = self._bulk_size(count_bytes, to, origin)
        _, plain = self.resolve("shared::cluster", to)
        assert isinstance(plain, int)
        peer, offset = self._destinations(plain, None, "shared::cluster")[0]
        first = origin & OFFSET_MASK
        self._shared_bytes(peer, offset, size)
        self._shared_bytes(self.cta, first, size)
        one = self.mbarrier_at("shared::cluster", self._uniform(barrier, "the mbarrier address"))
        machine, cta = self.machine, self.cta
        operation: Operation

        def land() -> None:
            into, data = peer.shared.data[offset : offset + size], cta.shared.data
            if machine.values and kind is not None:
                _reduce_run(into, data[first : first + size], reduce, REDUCE_TYPES[kind.name])
            elif machine.values:
                into[:] = data[first : first + size]
            if not (reduce and machine.values):
                # What a reduction adds to bytes that hold none is none either.
                peer.shared.mark(offset, offset + size, machine.values)
            self.complete_tx_of(one, size, operation)

        operation = Operation(
            machine, "bulk peer reduce" if reduce else "bulk peer copy", "tma", [land], cta=cta, issuer=self, line=self.line,
            work=CopyWork("peer", plain, size, 1, (peer,)),
        )  # fmt: skip
        if machine.probe.flight:
            self.tell_flight(
                operation,
                "mbarrier",
                (
                    run_of("r", cta, first, size, one),
                    run_of("a" if reduce else "w", peer, offset, size, one),
                ),
            )
        machine.issue(operation)

    def bulk_store(
        self, target: Value, shared: Value, count_bytes: Value, reduce: str, kind: ScalarType | None
    ) -> None:
        """cp.async.bulk and cp.reduce.async.bulk from shared to global memory."""
        each = self._each_lane if reduce else self._each_distinct
        each("_bulk_store", target, shared, count_bytes, reduce, kind)

    def _bulk_store(
        self, target: Value, shared: Value, count_bytes: Value, reduce: str, kind: ScalarType | None
    ) -> None:
        to = self._uniform(target, "the global destination")
        origin = self._uniform(shared, "the shared source") & OFFSET_MASK
        size = self._bulk_size(count_bytes, to, origin)
        self._shared_bytes(self.cta, origin, size)
        region = self._global(to, size)
        first = to - region.base
        machine, cta = self.machine, self.cta
        if machine.follows_bytes:
            machine.lost.add(region.base)
        copy: Copy
        staged: list[Any] = []
        where = self.where() if reduce else ""

        def read() -> None:
            if machine.values:
                staged.append(cta.shared.data[origin : origin + size].copy())
            self.copy_progress("bulk", copy, False)

        def write() -> None:
            if staged:
                data = staged.pop()
                if reduce:
                    assert kind is not None
                    self.check_reduced(region, [(first, first + size)], where)
                    _reduce_run(
                        region.data[first : first + size], data, reduce, REDUCE_TYPES[kind.name]
                    )
                else:
                    region.data[first : first + size] = data
                region.mark(first, first + size)
            self.copy_progress("bulk", copy, True)

        operation = Operation(
            machine, "bulk reduce" if reduce else "bulk store", "tma", [read, write], cta=cta, issuer=self,
            line=self.line, work=CopyWork("reduce" if reduce else "store", to, size, 1, (cta,)),
        )  # fmt: skip
        copy = self.track("bulk", operation)
        if machine.probe.flight:
            self.tell_flight(
                operation,
                "bulk",
                (run_of("r", cta, origin, size), run_of("a" if reduce else "w", None, to, size)),
            )
        machine.issue(operation)

    def check_reduced(self, region: Region, runs: Iterable[Sequence[int]], where: str) -> None:
        """Stop where bytes that a reduction adds to were never written; runs are relative to the base."""
        try:
            for start, stop in runs:
                region.check_written(start, stop)
        except RegionFault as fault:
            raise self.machine.fault(
                f"reduction into global: {fault.what}",
                where,
                "fill the array first, with zeros for sums",
                fault.kind,
            ) from None

    def bulk_prefetch(self, source: Value, count_bytes: Value) -> None:
        """cp.async.bulk.prefetch.L2: no effect on values."""
        self._each_distinct("_bulk_prefetch", source, count_bytes)

    def _bulk_prefetch(self, source: Value, count_bytes: Value) -> None:
        origin = self._uniform(source, "the global source")
        size = self._bulk_size(count_bytes, origin)
        self.machine.issue(
            Operation(
                self.machine, "bulk prefetch", "tma", [nothing], cta=self.cta, issuer=self, line=self.line,
                work=CopyWork("prefetch", origin, size, 1, (self.cta,)),
            )
        )  # fmt: skip

    # -- bulk groups -------------------------------------------------------------------------------

    def bulk_commit(self) -> None:
        """cp.async.bulk.commit_group."""
        self.group_log("bulk").commit(self.thread_mask)
        self._sync_event("cp.async.bulk.commit_group", None)

    def bulk_wait(self, newest: int, reading: bool) -> Any:
        """cp.async.bulk.wait_group, or .read: only the sources must be free."""
        blocked = self.wait_for_groups("bulk", newest, reading)
        if blocked is None:
            self._sync_event("cp.async.bulk.wait_group", (newest, reading))
        return blocked


def _of_lane(value: Any, lane: int) -> Any:
    """Return one lane's part of an operand: a register value, a tuple of them, or a word of the instruction."""
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        return tuple(pick(item, lane) for item in items)
    return pick(value, lane)


def _operands(values: Iterable[Any]) -> Iterator[Any]:
    """Go through operands, tuples of coordinates one by one."""
    for value in values:
        if isinstance(value, tuple):
            yield from cast("tuple[Any, ...]", value)
        else:
            yield value


def _reduce_run(
    target: NDArray[np.uint8], data: NDArray[np.uint8], op: str, kind: TensorDataType
) -> None:
    word = f"u{kind.itemsize}"
    target.view(word)[:] = combine(op, kind, target.view(word), data.view(word))


def run_of(
    kind: str, cta: Cta | None, start: int, size: int, barrier: Mbarrier | None = None
) -> Touch:
    """Return a run of bytes of a CTA's shared memory, or of global memory."""
    told_by = None if barrier is None else (barrier.cta.index, barrier.address)
    if cta is None:
        return Touch(kind, "async", "global", -1, start, start + size, barrier=told_by)
    return Touch(kind, "async", "shared", cta.index, start, start + size, barrier=told_by)


def nothing() -> None:
    """A prefetch lands without effect."""
