"""Sparse products in the machine: what a whole program gives, and what is told when it is wrong."""

from __future__ import annotations

import numpy as np
import pytest

import hopsim as hs
from hopsim.errors import HopsimError
from hopsim.kernels.probes.recording import SIMULATED
from hopsim.kernels.probes.tensor import Types
from hopsim.kernels.probes.wgmma_sparse import Variant, module_of
from hopsim.layout.swizzle import Swizzle

HALF = Types("f32", "bf16", "bf16")
ROWS, COLUMNS, K = 16, 8, 32

KERNEL = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry sparse(.param .u64 a, .param .u64 b, .param .u64 e, .param .u64 d)
{
    .reg .b32 %r<20>; .reg .f32 %f<5>; .reg .b64 %p<9>;
    ld.param.u64 %p1, [a]; ld.param.u64 %p2, [b]; ld.param.u64 %p3, [e]; ld.param.u64 %p4, [d];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %p5, %r0, 16; mul.wide.u32 %p6, %r0, 4;
    add.u64 %p1, %p1, %p5; add.u64 %p2, %p2, %p5; add.u64 %p3, %p3, %p6; add.u64 %p4, %p4, %p5;
    ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%p1];
    ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%p2];
    ld.global.b32 %r9, [%p3];
    mov.f32 %f1, 0f00000000;
    mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32
        {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%f1, %f1, %f1, %f1}, %r9, 0;
    st.global.v4.f32 [%p4], {%f1, %f2, %f3, %f4};
    ret;
}
"""


def test_a_pruned_matrix_gives_its_product() -> None:
    """A matrix with two of four elements, its metadata packed by hand, against numpy."""
    rng = np.random.default_rng(5)
    whole = np.zeros((ROWS, K), np.float16)
    stored = np.zeros((ROWS, K // 2), np.float16)
    words = np.zeros(32, np.uint32)
    for row in range(ROWS):
        for chunk in range(K // 4):
            first, second = sorted(rng.choice(4, 2, replace=False).tolist())
            values = rng.integers(1, 9, 2).astype(np.float16)
            stored[row, 2 * chunk : 2 * chunk + 2] = values
            whole[row, 4 * chunk + first], whole[row, 4 * chunk + second] = values
            lane = row % 8 * 4 + chunk // 4
            words[lane] |= np.uint32(first | second << 2) << np.uint32(
                4 * (chunk % 4) + 16 * (row // 8)
            )
    other = rng.integers(-8, 9, (COLUMNS, K)).astype(np.float16)
    a, b = np.zeros((32, 8), np.float16), np.zeros((32, 8), np.float16)
    for lane in range(32):
        group, thread = divmod(lane, 4)
        for register in range(4):
            row, column = group + 8 * (register % 2), 8 * (register // 2) + 2 * thread
            a[lane, 2 * register : 2 * register + 2] = stored[row, column : column + 2]
            k = 8 * register + 2 * thread
            b[lane, 2 * register : 2 * register + 2] = other[group, k : k + 2]
    gpu = hs.Gpu()
    d = gpu.array(np.zeros((32, 4), np.float32))
    given = [gpu.array(one) for one in (a, b, words)]
    result = gpu.launch(hs.loads(KERNEL)["sparse"], 1, 32, args=[*given, d])
    assert result.verdict == "clean"
    wanted = whole.astype(np.float32) @ other.astype(np.float32).T
    got = d.numpy()
    for lane in range(32):
        group, thread = divmod(lane, 4)
        for index in range(4):
            assert got[lane, index] == wanted[group + 8 * (index // 2), 2 * thread + index % 2]


def test_a_narrow_swizzle_does_not_hold_b() -> None:
    """Recorded on an H200: the launch ends with an error."""
    (probe,) = module_of(HALF, [Variant("swizzle_B32", swizzle=Swizzle.B32, n=24)])
    with pytest.raises(HopsimError, match="64 bytes along K do not fit a swizzle of 32 bytes"):
        probe.run(hs.Gpu(), **SIMULATED)


@pytest.mark.parametrize("from_registers", [False, True])
def test_metadata_may_not_change_while_a_product_is_in_flight(from_registers: bool) -> None:
    (probe,) = module_of(HALF, [Variant("single", from_registers=from_registers)])
    clean = run(probe.ptx, probe.entry, probe)
    assert clean.verdict == "clean"
    wait = "    wgmma.wait_group.sync.aligned"
    spoilt = probe.ptx.replace(wait, f"    mov.b32 %e0, 0;\n{wait}", 1)
    assert spoilt != probe.ptx
    found = run(spoilt, probe.entry, probe)
    assert [hazard.rule for hazard in found.hazards] == ["HS013"]


def run(ptx: str, entry: str, probe: object) -> hs.LaunchResult:
    from hopsim.kernels.probes.probe import Probe

    assert isinstance(probe, Probe)
    gpu = hs.Gpu()
    outputs = [gpu.array(np.zeros(shape, dtype)) for shape, dtype in probe.outputs.values()]
    given = [gpu.array(values) for values in probe.inputs.values()]
    return gpu.launch(
        hs.loads(ptx)[entry], probe.grid, probe.block, args=[*given, *outputs],
        shared_bytes=probe.shared_bytes,
    )  # fmt: skip
