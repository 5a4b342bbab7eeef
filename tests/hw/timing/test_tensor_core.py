from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopsim.config import load
from hopsim.hw.machine.work import TensorWork
from hopsim.hw.timing.mma_pipe import MmaPipe, Product
from hopsim.hw.timing.tensor_core import Run, TensorCore, WarpgroupQueue

CONFIG = load("h100-sxm")
TENSOR = CONFIG.tensor
BITS = {"bf16": (16, 16), "tf32": (32, 8), "e4m3": (8, 32), "s8": (8, 32)}


def work(n: int, kind: str = "bf16", a_shared: bool = True) -> TensorWork:
    bits, k = BITS[kind]
    return TensorWork(kind, n, k, bits, a_shared, False, None)


@pytest.mark.parametrize("kind", BITS)
@pytest.mark.parametrize("n", [64, 128, 256])
def test_wide_shapes_take_half_a_cycle_a_column(n: int, kind: str) -> None:
    assert TensorCore(TENSOR).duration(work(n, kind))[0] == n / 2


@pytest.mark.parametrize(("n", "cycles"), [(8, 18.0), (16, 20.0), (32, 24.0), (64, 32.0)])
def test_narrow_shapes_wait_for_operands(n: int, cycles: float) -> None:
    # 2,048 bytes of A and 32 of B for each column, at 128 bytes a cycle: hopper-facts' formula.
    assert TensorCore(TENSOR).duration(work(n))[0] == cycles


def test_a_from_registers_drops_its_bytes() -> None:
    assert TensorCore(TENSOR).duration(work(32, a_shared=False))[0] == 16.0
    assert TensorCore(TENSOR).duration(work(8, a_shared=False))[0] == 4.0


def group(core: TensorCore, queue: WarpgroupQueue, count: int, n: int, time: float = 0.0) -> Run:
    """Issue and commit `count` operations, four cycles apart."""
    for number in range(count):
        core.book(queue, time + 4 * number, work(n))
    return core.close(queue)


def test_it_tells_for_how_long_it_worked() -> None:
    core = TensorCore(TENSOR)
    queue = core.admit()
    group(core, queue, 2, 128, time=100.0)
    group(core, queue, 1, 128, time=400.0)
    # From 100 to 228, and from 400 to 464.
    assert core.worked(0.0, 100.0) == 0.0
    assert core.worked(0.0, 1000.0) == 128 + 64
    assert core.worked(150.0, 200.0) == 50.0
    assert core.worked(200.0, 432.0) == 28 + 32
    assert core.worked(228.0, 400.0) == 0.0
    assert core.worked(500.0, 600.0) == 0.0


BASE = TENSOR.commit_cycles + TENSOR.latency_base_cycles


@pytest.mark.parametrize("n", [8, 32, 64, 128])
@pytest.mark.parametrize("count", [1, 4])
def test_a_group_ends_half_n_after_its_last_start(n: int, count: int) -> None:
    """Recorded on an H100: (c - 1) max(N/2, 16 + N/4) + N/2 and a constant."""
    core, queue = TensorCore(TENSOR), WarpgroupQueue(64)
    run = group(core, queue, count, n)
    each = max(n / 2, 16 + n / 4)
    assert core.complete(run) == (count - 1) * each + n / 2 + BASE


def test_warpgroups_take_turns() -> None:
    """Recorded on an H100: of two that issue c operations each at once, the first ends after 2 c - 1 of them."""
    core = TensorCore(TENSOR)
    first, second = WarpgroupQueue(64), WarpgroupQueue(64)
    mine, other = group(core, first, 4, 256), group(core, second, 4, 256)
    assert core.complete(mine) == 7 * 128 + BASE
    assert core.complete(other) == 8 * 128 + BASE
    assert not core.has_completed(mine, 7 * 128 + BASE - 1)
    assert core.has_completed(mine, 7 * 128 + BASE)
    assert not core.has_completed(other, 7 * 128 + BASE)
    assert core.has_completed(other, 8 * 128 + BASE)
    assert core.busy_cycles == 8 * 128
    assert core.operations == 8


