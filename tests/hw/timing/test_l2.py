from __future__ import annotations

from collections import OrderedDict
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopsim.config import load
from hopsim.config.memory import Dram
from hopsim.hw.timing.dram import DramChannels
from hopsim.hw.timing.footprint import Footprint
from hopsim.hw.timing.l2 import L2Cache, deal
from hopsim.hw.timing.l2_tags import L2Tags
from hopsim.hw.timing.stored import Stored

CONFIG = load("h100-sxm")
LINE = 128


def tags(capacity_lines: int, partitions: int = 1) -> L2Tags:
    result = L2Tags(capacity_lines * LINE, partitions, LINE, 32)
    result.cover(0, 1 << 20)
    return result


def cache(**changes: object) -> L2Cache:
    config = CONFIG.l2.model_copy(update=changes)
    result = L2Cache(config, DramChannels(CONFIG.dram, CONFIG.l2.line_bytes), [16] * 8)
    result.tags.cover(0, 1 << 20)
    return result


def run(first: int, count: int) -> np.ndarray:
    return np.arange(first, first + count, dtype=np.int64)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 60),
    st.lists(st.tuples(st.integers(0, 150), st.integers(1, 16)), min_size=1, max_size=120),
)
def test_one_partition_is_exactly_least_recently_used(
    capacity: int, boxes: list[tuple[int, int]]
) -> None:
    """Against an ordered dictionary; a box is one use, and of one box the lowest lines go first."""
    unit = tags(capacity)
    model: OrderedDict[int, None] = OrderedDict()
    for first, count in boxes:
        lines = run(first, count)
        hits = sum(line in model for line in lines.tolist())
        found, _ = unit.read(lines, 0)
        assert (found.near, found.far, found.missed) == (hits, 0, count - hits)
        for line in lines.tolist():
            model[line] = None
            model.move_to_end(line)
        while len(model) > capacity:
            model.popitem(last=False)
        assert unit.resident_lines == len(model)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 300), st.integers(1, 32), st.integers(0, 1), st.booleans()),
        max_size=80,
    )
)
def test_lines_are_counted_once_in_two_partitions(steps: list[tuple[int, int, int, bool]]) -> None:
    unit = tags(200, 2)
    for first, count, side, writes in steps:
        if writes:
            unit.write(run(first, count), count * 4, side)
        else:
            found, _ = unit.read(run(first, count), side)
            assert found.near + found.far + found.missed == count
            assert 0 <= found.remote_missed <= found.missed
        assert unit.resident_lines <= 200
        stamps = sum(int(np.count_nonzero(p.stamp)) for p in unit._partitions)
        assert stamps == unit.resident_lines


def test_the_other_half_finds_lines_at_their_home() -> None:
    unit = tags(1000, 2)
    lines = run(0, 100)
    remote = unit.remote_lines(lines, 0)
    assert 20 < remote < 80
    first, _ = unit.read(lines, 0)
    assert (first.near, first.far, first.missed, first.remote_missed) == (0, 0, 100, remote)
    # Half 1 holds those whose home it is; the rest it gets from half 0.
    second, _ = unit.read(lines, 1)
    assert (second.near, second.far, second.missed) == (remote, 100 - remote, 0)
    third, _ = unit.read(lines, 1)
    assert third.near == 100


def test_dirty_lines_are_written_back_when_evicted() -> None:
    unit = tags(100)
    assert unit.write(run(0, 60), 240, 0) == 0
    assert unit.dirty_sectors() == 240
    _, written = unit.read(run(1000, 90), 0)
    assert written == 50 * 4
    assert unit.dirty_sectors() == 40


