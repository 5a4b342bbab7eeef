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
]
"""What ptxas 13.0 refuses, and what hopsim says of it."""

NO_FORM = [
    "cp.async.bulk.global.shared::cta.mbarrier::complete_tx::bytes [%a1], [%r1], 16, [%r2];",
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
    assert [text for _, text, _ in hs.loads(text_of(line))["k"].unsupported] == [line]


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