def test_a_group_that_others_overtake_ends_later() -> None:
    core = TensorCore(TENSOR)
    first, second = WarpgroupQueue(64), WarpgroupQueue(64)
    mine = group(core, first, 4, 256)
    assert core.complete(mine) == 4 * 128 + BASE
    group(core, second, 2, 256, time=130.0)
    assert core.complete(mine) == 6 * 128 + BASE
    assert not core.has_completed(mine, 4 * 128 + BASE)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(1, 5), st.integers(0, 900)),
        min_size=1,
        max_size=12,
    )
)
def test_what_is_foretold_comes_true(groups: list[tuple[int, int, int]]) -> None:
    """With no later issue, a group ends when `complete` says; the unit is never idle while work is ready, nor shared."""
    core = TensorCore(TENSOR)
    queues = [WarpgroupQueue(64) for _ in range(3)]
    time, runs = 0.0, []
    for which, count, gap in groups:
        time += gap
        runs.append(group(core, queues[which], count, 128, time))
    ends = [core.complete(run) for run in runs]
    for end, run in sorted(zip(ends, runs, strict=True), key=lambda pair: pair[0]):
        assert not core.has_completed(run, end - 1)
        assert core.has_completed(run, end)
    operations = sum(count for _, count, _ in groups)
    assert core.busy_cycles == operations * 64
    assert max(ends) - BASE <= time + 20 + operations * 64


def unit(depth: int) -> TensorCore:
    return TensorCore(TENSOR.model_copy(update={"queue_depth": depth}))


def test_issue_waits_when_the_queue_is_full() -> None:
    core = unit(2)
    queue = core.admit()
    assert core.book(queue, 0.0, work(256)) == 0.0
    assert core.book(queue, 1.0, work(256)) == 1.0
    assert core.book(queue, 2.0, work(256)) == 128.0
    assert core.book(queue, 500.0, work(256)) == 500.0


def test_warpgroups_at_work_share_the_places() -> None:
    core = unit(8)
    queue, other = core.admit(), core.admit()
    # The other one has nothing outstanding: all places are those of the first.
    assert [core.book(queue, 0.0, work(256)) for _ in range(8)] == [0.0] * 8
    assert core.book(queue, 0.0, work(256)) == 128.0
    # Half of them each: four of the other go, its fifth waits for its first, which comes tenth.
    assert [core.book(other, 0.0, work(256)) for _ in range(4)] == [0.0] * 4
    assert core.book(other, 0.0, work(256)) == 10 * 128.0


def test_who_has_exited_takes_no_place() -> None:
    core = unit(8)
    queue, other = core.admit(), core.admit()
    core.book(other, 0.0, work(256))
    issued = [core.book(queue, 0.0, work(256)) for _ in range(5)]
    assert issued == [0.0] * 4 + [2 * 128.0]
    core.dismiss(other)
    assert core.book(queue, 0.0, work(256)) == 0.0


def test_a_run_begins_with_its_first_operation() -> None:
    core, queue, other = TensorCore(TENSOR), WarpgroupQueue(8), WarpgroupQueue(8)
    group(core, other, 1, 64)
    run = group(core, queue, 2, 64, time=5.0)
    assert core.has_completed(run, 10_000.0)
    assert (run.start, run.last) == (32.0, 64.0)


def test_an_operation_issued_after_the_last_of_its_warpgroup_is_not_there_before() -> None:
    """Its turn is not the one that the last had left: the other warpgroup goes first."""
    core = TensorCore(TENSOR)
    mine, other = core.admit(), core.admit()
    core.book(mine, 0.0, work(256))
    group(core, other, 2, 256)
    core.book(mine, 300.0, work(256))
    assert core.complete(core.close(mine)) == 4 * 128 + BASE


def test_arithmetic_slows_products() -> None:
    """Those of two warpgroups too, foretold and in turns; what has started is not called back."""
    core = TensorCore(TENSOR)
    mine, other = core.admit(), core.admit()
    first, second = group(core, mine, 2, 128), group(core, other, 2, 128)
    assert (core.complete(first), core.complete(second)) == (192 + BASE, 256 + BASE)
    core.slow(64.0, 164.0, 50.0)
    ends = core.complete(first), core.complete(second)
    assert ends == (192 + 50 + BASE, 256 + 50 + BASE)
    for run, end in zip((first, second), ends, strict=True):
        assert not core.has_completed(run, end - 1)
        assert core.has_completed(run, end)
    assert core.worked_until(1000.0) == 256


def test_work_is_done_when_its_time_has_passed() -> None:
    core, pipe = TensorCore(TENSOR), MmaPipe(CONFIG.mma_sync, 4)
    group(core, core.admit(), 8, 256)
    assert [core.worked_until(now) for now in (0.0, 512.0, 1024.0, 4096.0)] == [0, 512, 1024, 1024]
    flop = 2.0 * 16 * 8 * 16
    for port in range(4):
        for _ in range(100):
            pipe.book(0.0, Product("f16", flop, 4), ((port, 1),), 0.0)
    assert pipe.worked_until(pipe.busy_cycles / 4) == pytest.approx(pipe.busy_cycles / 4)
    assert pipe.worked_until(1e6) == pipe.busy_cycles


