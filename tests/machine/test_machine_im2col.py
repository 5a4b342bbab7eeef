"""im2col copies through PTX on the machine: bits in every order, multicast, races, and what is told of mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hopsim.errors import PtxError
from hopsim.isa.program.kernel import Kernel
from hopsim.launch.arrays import TensorMap
from hopsim.reference.convolution import columns
from tests.machine.programs import (
    IN_ORDER,
    UNTIMED,
    Order,
    build,
    each_order,
    fault_of,
    gpu,
    launch,
)

SHARED = ".extern .shared .align 1024 .b8 tile[];"
MAP = ".param .align 64 .b8 m[128]"
CHANNELS, PIXELS = 16, 24
BYTES = 2 * CHANNELS * PIXELS
IMAGES = np.arange(1, 2 * 5 * 6 * CHANNELS + 1, dtype=np.uint16).reshape(2, 5, 6, CHANNELS)
START = """
    .shared .align 8 .b64 bar;
    mov.u32 %r1, tile; mov.u32 %r2, bar;
    mov.b64 %rd1, m; cvta.param.u64 %rd2, %rd1;
    setp.eq.u32 %p1, %t, 0;
"""
WAIT = """
    WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
    @!%p2 bra WAIT;
"""
LOAD = "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"


def window(**options: Any) -> TensorMap:
    """A filter of 3 x 3 with a padding of 1 over two images of 5 x 6 pixels."""
    corners: dict[str, Any] = {"lower_corner": (-1, -1), "upper_corner": (-1, -1), **options}
    return TensorMap(gpu().array(IMAGES), (CHANNELS, PIXELS), **corners)


def load_kernel(
    copy: str = "{-1, -1}",
    offsets: str = ", {%h1, %h2}",
    wait: str = WAIT,
    mnemonic: str = LOAD,
    before: str = "",
) -> Kernel:
    """Load the column from `copy` (W and H) of image 0 on, moved by (1, 2), and copy shared memory to `out`."""
    w, h = copy.strip("{}").split(",")
    body = f"""{START}
    @%p1 mbarrier.init.shared.b64 [bar], 1;
    bar.sync 0;
    @!%p1 bra READY;
    mov.u16 %h1, 1; mov.u16 %h2, 2;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], {BYTES};
    {before}
    {mnemonic} [%r1], [%rd2, {{0, {w}, {h}, 0}}], [%r2]{offsets};
    READY:
    {wait}
    mad.lo.u32 %r3, %t, 4, %r1;
    ld.shared.u32 %r4, [%r3];
    st.global.u32 [%mine], %r4;
    """
    return build(body, 0, SHARED, "", MAP)


def moved(s: int, r: int) -> NDArray[np.uint16]:
    """Return the pixels of a place in the filter, in the order of the output."""
    return columns(IMAGES, (3, 3), padding=(1, 1))[:, :, :, r, s].reshape(-1, CHANNELS)[:PIXELS]


OPTIONS: dict[str, Any] = {"block": BYTES // 4, "shared_bytes": BYTES, "check": True}


@pytest.mark.parametrize("order", UNTIMED, ids=str)
def test_a_column_is_the_pixels_under_the_filter(order: Order) -> None:
    result, got, _ = launch(
        load_kernel(), order, out=PIXELS * CHANNELS, dtype=np.uint16, args=[window()], **OPTIONS
    )
    assert result.verdict == "clean", result.hazards
    np.testing.assert_array_equal(got.reshape(PIXELS, CHANNELS), moved(1, 2))


def test_a_prefetch_changes_nothing() -> None:
    prefetch = (
        "cp.async.bulk.prefetch.tensor.4d.L2.global.im2col [%rd2, {0, -1, -1, 0}], {%h1, %h2};"
    )
    _, got, _ = launch(
        load_kernel(before=prefetch), IN_ORDER, out=PIXELS * CHANNELS, dtype=np.uint16, args=[window()], **OPTIONS
    )  # fmt: skip
    np.testing.assert_array_equal(got.reshape(PIXELS, CHANNELS), moved(1, 2))


@pytest.mark.parametrize("order", UNTIMED, ids=str)
def test_one_column_reaches_both_ctas_of_a_cluster(order: Order) -> None:
    body = f"""{START}
    mov.u32 %r9, %cluster_ctarank;
    @%p1 mbarrier.init.shared.b64 [bar], 1;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], {BYTES};
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive; barrier.cluster.wait;
    setp.eq.and.u32 %p3, %r9, 0, %p1;
    mov.u16 %h1, 0; mov.u16 %h2, 1; mov.u16 %h3, 3;
    @%p3 {LOAD}.multicast::cluster [%r1], [%rd2, {{0, -1, -1, 0}}], [%r2], {{%h1, %h2}}, %h3;
    {WAIT}
    mad.lo.u32 %r3, %t, 4, %r1;
    ld.shared.u32 %r4, [%r3];
    st.global.u32 [%mine], %r4;
    barrier.cluster.arrive; barrier.cluster.wait;
    """
    kernel = build(body, 0, SHARED, ".explicitcluster .reqnctapercluster 2, 1, 1", MAP)
    result, got, _ = launch(
        kernel, order, out=2 * PIXELS * CHANNELS, dtype=np.uint16, grid=2, cluster=2, args=[window()], **OPTIONS
    )  # fmt: skip
    assert result.verdict == "clean", result.hazards
    for half in got.reshape(2, PIXELS, CHANNELS):
        np.testing.assert_array_equal(half, moved(0, 1))


def test_reading_without_a_wait_is_a_race() -> None:
    kernel = load_kernel(wait="bar.sync 0;")
    for _, order in each_order(UNTIMED):
        result, _, _ = launch(
            kernel, order, out=PIXELS * CHANNELS, dtype=np.uint16, args=[window()], **OPTIONS
        )
        (hazard,) = result.hazards
        assert hazard.rule == "HS001"
        assert hazard.first is not None
        assert hazard.first.name == "24 pixels of 16 channels from (0, -1, -1, 0)"


STORE = """
    mad.lo.u32 %r3, %t, 4, %r1;
    mad.lo.u32 %r4, %t, 0x20002, 0x10000;
    st.shared.u32 [%r3], %r4;
    {fence}
    bar.sync 0;
    @!%p1 bra DONE;
    {op}.bulk.tensor.4d.global.shared::cta{more}.im2col_no_offs.bulk_group [%rd2, {{0, {w}, 0, 0}}], [%r1];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    DONE:
