"""The tensor cores of one SM, as mma.sync sees them: each sub-partition has a pipe of its own."""

from __future__ import annotations

import math
from collections import deque
from typing import Final, NamedTuple

from hopsim.config.groups import MmaSync
from hopsim.hw.timing.issue import Ports
from hopsim.isa.forms.bound import BoundInstruction
from hopsim.isa.mma import WIDTHS, dimensions

Gap = tuple[float, float]
GAPS_KEPT: Final = 64
NEVER: Final = math.inf
FULL: Final = 4
"""Registers of A in the largest shapes."""
DOUBLE: Final = "f64"
WARP_BITS: Final = 1024
"""Of one register of a warp."""
FLOP_PER_FMA: Final = 2
LEAST_ROWS: Final = 16
"""A product of eight rows takes the pipe as long as one of sixteen.

Source: hopsim's recordings on an H200, tests/silicon/h200/micro.json, mma_kind_m8n8k4_f64_*, mma_kind_m8n8k16_s8_*.
"""


def kind_of(bound: BoundInstruction) -> str:
    """Return which of `hopsim.config.quantities.PRODUCTS` an mma.sync is."""
    slots = dict(bound.slots)
    if slots.get("op") == "xor":
        return f"{_type_of(bound)}_xor"
    return f"sparse_{_type_of(bound)}" if "sp" in slots else _type_of(bound)


def _type_of(bound: BoundInstruction) -> str:
    """Return the type of A; forms of one type do not name it."""
    return dict(bound.slots).get("at") or bound.instruction.opcode[-2]


class Product(NamedTuple):
    """What an mma.sync is to the pipe.

    Args:
        kind: one of `hopsim.config.quantities.PRODUCTS`.
        flop: those of a product of sixteen rows at least; of a sparse A what is stored counts.
        registers: of A, 32 bits each.
    """

    kind: str
    flop: float
    registers: int


def product_of(bound: BoundInstruction) -> Product:
    """Return what an mma.sync is to the pipe."""
    m, n, k = dimensions(dict(bound.slots)["shape"])
    stored = k // 2 if "sp" in dict(bound.slots) else k
    words = m * stored * WIDTHS[_type_of(bound)] // WARP_BITS
    flop = FLOP_PER_FMA * max(m, LEAST_ROWS) * n * stored
    return Product(kind_of(bound), float(flop), words)


def _from_gap(gaps: deque[Gap], issue: float, length: float) -> float:
    """Take some cycles from the first gap that has them at `issue` or later; return when they begin, or NEVER."""
    for index, (begin, until) in enumerate(gaps):
        start = begin if begin > issue else issue
        if start + length <= until:
            del gaps[index]
            if start + length < until:
                gaps.insert(index, (start + length, until))
            if begin < start and len(gaps) < GAPS_KEPT:
                gaps.insert(index, (begin, start))
            return start
    return NEVER


class MmaPipe:
    """mma.sync on one SM: each sub-partition has its share of the rate; times in cycles of the SM clock.

    Args:
        config: rates and latency.
        subpartitions: of the SM.
    """

    __slots__ = (
        "_config",
        "_gaps",
        "_rates",
        "_subpartitions",
        "busy_cycles",
        "free",
        "operations",
    )

    def __init__(self, config: MmaSync, subpartitions: int) -> None:
        self._config = config
        self._subpartitions = subpartitions
        # Cycles of the SM's pipes, of the warp's own before its next one, and until its sums are there.
        self._rates: dict[Product, tuple[float, float, float]] = {}
        self.free = [0.0] * subpartitions
        # When each had nothing to do before `free`: (from, until), the last times.
        self._gaps: list[deque[Gap]] = [deque(maxlen=GAPS_KEPT) for _ in range(subpartitions)]
        self.busy_cycles = 0.0
        self.operations = 0

    def worked_until(self, now: float) -> float:
        """Return the cycles of all work that is done by then, of the pipes of all sub-partitions."""
        ahead = sum(max(0.0, free - now) for free in self.free)
        return self.busy_cycles - ahead / len(self.free)

    def book(
        self, issue: float, product: Product, ports: Ports, before: float
    ) -> tuple[float, float, float]:
        """Execute one m16nNkK for each warp of a strand.

        Args:
            ports: warps of the strand by sub-partition.
            before: when its last one let another begin.
        Returns: when a dependent one can issue, when this one lets another begin, and when all of it has been issued.
        """
        rates = self._rates.get(product)
        if rates is None:
            rates = self._rates[product] = self._rates_of(product)
        duration, interval, latency = rates
        free = self.free
        each = duration * len(free)
        last = then = taken = 0.0
        for port, warps in ports:
            self.busy_cycles += duration * warps
            self.operations += warps
            start, length = free[port], each * warps
            if start < issue:
                # A warp whose products wait for each other leaves the pipe to others, which are booked after it.
                if start + each <= issue:
                    self._gaps[port].append((start, issue))
                start = issue
                free[port] = start + length
            else:
                gaps = self._gaps[port]
                start = _from_gap(gaps, issue, length) if gaps else NEVER
                if start == NEVER:
                    start = free[port]
                    free[port] = start + length
            end = start + length
            own = (before if before > start else start) + interval * warps
            done = start + latency
            if end > done:
                done = end
            if own > done:
                done = own
            if done > last:
                last = done
            if end - each > taken:
                taken = end - each
            if own > then:
                then = own
        # Of one of several instructions the last ones add its products up, when these are there.
        return last, then, last + self._config.emulated_latency_cycles if interval else taken

    def _rates_of(self, product: Product) -> tuple[float, float, float]:
        config, kind = self._config, product.kind
        duration = product.flop / config.flop_per_clk[kind]
        latency = config.latency_cycles - config.register_cycles * (
            FULL - min(product.registers, FULL)
        )
        if kind in config.warp_rate_flop_per_clk:
            return duration, product.flop / config.warp_rate_flop_per_clk[kind], latency
        if kind == DOUBLE:
            latency = duration * self._subpartitions + config.drain_cycles
        return duration, 0.0, latency


__all__ = ["MmaPipe"]
