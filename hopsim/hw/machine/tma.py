"""Tensor copies of the TMA unit, and tensor maps in memory.

Geometry is `hopsim.layout.box`, and `hopsim.layout.column` for im2col; bytes move by
`hopsim.layout.copies`, groups of stores are those of `bulk`.

Source: PTX ISA 8.7 "Data Movement and Conversion Instructions: Tensor copy", "tensormap.replace".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import MachineFault, TensorMapError
from hopsim.events import Touch
from hopsim.hw.machine.barriers import Mbarrier
from hopsim.hw.machine.bulk import TENSOR, BulkOps, nothing, run_of
from hopsim.hw.machine.copy_groups import Copy
from hopsim.hw.machine.cta import Cta
from hopsim.hw.machine.memory import OFFSET_MASK, Region, RegionFault
from hopsim.hw.machine.operations import Operation
from hopsim.hw.machine.work import TmaWork
from hopsim.isa.values import Value
from hopsim.layout import copies
from hopsim.layout.box import load_plan, store_plan
from hopsim.layout.column import column_plan, column_store_plan
from hopsim.layout.copies import Plan
from hopsim.layout.swizzle import swizzle_addresses
from hopsim.layout.tensormap import MAP_BYTES, TensorMapSpec
from hopsim.layout.tensormap_edit import replace_field

NOTHING = np.zeros(0, np.uint8)


class TmaOps(BulkOps):
    """The instructions that take a tensor map."""

    # -- operands ----------------------------------------------------------------------------------

    def tensor_map(self, address: Value) -> tuple[TensorMapSpec, bytes]:
        """Return the tensor map at a generic address, and its bytes."""
        pointer = self._uniform(address, "the address of the tensor map")
        known = self.machine.parameter_maps.get(pointer)
        if known is not None:
            return known
        space, plain = self.resolve("", pointer)
        assert isinstance(plain, int)
        if space not in ("param", "global"):
            raise self.fault(
                f"a tensor map in {space} memory",
                "keep it in a kernel parameter, const or global memory",
                TENSOR,
            )
        if plain % 64:
            raise self.fault(
                f"the tensor map at {pointer:#x} is not aligned to 64 bytes", source=TENSOR
            )
        region = self._map_region(space, plain)
        start = plain - region.base
        self.need_known(region, start, MAP_BYTES)
        raw = region.data[start : start + MAP_BYTES].tobytes()
        machine = self.machine
        spec = machine.tensor_maps.get(raw)
        if spec is None:
            try:
                spec = TensorMapSpec.decode(raw)
            except TensorMapError as error:
                raise self.fault(
                    f"there is no tensor map at {pointer:#x}: {error.what}",
                    "pass a TensorMap for this parameter",
                ) from None
            machine.tensor_maps[raw] = spec
        if region.read_only:
            # Parameters never change, so their maps need not be read again.
            machine.parameter_maps[pointer] = spec, raw
        return spec, raw

    def _map_region(self, space: str, address: int) -> Region:
        """Return the memory that holds a tensor map, or whatever lies at the address given for one."""
        if space != "global":
            return self.region(space, address)
        try:
            return self.machine.memory.find(address)
        except RegionFault as fault:
            # A parameter's name is its place among the parameters, which as a generic address is somewhere else.
            raise self.fault(
                f"the tensor map's {fault.what}",
                "give the generic address of a parameter, by mov.b64 and cvta.param.u64, or that of a map in global memory",
                TENSOR,
                kind=fault.kind,
            ) from None

    def _coordinates(self, coordinates: Any) -> tuple[int, ...]:
        result: list[int] = []
        for value in coordinates:
            word = self._uniform(value, "a tensor coordinate")
            result.append(word - (1 << 32) if word >> 31 else word)
        return tuple(result)

    # -- tensor copies -----------------------------------------------------------------------------

    def tma_load(
        self,
        shared: Value,
        tensor_map: Value,
        coordinates: Any,
        offsets: Any | None,
        barrier: Value,
        mask: Value | None,
        space: str,
    ) -> None:
        """cp.async.bulk.tensor from global to shared memory, to one CTA or to each of a mask.

        Args:
            offsets: of an im2col copy; None of a tiled one.
        """
        self._each_lane("_tma_load", shared, tensor_map, coordinates, offsets, barrier, mask, space)

    def _tma_load(
        self,
        shared: Value,
        tensor_map: Value,
        coordinates: Any,
        offsets: Any | None,
        barrier: Value,
        mask: Value | None,
        space: str,
    ) -> None:
        spec, raw = self.tensor_map(tensor_map)
        origin = self._coordinates(coordinates)
        target = self._uniform(shared, "the shared destination")
        _, plain = self.resolve("shared::cluster", target)
        assert isinstance(plain, int)
        which = None if mask is None else self._uniform(mask, "the multicast mask")
        destinations = self._destinations(plain, which, space)
        self._check_shared(spec, plain & OFFSET_MASK, destinations)
        barriers = self._barriers(barrier, destinations, which is not None)
        plan = self._load_plan(spec, origin, offsets, plain & OFFSET_MASK)
        machine = self.machine
        source = self._source_region(plan) if machine.values else None
        line = self.line
        total = spec.geometry.tx_bytes
        operation: Operation

        def land() -> None:
            for cta, offset in destinations:
                if machine.values:
                    data, base = (source.data, source.base) if source is not None else (NOTHING, 0)
                    copies.copy_in(plan, data, base, cta.shared.data)
                cta.shared.mark(offset, offset + plan.shared_bytes, machine.values)
            for one in barriers:
                self.complete_tx_of(one, total, operation)

        operation = Operation(
            machine, "tma load", "tma", [land], cta=self.cta, issuer=self, line=line,
            work=TmaWork(
                "load", total, spec.rank, raw, plan, tuple(cta for cta, _ in destinations), spec.l2_promotion.fetch_bytes
            ),
        )  # fmt: skip
        if machine.probe.flight:
            places = [
                _box_in_shared(spec, cta, offset, "w", barriers[min(k, len(barriers) - 1)])
                for k, (cta, offset) in enumerate(destinations)
            ]
            self.tell_flight(
                operation,
                "mbarrier",
                (*_box_in_global(plan, "r"), *places),
                (tensor_map, spec.swizzle.period_bytes, origin, spec.box),
            )
        machine.issue(operation)

    def _check_shared(
        self, spec: TensorMapSpec, offset: int, destinations: list[tuple[Cta, int]]
    ) -> None:
        if offset % 128:
            raise self.fault(
                f"the shared address {offset:#x} of a tensor copy is not aligned to 128 bytes",
                "align tiles to 128 bytes (to the swizzle period, 256 to 1024, when swizzled)", TENSOR,
            )  # fmt: skip
        size = spec.geometry.shared_bytes
        for cta, _ in destinations:
            if offset + size > cta.shared.size:
                raise self.fault(
                    f"the box of {size} bytes at shared {offset:#x} ends beyond the {cta.shared.size} bytes of shared "
                    "memory", "ask for more shared memory, or check the tile address", TENSOR,
                )  # fmt: skip

    def _load_plan(
        self, spec: TensorMapSpec, origin: tuple[int, ...], offsets: Any | None, shared: int
    ) -> Plan:
        if offsets is None:
            return self._plan(load_plan, spec, origin, shared)
        moved = tuple(self._uniform(one, "an im2col offset") for one in offsets)
        return self._plan(column_plan, spec, origin, moved, shared)

    def _plan(self, make: Callable[..., Plan], spec: TensorMapSpec, *place: Any) -> Plan:
        """Return the geometry of a copy; say who and where when the hardware would trap."""
        try:
            return make(spec, *place)
        except MachineFault as fault:
            raise self.fault(fault.what, fault.hint, fault.source, kind=fault.kind) from None

    def _source_region(self, plan: Plan) -> Region | None:
        """Return the allocation a box lies in; None when no element of it is inside the tensor."""
        first, stop = plan.first_addr, plan.stop_addr
        if first == stop:
            return None
        try:
            region = self.machine.memory.find(first)
            region.check(first, stop - first, 1)
        except RegionFault as fault:
            raise self.fault(
                f"the box reaches global bytes {first:#x}..{stop - 1:#x}: {fault.what}",
                "check address, dims and strides of the tensor map", TENSOR, kind=fault.kind,
            ) from None  # fmt: skip
        return region

    def tma_store(
        self, shared: Value, tensor_map: Value, coordinates: Any, im2col: bool, reduce: str
    ) -> None:
        """cp.async.bulk.tensor and cp.reduce.async.bulk.tensor from shared to global memory."""
        each = self._each_lane if reduce else self._each_distinct
        each("_tma_store", shared, tensor_map, coordinates, im2col, reduce)

    def _tma_store(
        self, shared: Value, tensor_map: Value, coordinates: Any, im2col: bool, reduce: str
    ) -> None:
        spec, raw = self.tensor_map(tensor_map)
        origin = self._coordinates(coordinates)
        address = self._uniform(shared, "the shared source")
        _, plain = self.resolve("shared::cta", address)
        assert isinstance(plain, int)
        offset = plain & OFFSET_MASK
        self._check_shared(spec, offset, [(self.cta, offset)])
        make = column_store_plan if im2col else store_plan
        plan = self._plan(make, spec, origin, offset)
        machine = self.machine
        target = self._source_region(plan) if machine.values else None
        if machine.follows_bytes:
            written = self._source_region(plan)
            if written is not None:
                machine.lost.add(written.base)
        kind = "tma reduce" if reduce else "tma store"
        copy: Copy
        staged: list[Any] = []
        cta = self.cta
        where = self.where() if reduce else ""

        def read() -> None:
            if target is not None:
                staged.append(cta.shared.data[offset : offset + spec.geometry.shared_bytes].copy())
            self.copy_progress("bulk", copy, False)

        def write() -> None:
            if target is not None:
                held = staged.pop()
                if reduce:
                    if target.written is not None:
                        inside = plan.runs() - target.base - [0, plan.cut_bytes]
                        self.check_reduced(target, inside.tolist(), where)
                    copies.reduce_out(plan, held, target.data, target.base, reduce, offset)
                else:
                    copies.copy_out(plan, held, target.data, target.base, offset)
                if target.written is not None:
                    for start, stop in (plan.runs() - target.base).tolist():
                        target.mark(start, stop)
            self.copy_progress("bulk", copy, True)

        operation = Operation(
            machine, kind, "tma", [read, write], cta=cta, issuer=self, line=self.line,
            work=TmaWork("reduce" if reduce else "store", spec.geometry.tx_bytes, spec.rank, raw, plan, (cta,)),
        )  # fmt: skip
        copy = self.track("bulk", operation)
        if machine.probe.flight:
            source = _box_in_shared(spec, cta, offset, "r", None)
            self.tell_flight(
                operation, "bulk",
                (source._replace(inside=lambda: copies.inside_chunks(plan)), *_box_in_global(plan, "a" if reduce else "w")),
                (tensor_map, spec.swizzle.period_bytes, origin, spec.box),
            )  # fmt: skip
        machine.issue(operation)

    def tma_prefetch(self, tensor_map: Value, coordinates: Any, offsets: Any | None) -> None:
        """cp.async.bulk.prefetch.tensor: no effect on values."""
        self._each_distinct("_tma_prefetch", tensor_map, coordinates, offsets)

    def _tma_prefetch(self, tensor_map: Value, coordinates: Any, offsets: Any | None) -> None:
        spec, raw = self.tensor_map(tensor_map)
        plan = self._load_plan(spec, self._coordinates(coordinates), offsets, 0)
        self.machine.issue(
            Operation(
                self.machine, "tma prefetch", "tma", [nothing], cta=self.cta, issuer=self, line=self.line,
                work=TmaWork(
                    "prefetch", spec.geometry.tx_bytes, spec.rank, raw, plan, (self.cta,), spec.l2_promotion.fetch_bytes
                ),
            )
        )  # fmt: skip

    def prefetch_map(self, tensor_map: Value) -> None:
        """prefetch.tensormap: a hint; the map must be there."""
        self.tensor_map(tensor_map)

    # -- tensor maps in memory ---------------------------------------------------------------------

    def replace_map_field(
        self, space: str, address: Value, field: str, ordinal: Value, value: Value
    ) -> None:
        """tensormap.replace: change one field of a map in shared or global memory."""
        pointer = self._uniform(address, "the address of the tensor map")
        found, plain = self.resolve(space, pointer)
        assert isinstance(plain, int)
        region = self._map_region(found, plain)
        start = plain - region.base
        self._note("w", found, plain, MAP_BYTES, "weak", "")
        self.need_known(region, start, MAP_BYTES)
        raw = bytearray(region.data[start : start + MAP_BYTES].tobytes())
        try:
            replace_field(
                raw,
                field,
                self._uniform(ordinal, "the ordinal"),
                self._uniform(value, "the new value"),
            )
        except TensorMapError as error:
            raise self.fault(error.what, error.hint, 'PTX ISA 8.7, "tensormap.replace"') from None
        region.data[start : start + MAP_BYTES] = np.frombuffer(bytes(raw), np.uint8)
        region.mark(start, start + MAP_BYTES)

    def copy_map(self, target: Value, source: Value, scope: str) -> None:
        """tensormap.cp_fenceproxy: copy a map from shared to global memory and publish it."""
        to, origin = self._uniform(target, "the destination"), self._uniform(source, "the source")
        self.load("shared::cta", origin, 8, 1)
        shared = self.region("shared::cta", origin)
        region = self._global(to, MAP_BYTES)
        first, start = to - region.base, origin - shared.base
        self._note("w", "global", to, MAP_BYTES, "release", scope)
        self.need_known(shared, start, MAP_BYTES)
        region.data[first : first + MAP_BYTES] = shared.data[start : start + MAP_BYTES]
        region.mark(first, first + MAP_BYTES)
        self.fence("fence.proxy.tensormap", "release", scope)


def _box_in_shared(
    spec: TensorMapSpec, cta: Cta, offset: int, kind: str, barrier: Mbarrier | None
) -> Touch:
    """Return the bytes of a box in shared memory; a swizzle wider than a row leaves gaps."""
    shape = spec.geometry
    touch = run_of(kind, cta, offset, shape.shared_bytes, barrier)
    if shape.pitch_bytes == shape.inner_bytes:
        return touch

    def chunks() -> NDArray[np.int64]:
        rows = offset + np.arange(shape.row_count, dtype=np.int64) * shape.pitch_bytes
        linear = rows[:, None] + np.arange(0, shape.inner_bytes, 16, dtype=np.int64)
        return swizzle_addresses(linear, spec.swizzle).reshape(-1)

    return touch._replace(addresses=chunks, count_bytes=16, key=(spec, offset))


def _box_in_global(plan: Plan, kind: str) -> tuple[Touch, ...]:
    """Return the bytes of a box in global memory: its rows inside the tensor."""
    if plan.first_addr == plan.stop_addr:
        return ()
    return (
        Touch(
            kind, "async", "global", -1, plan.first_addr, plan.stop_addr, lambda: plan.runs()[:, 0], plan.row_bytes,
        ),
    )  # fmt: skip
