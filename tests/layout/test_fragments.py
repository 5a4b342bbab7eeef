from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from hopsim.layout import fragments as fr

UINT = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def distinct(shape: tuple[int, ...], bits: int) -> NDArray[np.unsignedinteger]:
    seed = int(np.prod(shape)) + bits
    return np.random.default_rng(seed).integers(0, 1 << bits, shape, UINT[bits], endpoint=False)


def spread(matrix: NDArray[np.unsignedinteger], where: fr.FragmentMap) -> NDArray[np.uint64]:
    """Build the registers element by element from a map."""
    out = np.zeros(where.rows.shape[:2], np.uint64)
    registers, lanes, elements = where.rows.shape
    for r in range(registers):
        for lane in range(lanes):
            for e in range(elements):
                value = int(matrix[where.rows[r, lane, e], where.cols[r, lane, e]])
                out[r, lane] |= np.uint64(value << (e * where.element_bits))
    return out


def assert_bijective(where: fr.FragmentMap, rows: int, cols: int) -> None:
    pairs = zip(where.rows.ravel().tolist(), where.cols.ravel().tolist(), strict=True)
    assert sorted(pairs) == [(r, c) for r in range(rows) for c in range(cols)]


# --- The formulas that PTX ISA 8.7 prints beside its figures ------------------------------------


