"""Loads, stores and atomics of a strand, in every state space.

Plain accesses take effect when their step executes; what PTX lets a weak access do besides is judged by the hazard
checker, not acted out (DEVIATIONS D-WEAK).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hopsim.errors import MachineFault
from hopsim.hw.machine.memory import Region, RegionFault, halves, joined
from hopsim.hw.machine.regions import AddressedRegions, hint_of
from hopsim.hw.machine.windows import SHARED_SPACES
from hopsim.isa.program.codegen import pick
from hopsim.isa.program.flow import SYNCHRONISING
from hopsim.isa.values import Value, lanes


class MemoryOps(AddressedRegions):
    """ld, st, atom and red."""

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
                f"load from {space}: {fault.what}", hint_of(fault), fault, address
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
                f"store to {space}: {fault.what}", hint_of(fault), fault, address
            ) from None

    def discard(self, space: str, address: Value, count_bytes: int) -> None:
        """Let aligned bytes of global memory at each address hold nothing, as a weak write of no certain value does."""
        found = self.find_space(space, address)
        if found is None or found[0] != "global":
            raise self.fault(
                "discard of what is not global memory",
                "pass an address of global memory",
                'PTX ISA 8.7, "discard"',
            )
        _, address = found
        self._note("w", "global", address, count_bytes, "weak", "", None)
        machine = self.machine
        machine.version += 1
        for one in np.unique(address).tolist():
            region = self.region("global", one, of=address)
            try:
                start = region.check(one, count_bytes, count_bytes)
            except RegionFault as fault:
                raise self._region_fault(
                    f"discard: {fault.what}", hint_of(fault), fault, address
                ) from None
            assert isinstance(start, int), start
            if machine.values:
                region.discard(start, start + count_bytes)
            elif machine.follows_bytes:
                machine.lost.add(region.base)

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
                    f"load: {fault.what}", hint_of(fault), fault, address
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
                    f"store: {fault.what}", hint_of(fault), fault, address
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
                    f"atomic on {space}: {fault.what}", hint_of(fault), fault, address
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
