"""wgmma of a strand: fence, mma_async, commit_group, wait_group.

The product is made when the operation lands: only then are shared operands, A registers and the accumulator read and
the destination registers written.

Source: PTX ISA 8.7 "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions".
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from hopsim.errors import MachineFault
from hopsim.events import FlightEvent, SyncEvent, Touch
from hopsim.hw.machine.mbarriers import MbarrierOps
from hopsim.hw.machine.operations import Operation
from hopsim.hw.machine.tensor_queue import Warpgroup
from hopsim.hw.machine.thread_groups import WARPGROUP
from hopsim.hw.machine.waiting import Wait
from hopsim.hw.machine.work import TensorWork
from hopsim.isa.forms.form import BLOCKED
from hopsim.isa.numerics.mma_kinds import WGMMA, DFormat
from hopsim.isa.numerics.mma_plain import mma_float32, mma_integer
from hopsim.isa.numerics.tensor_core import mma_chain
from hopsim.isa.values import Array, Predicate, Value
from hopsim.isa.wgmma import Major, WgmmaShape
from hopsim.layout.descriptor import (
    MatrixDescriptor,
    descriptor_problems,
    gather_operand,
    operand_chunks,
)
from hopsim.layout.fragments import (
    accumulator_to_registers,
    packed_accumulator_to_registers,
    registers_to_a,
    registers_to_accumulator,
    registers_to_packed_accumulator,
)
from hopsim.layout.sparse import gathered, metadata_of_rows, stored_places
from hopsim.layout.swizzle import Swizzle

SOURCE = 'PTX ISA 8.7, "wgmma.mma_async"'


class TensorOps(MbarrierOps):
    """The warpgroup's own instructions."""

    def warpgroup_leader(self, what: str) -> Any:
        """Bring the four warps together for a collective instruction.

        Returns: True when this strand executes it for all, None when another one did, BLOCKED while some are missing.
        """
        group = self.warpgroup
        if self.lanes == WARPGROUP:
            return True
        resumed = self.resumed
        if resumed is not None and resumed.kind == "collective" and resumed.over:
            return None
        if not group.is_full:
            raise self.fault(
                f"{what} needs a warpgroup of 128 threads; this one has {self.machine.threads - group.first_tid}",
                "launch a block whose size is a multiple of 128",
                SOURCE,
            )
        if not self.is_whole:
            raise self.fault(
                f"{what} executed by {self.lanes} lanes of a warp", "it is .sync.aligned", SOURCE
            )
        live = self.cta.live_threads_of(range(group.number * 4, group.number * 4 + 4))
        if live < WARPGROUP:
            raise self.fault(
                f"{what} executed by part of a warpgroup: {WARPGROUP - live} of its threads have exited",
                "all four warps must execute it",
                SOURCE,
            )
        key = (group.number, self.segment)
        present = self.cta.rendezvous.setdefault(key, [])
        wait = Wait("collective", group, what)
        present.append((self, wait))
        if sum(strand.lanes for strand, _ in present) < WARPGROUP:
            self.block(wait)
            return BLOCKED
        del self.cta.rendezvous[key]
        if self.machine.fuse:
            return self.fuse([strand for strand, _ in present], wait)
        for strand, other in present:
            other.over = True
            if strand is not self:
                self.machine.wake(strand)
        return True

    def wgmma_fence(self) -> None:
        """wgmma.fence: orders registers; observers check that it is there."""
        self._sync_event("wgmma.fence", None)

    def wgmma_commit(self) -> Any:
        """wgmma.commit_group."""
        leader = self.warpgroup_leader("wgmma.commit_group")
        if leader is not True:
            return leader
        group = self.warpgroup.commit()
        if self.machine.probe.sync:
            event = SyncEvent(self._four_warps, self.line, "wgmma.commit_group", group.number)
            for listen in self.machine.probe.sync:
                listen(event)
        self.machine.schedule.committed(group)
        return None

    def wgmma_wait(self, newest: int) -> Any:
        """wgmma.wait_group."""
        group = self.warpgroup
        if group.pending_beyond(newest):
            group.waiters.append(self)
            self.block(Wait("wgmma group", group, newest))
            return BLOCKED
        self._sync_event("wgmma.wait_group", newest)
        return None

    def wgmma(
        self,
        shape: WgmmaShape,
        d: tuple[int, ...],
        a_registers: tuple[int, ...] | None,
        a_descriptor: Value | None,
        b_descriptor: Value,
        scale_d: Predicate,
        negate_a: bool,
        negate_b: bool,
        metadata: tuple[int, int] | None = None,
    ) -> Any:
        """wgmma.mma_async: put one operation in flight.

        Args:
            d, a_registers: register numbers.
            a_descriptor, b_descriptor: 64-bit matrix descriptors.
            scale_d: False makes D = A B.
            metadata: of a sparse A, the register and the sparsity selector.
        """
        if self.lanes != WARPGROUP:
            leader = self.warpgroup_leader("wgmma.mma_async")
            if leader is not True:
                return leader
        a_bits = a_descriptor
        if not isinstance(a_bits, int) and a_bits is not None:
            a_bits = self._uniform(a_bits, "the descriptor of A")
        b_bits = (
            b_descriptor
            if isinstance(b_descriptor, int)
            else self._uniform(b_descriptor, "the descriptor of B")
        )
        keep = bool(scale_d) if not isinstance(scale_d, np.ndarray) else bool(scale_d.all())
        problem = _descriptor_problem(shape, a_bits, b_bits)
        if problem:
            raise self.fault(problem, source=SOURCE)
        group = self.warpgroup
        if self.machine.is_dry:
            self._stand_in(group, shape, a_bits is not None)
            return None
        operation: Operation

        def land() -> None:
            self._product(
                operation,
                group,
                shape,
                d,
                a_registers,
                a_bits,
                b_bits,
                keep,
                negate_a,
                negate_b,
                metadata,
            )
            group.landed(operation)

        operation = Operation(
            self.machine, "wgmma", "tensor", [land], cta=self.cta, issuer=self, line=self.line, queue=group,
            work=_work(shape, a_bits is not None, group),
        )  # fmt: skip
        group.open.append(operation)
        group.destinations.append(d)
        if self.machine.probe.flight:
            read = a_registers
            if metadata is not None:
                read = (*(a_registers or ()), metadata[0])
            self._wgmma_flight(operation, shape, d, read, a_bits, b_bits)
        self.machine.issue(operation)
        return None

    def _stand_in(self, group: Warpgroup, shape: WgmmaShape, a_shared: bool) -> None:
        """Enter an operation that only takes time: one object serves all of a warpgroup with the same shape."""
        # By identity, which hashes faster; instructions keep their shapes.
        key = (id(shape), a_shared)
        operation = group.stand_ins.get(key)
        if operation is None:
            work = _work(shape, a_shared, group)
            operation = group.stand_ins[key] = Operation(
                self.machine,
                "wgmma",
                "tensor",
                [],
                cta=self.cta,
                issuer=self,
                line=self.line,
                queue=group,
                work=work,
            )
        group.open.append(operation)
        self.machine.schedule.issued(operation)

    def _product(
        self,
        operation: Operation,
        group: Warpgroup,
        shape: WgmmaShape,
        d: tuple[int, ...],
        a_registers: tuple[int, ...] | None,
        a_bits: int | None,
        b_bits: int,
        keep: bool,
        negate_a: bool,
        negate_b: bool,
        metadata: tuple[int, int] | None,
    ) -> None:
        machine = self.machine
        group.destinations.pop(0)
        if not machine.values:
            return
        shared = self.cta.shared
        try:
            b = gather_operand(shared.data, b_bits, shape.n, shape.k, shape.b_bytes, shape.b_major)
            if a_bits is not None:
                a: Array = gather_operand(
                    shared.data, a_bits, 64, shape.stored_k, shape.a_bytes, shape.a_major
                )
            else:
                assert a_registers is not None
                a = registers_to_a(group.read(a_registers, np.uint32), shape.a_bytes * 8)
        except MachineFault as fault:
            raise MachineFault(
                fault.what,
                where=operation.place,
                hint=fault.hint,
                source=SOURCE,
                kind=fault.kind,
            ) from None
        c = None
        if keep:
            c = group.matrix
            if c is None:
                words = group.read(d, np.uint32)
                c = (
                    registers_to_packed_accumulator(words)
                    if shape.d == "f16"
                    else registers_to_accumulator(words)
                )
        if metadata is None:
            result = multiply(shape, a, b, c, machine.numerics, negate_a, negate_b)
        else:
            register, selector = metadata
            (words,) = group.read((register,), np.uint32)
            places = stored_places(metadata_of_rows(words, shape.a, shape.k, selector), shape.a)
            start = None if c is None else c[:, None]
            met = gathered(b, places)
            result = multiply(shape, a[:, None], met, start, machine.numerics, negate_a, negate_b)[
                :, 0
            ]
        if group.destinations and group.destinations[0] == d:
            group.matrix = result
            return
        group.matrix = None
        registers = (
            packed_accumulator_to_registers(result)
            if shape.d == "f16"
            else accumulator_to_registers(result)
        )
        group.write(d, registers)

    @property
    def _four_warps(self) -> tuple[int, Array]:
        """The whole warpgroup as an agent, whoever leads it."""
        return (self.cta.index, whole_warpgroup(self.warpgroup.first_tid))

    def _wgmma_flight(
        self, operation: Operation, shape: WgmmaShape, d: tuple[int, ...], read: tuple[int, ...] | None,
        a_bits: int | None, b_bits: int,
    ) -> None:  # fmt: skip
        reads = [(b_bits, shape.n, shape.k, shape.b_bytes, shape.b_major)]
        if a_bits is not None:
            reads.append((a_bits, 64, shape.stored_k, shape.a_bytes, shape.a_major))
        touches: list[Touch] = []
        for bits, rows, k, width, major in reads:
            chunks = operand_chunks(bits, rows, k, width, major)
            touches.append(
                Touch(
                    "r", "async", "shared", self.cta.index, int(chunks[0]), int(chunks[-1]) + 16, chunks, 16,
                    (bits, rows, k, width, major),
                )
            )  # fmt: skip
        event = FlightEvent(
            self._four_warps, self.line, "wgmma", operation.number, "wgmma", tuple(touches),
            (d, read, (shape.n, shape.k, shape.d, shape.a, shape.b)),
        )  # fmt: skip
        for listen in self.machine.probe.flight:
            listen(event)

    def _sync_event(self, what: str, detail: Any) -> None:
        if self.machine.probe.sync:
            event = SyncEvent(self.agent, self.line, what, detail)
            for listen in self.machine.probe.sync:
                listen(event)


