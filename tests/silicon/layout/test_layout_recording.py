"""The layout package against what an H100 answered: layout.json, layout.npz (see record.py)."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hopsim.errors import MachineFault, TensorMapError
from hopsim.layout.box import load_plan, store_plan
from hopsim.layout.box_copy import copy_in, copy_out, reduce_out
from hopsim.layout.descriptor import operand_addresses
from hopsim.layout.reduction import LEGAL_TYPES
from hopsim.layout.swizzle import Swizzle
from hopsim.layout.tensormap import TensorMapSpec
from hopsim.layout.tensormap_edit import replace_field
from hopsim.layout.tensormap_types import Interleave, L2Promotion, OobFill, TensorDataType

HERE = Path(__file__).parent
FACTS: dict[str, Any] = json.loads((HERE / "layout.json").read_text())
BASE = 0x7000_0000_0000


@cache
def arrays() -> dict[str, NDArray[Any]]:
    with np.load(HERE / "layout.npz") as found:
        return dict(found)


def source_bytes(seed: int, special: bool) -> NDArray[np.uint8]:
    """The global or shared bytes that record.py used."""
    data = np.random.default_rng(seed).integers(0, 256, 1 << 16, dtype=np.uint8)
    if special:
        data[:512] = special_words().view(np.uint8)
    return data


def special_words() -> NDArray[np.uint32]:
    heads = [
        0x3F800000, 0xBF800000, 0x7F7FE000, 0x7F800000, 0x7FC00000, 0x7F800001, 0x00000000,
        0x00400000, 0x80000000, 0x807FE000, 0x00800000, 0xFF800000, 0x40490FDB & ~0x1FFF,
        0x7FFFE000, 0x7F802000, 0x0000E000,
    ]  # fmt: skip
    tails = [0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF, 0x3000, 0x2FFF]
    return np.array([h | t for h in heads for t in tails], np.uint32)


def to_spec(case: dict[str, Any]) -> TensorMapSpec:
    return TensorMapSpec(
        TensorDataType(case["data_type"]),
        BASE + case.get("offset", 0),
        tuple(case["dims"]),
        tuple(case["strides"]),
        tuple(case["box"]),
        tuple(case.get("element_strides") or ()),
        Interleave(case.get("interleave", 0)),
        Swizzle(case.get("swizzle", 0)),
        L2Promotion(case.get("l2_promotion", 0)),
        OobFill(case.get("oob_fill", 0)),
    )


def test_the_recording_is_of_this_probe() -> None:
    assert FACTS["probe_sha256"] == hashlib.sha256((HERE / "probe.cu").read_bytes()).hexdigest()
    assert FACTS["device"] == "NVIDIA H100 80GB HBM3"
    assert "failed" not in FACTS


@pytest.mark.parametrize("index", range(len(FACTS["descriptor"])))
def test_wgmma_reads_the_words_that_the_descriptor_names(index: int) -> None:
    start, lbo, sbo, base_offset, code, trans = FACTS["descriptor"][index]
    bits = start >> 4 | lbo >> 4 << 16 | sbo >> 4 << 32 | base_offset << 49 | code << 62
    words = operand_addresses(bits, 64, 16, 2, "MN" if trans else "K") // 2
    assert (words == arrays()["descriptor_a"][index]).all()
    assert (words == arrays()["descriptor_b"][index]).all()


@pytest.mark.parametrize("index", range(len(FACTS["encode"])))
def test_encode_accepts_what_the_driver_accepts(index: int) -> None:
    case = FACTS["encode"][index]
    try:
        to_spec(case).encode()
        accepted = True
    except (TensorMapError, ValueError):  # ValueError: a swizzle that sm_90 does not have
        accepted = False
    assert accepted == (case["error"] == 0)


@pytest.mark.parametrize("index", range(len(FACTS["load"])))
def test_a_load_leaves_these_bytes_in_shared_memory(index: int) -> None:
    case = FACTS["load"][index]
    spec = TensorMapSpec.decode(to_spec(case).encode())
    if "error" in case:
        with pytest.raises(MachineFault):
            load_plan(spec, case["coords"], case["smem"])
        return
    plan = load_plan(spec, case["coords"], case["smem"])
    assert plan.tx_bytes == case["expected"]
    recorded = arrays()[f"load{index}"]
    shared = np.full(case["smem"] + recorded.size, 0xA5, np.uint8)
    copy_in(plan, source_bytes(21, bool(case.get("special"))), BASE, shared)
    assert shared[: case["smem"]].tolist() == [0xA5] * case["smem"]
    assert shared[case["smem"] :].tolist() == recorded.tolist()


@pytest.mark.parametrize("index", range(len(FACTS["store"])))
def test_a_store_leaves_these_bytes_in_global_memory(index: int) -> None:
    case = FACTS["store"][index]
    spec = to_spec(case)
    if "error" in case:
        with pytest.raises(MachineFault):
            store_plan(spec, case["coords"], case["smem"])
        return
    # record.py drew 16 KiB here, which is another stream of bytes than 64 KiB.
    shared = np.random.default_rng(23).integers(0, 256, 16384, dtype=np.uint8)
    if case.get("special"):
        shared[:512] = special_words().view(np.uint8)
    memory = np.full(8192, 0x5A, np.uint8)
    copy_out(store_plan(spec, case["coords"], case["smem"]), shared, memory, BASE)
    assert memory[: case["extent"]].tolist() == arrays()[f"store{index}"].tolist()


def reduce_operands(data_type: TensorDataType) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The two operands that record.py used: edges of the type in pairs, then random bits."""
    size = data_type.itemsize
    raw = np.dtype(f"u{size}")
    rng = np.random.default_rng(24 + data_type)
    old, new = (rng.integers(0, 256, 512, dtype=np.uint8).view(raw) for _ in range(2))
    f16 = [0, 0x8000, 1, 0x83FF, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x7C01]
    bf16 = [0, 0x8000, 1, 0x807F, 0x3F80, 0xBF80, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0x7F81]
    f32 = [0, 1 << 31, 1, 0x807FFFFF, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000]
    f64 = [0, 1 << 63, 1, 0x7FEFFFFFFFFFFFFF, 0x7FF << 52, 0xFFF << 52, 0x7FF8000000000001]
    edges = {
        TensorDataType.FLOAT16: [*f16, 0xFE01],
        TensorDataType.BFLOAT16: [*bf16, 0xFFC1],
        TensorDataType.FLOAT32: [*f32, 0x7F800001, 0x00800001],
        TensorDataType.FLOAT32_FTZ: [*f32, 0x7F800001, 0x00800001],
        TensorDataType.FLOAT64: f64,
    }.get(data_type, [0, 1, 2, (1 << 8 * size) - 1, 1 << (8 * size - 1)])
    pairs = [(a, b) for a in edges for b in edges][: old.size]
    old[: len(pairs)] = [a for a, _ in pairs]
    new[: len(pairs)] = [b for _, b in pairs]
    return old.view(np.uint8), new.view(np.uint8)


