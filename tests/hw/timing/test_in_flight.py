"""Lines on their way into L2: who asks for them meanwhile waits, wherever they lie."""

from __future__ import annotations

import numpy as np

from hopsim.config import load
from hopsim.hw.timing.dram import DramChannels
from hopsim.hw.timing.in_flight import InFlight
from hopsim.hw.timing.l2_tags import L2Tags

CONFIG = load("h100-sxm")
LINE = CONFIG.l2.line_bytes


def units() -> tuple[L2Tags, InFlight]:
    tags = L2Tags(CONFIG.l2.capacity_bytes, CONFIG.l2.partitions, LINE, CONFIG.l2.sector_bytes)
    tags.cover(0, 1 << 20)
    return tags, InFlight(tags, DramChannels(CONFIG.dram, LINE))


def lines(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def test_who_asks_for_a_line_on_its_way_waits_for_it() -> None:
    _, unit = units()
    assert unit.read(lines(1), lines(1), 0.0, False, 900.0, 880.0, 870.0) == (900.0, 880.0, 870.0)
    ready, _, finish = unit.read(lines(1), None, 100.0, False, 300.0, 300.0, 0.0)
    assert (ready, finish) == (900.0, 870.0)
    assert unit.read(lines(1), None, 1000.0, False, 1200.0, 1200.0, 0.0)[0] == 1200.0


def test_a_read_of_lines_that_have_just_got_numbers_waits_for_those_on_their_way() -> None:
    tags, unit = units()
    unit.read(lines(1), lines(1), 0.0, False, 900.0, 880.0, 870.0)
    new = tags.size
    tags.cover(0, 2 * tags.size * LINE)
    assert tags.size > new
    # Part of it is fetched, part is on its way.
    assert unit.read(lines(1, new), lines(new), 10.0, False, 800.0, 780.0, 770.0)[0] == 900.0
    assert unit.ready(new) == 900.0