def test_l2_takes_some_of_tma_stores_at_once_into_lines_that_are_not_dirty() -> None:
    slow = {"write_bandwidth_bytes_per_clk": 64.0}
    unit, plain = (cache(write_buffer_bytes=held * LINE, **slow) for held in (64, 0))
    places = (0, 64, 64)
    taken, queued = (
        [one.store_box(0.0, 0.0, run(first, 64), 256, 0) for first in places]
        for one in (unit, plain)
    )
    at_once = 64 * LINE / 64
    assert queued[0] > at_once
    assert taken == pytest.approx([queued[0] - at_once, queued[1] - at_once, queued[2]])


def test_l2_takes_a_store_while_it_is_sent() -> None:
    unit = cache(write_buffer_bytes=0)
    alone = unit.store_box(0.0, 0.0, run(0, 64), 256, 0)
    # Its last byte is sent later than L2 could take it.
    assert (
        cache(write_buffer_bytes=0).store_box(0.0, 5.0 * alone, run(0, 64), 256, 0) == 5.0 * alone
    )
    # L2 has others to take until then.
    for number in range(1, 9):
        unit.store_box(0.0, 0.0, run(64 * number, 64), 256, 0)
    assert unit.store_box(0.0, 5.0 * alone, run(1024, 64), 256, 0) == pytest.approx(10.0 * alone)


def test_what_threads_store_takes_longer_than_what_tma_stores() -> None:
    rate = CONFIG.l2.write_bandwidth_bytes_per_clk / CONFIG.l2.threads_write_bandwidth_bytes_per_clk
    box = cache(write_buffer_bytes=0).store_box(0.0, 0.0, run(0, 4096), 16384, 0)
    stored = Stored(16384, 4096)
    words = cache(write_buffer_bytes=0).store_words(0.0, 0.0, run(0, 4096), stored, 0)
    assert 1.05 < rate < 1.3
    assert words == pytest.approx(rate * box, rel=0.01)


@pytest.mark.parametrize("sectors_of_a_line", [1, 2, 4])
def test_each_line_that_threads_store_to_takes_time_beside_its_sectors(
    sectors_of_a_line: int,
) -> None:
    request = CONFIG.l2.stored_sectors_per_request
    lines = 4096
    stored = Stored(sectors_of_a_line * lines, lines)
    whole = cache(write_buffer_bytes=0).store_words(
        0.0, 0.0, run(0, lines), Stored(4 * lines, lines), 0
    )
    part = cache(write_buffer_bytes=0).store_words(0.0, 0.0, run(0, lines), stored, 0)
    assert part == pytest.approx(whole * (sectors_of_a_line + request) / (4 + request), rel=0.01)


def test_sectors_that_are_not_written_whole_take_longer() -> None:
    config = CONFIG.l2
    whole, masked = (
        cache(write_buffer_bytes=0).store_words(0.0, 0.0, run(0, 4096), stored, 0)
        for stored in (Stored(4096, 4096), Stored(4096, 4096, 4096, 4096))
    )
    slower = config.stored_sectors_per_masked_sector + config.stored_sectors_per_masked_request
    assert masked == pytest.approx(
        whole * slower / (1 + config.stored_sectors_per_request), rel=0.01
    )


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_reads_wait_for_a_share_of_what_is_written_and_writes_for_no_read(share: float) -> None:
    warm = [run(0, 2048), run(4096, 2048)]
    alone, beside = (cache(write_beside_reads=share, write_buffer_bytes=0) for _ in range(2))
    for unit in (alone, beside):
        unit.warm(np.concatenate(warm))
    written = alone.store_box(0.0, 0.0, warm[1], 8192, 0)
    read = alone.read(1e6, 1e6, Footprint(warm[0], 8192), 0).ready - 1e6
    assert beside.store_box(0.0, 0.0, warm[1], 8192, 0) == pytest.approx(written)
    assert beside.read(0.0, 0.0, Footprint(warm[0], 8192), 0).ready == pytest.approx(
        read + share * written
    )
    # The same way is there for those that write.
    assert beside.store_box(0.0, 0.0, warm[1], 8192, 0) == pytest.approx(2.0 * written)


