from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hopsim.config import load
from hopsim.hw.timing.costs import CostTable, SegmentCost
from hopsim.hw.timing.heads import Head
from hopsim.hw.timing.paths import PathCosts
from hopsim.hw.timing.sequences import sequence_of
from hopsim.hw.timing.stalls import Stall
from hopsim.isa.catalog import FORMS
from hopsim.kernels.probes.spelling import is_scalar, slots_of, spell
from tests.hw.timing.kernels import kernel

CONFIG = load("h100-sxm")
LATENCY = CONFIG.issue.latency_cycles
INTERVAL = CONFIG.issue.interval_cycles
BARRIER_CYCLES = CONFIG.barrier.bar_sync_latency_cycles
WARP_CYCLES = CONFIG.barrier.bar_sync_warp_cycles


def table(body: str) -> tuple[Any, list[SegmentCost]]:
    program = kernel(body).program(True)
    return program, CostTable(CONFIG, program).segments


def test_independent_instructions_issue_at_the_rate_of_their_pipe() -> None:
    _, costs = table("add.f32 %f1,%f0,%f0; add.f32 %f2,%f0,%f0; add.f32 %f3,%f0,%f0; ret;")
    # fp32 issues every cycle; the branch after the third one.
    assert costs[0].span == 3 * INTERVAL["fp32"] + 1
    _, costs = table("add.u32 %r1,%r0,%r0; add.u32 %r2,%r0,%r0; add.u32 %r3,%r0,%r0; ret;")
    assert costs[0].span == 2 * INTERVAL["alu"] + 2
    assert costs[0].slots == 3 * INTERVAL["alu"]


def test_a_chain_takes_its_latencies() -> None:
    _, costs = table("add.u32 %r1,%r0,%r0; add.u32 %r1,%r1,%r1; add.u32 %r1,%r1,%r1; ret;")
    assert costs[0].span == 2 * LATENCY["alu"] + 2
    assert costs[0].instructions == 4
    assert costs[0].reads == {
        costs[0].late[0][0] if costs[0].late else next(iter(costs[0].reads)): 0.0
    }


def test_wide_integer_arithmetic_is_two_instructions() -> None:
    _, costs = table("add.s64 %rd1,%rd0,%rd0; ret;")
    assert costs[0].instructions == 3


SEQUENCES = {
    "div_s32": "div.s32 %r1,%r0,%r2;", "div_u32": "div.u32 %r1,%r0,%r2;", "rem_s32": "rem.s32 %r1,%r0,%r2;",
    "rem_u32": "rem.u32 %r1,%r0,%r2;", "div_64": "rem.s64 %rd1,%rd0,%rd2;", "div_f32": "div.rn.f32 %f1,%f0,%f2;",
    "rcp_f32": "rcp.rn.f32 %f1,%f0;", "sqrt_f32": "sqrt.rn.f32 %f1,%f0;", "div_f64": "div.rn.f64 %d1,%d0,%d2;",
    "div_approx": "div.approx.f32 %f1,%f0,%f2;", "div_full": "div.full.f32 %f1,%f0,%f2;",
    "rcp_approx": "rcp.approx.f32 %f1,%f0;", "sqrt_approx": "sqrt.approx.f32 %f1,%f0;",
    "rsqrt_approx": "rsqrt.approx.f32 %f1,%f0;", "ex2_approx": "ex2.approx.f32 %f1,%f0;",
    "lg2_approx": "lg2.approx.f32 %f1,%f0;", "sin_approx": "sin.approx.f32 %f1,%f0;",
    "div_approx_ftz": "div.approx.ftz.f32 %f1,%f0,%f2;", "div_full_ftz": "div.full.ftz.f32 %f1,%f0,%f2;",
    "rcp_f64": "rcp.rn.f64 %d1,%d0;", "sqrt_f64": "sqrt.rn.f64 %d1,%d0;", "rsqrt_f64": "rsqrt.approx.f64 %d1,%d0;",
    "extreme_f64": "min.f64 %d1,%d0,%d2;", "mul_lo_64": "mul.lo.s64 %rd1,%rd0,%rd2;",
    "mul_hi_s64": "mul.hi.s64 %rd1,%rd0,%rd2;", "mul_hi_u64": "mul.hi.u64 %rd1,%rd0,%rd2;",
    "abs_s64": "abs.s64 %rd1,%rd0;", "brev_b64": "brev.b64 %rd1,%rd0;", "clz_b32": "clz.b32 %r1,%r0;",
    "fns": "fns.b32 %r1,%r0,0,%r2;", "vabsdiff2": "vabsdiff2.u32.u32.u32 %r1,%r0,%r2,%r3;",
    "vabsdiff4": "vabsdiff4.s32.s32.s32 %r1,%r0,%r2,%r3;", "round_tf32": "cvt.rna.tf32.f32 %r1,%r0;",
    "approx_f16x2": "ex2.approx.f16x2 %r1,%r0;",
    "mbarrier_init": "mbarrier.init.shared.b64 [%r0],1;", "prefetch_tensormap": "prefetch.tensormap [%rd0];",
    "bulk_copy": "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
    "[%r1],[%rd0,{%r2,%r3}],[%r0];",
}  # fmt: skip
DOUBLES = ".reg .b64 %d<4>;"
AGAIN = "_again"
BEFORE = "{} %r4,%r3,%r2;"
"""A division by the divisor of those above."""