@pytest.mark.parametrize("n", range(8, 257, 8))
def test_accumulator_follows_the_ptx_formula(n: int) -> None:
    where = fr.accumulator_map(n)
    assert where.rows.shape == (n // 2, 128, 1)
    i = np.arange(n // 2)[:, None]
    t = np.arange(128)[None, :]
    row = t // 32 * 16 + t % 32 // 4 + np.where(i % 4 < 2, 0, 8)
    col = i // 4 * 8 + t % 4 * 2 + (i & 1)
    assert (where.rows[:, :, 0] == row).all()
    assert (where.cols[:, :, 0] == col).all()
    assert_bijective(where, 64, n)


def test_accumulator_corners() -> None:
    where = fr.accumulator_map(256)
    assert where.at(0, 0) == [(0, 0)]
    assert where.at(3, 0) == [(8, 1)]
    assert where.at(0, 32) == [(16, 0)]
    assert where.at(127, 127) == [(63, 255)]
    assert fr.accumulator_map(16, 16).at(3, 6) == [(9, 12), (9, 13)]


@pytest.mark.parametrize(
    ("register", "lane", "expected"),
    [
        (0, 0, [(0, 0), (0, 1)]),
        (1, 0, [(8, 0), (8, 1)]),
        (2, 0, [(0, 8), (0, 9)]),
        (3, 127, [(63, 14), (63, 15)]),
        (0, 33, [(16, 2), (16, 3)]),
    ],
)
def test_wgmma_a_of_16_bits(register: int, lane: int, expected: list[tuple[int, int]]) -> None:
    assert fr.a_map(64, 16, 16).at(register, lane) == expected


def test_wgmma_a_of_8_and_32_bits() -> None:
    bytes_map = fr.a_map(64, 32, 8)
    assert bytes_map.at(0, 1) == [(0, 4), (0, 5), (0, 6), (0, 7)]
    assert bytes_map.at(2, 0) == [(0, 16), (0, 17), (0, 18), (0, 19)]
    assert fr.a_map(64, 8, 32).at(3, 7) == [(9, 7)]


def test_mma_f64_follows_the_ptx_formulas() -> None:
    group, thread = np.arange(32) // 4, np.arange(32) % 4
    where = fr.a_map(16, 16, 64)
    for i in range(8):
        col = i * 2 + thread if i % 2 == 0 else i * 2 - 2 + thread
        assert where.rows[i, :, 0].tolist() == (group + 8 * (i % 2)).tolist()
        assert where.cols[i, :, 0].tolist() == col.tolist()
    b = fr.b_map(16, 64)
    for i in range(4):
        assert b.rows[i, :, 0].tolist() == (thread + i * 4).tolist()
        assert b.cols[i, :, 0].tolist() == group.tolist()
    small = fr.mma_c_map(8, 64)
    assert small.at(1, 6) == [(1, 5)]
    assert fr.a_map(8, 4, 64).at(0, 6) == [(1, 2)]
    assert fr.b_map(4, 64).at(0, 6) == [(2, 1)]


def test_mma_m16n8k32_of_bytes_follows_the_ptx_formulas() -> None:
    a, b = fr.a_map(16, 32, 8), fr.b_map(32, 8)
    for lane in range(32):
        group, thread = lane >> 2, lane % 4
        for i in range(16):
            row = group if i < 4 or 8 <= i < 12 else group + 8
            col = thread * 4 + (i & 3) + (0 if i < 8 else 16)
            assert a.at(i // 4, lane)[i % 4] == (row, col)
        for i in range(8):
            k = thread * 4 + (i & 3) + (0 if i < 4 else 16)
            assert b.at(i // 4, lane)[i % 4] == (k, group)


def test_mma_m16n8k16_of_halves_follows_the_ptx_formulas() -> None:
    a, b, c = fr.a_map(16, 16, 16), fr.b_map(16, 16), fr.mma_c_map(16)
    for lane in range(32):
        group, thread = lane >> 2, lane % 4
        for i in range(8):
            row = group if i < 2 or 4 <= i < 6 else group + 8
            col = thread * 2 + (i & 1) + (0 if i < 4 else 8)
            assert a.at(i // 2, lane)[i % 2] == (row, col)
        for i in range(4):
            assert b.at(i // 2, lane)[i % 2] == (thread * 2 + (i & 1) + (i // 2) * 8, group)
            assert c.at(i, lane) == [(group + 8 * (i // 2), thread * 2 + (i & 1))]


def test_mma_tf32() -> None:
    assert fr.a_map(16, 4, 32).at(1, 5) == [(9, 1)]
    assert [fr.a_map(16, 8, 32).at(r, 5)[0] for r in range(4)] == [(1, 1), (9, 1), (1, 5), (9, 5)]
    assert [fr.b_map(8, 32).at(r, 5)[0] for r in range(2)] == [(1, 1), (5, 1)]


def test_ldmatrix_lanes() -> None:
    assert fr.ldmatrix_map(False).at(0, 6) == [(1, 4), (1, 5)]
    assert fr.ldmatrix_map(True).at(0, 6) == [(4, 1), (5, 1)]
    assert_bijective(fr.ldmatrix_map(False), 8, 8)
    assert_bijective(fr.ldmatrix_map(True), 8, 8)


# --- Every map is a bijection, every converter follows its map ---------------------------------

MMA_SHAPES = [
    (16, 8, 16), (16, 16, 16), (16, 4, 32), (16, 8, 32), (16, 16, 8), (16, 32, 8), (8, 16, 8),
    (16, 4, 64), (16, 8, 64), (16, 16, 64), (8, 4, 64), (64, 16, 16), (64, 32, 8), (64, 8, 32),
]  # fmt: skip


@pytest.mark.parametrize(("m", "k", "bits"), MMA_SHAPES)
def test_a_fragments(m: int, k: int, bits: int) -> None:
    where = fr.a_map(m, k, bits)
    assert_bijective(where, m, k)
    matrix = distinct((m, k), bits)
    registers = fr.mma_a_to_registers(matrix)
    assert registers.tolist() == spread(matrix, where).tolist()
    assert registers.dtype == (np.uint64 if bits == 64 else np.uint32)
    back = fr.registers_to_mma_a(registers, m, bits)
    assert back.dtype == matrix.dtype
    assert back.tolist() == matrix.tolist()


@pytest.mark.parametrize(("k", "bits"), sorted({(k, bits) for _, k, bits in MMA_SHAPES}))
def test_b_fragments(k: int, bits: int) -> None:
    where = fr.b_map(k, bits)
    assert_bijective(where, k, 8)
    matrix = distinct((8, k), bits)
    registers = fr.mma_b_to_registers(matrix)
    assert registers.tolist() == spread(matrix.T, where).tolist()
    back = fr.registers_to_mma_b(registers, bits)
    assert back.dtype == matrix.dtype
    assert back.tolist() == matrix.tolist()


@pytest.mark.parametrize(("m", "bits"), [(16, 32), (16, 16), (16, 64), (8, 32), (8, 64)])
def test_c_fragments(m: int, bits: int) -> None:
    where = fr.mma_c_map(m, bits)
    assert_bijective(where, m, 8)
    matrix = distinct((m, 8), bits)
    registers = fr.mma_c_to_registers(matrix)
    assert registers.tolist() == spread(matrix, where).tolist()
    assert fr.registers_to_mma_c(registers, m, bits).tolist() == matrix.tolist()


@pytest.mark.parametrize("n", [8, 24, 64, 256])
def test_accumulator_converters(n: int) -> None:
    matrix = distinct((64, n), 32)
    registers = fr.accumulator_to_registers(matrix)
    assert registers.tolist() == spread(matrix, fr.accumulator_map(n)).tolist()
    assert fr.registers_to_accumulator(registers).tolist() == matrix.tolist()


@pytest.mark.parametrize("n", [8, 24, 64, 256])
def test_packed_accumulator_converters(n: int) -> None:
    matrix = distinct((64, n), 16)
    where = fr.accumulator_map(n, 16)
    assert_bijective(where, 64, n)
    registers = fr.packed_accumulator_to_registers(matrix)
    assert registers.dtype == np.uint32
    assert registers.tolist() == spread(matrix, where).tolist()
    assert fr.registers_to_packed_accumulator(registers).tolist() == matrix.tolist()


@pytest.mark.parametrize(("k", "bits"), [(16, 16), (32, 8), (8, 32)])
def test_wgmma_a_converters(k: int, bits: int) -> None:
    matrix = distinct((64, k), bits)
    registers = fr.a_to_registers(matrix)
    assert registers.shape == (4, 128)
    assert registers.dtype == np.uint32
    assert registers.tolist() == spread(matrix, fr.a_map(64, k, bits)).tolist()
    assert fr.registers_to_a(registers, bits).tolist() == matrix.tolist()


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", [False, True])
def test_ldmatrix_and_stmatrix(count: int, trans: bool) -> None:
    rows = distinct((count, 8, 8), 16)
    registers = fr.matrices_to_registers(rows, trans)
    expected = [spread(rows[i], fr.ldmatrix_map(trans))[0].tolist() for i in range(count)]
    assert registers.tolist() == expected
    assert fr.registers_to_matrices(registers, trans).tolist() == rows.tolist()


def test_movmatrix_transposes() -> None:
    matrix = distinct((1, 8, 8), 16)
    register = fr.matrices_to_registers(matrix, False)[0]
    moved = fr.movmatrix(register)
    assert moved.tolist() == fr.matrices_to_registers(matrix, True)[0].tolist()
    assert fr.movmatrix(moved).tolist() == register.tolist()


@pytest.mark.parametrize(
    ("convert", "whole"),
    [
        (fr.registers_to_accumulator, distinct((64, 256), 32)),
        (fr.accumulator_to_registers, distinct((64, 32), 32)),
        (fr.packed_accumulator_to_registers, distinct((64, 32), 16)),
        (fr.registers_to_packed_accumulator, distinct((8, 256), 32)),
        (lambda registers: fr.registers_to_mma_a(registers, 16, 16), distinct((4, 64), 32)),
        (fr.mma_b_to_registers, distinct((8, 32), 16)),
    ],
)
def test_converters_take_views_with_gaps(
    convert: Callable[[NDArray[np.unsignedinteger]], NDArray[np.unsignedinteger]],
    whole: NDArray[np.unsignedinteger],
) -> None:
    view = whole[:, ::2]
    assert convert(view).tolist() == convert(np.ascontiguousarray(view)).tolist()
