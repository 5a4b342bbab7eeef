from __future__ import annotations

import numpy as np
import pytest

from hopsim.config import load
from hopsim.hw.timing.dram import DramChannels
from hopsim.hw.timing.footprint import Footprint, Splits
from hopsim.hw.timing.gpc_port import Arrival, GpcPort
from hopsim.hw.timing.l2 import L2Cache

CONFIG = load("h100-sxm")
LINES = 128
SECTORS = 4 * LINES
BYTES = 128 * LINES
FAR_FUTURE = 1e6


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


def ask(unit: GpcPort, time: float, number: int, sm: int = 0, takes: float = 0.0) -> Arrival:
    """Let an SM ask for a box from some time on, or then at once."""
    return unit.read(time, time, time + takes, Footprint(box(number), SECTORS), sm)


def lands(unit: GpcPort, one: Arrival) -> float:
    """Return when a box is with the SM, once all that matters has been asked for."""
    return max(one.ready, unit.expected(one, FAR_FUTURE))


def shared(late: float, busy: int = 0) -> float:
    """Return the share of a box's sectors that a second SM joins, so late, where others have asked for so many boxes."""
    gpc, l2 = port()
    # What keeps the port busy keeps no slice busy.
    l2.speed_up(100.0)
    for number in range(1, busy + 1):
        ask(gpc, 0.0, number, number)
    before = l2.counters.merged
    ask(gpc, 0.0, 0, 14)
    ask(gpc, late, 0, 15)
    return (l2.counters.merged - before) / SECTORS


def test_different_boxes_come_at_the_rate_of_the_gpc() -> None:
    """Recorded on an H100: 16 SMs that read boxes of their own get 529 bytes a cycle together."""
    last: list[float] = []
    for boxes in (16, 48):
        gpc, _ = port()
        asked = [ask(gpc, 0.0, number, number % 16) for number in range(boxes)]
        last.append(lands(gpc, asked[-1]))
    assert last[1] - last[0] == pytest.approx(32 * BYTES / 530, rel=0.01)


def test_the_same_boxes_come_at_the_rate_of_delivery() -> None:
    """Recorded on an H100: 16 SMs that read the same boxes get 1,228 bytes a cycle together."""
    gpc, l2 = port()
    asked = [ask(gpc, 0.0, number, sm) for number in range(24) for sm in range(16)]
    rate = 24 * 16 * BYTES / (lands(gpc, asked[-1]) - gpc.l2.near)
    assert rate == pytest.approx(1228, rel=0.05)
    assert l2.counters.requested == 24 * 16 * SECTORS


