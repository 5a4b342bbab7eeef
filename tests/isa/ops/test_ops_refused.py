"""What PTX has and hopsim has not is told apart from what is wrong."""

from __future__ import annotations

import pytest

import hopsim as hs
from hopsim.errors import PtxError

HEAD = """.version 8.7
.target sm_90a
.address_size 64
.global .b32 g;
.visible .entry k(.param .u64 p)
{
.reg .b16 %h<3>; .reg .b32 %r<3>; .reg .b64 %a; .reg .b128 %q<3>;
.reg .pred %p<3>; .reg .f32 %f<4>; .reg .s32 %i<3>;
ld.param.u64 %a, [p];
"""
MMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}"

PRODUCT = "wgmma.mma_async.sync.aligned"


def kernel(line: str) -> hs.Kernel:
    return hs.loads(f"{HEAD}{line}\nret;\n}}\n")["k"]


@pytest.mark.parametrize(
    ("line", "what", "hint"),
    [
        ("mul.f33 %f0, %f1, %f1;", "mul.f33: PTX has no type .f33", "did you mean .f32?"),
        ("add.s100 %r0, %r1, %r1;", "add.s100: PTX has no type .s100", "did you mean .s64?"),
        (
            "ld.global.v3.f32 {%f0, %f1, %f2}, [%a];",
            "ld.global.v3.f32: a vector has 2, 4 or 8 elements, got .v3",
            "use .v2 or .v4",
        ),
        (
            MMA.replace("n8", "n12") + ", %a, %a, 1, 1, 1, 0, 0;",
            f"{PRODUCT}.m64n12k16.f32.bf16.bf16: the N of m64n12k16 must be a multiple of 8 up to 256, got 12",
            "did you mean .m64n8k16 or .m64n16k16?",
        ),
        (
            MMA.replace("n8", "n264") + ", %a, %a, 1, 1, 1, 0, 0;",
            f"{PRODUCT}.m64n264k16.f32.bf16.bf16: the N of m64n264k16 must be a multiple of 8 up to 256, got 264",
            "did you mean .m64n256k16?",
        ),
    ],
)
def test_what_no_ptx_can_have_is_wrong(line: str, what: str, hint: str) -> None:
    (error,) = kernel(line).examined.errors
    assert (error.what, error.hint, error.line) == (what, hint, 10)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "ld.globl.f32 %f0, [%a];",
            "ld.globl.f32 is wrong PTX or not modelled: no form of ld has .globl; did you mean .global?",
        ),
        ("atom.global.max.noftz.v2.f16 {%h1, %h2}, [%a], {%h1, %h2};", "minima and maxima"),
        ("createpolicy.cvt.L2.b64 %a, %a;", "createpolicy"),
        (
            "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%a, {%f0, %f1}];",
            "tex.2d.v4.f32.f32 is not modelled: textures; global",
        ),
        (
            "sust.b.2d.b32.trap [%a, {%r1, %r2}], {%r0};",
            "surfaces; global memory is read and written by ld and st",
        ),
        (
            "{ .shared .b32 s[4]; ld.shared.b32 %r1, s[%r2]; }",
            "s[%r2], an index in a register, is not modelled",
        ),
        (
            "{ .shared .b32 s[4]; mov.b32 %r1, s[%r2+1]; }",
            "s[%r2], an index in a register, is not modelled",
        ),
        (
            "fence.acquire.sync_restrict::shared::cluster.cluster;",
            "is not modelled: fence.acquire.cluster orders more",
        ),
        (
            "fence.release.sync_restrict::shared::cta.cluster;",
            "is not modelled: fence.release.cluster orders more",
        ),
        ("ld.global.b64 %q1, [%a];", "%q1 of .b128 filled by .b64 is not modelled; load into .b64"),
        ("alloca.u64 %a, %a, 16;", "memory of a size that is known at run time only"),
        ("vadd4.s32.s32.s32.sat %r0, %r1, %r1, %r2;", "only vabsdiff2 and vabsdiff4"),
    ],
)
def test_not_modelled(line: str, why: str) -> None:
    ((number, text, reason),) = kernel(line).unsupported
    assert (number, text) == (10, line)
    assert why in reason


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("atom.global.max.noftz.f16x2 %r1, [%a], %r2;", "max.f16x2 needs .v2, .v4 or .v8"),
        ("atom.global.and.f32 %r1, [%a], %r2;", "and does not take .f32; expected .b32, .b64"),
        ("atom.global.and.b128 %q1, [%a], %q2;", "and does not take .b128; expected .b32, .b64"),
        ("atom.global.exch.b128 {%a, %a}, [%a], {%a, %a};", "operand d is .b128, but register %a is .b64"),
        ("ld.global.v2.b64 %q1, [%a];", "operand d is .b64, but register %q1.lo is .b128"),
        ("ld.global.v2.b128 {%q1, %q2}, [%a];", "a vector of 256 bits"),
        ("st.global.b128 [%a], %a;", "operand b must have 2 items, got 1"),
        ("add.u64 %a, %q1, %a;", "operand a must be a register or an immediate"),
        ("add.u64 %a, %q1.x, %a;", "'%q1' has no component '.x'"),
        ("vabsdiff4.u32.u32.u32.sat.add %r1, %r1, %r1, %r2;", ".sat and .add exclude each other"),
        ("add.u64 %a, %a, g;", "operand b must be a register; mov takes the address of g into one"),
        ("st.global.b64 [%a], g;", "operand b must be a register; mov takes the address of g"),
        ("isspacep.global %p1, g;", "operand a must be a register"),
        ("cvta.to.global.u64 %a, g;", "operand a must be a register"),
        ("cvt.rna.tf32.f32 %f1, %f2;", "operand d is .tf32, but register %f1 is .f32"),
        ("ld.global.f16 %h1, [%a];", r"\.f16 cannot be loaded or stored as such; \.b16 can"),
        ("st.global.bf16x2 [%a], %r1;", r"\.bf16x2 cannot be loaded or stored as such; \.b32 can"),
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
        ("add.u32 %r1, %tid.x, %r2;", "operand a is special register %tid.x, which only mov and cvt of integers read"),
        ("cvt.rn.f32.u32 %f1, %tid.x;", "which only mov and cvt of integers read"),
        ("st.global.b32 [%a], %laneid;", "operand b is special register %laneid"),
        ("mov.u32 %r1, %f1;", "operand a is .u32, but register %f1 is .f32"),
        ("add.f32 %f1, %i1, %f1;", "operand a is .f32, but register %i1 is .s32"),
        ("add.rn.f16x2 %i1, %i1, %i1;", "is .f16x2, but register %i1 is .s32"),
        ("ld.global.u32 %f1, [%a];", "operand d is .u32, but register %f1 is .f32"),
        ("ld.shared.b32 %r1, [g];", "operand a is in .shared, but g is a .global variable"),
        ("atom.shared.add.u32 %r1, [g], %r2;", "operand a is in .shared, but g is a .global variable"),
        ("ld.acquire.global.b32 %r1, [%a];", ".acquire needs a scope: .cta, .cluster, .gpu, .sys"),
        ("st.relaxed.global.b32 [%a], %r1;", ".relaxed needs a scope"),
        ("ld.volatile.gpu.global.b32 %r1, [%a];", ".gpu needs .relaxed or .acquire"),
        ("st.gpu.global.b32 [%a], %r1;", ".gpu needs .relaxed"),
        ("ld.mmio.global.b32 %r1, [%a];", ".mmio needs .relaxed.sys"),
        ("ld.mmio.relaxed.gpu.global.b32 %r1, [%a];", ".mmio needs .relaxed.sys"),
        ("st.mmio.release.sys.global.b32 [%a], %r1;", ".mmio needs .relaxed.sys"),
        ("ld.mmio.relaxed.sys.shared.b32 %r1, [%r0];", ".mmio cannot be applied to .shared"),
        ("ld.mmio.relaxed.sys.global.v2.b32 {%r1, %r2}, [%a];", ".mmio and .v2 exclude each other"),
        ("ld.mmio.relaxed.sys.global.L2::128B.b32 %r1, [%a];", ".mmio and .L2::128B exclude each other"),
        ("mov.v4.b64 {%a, %a, %a, %a}, {%a, %a, %a, %a};", "a vector of 256 bits; the widest is 128 bits"),
        ("mov.v2.b32 {%r0, %r1}, %tid;", "operand a must have 2 items, got 4"),
        ("mov.v2.b64 {%a, %a}, {g, 0};", "operand a holds the address of g"),
        ("ld.volatile.local.b32 %r1, [%r2];", ".volatile cannot be applied to .local"),
        ("ld.relaxed.gpu.const.b32 %r1, [%a];", ".relaxed cannot be applied to .const"),
        ("ld.relaxed.gpu.global.ca.b32 %r1, [%a];", ".relaxed and the cache operator .ca exclude each other"),
        ("ld.shared.nc.b32 %r1, [%r2];", ".nc is of weak loads from .global, not .shared"),
        ("ld.nc.b32 %r1, [%a];", ".nc is of weak loads from .global, not .generic"),
        ("ld.global.nc.cv.b32 %r1, [%a];", ".nc is of weak loads from .global, not .cv"),
        ("ld.weak.global.nc.b32 %r1, [%a];", ".nc is of weak loads from .global, not .weak"),
        ("ld.global.wb.b32 %r1, [%a];", ".wb is of stores"),
        ("st.global.lu.b32 [%a], %r1;", ".lu is of loads"),
        ("st.global.L2::128B.b32 [%a], %r1;", ".L2::128B is of loads"),
        ("ld.shared.L1::no_allocate.b32 %r1, [%r2];", ".L1::no_allocate cannot be applied to .shared"),
        ("ld.const.L2::128B.b32 %r1, [%a];", ".L2::128B cannot be applied to .const"),
        ("ld.shared.L2::cache_hint.b32 %r1, [%r2], %a;", ".L2::cache_hint cannot be applied to .shared"),
        ("ld.global.ca.L1::evict_last.b32 %r1, [%a];", ".L1::evict_last and .ca exclude each other"),
        ("ld.global.L2::evict_first.b32 %r1, [%a];", "which sm_90a lacks"),
        ("red.global.add.f16 [%a], %h1;", ".add.f16 needs .noftz"),
        ("red.global.add.bf16x2 [%a], %r1;", ".add.bf16x2 needs .noftz"),
        ("red.global.add.ftz.f32 [%a], %f1;", ".add.f32 takes no .ftz"),
        ("atom.global.add.s64 %a, [%a], %a;", "add does not take .s64"),
        ("mov.u64 %a, %laneid;", "operand a is .u64, but special register %laneid is .u32"),
        ("mov.u32 %r1, %clock64;", "operand a is .u32, but special register %clock64 is .u64"),
        ("mov.u16 %h1, %lanemask_lt;", "operand a is .u16, but special register %lanemask_lt is .u32"),
        ("mov.u64 %a, %tid.x;", "operand a is .u64, but special register %tid.x is .u32 or .u16"),
        ("cvt.u64.u64 %a, %tid.x;", "operand a is .u64, but special register %tid.x is .u32 or .u16"),
        ("mov.u32 %r1, %is_explicit_cluster;", "special register %is_explicit_cluster is .pred"),
        ("add.f32 %f1, %f1, 0;", "an integer literal where .f32 is expected; write 0f3F800000"),
        ("add.rn.f16x2 %r1, %r1, 0;", "a literal where .f16x2 is expected"),
        ("ld.global.b32 %r1, [16];", "a number is an address in .local only"),
        ("ld.global.b32 %r1, g[1];", "'g' is no array: it has no elements"),
        ("ld.global.b32 %r1, %a[1];", "'%a' is no array: it has no elements"),
        ("{ .shared .b32 s[4]; atom.shared.add.u32 %r1, s[1], 1; }", "operand a must be an address in brackets"),
        ("ld.shared.b32 %r1, [%tid.x];", "address a is %tid.x, a special register"),
        ("ld.global.b32 %r1, [%clock64];", "address a is %clock64, a special register"),
        ("mbarrier.test_wait.shared.b64 %p0, [%ntid], %a;", "address a is %ntid, a special register"),
        ("P: .callprototype _ (); ld.global.b32 %r1, [P];", "address a is P, the label of a prototype"),
        ("ld.global.b32 %r1, [k];", "address a is k, a function"),
        ("mbarrier.init.shared.b64 [0], 1;", "a number is an address in .local only"),
        ("add.u32 _, %r1, %r2;", "operand d is '_': add cannot throw its result away"),
        ("ld.global.b32 _, [%a];", "ld cannot throw its result away"),
        ("ld.global.v2.b32 {_, _}, [%a];", "operand d throws all of its result away: one part must be kept"),
        ("match.all.sync.b32 _|_, %r1, -1;", "operand d throws all of its result away"),
        ("shfl.sync.idx.b32 _|%p1, %r1, 0, 31, -1;", "operand d throws its first half away, which must be kept"),
        ("elect.sync %r1|_, -1;", "operand d throws its second half away"),
        ("pmevent 16;", "operand n is 16, expected 0 to 15"),
        ("createpolicy.fractional.L2::evict_first.b64 %a, 1.5;", "operand a is 1.5, expected more than 0"),
        ("createpolicy.fractional.L2::evict_first.b64 %a, 0f00000000;", "expected more than 0 and at most 1.0"),
        ("bar.sync 16;", "operand a is 16, expected 0 to 15"),
        ("ld.global.b32 %r1, [%r2];", "address register %r2 is 32 bits wide; only addresses in .shared"),
        ("st.b32 [%r2], %r1;", "address register %r2 is 32 bits wide"),
        ("atom.global.add.u32 %r1, [%r2], 1;", "address register %r2 is 32 bits wide"),
        ("red.add.u32 [%r2], 1;", "address register %r2 is 32 bits wide"),
        ("prefetch.global.L2 [%r2];", "address register %r2 is 32 bits wide"),
        ("mbarrier.init.b64 [%r2], 1;", "address register %r2 is 32 bits wide"),
        ("mbarrier.arrive.expect_tx.shared.b64 %a, [%r2];", ".expect_tx needs a count as its third operand"),
        ("mbarrier.arrive_drop.expect_tx.shared.b64 %a, [%r2];", ".expect_tx needs a count"),
        ("mbarrier.arrive.noComplete.shared.b64 %a, [%r2];", ".noComplete needs a count"),
        ("mbarrier.arrive.noComplete.shared::cluster.b64 _, [%r2], 1;", ".noComplete cannot be applied to .shared::cluster"),
        ("mbarrier.arrive.shared::cluster.b64 %a, [%r2];", "write _ as the destination"),
        ("mbarrier.arrive_drop.shared::cluster.b64 %a, [%r2], 2;", "write _ as the destination"),
        ("cp.async.ca.shared.global [%r1], [%a], 4, 8;", "operand s is 8, expected at most the 4 bytes that are written"),
        ("cp.async.cg.shared.global [%r1], [%a], 16, 17;", "operand s is 17, expected at most the 16 bytes"),
        ("barrier.cta.arrive -1, 64;", "operand a is -1, expected 0 to 15"),
        ("bar.sync 1, 33;", "operand n is 33, expected a multiple of 32 from 0 to"),
        ("bar.red.popc.u32 %r1, 0, 31, %p1;", "operand n is 31, expected a multiple of 32"),
        ("setmaxnreg.dec.sync.aligned.u32 25;", "operand n is 25, expected a multiple of 8 from 24 to 256"),
        ("setmaxnreg.inc.sync.aligned.u32 264;", "operand n is 264, expected a multiple of 8 from 24 to 256"),
        ("cp.async.ca.shared.global [%r1], [%a], 12;", "operand n is 12, expected 4, 8 or 16"),
        ("cp.async.bulk.global.shared::cta.bulk_group [%a], [%r1], 8;", "operand n is 8, expected a multiple of 16"),
        ("cp.async.bulk.prefetch.L2.global [%a], 24;", "operand n is 24, expected a multiple of 16"),
        ("mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 2;", "operand p is 2, expected 0 or 1"),
        ("fence.proxy.tensormap::generic.acquire.gpu [%a], 64;", "operand n is 64, expected 128"),
        ("cp.async.cg.shared.global [%r1], [%a], 8;", "operand n is 8, expected 16"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%a], [%r1], 16;", ".add.f16 needs .noftz"),
        ("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%a, {%r1}], [%r2];", "operand c must have 2 items, got 1"),
        ("mbarrier.arrive.shared.b64 [%r1];", "expected 2 to 3 operands, got 1"),
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r1, [%r2];", "operand d must be a vector in braces"),
        ("fence.proxy.async::generic.acquire.sync_restrict::shared::cta.cluster;", "needs .sync_restrict::shared::cluster"),
        ("wgmma.wait_group.sync.aligned -1;", "operand n is -1, expected 0 to"),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2}, %a, %a, 1, 1, 1, 0, 0;",
         "operand d must have 4 items, got 3"),
        ("st.global.u32 [%a], 0f3F800000;", "a float literal where .u32 is expected"),
        (f"{MMA}, %a, %a, 1, 2, 1, 0, 0;", "operand ia is 2, expected -1 or 1"),
        (f"{MMA}, %a, %a, 1, 1, 1, 0, 2;", "operand tb is 2, expected 0 or 1"),
        (f"{MMA}, %a, %a, 1, 1, 1;", "expected 8 operands, got 6"),
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
