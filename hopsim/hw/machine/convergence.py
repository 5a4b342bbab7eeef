"""Bring the lanes of a warp together where an instruction needs them.

Lanes of a warp that parted are strands of their own.  A collective (`shfl.sync`, `vote.sync`, ...) waits until all live
lanes of its mask stand at it, and makes one strand of them; `bar.warp.sync` lets lanes meet that stand at different ones.

Source: PTX ISA 8.7 "bar.warp.sync", "shfl.sync", "vote.sync"; "bar, barrier" for the aligned forms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hopsim.hw.machine.access import MemoryOps
from hopsim.hw.machine.strand import WARP
from hopsim.hw.machine.waiting import Wait
from hopsim.isa.forms.form import BLOCKED
from hopsim.isa.values import Value

FULL = 0xFFFFFFFF


def mask_of(strand: Any) -> int:
    """Return the lanes of a strand that lies within one warp, as a bit mask."""
    mask = 0
    for lane in (strand.tids % WARP).tolist():
        mask |= 1 << lane
    return mask


class ConvergenceOps(MemoryOps):
    """What brings lanes together."""

    def gather_lanes(self, mask: Value, what: str) -> Any:
        """Make sure that every live lane of `mask` is in this strand; BLOCKED while some are elsewhere.

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
        warp = self.warps[0]
        own = mask_of(self) if len(self.warps) == 1 else self._lanes_of_any_warp()
        if own & ~mask:
            self._not_named(own & ~mask, mask, what)
        wanted = mask & self.cta.live_lanes(warp)
        if len(self.warps) > 1 or wanted & ~own == 0:
            return None
        key = ("lanes", warp, self.segment, mask)
        present: list[tuple[Any, Wait]] = self.cta.rendezvous.setdefault(key, [])
        wait = Wait("collective", self.warpgroup, what)
        present.append((self, wait))
        together = 0
        for strand, _ in present:
            together |= mask_of(strand)
        if wanted & ~together:
            self.block(wait)
            return BLOCKED
        del self.cta.rendezvous[key]
        return self.fuse([strand for strand, _ in present], wait)

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

    def meet_lanes(self, mask: Value) -> Any:
        """bar.warp.sync: wait for every live lane of the mask, wherever in the program it executes one."""
        resumed = self.resumed
        if resumed is not None and resumed.kind == "collective" and resumed.over:
            return None
        if self.lanes == WARP * len(self.warps) or isinstance(mask, np.ndarray):
            return self.gather_lanes(mask, "bar.warp.sync")
        own = self._lanes_of_any_warp()
        if own & ~mask:
            self._not_named(own & ~mask, mask, "bar.warp.sync")
        warp = self.warps[0]
        wanted = mask & self.cta.live_lanes(warp)
        if len(self.warps) > 1 or wanted & ~own == 0:
            return None
        key = ("lanes", warp, "bar.warp.sync", mask)
        present: list[tuple[Any, Wait]] = self.cta.rendezvous.setdefault(key, [])
        wait = Wait("collective", self.warpgroup, "bar.warp.sync")
        present.append((self, wait))
        together = 0
        for strand, _ in present:
            together |= mask_of(strand)
        self.block(wait)
        if wanted & ~together:
            return BLOCKED
        del self.cta.rendezvous[key]
        places: dict[int, list[Any]] = {}
        for strand, one in present:
            one.over = True
            places.setdefault(strand.segment, []).append(strand)
        for strands in places.values():
            self.machine.wake(self.merge(strands) if len(strands) > 1 else strands[0])
        return BLOCKED

    def regroup(self) -> None:
        """After lanes of this strand's warps left: those who gather look again who is still to come."""
        rendezvous = self.cta.rendezvous
        if not rendezvous:
            return
        for key in [key for key in rendezvous if key[0] == "lanes" and key[1] in self.warps]:
            for strand, _ in rendezvous.pop(key):
                self.machine.wake(strand)


__all__ = ["FULL", "ConvergenceOps", "mask_of"]