@pytest.mark.parametrize("name", sorted(FACTS["reduce"]))
def test_a_reduction_gives_these_bits(name: str) -> None:
    op, type_name = name.split("_", 1)
    data_type = TensorDataType.from_name(type_name)
    memory, shared = reduce_operands(data_type)
    count = 128 // data_type.itemsize
    spec = TensorMapSpec(data_type, BASE, (count, 4), (128,), (count, 4))
    plan = store_plan(spec, (0, 0), 0)
    if FACTS["reduce"][name] == "illegal":
        assert data_type not in LEGAL_TYPES[op]
        with pytest.raises(MachineFault):
            reduce_out(plan, shared, memory, BASE, op)
        return
    reduce_out(plan, shared, memory, BASE, op)
    assert memory.tolist() == arrays()[f"reduce_{name}"].tolist()


@pytest.mark.parametrize("index", range(4))
def test_a_reduction_does_not_stop_inside_16_bytes(index: int) -> None:
    number, inner = ((2, 5), (6, 3), (7, 7), (4, 1))[index]
    data_type = TensorDataType(number)
    memory = np.full(512, 0x11, np.uint8)
    spec = TensorMapSpec(data_type, BASE, (inner, 3), (48,), (32 // data_type.itemsize, 4))
    reduce_out(store_plan(spec, (0, 1), 0), np.full(128, 1, np.uint8), memory, BASE, "add")
    assert memory[:256].tolist() == arrays()[f"clipped_reduce{index}"].tolist()


REPLACE_BASE = {
    "data_type": 6, "dims": [64, 32, 8], "strides": [128, 4096], "box": [32, 8, 2], "swizzle": 2,
}  # fmt: skip
EDITED = {"box_dim": "box", "global_dim": "dims", "global_stride": "strides"}
# These bytes hold derived values that the driver fills in and that replace does not touch: the box's
# size, the pitch of the swizzle, and what lies beyond the rank.
DRIVER_ONLY = {64, 65, 73}


@pytest.mark.parametrize("case", FACTS["replace"], ids=lambda c: f"{c['field']}{c['ordinal']}")
def test_replace_means_what_the_encode_function_means(case: dict[str, Any]) -> None:
    """The recording compares an edited map with one that the driver encodes with the new value."""
    field, ordinal, value = case["field"], case["ordinal"], case["value"]
    beyond = {17, 40, 57} if field == "rank" else set()
    assert {at for at, _, _ in case["diff"]} <= DRIVER_ONLY | beyond
    base = dict(REPLACE_BASE, box=[16, 8, 2]) if field == "elemtype" else REPLACE_BASE
    target = {**base, "element_strides": [1, 1, 1]}
    if field in EDITED:
        target[EDITED[field]] = list(target[EDITED[field]])
        target[EDITED[field]][ordinal] = value
    elif field == "element_stride":
        target["element_strides"][ordinal] = value
    elif field == "global_address":
        target["offset"] = value
        value += BASE
    elif field == "elemtype":
        target["data_type"] = {8: 10, 9: 8, 10: 9}.get(value, value)
    elif field == "rank":
        keys = ("dims", "box", "element_strides")
        target.update({key: target[key][: value + 1] for key in keys})
        target["strides"] = target["strides"][:value]
    else:
        target[{"swizzle_mode": "swizzle", "fill_mode": "oob_fill"}[field]] = value
    raw = replace_field(bytearray(to_spec(base).encode()), field, ordinal, value)
    assert TensorMapSpec.decode(raw) == to_spec(target)
