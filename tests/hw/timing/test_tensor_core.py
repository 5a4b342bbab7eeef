from __future__ import annotations

import pytest

from hopsim.config import load
from hopsim.hw.machine.work import TensorWork
from hopsim.hw.timing.tensor_core import MmaPipe, TensorCore, WarpgroupQueue

CONFIG = load("h100-sxm")
TENSOR = CONFIG.tensor
BITS = {"bf16": (16, 16), "tf32": (32, 8), "e4m3": (8, 32), "s8": (8, 32)}


def work(n: int, kind: str = "bf16", a_shared: bool = True) -> TensorWork:
    bits, k = BITS[kind]
    return TensorWork(kind, n, k, bits, a_shared, None)


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


@pytest.mark.parametrize("n", [64, 128])
def test_one_operation_is_there_43_and_half_n_after_its_commit(n: int) -> None:
    core, queue = TensorCore(TENSOR), WarpgroupQueue(TENSOR.queue_depth)
    core.book(queue, 0.0, work(n))
    assert core.complete(queue) - TENSOR.commit_cycles == TENSOR.latency_base_cycles + n / 2


def test_operations_of_two_warpgroups_share_the_unit() -> None:
    core = TensorCore(TENSOR)
    first, second = WarpgroupQueue(8), WarpgroupQueue(8)
    core.book(first, 0.0, work(256))
    core.book(second, 5.0, work(256))
    assert (first.last_end, second.last_end) == (128.0, 256.0)
    core.book(first, 300.0, work(64))
    assert first.last_end == 332.0
    assert core.busy_cycles == 288.0
    assert core.operations == 3


def test_issue_waits_when_the_queue_is_full() -> None:
    core, queue = TensorCore(TENSOR), WarpgroupQueue(2)
    assert core.book(queue, 0.0, work(256)) == 0.0
    assert core.book(queue, 1.0, work(256)) == 1.0
    assert core.book(queue, 2.0, work(256)) == 128.0
    assert core.book(queue, 500.0, work(256)) == 500.0


def test_a_group_begins_with_its_first_operation() -> None:
    core, queue, other = TensorCore(TENSOR), WarpgroupQueue(8), WarpgroupQueue(8)
    core.book(other, 0.0, work(64))
    core.book(queue, 5.0, work(64))
    core.book(queue, 6.0, work(64))
    assert (queue.group_open, queue.group_start, queue.last_end) == (True, 32.0, 96.0)


def test_mma_sync_rate_is_shared_by_warps() -> None:
    pipe = MmaPipe(CONFIG.mma_sync)
    flop = 2.0 * 16 * 8 * 16
    rate = CONFIG.mma_sync.flop_per_clk["f16"]
    assert pipe.book(0.0, "f16", flop, 1) == CONFIG.mma_sync.latency_cycles
    for _ in range(99):
        end = pipe.book(0.0, "f16", flop, 1)
    assert end == pytest.approx(99 * flop / rate + CONFIG.mma_sync.latency_cycles)
