"""When and where CTAs start, and which follow each other."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from hopsim.config import load
from hopsim.hw.timing.cta_scheduler import Placement, number_sms
from hopsim.kernels.micro.clocked import measure
from hopsim.kernels.micro.placement import SHARED_MAX, stamps
from hopsim.launch.device import Device
from hopsim.runtime.gpu import Gpu

CONFIG: Final = load("h100-sxm")
LAUNCH: Final = CONFIG.launch
SMS: Final = number_sms(CONFIG.device)
GPC_OF: Final = {sm: gpc for gpc, sms in enumerate(SMS) for sm in sms}
SM, START, END = 0, 1, 2


def table(ctas: int, **options: Any) -> NDArray[np.int64]:
    """Return the SM, the start and the end of each CTA in grid order; each lasts 2,000 cycles and fills its SM."""
    one = stamps("test", ctas, 128, SHARED_MAX, spin=2000, **options)
    tables: list[list[list[int]]] = []
    measure(cast(Device, Gpu()), one, tables=tables, values=True, check=False)
    return np.array(tables[-1], np.int64)


def test_gpcs_start_their_first_ctas_at_once_and_one_after_the_other() -> None:
    rows = table(132)
    first = rows[:, START].min()
    for gpc, sms in enumerate(SMS):
        mine = rows[[sm in sms for sm in rows[:, SM]]]
        starts = np.sort(mine[:, START])
        way = LAUNCH.cta_launch_cycles[gpc] - min(LAUNCH.cta_launch_cycles)
        assert starts[0] - first <= way + 1
        assert all(
            abs(later - sooner - LAUNCH.gpc_launch_interval_cycles) <= 1
            for sooner, later in pairwise(starts)
        )
        # The first SM of each TPC, then the second ones.
        order = mine[np.argsort(mine[:, START]), SM]
        assert [int(sm) % 2 for sm in order] == sorted(int(sm) % 2 for sm in order)


def test_a_gpc_s_first_ctas_are_neighbours_in_the_grid() -> None:
    gpcs = [GPC_OF[int(sm)] for sm in table(132)[:, SM]]
    large = [gpc for gpc, _ in groupby(gpcs) if len(SMS[gpc]) > 2]
    assert len(large) == len(set(large))


def test_ctas_that_follow_others_stay_neighbours() -> None:
    """A GPC whose SMs become free together is given neighbours (recorded in GEMMs: up to seven on end)."""
    rows = table(264)
    gpcs = [GPC_OF[int(sm)] for sm in rows[132:, SM]]
    runs = [len(list(run)) for _, run in groupby(gpcs)]
    assert max(runs) >= 4
    assert sum(runs) / len(runs) > 2
    # A CTA that is further on in the grid is never placed sooner, save for the way to its GPC.
    starts = rows[132:, START] - np.array([LAUNCH.cta_launch_cycles[gpc] for gpc in gpcs])
    assert np.diff(starts).min() >= -1


def test_a_cta_follows_the_one_before_as_soon_as_its_gpc_has_its_turn() -> None:
    rows = table(4 * 132)
    for sm in (0, 3, 8, 19, 127):
        gpc = GPC_OF[sm]
        mine = rows[rows[:, SM] == sm]
        assert len(mine) == 4
        gaps = mine[1:, START] - mine[:-1, END]
        least = LAUNCH.cta_retire_cycles + LAUNCH.cta_launch_cycles[gpc]
        # The instructions before and after the clocks take some time too.
        assert all(least <= gap <= least + LAUNCH.gpc_visit_interval_cycles + 120 for gap in gaps)


def test_clusters_that_follow_others_stay_neighbours() -> None:
    """Recorded in GEMMs of clusters of two: up to eight on end in one GPC."""
    rows = table(264, cluster=2)
    pairs = rows.reshape(-1, 2, rows.shape[1])
    assert all(GPC_OF[int(a[SM])] == GPC_OF[int(b[SM])] for a, b in pairs)
    gpcs = [GPC_OF[int(pair[0, SM])] for pair in pairs]
    first, later = gpcs[:66], gpcs[66:]
    # The first go to the GPCs in turn.
    assert first[4:12] == list(range(8))
    runs = [len(list(run)) for _, run in groupby(later)]
    assert sum(runs) / len(runs) > 1.4


def test_places_of_a_gpc_are_taken_emptiest_first() -> None:
    placement = Placement(CONFIG.device, 2)
    sms = SMS[1]
    taken = [placement.place_in(1, 1) for _ in range(2 * len(sms))]
    assert [one for one in taken if one is not None][: len(sms)] == [(sm,) for sm in sms]
    assert placement.place_in(1, 1) is None
    placement.release(sms[5])
    assert placement.place_in(1, 2) is None
    placement.release(sms[3])
    assert placement.place_in(1, 2) == (sms[3], sms[5])


def test_no_sm_is_twice_in_a_wave() -> None:
    waves = Placement(CONFIG.device, 3).first_waves(300)
    assert [len(wave) for wave in waves] == [132, 132, 36]
    assert all(len(set(wave)) == len(wave) for wave in waves)