def test_mma_sync_rate_is_shared_by_warps_of_a_sub_partition() -> None:
    pipe = MmaPipe(CONFIG.mma_sync, 4)
    flop = 2.0 * 16 * 8 * 16
    rate = CONFIG.mma_sync.flop_per_clk["f16"] / 4
    latency = CONFIG.mma_sync.latency_cycles
    assert pipe.book(0.0, Product("f16", flop, 4), ((0, 1),), 0.0)[0] == latency
    end = 0.0
    for _ in range(99):
        end = pipe.book(0.0, Product("f16", flop, 4), ((0, 1),), 0.0)[0]
    assert end == pytest.approx(99 * flop / rate + latency)
    assert pipe.book(0.0, Product("f16", flop, 4), ((1, 1), (2, 1)), 0.0)[0] == latency


def test_fp8_products_of_one_warp_leave_the_pipe_to_others_in_between() -> None:
    pipe = MmaPipe(CONFIG.mma_sync, 4)
    flop = 2.0 * 16 * 8 * 32
    config = CONFIG.mma_sync
    interval = flop / config.warp_rate_flop_per_clk["e4m3"]
    first, others = 0.0, 0.0
    for _ in range(10):
        done, first, issued = pipe.book(0.0, Product("e4m3", flop, 4), ((0, 1),), first)
        # Sums come after products, and what is no product after all sums.
        assert issued == done + config.emulated_latency_cycles
    assert first == pytest.approx(10 * interval)
    taken = 10 * flop / (config.flop_per_clk["e4m3"] / 4)
    assert pipe.free[0] == pytest.approx(taken)
    _, others, _ = pipe.book(0.0, Product("e4m3", flop, 4), ((0, 1),), others)
    assert others == pytest.approx(taken + interval)


def test_a_chain_leaves_the_pipe_to_others_in_between() -> None:
    """A strand is charged for all of its chain before another one begins, which takes the cycles that it left."""
    config = CONFIG.mma_sync
    product = Product("bf16", 2.0 * 16 * 8 * 16, 4)
    each = product.flop / config.flop_per_clk["bf16"] * 4
    alone, together = MmaPipe(config, 4), MmaPipe(config, 4)
    end = 0.0
    for _ in range(10):
        end = alone.book(end, product, ((0, 1),), 0.0)[0]
    ends: list[float] = []
    for strand in range(4):
        now = strand * each
        for _ in range(10):
            now = together.book(now, product, ((0, 1),), 0.0)[0]
        ends.append(now)
    assert end == pytest.approx(10 * config.latency_cycles)
    # Four take 23.8 of the 24 cycles that one waits for each sum.
    assert ends == pytest.approx([end + strand * each for strand in range(4)])
    assert together.busy_cycles == pytest.approx(4 * alone.busy_cycles)
    # A fifth finds no room in between.
    assert together.book(0.0, product, ((0, 1),), 0.0)[0] > end


def test_sums_come_sooner_with_fewer_registers_of_a_and_later_with_f64() -> None:
    config = CONFIG.mma_sync
    pipe = MmaPipe(config, 4)
    half = pipe.book(0.0, Product("bf16", 2.0 * 16 * 8 * 8, 2), ((0, 1),), 0.0)[0]
    assert half == config.latency_cycles - 2 * config.register_cycles
    flop = 2.0 * 16 * 8 * 16
    double = pipe.book(0.0, Product("f64", flop, 8), ((1, 1),), 0.0)[0]
    assert double == pytest.approx(flop / config.flop_per_clk["f64"] * 4 + config.drain_cycles)


@pytest.mark.parametrize(("n", "a_shared"), [(8, True), (64, True), (256, True), (256, False)])
def test_a_sparse_product_reads_all_of_b_and_multiplies_half_of_it(n: int, a_shared: bool) -> None:
    tensor = TensorCore(CONFIG.tensor)
    sparse = TensorWork("bf16", n, 32, 16, a_shared, True, None)
    dense = TensorWork("bf16", n, 16, 16, a_shared, False, None)
    assert sparse.shared_bytes == n * 64 + (64 * 32 if a_shared else 0)
    cycles, _, arithmetic = tensor.duration(sparse)
    assert arithmetic == tensor.duration(dense)[2] == n / 2
    reads = sparse.shared_bytes / CONFIG.tensor.operand_bandwidth_bytes_per_clk
    assert cycles == max(arithmetic, reads) + CONFIG.tensor.sparse_cycles
