from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopsim.errors import ConfigError
from hopsim.layout import fragments
from hopsim.layout.box import load_plan
from hopsim.layout.box_shared import shared_chunks
from hopsim.layout.descriptor import Major, operand_addresses
from hopsim.layout.operand_tile import canonical
from hopsim.layout.swizzle import Swizzle
from hopsim.layout.tensormap import TensorMapSpec
from hopsim.layout.tensormap_types import TensorDataType
from hopsim.layout.tiled import Atom, atom, library, split, tiled_copy, tiled_mma
from hopsim.layout.tiled_access import access, better
from hopsim.layout.tiled_notation import CuteLayout, parse_layout

MMA_SYNC = [
    ("m16n8k16", "bf16"), ("m16n8k16", "fp16"), ("m16n8k8", "fp16"), ("m16n8k8", "tf32"),
    ("m16n8k4", "tf32"), ("m16n8k32", "int8"), ("m16n8k16", "int8"), ("m8n8k16", "int8"),
    ("m16n8k32", "e4m3"), ("m16n8k32", "e5m2"), ("m8n8k4", "f64"), ("m16n8k4", "f64"),
    ("m16n8k8", "f64"), ("m16n8k16", "f64"),
]  # fmt: skip
WGMMA = [
    (f"m64n{n}k{k}", dtype)
    for n in (8, 24, 64, 128, 256)
    for k, dtype in ((16, "bf16"), (8, "tf32"), (32, "e4m3"), (32, "int8"))
]


def agrees(
    layout: CuteLayout, rows: int, machine: fragments.FragmentMap, *, swap: bool = False
) -> bool:
    """Whether the algebra's (thread, value) is the machine's (register, lane, element)."""
    by_row, by_col = (
        held.transpose(1, 0, 2).reshape(held.shape[1], -1) for held in (machine.rows, machine.cols)
    )
    if swap:
        by_row, by_col = by_col, by_row
    row, col = split(layout, rows)
    return np.array_equal(row, by_row) and np.array_equal(col, by_col)


@pytest.mark.parametrize(("shape", "dtype"), MMA_SYNC)
def test_fragments_of_mma_sync_are_those_of_the_machine(shape: str, dtype: str) -> None:
    found = atom(shape, dtype)
    m, n, k = found.shape_mnk
    bits, c_bits = found.element_bits
    assert agrees(found.layout("A"), m, fragments.a_map(m, k, bits))
    assert agrees(found.layout("B"), n, fragments.b_map(k, bits), swap=True)
    assert agrees(found.layout("C"), m, fragments.mma_c_map(m, c_bits))


@pytest.mark.parametrize(("shape", "dtype"), WGMMA)
def test_fragments_of_wgmma_are_those_of_the_machine(shape: str, dtype: str) -> None:
    found = atom(shape, dtype)
    m, n, k = found.shape_mnk
    assert agrees(found.layout("A"), m, fragments.a_map(m, k, found.element_bits[0]))
    assert agrees(found.layout("C"), m, fragments.accumulator_map(n))


@pytest.mark.parametrize("swizzle", list(Swizzle))
def test_swizzle_of_the_algebra_is_that_of_the_machine(swizzle: Swizzle) -> None:
    from hopsim.layout.swizzle import swizzle_address

    algebra = library().Swizzle(swizzle.value, 4, 3)
    assert [algebra(at) for at in range(2048)] == [
        swizzle_address(at, swizzle) for at in range(2048)
    ]


def test_tiled_copy_is_printed_as_cute_prints_it() -> None:
    copy = tiled_copy(parse_layout("(4,32):(32,1)"), parse_layout("(4,8):(8,1)"))
    assert copy.tiler_mn == (16, 256)
    assert str(copy.layout_tv) == "((32,4),(8,4)):((128,4),(16,1))"


@given(
    st.sampled_from([(4, 8), (8, 4), (32, 1), (1, 32), (2, 16)]),
    st.sampled_from([(1, 1), (1, 4), (4, 2), (3, 1)]),
    st.booleans(),
    st.booleans(),
)
def test_a_tiled_copy_takes_every_element_once(
    threads: tuple[int, int], values: tuple[int, int], thr_row: bool, val_row: bool
) -> None:
    def layout(shape: tuple[int, int], row: bool) -> CuteLayout:
        return CuteLayout(shape, (shape[1], 1) if row else (1, shape[0]))

    copy = tiled_copy(layout(threads, thr_row), layout(values, val_row))
    size = copy.tiler_mn[0] * copy.tiler_mn[1]
    assert sorted(copy.layout_tv.offsets().tolist()) == list(range(size))
    row, col = copy.places()
    assert (row[0].max(), col[0].max()) == (values[0] - 1, values[1] - 1)


