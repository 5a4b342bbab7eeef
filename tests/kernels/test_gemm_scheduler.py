from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hopsim.kernels.gemm.kernel import build
from hopsim.kernels.gemm.order import unit_of
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.gemm.scheduler import units


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 25))
def test_the_order_visits_every_unit_once(units_m: int, units_n: int, group_m: int) -> None:
    visited = [unit_of(i, units_m, units_n, group_m) for i in range(units_m * units_n)]
    assert sorted(visited) == [(i, j) for i in range(units_m) for j in range(units_n)]


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 25))
def test_a_group_is_finished_before_the_next_begins(
    units_m: int, units_n: int, group_m: int
) -> None:
    groups = [unit_of(i, units_m, units_n, group_m)[0] // group_m for i in range(units_m * units_n)]
    assert groups == sorted(groups)


def test_group_of_one_is_row_major_and_group_of_all_is_column_major() -> None:
    assert [unit_of(i, 2, 3, 1) for i in range(6)] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
        (1, 1),
        (1, 2),
    ]
    assert [unit_of(i, 2, 3, 2) for i in range(6)] == [
        (0, 0),
        (1, 0),
        (0, 1),
        (1, 1),
        (0, 2),
        (1, 2),
    ]


def test_the_grid_covers_ragged_sizes_in_whole_clusters() -> None:
    kernel = build("warp-specialized", GemmProblem(200, 328, 144), (64, 64, 64), 3, cluster=(2, 2))
    assert units(kernel.problem, kernel.plan) == (2, 3)
    assert (kernel.grid, kernel.cluster) == ((24, 1, 1), 4)


def test_a_persistent_grid_is_what_runs_at_once() -> None:
    def ctas(m: int, **options: object) -> int:
        problem = GemmProblem(m, 4096, 4096)
        options = {"persistent": True, "warpgroups": 2, **options}
        return build("warp-specialized", problem, (128, 128, 64), 4, **options).grid[0]  # type: ignore[arg-type]

    assert ctas(4096) == 132
    assert ctas(4096, cluster=(2, 1)) == 132
    assert ctas(4096, cluster=(2, 2)) == 120
    assert ctas(4096, resident_ctas=101, cluster=(2, 1)) == 100
    assert ctas(128) == 32
