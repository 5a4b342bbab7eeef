from __future__ import annotations

import numpy as np
import pytest

from hopsim.config import load
from hopsim.hw.timing.dram import DramChannels
from hopsim.hw.timing.footprint import Footprint, Splits
from hopsim.hw.timing.gpc_port import GpcPort
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
    return GpcPort(CONFIG.l2, l2, 1, 16), l2


def box(number: int) -> np.ndarray:
    return np.arange(number * LINES, (number + 1) * LINES, dtype=np.int64)


def ask(unit: GpcPort, time: float, number: int) -> float:
    lines = box(number)
    return unit.read(time, time, time, Footprint(lines, SECTORS))


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
        gpc.read(0.0, 0.0, 0.0, Footprint(asked, SECTORS))
    assert l2.counters.read == -(-sms // 4) * SECTORS
    assert l2.counters.merged == sms * SECTORS - l2.counters.read


def test_what_has_come_is_asked_for_again() -> None:
    unit, l2 = port()
    ask(unit, 0.0, 0)
    window = (
        CONFIG.l2.joining_cycles
        + BYTES / CONFIG.l2.bandwidth_bytes_per_clk * 2 * CONFIG.l2.crowding
    )
    ask(unit, window / 2, 0)
    assert l2.counters.merged == pytest.approx(SECTORS / 2, rel=0.05)
    assert l2.counters.read == 2 * SECTORS - l2.counters.merged
    before = l2.counters.merged
    ask(unit, 3 * window, 0)
    assert l2.counters.merged == before


@pytest.mark.parametrize(
    ("late", "recorded"), [(0, 928), (20, 876), (50, 816), (160, 619), (400, 559)]
)
def test_the_later_an_sm_asks_a_busy_port_the_less_it_shares(late: float, recorded: float) -> None:
    """Recorded on an H100: the bytes a cycle of 16 SMs, each two of which read the same."""
    gpc, l2 = port()
    # What keeps the port busy keeps no slice busy.
    l2.speed_up(100.0)
    for number in range(8):
        ask(gpc, 0.0, number)
    before = l2.counters.requested
    ask(gpc, 0.0, 40)
    ask(gpc, late, 40)
    share = l2.counters.merged / (l2.counters.requested - before)
    assert 530 / (1 - share) == pytest.approx(recorded, rel=0.2)


def test_pairs_share_all_within_a_few_cycles_where_slices_are_busy() -> None:
    """Recorded on an H100: pairs of 132 SMs that start 0 to 100 cycles apart get the same, 200 apart 78 %, 400 apart 54 %."""
    shares: dict[float, float] = {}
    for late in (0.0, 20.0, 200.0, 400.0, 1200.0):
        gpc, l2 = port()
        other = GpcPort(CONFIG.l2, l2, 1, 16)
        for number in range(1, 60):
            ask(other, 0.0, number)
        before = l2.counters.merged
        ask(gpc, 0.0, 0)
        ask(gpc, late, 0)
        shares[late] = (l2.counters.merged - before) / SECTORS
    assert shares[0.0] == shares[20.0] == 1.0
    assert 1.0 > shares[200.0] > shares[400.0] > shares[1200.0] == 0.0


def test_whose_request_is_known_first_does_not_matter() -> None:
    """An SM whose engine is behind with other boxes is booked first and asks later."""
    shares: list[float] = []
    for first, second in ((0.0, 100.0), (100.0, 0.0)):
        gpc, l2 = port()
        for sent in (first, second):
            gpc.read(0.0, 0.0, sent, Footprint(box(0), SECTORS))
        shares.append(l2.counters.merged / SECTORS)
    assert shares[0] == shares[1]
    assert 0.5 < shares[0] < 1.0


def test_busy_slices_keep_lines_on_their_way() -> None:
    """Recorded on an H100: SMs that load tiles drift apart and share all the same (tile_walk_*)."""
    shares: list[float] = []
    for busy in (0, 8, 64):
        gpc, l2 = port()
        other = GpcPort(CONFIG.l2, l2, 1, 16)
        for number in range(1, busy + 1):
            ask(other, 0.0, number % 60)
        before = l2.counters.merged
        ask(gpc, 0.0, 0)
        ask(gpc, 200.0, 0)
        shares.append((l2.counters.merged - before) / SECTORS)
    assert shares[0] < shares[1] <= shares[2] < 1.0


def test_what_several_sms_get_at_once_is_not_shared() -> None:
    gpc, l2 = port()
    lines = box(0)
    for receivers in (2, 1, 2):
        gpc.read(0.0, 0.0, 0.0, Footprint(lines, SECTORS), receivers)
    assert l2.counters.merged == 0


def test_lines_of_all_sms_take_turns() -> None:
    """Of 16 boxes of as many SMs that are asked for at once the first is through nearly as late as the last."""
    gpc, _ = port()
    alone = BYTES / CONFIG.l2.bandwidth_per_gpc_bytes_per_clk
    through: list[float] = []
    for number in range(16):
        ask(gpc, 0.0, number)
        through.append(gpc.through)
    ends = [end + gpc.overtaken(end, BYTES) for end in through]
    assert ends[-1] == pytest.approx(16 * alone)
    assert ends[0] == pytest.approx(15 * alone, rel=0.1)
    # No other SM gets more than the box itself before it.
    assert gpc.overtaken(through[0], BYTES // 4) == pytest.approx(15 / 4 * alone)
    assert gpc.overtaken(through[-1] + 1e4, BYTES) == 0.0


def test_rows_in_two_lines_come_again() -> None:
    """Recorded on an H100: of what is joined of such rows a third comes through the port once more."""
    gpc, _ = port()
    lines = np.arange(2 * LINES, dtype=np.int64)
    masks = np.tile(np.array([0b1110, 0b0001], np.uint8), LINES)
    for _ in range(2):
        gpc.read(0.0, 0.0, 0.0, Footprint(lines, SECTORS, masks, splits=Splits(more=LINES)))
    alone = BYTES / CONFIG.l2.bandwidth_per_gpc_bytes_per_clk
    assert gpc.through == pytest.approx(alone * (1 + CONFIG.l2.joined_again))


def test_another_gpc_asks_itself() -> None:
    gpc, l2 = port()
    ask(gpc, 0.0, 0)
    ask(GpcPort(CONFIG.l2, l2, 2, 16), 0.0, 0)
    assert l2.counters.merged == 0
    assert l2.counters.requested == 2 * SECTORS


def test_nothing_to_join_without_lines() -> None:
    assert Footprint(np.zeros(0, np.int64), 0).key is None
