"""What every unit of the timing model keeps: it drains, conserves bytes, and slower parts never make it faster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hopsim.config import HardwareConfig, load
from hopsim.hw.machine.work import TensorWork
from hopsim.hw.timing.dram import DramChannels
from hopsim.hw.timing.fabric import Fabric
from hopsim.hw.timing.footprint import Footprint
from hopsim.hw.timing.gpc_port import GpcPort
from hopsim.hw.timing.issue import IssuePorts
from hopsim.hw.timing.l2 import L2Cache
from hopsim.hw.timing.shared_memory import SharedPipe
from hopsim.hw.timing.tensor_core import TensorCore, WarpgroupQueue
from hopsim.hw.timing.tma_engine import TmaEngine

CONFIG = load("h100-sxm")
LINE = 128
FAR_FUTURE = 10_000_000.0


@dataclass
class Unit:
    """A unit under test: serves (time, size) and returns when it is done."""

    serve: Callable[[float, int], float]
    moved: Callable[[], int]
    each: int


def changed(config: HardwareConfig, group: str, **values: Any) -> HardwareConfig:
    return config.model_copy(update={group: getattr(config, group).model_copy(update=values)})


def dram(config: HardwareConfig) -> Unit:
    unit = DramChannels(config.dram, config.l2.line_bytes)
    return Unit(
        lambda t, n: t + sum(unit.latency(np.arange(n) * 9)) + unit.read(t, n * 32),
        lambda: unit.read_bytes,
        32,
    )


def fabric(config: HardwareConfig) -> Unit:
    unit = Fabric(config.dsmem, 4)
    return Unit(
        lambda t, n: unit.transfer(t, n % 2, 2 + n % 2, n * 16), lambda: unit.bytes_moved, 16
    )


def pipe(config: HardwareConfig) -> Unit:
    unit = SharedPipe(config.smem)
    return Unit(
        lambda t, n: unit.book(t, n, n) + config.smem.latency_cycles,
        lambda: unit.wavefronts * LINE,
        LINE,
    )


def tensor(config: HardwareConfig) -> Unit:
    unit, queue = TensorCore(config.tensor), WarpgroupQueue(config.tensor.queue_depth)

    def serve(time: float, size: int) -> float:
        unit.book(queue, time, TensorWork("bf16", 8 * size, 16, 16, False, False, None))
        return unit.complete(unit.close(queue))

    return Unit(serve, lambda: unit.operand_bytes, 8 * 16 * 2)


def tma(config: HardwareConfig) -> Unit:
    unit = TmaEngine(config.tma)

    def serve(time: float, size: int) -> float:
        begin = unit.start(time, None)
        sent = unit.send(begin, size * LINE, size)
        end = max(sent.end, unit.fill(begin, sent).expected(time))
        done = end + config.l2.latency_near_cycles + unit.load_latency(2)
        unit.returned(done)
        return done

    return Unit(serve, lambda: unit.bytes_moved, LINE)


def l2(config: HardwareConfig) -> Unit:
    unit = L2Cache(
        config.l2, DramChannels(config.dram, config.l2.line_bytes), config.device.gpc_sm_counts
    )
    unit.tags.cover(0, 4096 * LINE)
    state = {"next": 0}

    def serve(time: float, size: int) -> float:
        # Some boxes again, some new, from changing GPCs.
        state["next"] += 1
        first = (state["next"] * 37) % 1000
        lines = np.arange(first, first + size, dtype=np.int64)
        return unit.read(time, time, Footprint(lines, size * 4), state["next"] % 8).ready

    return Unit(serve, lambda: unit.counters.requested * 32, LINE)


def gpc_port(config: HardwareConfig) -> Unit:
    l2 = L2Cache(
        config.l2, DramChannels(config.dram, config.l2.line_bytes), config.device.gpc_sm_counts
    )
    l2.tags.cover(0, 4096 * LINE)
    unit = GpcPort(config.l2, l2, 0, 16)
    state = {"next": 0}

    def serve(time: float, size: int) -> float:
        # Every second box is asked for by a neighbour as well.
        state["next"] += 1
        lines = np.arange(size, dtype=np.int64) + state["next"] // 2 % 30 * 32
        arrival = unit.read(time, time, time, Footprint(lines, size * 4), state["next"] % 16)
        return max(arrival.ready, unit.expected(arrival, time))

    return Unit(serve, lambda: l2.counters.requested * 32, LINE)


def issue(config: HardwareConfig) -> Unit:
    unit = IssuePorts(config.device.subpartitions)
    ports = ((0, 1), (1, 1))
    unit.admit(ports)
    unit.admit(((0, 2),))

    return Unit(
        lambda t, n: unit.book(ports, t, n / config.issue.issue_rate),
        lambda: round(unit.busy_slots * config.issue.issue_rate),
        2,
    )


UNITS: dict[str, Callable[[HardwareConfig], Unit]] = {
    "dram": dram, "fabric": fabric, "pipe": pipe, "tensor": tensor, "tma": tma, "l2": l2, "gpc port": gpc_port, "issue": issue,
}  # fmt: skip

SLOWER = {
    "dram latency": ("dram", {"latency_cycles": 2000}),
    "dram refresh": ("dram", {"refresh_cycles": 2000}),
    "dram refresh interval": ("dram", {"refresh_interval_cycles": 600}),
    "dram contention": ("dram", {"contention_latency_cycles": 2000}),
    "dram spread": ("dram", {"latency_spread_cycles": 900}),
    "dram bandwidth": ("dram", {"bandwidth_bytes_per_clk": 100.0}),
    "fabric latency": ("dsmem", {"latency_cycles": 900}),
    "fabric bandwidth": ("dsmem", {"bandwidth_per_sm_bytes_per_clk": 2.0}),
    "smem latency": ("smem", {"latency_cycles": 100}),
    "tensor latency": ("tensor", {"latency_base_cycles": 300}),
    "operand bandwidth": ("tensor", {"operand_bandwidth_bytes_per_clk": 8.0}),
    "tma latency": ("tma", {"latency_cycles": 900}),
    "tma bandwidth": ("tma", {"bandwidth_bytes_per_clk": 4.0}),
    "tma requests": ("tma", {"request_interval_cycles": 8.0}),
    "tma interval": ("tma", {"issue_interval_cycles": 500.0}),
    "tma window": ("tma", {"max_inflight_requests": 8}),
    "l2 near": ("l2", {"latency_near_cycles": 400}),
    "l2 far": ("l2", {"latency_far_cycles": 900}),
    "l2 bandwidth": ("l2", {"bandwidth_bytes_per_clk": 200.0}),
    "gpc bandwidth": ("l2", {"bandwidth_per_gpc_bytes_per_clk": 20.0}),
    "gpc handing": ("l2", {"handing": 1.0}),
    "gpc gathering": ("l2", {"gathering_cycles": 300}),
    "gpc delivery": ("l2", {"delivery_per_gpc_bytes_per_clk": 20.0}),
}

IDEAL = CONFIG
for _group, _values in {
    "dram": {
        "latency_cycles": 0, "latency_spread_cycles": 0, "refresh_cycles": 0,
        "contention_latency_cycles": 0, "bandwidth_bytes_per_clk": 1e12,
    },
    "dsmem": {"latency_cycles": 0, "bandwidth_per_sm_bytes_per_clk": 1e12},
    "smem": {"latency_cycles": 0, "bandwidth_bytes_per_clk": 1e12},
    "tensor": {"latency_base_cycles": 0, "operand_bandwidth_bytes_per_clk": 1e12},
    "tma": {
        "latency_cycles": 0, "bandwidth_bytes_per_clk": 1e12, "issue_interval_cycles": 0.0,
        "rank_extra_cycles": (0,) * 5, "max_inflight_requests": 10**9, "request_interval_cycles": 0.0,
    },
    "l2": {"latency_near_cycles": 0, "latency_far_cycles": 0, "bandwidth_bytes_per_clk": 1e12,
        "bandwidth_per_gpc_bytes_per_clk": 1e12, "delivery_per_gpc_bytes_per_clk": 1e12,
    },
    "issue": {"issue_rate": 1000},
}.items():  # fmt: skip
    IDEAL = changed(IDEAL, _group, **_values)

A_LITTLE = 0.05
"""Cycles: where one comes later, the next finds so much less before it."""

requests = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 32)), min_size=1, max_size=40)


def play(unit: Unit, gaps: list[tuple[int, int]]) -> list[tuple[float, float]]:
    time, result = 0.0, []
    for gap, size in gaps:
        time += gap
        result.append((time, unit.serve(time, size)))
    return result


@pytest.mark.parametrize("name", UNITS)
@settings(max_examples=30, deadline=None)
@given(gaps=requests)
def test_drains_and_conserves_bytes(name: str, gaps: list[tuple[int, int]]) -> None:
    unit = UNITS[name](CONFIG)
    for start, end in play(unit, gaps):
        assert start <= end < FAR_FUTURE
    assert unit.moved() == sum(size for _, size in gaps) * unit.each
    # Long after the last request the unit serves as if it were new.
    late = unit.serve(FAR_FUTURE, 1) - FAR_FUTURE
    fresh = UNITS[name](CONFIG).serve(0.0, 1)
    if name in ("l2", "gpc port"):
        # What it serves may be there by now, or in the other half, or in a channel that refreshes.
        worst = CONFIG.l2.latency_far_cycles + CONFIG.dram.refresh_cycles
        assert CONFIG.l2.latency_near_cycles < late <= fresh + worst
    elif name == "dram":
        assert late == pytest.approx(fresh, abs=CONFIG.dram.refresh_cycles)
    else:
        assert late == pytest.approx(fresh, abs=1e-6)


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("change", SLOWER)
@settings(max_examples=4, deadline=None)
@given(gaps=requests)
@example(gaps=[(0, 2), (0, 1)])
@example(gaps=[(0, 1), (0, 1), (0, 1), (0, 1), (182, 1), (0, 1)])
def test_slower_parts_never_help(name: str, change: str, gaps: list[tuple[int, int]]) -> None:
    group, values = SLOWER[change]
    usual = play(UNITS[name](CONFIG), gaps)
    slower = play(UNITS[name](changed(CONFIG, group, **values)), gaps)
    assert all(b >= a - A_LITTLE for (_, a), (_, b) in zip(usual, slower, strict=True))


@pytest.mark.parametrize("name", UNITS)
@settings(max_examples=20, deadline=None)
@given(gaps=requests)
def test_ideal_parts_are_never_slower(name: str, gaps: list[tuple[int, int]]) -> None:
    usual = play(UNITS[name](CONFIG), gaps)
    ideal = play(UNITS[name](IDEAL), gaps)
    assert all(b <= a + 1e-6 for (_, a), (_, b) in zip(usual, ideal, strict=True))