def test_l2_takes_some_of_what_is_added_before_it_adds() -> None:
    held = 64 * LINE
    unit = cache(reduce_buffer_bytes=held, reduce_bandwidth_bytes_per_clk=32.0)
    each = 64 * LINE / 32.0
    taken = [unit.reduce(0.0, 10.0, Footprint(run(64 * number, 64), 256), 0) for number in range(3)]
    assert taken == pytest.approx([10.0, each, 2.0 * each])
    # It goes on meanwhile.
    assert unit.reduce(5.0 * each, 5.0 * each, Footprint(run(512, 64), 256), 0) == 5.0 * each


def test_a_write_drops_copies_elsewhere() -> None:
    unit = tags(1000, 2)
    lines = run(0, 64)
    unit.read(lines, 0)
    unit.read(lines, 1)
    unit.write(lines, 256, 1)
    home_is_0 = 64 - unit.remote_lines(lines, 0)
    assert unit.resident_lines == 64 + home_is_0
    found, _ = unit.read(lines, 0)
    assert found.near == home_is_0
    assert found.far == 64 - home_is_0
    assert found.missed == 0


def test_queue_compaction_changes_nothing() -> None:
    unit = tags(64)
    for k in range(400):
        unit.read(run(k % 8 * 8, 8), 0)
    assert unit.resident_lines == 64
    assert unit._partitions[0].queued <= 8 * 64
    assert unit.read(run(0, 64), 0)[0].near == 64


