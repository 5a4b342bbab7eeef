"""Atomics in L2: a rate of requests for the chip, and one of sectors that have to be fetched first."""

from __future__ import annotations

import numpy as np
import pytest

import hopsim as hs
from hopsim.config import load
from hopsim.hw.timing.dram import DramChannels
from hopsim.hw.timing.footprint import Footprint
from hopsim.hw.timing.l2 import L2Cache
from tests.hw.timing.kernels import launch

CONFIG = load("h100-sxm")
REQUEST = CONFIG.l2.atomic_interval_cycles
MISS = CONFIG.l2.atomic_miss_interval_cycles


def cache() -> L2Cache:
    result = L2Cache(CONFIG.l2, DramChannels(CONFIG.dram, CONFIG.l2.line_bytes), [16] * 8)
    result.tags.cover(0, 1 << 20)
    return result


def masks(bits: int) -> np.ndarray:
    return np.full(8, bits, np.uint8)


def test_a_sector_is_fetched_once_and_the_one_beside_it_with_it() -> None:
    unit = cache()
    lines = np.arange(0, 800, 100, dtype=np.int64)

    def add(mask: int) -> float:
        return unit.atomic(0.0, 0.0, Footprint(lines, 8, masks(mask)), 8, 0)[0]

    taken, done = unit.atomic(0.0, 0.0, Footprint(lines, 8, masks(0b0001)), 8, 0)
    assert taken == pytest.approx(8 * (REQUEST + 2 * MISS))
    assert done > CONFIG.dram.latency_cycles
    again = add(0b0001)
    assert again == pytest.approx(taken + 8 * REQUEST)
    beside = add(0b0010)
    assert beside == pytest.approx(again + 8 * REQUEST)
    assert add(0b0100) == pytest.approx(beside + 8 * (REQUEST + 2 * MISS))
    assert unit.counters.dram_read == 32


def test_gpcs_share_the_rate() -> None:
    unit = cache()
    lines = np.arange(0, 800, 100, dtype=np.int64)
    taken = [unit.atomic(0.0, 0.0, Footprint(lines, 32), 8, gpc)[0] for gpc in range(8)]
    assert taken[-1] == pytest.approx(64 * REQUEST + 32 * MISS)
    late, _ = unit.atomic(1e6, 1e6, Footprint(lines, 32), 8, 0)
    assert late == pytest.approx(1e6 + 8 * REQUEST)


def test_a_kernel_ends_when_l2_has_added() -> None:
    """Who adds without a result goes on at once, but the launch waits."""
    body = """
        ld.param.u64 %rd0,[out]; mov.u32 %r0,%tid.x; mul.wide.u32 %rd1,%r0,128; add.u64 %rd0,%rd0,%rd1;
        mov.f32 %f0,0f3F800000; {} ret;
    """
    none, one = (
        launch(body.format(what), gpu=gpu, args=(gpu.array(np.zeros(4096, np.uint8)),)).cycles
        for gpu in [hs.Gpu("h100-sxm")]
        for what in ("", "red.global.add.f32 [%rd0],%f0;")
    )
    # The line comes from device memory first.
    assert one - none > CONFIG.dram.latency_cycles - CONFIG.l2.latency_near_cycles


def test_units_add_when_device_memory_has_brought_what_was_there() -> None:
    """Many lanes on a word that L2 does not hold: all of them come after it, none meanwhile."""
    body = """
        ld.param.u64 %rd0,[out]; mov.f32 %f0,0f3F800000; red.global.add.f32 [%rd0],%f0; ret;"""

    def cycles(warm: str) -> int:
        chip = hs.Gpu("h100-sxm")
        out = chip.array(np.zeros(64, np.float32))
        return launch(body, gpu=chip, block=1024, args=[out], warm=warm).cycles

    hit, missed = cycles("memory"), cycles("code")
    assert missed - hit > 0.9 * (CONFIG.dram.latency_cycles - CONFIG.l2.latency_near_cycles)
