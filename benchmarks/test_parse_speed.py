"""How long the text layer takes on a Triton kernel of 33 KB (pytest-benchmark)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hopsim.isa.ptx.ast import FlatBody, Function, PtxModule
from hopsim.isa.ptx.parser import parse
from hopsim.isa.ptx.printer import print_module
from hopsim.isa.ptx.scope import flatten

FILE = Path(__file__).parents[1] / "tests/data/triton_bf16/mm_tma_bf16_128x128x64_s3_w4_al.ptx"


@pytest.fixture(scope="module")
def text() -> str:
    return FILE.read_text()


@pytest.fixture(scope="module")
def module(text: str) -> PtxModule:
    return parse(text, FILE.name)


def test_parse(benchmark: BenchmarkFixture, text: str) -> None:
    parsed: PtxModule = benchmark(parse, text, FILE.name)
    assert parsed.version == (8, 7)


def test_flatten(benchmark: BenchmarkFixture, module: PtxModule) -> None:
    (entry,) = [item for item in module.items if isinstance(item, Function)]
    body: FlatBody = benchmark(flatten, entry, module)
    assert len(body.instructions) == 543


def test_print(benchmark: BenchmarkFixture, module: PtxModule) -> None:
    printed: str = benchmark(print_module, module)
    assert printed.startswith(".version 8.7\n")