def test_line_numbers_grow_with_the_addresses() -> None:
    unit = tags(64)
    far_away = np.array([1 << 24], np.int64)
    assert unit.number(far_away).tolist() == [(1 << 24) // LINE]
    assert unit.read(unit.number(far_away), 0)[0].missed == 1
    assert unit.read(unit.number(far_away), 0)[0].near == 1


# -- time ------------------------------------------------------------------------------------------


def test_a_miss_takes_dram_latency_a_hit_the_near_one() -> None:
    unit = cache()
    line = run(0, 1)
    side_of_home = 0 if unit.tags.remote_lines(line, 0) == 0 else 1
    gpc = unit._side_of.index(side_of_home)
    transfer = 32 / (CONFIG.dram.bandwidth_bytes_per_clk * CONFIG.dram.efficiency)
    slowest = CONFIG.dram.latency_cycles + CONFIG.dram.latency_spread_cycles / 2
    slowest += DramChannels(CONFIG.dram, LINE).latency(line)[1]
    assert unit.read(0.0, 0.0, Footprint(line, 1), gpc).ready == pytest.approx(slowest + transfer)
    # A slice takes as long for a sector as for two.
    look_up = 32 * CONFIG.l2.sectors_per_look_up
    service = look_up / (CONFIG.l2.bandwidth_bytes_per_clk / 2)
    assert unit.read(5000.0, 5000.0, Footprint(line, 1), gpc).ready == pytest.approx(
        5000 + CONFIG.l2.latency_near_cycles + service
    )
    other = unit._side_of.index(1 - side_of_home)
    far = unit.read(9000.0, 9000.0, Footprint(line, 1), other).ready
    assert far == pytest.approx(9000 + CONFIG.l2.latency_far_cycles + service)
    assert unit.read(20000.0, 20000.0, Footprint(line, 1), other).ready == pytest.approx(
        20000 + CONFIG.l2.latency_near_cycles + service
    )


@pytest.mark.parametrize("first", range(4))
def test_the_sector_beside_a_missed_one_comes_with_it(first: int) -> None:
    unit = cache()
    line = run(5, 1)

    def read(now: float, sector: int) -> tuple[float, int]:
        before = unit.counters.dram_read
        ready = unit.read(now, now, Footprint(line, 1, np.array([1 << sector], np.uint8)), 0).ready
        return ready - now, unit.counters.dram_read - before

    missed, brought = read(0.0, first)
    assert brought == CONFIG.l2.fetch_bytes // CONFIG.l2.sector_bytes == 2
    assert missed > CONFIG.dram.latency_cycles
    assert read(5000.0, first ^ 1) == (pytest.approx(CONFIG.l2.latency_near_cycles, abs=1), 0)
    assert read(9000.0, first ^ 2)[1] == 2
    assert read(15000.0, first ^ 3)[1] == 0
    assert unit.counters.hit == 2


@given(st.lists(st.integers(0, 15), min_size=1, max_size=12), st.sampled_from([1, 2, 4]))
def test_what_comes_is_what_whole_pieces_lack(masks: list[int], each: int) -> None:
    unit = L2Tags(64 * LINE, 1, LINE, 32, sectors_per_fetch=each)
    unit.cover(0, 1 << 20)
    held: set[int] = set()
    for mask in masks:
        wanted = {sector for sector in range(4) if mask >> sector & 1} - held
        pieces = {sector // each for sector in wanted}
        coming = {sector for sector in range(4) if sector // each in pieces} - held
        short, brought = unit.claim(run(3, 1), np.array([mask], np.uint8))
        assert (short.tolist(), brought.tolist()) == ([len(wanted)], [len(coming)])
        held |= coming


def test_a_second_reader_waits_for_the_fetch_of_the_first() -> None:
    unit = cache()
    first = unit.read(0.0, 0.0, Footprint(run(0, 128), 512), 0).ready
    second = unit.read(10.0, 10.0, Footprint(run(0, 128), 512), 1).ready
    assert second >= first
    assert unit.counters.dram_read == 512


def test_device_memory_has_a_part_in_what_waits_for_it_alone() -> None:
    """Whoever finds lines on their way is done with device memory when the one who fetched them is."""
    unit = cache()
    missed = unit.read(0.0, 0.0, Footprint(run(0, 128), 512), 0)
    assert 0.0 < missed.finish < missed.first < missed.ready
    found = unit.read(1.0, 1.0, Footprint(run(0, 128), 512), 0)
    assert (found.finish, found.ready) == (missed.finish, missed.ready)
    held = unit.read(1e4, 1e4, Footprint(run(0, 128), 512), 0)
    assert (held.finish, held.first, held.late) == (0.0, 0.0, 0.0)


def test_who_reads_waits_for_slices_behind_those_before() -> None:
    unit = cache()
    unit.warm(run(0, 128))
    waits = [unit.read(0.0, 0.0, Footprint(run(0, 128), 512), 0).wait for _ in range(4)]
    assert waits[0] == 0.0
    assert waits == sorted(set(waits))


def test_bandwidth_of_a_partition_is_shared() -> None:
    unit = cache()
    lines = run(0, 128)
    unit.read(0.0, 0.0, Footprint(lines, 512), 0)
    service = 16384 / (CONFIG.l2.bandwidth_bytes_per_clk / 2)
    ends = [unit.read(50000.0, 50000.0, Footprint(lines, 512), 0).ready for _ in range(20)]
    gaps = np.diff(ends)
    assert gaps == pytest.approx(np.full(19, service))


def test_halves_serve_as_many_sms_each_as_can_be() -> None:
    counts = CONFIG.device.gpc_sm_counts
    sides = deal(counts, 2)
    served = [sum(c for c, s in zip(counts, sides, strict=True) if s == side) for side in (0, 1)]
    assert served == [66, 66]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3000), st.integers(1, 64), st.integers(0, 7), st.integers(0, 2)),
        max_size=60,
    )
)
def test_every_sector_is_hit_or_fetched(steps: list[tuple[int, int, int, int]]) -> None:
    unit = cache(capacity_bytes=2048 * LINE, dirty_at_launch_bytes=0)
    time = 0.0
    asked = written = 0
    for first, count, gpc, what in steps:
        time += 50
        if what == 2:
            unit.write(time, time, run(first, count), count * 4, gpc)
            written += count * 4
        else:
            unit.read(time, time, Footprint(run(first, count), count * 4), gpc)
            asked += count * 4
    counters = unit.counters
    assert counters.requested == asked
    assert counters.read >= asked
    assert counters.dram_read <= asked
    assert counters.merged == 0
    assert unit._dram.read_bytes == counters.dram_read * 32
    assert unit._dram.written_bytes == counters.dram_written * 32
    assert written >= counters.dram_written + unit.tags.dirty_sectors()
    assert 0 <= counters.hit <= counters.read + counters.written


