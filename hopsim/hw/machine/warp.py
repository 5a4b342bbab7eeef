"""What the lanes of a warp do together: shfl, vote, match, redux, elect, warp barrier, matrix moves, mma.sync.

A strand may hold several warps; every operation works warp by warp on a (warps, 32) view.  Lanes of the mask that are in
another strand of the same warp are waited for (`convergence.py`).

Source: PTX ISA 8.7 "shfl.sync", "vote.sync", "match.sync", "redux.sync", "elect.sync", "bar.warp.sync", "ldmatrix",
"stmatrix", "movmatrix", "mma".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from hopsim.hw.machine.access_notes import AccessNote, first_of
from hopsim.hw.machine.convergence import FULL
from hopsim.hw.machine.memory import OFFSET_MASK, RANK_SHIFT, RegionFault
from hopsim.hw.machine.tensor import TensorOps
from hopsim.hw.machine.thread_groups import WARP
from hopsim.isa.forms.form import BLOCKED
from hopsim.isa.values import Array, Value, collapse, lanes
from hopsim.layout.fragments import matrices_to_registers, movmatrix, registers_to_matrices


class WarpOps(TensorOps):
    """Collectives of a warp."""

    def _by_warp(self, value: Any, width_bits: int) -> Array:
        """Return (warps, 32) words; lanes that are not in the strand hold 0."""
        spread = lanes(value, self.lanes, width_bits)
        if self.lanes == len(self.warps) * WARP:
            return spread.reshape(-1, WARP)
        full = np.zeros(len(self.warps) * WARP, spread.dtype)
        full[self.tids - self.warps[0] * WARP] = spread
        return full.reshape(-1, WARP)

    def _from_warps(self, values: Array) -> Value:
        flat = values.reshape(-1)
        if self.lanes != len(flat):
            flat = flat[self.tids - self.warps[0] * WARP]
        return collapse(flat)

    def _present(self) -> Array:
        """Return (warps, 32) booleans: which lanes are in the strand."""
        here = np.zeros(len(self.warps) * WARP, np.bool_)
        here[self.tids - self.warps[0] * WARP] = True
        return here.reshape(-1, WARP)

    def _by_mask(self, method: str, mask: Any, *values: Any) -> Any:
        """Do a collective for each group of lanes with the same mask by itself, and put the answers together."""
        answers: list[Any] = []
        single = True
        for one in dict.fromkeys(mask.tolist()):
            view, chosen = self.choose(mask == one)
            given: list[Any] = [
                value[chosen] if isinstance(value, np.ndarray) else value for value in values
            ]
            if isinstance(chosen, int):
                given = [
                    value.item() if isinstance(value, np.generic) else value for value in given
                ]
            answer = getattr(view, method)(*given, one)
            single = not isinstance(answer, tuple)
            parts = (answer,) if single else answer
            if not answers:
                answers = [
                    np.zeros(self.lanes, np.bool_ if _is_predicate(part) else np.uint32)
                    for part in parts
                ]
            for whole, part in zip(answers, parts, strict=True):
                whole[chosen] = part
        results = [collapse(whole) for whole in answers]
        return results[0] if single else tuple(results)

    # -- data between lanes ------------------------------------------------------------------------

    def shfl(self, mode: str, value: Value | None, b: Value, c: Value, mask: Value) -> Any:
        """shfl.sync: return (value, predicate), or BLOCKED."""
        met = self.gather_lanes(mask, "shfl.sync", WarpOps.shfl, mode, value, b, c)
        if met is not None:
            return met if met is BLOCKED else met.detail
        self._sync_event("shfl.sync", mask)
        if value is None:
            return None, None
        if (
            not isinstance(value, np.ndarray)
            and mode == "idx"
            and not isinstance(c, np.ndarray)
            and c & 31 == 31
        ):
            # The same word in every lane, and no source out of range: whoever it comes from, it is this one.
            return value, True
        words = self._by_warp(value, 32)
        offset = self._by_warp(b, 32).astype(np.int64) & 31
        clamp = self._by_warp(c, 32).astype(np.int64)
        lane = np.arange(WARP)
        segment = clamp >> 8 & 31
        top = (lane & segment) | (clamp & 31 & ~segment)
        bottom = lane & segment
        source = {
            "up": lane - offset, "down": lane + offset, "bfly": lane ^ offset, "idx": bottom | (offset & ~segment),
        }[mode]  # fmt: skip
        inside = source >= top if mode == "up" else source <= top
        source = np.where(inside, source, lane)
        moved = np.take_along_axis(words, source & 31, axis=1)
        return self._from_warps(moved), self._from_warps(np.broadcast_to(inside, moved.shape))

    def vote(self, mode: str, predicate: Any, mask: Value) -> Any:
        """vote.sync: `all`, `any`, `uni` or `ballot`."""
        met = self.gather_lanes(mask, "vote.sync", WarpOps.vote, mode, predicate)
        if met is not None:
            return met if met is BLOCKED else met.detail
        if _differs(mask):
            return self._by_mask("vote", mask, mode, predicate)
        self._sync_event("vote.sync", mask)
        held = lanes(predicate, self.lanes, 8).astype(np.bool_)
        full = np.zeros(len(self.warps) * WARP, np.bool_)
        full[self.tids - self.warps[0] * WARP] = held
        held = full.reshape(-1, WARP)
        here = self._present()
        if mode == "ballot":
            bits = (
                (held.astype(np.uint64) << np.arange(WARP, dtype=np.uint64))
                .sum(axis=1)
                .astype(np.uint32)
            )
            return self._from_warps(np.repeat(bits[:, None], WARP, axis=1))
        every: Any = (held | ~here).all(axis=1)
        some: Any = held.any(axis=1)
        answer: Any = {"all": every, "any": some, "uni": every | ~some}[mode]
        return self._from_warps(np.repeat(answer[:, None], WARP, axis=1))

    def match(self, mode: str, value: Value | None, width_bits: int, mask: Value) -> Any:
        """match.sync: (mask of lanes with the same value, predicate for `all`)."""
        met = self.gather_lanes(mask, "match.sync", WarpOps.match, mode, value, width_bits)
        if met is not None:
            return met if met is BLOCKED else met.detail
        if _differs(mask) and value is not None:
            return self._by_mask("match", mask, mode, value, width_bits)
        self._sync_event("match.sync", mask)
        if value is None:
            return None, None
        words = self._by_warp(value, width_bits)
        here = self._present()
        equal = (words[:, :, None] == words[:, None, :]) & here[:, None, :]
        bits = (
            (equal.astype(np.uint64) << np.arange(WARP, dtype=np.uint64))
            .sum(axis=2)
            .astype(np.uint32)
        )
        if mode == "any":
            if self.machine.timed:
                owner = self.acting or self
                # Of each value one lane is the first.
                firsts = here & (bits & -bits == np.uint32(1) << np.arange(WARP, dtype=np.uint32))
                owner.matched[len(owner.trail)] = int(firsts.sum(axis=1).max())
            return self._from_warps(bits), True
        same = (equal | ~here[:, None, :]).all(axis=2)
        return self._from_warps(np.where(same, bits, 0).astype(np.uint32)), self._from_warps(same)

    def redux(self, fold: Callable[[list[int]], int], value: Value | None, mask: Value) -> Any:
        """redux.sync: the same reduction in every lane."""
        met = self.gather_lanes(mask, "redux.sync", WarpOps.redux, fold, value)
        if met is not None:
            return met if met is BLOCKED else met.detail
        if _differs(mask) and value is not None:
            return self._by_mask("redux", mask, fold, value)
        self._sync_event("redux.sync", mask)
        if value is None:
            return None
        words = self._by_warp(value, 32)
        here = self._present()
        results = [fold(row[held].tolist()) for row, held in zip(words, here, strict=True)]
        return self._from_warps(np.repeat(np.array(results, np.uint32)[:, None], WARP, axis=1))

    def elect(self, mask: Value) -> Any:
        """elect.sync: (leader lane, whether this lane is it); the leader is the lowest lane of the mask.

        PTX leaves the choice open; an H100 takes the lowest lane.  Source: tests/silicon/probes/collective.npz.
        """
        met = self.gather_lanes(mask, "elect.sync", WarpOps.elect)
        if met is not None:
            return met if met is BLOCKED else met.detail
        if _differs(mask):
            return self._by_mask("elect", mask)
        here = self._present()
        leader = here.argmax(axis=1)
        elected = np.zeros(here.shape, np.bool_)
        elected[np.arange(len(leader)), leader] = True
        return (
            self._from_warps(np.repeat(leader[:, None].astype(np.uint32), WARP, axis=1)),
            self._from_warps(elected),
        )

    def active_mask(self) -> Value:
        """activemask: the lanes that step together now."""
        here = self._present()
        bits = (
            (here.astype(np.uint64) << np.arange(WARP, dtype=np.uint64))
            .sum(axis=1)
            .astype(np.uint32)
        )
        return self._from_warps(np.repeat(bits[:, None], WARP, axis=1))

    def warp_sync(self, mask: Value) -> Any:
        """bar.warp.sync."""
        met = self.gather_lanes(mask, "bar.warp.sync", WarpOps.warp_sync)
        if met is None:
            # Lanes that met from several places were told of together.
            self._sync_event("bar.warp.sync", mask)
        return BLOCKED if met is BLOCKED else None

    # -- matrices ----------------------------------------------------------------------------------

    def _whole_warps(self, what: str) -> None:
        if self.lanes != len(self.warps) * WARP:
            raise self.fault(
                f"{what} executed by {self.lanes} lanes: it is .sync.aligned, all 32 lanes take part"
            )

    def _row_offsets(
        self, space: str, address: Value, count: int, trans: bool, what: str
    ) -> tuple[Any, Array]:
        """Return the region and the offsets (warps, count, 8) of the rows that lanes address."""
        self._whole_warps(what)
        # Lanes beyond those that give a row may hold anything.
        taken = lanes(address, self.lanes, 64).reshape(-1, WARP)[:, : count * 8].reshape(-1)
        space, place = self.resolve(space, taken)
        rows = lanes(place, len(taken), 64)
        if int(np.bitwise_or.reduce(rows)) & 15:
            raise self.fault(
                f"{what}: row address {int(rows[rows % 16 != 0][0]):#x} is not aligned to 16 bytes",
                "align the array (.align 16; in CUDA alignas(16)), and pad its rows to a multiple of 16 bytes",
            )
        self._note_rows("r" if what == "ldmatrix" else "w", space, rows, count, trans)
        region = self.region(space, rows)
        try:
            offsets = region.check(rows, 16, 1)
        except RegionFault as fault:
            raise self.fault(f"{what}: {fault.what}", kind=fault.kind) from None
        assert isinstance(offsets, np.ndarray)
        return region, offsets.reshape(-1, count, 8)

    def _note_rows(self, kind: str, space: str, rows: Array, count: int, trans: bool) -> None:
        machine = self.machine
        if machine.timed:
            self.access = AccessNote(kind + "m", space, rows, 16, self.lanes, False)
        if machine.probe.access:
            shares, width = lane_shares(len(self.warps), count, trans), 2 if trans else 4
            parts = (rows[:, None] + np.arange(0, 16, width, dtype=rows.dtype)).reshape(-1)
            rank = first_of(rows) >> RANK_SHIFT
            self._tell_shared(kind, rank, parts, width, "weak", "", self.tids, None, shares)

    def ldmatrix(self, space: str, address: Value, count: int, trans: bool) -> Any:
        """ldmatrix .m8n8.b16: return `count` registers."""
        region, offsets = self._row_offsets(space, address, count, trans, "ldmatrix")
        if not self.machine.values:
            return None
        if (
            region.written is not None
            and not region.written.view(np.uint64)[offsets.reshape(-1) // 8].all()
        ):
            raise self.fault("ldmatrix reads bytes of shared memory that were never written")
        rows = region.data.view(np.complex128)[offsets // 16]
        words = rows.view(np.uint16).reshape(-1, count, 8, 8)
        per_warp = [matrices_to_registers(matrices, trans) for matrices in words]
        return [np.concatenate([registers[k] for registers in per_warp]) for k in range(count)]

    def stmatrix(self, space: str, address: Value, count: int, trans: bool, values: Any) -> None:
        """stmatrix .m8n8.b16."""
        region, offsets = self._row_offsets(space, address, count, trans, "stmatrix")
        self.machine.version += 1
        if values is None or any(value is None for value in values):
            if region.written is not None:
                for start in offsets[..., 0].reshape(-1).tolist():
                    region.mark(start, start + 16, False)
            return
        columns = [lanes(value, self.lanes, 32).reshape(-1, WARP) for value in values]
        rows = region.data.view(np.complex128)
        for warp in range(offsets.shape[0]):
            registers = np.stack([column[warp] for column in columns])
            matrices = np.ascontiguousarray(registers_to_matrices(registers, trans))
            rows[offsets[warp].reshape(-1) // 16] = (
                matrices.reshape(-1, 8).view(np.complex128).reshape(-1)
            )
        if region.written is not None:
            region.written.view(np.uint64)[offsets.reshape(-1) // 8] = 0x0101010101010101
            region.written.view(np.uint64)[offsets.reshape(-1) // 8 + 1] = 0x0101010101010101

    def move_matrix(self, value: Value | None) -> Any:
        """movmatrix.m8n8.trans.b16."""
        self._whole_warps("movmatrix")
        if value is None:
            return None
        words = self._by_warp(value, 32)
        return np.concatenate([movmatrix(row) for row in words])

    def mma_sync(
        self, what: str, product: Callable[..., Any], *operands: Any, register_bits: int = 32
    ) -> Any:
        """mma.sync: `product` maps registers (registers, warps, 32) of A, B, C, and metadata, to those of D."""
        self._whole_warps(what)
        if any(operand is None for operand in operands):
            return None
        stacked = [
            np.stack([lanes(value, self.lanes, register_bits) for value in operand]).reshape(
                len(operand), -1, WARP
            )
            for operand in operands
        ]
        return [register.reshape(-1) for register in product(*stacked)]


def _differs(mask: Value) -> bool:
    return isinstance(mask, np.ndarray) and not (mask == mask[0]).all()


def _is_predicate(value: Any) -> bool:
    return value.dtype == np.bool_ if hasattr(value, "dtype") else isinstance(value, bool)


@cache
def lane_shares(warps: int, count: int, trans: bool) -> tuple[Array, Array]:
    """Return which lanes hold which parts of the rows of ldmatrix and stmatrix: (threads, parts), pair by pair.

    Lanes address the rows, 8 lanes a matrix; but lane i holds word i % 4 of row i / 4 of each, or with `.trans` half
    i / 4 of rows 2 (i % 4) and the next. Parts are words of rows, 4 a row, or with `.trans` halves, 8 a row.

    >>> threads, parts = lane_shares(1, 1, False)
    >>> parts[threads == 5].tolist()
    [5]
    >>> threads, parts = lane_shares(1, 1, True)
    >>> parts[threads == 5].tolist()
    [17, 25]
    """
    held = matrices_to_registers(np.arange(64, dtype=np.uint16).reshape(1, 8, 8), trans)
    halves = held.view(np.uint16).reshape(WARP, 2).astype(np.int64)
    part = halves if trans else halves[:, :1] // 2
    lane = np.arange(WARP).repeat(part.shape[1])
    matrix = np.arange(warps * count)[:, None]
    of_matrix = 64 if trans else 32
    return (
        (matrix // count * WARP + lane).reshape(-1),
        (matrix * of_matrix + part.reshape(-1)).reshape(-1),
    )


__all__ = ["FULL", "OFFSET_MASK", "WarpOps"]