def before(name: str) -> str:
    """Return a division that leaves the reciprocal of its divisor."""
    first = name.removesuffix(AGAIN)
    return "" if first == name else BEFORE.format(SEQUENCES[first].split()[0])


@pytest.mark.parametrize("name", CONFIG.issue.sequence)
def test_what_ptxas_makes_several_instructions_of_takes_their_slots(name: str) -> None:
    first = name.removesuffix(AGAIN)
    program, costs = table(f"{DOUBLES} {before(name)} {SEQUENCES[first]} ret;")
    instructions = CONFIG.issue.sequence[name]
    if first != name:
        instructions += CONFIG.issue.sequence[first]
    # And the return.
    assert costs[0].instructions + sum(cost.instructions for cost in costs[1:]) == instructions + 1
    slots = instructions / CONFIG.issue.issue_rate
    if name == "mbarrier_init":
        slots = CONFIG.mbarrier.init_interval_cycles
    slots += 1 / CONFIG.issue.issue_rate
    if any(bound.form.unit == "mufu" for segment in program for bound in segment.instructions):
        # The pipe of the function itself may take longer than all that is issued.
        slots = max(slots, CONFIG.issue.interval_cycles["mufu"])
    assert sum(cost.slots for cost in costs) == pytest.approx(slots)


def test_every_spelling_of_a_scalar_instruction_has_the_numbers_of_its_sequence() -> None:
    """Also `div.rz.ftz.f32`, the routine of which is that of `div.rn.f32`."""
    lacking: set[str | None] = set()
    for form in filter(is_scalar, FORMS):
        for slots in slots_of(form):
            opcode = tuple(spell(form, slots).opcode.split("."))
            bound: Any = SimpleNamespace(instruction=SimpleNamespace(opcode=opcode), form=form)
            lacking.add(sequence_of(bound))
    assert (
        lacking - {None}
        <= CONFIG.issue.sequence.keys() & CONFIG.issue.sequence_latency_cycles.keys()
    )


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
def test_a_division_that_rounds_takes_the_same_with_subnormal_numbers_as_zeros(
    rounding: str,
) -> None:
    _, costs = table(f"div.{rounding}.ftz.f32 %f1,%f0,%f2; ret;")
    assert sum(cost.instructions for cost in costs) == CONFIG.issue.sequence["div_f32"] + 1


@pytest.mark.parametrize("name", CONFIG.issue.sequence_latency_cycles)
def test_a_result_of_a_sequence_is_waited_for(name: str) -> None:
    first = name.removesuffix(AGAIN)
    one = SEQUENCES[first]
    result = one.split()[1].split(",")[0]
    kind, prefix = (
        ("b64", result[:-1]) if result[1] in "dr" and name.endswith("64") else ("b32", result[:-1])
    )
    move = f"mov.{kind} {prefix}0,{result};"
    # The second one's divisor is new, or the first one's.
    second = one if first != name else one.replace("%r2;", "%r3;")
    _, costs = table(f"{DOUBLES} {one} {move} {second} {move} ret;")
    _, single = table(f"{DOUBLES} {one} {move} ret;")
    latency = CONFIG.issue.sequence_latency_cycles[name] + LATENCY["move"]
    assert costs[0].span - single[0].span == latency