def test_warm_lines_hit_from_both_halves() -> None:
    unit = cache()
    unit.warm(run(0, 200))
    for gpc in (0, 7):
        unit.read(0.0, 0.0, Footprint(run(0, 200), 800), gpc)
    assert unit.counters.dram_read == 0
    assert unit.counters.hit == unit.counters.read == 1600


def test_requests_that_come_while_one_waits_overtake_it() -> None:
    dram = DramChannels(CONFIG.dram, CONFIG.l2.line_bytes)
    each = 16384 / (CONFIG.dram.bandwidth_bytes_per_clk * CONFIG.dram.efficiency)
    first = [dram.read(0.0, 16384) for _ in range(8)]
    assert first == pytest.approx([each * k for k in range(1, 9)])
    # What came meanwhile is known when the channels would be done with it.
    assert dram.overtaken(first[0]) == pytest.approx(CONFIG.dram.overtaking * 7 * each)
    assert dram.overtaken(first[-1]) == 0.0
    dram.read(first[-1] + 1.0, 1 << 20)
    assert dram.overtaken(first[-1]) == 0.0
    # Alone, nothing overtakes; nothing waits for ever.
    alone = 5000.0 + dram.read(5000.0, 16384)
    assert dram.overtaken(alone) == 0.0
    long = 6000.0 + dram.read(6000.0, 16384)
    dram.read(6000.0, 1 << 24)
    assert dram.overtaken(long) == CONFIG.dram.overtaking_most_cycles


def mean_wait(config: Dram, channels: int) -> float:
    """Return how long requests to some channels wait for the one whose refresh ends last, on average."""
    waits = (np.arange(20_000) + 0.5) / 20_000
    share = config.refresh_cycles / config.refresh_interval_cycles
    # A channel makes one wait no longer than x: it does not refresh, or is nearly through.
    longer = 1.0 - (1.0 - share + share * waits) ** channels
    return config.refresh_cycles * float(longer.mean())


def refreshes(lines: np.ndarray, config: Dram = CONFIG.dram) -> list[float]:
    dram = DramChannels(config, LINE)
    return [dram.latency(lines)[1] for _ in range(4000)]


@pytest.mark.parametrize("channels", [1, 2, 10, 80])
def test_lines_wait_for_the_longest_refresh_of_their_channels(channels: int) -> None:
    of_a_channel = CONFIG.dram.interleave_bytes // LINE
    found = refreshes(np.arange(channels, dtype=np.int64) * of_a_channel)
    assert 0.0 <= min(found) <= max(found) <= CONFIG.dram.refresh_cycles
    assert np.mean(found) == pytest.approx(mean_wait(CONFIG.dram, channels), rel=0.01)


def test_neighbouring_lines_share_a_channel() -> None:
    of_a_channel = CONFIG.dram.interleave_bytes // LINE
    alone, both = (mean_wait(CONFIG.dram, channels) for channels in (1, 2))
    assert np.mean(refreshes(run(0, of_a_channel))) == pytest.approx(alone, rel=0.01)
    assert np.mean(refreshes(run(1, of_a_channel))) == pytest.approx(both, rel=0.01)


def test_more_channels_than_there_are_meet_no_more_refreshes() -> None:
    step = CONFIG.dram.interleave_bytes // LINE
    found = refreshes(run(0, 1000) * step)
    assert np.mean(found) == pytest.approx(mean_wait(CONFIG.dram, CONFIG.dram.channels), rel=0.01)


