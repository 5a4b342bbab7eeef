from __future__ import annotations

import pytest

from hopsim.config import load
from hopsim.hw.timing.stream import Passage
from hopsim.hw.timing.tma_engine import TmaEngine

TMA = load("h100-sxm").tma


def test_small_operations_start_an_interval_apart() -> None:
    engine = TmaEngine(TMA)
    starts = []
    for _ in range(4):
        begin = engine.start(0.0, None)
        starts.append(begin)
        engine.send(begin, 128)
    gap = TMA.issue_interval_cycles
    assert starts == [0.0, gap, 2 * gap, 3 * gap]


def test_large_operations_are_asked_for_quicker_than_they_come() -> None:
    engine = TmaEngine(TMA)
    lines = 16384 // TMA.request_bytes
    ends: list[Passage] = []
    for number in range(1, 5):
        begin = engine.start(0.0, None)
        sent = engine.send(begin, 16384, lines)
        assert (
            sent.end
            == engine.start(0.0, None)
            == pytest.approx(number * lines * TMA.request_interval_cycles)
        )
        ends.append(engine.fill(begin, sent))
    # All that is asked for until then comes before the last line of an operation.
    landed = [passage.expected(10_000.0) for passage in ends]
    assert landed[-1] == pytest.approx(4 * 16384 / TMA.bandwidth_bytes_per_clk)
    assert 16384 / TMA.bandwidth_bytes_per_clk < landed[0] < landed[1] < landed[2] <= landed[3]


def test_rows_that_begin_inside_of_a_line_are_asked_for_as_slowly_as_they_come() -> None:
    engine = TmaEngine(TMA)
    begin = engine.start(0.0, None)
    sent = engine.send(begin, 16384, 192)
    assert sent.end == pytest.approx(16384 / TMA.bandwidth_bytes_per_clk + 64 * TMA.split_cycles)
    assert engine.fill(begin, sent).expected(10_000.0) == pytest.approx(sent.end)


def test_what_another_sm_asks_for_takes_the_way_into_this_one() -> None:
    asks, gets = TmaEngine(TMA), TmaEngine(TMA)
    lines = 16384 // TMA.request_bytes
    filling = 16384 / TMA.bandwidth_bytes_per_clk
    sent = asks.send(0.0, 16384, lines)
    passages = [engine.fill(0.0, sent) for engine in (asks, gets)]
    own = gets.fill(0.0, gets.send(gets.start(0.0, None), 16384, lines))
    # A box of its own comes behind that of the other, which it did not ask for.
    assert [one.expected(10_000.0) for one in (*passages, own)] == pytest.approx(
        [filling, 2 * filling, 2 * filling], abs=TMA.mixing_most_cycles
    )
    assert own.expected(10_000.0) > 1.8 * filling


def test_stores_have_their_own_way() -> None:
    engine = TmaEngine(TMA)
    first = engine.send_store(engine.start(0.0, None), 8192)
    assert first == TMA.store_read_latency_cycles + 8192 / TMA.store_bandwidth_bytes_per_clk
    assert engine.send_store(engine.start(0.0, None), 8192) == first + 8192 / 32
    # A load is only kept from starting at the same time.
    assert engine.start(0.0, None) == 2 * TMA.issue_interval_cycles


def test_rows_that_begin_inside_of_a_sector_make_a_store_slower() -> None:
    engine, other = TmaEngine(TMA), TmaEngine(TMA)
    aligned = engine.send_store(engine.start(0.0, None), 8192)
    assert other.send_store(0.0, 8192, 32) == aligned + 32 * TMA.store_sector_cycles


def test_a_map_is_fetched_once() -> None:
    engine = TmaEngine(TMA)
    fetch = TMA.descriptor_fetch_latency_cycles
    assert engine.start(0.0, b"map") == fetch
    assert engine.start(0.0, b"map") == 0.0
    assert engine.start(0.0, b"other") == fetch


def test_a_prefetched_map_is_not_waited_for() -> None:
    engine = TmaEngine(TMA)
    engine.prefetch_map(0.0)
    assert engine.start(1000.0, b"map") == 1000.0
    engine.prefetch_map(1000.0)
    assert engine.start(1010.0, b"late") == 1000.0 + TMA.descriptor_fetch_latency_cycles


def test_no_more_bytes_are_on_their_way_than_the_window_holds() -> None:
    small = TMA.model_copy(update={"max_inflight_requests": 16})  # 2 KiB
    engine = TmaEngine(small)
    first = engine.send(engine.start(0.0, None), 2048).end
    engine.returned(first + 1000)
    # The second fits only when all of the first is back.
    assert engine.send(engine.start(0.0, None), 2048).end == first + 1000
    half = TmaEngine(small)
    first = half.send(half.start(0.0, None), 2048).end
    half.returned(first + 1000)
    assert (
        half.send(half.start(0.0, None), 1024).end
        == first + 1000 - 1024 / TMA.bandwidth_bytes_per_clk
    )


def test_latency_grows_with_rank() -> None:
    engine = TmaEngine(TMA)
    plain = engine.load_latency(0)
    assert plain == TMA.latency_cycles
    ranks = [engine.load_latency(rank) for rank in range(1, 6)]
    assert ranks == [plain + extra for extra in TMA.rank_extra_cycles]


def test_a_multicast_box_waits_for_those_asked_for_soon_before_and_after() -> None:
    engine = TmaEngine(TMA)
    all_of_it = 64 * TMA.multicast_fetch_cycles
    engine.multicast(1000.0)
    assert engine.multicast_delay(1000.0, 64) == 0.0
    engine.multicast(1000.0 + TMA.multicast_apart_cycles)
    assert engine.multicast_delay(1000.0, 64) == 0.0
    middle = (TMA.multicast_soon_cycles + TMA.multicast_apart_cycles) / 2
    engine.multicast(1000.0 + middle)
    assert engine.multicast_delay(1000.0, 64) == pytest.approx(all_of_it / 2)
    engine.multicast(1010.0)
    assert engine.multicast_delay(1000.0, 64) == engine.multicast_delay(1010.0, 64) == all_of_it


def test_once_a_ring_goes_round_its_multicast_boxes_come_as_soon_as_others() -> None:
    engine = TmaEngine(TMA)
    later = TMA.multicast_beginning_cycles + 1.0
    for begin in (0.0, 10.0, later, later + 10.0):
        engine.multicast(begin)
    assert engine.multicast_delay(10.0, 64) > 0.0
    assert engine.multicast_delay(later, 64) == engine.multicast_delay(later + 10.0, 64) == 0.0
