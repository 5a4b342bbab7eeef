"""How many bulk copies a warp makes that executes one: ptxas makes one of stores with the same operands, of loads one a lane."""

from __future__ import annotations

import numpy as np
import pytest

from hopsim.launch.arrays import TensorMap
from hopsim.runtime.gpu import Gpu
from tests.machine.programs import build, launch

BODY = """
.shared .align 128 .b8 tile[4096];
.shared .align 8 .b64 bar;
mov.b64 %rd1, m;
cvta.param.u64 %rd1, %rd1;
mov.u32 %r1, tile;
mad.lo.u32 %r2, %t, 128, %r1;
mad.lo.u32 %r3, %t, 4, %r1;
{fill}
fence.proxy.async;
bar.warp.sync -1;
{row}
{copy}
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
"""
FILL = "\n".join(f"st.shared.u32 [%r3+{128 * row}], 1;" for row in range(32))
ROWS = {"equal": "mov.u32 %r5, 3;", "two": "and.b32 %r5, %t, 1;", "own": "mov.u32 %r5, %t;"}
STORE = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {0, %r5}], [%r1];"
BYTES = "mad.wide.u32 %rd2, %r5, 128, %out; cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], 128;"
ADD = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%rd1, {0, %r5}], [%r1];"
ADD_BYTES = "mad.wide.u32 %rd2, %r5, 128, %out; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], [%r1], 128;"


def issued(rows: str, copy: str) -> tuple[float, list[int]]:
    """Return the sectors that L2 was asked to write, and the first word of each row of the array."""
    device = Gpu()
    array = device.array(np.zeros((32, 32), np.uint32))
    kernel = build(
        BODY.replace("{fill}", FILL).replace("{row}", ROWS[rows]).replace("{copy}", copy),
        extra=".param .align 64 .b8 m[128]",
    )
    result = device.launch(kernel, 1, 32, args=[array, TensorMap(array, (32, 1))])
    assert result.verdict == "clean", result.hazards
    return result.counters["lts__t_sectors_op_write.sum"], array.numpy()[:, 0].tolist()


@pytest.mark.parametrize("copy", [STORE, BYTES], ids=["tensor", "bytes"])
@pytest.mark.parametrize(("rows", "count"), [("equal", 1), ("two", 2), ("own", 32)])
def test_a_store_is_made_once_for_each_set_of_equal_operands(
    copy: str, rows: str, count: int
) -> None:
    sectors, words = issued(rows, copy)
    assert sum(words) == count
    # A line that both partitions hold counts twice.
    assert 4 * count <= sectors <= 8 * count


@pytest.mark.parametrize("copy", [ADD, ADD_BYTES], ids=["tensor", "bytes"])
@pytest.mark.parametrize(
    ("rows", "wanted"),
    [("equal", [0] * 3 + [32] + [0] * 28), ("two", [16, 16] + [0] * 30), ("own", [1] * 32)],
)
def test_a_reduction_is_made_by_each_lane(copy: str, rows: str, wanted: list[int]) -> None:
    assert issued(rows, copy)[1] == wanted


def test_a_load_is_made_by_each_lane() -> None:
    body = """
    .shared .align 128 .b8 tile[128];
    .shared .align 8 .b64 bar;
    mov.u32 %r1, tile;
    mov.u32 %r2, bar;
    setp.eq.u32 %p1, %t, 0;
    @%p1 mbarrier.init.shared::cta.b64 [bar], 1;
    @%p1 fence.mbarrier_init.release.cluster;
    bar.warp.sync -1;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%out], 128, [%r2];
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 4096;
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;
    @!%p2 bra WAIT;
    """
    result, _, _ = launch(body)
    assert result.verdict != "deadlock"