@pytest.mark.parametrize("sms", [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16])
def test_four_sms_share_a_request(sms: int) -> None:
    """Recorded on an H100 (Nsight Compute's sectors): of n SMs of a GPC n / 4 rounded up ask L2."""
    gpc, l2 = port()
    for sm in range(sms):
        ask(gpc, 0.0, 0, sm)
    assert l2.counters.read == -(-sms // 4) * SECTORS
    assert l2.counters.merged == sms * SECTORS - l2.counters.read


def test_an_sm_that_asks_again_is_looked_up_once_and_takes_the_port_again() -> None:
    """Recorded on an H100 (paced_*, two CTAs of an SM): 0.54 of the look-ups, the time of all of them."""
    landed: list[float] = []
    for other in (0, 1):
        gpc, l2 = port()
        for number in range(16):
            ask(gpc, 0.0, number, 0)
            last = ask(gpc, 0.0, number, other)
        assert l2.counters.read == 16 * SECTORS
        landed.append(lands(gpc, last) - gpc.l2.near)
    assert landed[0] == pytest.approx(32 * BYTES / 530, rel=0.06)
    assert landed[1] < 0.7 * landed[0]


@pytest.mark.parametrize(
    ("late", "recorded"), [(0, 1.0), (25, 0.94), (50, 0.83), (75, 0.50), (100, 0.09), (200, 0.0)]
)
@pytest.mark.parametrize("busy", [0, 2])
def test_the_later_an_sm_asks_the_less_it_shares(late: float, recorded: float, busy: int) -> None:
    """Recorded on an H100 (paced_tma_*), also where the port has some work."""
    assert shared(late, busy) == pytest.approx(recorded, abs=0.1)


def test_where_the_port_is_busy_lines_are_longer_on_their_way() -> None:
    """Recorded on an H100: SMs that load tiles drift apart and share all the same (tile_walk_*)."""
    held = CONFIG.l2.joining_held_cycles
    assert shared(200.0) == 0.0
    assert 0.0 < shared(200.0, busy=10) <= shared(200.0, busy=30) == 1.0
    # Not for as long as one likes.
    assert shared(held + 101.0, busy=30) == shared(held + 101.0, busy=60) == 0.0


def test_whose_request_is_known_first_does_not_matter() -> None:
    """An SM whose engine is behind with other boxes is booked first and asks later."""
    shares: list[float] = []
    for first, second in ((0.0, 70.0), (70.0, 0.0)):
        gpc, l2 = port()
        for sm, takes in enumerate((first, second)):
            ask(gpc, 0.0, 0, sm, takes)
        shares.append(l2.counters.merged / SECTORS)
    assert shares == pytest.approx([0.5, 0.5], abs=0.02)


def test_what_several_sms_get_at_once_is_not_shared() -> None:
    gpc, l2 = port()
    for receivers in (2, 1, 2):
        gpc.read(0.0, 0.0, 0.0, Footprint(box(0), SECTORS), 0, receivers)
    assert l2.counters.merged == 0


def test_boxes_come_in_the_order_of_asking_but_for_some_of_what_is_asked_for_meanwhile() -> None:
    """Recorded on an H100 (tile_landings_*): of two stages that all SMs ask for at once the first lands later than alone."""
    config = CONFIG.l2
    alone = BYTES / config.bandwidth_per_gpc_bytes_per_clk
    for boxes in (4, 16):
        gpc, l2 = port()
        l2.speed_up(100.0)
        asked = [ask(gpc, 0.0, number, number) for number in range(boxes)]
        ends = [lands(gpc, one) - gpc.l2.near for one in asked]
        assert ends == sorted(ends)
        # (What it does not wait while the port has little to do is counted in the latency of L2.)
        assert boxes * alone - config.gathering_cycles < ends[-1] < boxes * alone
        later = min((boxes - 1) * alone * config.mixing, config.mixing_most_cycles)
        assert ends[0] == pytest.approx(later, abs=config.gathering_cycles / 2)


def test_slices_that_are_busy_hold_up_what_comes_through_the_port() -> None:
    """Recorded on an H100: where slices have 0.9 of what they can do, stages of walks come 100 cycles later."""
    landed: list[float] = []
    for busy in (0, 30):
        gpc, l2 = port()
        other = GpcPort(CONFIG.l2, l2, 1, 16)
        for number in range(1, busy + 1):
            ask(other, 0.0, number)
        landed.append(lands(gpc, ask(gpc, 0.0, 0)))
    served = 30 * BYTES / (CONFIG.l2.bandwidth_bytes_per_clk / 2)
    assert served - CONFIG.l2.gathering_cycles < landed[1] - landed[0] < served


def test_rows_in_two_lines_come_again() -> None:
    """Recorded on an H100: of what is joined of such rows a third comes through the port once more."""
    lines = np.arange(2 * LINES, dtype=np.int64)
    masks = np.tile(np.array([0b1110, 0b0001], np.uint8), LINES)
    landed: list[float] = []
    for sms in (1, 2):
        gpc, _ = port()
        wanted = Footprint(lines, SECTORS, masks, splits=Splits(more=LINES))
        asked = [gpc.read(0.0, 0.0, 0.0, wanted, sm) for sm in range(sms)]
        landed.append(gpc.expected(asked[-1], FAR_FUTURE) - gpc.l2.near)
    config = CONFIG.l2
    rows = (1 + config.delivery_split) * config.handing
    more = (config.joined_again + rows) / (1 + rows)
    assert landed[1] / landed[0] == pytest.approx(1 + more, rel=0.05)


def test_another_gpc_asks_itself() -> None:
    gpc, l2 = port()
    ask(gpc, 0.0, 0)
    ask(GpcPort(CONFIG.l2, l2, 2, 16), 0.0, 0)
    assert l2.counters.merged == 0
    assert l2.counters.requested == 2 * SECTORS


def test_nothing_to_join_without_lines() -> None:
    assert Footprint(np.zeros(0, np.int64), 0).key is None