@pytest.mark.parametrize("along_n", [False, True])
def test_the_tile_of_four_warps_holds_each_c_once_and_shares_a_and_b(along_n: bool) -> None:
    instruction = atom("m16n8k16", "fp16")
    tiled = tiled_mma(instruction, (2, 2), (1, 2), along_n)
    assert tiled.threads == 128
    assert tiled.tile_mnk == (32, 32, 16)
    row, col = tiled.places("C")
    assert sorted((row + 32 * col).ravel().tolist()) == list(range(32 * 32))
    for operand in ("A", "B"):
        row, col = (held.reshape(4, 32, -1) for held in tiled.places(operand))
        twins = [
            warp
            for warp in (1, 2, 3)
            if np.array_equal(row[0], row[warp]) and np.array_equal(col[0], col[warp])
        ]
        # warps of one row of atoms share A, those of one column share B
        assert twins == [1 if (operand == "A") is along_n else 2]
    mine = tiled.places("C")
    first = split(instruction.layout("C"), 16)
    assert np.array_equal(mine[0][:32, :4], first[0])
    assert np.array_equal(mine[1][:32, :4], first[1])


def test_values_of_a_tile_repeat_beyond_all_warps() -> None:
    row, col = tiled_mma(atom("m16n8k16", "fp16"), (2, 2), (1, 2)).places("C")
    assert (row[0, 4], col[0, 4]) == (0, 16)
    assert (row[32, 0], col[32, 0]) == (16, 0)
    assert (row[64, 0], col[64, 0]) == (0, 8)


def test_a_copy_along_rows_of_a_row_major_tensor_is_dense() -> None:
    copy = tiled_copy(parse_layout("(16,8):(8,1)"), parse_layout("(1,8)"))
    found = access(copy, (256, 256), "row", 2)
    assert (found.vector_bytes, found.instructions) == (16, 1)
    assert (found.sectors, found.needed_sectors) == (64, 64)
    assert better(copy, (256, 256), "row", 2) is None


def test_a_copy_across_the_tensor_is_told_to_turn() -> None:
    copy = tiled_copy(parse_layout("(16,8):(8,1)"), parse_layout("(1,8)"))
    found = access(copy, (256, 256), "col", 2)
    assert (found.vector_bytes, found.instructions) == (2, 8)
    assert (found.sectors, found.needed_sectors) == (4 * 8 * 8, 64)
    turned = better(copy, (256, 256), "col", 2)
    assert turned is not None
    threads, values, then = turned
    assert tiled_copy(threads, values).tiler_mn == copy.tiler_mn
    assert (then.vector_bytes, then.sectors) == (16, 64)


@pytest.mark.parametrize("swizzle", list(Swizzle))
@pytest.mark.parametrize("major", ["K", "MN"])
def test_descriptor_of_a_tile_finds_what_tma_put_there(major: Major, swizzle: Swizzle) -> None:
    rows, k, item = 64, 128, 2
    tile = canonical(major, swizzle, rows, k, item)
    dims = (k, rows) if major == "K" else (rows, k)
    spec = TensorMapSpec(
        TensorDataType.UINT16, 0, dims, (dims[0] * item,), tile.box, swizzle=swizzle
    )
    chunk = 8
    where: dict[tuple[int, int], int] = {}
    for box in range(tile.boxes):
        start = box * tile.total_bytes // tile.boxes
        places = shared_chunks(load_plan(spec, (box * tile.box[0], 0), start))
        for line, chunks in enumerate(places.tolist()):
            for at, address in enumerate(chunks):
                for e in range(chunk):
                    inner = box * tile.box[0] + at * chunk + e
                    where[(line, inner) if major == "K" else (inner, line)] = address + e * item
    for step, offset in enumerate(tile.step_offsets):
        found = operand_addresses(tile.descriptor(offset).encode(), rows, 16, item, major)
        expected = [[where[row, step * 16 + kk] for kk in range(16)] for row in range(rows)]
        assert found.tolist() == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(16,8", "expected ) at the end"),
        ("(16,8):(8)", "expected shape and stride nested alike"),
        ("16 x 8", "expected numbers, commas and parentheses"),
        ("(0,8)", "expected extents of at least 1"),
        ("", "expected a number or ("),
    ],
)
def test_a_wrong_layout_is_told(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_layout(text)
    assert said in str(error.value)


def test_unknown_instructions_are_refused() -> None:
    with pytest.raises(ConfigError, match="no matrix instruction of shape m16n8k16 for tf32"):
        atom("m16n8k16", "tf32")
    with pytest.raises(ConfigError, match="expected a shape"):
        atom("16x8x16", "bf16")
    assert isinstance(atom("m64n8k16", "fp16"), Atom)
