from __future__ import annotations

import numpy as np
import pytest

from hopsim.config import load
from hopsim.hw.timing.dram import DramChannels
from hopsim.hw.timing.gpc_port import GpcPort, TpcPort, join_key
from hopsim.hw.timing.l2 import L2Cache

CONFIG = load("h100-sxm")
LINES = 128
SECTORS = 4 * LINES
BYTES = 128 * LINES


def port() -> tuple[GpcPort, L2Cache]:
    l2 = L2Cache(
        CONFIG.l2, DramChannels(CONFIG.dram, CONFIG.l2.line_bytes), CONFIG.device.gpc_sm_counts
    )
    l2.tags.cover(0, 1 << 24)
    every = np.arange(64 * LINES, dtype=np.int64)
    l2.warm(every)
    return GpcPort(CONFIG.l2, l2, 1), l2


def box(number: int) -> np.ndarray:
    return np.arange(number * LINES, (number + 1) * LINES, dtype=np.int64)


def ask(unit: TpcPort, time: float, number: int) -> float:
    lines = box(number)
    return unit.read(time, time, time, lines, SECTORS, join_key(lines), None)


def test_different_boxes_come_at_the_rate_of_the_gpc() -> None:
    """Recorded on an H100: 16 SMs that read boxes of their own get 529 bytes a cycle together."""
    gpc, _ = port()
    ends = [ask(TpcPort(gpc), 0.0, number) for number in range(32)]
    assert np.diff(ends[8:]) == pytest.approx(np.full(23, BYTES / 530), rel=0.01)


def test_the_same_boxes_come_at_the_rate_of_delivery() -> None:
    """Recorded on an H100: 16 SMs that read the same boxes get 1,228 bytes a cycle together."""
    gpc, l2 = port()
    tpcs = [TpcPort(gpc) for _ in range(8)]
    ends = [max(ask(tpcs[sm // 2], 0.0, number) for sm in range(16)) for number in range(24)]
    rate = 16 * BYTES / np.diff(ends[8:]).mean()
    assert rate == pytest.approx(1228, rel=0.05)
    assert l2.counters.requested == 24 * 16 * SECTORS


@pytest.mark.parametrize("sms", [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16])
@pytest.mark.parametrize("per_tpc", [1, 2])
def test_four_sms_share_a_request(sms: int, per_tpc: int) -> None:
    """Recorded on an H100 (Nsight Compute's sectors): of n SMs of a GPC n / 4 rounded up ask L2."""
    gpc, l2 = port()
    tpcs = [TpcPort(gpc) for _ in range(-(-sms // per_tpc))]
    for sm in range(sms):
        ask(tpcs[sm // per_tpc], 0.0, 0)
    assert l2.counters.read == -(-sms // 4) * SECTORS
    assert l2.counters.merged == sms * SECTORS - l2.counters.read


def test_what_has_come_is_asked_for_again() -> None:
    gpc, l2 = port()
    unit = TpcPort(gpc)
    ready = ask(unit, 0.0, 0)
    ask(unit, ready - 1, 0)
    assert l2.counters.merged == SECTORS
    ask(unit, ready, 0)
    assert l2.counters.merged == SECTORS
    assert l2.counters.read == 2 * SECTORS


def queued() -> tuple[TpcPort, TpcPort, float, L2Cache]:
    """Two TPCs of a GPC behind whose port others queue; the first has asked for box 0, which is there when returned."""
    gpc, l2 = port()
    first, second = TpcPort(gpc), TpcPort(gpc)
    for number in range(1, 9):
        ask(TpcPort(gpc), 0.0, number)
    return first, second, ask(first, 0.0, 0), l2


def test_another_tpc_shares_only_while_l2_works_on_it() -> None:
    """The queue in front of the port does not make requests of other TPCs meet."""
    first, second, ready, l2 = queued()
    late = ready - 1
    assert ask(first, late, 0) < ask(second, late, 0)
    assert l2.counters.merged == SECTORS


def test_a_tpc_that_has_joined_shares_until_the_data_comes() -> None:
    _, second, ready, l2 = queued()
    ask(second, 1.0, 0)
    ask(second, ready - 1, 0)
    assert l2.counters.merged == 2 * SECTORS


def test_another_gpc_asks_itself() -> None:
    gpc, l2 = port()
    ask(TpcPort(gpc), 0.0, 0)
    ask(TpcPort(GpcPort(CONFIG.l2, l2, 2)), 0.0, 0)
    assert l2.counters.merged == 0
    assert l2.counters.requested == 2 * SECTORS


def test_nothing_to_join_without_lines() -> None:
    assert join_key(np.zeros(0, np.int64)) is None
