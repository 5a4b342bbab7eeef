from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hopsim.errors import MachineFault, NotModelled
from hopsim.layout.box import BoxPlan, load_plan, store_plan
from hopsim.layout.box_copy import (
    copy_in,
    copy_out,
    inside_chunks,
    reduce_out,
    round_to_tf32,
    shared_chunks,
)
from hopsim.layout.swizzle import Swizzle
from hopsim.layout.tensormap import TensorMapSpec, row_major_strides
from hopsim.layout.tensormap_types import Interleave, OobFill, TensorDataType

BASE = 0x7F00_0000_0000
WINDOW = 0x400
U16 = TensorDataType.UINT16


# --- A naive model: one element at a time, out of the documentation's words --------------------


def naive_elements(
    spec: TensorMapSpec, coords: tuple[int, ...], smem_addr: int
) -> list[tuple[int, int | None]]:
    """For each element of the box: its shared address, and its global one when in bounds."""
    item = spec.data_type.itemsize
    counts = [
        -(-b // e) if i else b
        for i, (b, e) in enumerate(zip(spec.box, spec.element_strides, strict=True))
    ]
    row_bytes = counts[0] * item
    pitch = {0: row_bytes, 1: 32, 2: 64, 3: 128}[spec.swizzle.value]
    found = []
    for row, outer in enumerate(itertools.product(*(range(n) for n in counts[:0:-1]))):
        for x in range(counts[0]):
            index = (x, *outer[::-1])
            at = [
                c + j * (e if i else 1)
                for i, (c, j, e) in enumerate(zip(coords, index, spec.element_strides, strict=True))
            ]
            inside = all(0 <= a < d for a, d in zip(at, spec.dims, strict=True))
            steps = (item, *spec.strides)
            address = spec.global_address + sum(a * s for a, s in zip(at, steps, strict=True))
            linear = smem_addr + row * pitch + x * item
            for bit in range(spec.swizzle.value):
                linear ^= ((linear >> (7 + bit)) & 1) << (4 + bit)
            found.append((linear, address if inside else None))
    return found


@st.composite
def boxes(draw: st.DrawFn, lowest: int) -> tuple[TensorMapSpec, tuple[int, ...], int, int]:
    """A map, coordinates from `lowest` box sizes up, a shared address, the tensor's extent."""
    data_type = draw(st.sampled_from([TensorDataType(i) for i in (0, 1, 2, 4)]))
    item, rank = data_type.itemsize, draw(st.integers(1, 5))
    swizzle = draw(st.sampled_from(list(Swizzle)))
    chunk = 16 // item
    inner = chunk * draw(st.integers(1, swizzle.width_bytes // 16 if swizzle else 8))
    box = (inner, *(draw(st.integers(1, 4)) for _ in range(rank - 1)))
    steps = (1, *(draw(st.integers(1, 3)) for _ in range(rank - 1)))
    dims = (draw(st.integers(1, 2 * inner)), *(draw(st.integers(1, 6)) for _ in range(rank - 1)))
    strides: list[int] = []
    extent = dims[0] * item
    for size in dims[1:]:
        strides.append(-(-extent // 16) * 16 + 16 * draw(st.integers(0, 1)))
        extent += strides[-1] * (size - 1)
    spec = TensorMapSpec(
        data_type, BASE + 16 * draw(st.integers(0, 8)), dims, tuple(strides), box, steps,
        swizzle=swizzle,
    )  # fmt: skip
    first = draw(st.integers(lowest * inner // chunk, (dims[0] + inner) // chunk)) * chunk
    outer = (draw(st.integers(lowest * b, d + b)) for b, d in zip(box[1:], dims[1:], strict=True))
    return spec, (first, *outer), WINDOW + 128 * draw(st.integers(0, 9)), extent


def random_bytes(size: int, seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)


@settings(max_examples=150, deadline=None)
@given(boxes(lowest=-1))
def test_load_against_the_naive_model(
    case: tuple[TensorMapSpec, tuple[int, ...], int, int],
) -> None:
    spec, coords, smem_addr, extent = case
    memory = random_bytes(extent + 256, 1)
    shared = np.full(48 * 1024, 0xA5, np.uint8)
    expected = shared.copy()
    item = spec.data_type.itemsize
    for place, address in naive_elements(spec, coords, smem_addr):
        value = memory[address - BASE : address - BASE + item] if address is not None else 0
        expected[place - WINDOW : place - WINDOW + item] = value
    copy_in(load_plan(spec, coords, smem_addr), memory, BASE, shared, WINDOW)
    assert (shared == expected).all()


@settings(max_examples=150, deadline=None)
@given(boxes(lowest=0))
def test_store_against_the_naive_model(
    case: tuple[TensorMapSpec, tuple[int, ...], int, int],
) -> None:
    spec, coords, smem_addr, extent = case
    whole = spec.dims[0] + -spec.dims[0] % (16 // spec.data_type.itemsize)
    rounded = TensorMapSpec(
        spec.data_type, spec.global_address, (whole, *spec.dims[1:]), spec.strides, spec.box,
        spec.element_strides, swizzle=spec.swizzle,
    )  # fmt: skip
    memory = random_bytes(extent + 256, 2)
    expected = memory.copy()
    shared = random_bytes(48 * 1024, 3)
    item = spec.data_type.itemsize
    for place, address in naive_elements(rounded, coords, smem_addr):
        if address is not None:
            data = shared[place - WINDOW : place - WINDOW + item]
            expected[address - BASE : address - BASE + item] = data
    copy_out(store_plan(spec, coords, smem_addr), shared, memory, BASE, WINDOW)
    assert (memory == expected).all()


@settings(max_examples=60, deadline=None)
@given(boxes(lowest=-1))
def test_blocks_and_runs_against_the_naive_model(
    case: tuple[TensorMapSpec, tuple[int, ...], int, int],
) -> None:
    spec, coords, smem_addr, _ = case
    item = spec.data_type.itemsize
    touched = {
        address + byte
        for _, address in naive_elements(spec, coords, smem_addr)
        if address is not None
        for byte in range(item)
    }
    plan = load_plan(spec, coords, smem_addr)
    assert plan.lines().tolist() == sorted({a // 128 * 128 for a in touched})
    assert plan.sector_addresses().tolist() == sorted({a // 32 * 32 for a in touched})
    assert plan.sectors() == len({a // 32 for a in touched})
    assert {a for start, stop in plan.runs().tolist() for a in range(start, stop)} == touched
    if touched:
        assert (plan.first_addr, plan.stop_addr) == (min(touched), max(touched) + 1)
    else:
        assert plan.first_addr == plan.stop_addr
    chunks = {place // 16 * 16 for place, _ in naive_elements(spec, coords, smem_addr)}
    assert sorted(shared_chunks(plan).ravel().tolist()) == sorted(chunks)
    cut = {
        place // 16 * 16
        for place, address in naive_elements(spec, coords, smem_addr)
        if address is None
    }
    assert sorted(inside_chunks(plan).tolist()) == sorted(chunks - cut)
    if min(coords) >= 0:
        stored = store_plan(spec, coords, smem_addr)
        assert sorted(inside_chunks(stored).tolist()) == sorted(chunks - cut)
    n = len(naive_elements(spec, coords, smem_addr))
    assert plan.tx_bytes == n * item


# --- By hand -----------------------------------------------------------------------------------


def test_a_128b_tile_in_the_middle_of_a_matrix() -> None:
    matrix = np.arange(256 * 128, dtype=np.uint16).reshape(128, 256)
    spec = TensorMapSpec(U16, BASE, (256, 128), (512,), (64, 8), swizzle=Swizzle.B128)
    shared = np.zeros(1024, np.uint8)
    plan = load_plan(spec, (64, 16), 0)
    copy_in(plan, matrix.view(np.uint8).reshape(-1), BASE, shared)
    tile = shared.view(np.uint16).reshape(8, 8, 8)  # row, chunk, element
    for row in range(8):
        for chunk in range(8):
            first = 64 + chunk * 8
            want = matrix[16 + row, first : first + 8].tolist()
            assert tile[row, chunk ^ row].tolist() == want
    assert plan.is_whole
    assert plan.tx_bytes == plan.shared_bytes == 1024


def test_a_narrow_box_leaves_the_rest_of_each_swizzled_row() -> None:
    spec = TensorMapSpec(U16, BASE, (8, 4), (16,), (8, 4), swizzle=Swizzle.B128)
    shared = np.full(512, 0xEE, np.uint8)
    plan = load_plan(spec, (0, 0), 0)
    copy_in(plan, np.arange(64, dtype=np.uint8), BASE, shared)
    assert (plan.tx_bytes, plan.shared_bytes) == (64, 512)
    for row in range(4):
        start = 128 * row + 16 * row
        assert shared[start : start + 16].tolist() == list(range(16 * row, 16 * row + 16))
    assert np.count_nonzero(shared == 0xEE) == 512 - 64


def test_a_box_outside_the_tensor_is_fill_and_touches_nothing() -> None:
    spec = TensorMapSpec(
        TensorDataType.FLOAT16, BASE, (64, 4), (128,), (8, 2), oob_fill=OobFill.NAN
    )
    for coords in ((64, 0), (0, 4), (-8, 0), (0, -2), (2**31 - 8, -(2**31))):
        plan = load_plan(spec, coords, 0)
        shared = np.zeros(32, np.uint8)
        copy_in(plan, np.zeros(512, np.uint8), BASE, shared)
        assert set(shared.view(np.uint16).tolist()) == {0x7FF7}
        assert (plan.tx_bytes, plan.sectors(), plan.runs().shape) == (32, 0, (0, 2))
        assert plan.lines().tolist() == []


def test_stride_zero_repeats_a_row() -> None:
    spec = TensorMapSpec(U16, BASE, (8, 3), (0,), (8, 3))
    shared = np.zeros(48, np.uint8)
    plan = load_plan(spec, (0, 0), 0)
    copy_in(plan, np.arange(16, dtype=np.uint8), BASE, shared)
    assert shared.tolist() == list(range(16)) * 3
    assert plan.sectors() == 1


def test_a_store_fills_up_the_last_16_bytes_of_a_cut_row() -> None:
    spec = TensorMapSpec(U16, BASE, (5, 2), (32,), (16, 2))
    memory = np.zeros(64, np.uint8)
    plan = store_plan(spec, (0, 0), 0)
    copy_out(plan, np.full(64, 7, np.uint8), memory, BASE)
    assert memory.tolist() == ([7] * 16 + [0] * 16) * 2
    assert plan.in_bounds == (8, 2)
    assert load_plan(spec, (0, 0), 0).in_bounds == (5, 2)


def test_tf32_maps_round_to_nearest_even() -> None:
    bits = np.array([0x3F801000, 0x3F801001, 0x3F803000, 0x7F7FFFFF, 0xFFC00001, 1], np.uint32)
    rounded = [0x3F800000, 0x3F802000, 0x3F804000, 0x7F800000, 0x7FFFE000, 0]
    assert round_to_tf32(bits).tolist() == rounded


def test_tf32_maps_round_loads_and_not_stores() -> None:
    spec = TensorMapSpec(TensorDataType.TFLOAT32, BASE, (4,), (), (4,))
    memory = np.full(4, 0x3F801001, np.uint32).view(np.uint8)
    shared = np.zeros(16, np.uint8)
    copy_in(load_plan(spec, (0,), 0), memory, BASE, shared)
    assert shared.view(np.uint32).tolist() == [0x3F802000] * 4
    copy_out(store_plan(spec, (0,), 0), memory.copy(), shared, BASE)
    assert shared.view(np.uint32).tolist() == [0x3F801001] * 4


def test_reduction_of_a_clipped_swizzled_box() -> None:
    spec = TensorMapSpec(TensorDataType.INT32, BASE, (32, 3), (128,), (32, 4), swizzle=Swizzle.B128)
    matrix = np.arange(96, dtype=np.int32)
    memory = matrix.copy().view(np.uint8)
    shared = np.zeros(512, np.uint8)
    copy_in(load_plan(spec, (0, 0), 0), memory, BASE, shared)
    reduce_out(store_plan(spec, (0, 1), 0), shared, memory, BASE, "add")
    want = matrix.copy()
    want[32:] += matrix[:64]
    assert memory.view(np.int32).tolist() == want.tolist()


def test_reduction_adds_every_repeat_of_a_row_with_stride_zero() -> None:
    spec = TensorMapSpec(TensorDataType.UINT32, BASE, (4, 3), (0,), (4, 3))
    memory = np.zeros(16, np.uint8)
    shared = np.arange(12, dtype=np.uint32).view(np.uint8)
    reduce_out(store_plan(spec, (0, 0), 0), shared, memory, BASE, "add")
    assert memory.view(np.uint32).tolist() == [12, 15, 18, 21]


# --- Faults ------------------------------------------------------------------------------------

PLAIN = TensorMapSpec(U16, BASE, (64, 4), (128,), (8, 2))


@pytest.mark.parametrize(
    ("coords", "smem_addr", "message"),
    [
        ((0,), 0, "a tensor map of rank 2 needs 2 coordinates, got 1"),
        ((0, 0), 64, "multiple of 128, got 0x40"),
        ((4, 0), 0, "innermost coordinate must be a multiple of 8 elements = 16 bytes, got 4"),
        ((-1, 0), 0, "got -1"),
    ],
)
def test_what_makes_the_hardware_trap(
    coords: tuple[int, ...], smem_addr: int, message: str
) -> None:
    with pytest.raises(MachineFault, match=message):
        load_plan(PLAIN, coords, smem_addr)


def test_a_store_below_zero_faults_and_a_load_does_not() -> None:
    assert load_plan(PLAIN, (0, -1), 0).in_bounds == (8, 1)
    with pytest.raises(MachineFault, match=r"must not be negative, got \(0, -1\)"):
        store_plan(PLAIN, (0, -1), 0)


def test_interleaved_maps_are_not_modelled() -> None:
    spec = TensorMapSpec(U16, BASE, (8, 4, 4), (16, 64), (8, 4, 4), interleave=Interleave.B16)
    spec.validate()
    with pytest.raises(NotModelled, match="interleave B16"):
        load_plan(spec, (0, 0, 0), 0)


def test_bytes_outside_the_allocation_are_reported() -> None:
    plan = load_plan(PLAIN, (8, 2), 0)
    assert plan.runs().tolist() == [[BASE + 272, BASE + 288], [BASE + 400, BASE + 416]]
    assert plan.outside(BASE, 512).tolist() == []
    assert plan.outside(BASE, 410).tolist() == [[BASE + 400, BASE + 416]]
    assert plan.outside(BASE + 280, 512).tolist() == [[BASE + 272, BASE + 288]]
    with pytest.raises(MachineFault, match=rf"global bytes \[{BASE + 400:#x}, {BASE + 416:#x}\)"):
        copy_in(plan, np.zeros(410, np.uint8), BASE, np.zeros(64, np.uint8))


@pytest.mark.parametrize("smem_addr", [0x380, 0x480])
def test_bytes_outside_shared_memory_fault(smem_addr: int) -> None:
    plan = load_plan(PLAIN, (0, 0), smem_addr)
    with pytest.raises(MachineFault, match=r"expected within \[0x400, 0x490\)"):
        copy_in(plan, np.zeros(512, np.uint8), BASE, np.zeros(144, np.uint8), WINDOW)


def test_row_major_tensor_round_trip_through_every_rank() -> None:
    for rank in range(1, 6):
        dims = (16, 3, 2, 2, 2)[:rank]
        spec = TensorMapSpec(U16, BASE, dims, row_major_strides(dims, 2), dims)
        memory = random_bytes(int(np.prod(dims)) * 2, rank)
        shared, back = np.zeros_like(memory), np.zeros_like(memory)
        plan: BoxPlan = load_plan(spec, (0,) * rank, 0)
        copy_in(plan, memory, BASE, shared)
        assert shared.tolist() == memory.tolist()
        copy_out(store_plan(spec, (0,) * rank, 0), shared, back, BASE)
        assert back.tolist() == memory.tolist()
