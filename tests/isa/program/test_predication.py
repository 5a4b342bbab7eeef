"""Branches over a few instructions: those are guards here of which ptxas makes guards, and what they compute is the same."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import hopsim as hs
from hopsim.isa.program.kernel import Kernel

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
SUM = "add.s32 %r2, %r2, %r3; xor.b32 %r2, %r2, %r1; "
"""Two instructions, each of which needs the one before."""
GUARDED = {
    "one sum": "add.s32 %r2, %r2, %r3;",
    "eight instructions": SUM * 4,
    "copies, and what names a half, beside them": "mov.u32 %r3, %r1; cvt.u64.u32 %rd2, %r3; cvt.u32.u64 %r2, %rd2;" + SUM * 2,
    "a store to shared memory": "st.shared.u32 [s+128], %r3;",
    "a load and a store": "ld.shared.u32 %r3, [s+4]; st.shared.u32 [s+8], %r3;",
    "a load from global memory": "ld.global.u32 %r2, [%rd1+256];",
    "a store to global memory": "st.global.u32 [%rd1+512], %r3;",
    "an arrival": "mbarrier.arrive.shared::cta.b64 _, [s+16];",
    "bytes that are expected": "mbarrier.arrive.expect_tx.shared::cta.b64 _, [s+16], 64;",
    "a barrier that is made": "mbarrier.init.shared::cta.b64 [s+24], 1;",
}  # fmt: skip
"""What is jumped over, and ptxas makes guarded."""
LEFT = {
    "ten instructions": SUM * 5,
    "a correctly rounded division": "cvt.rn.f32.s32 %f0, %r3; div.rn.f32 %f0, %f0, %f1; cvt.rzi.s32.f32 %r2, %f0;",
    "a high product of 64 bits": "mul.hi.u64 %rd2, %rd3, %rd0; add.s64 %rd2, %rd2, %rd3; mul.hi.u64 %rd2, %rd2, %rd0; cvt.u32.u64 %r2, %rd2;",
    "an atomic": "atom.global.add.u32 %r2, [%rd1+256], %r3;",
    "a load that synchronises": "ld.acquire.gpu.global.u32 %r2, [%rd1+256];",
}  # fmt: skip
"""What it leaves the branch around."""
TEXT = """{body}
OVER:
mad.lo.s32 %r2, %r2, %r3, %r2;
"""


def entry(name: str, body: str, after: str = "") -> str:
    """Return a kernel that jumps over `body` where a thread's word is even, and stores what it has then."""
    text = TEXT.format(body=body).replace("; ", ";\n")
    return f"""
.visible .entry {name}(.param .u64 p)
{{
.reg .b32 %r<8>; .reg .b64 %rd<5>; .reg .f32 %f<2>; .reg .pred %p<2>;
.shared .align 16 .b8 s[256];
ld.param.u64 %rd0, [p];
mov.u32 %r0, %tid.x;
mul.wide.u32 %rd1, %r0, 4;
add.s64 %rd1, %rd0, %rd1;
ld.global.u32 %r1, [%rd1];
ld.global.u32 %r2, [%rd1+128];
cvt.rn.f32.s32 %f1, %r2;
cvt.s64.s32 %rd3, %r2;
add.s32 %r3, %r1, %r0;
and.b32 %r4, %r1, 1;
setp.eq.u32 %p0, %r4, 0;
@%p0 bra OVER;
{text}{after}
st.global.u32 [%rd1+384], %r2;
ret;
}}
"""


def loaded(body: str, after: str = "") -> Kernel:
    return hs.loads(HEAD + entry("k", body, after))["k"]


def branches(kernel: Kernel) -> int:
    return sum(bool(one.targets) for one in kernel.instructions)


@pytest.mark.parametrize("body", GUARDED.values(), ids=GUARDED)
def test_a_branch_over_little_is_a_guard(body: str) -> None:
    kernel = loaded(body)
    assert branches(kernel) == 0
    guards = [one.instruction.guard for one in kernel.instructions if one.instruction.guard]
    assert {(register.name, negated) for register, negated in guards} == {("%p0", True)}
    assert len(guards) == body.count(";")


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_other_branches_stay(body: str) -> None:
    assert branches(loaded(body)) == 1


