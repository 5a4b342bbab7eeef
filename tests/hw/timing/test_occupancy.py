from __future__ import annotations

import pytest

from hopsim.config import load
from hopsim.errors import LaunchError
from hopsim.hw.timing.cta_scheduler import Placement
from hopsim.hw.timing.occupancy import occupancy, resident_ctas
from hopsim.kernels.gemm.scheduler import H100_CTAS

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


def test_an_h100_runs_as_many_clusters_at_once_as_were_recorded() -> None:
    assert {size: resident_ctas(DEVICE, 1, size) for size in H100_CTAS} == H100_CTAS


@pytest.mark.parametrize("ctas_per_sm", [1, 2, 3, 32])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 16])
def test_as_many_clusters_are_placed_as_are_counted(size: int, ctas_per_sm: int) -> None:
    placement = Placement(DEVICE, ctas_per_sm)
    placed = 0
    while placement.place(size) is not None:
        placed += size
    assert placed == resident_ctas(DEVICE, ctas_per_sm, size)


def test_a_cluster_of_more_ctas_than_a_gpc_has_sms_fits_nowhere() -> None:
    assert resident_ctas(DEVICE, 2, 19) == 0


# SMs of the CTAs in grid order, as %smid was recorded on an H100 (grids of single CTAs of 227 KiB), turned so that the GPC
# of SM 0 comes first, which varies from launch to launch.
RECORDED = {
    16: [
        124, 125, 126, 127, 128, 129, 130, 131, 0, 2, 4, 6, 8, 10, 12, 14,
    ],
    32: [
        124, 125, 126, 127, 128, 129, 130, 131, 0, 16, 32, 2, 18, 34, 4, 20, 36, 6, 22, 38, 8, 24, 40, 10,
        26, 42, 12, 28, 44, 14, 30, 46,
    ],
    64: [
        124, 125, 126, 127, 128, 129, 130, 131, 0, 16, 32, 48, 2, 18, 34, 50, 64, 78, 92, 106, 4, 20, 36, 52,
        66, 80, 94, 108, 6, 22, 38, 54, 68, 82, 96, 110, 8, 24, 40, 56, 70, 84, 98, 10, 26, 42, 58, 72,
        86, 100, 12, 28, 44, 60, 74, 88, 102, 14, 30, 46, 62, 76, 90, 104,
    ],
    96: [
        124, 125, 126, 127, 128, 129, 130, 131, 0, 1, 16, 17, 32, 33, 48, 49, 2, 3, 18, 19, 34, 35, 50, 51,
        64, 78, 92, 106, 4, 5, 20, 21, 36, 37, 52, 66, 80, 94, 108, 6, 7, 22, 23, 38, 39, 54, 68, 82,
        96, 110, 8, 9, 24, 25, 40, 41, 56, 70, 84, 98, 112, 10, 11, 26, 27, 42, 43, 58, 72, 86, 100, 114,
        12, 13, 28, 29, 44, 45, 60, 74, 88, 102, 116, 120, 14, 15, 30, 31, 46, 47, 62, 76, 90, 104, 118, 122,
    ],
}  # fmt: skip


@pytest.mark.parametrize("count", RECORDED)
def test_a_gpc_takes_neighbours_of_the_grid(count: int) -> None:
    assert Placement(DEVICE, 1).first_waves(count) == [RECORDED[count]]


def test_single_ctas_spread_over_the_chip() -> None:
    placement = Placement(DEVICE, 2)
    # As recorded: a full round first, then the next one.
    first, second = placement.first_waves(1000)
    assert sorted(first) == list(range(132))
    assert first == second
    assert placement.place(1) is None
    placement.release(57)
    assert placement.place(1) == (57,)
    alone = Placement(DEVICE, 1)
    order = [sms[0] for sms in iter(lambda: alone.place(1), None)]
    # One to each TPC, GPC after GPC, before the second SM of any.
    assert order[:8] == [124, 126, 128, 130, 125, 127, 129, 131]
    assert order[8:16] == [0, 2, 4, 6, 8, 10, 12, 14]
    assert [sm % 2 for sm in order[8:]] == [0] * 62 + [1] * 62


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


@pytest.mark.parametrize(("size", "idle"), [(2, 66), (4, 30), (8, 15), (16, 7)])
def test_no_sm_gets_a_second_cta_while_a_cluster_finds_idle_ones(size: int, idle: int) -> None:
    placement = Placement(DEVICE, 3)
    found = [placement.place(size) or () for _ in range(idle)]
    taken = {sm for sms in found for sm in sms}
    assert len(taken) == size * idle
    assert taken & set(placement.place(size) or ())


def test_ctas_of_a_cluster_do_not_share_an_sm() -> None:
    few = DEVICE.model_copy(update={"gpc_sm_counts": (2, 2), "sm_count": 4})
    placement = Placement(few, 2)
    assert placement.largest_cluster() == 2
    assert placement.place(4) is None
    assert placement.place(2) == (0, 1)
