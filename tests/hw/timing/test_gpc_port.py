from __future__ import annotations

import numpy as np
import pytest

from hopsim.config import load
from hopsim.hw.timing.dram import DramChannels
from hopsim.hw.timing.gpc_port import GpcPort, join_key
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


def ask(unit: GpcPort, time: float, number: int) -> float:
    lines = box(number)
    return unit.read(time, time, time, lines, SECTORS, join_key(lines), None)


def test_different_boxes_come_at_the_rate_of_the_gpc() -> None:
    """Recorded on an H100: 16 SMs that read boxes of their own get 529 bytes a cycle together."""
    gpc, _ = port()
    ends = [ask(gpc, 0.0, number) for number in range(32)]
    assert np.diff(ends[8:]) == pytest.approx(np.full(23, BYTES / 530), rel=0.01)


def test_the_same_boxes_come_at_the_rate_of_delivery() -> None:
    """Recorded on an H100: 16 SMs that read the same boxes get 1,228 bytes a cycle together."""
    gpc, l2 = port()
    ends = [max(ask(gpc, 0.0, number) for _ in range(16)) for number in range(24)]
    rate = 16 * BYTES / np.diff(ends[8:]).mean()
    assert rate == pytest.approx(1228, rel=0.05)
    assert l2.counters.requested == 24 * 16 * SECTORS


@pytest.mark.parametrize("sms", [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16])
def test_four_sms_share_a_request(sms: int) -> None:
    """Recorded on an H100 (Nsight Compute's sectors): of n SMs of a GPC n / 4 rounded up ask L2."""
    gpc, l2 = port()
    asked = box(0)
    for _ in range(sms):
        gpc.read(0.0, 0.0, 0.0, asked, SECTORS, join_key(asked), None)
    assert l2.counters.read == -(-sms // 4) * SECTORS
    assert l2.counters.merged == sms * SECTORS - l2.counters.read


def test_what_has_come_is_asked_for_again() -> None:
    unit, l2 = port()
    ready = ask(unit, 0.0, 0)
    ask(unit, ready - 1, 0)
    assert l2.counters.merged == SECTORS
    ask(unit, ready, 0)
    assert l2.counters.merged == SECTORS
    assert l2.counters.read == 2 * SECTORS


@pytest.mark.parametrize(
    ("late", "recorded"), [(0, 928), (20, 876), (50, 816), (160, 619), (400, 559)]
)
def test_the_later_an_sm_asks_a_busy_port_the_less_it_shares(late: float, recorded: float) -> None:
    """Recorded on an H100: the bytes a cycle of 16 SMs, each two of which read the same."""
    gpc, l2 = port()
    for number in range(32):
        ask(gpc, 0.0, number)
    before = l2.counters.requested
    ask(gpc, 0.0, 40)
    ask(gpc, late, 40)
    share = l2.counters.merged / (l2.counters.requested - before)
    assert 530 / (1 - share) == pytest.approx(recorded, rel=0.2)


def test_an_idle_port_shares_until_the_first_line_is_there() -> None:
    gpc, l2 = port()
    ask(gpc, 0.0, 0)
    late = BYTES / 530 + 1
    assert late < l2.near
    ask(gpc, late, 0)
    assert l2.counters.merged == SECTORS


def test_another_gpc_asks_itself() -> None:
    gpc, l2 = port()
    ask(gpc, 0.0, 0)
    ask(GpcPort(CONFIG.l2, l2, 2), 0.0, 0)
    assert l2.counters.merged == 0
    assert l2.counters.requested == 2 * SECTORS


def test_nothing_to_join_without_lines() -> None:
    assert join_key(np.zeros(0, np.int64)) is None
