"""CTAs that do not wait for each other interleave under the seeded and adversarial schedules, so that races between them show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hopsim.kernels.gemm.kernel import build
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.mutate.subjects import gemm_case
from hopsim.runtime.gpu import Gpu
from tests.machine.programs import ADVERSARIAL, IN_ORDER, expect
from tests.machine.programs import build as build_body

SEEDS = [{"schedule": "seeded", "seed": seed} for seed in range(12)]
ORDERS = [*SEEDS, ADVERSARIAL]
COUNT = """
    mov.u32 %r1, 0;
AGAIN:
    {add}
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 4;
    @%p1 bra AGAIN;
    ret;
"""
"""Every thread adds 1 four times to one word."""
UPDATES = {
    "atomic": "red.relaxed.gpu.global.add.u32 [%out], 1;",
    "load and store": "ld.global.u32 %r2, [%out]; add.u32 %r2, %r2, 1; st.global.u32 [%out], %r2;",
}
PUBLISH = """
    mov.u32 %r1, %ctaid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READ;
    {publish}
    ret;
READ:
    ld.acquire.gpu.global.u32 %r2, [%out+4];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra LATE;
    ld.global.u32 %r3, [%out];
    st.global.u32 [%out+8], %r3;
    ret;
LATE:
    st.global.u32 [%out+8], 3;
    ret;
"""
"""CTA 0 writes data and a flag; CTA 1 takes the data if the flag is set, and else writes 3."""
DATA = "st.global.u32 [%out], 5;"
FLAG = "st.release.gpu.global.u32 [%out+4], 1;"


def words(body: str, ctas: int, order: dict[str, Any]) -> list[int]:
    gpu = Gpu()
    out = gpu.array(np.zeros(3, np.uint32))
    gpu.launch(build_body(body), ctas, 1, args=[out], check=False, **order)
    return out.numpy().tolist()


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_atomic_updates_by_several_ctas_are_all_counted(order: dict[str, Any]) -> None:
    assert words(COUNT.format(add=UPDATES["atomic"]), 6, order)[0] == 24


def test_updates_are_lost_when_they_are_not_atomic() -> None:
    body = COUNT.format(add=UPDATES["load and store"])
    assert words(body, 6, IN_ORDER)[0] == 24
    found = [words(body, 6, order)[0] for order in ORDERS]
    assert sum(count < 24 for count in found) > 8
    assert found[-1] < 24
    assert len(set(found)) > 4
    assert found == [words(body, 6, order)[0] for order in ORDERS]


def test_a_flag_is_seen_before_data_that_is_written_after_it() -> None:
    right, wrong = PUBLISH.format(publish=DATA + FLAG), PUBLISH.format(publish=FLAG + DATA)
    assert words(wrong, 2, IN_ORDER)[2] == 5
    assert {words(right, 2, order)[2] for order in ORDERS} == {3, 5}
    seeds = [{"schedule": "seeded", "seed": seed} for seed in range(48)]
    assert {words(wrong, 2, order)[2] for order in seeds} == {0, 3, 5}


# --- GEMMs whose CTAs work together -----------------------------------------------------------------

STREAM_K = build(
    "stream-k", GemmProblem(128, 32, 96, "bf16", "f32"), (64, 16, 32), 2, resident_ctas=3
)
ALL_WRITTEN = "bar.sync                3, 128;                             // all sums are written"
SIGNAL = "st.release.gpu.global.b32 [%flag], 1;"


def product(
    before: str, after: str, order: dict[str, Any], check: bool = False
) -> tuple[bytes, set[str]]:
    """Return C of a changed stream-k GEMM, and the rules that a checked run broke."""
    text = STREAM_K.ptx.replace(before, after)
    case = gemm_case(replace(STREAM_K, ptx=text))
    gpu = Gpu()
    made = case.arguments(gpu)
    result = gpu.launch(
        case.kernel(), case.grid, case.block, case.cluster, made.args, case.shared_bytes,
        check=check, **order,
    )  # fmt: skip
    return made.arrays["c"].numpy().tobytes(), {one.rule for one in result.hazards}


def test_stream_k_gives_the_same_bits_under_every_order() -> None:
    right, rules = product("", "", IN_ORDER, check=True)
    assert rules == set()
    assert {product("", "", order)[0] for order in ORDERS} == {right}


def test_a_flag_that_does_not_wait_for_the_sums_gives_wrong_sums() -> None:
    right, _ = product("", "", IN_ORDER)
    assert any(product(ALL_WRITTEN, "", order)[0] != right for order in ORDERS)
    assert product(ALL_WRITTEN, "", IN_ORDER, check=True)[1]


def test_a_flag_without_release_is_found_by_the_checker_only() -> None:
    # Plain stores are not reordered (DEVIATIONS.md): the sums come out right, and the model says that they need not.
    right, _ = product("", "", IN_ORDER)
    for order in (IN_ORDER, SEEDS[0], SEEDS[4], ADVERSARIAL):
        bits, rules = product(SIGNAL, SIGNAL.replace(".release", ".relaxed"), order, check=True)
        assert bits == right
        assert "HS216" in rules


@pytest.mark.parametrize("order", [IN_ORDER, SEEDS[1], ADVERSARIAL], ids=str)
def test_ctas_that_run_at_once_are_on_different_sms(order: dict[str, Any]) -> None:
    gpu = Gpu()
    out = gpu.array(np.full(140, 999, np.uint32))
    body = "mov.u32 %r1, %smid; st.global.u32 [%mine], %r1;"
    gpu.launch(build_body(body), 140, 1, args=[out], check=False, **order)
    assert out.numpy().tolist() == [cta % 132 for cta in range(140)]


@pytest.mark.parametrize("news", ["add.u32 %r2, %r2, 1;", "mov.u32 %r2, %clock;"])
def test_a_cta_that_counts_while_it_waits_lets_the_next_one_start(news: str) -> None:
    body = f"""
    mov.u32 %r1, %ctaid.x;
    setp.eq.u32 %p1, %r1, 1;
    @%p1 bra SET;
    LOOK:
    {news}
    ld.acquire.gpu.global.u32 %r3, [%out];
    setp.eq.u32 %p2, %r3, 0;
    @%p2 bra LOOK;
    ret;
    SET:
    st.release.gpu.global.u32 [%out], 1;
    """
    expect(body, [1], orders=(IN_ORDER, *ORDERS), grid=2, block=1)
