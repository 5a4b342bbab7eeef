"""Neighbouring words of shared memory come with one load where their address is known to allow it."""

from __future__ import annotations

from typing import Any

import pytest

from hopsim.hw.timing.wide_loads import Wide, WideLoads, wide_loads
from tests.hw.timing.kernels import kernel

ROW = "mov.u32 %r1,%tid.y; shl.b32 %r2,%r1,{shift}; mov.u32 %r3,tile; add.s32 %r4,%r3,%r2;"
TILE = ".shared .align 4 .b8 tile[4096];"


def found(loads: str, shift: int = 7) -> WideLoads:
    keep = "".join(f"st.global.f32 [%rd1],%f{number};" for number in range(8))
    body = ROW.format(shift=shift) + loads + keep + "ret;"
    program: Any = kernel(body, declarations=TILE).program(True)
    return wide_loads(program)


def words(*offsets: int, between: str = "") -> str:
    return between.join(
        f"ld.shared.f32 %f{number},[%r4+{offset}];" for number, offset in enumerate(offsets)
    )


def test_four_words_in_a_row_are_one_load() -> None:
    one = found(words(0, 4, 8, 12))
    ((first, wide),) = one.first.items()
    assert wide == Wide(4, 0)
    assert one.others == {first + part: first for part in (1, 2, 3)}
    # The first in the program need not be the lowest.
    assert list(found(words(8, 0, 12, 4)).first.values()) == [Wide(4, 8)]


@pytest.mark.parametrize(
    ("offsets", "shift", "expected"),
    [
        ((0, 4, 8), 7, [2]),
        ((4, 8), 7, []),  # no multiple of 8
        ((0, 4, 8, 12), 3, [2, 2]),  # the rows begin at multiples of 8
        ((0, 4, 8, 12), 2, []),
        ((16, 20, 24, 28, 32, 36), 7, [4, 2]),
        ((0, 8, 16, 24), 7, []),
    ],
)
def test_as_wide_as_their_address_allows(
    offsets: tuple[int, ...], shift: int, expected: list[int]
) -> None:
    assert [one.words for one in found(words(*offsets), shift).first.values()] == expected


@pytest.mark.parametrize(
    "between",
    ["st.shared.f32 [%r9],%f7;", "bar.sync 0;", "add.s32 %r4,%r4,16;"],
    ids=["a store", "a barrier", "another address"],
)
def test_what_comes_between_keeps_them_apart(between: str) -> None:
    assert not found(words(0, 4, between=between)).first
    assert found(words(0, 4, between="add.f32 %f6,%f6,%f6;")).first


def test_other_loads_stay() -> None:
    assert not found(words(0, 4).replace("ld.shared", "ld.volatile.shared")).first
    assert not found(
        words(0, 4).replace("ld.shared.f32", "ld.global.f32").replace("%r4", "%rd4")
    ).first
    assert not found(words(0, 4).replace("ld.shared", "@%p1 ld.shared")).first