"""


def store_kernel(fence: str = "fence.proxy.async;", w: int = 2, op: str = "") -> Kernel:
    verb, more = ("cp.reduce.async", f".{op}") if op else ("cp.async", "")
    body = START + STORE.format(fence=fence, w=w, op=verb, more=more)
    return build(body, 0, SHARED, "", MAP)


@pytest.mark.parametrize("op", ["", "add", "max"])
def test_stores_and_reductions_go_pixel_by_pixel(op: str) -> None:
    kind = np.uint32 if op else np.uint16
    images = IMAGES.astype(kind)[..., : CHANNELS * 2 // np.dtype(kind).itemsize]
    for _, order in each_order(UNTIMED):
        array = gpu().array(images)
        tensor_map = TensorMap(
            array, (images.shape[-1], PIXELS), lower_corner=(0, 0), upper_corner=(0, 0)
        )
        result, _, _ = launch(
            store_kernel(op=op), order, out=1, dtype=np.uint32, args=[tensor_map], **OPTIONS
        )
        assert result.verdict == "clean", result.hazards
        threads = np.arange(BYTES // 4, dtype=np.uint32)
        brought = (threads * 0x20002 + 0x10000).view(kind).reshape(PIXELS, -1)
        expected = images.reshape(-1, images.shape[-1]).copy()
        place = slice(2, 2 + PIXELS)
        if op == "add":
            expected[place] += brought
        else:
            expected[place] = np.maximum(expected[place], brought) if op else brought
        np.testing.assert_array_equal(array.numpy().reshape(expected.shape), expected)


def test_a_store_without_the_proxy_fence_is_found() -> None:
    tensor_map = window(lower_corner=(0, 0), upper_corner=(0, 0))
    result, _, _ = launch(
        store_kernel(fence=""), IN_ORDER, out=1, dtype=np.uint32, args=[tensor_map], **OPTIONS
    )
    assert [one.rule for one in result.hazards] == ["HS101"], result.hazards


@pytest.mark.parametrize(
    ("kernel", "tensor_map", "what"),
    [
        (load_kernel("{-2, 0}"), window, "an im2col copy starts at W = -2, outside of the window of its map, -1 to 4"),
        (load_kernel("{0, 5}"), window, "an im2col copy starts at H = 5, outside of the window of its map, -1 to 3"),
        (load_kernel(), lambda: TensorMap(gpu().array(IMAGES), (16, 4, 2, 1)),
         "an im2col copy through a tiled tensor map"),
        (load_kernel(mnemonic=LOAD.replace("im2col", "tile"), offsets=""), window,
         "a tiled copy through an im2col tensor map"),
        (store_kernel(), window, "a store through an im2col map whose window leaves the tensor"),
    ],
)  # fmt: skip
def test_what_traps_is_told_with_its_thread(kernel: Kernel, tensor_map: Any, what: str) -> None:
    text = fault_of(kernel, args=[tensor_map()], block=BYTES // 4, shared_bytes=BYTES)
    assert f"warp 0 lane 0: {what}" in text, text


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (f"{LOAD} [%r1], [%rd2, {{0, 0, 0, 0}}], [%r2];", "expected 4 to 5 operands, got 3"),
        (f"{LOAD} [%r1], [%rd2, {{0, 0, 0, 0}}], [%r2], {{%h1}};", "2"),
        (LOAD.replace("4d", "2d") + " [%r1], [%rd2, {0, 0}], [%r2], {%h1};", "im2col takes .3d, .4d or .5d, not .2d"),
        ("cp.async.bulk.tensor.2d.global.shared::cta.im2col_no_offs.bulk_group [%rd2, {0, 0}], [%r1];",
         "im2col_no_offs takes .3d, .4d or .5d, not .2d"),
    ],
)  # fmt: skip
def test_lines_that_ptxas_refuses(line: str, what: str) -> None:
    with pytest.raises(PtxError, match=what):
        launch(build(f"{START}{line}", 0, SHARED, "", MAP), args=[window()], **OPTIONS)
