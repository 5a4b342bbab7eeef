from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hopsim.errors import LaunchError
from hopsim.isa.program.kernel import loads
from hopsim.kernels.attention.launch import NUMPY_TYPES, build, launch, run
from hopsim.kernels.attention.plan import AttentionProblem
from hopsim.reference.attention import attention, attention_f64
from hopsim.runtime.gpu import Gpu

PTXAS = shutil.which("ptxas")
IN_ORDER = {"schedule": "in-order", "check": False}
Operands = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


def operands(problem: AttentionProblem, seed: int = 0) -> Operands:
    rng = np.random.default_rng(seed)
    kind = NUMPY_TYPES[problem.dtype]
    shapes = [(problem.heads, rows, problem.head_dim) for rows in (problem.seq_q, problem.seq_kv)]
    q, k, v = (rng.standard_normal(shapes[i]).astype(kind) for i in (0, 1, 1))
    return q, k, v


def same(problem: AttentionProblem, block_kv: int = 128, **options: Any) -> str:
    """Run, compare bits with the reference, and return the verdict."""
    q, k, v = operands(problem)
    stages = options.pop("stages", 2)
    done = run(Gpu(), problem, q, k, v, block_kv=block_kv, stages=stages, **options)
    expected = attention(q, k, v, causal=problem.causal, block_kv=block_kv)
    assert np.array_equal(done.o.view(np.uint16), expected.view(np.uint16))
    return done.result.verdict


@pytest.mark.parametrize(
    ("problem", "block_kv"),
    [
        (AttentionProblem(1, 1, 1, 64), 16),
        (AttentionProblem(1, 128, 128, 64), 128),
        (AttentionProblem(2, 130, 90, 64), 32),
        (AttentionProblem(1, 64, 300, 128), 128),
        (AttentionProblem(1, 100, 400, 128, dtype="fp16"), 176),
        (AttentionProblem(2, 200, 200, 64, causal=True), 64),
        (AttentionProblem(1, 256, 256, 128, causal=True), 128),
        (AttentionProblem(1, 100, 333, 64, causal=True, dtype="fp16"), 48),
    ],
)
def test_bits_are_those_of_the_reference(problem: AttentionProblem, block_kv: int) -> None:
    same(problem, block_kv, **IN_ORDER)


def test_rows_that_see_nothing_give_zeros() -> None:
    problem = AttentionProblem(1, 200, 64, 64, causal=True)
    q, k, v = operands(problem)
    done = run(Gpu(), problem, q, k, v, block_kv=64, **IN_ORDER)
    assert not done.o[0, :136].astype(np.float32).any()
    assert done.o[0, 136:].astype(np.float32).all()
    same(problem, 64, **IN_ORDER)


@pytest.mark.parametrize(
    "options",
    [
        {"schedule": "in-order"},
        {"schedule": "adversarial"},
        {"schedule": "timed"},
        *({"schedule": "seeded", "seed": seed} for seed in range(3)),
    ],
    ids=str,
)
@pytest.mark.parametrize("causal", [False, True])
def test_no_order_changes_bits_and_nothing_is_racy(causal: bool, options: dict[str, Any]) -> None:
    assert same(AttentionProblem(1, 140, 150, 64, causal=causal), 32, **options) == "clean"


@pytest.mark.slow
@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("causal", [False, True])
def test_twenty_seeds_give_one_result(causal: bool, head_dim: int) -> None:
    problem = AttentionProblem(1, 80, 100, head_dim, causal=causal)
    for seed in range(20):
        assert same(problem, 32, schedule="seeded", seed=seed) == "clean"


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (r"fence\.proxy\.async\.shared::cta;", ""),
        (r"wgmma\.wait_group\.sync\.aligned +1;", "wgmma.wait_group.sync.aligned 2;"),
        (r"wgmma\.wait_group\.sync\.aligned +0;", "wgmma.wait_group.sync.aligned 1;"),
        (r"@!\S+ bra +WAIT_Q_FULL\w*;", ""),
        (r"@!\S+ bra +WAIT_K_FULL\w*;", ""),
        (r"@!\S+ bra +WAIT_V_FULL\w*;", ""),
        (r"@!\S+ bra +WAIT_K_EMPTY\w*;", ""),
        (r"@!\S+ bra +WAIT_V_EMPTY\w*;", ""),
        (r"@\S+ cp\.async\.bulk\.wait_group +0;", ""),
    ],
)
def test_a_missing_edge_is_found(pattern: str, replacement: str) -> None:
    kernel = build(AttentionProblem(1, 128, 160, 64), block_kv=32)
    text, found = re.subn(pattern, replacement, kernel.ptx)
    assert found
    done = launch(Gpu(), replace(kernel, ptx=text), *operands(kernel.problem), schedule="in-order")
    assert done.result.verdict == "hazard"


