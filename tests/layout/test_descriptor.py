from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hopsim.errors import MachineFault
from hopsim.layout.descriptor import (
    Major,
    MatrixDescriptor,
    descriptor_problems,
    gather_operand,
    operand_addresses,
    operand_chunks,
    operand_span,
)
from hopsim.layout.swizzle import Swizzle

SWIZZLED = [Swizzle.B32, Swizzle.B64, Swizzle.B128]
UINT = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def distinct_tile(rows: int, cols: int, element_bytes: int) -> NDArray[np.unsignedinteger]:
    values = np.random.default_rng(rows * 1000 + cols).permutation(rows * cols)
    return values.reshape(rows, cols).astype(UINT[element_bytes])


def write_box(
    shared: NDArray[np.uint8], address: int, tile: NDArray[np.unsignedinteger], mode: Swizzle
) -> None:
    """Write a row-major box as a tensor copy does, byte by byte, swizzling absolute addresses."""
    data = np.ascontiguousarray(tile).view(np.uint8)
    for row in range(data.shape[0]):
        for byte in range(data.shape[1]):
            linear = address + row * data.shape[1] + byte
            for bit in range(mode.value):
                linear ^= ((linear >> (7 + bit)) & 1) << (4 + bit)
            shared[linear] = data[row, byte]


def test_fields_have_their_bits() -> None:
    d = MatrixDescriptor(0x3FFF0, 0x10, 0x20, 5, Swizzle.B64)
    assert d.encode() == 0x3FFF | 1 << 16 | 2 << 32 | 5 << 49 | 2 << 62


@pytest.mark.parametrize(
    ("mode", "code"), [(Swizzle.NONE, 0), (Swizzle.B128, 1), (Swizzle.B64, 2), (Swizzle.B32, 3)]
)
def test_swizzle_codes_are_not_those_of_the_tensor_map(mode: Swizzle, code: int) -> None:
    bits = MatrixDescriptor(0, 0, 0, 0, mode).encode()
    assert bits == code << 62
    assert MatrixDescriptor.decode(bits).swizzle is mode


def test_the_descriptor_that_cutlass_builds_for_a_128b_k_major_tile() -> None:
    assert MatrixDescriptor(0x400, 16, 1024, 0, Swizzle.B128).encode() == 0x4000_0040_0001_0040


@settings(deadline=None)
@given(
    *[st.integers(0, 0x3FFF).map(lambda v: v * 16)] * 3,
    st.integers(0, 7),
    st.sampled_from(list(Swizzle)),
)
def test_round_trip(start: int, lbo: int, sbo: int, base: int, mode: Swizzle) -> None:
    d = MatrixDescriptor(start, lbo, sbo, base, mode)
    assert MatrixDescriptor.decode(d.encode()) == d


def test_encode_refuses_what_does_not_fit() -> None:
    with pytest.raises(MachineFault, match="start_addr must be a multiple of 16.*got 8"):
        MatrixDescriptor(8, 0, 0).encode()
    with pytest.raises(MachineFault, match="stride_byte_offset.*got 262144"):
        MatrixDescriptor(0, 0, 1 << 18).encode()
    with pytest.raises(MachineFault, match="base_offset must be 0 to 7, got 8"):
        MatrixDescriptor(0, 0, 0, 8).encode()


def test_problems_are_named() -> None:
    good = MatrixDescriptor(0, 16, 1024, 0, Swizzle.B128).encode()
    assert descriptor_problems(good, 2, "K") == ()
    assert descriptor_problems(good | 1 << 14, 2, "K") == (
        "bits that must be zero are set: 0x4000",
    )
    assert descriptor_problems(good, 1, "MN") == ("MN-major needs a 16-bit type, got 8 bits",)
    (problem,) = descriptor_problems(MatrixDescriptor(0, 16, 64, 0, Swizzle.B128).encode(), 2, "K")
    assert problem.startswith("stride byte offset must be a multiple of 8 rows = 1024 bytes")
    assert problem.endswith("got 64")
    assert descriptor_problems(MatrixDescriptor(0, 16, 128, 1).encode(), 2, "K") == (
        "base offset 1 has no meaning without a swizzle",
    )


# --- The layouts that PTX ISA 8.7 "Canonical Layouts" writes out -------------------------------


def cute_offsets(
    shape: tuple[tuple[int, ...], tuple[int, ...]],
    stride: tuple[tuple[int, ...], tuple[int, ...]],
) -> NDArray[np.int64]:
    """Evaluate a CuTe layout of two nested modes on all coordinates."""

    def mode(sizes: tuple[int, ...], steps: tuple[int, ...]) -> NDArray[np.int64]:
        out = np.zeros(int(np.prod(sizes)), np.int64)
        for i in range(len(out)):
            rest = i
            for size, step in zip(sizes, steps, strict=True):
                out[i] += rest % size * step
                rest //= size
        return out

    return mode(shape[0], stride[0])[:, None] + mode(shape[1], stride[1])[None, :]


