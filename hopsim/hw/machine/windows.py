"""Generic addresses: into which state space each lane points, and accesses whose lanes point into several.

Lanes of one generic access may point into different windows.  The access is then made space by space, by views of the
lanes that point into each; nothing orders lanes of one instruction, so that the order of the spaces is of no account.

Source: PTX ISA 8.7 "Generic Addressing"; window addresses are hopsim's own (DEVIATIONS D-ADDR).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hopsim.hw.machine.memory import (
    LOCAL_WINDOW,
    PARAM_WINDOW,
    RANK_SHIFT,
    SHARED_WINDOW,
    WINDOW_SHIFT,
    WINDOWS,
)
from hopsim.hw.machine.strand import StrandCore
from hopsim.isa.program.codegen import pick
from hopsim.isa.values import Value, collapse

WINDOW_MASK = (1 << WINDOW_SHIFT) - 1
SHARED_SPACES = ("shared", "shared::cta", "shared::cluster")


class GenericAddresses(StrandCore):
    """The address arithmetic around ld, st and atom."""

    def find_space(self, space: str, address: Value) -> tuple[str, Value] | None:
        """Turn a generic address into (space, address in it), or None where lanes differ; others pass through."""
        if space:
            return space, address
        if isinstance(address, np.ndarray):
            windows = address >> np.uint64(WINDOW_SHIFT)
            window = int(windows[0])
            if (windows != window).any() and any(int(w) in WINDOWS for w in set(windows.tolist())):
                return None
            if window in WINDOWS:
                return WINDOWS[window], address & np.uint64(WINDOW_MASK)
            return "global", address
        window = address >> WINDOW_SHIFT
        if window in WINDOWS:
            return WINDOWS[window], address & WINDOW_MASK
        return "global", address

    def resolve(self, space: str, address: Value) -> tuple[str, Value]:
        """Turn a generic address into (space, address in it), for what takes one space only; others pass through.

        Raises: MachineFault: lanes point into different spaces.
        """
        found = self.find_space(space, address)
        if found is None:
            raise self.fault(
                "lanes point into different state spaces, where this instruction takes one",
                "let all lanes that execute it point into the same space",
            )
        return found

    def space_by_space(
        self, address: Value, word: int, access: Callable[[Any, Value, Any], Any]
    ) -> list[Any] | None:
        """Make an access whose lanes point into different spaces; return its columns of words, None without values.

        Args:
            word: bytes of each column.
            access: (strand of some of the lanes, their addresses, their positions) -> their columns, or None.
        """
        assert isinstance(address, np.ndarray), address
        windows = address >> np.uint64(WINDOW_SHIFT)
        held = [number for number in sorted(set(windows.tolist())) if number in WINDOWS]
        chosen = [windows == number for number in held]
        outside = ~np.isin(windows, held)
        owner = self.acting or self
        notes: list[Any] = []
        parts: list[tuple[Any, Any]] = []
        for lanes in [outside, *chosen]:
            view, positions = self.choose(lanes)
            if view is None:
                continue
            parts.append((positions, access(view, pick(address, positions), positions)))
            notes.append(owner.access)
        if self.machine.timed:
            owner.access = notes[0]._replace(beside=tuple(notes[1:]))
        if any(columns is None for _, columns in parts):
            return None
        count = len(parts[0][1])
        words = [np.zeros(self.lanes, f"u{word}") for _ in range(count)]
        for positions, columns in parts:
            for k in range(count):
                words[k][positions] = columns[k]
        return words

    def to_generic(self, space: str, address: Value) -> Value:
        """cvta: the generic address of an address in `space`."""
        window = {
            "shared": SHARED_WINDOW, "shared::cta": SHARED_WINDOW, "shared::cluster": SHARED_WINDOW,
            "local": LOCAL_WINDOW, "param": PARAM_WINDOW, "global": 0, "const": 0,
        }[space]  # fmt: skip
        return address + window if isinstance(address, int) else address + np.uint64(window)

    def from_generic(self, space: str, address: Value) -> Value:
        """cvta.to: the address in `space` of a generic address."""
        if space in ("global", "const"):
            return address
        return (
            address & WINDOW_MASK if isinstance(address, int) else address & np.uint64(WINDOW_MASK)
        )

    def is_space(self, space: str, address: Value) -> Any:
        """isspacep: whether a generic address points into `space`, lane by lane."""
        if isinstance(address, np.ndarray):
            return collapse(np.array([self._is_in(space, one) for one in address.tolist()]))
        return self._is_in(space, address)

    def _is_in(self, space: str, address: int) -> bool:
        found = WINDOWS.get(address >> WINDOW_SHIFT, "global")
        if space in SHARED_SPACES and found == "shared::cluster":
            own = (address & WINDOW_MASK) >> RANK_SHIFT == self.cta.rank
            return own or space == "shared::cluster"
        return found == space
