"""Registers of a thread: what Nsight Compute counted on an H100, and what ptxas says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import hopsim as hs
from hopsim.isa.program.allocation import uniform_registers
from hopsim.isa.program.kernel import Kernel
from hopsim.kernels.gemm.recorded import read_ladders
from hopsim.kernels.measured.program import launch, operands
from hopsim.kernels.measured.sets import load_sets
from hopsim.kernels.micro.recording import benchmarks

SILICON = Path(__file__).parents[2] / "silicon"
OTHERWISE = {
    "gemm_mma_multistage_bf16_bf16_128x128x64_s3_w1": (236, 226),
    "mm_persistent_bf16_128x128x64_s4_w8": (94, 90),
    "mm_persistent_fp16_128x256x64_s3_w8": (155, 154),
    "mm_pointers_bf16_128x128x64_s3_w8": (110, 90),
    "mm_pointers_fp16_128x128x32_s4_w4": (168, 155),
    "mm_pointers_fp16_64x128x64_s3_w4": (120, 97),
}
"""Recorded, and what hopsim takes: D-REGS."""
HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"


def counted() -> dict[str, tuple[int, Kernel]]:
    """Return the recorded programs that leave their registers to ptxas, with what Nsight Compute counted."""
    found: dict[str, tuple[int, Kernel]] = {}
    for case in load_sets(SILICON):
        program, registers = case.program, case.counters.get("launch__registers_per_thread")
        if registers is None or program.name in found:
            continue
        kernel = hs.loads(program.ptx)[program.entry]
        if not any(bound.form.name == "setmaxnreg" for bound in kernel.instructions):
            found[program.name] = (int(registers), kernel)
    return found


def test_registers_are_those_that_an_h100_had() -> None:
    programs = counted()
    assert len(programs) == 24
    differ = {
        name: (registers, kernel.registers_wanted)
        for name, (registers, kernel) in programs.items()
        if kernel.registers_wanted != registers
    }
    assert differ == OTHERWISE


@pytest.mark.parametrize(
    ("name", "expected"),
    [("wgmma_bf16_n8_SS_w1", 30), ("wgmma_bf16_n64_SS_w1", 58), ("wgmma_bf16_n256_RS_w1", 158)],
)
def test_a_thread_has_26_registers_beside_what_wgmma_takes(name: str, expected: int) -> None:
    (one,) = (one for one in benchmarks("tensor") if one.name == name)
    assert hs.loads(one.ptx)[one.entry].registers_wanted == expected


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not on PATH")
def test_ptxas_says_the_same(tmp_path: Path) -> None:
    chosen = benchmarks("tensor")
    assert len(chosen) > 40
    for one in chosen:
        path = tmp_path / "kernel.ptx"
        path.write_text(one.ptx, encoding="utf-8")
        done = subprocess.run(
            ["ptxas", "-arch=sm_90a", "-v", "-o", str(tmp_path / "out"), str(path)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        found = re.search(r"Used (\d+) registers", done.stderr + done.stdout)
        assert found, one.name
        assert hs.loads(one.ptx)[one.entry].registers_wanted == int(found[1]), one.name


@pytest.mark.parametrize(
    ("name", "tile", "recorded"),
    [
        ("mma-simple", "64x32x32", 60), ("mma-simple", "64x64x32", 100), ("mma-simple", "64x128x32", 166),
        ("mma-multistage", "64x32x64", 68), ("mma-multistage", "64x64x64", 99), ("mma-multistage", "64x128x64", 135),
    ],
)  # fmt: skip
def test_fp8_values_of_mma_sync_take_more_once_converted(
    name: str, tile: str, recorded: int
) -> None:
    """What ptxas 13.0 gives; `mma-simple` of 128x128x32 gets all 255 and spills 14 (D-REGS)."""
    step = next(
        step.step
        for one in read_ladders(SILICON / "ladder", ("e4m3",))
        for step in one.steps
        if (step.step.name, str(step.step.tile)) == (name, tile)
    )
    kernel = step.build()
    assert hs.loads(kernel.ptx)[kernel.entry].registers_wanted == pytest.approx(recorded, rel=0.12)


def test_what_a_warp_shares_takes_none() -> None:
    kernel = hs.loads(
        HEAD
        + """.visible .entry k(.param .u64 x)
{
    .reg .b32 %r<9>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    add.u32 %r3, %r2, 1;
    add.u32 %r4, %r2, %r1;
    shfl.sync.idx.b32 %r5, %r1, 0, 31, -1;
    shfl.sync.bfly.b32 %r6, %r1, 1, 31, -1;
    vote.sync.ballot.b32 %r7, 1, -1;
    add.u32 %r8, %r5, %r7;
    ret;
}
"""
    )["k"]
    uniform = uniform_registers(kernel.instructions)
    names = {register.name for register in kernel.body.registers if register.index in uniform}
    assert names == {"%rd1", "%r2", "%r3", "%r5", "%r7", "%r8"}


def test_two_ctas_of_a_kernel_that_copies_with_cp_async_share_an_sm() -> None:
    case = next(
        case
        for case in load_sets(SILICON)
        if case.program.name == "mm_pointers_bf16_128x128x64_s3_w8" and case.size == (512,) * 3
    )
    gpu = hs.Gpu()
    program = case.program
    given = operands(gpu, program.dtype, program.out_dtype, case.size)
    result = launch(gpu, program, case.size, case.grid, given, values=False, check=False)
    assert result.occupancy.ctas_per_sm == 2