def test_without_refresh_it_does_not_matter_where_lines_lie() -> None:
    config = CONFIG.dram.model_copy(update={"refresh_cycles": 0})
    idle = DramChannels(config, LINE)
    latency = CONFIG.dram.latency_cycles + CONFIG.dram.latency_spread_cycles * 64 / 65
    for step in (1, 2, 64):
        assert idle.latency(run(0, 64) * step) == (pytest.approx(latency), 0.0)


def test_of_requests_that_take_time_to_leave_the_late_one_is_half_way() -> None:
    lines = run(0, 64) * 64
    dram = DramChannels(CONFIG.dram, LINE)
    delay = dram.read(0.0, 256 * 32)
    latency, refresh = dram.latency(lines)
    assert refresh > 0.0
    at_once = cache().read(0.0, 0.0, Footprint(lines, 256), 0).ready
    assert at_once == pytest.approx(delay + refresh + latency)
    asking = 256 * 32 / CONFIG.l2.bandwidth_per_sm_bytes_per_clk
    one_by_one = cache().read(0.0, asking, Footprint(lines, 256), 0, 0.0).ready
    assert one_by_one == pytest.approx(delay + refresh + 0.5 * asking + latency)
    # A queue in front of them is none of it.
    queued = cache().read(0.0, 10_000.0, Footprint(lines, 256), 0, 0.0).ready
    assert queued == pytest.approx(10_000.0 - 0.5 * asking + refresh + latency)


def test_sectors_of_a_line_are_fetched_once_each() -> None:
    """Boxes of rows that are not aligned to lines share lines, not sectors."""
    unit = cache()
    lines = run(0, 16)
    left, right = (np.full(16, mask, np.uint8) for mask in (0b0011, 0b1110))
    unit.read(0.0, 0.0, Footprint(lines, 32, left), 0)
    assert unit.counters.dram_read == 32
    late = unit.read(5000.0, 5000.0, Footprint(lines, 48, right), 0).ready
    assert unit.counters.dram_read == 32 + 32
    assert late >= 5000 + CONFIG.dram.latency_cycles
    unit.read(9000.0, 9000.0, Footprint(lines, 64), 0)
    unit.read(9900.0, 9900.0, Footprint(lines, 48, right), 0)
    assert unit.counters.dram_read == 64
    assert unit._dram.read_bytes == 64 * 32


def test_the_latency_of_scattered_lines_grows_with_load_and_falls_again() -> None:
    dram = DramChannels(CONFIG.dram, CONFIG.l2.line_bytes)
    lines = np.arange(64, dtype=np.int64) * 64
    idle, _ = dram.latency(lines)
    each = CONFIG.dram.latency_cycles * CONFIG.dram.bandwidth_bytes_per_clk * CONFIG.dram.efficiency
    most = CONFIG.dram.contention_latency_cycles
    means = []
    for window in range(12):
        dram.read(window * CONFIG.dram.latency_cycles, round(each / 2))
        waits = [dram.latency(lines)[0] - idle for _ in range(100)]
        means.append(fmean(waits))
        # They lie evenly around the mean.
        spread = CONFIG.dram.contention_spread * means[-1]
        assert min(waits) == pytest.approx(means[-1] - spread, abs=0.05 * most)
        assert max(waits) == pytest.approx(means[-1] + spread, abs=0.05 * most)
    assert means == sorted(means)
    # Half of the channels' time is taken: once the contention latency.
    assert means[-1] == pytest.approx(most, rel=0.1)
    dram.read(1e6, 32)
    assert dram.latency(lines)[0] == pytest.approx(idle, abs=1)


