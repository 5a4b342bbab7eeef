from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopsim.errors import TensorMapError
from hopsim.layout.swizzle import Swizzle
from hopsim.layout.tensormap import (
    MAP_BYTES,
    TensorMapSpec,
    row_major_strides,
)
from hopsim.layout.tensormap_edit import replace_field
from hopsim.layout.tensormap_types import Interleave, L2Promotion, OobFill, TensorDataType

GOOD = TensorMapSpec(
    TensorDataType.BFLOAT16, 0x7000_0000, (256, 64), (512,), (64, 64), swizzle=Swizzle.B128
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"global_address": 8}, "global address must be a multiple of 16, got 0x8"),
        ({"dims": ()}, "rank must be 1 to 5, got 0"),
        ({"strides": ()}, "strides must have 1 entries for rank 2, got 0"),
        ({"box": (64,)}, "box must have 2 entries for rank 2, got 1"),
        ({"element_strides": (1,)}, "element_strides must have 2 entries for rank 2, got 1"),
        ({"dims": (0, 64)}, r"dims\[0\] must be 1 to 2\^32, got 0"),
        ({"dims": (256, 2**32 + 1)}, r"dims\[1\] must be 1 to 2\^32, got 4294967297"),
        ({"strides": (520,)}, "stride of dimension 1 must be a multiple of 16 bytes below 2.40"),
        ({"strides": (1 << 40,)}, "got 1099511627776"),
        ({"strides": (-16,)}, "got -16"),
        ({"box": (64, 257)}, r"box\[1\] must be 1 to 256, got 257"),
        ({"box": (4, 64)}, r"box\[0\] must fill a multiple of 16 bytes, got 4 x 2 = 8"),
        ({"box": (72, 64)}, "at most 128 bytes with swizzle 128B, got 144"),
        ({"element_strides": (1, 9)}, r"element_strides\[1\] must be 1 to 8, got 9"),
        ({"interleave": Interleave.B16}, "an interleaved layout needs rank 3 or more, got 2"),
        (
            {"data_type": TensorDataType.UINT16, "oob_fill": OobFill.NAN},
            "NaN fill needs a 16-bit or 32-bit float type, got uint16",
        ),
        (
            {"data_type": TensorDataType.UINT64, "box": (256, 256), "swizzle": Swizzle.NONE},
            "a box must be at most 233472 bytes, got 524288",
        ),
    ],
)
def test_each_rule_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(TensorMapError, match=message):
        dataclasses.replace(GOOD, **change).encode()  # type: ignore[arg-type]


def test_an_interleave_of_32_bytes_asks_for_32_byte_alignment() -> None:
    spec = TensorMapSpec(
        TensorDataType.FLOAT16, 0x10, (8, 4, 4), (32, 128), (8, 4, 4), interleave=Interleave.B32
    )
    with pytest.raises(TensorMapError, match="multiple of 32, got 0x10"):
        spec.validate()


def test_the_error_says_what_to_try() -> None:
    with pytest.raises(TensorMapError) as caught:
        dataclasses.replace(GOOD, box=(128, 64)).validate()
    assert str(caught.value) == (
        "tensor map: box[0] must fill at most 128 bytes with swizzle 128B, got 256\n"
        "  try: make box[0] at most 64 and copy wider tiles as several boxes\n"
        "  (CUDA driver API 13.0, cuTensorMapEncodeTiled)"
    )


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"box": (0, 64)}, "1 or more: what has no elements is not copied"),
        ({"box": (64, 257)}, "copy wider tiles as several boxes"),
        ({"dims": (0, 64)}, "1 or more: what has no elements is not copied"),
        ({"dims": (256, 2**32 + 1)}, "split it into two dimensions"),
        ({"interleave": Interleave.B16}, 'interleave="none"'),
        ({"data_type": TensorDataType.UINT16, "oob_fill": OobFill.NAN}, 'oob_fill="zeros"'),
    ],
)
def test_the_advice_is_for_what_was_given(change: dict[str, object], hint: str) -> None:
    with pytest.raises(TensorMapError) as caught:
        dataclasses.replace(GOOD, **change).validate()  # type: ignore[arg-type]
    assert caught.value.hint == hint


SPECS = st.builds(
    TensorMapSpec,
    st.sampled_from([TensorDataType.UINT16, TensorDataType.FLOAT16, TensorDataType.BFLOAT16]),
    st.integers(0, 1 << 40).map(lambda v: v * 16),
    st.just((1 << 32, 7, 9)),
    st.tuples(*[st.integers(0, (1 << 36) - 1).map(lambda v: v * 16)] * 2),
    st.tuples(st.sampled_from([8, 16, 64]), st.integers(1, 16), st.integers(1, 16)),
    st.tuples(*[st.integers(1, 8)] * 3),
    swizzle=st.sampled_from([Swizzle.NONE, Swizzle.B128]),
    l2_promotion=st.sampled_from(list(L2Promotion)),
)


@settings(deadline=None)
@given(SPECS)
def test_round_trip(spec: TensorMapSpec) -> None:
    raw = spec.encode()
    assert len(raw) == MAP_BYTES
    assert TensorMapSpec.decode(raw) == spec
    assert TensorMapSpec.decode(bytearray(raw)) is TensorMapSpec.decode(raw)


