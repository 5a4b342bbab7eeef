"""The tables of the multi-function unit: packing, and that every kept answer comes out again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hopsim as hs
from hopsim.isa.numerics import mufu
from hopsim.kernels.probes import tables


@given(st.lists(st.integers(0, 2**32 - 1), min_size=2, max_size=40))
def test_packing_loses_nothing(words: list[int]) -> None:
    answers = np.array(words, np.uint32)
    assert np.array_equal(mufu.unpack(mufu.pack(answers)), answers)


@pytest.mark.parametrize("function", mufu.FUNCTIONS)
def test_each_function_gives_its_recorded_answers(function: str) -> None:
    inputs, answers = mufu.inputs(function), mufu.answers(function)
    assert inputs.size == answers.size
    chosen = np.unique(
        np.r_[0:2000, np.arange(0, inputs.size, 4999), inputs.size - 2000 : inputs.size]
    )
    got = getattr(mufu, function)(inputs[chosen].astype(np.float64))
    assert np.array_equal(got.astype(np.float32), answers[chosen])


@pytest.mark.parametrize("function", mufu.FUNCTIONS)
def test_answers_lie_near_the_function(function: str) -> None:
    exact = {
        "rcp": np.reciprocal,
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "ex2": np.exp2,
        "lg2": np.log2,
    }
    inputs = mufu.inputs(function)[::257].astype(np.float64)
    real = exact.get(function, getattr(np, function, None))(inputs)
    bound = {"tanh": 2.0**-10.9, "lg2": 2.0**-22, "sin": 2.0**-20.5}.get(
        function, 2.0**-22.5
    )  # PTX ISA 8.7
    scale = 1.0 if function in ("lg2", "sin") else np.abs(real)
    assert (np.abs(mufu.answers(function)[::257] - real) <= bound * scale).all()


@pytest.mark.parametrize(
    ("function", "inputs"),
    [("sin", [0.5, 2.0, -3.0, 100.0]), ("tanh", [0.1, 9.0]), ("ex2", [-0.25, 3.5])],
)
def test_a_table_can_be_recorded(function: str, inputs: list[float]) -> None:
    given_ = np.array(inputs, np.float32)
    words = tables.record(hs.Gpu(), function, given_)
    again = getattr(mufu, function)(given_.astype(np.float64)).astype(np.float32)
    assert np.array_equal(words.view(np.float32), again)


def test_the_package_carries_every_table() -> None:
    folder = Path(mufu.__file__).parent / "recorded"
    assert {path.stem for path in folder.iterdir()} == {*mufu.FUNCTIONS, "tanh_halves"}
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2_000_000
