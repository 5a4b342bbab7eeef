"""What nvcc makes of C++ as people write it (tests/data/nvcc/language.cu), held to what the source says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hopsim as hs
from tests.machine.programs import ORDERS

MODULE = hs.load(Path(__file__).parents[1] / "data" / "nvcc" / "language.ptx")
LANES = np.arange(32)
RNG = np.random.default_rng(11)
INTS = RNG.integers(-60, 60, 32).astype(np.int32)
WORD = (1 << 128) - 1


def run(name: str, *arrays: NDArray[Any], **order: Any) -> list[NDArray[Any]]:
    """Launch a kernel on one warp; return its arrays."""
    gpu = hs.Gpu()
    given = [gpu.array(one) for one in arrays]
    result = gpu.launch(MODULE[name], 1, 32, args=given, **order)
    assert (result.verdict, result.hazards) == ("clean", ())
    return [one.numpy() for one in given]


def signed(value: int) -> int:
    return value - (1 << 128) if value >> 127 else value


def test_everything_is_modelled() -> None:
    assert [name for name in MODULE if MODULE[name].unsupported] == []


def test_virtual_functions_of_objects_on_the_heap_and_on_the_stack() -> None:
    x = RNG.integers(1, 40, 32).astype(np.float32)
    (_, got) = run("shapes", x, np.zeros(32, np.float32))
    sides = np.where(LANES % 3, 3, 4)
    areas = np.where(LANES % 3, x * 3, x * x)
    others = np.where(LANES & 1, 3000 + x / 2, 4000 + 4)
    assert (got == areas + sides * 100 + others).all()


def test_member_pointers_unions_and_bit_fields() -> None:
    (_, got) = run("members", INTS, np.zeros(128, np.int32))
    words = (INTS * np.float32(0.5)).astype(np.float32).view(np.uint8).reshape(32, 4)
    words[LANES, LANES & 3] ^= 0x55
    for t, x in enumerate(INTS.tolist()):
        c = x * 0x123456789 & (1 << 40) - 1
        wanted = [
            x + t if t & 1 else x * t,
            int.from_bytes(words[t].tobytes(), "little"),
            (t & 7) + (x + 64) % 128 - 64,
            c + (c >> 3 & 0x3FFF),
        ]
        assert [one & 0xFFFFFFFF for one in wanted] == got.view(np.uint32)[
            4 * t : 4 * t + 4
        ].tolist()


def test_addresses_in_initial_values_whole_and_byte_by_byte() -> None:
    (got,) = run("addresses", np.zeros(32, np.int32))
    base, words = [3, 1, 4, 1, 5, 9, 2, 6], [b"alpha\0", b"beta\0", b"gamma\0"]
    wanted = [
        base[3 + (t & 3)] * 1000000
        + base[(t & 3) + (0 if t & 1 else 2)] * 10000
        + (8 if t & 1 else 10) * 200
        + words[t % 3][t & 3]
        for t in range(32)
    ]
    assert got.tolist() == wanted


def test_integers_of_128_bits() -> None:
    words = RNG.integers(0, 1 << 64, (32, 2), dtype=np.uint64)
    (_, got) = run("wide", words, np.zeros((160, 2), np.uint64))
    for t, (low, high) in enumerate(words.tolist()):
        a = high << 64 | low
        b = (low << 17 & WORD ^ high) | 1
        divisor = -signed(b >> 65 | 1)
        quotient = abs(signed(a)) // abs(divisor) * (1 if (signed(a) < 0) == (divisor < 0) else -1)
        made = [a * b, a // (b >> 3 * t | 1), a % (b >> 70 | 3), a >> 4 * t, quotient]
        found = [low | high << 64 for low, high in got[5 * t : 5 * t + 5].tolist()]
        assert found == [one & WORD for one in made]


def test_variants() -> None:
    (_, got) = run("variants", INTS, np.zeros(32, np.int32))
    assert (got == np.choose(LANES % 3, [INTS + 1, 3 * LANES, LANES + 2])).all()


CELLS = np.dtype(
    {
        "names": ["d", "q", "most", "least", "f", "h", "b", "one_half", "one_bfloat", "ands", "ors", "xors", "up", "down",
                  "small", "v"],
        "formats": ["f8", "u8", "u8", "i8", "f4", "2f2", "2u2", "f2", "u2", "u4", "u4", "u4", "u4", "u4", "u2", "4f4"],
        "offsets": [0, 8, 16, 24, 32, 36, 40, 44, 46, 48, 52, 56, 60, 64, 68, 80],
        "itemsize": 96,
    }
)  # fmt: skip


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_atomics_of_every_type(order: dict[str, Any]) -> None:
    cells = np.zeros(1, CELLS)
    cells["ands"], cells["down"] = 0xFFFFFFFF, 9
    got, seen = run("atomics", cells.view(np.uint8), np.zeros(32, np.int32), **order)
    (found,) = got.view(CELLS)
    wanted = {
        "d": 124, "q": 0xFFFFFFFF, "most": 31 * 0xFFFFFFFFFF, "least": -31, "f": 16, "h": [32, 16], "b": [0x4200, 0x4180],
        "one_half": 32, "one_bfloat": 0x4200, "ands": 0, "ors": 0xFFFFFFFF, "xors": 0xFFFFFFFF, "up": 4, "down": 4,
        "small": 32, "v": [32, 64, 496, 16],
    }  # fmt: skip
    assert {name: found[name].tolist() for name in wanted} == wanted
    assert sorted(seen) == sorted(n % 7 for n in range(32))