@pytest.mark.parametrize("data_type", list(TensorDataType))
@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_round_trip_of_every_type_and_rank(data_type: TensorDataType, rank: int) -> None:
    dims = (32, 3, 4, 5, 6)[:rank]
    strides = row_major_strides(dims, data_type.itemsize)
    spec = TensorMapSpec(data_type, 0x100, dims, strides, (16, 2, 2, 2, 2)[:rank])
    assert TensorMapSpec.decode(spec.encode()) == spec
    assert spec.element_strides == (1,) * rank


def test_row_major_strides() -> None:
    assert row_major_strides((64, 32, 8), 4) == (256, 8192)
    assert row_major_strides((64,), 4) == ()


def test_bytes_that_are_no_map() -> None:
    with pytest.raises(TensorMapError, match="expected a 128-byte tensor map, got 128 bytes"):
        TensorMapSpec.decode(bytes(128))
    with pytest.raises(TensorMapError, match="got 64 bytes"):
        TensorMapSpec.decode(GOOD.encode()[:64])
    raw = bytearray(GOOD.encode())
    raw[109] = 77
    with pytest.raises(TensorMapError, match="elemtype 77"):
        TensorMapSpec.decode(raw)


def test_ptx_orders_three_types_differently() -> None:
    assert TensorDataType.FLOAT32_FTZ.ptx_code == 8
    assert TensorDataType.FLOAT64.ptx_code == 9
    assert TensorDataType.BFLOAT16.ptx_code == 10
    assert sorted(t.ptx_code for t in TensorDataType) == list(range(13))


def test_names() -> None:
    assert TensorDataType.from_name("tfloat32_ftz") is TensorDataType.TFLOAT32_FTZ
    assert [i.text for i in Interleave] == ["none", "16B", "32B"]
    assert [p.text for p in L2Promotion] == ["none", "64B", "128B", "256B"]
    assert OobFill.from_name("nan") is OobFill.NAN
    with pytest.raises(TensorMapError, match="unknown Interleave '64B'"):
        Interleave.from_name("64B")


# --- tensormap.replace -------------------------------------------------------------------------

EDITS = [
    ("global_address", 0, 0x9000, {"global_address": 0x9000}),
    ("global_dim", 1, 77, {"dims": (256, 77)}),
    ("global_dim", 0, 1 << 32, {"dims": (1 << 32, 64)}),
    ("global_stride", 0, 4096, {"strides": (4096,)}),
    ("box_dim", 1, 256, {"box": (64, 256)}),
    ("element_stride", 1, 8, {"element_strides": (1, 8)}),
    ("elemtype", 0, 6, {"data_type": TensorDataType.FLOAT16}),
    ("elemtype", 0, 1, {"data_type": TensorDataType.UINT16}),
    ("swizzle_mode", 0, 3, {"swizzle": Swizzle.B128}),
    ("fill_mode", 0, 1, {"oob_fill": OobFill.NAN}),
    ("interleave_layout", 0, 0, {"interleave": Interleave.NONE}),
    ("rank", 0, 0, {"dims": (256,), "strides": (), "box": (64,), "element_strides": (1,)}),
]


@pytest.mark.parametrize(("field", "ordinal", "value", "change"), EDITS)
def test_each_field_alone(field: str, ordinal: int, value: int, change: dict[str, object]) -> None:
    raw = bytearray(GOOD.encode())
    replace_field(raw, field, ordinal, value)
    assert TensorMapSpec.decode(raw) == dataclasses.replace(GOOD, **change)  # type: ignore[arg-type]


def test_a_map_built_from_128_zero_bytes_as_compilers_do() -> None:
    raw = bytearray(MAP_BYTES)
    for field, ordinal, value in [
        ("global_address", 0, 0x7000_0000), ("rank", 0, 1), ("box_dim", 0, 64), ("box_dim", 1, 64),
        ("global_dim", 0, 256), ("global_dim", 1, 64), ("global_stride", 0, 512),
        ("element_stride", 0, 1), ("element_stride", 1, 1), ("elemtype", 0, 10),
        ("interleave_layout", 0, 0), ("swizzle_mode", 0, 3), ("fill_mode", 0, 0),
    ]:  # fmt: skip
        replace_field(raw, field, ordinal, value)
    assert bytes(raw) == GOOD.encode()


def test_an_edit_can_make_a_map_illegal_and_its_use_says_so() -> None:
    raw = replace_field(bytearray(GOOD.encode()), "global_address", 0, 0x7000_0008)
    with pytest.raises(TensorMapError, match="global address must be a multiple of 16"):
        TensorMapSpec.decode(raw)


@pytest.mark.parametrize(
    ("field", "ordinal", "value", "message"),
    [
        ("swizzle_atomicity", 0, 0, "has no field 'swizzle_atomicity' on sm_90a"),
        ("box_dim", 5, 1, "ordinal must be 0 to 4, got ordinal 5"),
        ("global_stride", 4, 16, "ordinal must be 0 to 3, got ordinal 4"),
        ("elemtype", 0, 13, "the value 0 to 12, got ordinal 0 and value 13"),
        ("rank", 0, 5, "the value 0 to 4"),
    ],
)
def test_edits_that_do_not_exist(field: str, ordinal: int, value: int, message: str) -> None:
    raw = bytearray(GOOD.encode())
    with pytest.raises(TensorMapError, match=message):
        replace_field(raw, field, ordinal, value)
    assert bytes(raw) == GOOD.encode()


def test_editing_something_else_is_refused() -> None:
    with pytest.raises(TensorMapError, match="128 bytes that are zero or a tensor map"):
        replace_field(bytearray(b"\x01" * MAP_BYTES), "rank", 0, 1)