@pytest.mark.parametrize(
    "between", ["add.s32 %r2,%r2,1;", "rem.u32 %r2,%r0,%r2;", "rem.s32 %r2,%r0,%r2;"]
)
def test_a_divisor_that_changed_is_divided_by_anew(between: str) -> None:
    rem = SEQUENCES["rem_s32"]
    _, costs = table(f"{rem} {between} {rem} ret;")
    lengths = CONFIG.issue.sequence
    middle = {"add": 1, "rem.u32": lengths["rem_u32"], "rem.s32": lengths["rem_s32_again"]}
    expected = next(length for name, length in middle.items() if between.startswith(name))
    assert costs[0].instructions == 2 * lengths["rem_s32"] + expected + 1


@pytest.mark.parametrize(
    "approximate", ["ex2.approx.ftz.f32 %f1,%f0;", "rcp.approx.ftz.f32 %f1,%f0;"]
)
def test_approximate_functions_are_one_instruction(approximate: str) -> None:
    _, costs = table(f"{approximate} ret;")
    assert costs[0].instructions == 2


ARRIVE = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
INIT = "mbarrier.init.shared.b64 [%r0],1;"
FENCE = CONFIG.fence


def arrivals(body: str, warps: int) -> list[float]:
    """Return what each arrival of the cluster barrier waits for writes."""
    program = kernel(f"{body} ret;").program(True)
    costs = CostTable(CONFIG, program, 32 * warps).segments
    return [
        cost.block
        for segment, cost in zip(program, costs, strict=True)
        if segment.instructions and "arrive" in segment.instructions[0].instruction.opcode
    ]


@pytest.mark.parametrize("warps", [1, FENCE.warps, FENCE.warps + 1, 16])
def test_so_many_warps_share_the_fence_of_a_cluster_barrier(warps: int) -> None:
    again = FENCE.again_cycles if warps > FENCE.warps else 0
    assert arrivals(ARRIVE, warps) == [FENCE.cluster_cycles + again]


def test_the_barrier_after_the_initialisation_waits_for_the_thread_that_made_it() -> None:
    once, late = FENCE.cluster_cycles, FENCE.cluster_cycles + FENCE.again_cycles
    assert arrivals(INIT + ARRIVE * 2, 4) == [late, once]
    assert arrivals(ARRIVE + INIT + ARRIVE, 4) == [once, late]
    # A single warp waits for nobody, and more than share a fence wait in any case.
    assert arrivals(INIT + ARRIVE, 1) == [once]
    assert arrivals(INIT + ARRIVE, FENCE.warps + 1) == [late]


def test_late_results_are_kept_when_a_successor_reads_them() -> None:
    body = "div.u32 %r1,%r0,%r2; bra L; L: add.u32 %r3,%r1,%r1; st.shared.u32 [%r3],%r3; ret;"
    _, costs = table(body)
    assert [stall for _, _, stall in costs[0].late] == [Stall.SHORT_SCOREBOARD]
    _, costs = table(body.replace("add.u32 %r3,%r1,%r1", "add.u32 %r3,%r0,%r0"))
    assert costs[0].late == ()


