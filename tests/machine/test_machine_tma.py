"""Tensor and bulk copies through PTX on the machine, against a naive model in numpy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hopsim.errors import MachineFault
from hopsim.isa.program.kernel import Kernel
from hopsim.launch.arrays import TensorMap
from tests.machine.programs import (
    ADVERSARIAL,
    IN_ORDER,
    ORDERS,
    TIMED,
    UNTIMED,
    Order,
    build,
    differences,
    each_order,
    expect,
    fault_of,
    gpu,
    launch,
)

SHARED = ".extern .shared .align 1024 .b8 tile[];"
MAP = ".param .align 64 .b8 m[128]"
PERIODS = {"none": 0, "32B": 1, "64B": 3, "128B": 7}


def swizzled(data: NDArray[np.uint8], swizzle: str) -> NDArray[np.uint8]:
    """Return bytes as TMA lays them into shared memory at an address that is a multiple of 1024."""
    address = np.arange(len(data))
    moved = address ^ (((address >> 7) & PERIODS[swizzle]) << 4)
    result = np.zeros_like(data)
    result[moved] = data
    return result


def box_of(
    tensor: NDArray[Any],
    origin: tuple[int, ...],
    box: tuple[int, ...],
    steps: tuple[int, ...],
    fill: Any,
) -> Any:
    """Return the elements of a box, innermost last; `origin`, `box` and `steps` innermost first."""
    shape = tuple((extent + step - 1) // step for extent, step in zip(box, steps, strict=True))
    result = np.full(shape[::-1], fill, tensor.dtype)
    for index in itertools.product(*(range(extent) for extent in shape[::-1])):
        place = tuple(o + i * s for o, i, s in zip(origin[::-1], index, steps[::-1], strict=True))
        if all(0 <= p < extent for p, extent in zip(place, tensor.shape, strict=True)):
            result[index] = tensor[place]
    return result


def load_kernel(
    rank: int, count_bytes: int, extra: str = "", dst: str = "shared::cluster"
) -> Kernel:
    """A kernel that loads one box at (c0, c1, ...) = (p[0], p[1], ...) and copies shared memory to `out`."""
    coordinates = ", ".join(f"%r{10 + k}" for k in range(rank))
    loads = "".join(f"ld.param.u32 %r{10 + k}, [c{k}];\n" for k in range(rank))
    body = f"""
    .shared .align 8 .b64 bar;
    {loads}
    mov.u32 %r1, tile;
    mov.u32 %r2, bar;
    mov.b64 %rd1, m;
    cvta.param.u64 %rd2, %rd1;
    setp.eq.u32 %p1, %t, 0;
    @%p1 mbarrier.init.shared.b64 [bar], 1;
    bar.sync 0;
    @!%p1 bra WAIT;
    prefetch.tensormap [%rd2];
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], {count_bytes};
    {extra}
    cp.async.bulk.tensor.{rank}d.{dst}.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd2, {{{coordinates}}}], [%r2];
    WAIT:
    mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
    @!%p2 bra WAIT;
    COPY:
    setp.ge.u32 %p3, %t, {count_bytes // 4};
    @%p3 bra DONE;
    mad.lo.u32 %r3, %t, 4, %r1;
    ld.shared.u32 %r4, [%r3];
    mul.wide.u32 %rd3, %t, 4;
    add.u64 %rd3, %rd3, %out;
    st.global.u32 [%rd3], %r4;
    mov.u32 %r5, %ntid.x;
    add.u32 %t, %t, %r5;
    bra COPY;
    DONE:
    """
    extra_params = MAP + "".join(f", .param .u32 c{k}" for k in range(rank))
    return build(body, 0, SHARED, "", extra_params)


def load_box(
    kernel: Kernel, order: Order, tensor_map: TensorMap, origin: tuple[int, ...], count_bytes: int
) -> Any:
    result, got, _ = launch(
        kernel, order, out=count_bytes, fill=0xEE, dtype=np.uint8, block=64, shared_bytes=count_bytes,
        args=[tensor_map, *(np.int32(c).view(np.uint32) for c in origin)],
    )  # fmt: skip
    assert result.deadlock is None, str(result.deadlock)
    return got


RANKS = [
    ((64,), (16,), (1,), "none", np.float32, (8,)),
    ((40, 24), (32, 8), (1, 1), "none", np.uint16, (-8, 20)),
    ((32, 40), (8, 16), (1, 1), "32B", np.float32, (24, 30)),
    ((64, 20), (32, 8), (1, 1), "64B", np.uint16, (40, -3)),
    ((128, 40), (64, 32), (1, 1), "128B", np.uint16, (64, 24)),
    ((256, 16), (128, 16), (1, 1), "128B", np.uint8, (128, 1)),
    ((32, 12, 6), (16, 4, 3), (1, 1, 1), "64B", np.float32, (20, 10, 4)),
    ((16, 8, 6, 4), (8, 4, 2, 2), (1, 1, 1, 1), "32B", np.float32, (8, 6, -1, 3)),
    ((16, 6, 5, 4, 3), (16, 2, 3, 2, 2), (1, 1, 1, 1, 1), "128B", np.uint64, (0, 5, 3, 3, 2)),
    ((64, 48), (32, 24), (1, 3), "none", np.uint32, (16, 4)),
]


@pytest.mark.parametrize(("dims", "box", "steps", "swizzle", "dtype", "origin"), RANKS)
def test_loads_of_every_rank_and_swizzle(
    dims: tuple[int, ...],
    box: tuple[int, ...],
    steps: tuple[int, ...],
    swizzle: str,
    dtype: Any,
    origin: tuple[int, ...],
) -> None:
    rng = np.random.default_rng(len(dims))
    raw = rng.integers(0, 256, int(np.prod(dims)) * np.dtype(dtype).itemsize, dtype=np.uint8)
    tensor = raw.view(f"u{np.dtype(dtype).itemsize}").reshape(dims[::-1])
    array = gpu().array(raw.view(dtype).reshape(dims[::-1]))
    tensor_map = TensorMap(array, box, swizzle, element_strides=steps)
    expected = box_of(tensor, origin, box, steps, 0).reshape(-1).view(np.uint8)
    count_bytes = len(expected)
    expected = swizzled(expected, swizzle)
    for name, order in each_order(ORDERS[:3] + ORDERS[-2:]):
        got = load_box(load_kernel(len(dims), count_bytes), order, tensor_map, origin, count_bytes)
        assert np.array_equal(got, expected), (name, differences(got, expected))


def test_out_of_bounds_elements_may_read_as_nan() -> None:
    array = gpu().array(np.ones((4, 8), np.float32))
    tensor_map = TensorMap(array, (8, 8), oob_fill="nan")
    got = (
        load_box(load_kernel(2, 256), IN_ORDER, tensor_map, (4, 2), 256)
        .view(np.float32)
        .reshape(8, 8)
    )
    inside = np.zeros((8, 8), np.bool_)
    inside[:2, :4] = True
    assert np.array_equal(np.isnan(got), ~inside)
    assert (got[inside] == 1).all()


def test_the_destination_form_shared_cta_and_one_lane_each() -> None:
    # Two lanes execute one instruction, each with its own coordinates, destination and bytes.
    tensor = np.arange(64 * 8, dtype=np.uint32).reshape(8, 64)
    array = gpu().array(tensor)
    body = """
    .shared .align 8 .b64 bar;
    mov.u32 %r2, bar;
    mov.b64 %rd1, m;
    setp.eq.u32 %p1, %t, 0;
    @%p1 mbarrier.init.shared.b64 [bar], 2;
    bar.sync 0;
    setp.ge.u32 %p4, %t, 2;
    @%p4 bra WAIT;
    mov.u32 %r1, tile;
    mad.lo.u32 %r1, %t, 512, %r1;
    mul.lo.u32 %r10, %t, 32;
    mul.lo.u32 %r11, %t, 3;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
    cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r10, %r11}], [%r2];
    WAIT:
    mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
    @!%p2 bra WAIT;
    mov.u32 %r1, tile;
    mad.lo.u32 %r1, %t, 4, %r1;
    ld.shared.u32 %r4, [%r1];
    ld.shared.u32 %r5, [%r1+512];
    mul.lo.u32 %r5, %r5, 65536;
    add.u32 %r4, %r4, %r5;
    st.global.u32 [%mine], %r4;
    """
    body = body.replace("mov.b64 %rd1, m;", "mov.b64 %rd1, m; cvta.param.u64 %rd1, %rd1;")
    kernel = build(body, 0, SHARED, "", MAP)
    expected = tensor[:4, :32].reshape(-1) + tensor[3:7, 32:].reshape(-1) * 65536
    expect(kernel, expected, block=128, shared_bytes=1024, args=[TensorMap(array, (32, 4))])


STORE = """
    setp.ge.u32 %p1, %t, WORDS;
    @%p1 bra FILLED;
    mov.u32 %r1, tile;
    ld.param.u64 %rd1, [p0];
    FILL:
    mul.wide.u32 %rd2, %t, 4;
    add.u64 %rd2, %rd2, %rd1;
    ld.global.u32 %r2, [%rd2];
    mad.lo.u32 %r3, %t, 4, %r1;
    st.shared.u32 [%r3], %r2;
    add.u32 %t, %t, 64;
    setp.lt.u32 %p1, %t, WORDS;
    @%p1 bra FILL;
    FILLED:
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mov.u32 %t, %tid.x;
    setp.ne.u32 %p2, %t, 0;
    @%p2 ret;
    mov.u32 %r1, tile;
    mov.b64 %rd3, m;
    cvta.param.u64 %rd4, %rd3;
    OPERATION
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
"""


def store_kernel(rank: int, words: int, operation: str) -> Kernel:
    loads = "".join(f"ld.param.u32 %r{10 + k}, [c{k}];\n" for k in range(rank))
    coordinates = ", ".join(f"%r{10 + k}" for k in range(rank))
    body = STORE.replace("WORDS", str(words)).replace(
        "OPERATION", loads + operation.replace("C", coordinates)
    )
    extra = ".param .u64 p0, " + MAP + "".join(f", .param .u32 c{k}" for k in range(rank))
    return build(body, 0, SHARED, "", extra)


@pytest.mark.parametrize(("dims", "box", "steps", "swizzle", "dtype", "origin"), RANKS[:-1])
def test_stores_of_every_rank_and_swizzle(
    dims: tuple[int, ...],
    box: tuple[int, ...],
    steps: tuple[int, ...],
    swizzle: str,
    dtype: Any,
    origin: tuple[int, ...],
) -> None:
    # An H100 traps on a store that starts below zero.
    origin = tuple(max(0, start) for start in origin)
    rng = np.random.default_rng(7)
    width = np.dtype(dtype).itemsize
    before = rng.integers(0, 256, int(np.prod(dims)) * width, dtype=np.uint8)
    tile = rng.integers(0, 256, int(np.prod(box)) * width, dtype=np.uint8)
    elements = tile.view(f"u{width}").reshape(box[::-1])
    expected = before.view(f"u{width}").reshape(dims[::-1]).copy()
    for index in itertools.product(*(range(extent) for extent in box[::-1])):
        place = tuple(o + i for o, i in zip(origin[::-1], index, strict=True))
        if all(0 <= p < extent for p, extent in zip(place, expected.shape, strict=True)):
            expected[place] = elements[index]
    kernel = store_kernel(
        len(dims),
        len(tile) // 4,
        f"cp.async.bulk.tensor.{len(dims)}d.global.shared::cta.tile.bulk_group [%rd4, {{C}}], [%r1];",
    )
    for name, order in each_order((IN_ORDER, UNTIMED[2], ADVERSARIAL)):
        array = gpu().array(before.view(dtype).reshape(dims[::-1]))
        source = gpu().array(swizzled(tile, swizzle))
        launch(
            kernel, order, block=64, shared_bytes=len(tile),
            args=[source, TensorMap(array, box, swizzle), *(np.int32(c).view(np.uint32) for c in origin)],
        )  # fmt: skip
        got = array.numpy().view(f"u{width}")
        assert np.array_equal(got, expected), (name, differences(got, expected))


@pytest.mark.parametrize("op", ["add", "min", "max", "and", "or", "xor", "inc", "dec"])
def test_reductions_of_every_operation(op: str) -> None:
    rng = np.random.default_rng(3)
    before = rng.integers(0, 50, (8, 16), dtype=np.uint32)
    tile = rng.integers(0, 50, (4, 8), dtype=np.uint32)
    fold = {
        "add": lambda a, b: a + b, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
        "xor": np.bitwise_xor, "inc": lambda a, b: np.where(a >= b, 0, a + 1),
        "dec": lambda a, b: np.where((a == 0) | (a > b), b, a - 1),
    }[op]  # fmt: skip
    expected = before.copy()
    expected[6:8, 4:12] = fold(expected[6:8, 4:12], tile[:2])
    kernel = store_kernel(
        2,
        32,
        f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{op}.tile.bulk_group [%rd4, {{C}}], [%r1];",
    )
    array = gpu().array(before)
    launch(
        kernel, block=64, shared_bytes=128,
        args=[gpu().array(tile), TensorMap(array, (8, 4)), np.uint32(4), np.uint32(6)],
    )  # fmt: skip
    assert np.array_equal(array.numpy(), expected)


def test_reductions_of_floats_from_every_cta() -> None:
    array = gpu().array(np.zeros((4, 8), np.float32))
    kernel = store_kernel(
        2,
        32,
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd4, {C}], [%r1];",
    )
    tile = np.arange(32, dtype=np.float32)
    for _, order in each_order(UNTIMED):
        array.write(np.zeros((4, 8), np.float32))
        launch(
            kernel, order, grid=5, block=64, shared_bytes=128,
            args=[gpu().array(tile), TensorMap(array, (8, 4)), np.uint32(0), np.uint32(0)], out=320,
        )  # fmt: skip
        assert np.array_equal(array.numpy().reshape(-1), tile * 5)


def test_a_read_wait_frees_the_source_but_not_more() -> None:
    # After `.read` the tile may be overwritten; the first store still writes what it read.
    body = """
    .shared .align 128 .b8 box[128];
    mov.u32 %r1, box;
    mad.lo.u32 %r2, %t, 4, %r1;
    st.shared.u32 [%r2], %t;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra REWRITE;
    cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 128;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
    REWRITE:
    bar.sync 0;
    add.u32 %r3, %t, 500;
    st.shared.u32 [%r2], %r3;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%p1 ret;
    add.u64 %rd1, %out, 128;
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 128;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    """
    lanes = np.arange(32)
    expect(body, np.concatenate([lanes, lanes + 500]))


def test_bulk_groups_belong_to_threads() -> None:
    # Thread 0 has two groups in flight and waits for the older one; thread 1's group is not its business.
    body = """
    .shared .align 128 .b8 box[256];
    mov.u32 %r1, box;
    mad.lo.u32 %r2, %t, 4, %r1;
    st.shared.u32 [%r2], 1;
    st.shared.u32 [%r2+128], 2;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    setp.ge.u32 %p1, %t, 2;
    @%p1 bra DONE;
    setp.eq.u32 %p2, %t, 1;
    @%p2 bra ONE;
    cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 64;
    cp.async.bulk.commit_group;
    add.u64 %rd1, %out, 64;
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 64;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 1;
    ld.global.u32 %r3, [%out+60];
    add.u32 %r3, %r3, 10;
    cp.async.bulk.wait_group 0;
    st.global.u32 [%out+60], %r3;
    bra DONE;
    ONE:
    add.u64 %rd1, %out, 128;
    add.u32 %r1, %r1, 128;
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 64;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 1;
    cp.async.bulk.wait_group 0;
    DONE:
    """
    expect(body, [*[1] * 15, 11, *[1] * 16, *[2] * 16, *[0] * 2])


def test_waiting_for_no_group_and_for_empty_groups() -> None:
    body = """
    cp.async.bulk.wait_group 0;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
    cp.async.wait_group 0;
    cp.async.commit_group;
    cp.async.wait_all;
    st.global.u32 [%mine], 1;
    """
    expect(body, np.full(32, 1))


def test_bulk_reductions() -> None:
    body = """
    .shared .align 128 .b8 box[128];
    mov.u32 %r1, box;
    mad.lo.u32 %r2, %t, 4, %r1;
    st.shared.u32 [%r2], %t;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    setp.ne.u32 %p1, %t, 0;
    @%p1 ret;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%r1], 128;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s32 [%out], [%r1], 64;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    """
    for _, order in each_order(UNTIMED):
        _, got, _ = launch(body, order, grid=3, out=96, fill=100)
        assert got[:32].tolist() == [100 + 3 * n for n in range(32)]


def test_bulk_loads_multicast_and_peer_copies() -> None:
    # Rank 0 multicasts 128 bytes to all four CTAs; each then sends its first 16 bytes to the next one.
    body = """
    .shared .align 128 .b8 box[256];
    .shared .align 8 .b64 bar[2];
    mov.u32 %r1, box;
    mov.u32 %r2, bar;
    mov.u32 %r3, %cluster_ctarank;
    ld.param.u64 %rd1, [p0];
    setp.eq.u32 %p1, %t, 0;
    @%p1 mbarrier.init.shared.b64 [bar], 1;
    @%p1 mbarrier.init.shared.b64 [bar+8], 1;
    @%p1 fence.mbarrier_init.release.cluster;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar+8], 16;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    setp.eq.u32 %p2, %r3, 0;
    and.pred %p2, %p1, %p2;
    mov.b16 %h1, 15;
    @%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], 128, [%r2], %h1;
    WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra WAIT;
    mad.lo.u32 %r4, %t, 4, %r1;
    ld.shared.u32 %r5, [%r4];
    add.u32 %r5, %r5, %r3;
    st.shared.u32 [%r4], %r5;
    fence.proxy.async;
    bar.sync 0;
    add.u32 %r6, %r3, 1;
    and.b32 %r6, %r6, 3;
    add.u32 %r7, %r1, 128;
    mapa.shared::cluster.u32 %r7, %r7, %r6;
    add.u32 %r8, %r2, 8;
    mapa.shared::cluster.u32 %r8, %r8, %r6;
    @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r7], [%r1], 16, [%r8];
    WAIT2: mbarrier.try_wait.parity.shared.b64 %p3, [bar+8], 0; @!%p3 bra WAIT2;
    setp.lt.u32 %p4, %t, 4;
    @%p4 ld.shared.u32 %r5, [%r4+128];
    st.global.u32 [%mine], %r5;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    """
    data = np.arange(32, dtype=np.uint32) * 10
    lane, rank = np.arange(32), np.arange(4)[:, None]
    expected = data + np.where(lane < 4, (rank + 3) & 3, rank)
    expect(body, expected.reshape(-1), inputs=[data], grid=4, cluster=4)


REDUCTIONS = {
    "and.b32": np.bitwise_and, "or.b32": np.bitwise_or, "xor.b32": np.bitwise_xor, "add.u32": np.add, "add.s32": np.add,
    "add.u64": lambda a, b: (a.view(np.uint64) + b.view(np.uint64)).view(np.uint32),
    "min.u32": np.minimum, "max.u32": np.maximum,
    "min.s32": lambda a, b: np.minimum(a.view(np.int32), b.view(np.int32)).view(np.uint32),
    "max.s32": lambda a, b: np.maximum(a.view(np.int32), b.view(np.int32)).view(np.uint32),
    "inc.u32": lambda a, b: np.where(a >= b, 0, a + 1),
    "dec.u32": lambda a, b: np.where((a == 0) | (a > b), b, a - 1),
}  # fmt: skip


def reducing(
    op: str, wait: str = "WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra WAIT;"
) -> str:
    """Each of two CTAs reduces its words into those of the other, and stores what it has then."""
    return f"""
    .shared .align 128 .b8 box[256];
    .shared .align 8 .b64 bar;
    mov.u32 %r1, box;
    mov.u32 %r2, bar;
    mov.u32 %r3, %cluster_ctarank;
    ld.param.u64 %rd1, [p0];
    mad.wide.u32 %rd1, %word, 4, %rd1;
    setp.eq.u32 %p1, %t, 0;
    @%p1 mbarrier.init.shared.b64 [bar], 1;
    @%p1 fence.mbarrier_init.release.cluster;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
    mad.lo.u32 %r4, %t, 4, %r1;
    ld.global.u32 %r5, [%rd1];
    st.shared.u32 [%r4+128], %r5;
    not.b32 %r5, %r5;
    st.shared.u32 [%r4], %r5;
    fence.proxy.async;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    xor.b32 %r6, %r3, 1;
    mapa.shared::cluster.u32 %r7, %r1, %r6;
    mapa.shared::cluster.u32 %r8, %r2, %r6;
    add.u32 %r9, %r1, 128;
    @%p1 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{op} [%r7], [%r9], 128, [%r8];
    {wait}
    ld.shared.u32 %r5, [%r4];
    st.global.u32 [%mine], %r5;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    """


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions_into_the_shared_memory_of_a_peer(op: str) -> None:
    words = np.random.default_rng(4).integers(0, 1 << 32, (2, 32), dtype=np.uint32)
    expected = np.stack([REDUCTIONS[op](~words[k], words[1 - k]) for k in (0, 1)]).astype(np.uint32)
    expect(
        reducing(op), expected.reshape(-1), inputs=[words.reshape(-1)], grid=2, cluster=2, check=True,
        orders=(*ORDERS, TIMED),
    )  # fmt: skip


def test_a_reduction_into_a_peer_is_waited_for_and_adds_to_words_that_are_there() -> None:
    words = np.zeros(64, np.uint32)
    result, _, _ = launch(
        reducing("add.u32", wait=""),
        IN_ORDER,
        inputs=[words],
        out=64,
        grid=2,
        cluster=2,
        check=True,
    )
    assert {found.rule for found in result.hazards} == {"HS001"}
    unwritten = reducing("add.u32").replace("st.shared.u32 [%r4], %r5;", "")
    result, _, _ = launch(
        unwritten, IN_ORDER, inputs=[words], out=64, grid=2, cluster=2, check=True
    )
    assert "HS701" in {found.rule for found in result.hazards}


def test_tensor_loads_multicast_to_some_ctas() -> None:
    body = """
    .shared .align 8 .b64 bar;
    mov.u32 %r1, tile;
    mov.u32 %r2, bar;
    mov.b64 %rd1, m;
    cvta.param.u64 %rd1, %rd1;
    mov.u32 %r3, %cluster_ctarank;
    setp.eq.u32 %p1, %t, 0;
    @%p1 mbarrier.init.shared.b64 [bar], 1;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
    mad.lo.u32 %r4, %t, 4, %r1;
    st.shared.u32 [%r4], 7;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    setp.eq.u32 %p2, %r3, 1;
    and.pred %p2, %p1, %p2;
    mov.u32 %r10, 0;
    @%p2 cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1, {%r10}], [%r2], 5;
    setp.eq.u32 %p4, %r3, 1;
    @%p4 bra DONE;
    WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra WAIT;
    DONE:
    ld.shared.u32 %r5, [%r4];
    st.global.u32 [%mine], %r5;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    """
    data = np.arange(32, dtype=np.uint32) + 1
    array = gpu().array(data)
    kernel = build(body, 0, SHARED, "", MAP)
    expected = np.concatenate([data, np.full(32, 7), data])
    expect(kernel, expected, grid=3, cluster=3, shared_bytes=128, args=[TensorMap(array, (32,))])


def test_prefetches_change_nothing() -> None:
    array = gpu().array(np.arange(64, dtype=np.float32))
    body = """
    mov.b64 %rd1, m;
    cvta.param.u64 %rd1, %rd1;
    prefetch.tensormap [%rd1];
    mov.u32 %r10, 16;
    cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%rd1, {%r10}];
    cp.async.bulk.prefetch.L2.global [%out], 64;
    prefetch.global.L2 [%out];
    st.global.u32 [%mine], 1;
    """
    kernel = build(body, 0, "", "", MAP)
    expect(kernel, np.full(32, 1), args=[TensorMap(array, (16,))])


# --- cp.async -------------------------------------------------------------------------------------


def test_cp_async_groups_sizes_and_ignored_sources() -> None:
    data = np.arange(32 * 4, dtype=np.uint32) + 1
    body = """
    .shared .align 16 .b8 box[2048];
    ld.param.u64 %rd1, [p0];
    mul.wide.u32 %rd2, %t, 16;
    add.u64 %rd3, %rd1, %rd2;
    mov.u32 %r1, box;
    mad.lo.u32 %r2, %t, 16, %r1;
    // Group 0: 16 bytes, of which lane n brings n % 5 * 4 (the rest is zero).
    rem.u32 %r3, %t, 5;
    shl.b32 %r3, %r3, 2;
    cp.async.cg.shared.global [%r2], [%rd3], 16, %r3;
    cp.async.commit_group;
    // Group 1: 4 and 8 bytes, odd lanes ignored.
    and.b32 %r4, %t, 1;
    setp.eq.u32 %p1, %r4, 1;
    cp.async.ca.shared.global [%r2+512], [%rd3], 4, %p1;
    cp.async.ca.shared::cta.global.L2::128B [%r2+520], [%rd3+8], 8;
    cp.async.commit_group;
    cp.async.wait_group 1;
    ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r2];
    cp.async.wait_group 0;
    ld.shared.u32 %r9, [%r2+512];
    ld.shared.v2.u32 {%r10, %r11}, [%r2+520];
    mul.wide.u32 %rd5, %t, 32;
    add.u64 %rd5, %rd5, %out;
    st.global.v4.u32 [%rd5], {%r5, %r6, %r7, %r8};
    st.global.v2.u32 [%rd5+16], {%r9, %r10};
    st.global.u32 [%rd5+24], %r11;
    """
    lane = np.arange(32)
    rows = data.reshape(32, 4)
    first = np.where(np.arange(4) < (lane % 5)[:, None], rows, 0)
    rest = np.stack(
        [np.where(lane & 1, 0, rows[:, 0]), rows[:, 2], rows[:, 3], np.zeros(32)], axis=1
    )
    expect(body, np.concatenate([first, rest], axis=1).reshape(-1).astype(np.uint32), inputs=[data])


@pytest.mark.parametrize("noinc", ["", ".noinc"])
def test_cp_async_arrives_on_an_mbarrier(noinc: str) -> None:
    # With .noinc the count includes these arrivals; without it each adds one that it then makes.
    data = np.arange(64, dtype=np.uint32) * 7
    body = f"""
    .shared .align 16 .b8 box[256];
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [p0];
    mul.wide.u32 %rd2, %t, 4;
    add.u64 %rd3, %rd1, %rd2;
    mov.u32 %r1, box;
    mad.lo.u32 %r2, %t, 4, %r1;
    setp.eq.u32 %p1, %t, 0;
    @%p1 mbarrier.init.shared.b64 [bar], {64 if noinc else 1};
    bar.sync 0;
    cp.async.ca.shared.global [%r2], [%rd3], 4;
    cp.async.mbarrier.arrive{noinc}.shared::cta.b64 [bar];
    {"" if noinc else "bar.sync 0; @%p1 mbarrier.arrive.shared.b64 _, [bar];"}
    WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;
    xor.b32 %r3, %t, 63;
    mad.lo.u32 %r3, %r3, 4, %r1;
    ld.shared.u32 %r4, [%r3];
    st.global.u32 [%mine], %r4;
    """
    expect(body, data[::-1], inputs=[data], block=64)


def test_lanes_of_one_cp_async_may_read_different_arrays() -> None:
    one, other = np.arange(32, dtype=np.uint32), np.arange(100, 132, dtype=np.uint32)
    body = """
    .shared .align 16 .b8 box[128];
    ld.param.u64 %rd1, [p0];
    ld.param.u64 %rd2, [p1];
    and.b32 %r1, %t, 1;
    setp.eq.u32 %p1, %r1, 1;
    selp.b64 %rd3, %rd2, %rd1, %p1;
    mul.wide.u32 %rd4, %t, 4;
    add.u64 %rd3, %rd3, %rd4;
    mov.u32 %r2, box;
    mad.lo.u32 %r2, %t, 4, %r2;
    cp.async.ca.shared.global [%r2], [%rd3], 4;
    cp.async.wait_all;
    ld.shared.u32 %r4, [%r2];
    st.global.u32 [%mine], %r4;
    """
    expect(body, np.where(np.arange(32) & 1, other, one), inputs=[one, other])


def test_cp_async_reads_memory_when_it_lands() -> None:
    # The source is stored before the copy and never again: every schedule copies what was there.
    body = """
    .shared .align 16 .b8 box[128];
    st.global.u32 [%mine], %t;
    mov.u32 %r2, box;
    mad.lo.u32 %r2, %t, 4, %r2;
    cp.async.ca.shared.global [%r2], [%mine], 4;
    cp.async.commit_group;
    cp.async.wait_group 0;
    ld.shared.u32 %r4, [%r2];
    add.u32 %r4, %r4, 50;
    st.global.u32 [%mine], %r4;
    """
    expect(body, np.arange(32) + 50)


# --- st.async, red.async --------------------------------------------------------------------------


def test_st_async_and_red_async_count_on_the_barrier_of_the_peer() -> None:
    body = """
    .shared .align 16 .b8 box[1024];
    .shared .align 8 .b64 bar;
    mov.u32 %r1, box;
    mov.u32 %r2, bar;
    mov.u32 %r3, %cluster_ctarank;
    mad.lo.u32 %r4, %t, 16, %r1;
    setp.eq.u32 %p1, %t, 0;
    @%p1 mbarrier.init.shared.b64 [bar], 1;
    st.shared.u32 [%r1+512], 5;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 640;
    barrier.cluster.arrive; barrier.cluster.wait;
    xor.b32 %r5, %r3, 1;
    mapa.shared::cluster.u32 %r6, %r4, %r5;
    mapa.shared::cluster.u32 %r7, %r2, %r5;
    mapa.shared::cluster.u32 %r8, %r1, %r5;
    add.u32 %r10, %t, 100;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r6], {%t, %r10, %r3, %r3}, [%r7];
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r8+512], %t, [%r7];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;
    ld.shared.v4.u32 {%r11, %r12, %r13, %r14}, [%r4];
    ld.shared.u32 %r15, [%r1+512];
    mad.lo.u32 %r11, %r12, 1000, %r11;
    mad.lo.u32 %r11, %r13, 1000000, %r11;
    add.u32 %r11, %r11, %r15;
    st.global.u32 [%mine], %r11;
    barrier.cluster.arrive; barrier.cluster.wait;
    """
    lane, rank = np.arange(32), np.arange(2)[:, None]
    expected = lane + 1000 * (lane + 100) + 1000000 * (1 - rank) + 5 + 496
    expect(body, expected.reshape(-1), grid=2, cluster=2)


def test_st_async_wants_the_barrier_beside_its_data() -> None:
    body = """
    .shared .align 16 .b8 box[64];
    .shared .align 8 .b64 bar;
    mov.u32 %r1, box; mov.u32 %r2, bar;
    setp.eq.u32 %p1, %t, 0;
    @%p1 mbarrier.init.shared.b64 [bar], 1;
    barrier.cluster.arrive; barrier.cluster.wait;
    mapa.shared::cluster.u32 %r3, %r1, 1;
    mapa.shared::cluster.u32 %r4, %r2, 0;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r3], 1, [%r4];
    """
    text = fault_of(body, grid=2, cluster=2, orders=[IN_ORDER])
    assert text == (
        "cta (1,0,0) warp 0: st.async writes to CTA rank 1, but its mbarrier is in CTA rank 0\n"
        "  try: map both addresses to the same CTA\n"
        '  (PTX ISA 8.7, "st.async")'
    )


# --- tensor maps made on the device ---------------------------------------------------------------


def test_a_map_changed_in_shared_memory_and_published() -> None:
    # The map of the host covers the wrong array; the kernel points a copy at the right one, one row lower.
    wrong = gpu().array(np.zeros((8, 32), np.uint32))
    right = np.arange(8 * 32, dtype=np.uint32).reshape(8, 32)
    target = gpu().array(right)
    slot = gpu().array(np.zeros(128, np.uint8))
    body = """
    .shared .align 128 .b8 own[128];
    .shared .align 8 .b64 bar;
    mov.b64 %rd1, m;
    mul.wide.u32 %rd2, %t, 4;
    add.u64 %rd2, %rd1, %rd2;
    ld.param.u32 %r1, [%rd2];
    mov.u32 %r2, own;
    mad.lo.u32 %r3, %t, 4, %r2;
    st.shared.u32 [%r3], %r1;
    setp.eq.u32 %p1, %t, 0;
    @%p1 mbarrier.init.shared.b64 [bar], 1;
    bar.sync 0;
    ld.param.u64 %rd3, [array];
    ld.param.u64 %rd4, [slot];
    cvt.u64.u32 %rd5, %r2;
    @%p1 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%rd5], %rd3;
    @%p1 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%rd5], 1, 7;
    @%p1 tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%rd5], 1, 2;
    bar.warp.sync -1;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd4], [%rd5], 128;
    fence.proxy.tensormap::generic.acquire.gpu [%rd4], 128;
    mov.u32 %r5, tile;
    mov.u32 %r6, bar;
    @!%p1 bra WAIT;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd4, {0, 6}], [%r6];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;
    mad.lo.u32 %r5, %t, 8, %r5;
    ld.shared.u32 %r7, [%r5];
    ld.shared.u32 %r8, [%r5+4];
    mul.wide.u32 %rd7, %t, 8;
    add.u64 %rd7, %rd7, %out;
    st.global.u32 [%rd7], %r7;
    st.global.u32 [%rd7+4], %r8;
    """
    kernel = build(body, 0, SHARED, "", MAP + ", .param .u64 array, .param .u64 slot")
    # Row 7 lies outside the new extent, so that it reads as zeros.
    expected = np.concatenate([right[6], np.zeros(32, np.uint32)])
    expect(kernel, expected, shared_bytes=256, args=[TensorMap(wrong, (32, 4)), target, slot])


# --- refusals -------------------------------------------------------------------------------------


def tma_fault(
    change: str, *, box: tuple[int, int] = (32, 4), swizzle: str = "none", shared: int = 1024
) -> str:
    body = f"""
    .shared .align 8 .b64 bar;
    mov.u32 %r1, tile;
    mov.u32 %r2, bar;
    mov.b64 %rd1, m;
    cvta.param.u64 %rd1, %rd1;
    mbarrier.init.shared.b64 [bar], 1;
    {change}
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {{0, 0}}], [%r2];
    """
    array = gpu().array(np.zeros((16, 64), np.uint32))
    kernel = build(body, 0, SHARED, "", MAP)
    return fault_of(
        kernel,
        block=1,
        shared_bytes=shared,
        args=[TensorMap(array, box, swizzle)],
        orders=UNTIMED[:1],
    )


def test_misaligned_destinations_and_boxes_that_do_not_fit() -> None:
    assert tma_fault("add.u32 %r1, %r1, 64;") == (
        "cta (0,0,0) warp 0 lane 0: the shared address 0x840 of a tensor copy is not aligned to 128 bytes\n"
        "  try: align tiles to 128 bytes (to the swizzle period, 256 to 1024, when swizzled)\n"
        '  (PTX ISA 8.7, "cp.async.bulk.tensor")'
    )
    assert tma_fault("", box=(64, 16)) == (
        "cta (0,0,0) warp 0 lane 0: the box of 4096 bytes at shared 0x800 ends beyond the 3072 bytes of shared memory\n"
        "  try: the kernel was launched with shared_bytes=1024: give the bytes of dynamic shared memory that it was"
        " written for; or ask for more shared memory, or check the tile address\n"
        '  (PTX ISA 8.7, "cp.async.bulk.tensor")'
    )
    assert "there is no mbarrier at shared offset 0x408" in tma_fault("add.u32 %r2, %r2, 8;")
    text = tma_fault("mov.u64 %rd1, tile; cvta.shared.u64 %rd1, %rd1;")
    assert "a tensor map in shared::cluster memory" in text
    assert "keep it in a kernel parameter, const or global memory" in text
    assert "there is no tensor map at 0x" in tma_fault("mov.u64 %rd1, %out;")


def test_a_parameters_address_is_no_generic_one() -> None:
    assert tma_fault("mov.b64 %rd1, m;") == (
        "cta (0,0,0) warp 0 lane 0: the tensor map's address 0x40 is in no allocation\n"
        "  try: give the generic address of a parameter, by mov.b64 and cvta.param.u64, or that of a map in global memory\n"
        '  (PTX ISA 8.7, "cp.async.bulk.tensor")'
    )
    text = fault_of(
        "mov.u64 %rd1, 0; mov.u32 %r1, 7; tensormap.replace.tile.rank.global.b1024.b32 [%rd1], %r1;",
        block=1,
    )
    assert "the tensor map's address 0x0 is in no allocation" in text


def test_the_wrong_number_of_coordinates() -> None:
    array = gpu().array(np.zeros((16, 64), np.uint32))
    kernel = load_kernel(3, 512)
    text = fault_of(
        kernel, block=64, shared_bytes=512, args=[TensorMap(array, (32, 4)), *[np.uint32(0)] * 3]
    )
    assert text == (
        "cta (0,0,0) warp 0 lane 0: a tensor map of rank 2 needs 2 coordinates, got 3\n"
        "  try: match the .1d to .5d of the instruction to the map\n"
        '  (PTX ISA 8.7, "cp.async.bulk.tensor")'
    )


def test_a_map_over_freed_or_too_little_memory() -> None:
    array = gpu().array(np.zeros((16, 64), np.uint32))
    tensor_map = TensorMap(array, (32, 4), dims=(64, 64))
    kernel = load_kernel(2, 512)
    text = fault_of(
        kernel, block=64, shared_bytes=512, args=[tensor_map, np.uint32(0), np.uint32(40)]
    )
    assert text.startswith("cta (0,0,0) warp 0 lane 0: the box reaches global bytes 0x")
    assert "  try: check address, dims and strides of the tensor map" in text


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("mov.u32 %r3, 24; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%out], %r3, [%r2];",
         "a bulk copy of 24 bytes: the size must be a positive multiple of 16"),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+8], [%out], 16, [%r2];",
         "the address 0x408 of a bulk copy is not aligned to 16 bytes"),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%out], 256, [%r2];",
         "bulk copy: bytes 0x"),
        ("cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1+4096], 16;",
         "shared bytes 0x1400..0x140f end beyond the"),
        ("cp.async.ca.shared.global [%r1+2], [%out], 4;", "cp.async to shared: address 0x402 is not aligned to 4 bytes"),
        ("mov.u32 %r3, 8; cp.async.ca.shared.global [%r1], [%out], 4, %r3;", "cp.async: source size 8 is larger than 4"),
        ("cp.async.ca.shared.global [%r1], [%out+128], 4;", "cp.async from global: bytes 0x"),
    ],
)  # fmt: skip
def test_illegal_copies_are_told_where_they_are_issued(code: str, what: str) -> None:
    body = f"""
    .shared .align 16 .b8 box[64];
    .shared .align 8 .b64 bar;
    mov.u32 %r1, box; mov.u32 %r2, bar;
    mbarrier.init.shared.b64 [bar], 1;
    {code}
    cp.async.wait_all;
    add.u32 %r5, %r5, 1;
    """
    for order in UNTIMED:
        text = fault_of(body, block=1, orders=[order])
        assert text.startswith(f"cta (0,0,0) warp 0 lane 0: {what}"), text


def test_too_many_bytes_on_the_barrier_are_told_with_the_line_of_the_copy() -> None:
    body = """
    .shared .align 16 .b8 box[16];
    .shared .align 8 .b64 bar;
    mov.u32 %r1, box; mov.u32 %r2, bar;
    mbarrier.init.shared.b64 [bar], 1;
    mbarrier.complete_tx.shared::cta.b64 [bar], 1048575;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%out], 16, [%r2];
    bar.sync 0;
    nanosleep.u32 10;
    """
    for _, order in each_order(UNTIMED):
        with pytest.raises(MachineFault) as caught:
            launch(body, order, block=1)
        assert "the tx-count of mbarrier 0x410 is -1048591" in str(caught.value)
        assert "cp.async.bulk.shared::cluster.global" in str(caught.value)
