from __future__ import annotations

import pytest

from hopsim.config import load
from hopsim.errors import LaunchError
from hopsim.hw.timing.cta_scheduler import Placement
from hopsim.hw.timing.occupancy import occupancy

DEVICE = load("h100-sxm").device


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "ctas", "limiter"),
    [
        # The CUDA occupancy calculator for compute capability 9.0.
        (128, 32, 0, 16, "warps"),
        (32, 16, 0, 32, "CTAs"),
        (256, 64, 0, 4, "registers"),
        (384, 168, 0, 1, "registers"),
        (128, 255, 0, 2, "registers"),
        (128, 90, 65552, 3, "shared memory"),
        (128, 32, 232448, 1, "shared memory"),
        (1024, 32, 0, 2, "warps"),
        (1024, 64, 0, 1, "registers"),
        (96, 32, 0, 21, "warps"),
        (128, 32, 16384, 13, "shared memory"),
    ],
)
def test_known_occupancies(
    threads: int, registers: int, shared: int, ctas: int, limiter: str
) -> None:
    found = occupancy(DEVICE, threads, registers, shared)
    assert (found.ctas_per_sm, found.limiter) == (ctas, limiter)
    assert found.warps_per_sm == ctas * -(-threads // 32)


def test_registers_are_given_in_units_of_eight() -> None:
    assert occupancy(DEVICE, 256, 65, 0).registers_per_thread == 72
    assert occupancy(DEVICE, 256, 65, 0).ctas_per_sm == 3


def test_a_cta_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(LaunchError, match="144 registers x 1024 threads"):
        occupancy(DEVICE, 1024, 140, 0)


def test_single_ctas_fill_the_chip_breadth_first() -> None:
    placement = Placement(DEVICE, 2)
    first = [placement.place(1) for _ in range(132)]
    assert sorted(sm for sms in first if sms for sm in sms) == list(range(132))
    # As %smid was recorded on an H100, but for the GPC that comes first: row by row, first one SM of each TPC, then the
    # other; the TPCs that belong to no GPC come with the first row.
    order = [sms[0] for sms in first if sms]
    assert order[:12] == [124, 126, 128, 130, 0, 2, 4, 6, 8, 10, 12, 14]
    assert order[12:24] == [125, 127, 129, 131, 1, 3, 5, 7, 9, 11, 13, 15]
    assert order[24:32] == list(range(16, 32, 2))
    assert order[-4:] == [120, 122, 121, 123]
    assert [placement.gpc_of[sm] for sm in order[4:12]] == list(range(8))
    second = [placement.place(1) for _ in range(132)]
    assert None not in second
    assert placement.place(1) is None
    placement.release(57)
    assert placement.place(1) == (57,)


@pytest.mark.parametrize(("size", "clusters"), [(1, 132), (2, 66), (4, 30), (8, 15), (16, 7)])
def test_clusters_stay_in_a_gpc(size: int, clusters: int) -> None:
    placement = Placement(DEVICE, 1)
    placed = []
    while (sms := placement.place(size)) is not None:
        assert len(set(sms)) == size
        assert len({placement.gpc_of[sm] for sm in sms}) == 1
        placed.append(sms)
    assert len(placed) == clusters
    assert len({sm for sms in placed for sm in sms}) == size * clusters


def test_places_of_a_cluster_come_back_one_by_one() -> None:
    placement = Placement(DEVICE, 1)
    while (last := placement.place(8)) is not None:
        sms = last
    for sm in sms[:-1]:
        placement.release(sm)
    assert placement.free_places == 132 - 120 + 7
    placement.release(sms[-1])
    assert placement.place(8) == sms


@pytest.mark.parametrize(
    ("size", "places", "clusters"),
    [(2, 2, 132), (4, 2, 62), (8, 2, 30), (16, 2, 14), (2, 8, 528), (4, 8, 248), (8, 8, 124), (16, 8, 58)],
)  # fmt: skip
def test_clusters_with_several_ctas_an_sm(size: int, places: int, clusters: int) -> None:
    """cudaOccupancyMaxActiveClusters on an H100 SXM."""
    placement = Placement(DEVICE, places)
    assert sum(1 for _ in iter(lambda: placement.place(size), None)) == clusters


def test_clusters_go_to_gpcs_in_turn() -> None:
    placement = Placement(DEVICE, 1)
    assert [placement.place(2) for _ in range(5)] == [
        (124, 125),
        (126, 127),
        (128, 129),
        (130, 131),
        (0, 1),
    ]
    fresh = Placement(DEVICE, 1)
    found = [fresh.place(4) for _ in range(9)]
    assert found[:3] == [(0, 1, 16, 17), (2, 3, 18, 19), (4, 5, 20, 21)]
    assert found[8] == (32, 33, 48, 49)


def test_ctas_of_a_cluster_do_not_share_an_sm() -> None:
    few = DEVICE.model_copy(update={"gpc_sm_counts": (2, 2), "sm_count": 4})
    placement = Placement(few, 2)
    assert placement.largest_cluster() == 2
    assert placement.place(4) is None
    assert placement.place(2) == (0, 1)