def test_a_second_line_of_a_pair_is_a_hit_at_its_home() -> None:
    """Of a pair one line misses, the other hits where it is at home; the local half looks it up once more."""
    paired, plain = cache(), cache()
    even, odd = run(0, 256)[::2], run(0, 256)[1::2]
    for time, lines, beside in ((0.0, even, odd), (1e4, odd, even)):
        paired.read(time, time, Footprint(lines, 512, beside=beside), 0)
        plain.read(time, time, Footprint(lines, 512), 0)
    side = plain._side_of[0]
    local = 128 - plain.tags.remote_lines(odd, side)
    assert plain.counters.hit == 0
    assert paired.counters.hit == 4 * 128
    assert paired.counters.read == plain.counters.read + 4 * local
    assert paired.counters.dram_read == plain.counters.dram_read == 4 * 256


def test_a_part_of_a_line_brings_the_rest_of_it() -> None:
    unit = cache()
    for time, mask in enumerate((1, 2, 4, 8)):
        masks = np.array([mask], np.uint8)
        unit.read(1e4 * time, 1e4 * time, Footprint(run(6, 1), 1, masks, beside=run(7, 1)), 0)
    assert unit.counters.hit == 3
    assert unit.counters.dram_read == 8


def test_what_was_dirty_before_goes_as_sets_fill() -> None:
    """Half full nearly none of it, full about half, in the end all: as sets of 16 hashed lines fill up."""
    unit = L2Tags(16384 * LINE, 1, LINE, 32, 16, 1000 * LINE)
    unit.cover(0, 1 << 24)
    gone: dict[int, int] = {}
    for first in range(0, 4 * 16384, 64):
        assert unit.read(run(first, 64), 0)[1] == 0
        gone[first + 64] = unit.old_written()
    assert [gone[lines] for lines in (4096, 8192, 12288, 16384, 65536)] == [0, 33, 622, 2133, 4000]


def test_a_set_holds_one_line_of_before_at_most() -> None:
    unit = L2Tags(256 * LINE, 1, LINE, 32, 16, 1 << 20)
    unit.cover(0, 1 << 20)
    unit.read(run(0, 1024), 0)
    assert unit.old_written() == 256 // 16 * 4


def test_what_went_before_the_launch_is_not_counted() -> None:
    unit = cache(capacity_bytes=256 * LINE)
    unit.warm(run(0, 512))
    assert unit.tags.old_written() == 0


def test_lines_beside_those_that_are_missed_come_with_them() -> None:
    unit = cache()
    lines, beside = np.arange(0, 64, 2), np.arange(1, 64, 2)
    first = unit.read(0.0, 0.0, Footprint(lines, 128, beside=beside), 0).ready
    assert unit.counters.dram_read == 256
    # Who asks for them early waits for their arrival.
    early = unit.read(1.0, 1.0, Footprint(beside, 128), 0).ready
    assert early == pytest.approx(first)
    late = unit.read(1e4, 1e4, Footprint(beside, 128), 5).ready
    assert late <= 1e4 + CONFIG.l2.latency_far_cycles + 10
    assert unit.counters.dram_read == 256


def test_a_box_whose_lines_bring_others_waits_longer_for_refreshes() -> None:
    """Recorded on an H100 (cold_tiles_*_l2_256B): the line that comes last is one that was asked for last."""
    alone, paired = cache(), cache()
    later: list[float] = []
    for number in range(8):
        lines = np.arange(256 * number, 256 * number + 256, 2)
        time = 1e5 * number
        usual = alone.read(time, time + 200.0, Footprint(lines, 512), 0, time).ready
        later.append(
            paired.read(time, time + 200.0, Footprint(lines, 512, beside=lines + 1), 0, time).ready
            - usual
        )
    assert all(0.0 <= more <= 101.0 for more in later)
    assert max(later) > 50.0


def test_lines_beside_those_that_are_there_do_not_come() -> None:
    unit = cache()
    lines, beside = np.arange(0, 64, 2), np.arange(1, 64, 2)
    unit.read(0.0, 0.0, Footprint(lines, 128), 0)
    unit.read(1e4, 1e4, Footprint(lines, 128, beside=beside), 0)
    assert unit.counters.dram_read == 128


