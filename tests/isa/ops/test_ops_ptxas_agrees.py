"""Lines that ptxas takes or refuses: hopsim does the same, and says why."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import hopsim as hs
from hopsim.errors import PtxError

HEAD = """.version {version}
.target sm_90a
.address_size 64
.global .align 16 .b8 g[64]; .const .align 8 .b8 c[64];
.global .texref texture; .global .surfref surface;
"""
BODY = """.visible .entry k(.param .u64 p)
{
.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<9>; .reg .b64 %a<5>; .reg .f32 %f<9>; .reg .f64 %d<3>;
.reg .u32 %u<3>; .reg .f16 %n<3>; .reg .f16x2 %x<3>; .shared .align 16 .b8 s[64];
"""
TAKEN: list[tuple[str, str]] = [
    ("ld.mmio.relaxed.sys.global.u32 %r1, [%a1];", ""),
    ("ld.relaxed.mmio.sys.u32 %r1, [%a1];", ""),
    ("st.mmio.relaxed.sys.global.u32 [%a1], %r1;", ""),
    ("ldu.global.v4.f32 {%f1, %f2, %f3, %f4}, [%a1];", ""),
    ("ldu.u8 %h1, [%a1];", ""),
    ("mov.v4.u16 {%h0, %h1, %h2, %h3}, %ctaid;", ""),
    ("mov.v2.f64 {%d1, %d2}, {%d2, %d1};", ""),
    ("mov.v2.u32 {_, %r1}, {%r2, 5};", ""),
    ("fma.rn.relu.oob.bf16x2 %r1, %r2, %r3, %r4;", ""),
    ("mul24.hi.s32 %r1, %r2, %r3;", ""),
    ("membar.proxy.alias;", ""),
    ("discard.global.L2 [%a1], 128;", ""),
    ("discard.L2 [%a1], 128;", ""),
    (
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.inc.u32 [%r1], [%r2], 16, [%r3];",
        "",
    ),
    ("mad24.hi.sat.s32 %r1, %r2, %r3, %r4;", ""),
    ("prefetchu.L1 [%a1];", ""),
    ("applypriority.global.L2::evict_normal [%a1], 128;", ""),
    ("applypriority.L2::evict_normal [%a1], 128;", ""),
    ("neg.ftz.f16x2 %r1, %r2;", ""),
    ("abs.ftz.f16x2 %r1, %r2;", ""),
    ("cp.async.ca.shared.global.L2::cache_hint [%r1], [%a1], 8, %p1, %a2;", ""),
    ("cp.async.cg.shared.global.L2::cache_hint [%r1], [%a1], 16, %p1, %a2;", ""),
    ("isspacep.shared %p1, %r1;", ""),
    ("cp.async.ca.shared.global.L2::cache_hint [%r1], [%a1], 8, %a2;", ""),
    ("cp.async.ca.shared.global.L2::cache_hint [%r1], [%a1], 8, %r2, %a2;", ""),
    ("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 4, %r2;", ""),
    ("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r1], 0, %a2;", ""),
    ("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1], %r2;", ""),
    ("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r1], 2;", ""),
    ("bfe.u32 %r1, %r2, 255, 255;", ""),
    ("set.eq.bf16.u32 %h1, %r2, %r3;", ""),
    ("set.lt.bf16.f32 %h1, %f2, %f3;", ""),
    ("set.lt.and.bf16.f16 %h1, %h2, %h3, %p1;", ""),
    ("mov.u64 %a1, texture;", ""),
    ("clz.b32 %u1, %f1;", ""),
    ("bfi.b32 %f1, %f2, %f3, %r1, %u1;", ""),
    ("shf.l.wrap.b32 %f1, %f2, %f3, %r1;", ""),
    ("fns.b32 %f1, %f2, %f3, %r1;", ""),
    ("shfl.sync.idx.b32 %f1, %f2, %f3, %f4, -1;", ""),
    ("vote.sync.ballot.b32 %f1, %p1, -1;", ""),
    ("ld.global.f32 %a2, [%a1];", ""),
    ("add.u32 %x1, %r1, %r2;", ""),
    ("add.u16x2 %x1, %r1, %r2;", ""),
    ("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%d1, {%r1}], [%r2];", ""),
    ("fence.proxy.tensormap::generic.acquire.gpu [%d1], 128;", ""),
    ("fence.proxy.tensormap::generic.acquire.gpu [p], 128;", ""),
    ("ld.u32 %r1, [g];", ""),
    ("atom.add.u32 %r1, [s], 1;", ""),
    ("cvta.shared::cluster.u64 %a1, s;", ""),
    ("cvta.param::entry.u64 %a1, p;", ""),
    ("mbarrier.init.b64 [s], 1;", ""),
    ("cp.async.ca.shared.global [s], [g], 4;", ""),
    (
        "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [s], [g, {%r1}], [s];",
        "",
    ),
    ("prefetch.param.tensormap [p];", ""),
    ("cvt.pack.u8.sat.s32.b32 %r1, %r2, %r3, 0;", ""),
    ("barrier.cta.arrive.aligned 1, 64;", ""),
    ("div.f32.approx %f1, %f2, %f3;", ""),
    (
        "mma.sync.aligned.m16n8k16.row.f32.f16.col.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};",
        "",
    ),
    ("mad.lo.u32.cc %r1, %r2, %r3, %r4;", ""),
    ("mbarrier.arrive.expect_tx.shared::cta.cta.release.b64 %a1, [%r1], %r2;", ""),
    ("vadd.s32.s32.s32.sat %r1, %r2.b0, %r3.h1;", "only vabsdiff2 and vabsdiff4"),
    ("vadd2.s32.s32.s32 %r1.h0, %r2.h10, %r3.h32, %r4;", "only vabsdiff2 and vabsdiff4"),
    ("vabsdiff4.s32.s32.s32 %r1, %r2.b3210, %r3, %r4;", "part %r2.b3210 of a register"),
    ("tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [texture, {%r1}];", "textures"),
]
"""What ptxas 13.0 takes, and what hopsim says that it lacks of it."""
REFUSED: list[tuple[str, str]] = [
    ("discard.global.L2 [%a1], 64;", "operand n is 64, expected 128"),
    (
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.max.u64 [%r1], [%r2], 16, [%r3];",
        ".max into shared memory does not take .u64; expected .u32, .s32",
    ),
    ("applypriority.L2::evict_normal [%a1], 64;", "operand n is 64, expected 128"),
    ("barrier.red.popc.u32 %r1, 16, %p1;", "operand a is 16, expected 0 to 15"),
    ("neg.ftz.bf16x2 %r1, %r2;", ".ftz does not apply to .bf16x2, expected .f32, .f16 or .f16x2"),
    ("set.eq.ftz.bf16.f32 %h1, %f2, %f3;", "set with a .bf16 result takes no .ftz"),
    ("set.eq.f16.bf16 %h1, %h2, %h3;", "set of .bf16 operands does not give a .f16"),
    ("add.u32 %r1, %r2.b0, %r3;", "unknown component '.b0' of '%r2'"),
    ("vadd.s32.s32.s32 %r1, %r2.b9, %r3;", "unknown component '.b9' of '%r2'"),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.f32 [%a1], [%r1], 16;",
        ".inc does not take .f32; expected .u32",
    ),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.s32 [%a1], [%r1], 16;",
        ".inc does not take .s32",
    ),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.dec.f16 [%a1], [%r1], 16;",
        ".dec does not take .f16",
    ),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.f32 [%a1], [%r1], 16;",
        ".xor does not take .f32; expected .b32, .b64",
    ),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [%a1], [%r1], 16;",
        ".min does not take .f32; expected .u32, .s32, .u64, .s64, .f16, .bf16",
    ),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.max.f64 [%a1], [%r1], 16;",
        ".max does not take .f64",
    ),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s64 [%a1], [%r1], 16;",
        ".add does not take .s64",
    ),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.b64 [%a1], [%r1], 16;",
        ".add does not take .b64",
    ),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f32 [%a1], [%r1], 16;",
        ".add.f32 takes no .noftz",
    ),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.noftz.f16 [%a1], [%r1], 16;",
        ".min.f16 takes no .noftz",
    ),
    (
        "atom.global.gpu.max.v4.u32 {%r1, %r2, %r3, %r4}, [%a1], {%r5, %r6, %r7, %r8};",
        ".v4 is of .f32 and of 16-bit floats, not of .u32",
    ),
    ("red.global.or.v2.b64 [%a1], {%a2, %a3};", ".v2 is of .f32 and of 16-bit floats, not of .b64"),
    ("red.global.min.ftz.u32 [%a1], %r1;", ".min.u32 takes no .ftz"),
    ("red.global.and.noftz.b32 [%a1], %r1;", ".and.b32 takes no .noftz"),
    ("atom.global.exch.noftz.b32 %r1, [%a1], %r2;", ".exch.b32 takes no .noftz"),
    (
        "atom.global.cas.L2::cache_hint.b16 %h1, [%a1], %h2, %h3, %a2;",
        ".cas takes no .L2::cache_hint",
    ),
    (
        "atom.shared.add.L2::cache_hint.u32 %r1, [%r2], %r3, %a2;",
        ".L2::cache_hint cannot be applied to .shared",
    ),
    (
        "red.shared.add.L2::cache_hint.u32 [%r2], %r3, %a2;",
        ".L2::cache_hint cannot be applied to .shared",
    ),
    (
        "red.global.add.L2::cache_hint.u32 [%a1], %r3;",
        "needs a cache policy as its last operand, got none",
    ),
    ("ld.global.u32 %r1, [%a1], %a2;", "a cache policy as the last operand needs .L2::cache_hint"),
    ("st.global.L2::cache_hint.u32 [%a1], %r1;", "needs a cache policy as its last operand"),
    ("cp.async.bulk.prefetch.L2.global [%a1], 16, %a2;", "needs .L2::cache_hint in the opcode"),
    (
        "cp.async.ca.shared.global.L2::cache_hint [%r1], [%a1], 8;",
        "expected 4 to 5 operands, got 3",
    ),
    ("cp.async.ca.shared.global.L2::cache_hint [%r1], [%a1], 8, %p1;", ""),
    (
        "cp.async.ca.shared.global [%r1], [%a1], 8, 4, %a2;",
        "a cache policy as the last operand needs .L2::cache_hint",
    ),
    (
        "mbarrier.arrive.release.shared::cta.b64 %a1, [%r1];",
        ".release needs a scope: .cta or .cluster",
    ),
    (
        "mbarrier.arrive_drop.cta.shared::cta.b64 %a1, [%r1];",
        ".cta needs an order before it, as in .relaxed.cta",
    ),
    ("mbarrier.expect_tx.relaxed.shared::cta.b64 [%r1], %r2;", ".relaxed needs a scope"),
    ("mbarrier.complete_tx.cta.shared::cta.b64 [%r1], %r2;", ".cta needs an order"),
    ("mbarrier.test_wait.acquire.shared::cta.b64 %p1, [%r1], %a1;", ".acquire needs a scope"),
    (
        "mbarrier.test_wait.parity.cluster.shared::cta.b64 %p1, [%r1], %r2;",
        ".cluster needs an order",
    ),
    ("mbarrier.try_wait.relaxed.shared::cta.b64 %p1, [%r1], %a1;", ".relaxed needs a scope"),
    ("mbarrier.try_wait.parity.acquire.shared::cta.b64 %p1, [%r1], %r2;", ".acquire needs a scope"),
    (
        "mbarrier.arrive.noComplete.relaxed.cta.shared::cta.b64 %a1, [%r1], %r2;",
        ".noComplete and .relaxed exclude each other",
    ),
    (
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.u64 [%r1], %a1, [%r3];",
        "expected .u32, .s32",
    ),
    (
        "st.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];",
        ".relaxed is of red.async",
    ),
    (
        "st.async.weak.cluster.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];",
        ".weak and .cluster exclude each other",
    ),
    (
        "red.async.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r2, [%r3];",
        "red.async needs .relaxed.cluster",
    ),
    (
        "red.async.relaxed.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r2, [%r3];",
        "red.async needs .relaxed.cluster",
    ),
    ("prefetch [%a1];", "a prefetch needs a cache level: .L1 or .L2"),
    ("prefetch.global [%a1];", "a prefetch needs a cache level: .L1 or .L2"),
    ("prefetch.L1 [p];", "p is a .param variable, expected a generic address"),
    ("prefetch.L2 [c];", "c is a .const variable, expected a generic address"),
    ("prefetch.local.L2::evict_last [%a1];", ".L2::evict_last cannot be applied to .local"),
    (
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f16 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r1, %r2, %r3, %r4};",
        "D is .f32 and C is .f16: they must be the same",
    ),
    (
        "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r1], %r2;",
        "operand v must be an immediate",
    ),
    (
        "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r1], 5;",
        "operand v is 5, expected 0 to 3",
    ),
    (
        "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r1], 13;",
        "operand v is 13, expected 0 to 12",
    ),
    (
        "tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r1], 2;",
        "operand v is 2, expected 0 to 1",
    ),
    (
        "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 5, %r2;",
        "operand n is 5, expected 0 to 4",
    ),
    (
        "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r1], %r3, %r2;",
        "operand n must be an immediate",
    ),
    (
        "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r1], -1, %a2;",
        "operand n is -1, expected 0 to 4",
    ),
    (
        "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r1], %r2;",
        "expected 3 operands, got 2",
    ),
    (
        "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1], 0, 1;",
        "expected 2 operands, got 3",
    ),
    ("bfe.u32 %r1, %r2, 300, 1;", "operand b is 300, expected 0 to 255"),
    ("bfi.b32 %r1, %r2, %r3, 1, 256;", "operand e is 256, expected 0 to 255"),
    ("clz.b32 %f1, %r1;", "operand d is .u32, but register %f1 is .f32"),
    ("popc.b64 %f1, %a1;", "operand d is .u32, but register %f1 is .f32"),
    ("bfind.u32 %f1, %r1;", "operand d is .u32, but register %f1 is .f32"),
    ("dp4a.u32.s32 %r1, %f1, %r2, %r3;", "operand a is .u32, but register %f1 is .f32"),
    ("dp2a.lo.u32.s32 %r1, %r2, %r3, %f1;", "operand c is .u32, but register %f1 is .f32"),
    ("mul.wide.u32 %d1, %r1, %r2;", "operand d is .u64, but register %d1 is .f64"),
    ("mad.wide.s32 %a1, %r1, %r2, %d1;", "operand c is .u64, but register %d1 is .f64"),
    ("add.sat.s32 %f1, %r1, %r2;", "operand d is .s32, but register %f1 is .f32"),
    ("mad.hi.sat.s32 %r1, %r2, %r3, %f1;", "operand c is .s32, but register %f1 is .f32"),
    ("bfe.u32 %r1, %r2, %f1, %r3;", "operand b is .u32, but register %f1 is .f32"),
    ("bfi.b32 %f1, %f2, %f3, %r1, %f4;", "operand e is .u32, but register %f4 is .f32"),
    ("bmsk.clamp.b32 %f1, %r1, %r2;", "operand d is .u32, but register %f1 is .f32"),
    ("szext.wrap.s32 %r1, %r2, %f1;", "operand b is .u32, but register %f1 is .f32"),
    ("shl.b32 %f1, %f2, %f3;", "operand b is .u32, but register %f3 is .f32"),
    ("shr.s64 %a1, %a2, %f1;", "operand b is .u32, but register %f1 is .f32"),
    ("shf.l.wrap.b32 %f1, %f2, %f3, %f4;", "operand c is .u32, but register %f4 is .f32"),
    ("cvt.pack.sat.u16.s32 %f1, %r1, %r2;", "operand d is .u32, but register %f1 is .f32"),
    ("vote.sync.any.pred %p1, %p2, %f1;", "operand m is .u32, but register %f1 is .f32"),
    ("shfl.sync.idx.b32 %f1, %f2, %f3, %f4, %f5;", "operand m is .u32, but register %f5 is .f32"),
    ("match.any.sync.b32 %f1, %f2, -1;", "operand d is .u32, but register %f1 is .f32"),
    ("match.all.sync.b32 %f1|%p1, %f2, -1;", "operand d is .u32, but register %f1 is .f32"),
    ("redux.sync.and.b32 %r1, %f1, -1;", "register %f1 is .f32, expected an integer or bits"),
    ("elect.sync %f1|%p1, -1;", "operand d is .u32, but register %f1 is .f32"),
    ("bar.warp.sync %f1;", "operand m is .u32, but register %f1 is .f32"),
    ("mbarrier.arrive.shared.b64 %d1, [%r1];", "operand d is .u64, but register %d1 is .f64"),
    (
        "mbarrier.test_wait.shared.b64 %p1, [%r1], %d1;",
        "operand s is .u64, but register %d1 is .f64",
    ),
    ("mbarrier.pending_count.b64 %r1, %d1;", "operand s is .u64, but register %d1 is .f64"),
    ("cvta.global.u64 %d1, %a1;", "operand d is .u64, but register %d1 is .f64"),
    ("cvta.to.shared.u64 %a1, %d1;", "operand a is .u64, but register %d1 is .f64"),
    ("isspacep.shared %p1, %d1;", "operand a is .u64, but register %d1 is .f64"),
    ("isspacep.shared %p1, %f1;", "but register %f1 is .f32"),
    (
        "createpolicy.fractional.L2::evict_last.b64 %d1;",
        "operand d is .u64, but register %d1 is .f64",
    ),
    (
        "ld.global.L2::cache_hint.u32 %r1, [%a1], %d1;",
        "operand policy is .u64, but register %d1 is .f64",
    ),
    (
        "tensormap.replace.tile.box_dim.global.b1024.b32 [%a1], 0, %f1;",
        "operand v is .u32, but register %f1 is .f32",
    ),
    (
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %d1, %a1, 1, 1, 1, 0, 0;",
        "operand a is .u64, but register %d1 is .f64",
    ),
    ("ld.global.f32 %d1, [%a1];", "operand d is .f32, but register %d1 is .f64"),
    ("add.u16x2 %u1, %r1, %r2;", "operand d is .u16x2, but register %u1 is .u32"),
    ("add.rn.bf16 %n1, %h1, %h2;", "operand d is .bf16, but register %n1 is .f16"),
    ("cvt.rna.tf32.f32 %u1, %f1;", "operand d is .tf32, but register %u1 is .u32"),
    ("ld.global.u32 %r1, [%d1];", "address register %d1 is .f64, expected an integer or bits"),
    ("st.shared.u32 [%f1], %r1;", "address register %f1 is .f32, expected an integer or bits"),
    ("atom.global.add.u32 %r1, [%d1], 1;", "address register %d1 is .f64"),
    ("cp.async.ca.shared.global [%r1], [%d1], 4;", "address register %d1 is .f64"),
    ("mbarrier.init.shared.b64 [%f1], 1;", "address register %f1 is .f32"),
    ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%f1];", "address register %f1 is .f32"),
    ("ld.local.u32 %r1, [1.0];", "an address is an integer, got 1.0"),
    ("cvta.shared.u64 %a1, g;", "operand a is in .shared, but g is a .global variable"),
    ("cvta.global.u64 %a1, c;", "operand a is in .global, but c is a .const variable"),
    ("cvta.local.u64 %a1, p;", "operand a is in .local, but p is a .param variable"),
    (
        "mapa.shared::cluster.u64 %a1, g, %r1;",
        "operand a is in .shared, but g is a .global variable",
    ),
    ("getctarank.u64 %r1, c;", "operand a is in .shared, but c is a .const variable"),
    ("ld.u32 %r1, [c];", "c is a .const variable, expected a generic address"),
    ("st.u32 [p], %r1;", "p is a .param variable, expected a generic address"),
    ("mbarrier.init.b64 [g], 1;", "operand a is in .shared, but g is a .global variable"),
    ("prefetchu.L1 [c];", "operand a is in .global, but c is a .const variable"),
    (
        "cp.async.ca.shared.global [g], [%a1], 4;",
        "operand b is in .shared, but g is a .global variable",
    ),
    (
        "cp.async.ca.shared.global [%r1], [c], 4;",
        "operand a is in .global, but c is a .const variable",
    ),
    (
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%a1], 16, [g];",
        "operand m is in .shared, but g is a .global variable",
    ),
    (
        "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [p, {%r1}], [%r2];",
        "operand a is in .global, but p is a .param variable",
    ),
    (
        "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [c, {%r1}], [%r2];",
        "operand a is in .global, but c is a .const variable",
    ),
    (
        "wmma.load.a.sync.aligned.row.m8n8k4.shared.f64 {%d1}, [g], 8;",
        "operand a is in .shared, but g is a .global variable",
    ),
]
"""What ptxas 13.0 refuses, and what hopsim says of it."""

NO_FORM = [
    "cp.async.bulk.global.shared::cta.mbarrier::complete_tx::bytes [%a1], [%r1], 16, [%r2];",
    "cvt.pack.sat.s32.u8.b32 %r1, %r2, %r3, 0;",
    "cvt.pack.sat.u8.b32.s32 %r1, %r2, %r3, 0;",
    "barrier.arrive.cta 1, 64;",
    "barrier.sync.cta.aligned 1, 64;",
    "bar.sync.cta 0;",
    "bar.popc.red.u32 %r1, 0, %p1;",
    "barrier.aligned.arrive 1, 64;",
    "mbarrier.arrive.release.cta.expect_tx.shared::cta.b64 %a1, [%r1], %r2;",
    "setmaxnreg.sync.inc.aligned.u32 240;",
    "shf.wrap.l.b32 %r1, %r2, %r3, %r4;",
    "dp2a.u32.lo.u32 %r1, %r2, %r3, %r4;",
    "mad.cc.lo.u32 %r1, %r2, %r3, %r4;",
    "madc.u32.hi %r1, %r2, %r3, %r4;",
    "div.ftz.full.f32 %f1, %f2, %f3;",
    "mma.sync.aligned.m16n8k16.row.col.f16.f32.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};",
    "mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};",
    "wgmma.mma_async.sync.aligned.m64n8k16.bf16.f32.bf16 {%f1, %f2, %f3, %f4}, %a1, %a1, 1, 1, 1, 0, 0;",
]
"""What ptxas 13.0 refuses because of its modifiers; no form of hopsim has these."""


def text_of(line: str, version: str = "8.7") -> str:
    return f"{HEAD.format(version=version)}{BODY}{line}\nret;\n}}\n"


@pytest.mark.parametrize(("line", "lacks"), TAKEN)
def test_what_ptxas_takes_is_loaded(line: str, lacks: str) -> None:
    kernel = hs.loads(text_of(line))["k"]
    assert [lacks in why for _, _, why in kernel.unsupported] == ([True] if lacks else [])


@pytest.mark.parametrize(("line", "why"), REFUSED)
def test_what_ptxas_refuses_is_refused(line: str, why: str) -> None:
    with pytest.raises(PtxError) as caught:
        assert hs.loads(text_of(line))["k"].unsupported
    assert why in str(caught.value)
    assert caught.value.line == text_of(line).splitlines().index(line) + 1


@pytest.mark.parametrize("line", NO_FORM)
def test_no_form_has_what_ptxas_refuses(line: str) -> None:
    ((_, text, why),) = hs.loads(text_of(line))["k"].unsupported
    assert text == line
    assert "wrong PTX or not modelled" in why


def test_words_in_another_order_are_told_theirs() -> None:
    ((_, _, why),) = hs.loads(text_of("barrier.arrive.cta 1, 64;"))["k"].unsupported
    assert why.endswith("its words stand in this order, barrier{.cta}.arrive{.aligned}")


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not on PATH")
@pytest.mark.parametrize("version", ["8.7", "9.0"])
def test_ptxas_says_the_same(version: str, tmp_path: Path) -> None:
    source = tmp_path / "k.ptx"

    def accepted(text: str) -> bool:
        source.write_text(text, encoding="utf-8")
        command = ["ptxas", "-arch=sm_90a", str(source), "-o", str(tmp_path / "k.cubin")]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    assert [line for line, _ in TAKEN if not accepted(text_of(line, version))] == []
    refused = [*(line for line, _ in REFUSED), *NO_FORM]
    assert [line for line in refused if accepted(text_of(line, version))] == []
