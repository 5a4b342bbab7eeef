"""Find out that strands spin, or try, for ever: they come back to the same state while nothing in the machine changes.

A strand is deterministic: when its place and its live registers are what they were before, and no memory, barrier or
operation changed in between (`Machine.news`), it will go round the same loop until something else changes.  When that
holds for every strand that can step, nothing will.  A clock that was read counts as a change, so that timeouts are left
alone.

Source: the idea of comparing with a snapshot that is renewed at powers of two is Brent's cycle finding.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hopsim.hw.machine.launch import Machine


class SpinWatch:
    """Samples strands while the machine does not change."""

    def __init__(self) -> None:
        self._version = -1
        self._samples = 0
        self._renew = 1
        self._seen: dict[Any, tuple[int, list[Any]]] = {}
        self._spinning: dict[Any, None] = {}
        self._moved: set[Any] = set()

    def moved(self, strand: Any) -> None:
        """Note that a strand took a step: only then does coming back to a state mean anything."""
        self._moved.add(strand)

    def sample(self, version: int, strands: Iterable[Any]) -> bool:
        """Look at the strands that can step; return whether all of them are known to spin.

        Args:
            version: `Machine.news`.
            strands: all that can step; each is between two steps.
        """
        if version != self._version:
            self._version = version
            self._samples = 0
            self._renew = 1
            self._seen = {}
            self._spinning = {}
            self._moved = set()
        self._samples += 1
        renew = self._samples == self._renew
        if renew:
            self._renew *= 2
        everyone = True
        for strand in strands:
            if strand in self._spinning or strand.done:
                continue
            seen = self._seen.get(strand)
            if seen is not None and strand in self._moved and same_state(strand, seen):
                self._spinning[strand] = None
                continue
            everyone = False
            if renew:
                self._seen[strand] = state_of(strand)
                self._moved.discard(strand)
        return everyone


class Peeks:
    """Tells parked `try_wait`s "not yet" when nothing else can happen, as long as that leads to anything."""

    def __init__(self) -> None:
        self._told: dict[Any, tuple[int, list[Any]]] = {}
        self._version = -1

    def tell(self, machine: Machine) -> bool:
        """Tell all of them; return False when they came back the same from the last time."""
        parked = [
            (strand, strand.waiting.subject)
            for strand in machine.waiting
            if strand.waiting is not None and strand.waiting.kind == "mbarrier"
        ]
        again = machine.news == self._version and len(parked) == len(self._told)
        if not parked or (
            again and all(s in self._told and same_state(s, self._told[s]) for s, _ in parked)
        ):
            return False
        self._told = {strand: state_of(strand) for strand, _ in parked}
        for strand, barrier in parked:
            strand.peek = True
            if strand in barrier.waiters:
                barrier.waiters.remove(strand)
            machine.wake(strand)
        self._version = machine.news
        return True


def state_of(strand: Any) -> tuple[int, list[Any]]:
    """Return the place and the registers of a strand (arrays in registers are never changed in place)."""
    return strand.segment, list(strand.registers)


def same_state(strand: Any, seen: tuple[int, list[Any]]) -> bool:
    """Whether a strand stands where it stood, with the same values in the registers that are live there."""
    segment, registers = seen
    if strand.segment != segment or len(strand.registers) != len(registers):
        return False
    live = strand.machine.program[segment].live
    while live:
        low = live & -live
        live ^= low
        index = low.bit_length() - 1
        now: Any = strand.registers[index]
        then: Any = registers[index]
        if now is then:
            continue
        if isinstance(now, int) != isinstance(then, int) or not np.all(now == then):
            return False
    return True