def test_lines_beside_go_to_their_homes_only() -> None:
    unit = tags(1000, 2)
    lines = run(0, 64)
    fresh, written = unit.prefetch(lines)
    assert (len(fresh), written, unit.resident_lines) == (64, 0, 64)
    assert len(unit.prefetch(lines)[0]) == 0
    found, _ = unit.read(lines, 0)
    assert found.near + found.far == 64
    assert found.far == unit.remote_lines(lines, 0)


def test_lines_that_several_sms_ask_for_again_are_served_slowly() -> None:
    unit = cache()
    rate = CONFIG.l2.repeated_bandwidth_bytes_per_clk
    assert unit.read_again(0.0, 0.0, run(3, 1), 2048, sm=0) == 0.0
    assert unit.read_again(0.0, 0.0, run(3, 1), 2048, sm=1) == pytest.approx(2048 / rate)
    assert unit.read_again(0.0, 0.0, run(3, 1), 2048, sm=2) == pytest.approx(4096 / rate)
    # A line of its own costs an SM nothing.
    assert unit.read_again(0.0, 7.0, run(9, 1), 2048, sm=2) == 7.0


def test_a_line_that_is_asked_for_again_holds_up_others_until_it_has_come() -> None:
    unit, other = cache(), cache()
    line, rows = run(3, 1), run(400, 4)
    comes = unit.read(0.0, 0.0, Footprint(line, 4), 0).ready
    assert other.read(0.0, 0.0, Footprint(line, 4), 0).ready == comes
    unit.read_again(0.0, 0.0, line, 2048, sm=0)
    done = unit.read_again(0.0, 0.0, line, 2048, sm=1)
    assert done == pytest.approx(
        comes - unit.near + 2048 / CONFIG.l2.repeated_bandwidth_bytes_per_clk
    )
    # Device memory is asked for other lines when the last of these requests has been answered.
    assert unit.read(0.0, 0.0, Footprint(rows, 16), 0).ready - other.read(
        0.0, 0.0, Footprint(rows, 16), 0
    ).ready == pytest.approx(done, rel=1e-3)
    later, more = done + 1.0, run(800, 4)
    free = unit.read(later, later, Footprint(more, 16), 0).ready
    assert free == pytest.approx(other.read(later, later, Footprint(more, 16), 0).ready)


def test_rows_outside_hold_up_what_is_asked_for_with_them() -> None:
    one, config = cache(), CONFIG.l2
    lines = run(0, 32)
    one.warm(lines)
    count = 1 << 20
    taken = count / config.outside_bandwidth_bytes_per_clk
    alone = one.read(0.0, 0.0, Footprint(lines, 128), 0).ready
    assert one.outside.read(0.0, 0.0, count, "k 0") == pytest.approx(taken + one.near)
    behind = one.read(0.0, 0.0, Footprint(lines, 128), 0).ready
    own = 128 * config.sector_bytes / config.beside_outside_bandwidth_bytes_per_clk
    assert behind == pytest.approx(taken + own + one.near)
    assert behind > alone
    later = 2 * taken
    assert one.read(later, later, Footprint(lines, 128), 0).ready - later == pytest.approx(alone)


def test_rows_outside_at_more_places_are_served_by_more_slices() -> None:
    config = CONFIG.l2
    count = 1 << 20

    def rate(places: int) -> float:
        one = cache()
        ends = [one.outside.read(0.0, 0.0, count, place) for place in range(places)]
        return places * count / (ends[-1] - one.near)

    slow, most = config.outside_bandwidth_bytes_per_clk, config.outside_bandwidth_most_bytes_per_clk
    assert rate(config.outside_places) == pytest.approx(slow)
    assert slow < rate(config.outside_places + 4) < most
    assert rate(100 * config.outside_places) == pytest.approx(most, rel=0.05)
