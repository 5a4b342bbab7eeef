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
    ("neg.ftz.f16x2 %r1, %r2;", ""),
    ("abs.ftz.f16x2 %r1, %r2;", ""),
    ("cp.async.ca.shared.global.L2::cache_hint [%r1], [%a1], 8, %p1, %a2;", ""),
    ("cp.async.cg.shared.global.L2::cache_hint [%r1], [%a1], 16, %p1, %a2;", ""),
    ("isspacep.shared %p1, %r1;", ""),
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
    ("neg.ftz.bf16x2 %r1, %r2;", ".ftz does not apply to .bf16x2, expected .f32, .f16 or .f16x2"),
    ("set.eq.ftz.bf16.f32 %h1, %f2, %f3;", "set with a .bf16 result takes no .ftz"),
    ("set.eq.f16.bf16 %h1, %h2, %h3;", "set of .bf16 operands does not give a .f16"),
    ("add.u32 %r1, %r2.b0, %r3;", "unknown component '.b0' of '%r2'"),
    ("vadd.s32.s32.s32 %r1, %r2.b9, %r3;", "unknown component '.b9' of '%r2'"),
]
"""What ptxas 13.0 refuses, and what hopsim says of it."""


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


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not on PATH")
@pytest.mark.parametrize("version", ["8.7", "9.0"])
def test_ptxas_says_the_same(version: str, tmp_path: Path) -> None:
    source = tmp_path / "k.ptx"

    def accepted(text: str) -> bool:
        source.write_text(text, encoding="utf-8")
        command = ["ptxas", "-arch=sm_90a", str(source), "-o", str(tmp_path / "k.cubin")]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    assert [line for line, _ in TAKEN if not accepted(text_of(line, version))] == []
    assert [line for line, _ in REFUSED if accepted(text_of(line, version))] == []