def test_the_reference_is_close_to_exact_attention() -> None:
    for causal in (False, True):
        problem = AttentionProblem(2, 70, 200, 64, causal=causal, dtype="fp16")
        q, k, v = operands(problem)
        got = attention(q, k, v, causal=causal, block_kv=64).astype(np.float64)
        exact = attention_f64(q, k, v, causal=causal)
        # fp16 weights and outputs round to 2^-11 of values of order 1
        assert np.abs(got - exact).max() < 2.0**-9


def test_the_block_decides_the_order_and_thereby_some_bits() -> None:
    q, k, v = operands(AttentionProblem(1, 64, 256, 64))
    one, other = (attention(q, k, v, block_kv=block) for block in (64, 128))
    assert (one.view(np.uint16) != other.view(np.uint16)).any()


@pytest.mark.skipif(PTXAS is None, reason="ptxas is not on PATH: the kernel was not assembled")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("head_dim", "block_kv"), [(64, 128), (128, 128), (128, 176)])
def test_ptxas_takes_it_without_spills_or_remarks(
    head_dim: int, block_kv: int, causal: bool, tmp_path: Path
) -> None:
    kernel = build(AttentionProblem(1, 128, 128, head_dim, causal), block_kv=block_kv)
    assert loads(kernel.ptx)[kernel.entry].serialised_wgmma == []
    source = tmp_path / "kernel.ptx"
    source.write_text(kernel.ptx)
    assert PTXAS is not None
    command = [PTXAS, "-arch=sm_90a", "-v", str(source), "-o", str(tmp_path / "kernel.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = done.stdout + done.stderr
    assert done.returncode == 0, report
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in report
    assert "(C7" not in report


def test_work_is_counted_over_what_is_seen() -> None:
    assert AttentionProblem(2, 4, 8, 64).flops == 4 * 2 * 4 * 8 * 64
    assert AttentionProblem(1, 4, 4, 64, causal=True).flops == 4 * 10 * 64
    assert AttentionProblem(1, 4, 2, 64, causal=True).flops == 4 * 3 * 64


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: AttentionProblem(1, 1, 1, 96), "head_dim must be 64 or 128, got 96"),
        (lambda: AttentionProblem(1, 0, 1), "seq_q must be from 1"),
        (lambda: AttentionProblem(1, 1, 1, 64, dtype="e4m3"), "dtype must be bf16 or fp16"),
        (lambda: build(AttentionProblem(1, 1, 1), block_kv=24), "multiple of 16 from 16 to 192"),
        (lambda: build(AttentionProblem(1, 1, 1), stages=4), "bytes of shared memory"),
    ],
)
def test_what_cannot_run_is_refused(make: Any, said: str) -> None:
    with pytest.raises(LaunchError) as error:
        make()
    assert said in str(error.value)


def test_operands_of_another_shape_are_refused() -> None:
    problem = AttentionProblem(1, 64, 64, 64)
    q, k, v = operands(problem)
    with pytest.raises(LaunchError, match=r"K must be bfloat16 \(1, 64, 64\)"):
        run(Gpu(), problem, q, k[:, :32], v)


@pytest.mark.parametrize("causal", [False, True])
def test_it_is_timed_without_values(causal: bool) -> None:
    problem = AttentionProblem(1, 128, 384, 64, causal=causal)
    found = [
        run(Gpu(), problem, *operands(problem), values=values, check=False).result.cycles
        for values in (False, True)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("head_dim", [64, 128])
def test_large_heads_finish_the_exponentials_before_they_wait_for_the_products(
    head_dim: int,
) -> None:
    """A store of the sums keeps ptxas from moving the wait up; with small heads its own order is quicker."""
    ptx = build(AttentionProblem(1, 512, 512, head_dim)).ptx
    loop = ptx[ptx.index("BLOCK_LOOP") :]
    waits = [match.start() for match in re.finditer(r"wgmma\.wait_group\.sync\.aligned", loop)]
    softmax = loop[waits[0] : waits[1]]
    assert softmax.count("ex2.approx") > 64
    assert ("st.shared.v2.f32" in softmax) == (head_dim == 128)
