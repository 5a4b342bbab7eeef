"""Bring the lanes of a warp together where an instruction needs them.

Lanes of a warp that parted are strands of their own.  A collective (`bar.warp.sync`, `shfl.sync`, ...) waits until all live
lanes of its mask execute one with the same qualifiers and mask.  Those at one place become one strand; those at several
places exchange what they have to, and go on from where they are.

Source: PTX ISA 8.7 "bar.warp.sync", "shfl.sync", "vote.sync"; "bar, barrier" for the aligned forms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hopsim.hw.machine.access import MemoryOps
from hopsim.hw.machine.thread_groups import WARP
from hopsim.hw.machine.waiting import Wait
from hopsim.isa.forms.form import BLOCKED
from hopsim.isa.values import Array, Value, collapse

FULL = 0xFFFFFFFF
# A strand that gathers, what it waits on, and its operands.
Party = tuple[Any, Wait, tuple[Any, ...]]


def mask_of(strand: Any) -> int:
    """Return the lanes of a strand that lies within one warp, as a bit mask."""
    mask = 0
    for lane in (strand.tids % WARP).tolist():
        mask |= 1 << lane
    return mask


class ConvergenceOps(MemoryOps):
    """What brings lanes together."""

    def gather_lanes(
        self, mask: Value, what: str, method: Callable[..., Any] | None = None, *operands: Any
    ) -> Any:
        """Wait for every live lane of `mask`: at this instruction or, for a `method`, wherever one executes the same.

        Returns: None when they are all in this strand; BLOCKED while some are elsewhere; after lanes met from several
            places, a wait whose `detail` is the answer to this strand.

        Raises: MachineFault: a lane executes it that its own mask does not name.
        """
        if isinstance(mask, np.ndarray):
            if not (mask == mask[0]).all():
                return self._gather_groups(mask, what)
            mask = int(mask[0])
        if self.lanes == WARP * len(self.warps):
            if mask & FULL != FULL:
                self._not_named(FULL & ~mask, mask, what)
            return None
        resumed = self.resumed
        if resumed is not None and resumed.kind == "collective" and resumed.over:
            return resumed
        warp = self.warps[0]
        own = mask_of(self) if len(self.warps) == 1 else self._lanes_of_any_warp()
        if own & ~mask:
            self._not_named(own & ~mask, mask, what)
        wanted = mask & self.cta.live_lanes(warp)
        if len(self.warps) > 1 or wanted & ~own == 0:
            return None
        key = ("lanes", warp, self.segment if method is None else self._qualifiers(), mask)
        present: list[Party] = self.cta.rendezvous.setdefault(key, [])
        wait = Wait("collective", self.warpgroup, what)
        present.append((self, wait, operands))
        together = 0
        for strand, _, _ in present:
            together |= mask_of(strand)
        if wanted & ~together:
            self.block(wait)
            return BLOCKED
        del self.cta.rendezvous[key]
        if method is None or all(strand.segment == self.segment for strand, _, _ in present):
            return self.fuse([strand for strand, _, _ in present], wait)
        self.block(wait)
        self._exchange(method, present, mask)
        return BLOCKED

    def _qualifiers(self) -> Any:
        """Return what instructions must have in common for their lanes to meet, besides the mask."""
        bound = self.machine.program[self.segment].instructions[0]
        return (bound.form.name, bound.slots)

    def _exchange(self, method: Callable[..., Any], present: list[Party], mask: int) -> None:
        """Execute a collective once for lanes that stand at several places; each place goes on with its own answer."""
        tids = np.concatenate([strand.tids for strand, _, _ in present])
        order = np.argsort(tids)
        every: Any = type(self)(self.cta, tids[order], self.registers, self.segment)
        given = [
            self._side_by_side(values, [strand.lanes for strand, _, _ in present], order)
            for values in zip(*(operands for _, _, operands in present), strict=True)
        ]
        answer: Any = method(every, *given, mask)
        places: dict[int, list[Any]] = {}
        for strand, wait, _ in present:
            wait.over = True
            places.setdefault(strand.segment, []).append(strand)
        for strands in places.values():
            strand: Any = self.merge(strands) if len(strands) > 1 else strands[0]
            strand.waiting.detail = _part_of(answer, every.tids.searchsorted(strand.tids))
            self.machine.wake(strand)

    def _side_by_side(self, values: Sequence[Any], lanes: Sequence[int], order: Any) -> Any:
        """Return one operand of several strands as that of all their lanes."""
        first = values[0]
        if all(not isinstance(value, np.ndarray) and value == first for value in values):
            return first
        if any(value is None for value in values):
            self.need_values(self.line)
        # An int does not tell its width; only match has operands of 64 bits, and compares them whatever the width.
        dtype = np.result_type(*(_dtype_of(value) for value in values))
        columns: list[Array] = [
            value if isinstance(value, np.ndarray) else np.full(count, value, dtype)
            for value, count in zip(values, lanes, strict=True)
        ]
        return np.concatenate(columns)[order]

    def _gather_groups(self, mask: Any, what: str) -> Any:
        """Check lanes whose masks differ: each group must be here as a whole."""
        for one in dict.fromkeys(mask.tolist()):
            chosen = self.tids[mask == one]
            here = 0
            for lane in (chosen % WARP).tolist():
                here |= 1 << lane
            live = self.cta.live_lanes(int(chosen[0]) // WARP)
            if here & ~one:
                self._not_named(here & ~one, one, what)
            if one & live & ~here:
                raise self.fault(
                    f"{what}: lanes here have different masks, and lanes {one & live & ~here:#x} of mask {one:#x} are "
                    "elsewhere (not modelled)", "let the lanes of a mask converge first (bar.warp.sync)",
                )  # fmt: skip
        return None

    def _lanes_of_any_warp(self) -> int:
        mask = 0
        for lane in (self.tids % WARP).tolist():
            mask |= 1 << lane
        return mask

    def groups_of_warps(self, *values: Value | None) -> list[Any] | None:
        """Group the lanes by consecutive warps for which all values are the same; None where lanes of a warp differ."""
        warps = self.tids // WARP
        groups: list[Any] = []
        last: Any = None
        for warp in self.warps:
            here = warps == warp
            key: list[int] = []
            for value in values:
                if isinstance(value, np.ndarray):
                    word = value[here]
                    if (word != word[0]).any():
                        return None
                    key.append(int(word[0]))
            if groups and key == last:
                groups[-1] = groups[-1] | here
            else:
                groups.append(here)
            last = key
        return groups

    def part_warps(self, *values: Value | None) -> Any:
        """Where values differ between the warps of this strand, but not inside them, let each group go by itself.

        Returns: BLOCKED when the strand was divided: its parts execute the instruction again.
        """
        if len(self.warps) == 1 or not any(isinstance(value, np.ndarray) for value in values):
            return None
        groups = self.groups_of_warps(*values)
        if groups is None or len(groups) == 1:
            return None
        return self.part(groups)

    def part(self, groups: Sequence[Any]) -> Any:
        """Let groups of warps execute this instruction again, each by itself; returns BLOCKED."""
        self.divide(groups)
        self.block(Wait("collective", self.warpgroup, "its own operands"))
        self.machine.wake(self)
        return BLOCKED

    def _not_named(self, lanes: int, mask: int, what: str) -> None:
        raise self.fault(
            f"{what}: executed by lanes {lanes:#x}, which are not in its mask {mask & FULL:#x}",
            "each thread that executes it must be named in its own mask",
        )

    def converge(self, what: str, hint: str, source: str) -> Any:
        """Bring a warp together for an aligned instruction; None when it is whole, BLOCKED while it gathers.

        Raises: MachineFault: the program itself parted the warp.
        """
        if self.is_whole:
            return None
        if any(
            strand.is_apart and strand.warps[0] in self.warps for strand in self.warpgroup.strands
        ):
            return self.gather_lanes(FULL, what)
        raise self.fault(
            f"{what} executed by {self.lanes} lanes of {self.describe()}", hint, source
        )

    def regroup(self) -> None:
        """After lanes of this strand's warps left: those who gather look again who is still to come."""
        rendezvous = self.cta.rendezvous
        if not rendezvous:
            return
        for key in [key for key in rendezvous if key[0] == "lanes" and key[1] in self.warps]:
            for strand, _, _ in rendezvous.pop(key):
                self.machine.wake(strand)


def _dtype_of(value: Value) -> np.dtype[Any]:
    if isinstance(value, np.ndarray):
        return value.dtype
    if isinstance(value, bool):
        return np.dtype(np.bool_)
    return np.promote_types(np.uint32, np.min_scalar_type(value))


def _part_of(answer: Value | tuple[Value, ...], here: Array) -> Any:
    """Return what the lanes at some positions get of an answer."""
    if isinstance(answer, tuple):
        return tuple(_part_of(part, here) for part in answer)
    return collapse(answer[here]) if isinstance(answer, np.ndarray) else answer


__all__ = ["FULL", "ConvergenceOps", "mask_of"]
