"""CUDA's DPX and SIMD intrinsics as nvcc compiles them (tests/data/nvcc/intrinsics.cu), held to what CUDA says of each.

Source: CUDA Math API 13.0 "DPX", "SIMD Intrinsics".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import hopsim as hs

FOLDER = Path(__file__).parents[1] / "data" / "nvcc"
MODULE = hs.load(FOLDER / "intrinsics.ptx")
SOURCE = (FOLDER / "intrinsics.cu").read_text(encoding="utf-8")
EDGES = (0, 1, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 0x80008000, 0x7FFF8000, 0x00FF807F, 0x8080FF00)
Words = NDArray[np.uint32]
Numbers = NDArray[np.int64]


def operands() -> Words:
    rng = np.random.default_rng(5)
    words = rng.integers(0, 1 << 32, (3, 64), np.uint32)
    words[:, :32] = rng.choice(np.array(EDGES, np.uint32), (3, 32))
    words[1, 60:] = words[0, 60:]
    return words


def rows(kernel: str, count: int) -> Words:
    gpu = hs.Gpu()
    out = gpu.array(np.zeros((count, 64), np.uint32))
    result = gpu.launch(
        MODULE[kernel], 1, 64, args=[gpu.array(operands()), out], schedule="in-order"
    )
    assert (result.verdict, result.hazards) == ("clean", ())
    return out.numpy()


def named(begin: str, end: str) -> list[str]:
    """The intrinsics of the rows between two places of the source."""
    return re.findall(r"ROW\(__(\w+?)(?:##n)?\(", SOURCE.split(begin)[1].split(end)[0])


def parts(words: Words, bits: int, signed: bool) -> Numbers:
    kind = np.dtype(f"{'i' if signed else 'u'}{bits // 8}")
    return np.ascontiguousarray(words).view(kind).reshape(len(words), -1).astype(np.int64)


def joined(numbers: Numbers, bits: int) -> Words:
    return numbers.astype(np.dtype(f"u{bits // 8}")).view(np.uint32)[:, 0]


def wrapped(numbers: Numbers, bits: int, signed: bool) -> Numbers:
    low = numbers & (1 << bits) - 1
    return np.where(low >> bits - 1, low - (1 << bits), low) if signed else low


# --- DPX ------------------------------------------------------------------------------------------


def dpx(name: str) -> Words:
    """What an intrinsic such as `viaddmax_s16x2_relu` gives."""
    what, kind, *relu = name.split("_")
    signed, bits = kind[0] == "s", 16 if kind.endswith("x2") else 32
    a, b, c = (parts(words, bits, signed) for words in operands())
    best = np.maximum if "max" in what else np.minimum
    if what.startswith("viadd"):
        found = best(wrapped(a + b, bits, signed), c)
    else:
        found = best(best(a, b), c) if what.endswith("3") else best(a, b)
    return joined(np.maximum(found, 0) if relu else found, bits)


def test_dpx_has_the_bits_that_cuda_says() -> None:
    names = named("void dpx(", "void dpx_predicates")
    assert len(names) == 28
    for name, got in zip(names, rows("dpx", len(names)), strict=True):
        assert (got == dpx(name)).all(), name


def test_dpx_says_which_operand_it_took() -> None:
    names = named("void dpx_predicates", "#define PARTS")
    found = rows("dpx_predicates", 2 * len(names))
    for name, got, taken in zip(names, found[::2], found[1::2], strict=True):
        what, kind = name.split("_")
        signed, bits = kind[0] == "s", 16 if kind.endswith("x2") else 32
        a, b, _ = (parts(words, bits, signed) for words in operands())
        first = a >= b if "max" in what else a <= b
        assert (got == joined(np.where(first, a, b), bits)).all(), name
        weights = 1 << np.arange(first.shape[1])
        assert (taken == (first * weights).sum(1)).all(), name


# --- parts of a word ------------------------------------------------------------------------------


def saturated(numbers: Numbers, bits: int, signed: bool) -> Numbers:
    low = -(1 << bits - 1) if signed else 0
    return np.clip(numbers, low, low + (1 << bits) - 1)


COMPARE: dict[str, Callable[[Numbers, Numbers], NDArray[np.bool_]]] = {
    "eq": np.equal, "ne": np.not_equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
}  # fmt: skip


def of_parts(name: str, bits: int) -> Words:
    """What an intrinsic such as `vaddss` gives for halves (16 bits) or bytes (8 bits)."""
    if found := re.fullmatch(r"v(cmp|set)(eq|ne|g[te]|l[te])([su]?)", name):
        a, b, _ = (parts(words, bits, found[3] == "s") for words in operands())
        holds = COMPARE[found[2]](a, b)
        return joined(np.where(holds, -1 if found[1] == "cmp" else 1, 0), bits)
    if name in ("vabs", "vabsss", "vneg", "vnegss"):
        a = parts(operands()[0], bits, True)
        value = np.abs(a) if "abs" in name else -a
        return joined(saturated(value, bits, True) if name.endswith("ss") else value, bits)
    what, signed, saturates = name[1:], False, False
    for ending in ("ss", "us"):
        if what.endswith(ending) and what[:3] in ("add", "sub"):
            what, signed, saturates = what[:3], ending == "ss", True
    if what not in ("add", "sub"):
        what, signed = what[:-1], what[-1] == "s"
    a, b, _ = (parts(words, bits, signed) for words in operands())
    if what == "sad":
        return np.abs(a - b).sum(1).astype(np.uint32)
    value = {
        "add": a + b, "sub": a - b, "absdiff": np.abs(a - b), "max": np.maximum(a, b), "min": np.minimum(a, b),
        "hadd": a + b >> 1, "avg": np.where(a + b >= 0, a + b + 1, a + b) >> 1,
    }[what]  # fmt: skip
    return joined(saturated(value, bits, signed) if saturates else value, bits)


@pytest.mark.parametrize(("kernel", "bits"), [("halves", 16), ("bytes", 8)])
def test_intrinsics_on_parts_of_a_word_have_the_bits_that_cuda_says(kernel: str, bits: int) -> None:
    names = named("#define PARTS", "void halves")
    assert len(names) == 37
    for name, got in zip(names, rows(kernel, len(names)), strict=True):
        assert (got == of_parts(name, bits)).all(), name


# --- sixteen bytes --------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["in-order", "seeded", "adversarial"])
def test_a_structure_of_16_bytes_is_counted_up_by_all_threads(schedule: str) -> None:
    gpu = hs.Gpu()
    cell, seen = gpu.array(np.zeros(2, np.int64)), gpu.array(np.zeros((65, 2), np.int64))
    result = gpu.launch(MODULE["pairs"], 1, 64, args=[cell, seen], schedule=schedule)
    assert (result.verdict, result.hazards) == ("clean", ())
    assert cell.numpy().tolist() == [7, 9]
    counted = [[k, -3 * k] for k in range(65)]
    assert sorted(seen.numpy().tolist()) == counted
    assert seen.numpy()[64].tolist() == counted[64]
