"""How long the text layer takes on a Triton kernel of 33 KB, and on one kernel among many functions (pytest-benchmark)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hopsim.isa.program.kernel import Module
from hopsim.isa.ptx.ast import Function, PtxModule
from hopsim.isa.ptx.parser import parse
from hopsim.isa.ptx.printer import print_module
from hopsim.isa.ptx.scope import Flattened, flatten

FILE = Path(__file__).parents[1] / "tests/data/triton_bf16/mm_tma_bf16_128x128x64_s3_w4_al.ptx"
CALLS = Path(__file__).parents[1] / "tests/data/nvcc/calls.ptx"


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
    flat: Flattened = benchmark(flatten, entry, module)
    assert len(flat.body.instructions) == 543


def test_print(benchmark: BenchmarkFixture, module: PtxModule) -> None:
    printed: str = benchmark(print_module, module)
    assert printed.startswith(".version 8.7\n")


def test_one_indirect_call_among_many_functions(benchmark: BenchmarkFixture) -> None:
    """What a kernel does not use must cost it little: here 2,000 functions that no pointer is taken of."""
    text = CALLS.read_text()
    one = """
.func other_{0}() {{
    .reg .b32 %r<3>;
    mov.u32 %r1, %tid.x;
    add.s32 %r2, %r1, {0};
    ret;
}}
"""
    tree = parse(text + "".join(one.format(number) for number in range(2000)), CALLS.name)
    fresh: list[object] = benchmark(lambda: Module(tree)["calls"].unsupported)
    assert not fresh
