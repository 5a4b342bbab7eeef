"""Compile the Triton kernels of this folder to PTX, with no GPU: `python kernels.py` (triton==3.6.0)."""

from __future__ import annotations

from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

TARGET = GPUTarget("cuda", 90, 32)


class _Device:
    def get_device_properties(self, device):
        return {
            "max_shared_mem": 232448,
            "max_num_regs": 65536,
            "multiprocessor_count": 132,
            "warpSize": 32,
        }

    def load_binary(self, *arguments):
        raise RuntimeError("this script only compiles")


class _Driver:
    utils = _Device()

    def get_current_target(self):
        return TARGET

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0


@triton.jit
def gemm_pointers(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    a_tile = a + rows[:, None] * k + inner[None, :]
    b_tile = b + inner[:, None] * n + columns[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        x = tl.load(a_tile, mask=inner[None, :] < k - start, other=0.0)
        y = tl.load(b_tile, mask=inner[:, None] < k - start, other=0.0)
        total = tl.dot(x, y, total)
        a_tile += BK
        b_tile += BK * n
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16), mask=inside)


@triton.jit
def gemm_warp_specialized(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM
    column = tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for start in tl.range(0, k, BK, warp_specialize=True):
        total = tl.dot(a.load([row, start]), b.load([column, start]).T, total)
    rows = row + tl.arange(0, BM)
    columns = column + tl.arange(0, BN)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16), mask=inside)


def compile_ptx(kernel, types, tile, aligned):
    signature = dict(zip(kernel.arg_names, [*types, *["i32"] * 3, *["constexpr"] * 3], strict=True))
    attributes = {(position,): [["tt.divisibility", 16]] for position in aligned}
    constants = dict(zip(("BM", "BN", "BK"), tile, strict=True))
    source = triton.compiler.ASTSource(kernel, signature, constants, attributes)
    options = {"num_warps": 4, "num_stages": 3}
    compiled = triton.compile(source, target=TARGET, options=options)
    Path(f"{kernel.__name__}.ptx").write_text(compiled.asm["ptx"])


driver.set_active(_Driver())
pointer, tile_map = "*fp16", "tensordesc<fp16[64, 64]>"
compile_ptx(gemm_pointers, [pointer] * 3, (64, 64, 32), range(6))
compile_ptx(gemm_warp_specialized, [tile_map, tile_map, pointer], (64, 64, 64), range(2, 6))