@pytest.mark.parametrize(
    "body",
    [
        "add.s32 %r2,%r2,%r3; setp.ne.s32 %p0,%r2,0; add.s32 %r2,%r2,%r1;",  # the guard changes
        "@%p1 add.s32 %r2,%r2,%r3;",  # a guard of its own
        "INSIDE: add.s32 %r2,%r2,%r3; @%p1 bra INSIDE;",  # a loop
        "shfl.sync.bfly.b32 %r2,%r2,1,31,-1;",  # whoever is missing there is told
        "bar.warp.sync -1;",
        "activemask.b32 %r2;",
    ],
)
def test_what_cannot_be_guarded_is_jumped_over(body: str) -> None:
    assert branches(loaded(body)) >= 1


def test_a_long_row_of_copies_is_jumped_over() -> None:
    assert branches(loaded("mov.b32 %r2,%r3; " * 20)) == 0
    assert branches(loaded("mov.b32 %r2,%r3; " * 21)) == 1


def test_somebody_else_may_come_to_the_label() -> None:
    """The label stays, and so does whoever comes to it from elsewhere."""
    kernel = loaded("add.s32 %r2,%r2,%r3;", "setp.gt.s32 %p1,%r2,1000; @%p1 bra OVER;")
    (back,) = [one for one in kernel.instructions if one.targets]
    target = kernel.instructions[back.targets[0].target]
    assert target.instruction.mnemonic == "mad.lo.s32"


def test_what_is_behind_an_exit_is_behind_a_branch() -> None:
    text = entry("k", "add.s32 %r2,%r2,%r3;").replace("OVER:\n", "").replace("ret;", "OVER:\nret;")
    assert branches(hs.loads(HEAD + text)["k"]) == 1


def test_nothing_is_optimised_for_a_debugger() -> None:
    text = (HEAD + entry("k", SUM)).replace("sm_90a", "sm_90a, debug")
    assert branches(hs.loads(text)["k"]) == 1


@pytest.mark.skipif(
    shutil.which("ptxas") is None or shutil.which("nvdisasm") is None,
    reason="ptxas and nvdisasm are not installed",
)
def test_ptxas_does_the_same(tmp_path: Path) -> None:
    source, binary = tmp_path / "k.ptx", tmp_path / "k.cubin"
    names = {f"k{number:02}": name for number, name in enumerate([*GUARDED, *LEFT])}
    bodies = {**GUARDED, **LEFT}
    source.write_text(HEAD + "".join(entry(at, bodies[name]) for at, name in names.items()))
    subprocess.run(["ptxas", "-arch=sm_90a", str(source), "-o", str(binary)], check=True)
    listed = subprocess.run(
        ["nvdisasm", "-c", str(binary)], check=True, capture_output=True, text=True
    ).stdout
    jumps = {
        names[at]: len(re.findall(r"@!?P\d BRA|BSSY", code))
        for at, _, code in (part.partition(":") for part in listed.split("\n.text.")[1:])
    }
    assert {name for name, count in jumps.items() if count} == set(LEFT)
    assert len(jumps) == len(bodies)


# --- values ---------------------------------------------------------------------------------------


def run(body: str, schedule: str) -> NDArray[np.int32]:
    gpu = hs.Gpu("h100-sxm")
    words = gpu.array(np.arange(256, dtype=np.int32) * 7 % 31)
    gpu.launch(loaded(body), 1, 32, args=[words], schedule=schedule, seed=3, check=False)
    return words.numpy()


@pytest.mark.parametrize("schedule", ["in-order", "seeded", "timed"])
@pytest.mark.parametrize(
    "name", ["one sum", "eight instructions", "a load from global memory", "ten instructions"]
)
def test_lanes_compute_what_they_would_behind_a_branch(name: str, schedule: str) -> None:
    body = {**GUARDED, **LEFT}[name]
    before = np.arange(256, dtype=np.int32) * 7 % 31
    got = run(body, schedule)
    lane = np.arange(32, dtype=np.int32)
    r1, r2 = before[:32], before[32:64].copy()
    r3 = r1 + lane
    odd = r1 % 2 == 1
    new = r2.copy()
    if name == "one sum":
        new = r2 + r3
    elif name == "a load from global memory":
        new = before[64:96]
    else:
        for _ in range(body.count("add")):
            new = (new + r3) ^ r1
    r2 = np.where(odd, new, r2)
    np.testing.assert_array_equal(got[96:128], r2 * r3 + r2)
    np.testing.assert_array_equal(got[:96], before[:96])
