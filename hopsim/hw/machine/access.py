"""Loads, stores and atomics of a strand, in every state space.

Plain accesses take effect when their step executes; what PTX lets a weak access do besides is judged by the hazard
checker, not acted out (DEVIATIONS D-WEAK).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import MachineFault
from hopsim.events import Access
from hopsim.hw.machine.memory import (
    OFFSET_MASK,
    RANK_SHIFT,
    Region,
    RegionFault,
    halves,
    joined,
)
from hopsim.hw.machine.windows import SHARED_SPACES, GenericAddresses
from hopsim.isa.program.codegen import pick
from hopsim.isa.program.flow import SYNCHRONISING
from hopsim.isa.values import Value, lanes

OUTSIDE = "check the address arithmetic and the size of the buffer"
NO_ALLOCATION = "pass an array that gpu.array or gpu.empty made"


class AccessNote(NamedTuple):
    """What a timing model needs of one access: space, addresses, bytes a lane, write or read or atomic, remote or not.

    `fetch_bytes` is what a miss brings into L2 at least; `beside`: what lanes access that point into other spaces.
    """

    kind: str
    space: str
    addresses: Any
    count_bytes: int
    lanes: int
    remote: bool
    fetch_bytes: int = 0
    beside: tuple[Any, ...] = ()


def first_of(address: Value) -> int:
    """Return the address of the first lane."""
    return address if isinstance(address, int) else int(address[0])


class MemoryOps(GenericAddresses):
    """ld, st, atom and red."""

    # -- where an address points -------------------------------------------------------------------

    def shared_region(self, space: str, address: int) -> Region:
        """Return the shared memory that an address points into: this CTA's or, in the cluster window, a peer's."""
        rank = address >> RANK_SHIFT
        cta = self.cta
        if rank == cta.rank:
            return cta.shared
        if rank >= len(cta.cluster.ctas):
            raise self.fault(
                f"shared address {address:#x} names CTA rank {rank}, but the cluster has {len(cta.cluster.ctas)}"
            )
        if space != "shared::cluster":
            raise self.fault(
                f"shared::cta access to address {address:#x} of CTA rank {rank} from rank {cta.rank}",
                "use the .shared::cluster form for an address from mapa",
            )
        return cta.cluster.ctas[rank].shared

    def region(self, space: str, address: Value, of: Value | None = None) -> Region:
        """Return the region that holds the address of the first lane.

        Args:
            of: the addresses of all lanes, where `address` is that of one: a fault names the lanes that have it.
        Raises: MachineFault.
        """
        first = first_of(address)
        if space in SHARED_SPACES:
            return self.shared_region(space, first)
        if space in ("global", "const"):
            try:
                return self.machine.memory.find(first)
            except RegionFault as fault:
                raise self._region_fault(
                    f"{space} access: {fault.what}",
                    NO_ALLOCATION,
                    fault,
                    address if of is None else of,
                ) from None
        if space == "param":
            return self.machine.parameters
        if space == "local":
            return self.cta.local_region()
        raise AssertionError(space)

    def _region_fault(
        self, what: str, hint: str, fault: RegionFault, address: Value | None
    ) -> MachineFault:
        """Make a fault of the lanes that have the address which a region refuses; of all where they share it."""
        positions = None
        if isinstance(address, np.ndarray):
            positions = np.flatnonzero(address == fault.address)
        return self.fault(what, hint, positions=positions, kind=fault.kind)

    def _local_addresses(self, address: Value, count_bytes: int, what: str) -> Value:
        per_thread = self.machine.local_bytes
        last = int(address.max()) if isinstance(address, np.ndarray) else address
        if last + count_bytes > per_thread:
            positions = None
            if isinstance(address, np.ndarray):
                positions = np.flatnonzero(address == address.max())
            raise self.fault(
                f"{what} local: bytes {last:#x}..{last + count_bytes - 1:#x} leave the thread's local memory "
                f"({per_thread} bytes)", OUTSIDE, positions=positions, kind="outside",
            )  # fmt: skip
        return (lanes(address, self.lanes, 64).astype(np.int64) + self.tids * per_thread).astype(
            np.uint64
        )

    # -- plain accesses ----------------------------------------------------------------------------

    def load(
        self,
        space: str,
        address: Value,
        word: int,
        count: int,
        sem: str = "weak",
        scope: str = "",
        fetch_bytes: int = 0,
    ) -> Any:
        """Read `count` words of `word` bytes at each address; return them as raw bits, or None without values."""
        found = self.find_space(space, address)
        if found is None:
            return self.space_by_space(
                address, word,
                lambda part, where, _: part.load("", where, word, count, sem, scope, fetch_bytes),
            )  # fmt: skip
        space, address = found
        self._note("r", space, address, word * count, sem, scope, fetch_bytes=fetch_bytes)
        machine = self.machine
        if (
            not machine.values
            and space != "param"
            and sem not in SYNCHRONISING
            and not machine.is_deciding
        ):
            return None
        if space == "local":
            address = self._local_addresses(address, word * count, "load from")
        region = self.region(space, address)
        if machine.is_deciding and region.base in machine.lost:
            self.need_values(self.line)
        try:
            return region.load(address, word, count)
        except RegionFault as fault:
            if machine.follows_bytes and fault.kind == "unwritten":
                self.need_values(self.line)
            if isinstance(address, np.ndarray):
                split = self._by_region(space, address)
                if len(split) > 1:
                    return self._load_split(split, address, word, count)
            raise self._region_fault(
                f"load from {space}: {fault.what}", _hint(fault), fault, address
            ) from None

    def store(
        self, space: str, address: Value, word: int, values: Any, sem: str = "weak", scope: str = ""
    ) -> None:
        """Write words of `word` bytes at each address; `values` is None for data that is not computed."""
        found = self.find_space(space, address)
        if found is None:

            def store(part: MemoryOps, where: Value, chosen: Any) -> None:
                part.store("", where, word, [pick(value, chosen) for value in values], sem, scope)

            self.space_by_space(address, word, store)
            return
        space, address = found
        count = len(values)
        before = None if sem == "weak" else self._held(space, address, word)
        self._note("w", space, address, word * count, sem, scope, values[0], before=before)
        if any(value is None for value in values):
            self.machine.version += 1
            if self.machine.follows_bytes:
                self._lose(space, address, word * count)
            return
        if space == "local":
            address = self._local_addresses(address, word * count, "store to")
        region = self.region(space, address)
        try:
            if space != "local" or not region.holds(address, word, values):
                # Code that is not optimized keeps what its loops look at in local memory: the same again changes nothing.
                self.machine.version += 1
            region.store(address, word, values)
        except RegionFault as fault:
            if isinstance(address, np.ndarray):
                split = self._by_region(space, address)
                if len(split) > 1:
                    self._store_split(split, address, word, values)
                    return
            raise self._region_fault(
                f"store to {space}: {fault.what}", _hint(fault), fault, address
            ) from None

    def need_known(self, region: Region, start: int, count_bytes: int) -> None:
        """Stop a `values=False` run that asks for bytes, from `start` on in a region, which it did not compute."""
        machine = self.machine
        if not machine.follows_bytes:
            return
        held = region.written
        known = held is None or bool(held[start : start + count_bytes].all())
        if region.base in machine.lost or not known:
            self.need_values(self.line)

    def _lose(self, space: str, address: Value, count_bytes: int) -> None:
        """Note that a `values=False` run wrote bytes without computing them: all of an allocation of global memory."""
        if space == "local":
            address = self._local_addresses(address, count_bytes, "store to")
        for one in np.unique(address).tolist():
            region = self.region(space, one)
            if region.written is not None and space != "global":
                region.mark(one - region.base, one - region.base + count_bytes, False)
            else:
                self.machine.lost.add(region.base)

    def _by_region(self, space: str, address: Any) -> list[tuple[Region, Any]]:
        """Group lanes by the region they point into."""
        groups: dict[int, tuple[Region, list[int]]] = {}
        for position, one in enumerate(address.tolist()):
            region = self.region(space, one, of=address)
            groups.setdefault(region.base, (region, []))[1].append(position)
        return [(region, np.array(positions)) for region, positions in groups.values()]

    def _load_split(
        self, split: list[tuple[Region, Any]], address: Any, word: int, count: int
    ) -> list[Any]:
        total = sum(len(positions) for _, positions in split)
        results: list[Any] = []
        for region, positions in split:
            try:
                values = region.load(address[positions], word, count)
            except RegionFault as fault:
                raise self._region_fault(
                    f"load: {fault.what}", _hint(fault), fault, address
                ) from None
            for k, value in enumerate(values):
                if len(results) <= k:
                    results.append(np.zeros(total, f"u{word}"))
                results[k][positions] = value
        return results

    def _store_split(
        self, split: list[tuple[Region, Any]], address: Any, word: int, values: Any
    ) -> None:
        for region, positions in split:
            picked: list[Any] = [
                value[positions] if isinstance(value, np.ndarray) else value for value in values
            ]
            try:
                region.store(address[positions], word, picked)
            except RegionFault as fault:
                raise self._region_fault(
                    f"store: {fault.what}", _hint(fault), fault, address
                ) from None

    # -- atomics -----------------------------------------------------------------------------------

    def atomic(
        self,
        space: str,
        address: Value,
        word: int,
        operation_in: Callable[[str], Callable[..., int]],
        operands: list[list[Any]],
        sem: str = "relaxed",
        scope: str = "gpu",
        is_read: bool = True,
    ) -> Any:
        """Read-modify-write, lane by lane in thread order; return the old words (None without values).

        Args:
            word: bytes of a word; one of 16 bytes is returned as two of 8.
            operation_in: state space -> the operation there: (old, *operands of this lane and word) -> new, on raw bits.
            operands: per word of the vector, the list of operand values.
            is_read: whether what is there must have been written; an exchange may be a store.
        """
        found = self.find_space(space, address)
        if found is None:

            def change(part: MemoryOps, where: Value, chosen: Any) -> Any:
                picked = [[pick(value, chosen) for value in group] for group in operands]
                return part.atomic("", where, word, operation_in, picked, sem, scope, is_read)

            return self.space_by_space(address, min(word, 8), change)
        space, address = found
        count = len(operands)
        if any(value is None for group in operands for value in group):
            self._note("a", space, address, word * count, sem, scope)
            if self.machine.is_deciding:
                self.need_values(self.line)
            if self.machine.follows_bytes:
                self._lose(space, address, word * count)
            return None
        if space == "local":
            raise self.fault("atomics do not apply to local memory")
        operation = operation_in(space)
        spread = lanes(address, self.lanes, 64).tolist()
        part = min(word, 8)
        columns = [
            [lanes(value, self.lanes, part * 8).tolist() for value in group] for group in operands
        ]
        parts = word // part
        old = [[0] * self.lanes for _ in range(count)]
        left: list[int] = []
        for lane, one in enumerate(spread):
            region = self.region(space, one, of=address)
            if self.machine.is_deciding and region.base in self.machine.lost:
                self.need_values(self.line)
            try:
                offset = region.check(one, word * count, word * count)
                assert isinstance(offset, int)
                if is_read:
                    region.check_written(offset, offset + word * count)
            except RegionFault as fault:
                if self.machine.follows_bytes and fault.kind == "unwritten":
                    self.need_values(self.line)
                raise self._region_fault(
                    f"atomic on {space}: {fault.what}", _hint(fault), fault, address
                ) from None
            view = region.views[part]
            for k in range(count):
                at = offset // part + k * parts
                before = int(view[at]) if parts == 1 else joined(view[at : at + 2])
                old[k][lane] = before
                after = operation(before, *(column[lane] for column in columns[k]))
                if after != before:
                    # A compare-and-swap that fails, over and over, changes nothing.
                    self.machine.version += 1
                    view[at : at + parts] = after if parts == 1 else halves(after)
                if k == 0:
                    left.append(after if parts == 1 else halves(after)[0])
            region.mark(offset, offset + word * count)
        if parts > 1:
            old = [list(half) for column in old for half in zip(*map(halves, column), strict=True)]
        told = was = None
        if self.machine.probe.access:
            told, was = np.array(left, f"u{part}"), np.array(old[0], f"u{part}")
        self._note("a", space, address, word * count, sem, scope, told, before=was)
        if self.lanes == 1:
            return [column[0] for column in old]
        return [np.array(column, dtype=f"u{part}") for column in old]

    def _held(self, space: str, address: Value, word: int) -> Any:
        """Return the words at addresses for who listens to accesses, or None."""
        if (
            not self.machine.probe.access
            or not self.machine.values
            or space not in (*SHARED_SPACES, "global")
        ):
            return None
        try:
            return self.region(space, address).load(address, word, 1)[0]
        except (RegionFault, MachineFault):
            # The access itself stops at it, or is split by allocations.
            return None

    # -- telling -----------------------------------------------------------------------------------

    def _note(
        self,
        kind: str,
        space: str,
        address: Value,
        count_bytes: int,
        sem: str,
        scope: str,
        value: Any = None,
        fetch_bytes: int = 0,
        before: Any = None,
    ) -> None:
        machine = self.machine
        if machine.timed:
            remote = space == "shared::cluster" and first_of(address) >> RANK_SHIFT != self.cta.rank
            target = self.acting or self
            target.access = AccessNote(
                kind, space, address, count_bytes, self.lanes, remote, fetch_bytes
            )
        if machine.probe.access and space not in ("param", "const", "local"):
            if space == "global":
                self._tell(
                    kind,
                    "global",
                    -1,
                    address,
                    count_bytes,
                    sem,
                    scope,
                    self.tids,
                    value,
                    before=before,
                )
            elif isinstance(address, np.ndarray) and space == "shared::cluster":
                ranks = (address >> address.dtype.type(RANK_SHIFT)).tolist()
                for rank in sorted(set(ranks)):
                    chosen = np.array([one == rank for one in ranks])
                    part, held = pick(value, chosen), pick(before, chosen)
                    where, who = address[chosen], self.tids[chosen]
                    self._tell_shared(
                        kind, rank, where, count_bytes, sem, scope, who, part, before=held
                    )
            else:
                rank = first_of(address) >> RANK_SHIFT
                self._tell_shared(
                    kind, rank, address, count_bytes, sem, scope, self.tids, value, before=before
                )

    def _tell_shared(
        self,
        kind: str,
        rank: int,
        address: Value,
        count_bytes: int,
        sem: str,
        scope: str,
        tids: NDArray[np.int64],
        value: Any,
        shares: Any = None,
        before: Any = None,
    ) -> None:
        ctas = self.cta.cluster.ctas
        if rank < len(ctas):
            owner, inside = ctas[rank].index, address & OFFSET_MASK
            self._tell(
                kind, "shared", owner, inside, count_bytes, sem, scope, tids, value, shares, before
            )

    def _tell(
        self, kind: str, space: str, owner: int, address: Value, count_bytes: int, sem: str, scope: str,
        tids: NDArray[np.int64], value: Any, shares: Any = None, before: Any = None,
    ) -> None:  # fmt: skip
        event = Access(
            (self.cta.index, tids),
            self.line,
            kind,
            space,
            owner,
            address,
            count_bytes,
            sem,
            scope,
            value,
            shares,
            before,
        )
        for listen in self.machine.probe.access:
            listen(event)


def _hint(fault: RegionFault) -> str:
    if "aligned" in fault.what:
        return "align the address to the access size"
    if "never written" in fault.what:
        return "write it first, or wait for the copy that fills it"
    if "read-only" in fault.what:
        return "write to global memory instead"
    return OUTSIDE
