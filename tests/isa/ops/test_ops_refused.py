"""What PTX has and hopsim has not is told apart from what is wrong."""

from __future__ import annotations

import pytest

import hopsim as hs
from hopsim.errors import PtxError

HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .b16 %h<3>; .reg .b32 %r<3>; .reg .b64 %a; .reg .b128 %q<3>;
.reg .pred %p<3>; .reg .f32 %f<4>;
ld.param.u64 %a, [p];
"""
MMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}"


def kernel(line: str) -> hs.Kernel:
    return hs.loads(f"{HEAD}{line}\nret;\n}}\n")["k"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("atom.global.exch.b128 %q1, [%a], %q2;", "128-bit atomics"),
        ("atom.global.max.noftz.v2.f16 {%h1, %h2}, [%a], {%h1, %h2};", "minima and maxima"),
        ("createpolicy.fractional.L2::evict_first.b64 %a, 1.0;", "createpolicy"),
    ],
)
def test_not_modelled(line: str, why: str) -> None:
    ((number, text, reason),) = kernel(line).unsupported
    assert (number, text) == (9, line)
    assert why in reason


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("atom.global.max.noftz.f16x2 %r1, [%a], %r2;", "max.f16x2 needs .v2, .v4 or .v8"),
        ("atom.global.and.f32 %r1, [%a], %r2;", "and does not take .f32; expected .b32, .b64"),
        ("cp.async.wait_group %r1;", "operand n must be an immediate"),
        ("cp.async.bulk.wait_group.read %r1;", "operand n must be an immediate"),
        ("wgmma.wait_group.sync.aligned %r1;", "operand n must be an immediate"),
        ("setmaxnreg.inc.sync.aligned.u32 %r1;", "operand n must be an immediate"),
        ("cp.async.ca.shared.global [%r1], [%a], %r2;", "operand n must be an immediate"),
        ("cp.async.ca.shared.global [%r1], [%a], %r2, %p1;", "operand n must be an immediate"),
        (f"{MMA}, %a, %a, 1, %r1, 1, 0, 0;", "operand ia must be an immediate"),
        (f"{MMA}, %a, %a, 1, 1, %r1, 0, 0;", "operand ib must be an immediate"),
        (f"{MMA}, %a, %a, 1, 1, 1, %r1, 0;", "operand ta must be an immediate"),
        ("fence.proxy.tensormap::generic.acquire.gpu [%a], %r1;", "operand n must be an immediate"),
        ("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
         "[%a], [%r1], %r2;", "operand n must be an immediate"),
        ("lop3.b32 %r1, %r1, %r1, %r2, %r2;", "operand lut must be an immediate"),
        ("lop3.or.b32 %r1|%p1, %r1, %r1, %r2, %r2, %p2;", "operand lut must be an immediate"),
    ],
)  # fmt: skip
def test_wrong(line: str, why: str) -> None:
    with pytest.raises(PtxError, match=why):
        assert kernel(line).unsupported


@pytest.mark.parametrize(
    "line",
    [
        "wgmma.fence.sync.aligned;",
        "setmaxnreg.inc.sync.aligned.u32 40;",
        "tensormap.replace.tile.rank.global.b1024.b32 [%a], 3;",
    ],
)
def test_what_sm_90a_alone_has_needs_that_target(line: str) -> None:
    assert kernel(line).unsupported == []
    for target in ("sm_90", "sm_70"):
        text = f"{HEAD}{line}\nret;\n}}\n".replace("sm_90a", target)
        with pytest.raises(PtxError, match=f"needs .target sm_90a, got {target}"):
            assert hs.loads(text)["k"].unsupported


def test_code_for_an_older_target_runs() -> None:
    text = f"{HEAD}add.u32 %r1, %r2, 1;\nret;\n}}\n"
    for target in ("sm_90", "sm_80, debug"):
        assert hs.loads(text.replace("sm_90a", target))["k"].unsupported == []