@pytest.mark.parametrize(
    ("mode", "major", "element_bytes", "lbo", "sbo", "shape", "stride"),
    [
        (Swizzle.NONE, "K", 4, 64 * 4, 32 * 4, ((8, 2), (4, 2)), ((4, 32), (1, 64))),
        (Swizzle.B32, "K", 4, 16, 64 * 4, ((8, 2), (4, 2)), ((8, 64), (1, 4))),
        (Swizzle.NONE, "MN", 2, 128 * 2, 64 * 2, ((8, 1, 2), (8, 2)), ((1, 8, 64), (8, 128))),
        (Swizzle.B32, "MN", 2, 128 * 2, 256 * 2, ((8, 2, 2), (8, 2)), ((1, 8, 128), (16, 256))),
        (Swizzle.B64, "MN", 2, 256 * 2, 512 * 2, ((8, 4, 2), (8, 2)), ((1, 8, 256), (32, 512))),
    ],
)
def test_worked_examples_of_the_ptx_isa(
    mode: Swizzle,
    major: Major,
    element_bytes: int,
    lbo: int,
    sbo: int,
    shape: tuple[tuple[int, ...], tuple[int, ...]],
    stride: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    expected = cute_offsets(shape, stride) * element_bytes
    expected ^= (expected >> 3) & mode.chunk_mask
    rows, k_elems = expected.shape
    bits = MatrixDescriptor(0x2000, lbo, sbo, 0, mode).encode()
    got = operand_addresses(bits, rows, k_elems, element_bytes, major) - 0x2000
    assert got.tolist() == expected.tolist()


# --- A tile written by a tensor copy and read by a matching descriptor is the tile -------------


@pytest.mark.parametrize("mode", SWIZZLED)
@pytest.mark.parametrize("element_bytes", [1, 2, 4])
@pytest.mark.parametrize("rows", [8, 64, 24])
def test_k_major_swizzled_tile(mode: Swizzle, element_bytes: int, rows: int) -> None:
    shared = np.zeros(32 * 1024, np.uint8)
    k_elems = 32 // element_bytes
    tile = distinct_tile(rows, mode.width_bytes // element_bytes, element_bytes)
    write_box(shared, 0x1000, tile, mode)
    for step in range(mode.width_bytes // 32):
        bits = MatrixDescriptor(0x1000, 16, 8 * mode.width_bytes, 0, mode).encode() + 2 * step
        got = gather_operand(shared, bits, rows, k_elems, element_bytes, "K")
        assert got.tolist() == tile[:, step * k_elems : (step + 1) * k_elems].tolist()


@pytest.mark.parametrize("mode", SWIZZLED)
@pytest.mark.parametrize("rows", [8, 64, 136, 256])
def test_mn_major_swizzled_tile_of_several_boxes(mode: Swizzle, rows: int) -> None:
    shared = np.zeros(64 * 1024, np.uint8)
    k_tile, per_box = 32, mode.width_bytes // 2
    boxes = -(-rows // per_box)
    box_bytes = k_tile * mode.width_bytes
    tile = distinct_tile(k_tile, boxes * per_box, 2)
    for box in range(boxes):
        part = tile[:, box * per_box : (box + 1) * per_box]
        write_box(shared, 0x400 + box * box_bytes, part, mode)
    for step in range(2):
        start = 0x400 + step * 16 * mode.width_bytes
        bits = MatrixDescriptor(start, box_bytes, 8 * mode.width_bytes, 0, mode).encode()
        got = gather_operand(shared, bits, rows, 16, 2, "MN")
        assert got.tolist() == tile[step * 16 : step * 16 + 16, :rows].T.tolist()


@pytest.mark.parametrize("element_bytes", [1, 2, 4])
def test_k_major_tile_without_swizzle_is_columns_of_16_bytes(element_bytes: int) -> None:
    shared = np.zeros(16 * 1024, np.uint8)
    per_chunk = 16 // element_bytes
    tile = distinct_tile(64, 4 * per_chunk, element_bytes)
    for chunk in range(4):
        part = tile[:, chunk * per_chunk : (chunk + 1) * per_chunk]
        write_box(shared, 0x210 + chunk * 64 * 16, part, Swizzle.NONE)
    for step in range(2):
        bits = MatrixDescriptor(0x210 + step * 2048, 64 * 16, 128).encode()
        got = gather_operand(shared, bits, 64, 2 * per_chunk, element_bytes, "K")
        want = tile[:, step * 2 * per_chunk : (step + 1) * 2 * per_chunk]
        assert got.tolist() == want.tolist()


def test_mn_major_tile_without_swizzle_is_columns_of_16_bytes() -> None:
    shared = np.zeros(16 * 1024, np.uint8)
    tile = distinct_tile(32, 64, 2)
    for chunk in range(8):
        part = tile[:, chunk * 8 : chunk * 8 + 8]
        write_box(shared, 0x800 + chunk * 32 * 16, part, Swizzle.NONE)
    for step in range(2):
        bits = MatrixDescriptor(0x800 + step * 256, 128, 32 * 16).encode()
        got = gather_operand(shared, bits, 64, 16, 2, "MN")
        assert got.tolist() == tile[step * 16 : step * 16 + 16].T.tolist()


@pytest.mark.parametrize("mode", SWIZZLED)
def test_base_offset_moves_the_pattern_to_an_odd_row(mode: Swizzle) -> None:
    start = 0x1000 + 3 * 128
    plain = MatrixDescriptor(0x1000, 16, 8 * mode.width_bytes, 0, mode).encode()
    moved = MatrixDescriptor(start, 16, 8 * mode.width_bytes, start >> 7 & 7, mode).encode()
    expected = operand_addresses(plain, 64, 16, 2, "K") + 3 * 128
    assert operand_addresses(moved, 64, 16, 2, "K").tolist() == expected.tolist()


# --- Properties --------------------------------------------------------------------------------

DESCRIPTORS = st.builds(
    MatrixDescriptor,
    st.integers(0, 0x400).map(lambda v: v * 16),
    st.integers(0, 0x100).map(lambda v: v * 16),
    st.integers(0, 0x100).map(lambda v: v * 16),
    st.integers(0, 7),
    st.sampled_from(list(Swizzle)),
)


def naive_address(d: MatrixDescriptor, row: int, k: int, element_bytes: int, major: Major) -> int:
    """One element by the canonical layouts, in bytes, then the swizzle."""
    t = 16 // element_bytes
    w = 1 << d.swizzle.value
    lbo, sbo = d.leading_byte_offset, d.stride_byte_offset
    if major == "K":
        chunk_step = lbo if d.swizzle is Swizzle.NONE else 16
        offset = row % 8 * w * 16 + row // 8 * sbo + k // t * chunk_step + k % t * element_bytes
    elif d.swizzle is Swizzle.NONE:
        offset = row % t * element_bytes + row // t * sbo + k % 8 * 16 + k // 8 * lbo
    else:
        offset = row % t * element_bytes + row // t % w * 16 + row // t // w * lbo
        offset += k % 8 * w * 16 + k // 8 * sbo
    address = d.start_addr + offset
    pattern = (address >> 7) - d.base_offset & (w - 1)
    return address ^ pattern << 4


@settings(deadline=None)
@given(DESCRIPTORS, st.sampled_from([1, 2, 4]), st.sampled_from(["K", "MN"]), st.data())
def test_every_descriptor_against_the_naive_element_rule(
    d: MatrixDescriptor, element_bytes: int, major: Major, data: st.DataObject
) -> None:
    rows = data.draw(st.integers(1, 32)) * 8 * (16 // element_bytes // 8 or 1)
    k_elems = 32 // element_bytes
    got = operand_addresses(d.encode(), rows, k_elems, element_bytes, major)
    assert got.shape == (rows, k_elems)
    row, k = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, k_elems - 1))
    assert int(got[row, k]) == naive_address(d, row, k, element_bytes, major)


@settings(deadline=None)
@given(DESCRIPTORS, st.sampled_from([1, 2, 4]), st.sampled_from(["K", "MN"]))
def test_gather_reads_the_addresses_it_names(
    d: MatrixDescriptor, element_bytes: int, major: Major
) -> None:
    window = 0x400
    shared = np.random.default_rng(7).integers(0, 256, 200 * 1024, dtype=np.uint8)
    bits = d.encode() + 0x40
    addresses = operand_addresses(bits, 64, 32 // element_bytes, element_bytes, major)
    expected = np.zeros(addresses.shape, UINT[element_bytes])
    for byte in range(element_bytes):
        one = shared[addresses - window + byte].astype(expected.dtype)
        expected |= one << UINT[element_bytes](8 * byte)
    got = gather_operand(shared, bits, 64, 32 // element_bytes, element_bytes, major, window)
    assert got.dtype == expected.dtype
    assert got.tolist() == expected.tolist()
    chunks = operand_chunks(bits, 64, 32 // element_bytes, element_bytes, major)
    assert chunks.tolist() == sorted({int(a) & ~15 for a in addresses.ravel()})
    first, stop = operand_span(bits, 64, 32 // element_bytes, element_bytes, major)
    assert first <= chunks[0] < first + 1024
    assert stop == chunks[-1] + 16


def test_operand_outside_the_window_faults() -> None:
    shared = np.zeros(4096, np.uint8)
    bits = MatrixDescriptor(0x400, 16, 1024, 0, Swizzle.B128).encode()
    with pytest.raises(MachineFault, match="names shared bytes up to 0x2400"):
        gather_operand(shared, bits, 64, 16, 2, "K", 0x400)
    low = MatrixDescriptor(0, 16, 128).encode()
    with pytest.raises(MachineFault, match=r"expected within \[0x400, 0x1400\)"):
        gather_operand(shared, low, 8, 16, 2, "K", 0x400)
