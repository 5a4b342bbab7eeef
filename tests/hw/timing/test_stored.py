"""What stores take on their way out of an SM, and who waits behind them."""

from __future__ import annotations

import numpy as np
import pytest

import hopsim as hs
from hopsim.config import load
from hopsim.hw.timing.stored import StoreCosts, Stored, WayOut

CONFIG = load("h100-sxm")
COSTS = StoreCosts(CONFIG.l2)
RATE = CONFIG.l2.store_bandwidth_per_sm_bytes_per_clk


@pytest.mark.parametrize(
    ("stored", "cycles"),
    [
        (Stored(4, 1), 4.55),
        (Stored(1, 1), 1.58),
        (Stored(1, 1, 1, 1), 2.08),
        (Stored(1, 1, 1, 1, 1), 3.2),
    ],
)
def test_an_sm_sends_requests_as_recorded(stored: Stored, cycles: float) -> None:
    assert COSTS.way_bytes(stored) / RATE == pytest.approx(cycles, rel=0.03)


@pytest.mark.parametrize(
    ("stored", "cycles"),
    [
        (Stored(4, 1), 0.070),
        (Stored(1, 1), 0.0200),
        (Stored(1, 1, 1, 1), 0.0295),
        (Stored(4, 1, 1, 4), 0.0865),
    ],
)
def test_l2_takes_requests_as_recorded(stored: Stored, cycles: float) -> None:
    """Cycles of all SMs."""
    config = CONFIG.l2
    sector = config.sector_bytes / config.threads_write_bandwidth_bytes_per_clk
    assert COSTS.slower(stored) * stored.sectors * sector == pytest.approx(cycles, rel=0.05)


def test_loads_wait_for_what_was_stored_before_them() -> None:
    way = WayOut(CONFIG)
    assert way.wait(0.0) == 0.0
    sent = way.send(10.0, 64 * RATE, (0, 0, 1))
    assert sent == 74.0
    assert way.wait(20.0) == 54.0
    assert way.wait_of_shared(20.0) == 0.0
    assert way.wait(80.0) == 0.0


def test_a_busy_way_keeps_loads_by_the_warps_that_store() -> None:
    way = WayOut(CONFIG)
    config = CONFIG.l1
    for warps, cta in ((1, 0), (4, 1)):
        way.send(0.0, 10_000 * RATE, (cta, 0, warps))
    # Who stores again is no further warp.
    way.send(5.0, RATE, (0, 0, 1))
    longest = config.store_queue_cycles + 5 * config.store_queue_per_warp_cycles
    assert way.wait(10.0) == longest
    assert way.wait_of_shared(10.0) == longest - config.store_queue_cycles
    # Where all has left nobody is counted any more.
    way.send(30_000.0, 10_000 * RATE, (2, 0, 1))
    assert way.wait(30_000.0) == config.store_queue_cycles + config.store_queue_per_warp_cycles


STORES = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry store(.param .u64 words)
{
    .reg .b32 %cta, %threads, %thread;
    .reg .b64 %words, %offset;
    ld.param.u64 %words, [words];
    mov.u32 %cta, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %thread, %cta, %threads, %thread;
    mul.wide.u32 %offset, %thread, 4;
    add.u64 %words, %words, %offset;
"""
KERNEL = hs.loads(
    STORES
    + "".join(f"st.global.u32 [%words+{65536 * n}], %thread;\n" for n in range(16))
    + "ret;\n}\n"
)["store"]


@pytest.mark.parametrize("ctas", [1, 8, 14])
@pytest.mark.parametrize("as_cluster", [False, True])
def test_what_further_warps_store_is_added_to_what_others_do(ctas: int, as_cluster: bool) -> None:
    """It was doubled by each warpgroup of a CTA that stores alone: waits in front of L2 and of the SM were summed."""
    cycles: list[int] = []
    for threads in (256, 512, 1024):
        gpu = hs.Gpu()
        words = gpu.array(np.zeros(16 * 16384, np.int32))
        cluster = ctas if as_cluster else 1
        cycles.append(gpu.launch(KERNEL, ctas, threads, cluster, [words], check=False).cycles)
    first, second = np.diff(cycles)
    sent = 16 * 8 * COSTS.way_bytes(Stored(4, 1)) / RATE
    assert first == pytest.approx(sent, rel=0.02)
    assert 2 * sent * 0.98 < second < 2 * sent * 1.75