@pytest.mark.parametrize(
    ("instruction", "head", "block", "private"),
    [
        ("fence.proxy.async;", Head.FIXED, CONFIG.fence.proxy_async_cycles, True),
        (
            "fence.proxy.async.shared::cta;",
            Head.PUBLISH,
            CONFIG.fence.proxy_async_shared_cycles,
            True,
        ),
        ("fence.acq_rel.cluster;", Head.FIXED, CONFIG.fence.cluster_cycles, True),
        ("membar.cta;", Head.FIXED, CONFIG.fence.cta_cycles, True),
        ("wgmma.fence.sync.aligned;", Head.FIXED, CONFIG.tensor.fence_cycles, True),
        ("wgmma.commit_group.sync.aligned;", Head.COMMIT, CONFIG.tensor.commit_cycles, True),
        ("wgmma.wait_group.sync.aligned 0;", Head.FIXED, CONFIG.tensor.wait_cycles, True),
        # The return passes meanwhile.
        ("bar.sync 0;", Head.FIXED, BARRIER_CYCLES + WARP_CYCLES - 1, False),
        ("bar.sync 1, 128;", Head.FIXED, BARRIER_CYCLES + 4 * WARP_CYCLES - 1, False),
        ("barrier.cluster.arrive.aligned;", Head.FIXED, CONFIG.fence.cluster_cycles, False),
        ("barrier.cluster.arrive.relaxed.aligned;", Head.FIXED, 0, False),
        (
            "barrier.cluster.wait.aligned;",
            Head.FIXED,
            CONFIG.barrier.cluster_barrier_latency_cycles,
            False,
        ),
        (
            "mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%r0];",
            Head.ARRIVE,
            CONFIG.fence.cluster_cycles,
            False,
        ),
        ("bar.arrive 1, 64;", Head.FIXED, 0, False),
        ("mbarrier.try_wait.parity.shared::cta.b64 %p0,[%r0],%r1;", Head.BARRIER_WAIT, 0, True),
        ("mbarrier.test_wait.parity.shared::cta.b64 %p0,[%r0],%r1;", Head.BARRIER_WAIT, 0, False),
        ("mbarrier.arrive.shared::cta.b64 %rd0,[%r0];", Head.ARRIVE, 0, False),
        ("ld.shared.u32 %r1,[%r0];", Head.MEMORY, 0, False),
        ("cp.async.commit_group;", Head.COPY, CONFIG.cp_async.commit_cycles, True),
    ],
)
def test_heads(instruction: str, head: Head, block: float, private: bool) -> None:
    _, costs = table(f"{instruction} ret;")
    found = next(cost for cost in costs if cost.head is not Head.NONE)
    assert (found.head, found.block, found.private) == (head, block, private)


@pytest.mark.parametrize(
    ("instruction", "unit"),
    [
        ("cvt.rn.bf16x2.f32 %r1,%f1,%f2;", "convert"),
        ("cvt.rni.s32.f32 %r1,%f1;", "mufu"),
        ("cvt.rn.f32.u32 %f2,%r1;", "mufu"),
        ("cvt.u32.u16 %r1,%h0;", "convert"),
    ],
)
def test_conversions_of_integers_to_floats_take_the_slow_pipe(instruction: str, unit: str) -> None:
    _, costs = table(
        f".reg .b16 %h<2>; {instruction} shl.b32 %r2,%r1,%r1; add.f32 %f3,%f2,%f2; ret;"
    )
    assert LATENCY[unit] <= costs[0].span <= LATENCY[unit] + 4


def test_wgmma_issue_depends_on_where_a_is() -> None:
    acc = ", ".join(f"%acc{k}" for k in range(32))
    shape = "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16"
    _, costs = table(f"{shape} {{{acc}}}, %rd0, %rd1, %p0, 1, 1, 0, 0; ret;")
    assert costs[0].block == CONFIG.tensor.issue_ss_cycles
    _, costs = table(f"{shape} {{{acc}}}, {{%r0,%r1,%r2,%r3}}, %rd1, %p0, 1, 1, 0; ret;")
    assert costs[0].block == CONFIG.tensor.issue_rs_cycles