def _work(shape: WgmmaShape, a_shared: bool, group: Warpgroup) -> TensorWork:
    return TensorWork(
        shape.kind, shape.n, shape.k, shape.a_bytes * 8, a_shared, shape.sparse, group
    )


@lru_cache(maxsize=16)
def whole_warpgroup(first_tid: int) -> Array:
    """Return the thread numbers of a warpgroup."""
    return np.arange(first_tid, first_tid + WARPGROUP, dtype=np.int64)


@lru_cache(maxsize=4096)
def _descriptor_problem(shape: WgmmaShape, a_bits: int | None, b_bits: int) -> str:
    """Return what is wrong with the descriptors of an operation, or the empty string."""
    operands: tuple[tuple[int | None, str, Major, int], ...] = (
        (a_bits, "A", shape.a_major, shape.a_bytes),
        (b_bits, "B", shape.b_major, shape.b_bytes),
    )
    for bits, which, major, width in operands:
        if bits is not None:
            problems = descriptor_problems(bits, width, major)
            if shape.sparse and which == "B" and major == "K":
                problems += _too_narrow(bits, shape.k * width)
            if problems:
                return f"the descriptor of {which} {bits:#018x}: {problems[0]}"
    return ""


def _too_narrow(bits: int, k_bytes: int) -> tuple[str, ...]:
    """Say whether K of an instruction does not fit its swizzle, which an H200 answers with an error of the launch."""
    swizzle = MatrixDescriptor.decode(bits).swizzle
    if swizzle is Swizzle.NONE or k_bytes <= swizzle.width_bytes:
        return ()
    return (
        f"{k_bytes} bytes along K do not fit a swizzle of {swizzle.width_bytes} bytes; take one of 64 or 128, or none",
    )


def multiply(
    shape: WgmmaShape,
    a: Array,
    b: Array,
    c: Array | None,
    numerics: str,
    negate_a: bool,
    negate_b: bool,
) -> Array:
    """Return D = A B^T + C as raw bits, by the chosen numerics."""
    if shape.d == "s32":
        return mma_integer(
            a, b, c, a_signed=shape.a == "s8", b_signed=shape.b == "s8", satfinite=shape.saturate
        )
    kind = WGMMA[(shape.a, shape.b)]
    form: DFormat = "f16" if shape.d == "f16" else "f32"
    if numerics == "float32":
        return mma_float32(a, b, c, kind, form, negate_a=negate_a, negate_b=negate_b)
    return mma_chain(a, b, c, kind, form, negate_a=negate_a, negate_b=negate_b)
