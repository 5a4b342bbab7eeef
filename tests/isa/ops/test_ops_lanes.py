"""Every spelling of every form computes the same on Python ints, on lanes, and on any mix of the two."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from hopsim.isa.forms.form import Form
from hopsim.isa.types import DTYPES
from tests.isa.ops.assembly import bind, execute, own_forms, sample, spellings

LANES = 32
EDGES = {
    16: (0, 1, 0x8000, 0x7FFF, 0xFFFF, 0x7C00, 0xFC01, 0x7F80, 0x3C00, 0xBC00, 0x0001, 0x80FF),
    32: (0, 1, 3, 31, 32, 33, 0x80000000, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F800000, 0xFFC00001, 0x3F800000,
         0xBFC00000, 0x00000123, 0x80000123, 0x4F000000, 0x3C00BC00),
    64: (0, 1, 1 << 63, (1 << 63) - 1, (1 << 64) - 1, 0x7FF << 52, 0xFFF8 << 48, 0x3FF << 52, 0xC04 << 52, 5),
}  # fmt: skip


def words(rng: np.random.Generator, width: int) -> np.ndarray[Any, Any]:
    if width == 1:
        return rng.integers(0, 2, LANES).astype(np.bool_)
    size = 1 << width
    values = rng.integers(0, size - 1, LANES, dtype=np.uint64, endpoint=True)
    edges = EDGES.get(width, (0, 1, size - 1))
    values[: LANES // 2] = rng.choice(np.array(edges, np.uint64), LANES // 2)
    return rng.permutation(values).astype(DTYPES[width])


def at(value: Any, lane: int) -> int | bool:
    return value[lane].item() if isinstance(value, np.ndarray) else value


def scalar(value: Any) -> bool:
    return type(value) in (int, bool)


@pytest.mark.parametrize("form", own_forms(), ids=lambda form: form.syntax)
def test_ints_and_lanes_agree(form: Form) -> None:
    rng = np.random.default_rng(len(form.syntax))
    chosen = spellings(form)
    assert chosen, "no legal spelling"
    for slots in chosen[:: max(1, len(chosen) // 60)]:
        text, reads = sample(form, slots)
        bound = bind(text)
        assert bound.form is form, text
        arrays = {name: words(rng, width) for name, width in reads.items()}
        written = [d.register for d in bound.destinations if d.register is not None]
        rounds = 3 if len(chosen) > 20 else 8
        expected: list[dict[str, Any]] = []
        for lane in range(LANES if len(chosen) <= 20 else 12):
            outcome = execute(text, {name: at(value, lane) for name, value in arrays.items()})
            results = {r.name: outcome.registers[r.name] for r in written}
            assert all(scalar(value) for value in results.values()), (text, results)
            for register in written:
                assert 0 <= results[register.name] < 1 << register.width_bits, (text, results)
            expected.append(results)
        names = list(arrays)
        subsets = list(itertools.product((True, False), repeat=len(names)))
        for number, kept in enumerate(subsets[:rounds] if any(names) else []):
            if not any(kept):
                continue
            lane = number % len(expected)
            mixed = {
                name: value if keep else at(value, lane)
                for (name, value), keep in zip(arrays.items(), kept, strict=True)
            }
            outcome = execute(text, mixed)
            lanes = range(len(expected)) if all(kept) else (lane,)
            for k in lanes:
                for register in written:
                    got = outcome.registers[register.name]
                    assert scalar(got) or got.dtype == (
                        np.bool_ if register.width_bits == 1 else DTYPES[register.width_bits]
                    ), (text, got)
                    assert at(got, k) == expected[k][register.name], (text, k, kept)