def test_a_woken_wait_pays_no_test() -> None:
    program, costs = table(
        "W: mbarrier.try_wait.parity.shared::cta.b64 %p0,[%r0],%r1; @!%p0 bra W; ret;"
    )
    wait = next(k for k, cost in enumerate(costs) if cost.head is Head.BARRIER_WAIT)
    after = program[wait].successors[0]
    paths = PathCosts(CONFIG, costs)
    tested = paths.work_out([wait], after, resumed=False, warps=1)
    woken = paths.work_out([wait], after, resumed=True, warps=1)
    assert tested is not None
    assert woken is not None
    assert (
        tested.total - woken.total == CONFIG.mbarrier.try_wait_latency_cycles - costs[wait].head_use
    )
    assert dict(tested.stalls)[Stall.MBARRIER] == tested.total - woken.total
    again = paths.work_out([wait], wait, resumed=True, warps=1)
    assert again is not None
    assert again.total == woken.total + LATENCY["branch"]
    # Of several warps each takes its turn to test; who is woken does not test.
    four, four_woken = (
        paths.work_out([wait], after, resumed, warps=4) for resumed in (False, True)
    )
    assert four is not None
    assert four_woken is not None
    assert four.total - tested.total == pytest.approx(3 * CONFIG.mbarrier.try_wait_warp_cycles)
    assert four_woken.total == woken.total


def test_memory_paths_are_left_to_the_run() -> None:
    _, costs = table("ld.shared.u32 %r1,[%r0]; ret;")
    assert PathCosts(CONFIG, costs).work_out(range(len(costs)), 0, False, 1) is None


def test_a_product_of_fp8_values_is_several_instructions() -> None:
    shape = "mma.sync.aligned.m16n8k{}.row.col.f32.{}.{}.f32 {{%f0,%f1,%f2,%f3}},{{%r0,%r1,%r2,%r3}},{{%r4,%r5}},{{%f0,%f1,%f2,%f3}}; ret;"
    _, half = table(shape.format(16, "bf16", "bf16"))
    for kind in ("e4m3", "e5m2"):
        _, eighth = table(shape.format(32, kind, kind))
        more = eighth[0].instructions - half[0].instructions
        assert more == CONFIG.mma_sync.instructions[kind] - 1
        assert eighth[0].slots - half[0].slots == more
        rate = CONFIG.mma_sync.flop_per_clk
        assert eighth[0].mma == (kind, 2 * 16 * 8 * 32, 4)
        assert rate["bf16"] / 2 < rate[kind] < rate["bf16"]


@pytest.mark.parametrize(
    "body", ["st.release.gpu.global.u32 [%rd0],%r0;", "red.release.gpu.global.add.u32 [%rd0],%r0;"]
)
def test_a_release_is_a_fence_before_its_store(body: str) -> None:
    _, costs = table(f"{body} ret;")
    assert (costs[0].block, costs[0].block_stall) == (CONFIG.fence.gpu_cycles, Stall.MEMBAR)
    assert costs[0].fences
    _, plain = table(f"{body.replace('release', 'relaxed')} ret;")
    assert plain[0].block == 0


@pytest.mark.parametrize(
    ("form", "counts", "product"),
    [
        ("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", (2, 1, 4), ("tf32", 1024, 2)),
        ("mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32", (1, 1, 2), ("s8", 4096, 1)),
        ("mma.sync.aligned.m16n8k64.row.col.s32.u4.s4.s32", (4, 2, 4), ("u4", 16384, 4)),
        ("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", (4, 2, 4), ("b1", 65536, 4)),
        ("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc", (4, 2, 4), ("b1_xor", 65536, 4)),
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32", (4, 4, 4), ("sparse_bf16", 4096, 4)),
        ("mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", (2, 2, 4), ("sparse_tf32", 1024, 2)),
    ],
)  # fmt: skip
def test_what_a_product_is_to_the_pipe(
    form: str, counts: tuple[int, int, int], product: tuple[str, int, int]
) -> None:
    kind = "f" if ".f32." in form else "r"
    lists = [
        "{" + ",".join(f"%{letter}{index}" for index in range(count)) + "}"
        for letter, count in zip((kind, "r", "r", kind), (counts[2], *counts), strict=True)
    ]
    sparse = ",%r9,0" if ".sp." in form else ""
    _, costs = table(f"{form} {','.join(lists)}{sparse}; ret;")
    assert costs[0].mma == product
    assert costs[0].instructions >= CONFIG.mma_sync.instructions.get(product[0], 1)


def test_a_double_product_of_eight_rows_is_one_of_sixteen() -> None:
    _, costs = table(
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd0,%fd1},{%fd2},{%fd3},{%fd0,%fd1}; ret;"
    )
    assert costs[0].mma == ("f64", 2 * 16 * 8 * 4, 2)
