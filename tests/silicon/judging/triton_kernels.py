# ruff: noqa: N803
"""Compile the Triton GEMMs that judge the timing, with no GPU: `python triton_kernels.py` (triton==3.6.0).

Writes triton/NAME.ptx and triton/programs.json, which says what each was compiled for; `hopsim.kernels.measured` knows
how Triton's host code launches them.  None of them is calibrated on.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # no paths of this machine in the text
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

HERE = Path(__file__).parent / "triton"
TARGET = GPUTarget("cuda", 90, 32)
SMS = 132


class _Device:
    def get_device_properties(self, device):
        return {
            "max_shared_mem": 232448,
            "max_num_regs": 65536,
            "multiprocessor_count": SMS,
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
def tile_of(pid, m, n, BM: tl.constexpr, BN: tl.constexpr, GROUP_M: tl.constexpr):
    across = tl.cdiv(n, BN)
    down = tl.cdiv(m, BM)
    group = pid // (GROUP_M * across)
    first = group * GROUP_M
    rows = min(down - first, GROUP_M)
    inside = pid % (GROUP_M * across)
    return first + inside % rows, inside // rows


@triton.jit
def mm_tma(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP_M: tl.constexpr,
           OUT: tl.constexpr):  # fmt: skip
    row, column = tile_of(tl.program_id(0), m, n, BM, BN, GROUP_M)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        total = tl.dot(a.load([row * BM, start]), b.load([column * BN, start]).T, total)
    c.store([row * BM, column * BN], total.to(OUT))


@triton.jit
def mm_persistent(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP_M: tl.constexpr,
                  OUT: tl.constexpr):  # fmt: skip
    tiles = tl.cdiv(m, BM) * tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        row, column = tile_of(tile, m, n, BM, BN, GROUP_M)
        total = tl.zeros((BM, BN), tl.float32)
        for start in range(0, k, BK):
            total = tl.dot(a.load([row * BM, start]), b.load([column * BN, start]).T, total)
        c.store([row * BM, column * BN], total.to(OUT))


@triton.jit
def mm_pointers(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP_M: tl.constexpr,
                OUT: tl.constexpr):  # fmt: skip
    row, column = tile_of(tl.program_id(0), m, n, BM, BN, GROUP_M)
    rows = (row * BM + tl.arange(0, BM)) % m
    columns = (column * BN + tl.arange(0, BN)) % n
    inner = tl.arange(0, BK)
    a_tile = a + rows[:, None] * k + inner[None, :]
    b_tile = b + inner[:, None] + columns[None, :] * k
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        x = tl.load(a_tile, mask=inner[None, :] < k - start, other=0.0)
        y = tl.load(b_tile, mask=inner[:, None] < k - start, other=0.0)
        total = tl.dot(x, y, total)
        a_tile += BK
        b_tile += BK
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(OUT), mask=inside)


NAMES = {"fp16": "fp16", "bf16": "bf16", "e4m3": "fp8e4nv"}
OUTS = {"fp16": tl.float16, "bf16": tl.bfloat16}


def compile_one(kernel, dtype, tile, stages, warps):
    bm, bn, bk = tile
    out = "bf16" if dtype == "e4m3" else dtype
    element, result = NAMES[dtype], NAMES[out]
    if kernel is mm_pointers:
        operands = [f"*{element}", f"*{element}", f"*{result}"]
        aligned = range(6)
    else:
        operands = [
            f"tensordesc<{element}[{bm}, {bk}]>",
            f"tensordesc<{element}[{bn}, {bk}]>",
            f"tensordesc<{result}[{bm}, {bn}]>",
        ]
        aligned = range(3, 6)
    constants = {"BM": bm, "BN": bn, "BK": bk, "GROUP_M": 8, "OUT": OUTS[out]}
    signature = dict(
        zip(kernel.arg_names, [*operands, *["i32"] * 3, *["constexpr"] * 5], strict=True)
    )
    attributes = {(position,): [["tt.divisibility", 16]] for position in aligned}
    source = triton.compiler.ASTSource(kernel, signature, constants, attributes)
    compiled = triton.compile(
        source, target=TARGET, options={"num_warps": warps, "num_stages": stages}
    )
    name = f"{kernel.__name__}_{dtype}_{bm}x{bn}x{bk}_s{stages}_w{warps}"
    text = compiled.asm["ptx"]
    (HERE / f"{name}.ptx").write_text(text)
    return {
        "kernel": name, "entry": kernel.__name__, "ptx": f"triton/{name}.ptx",
        "ptx_sha256": hashlib.sha256(text.encode()).hexdigest(), "dtype": dtype, "out_dtype": out,
        "shared_bytes": compiled.metadata.shared, "block": 32 * compiled.metadata.num_warps, "cluster": 1,
        "tile": {"bm": bm, "bn": bn, "bk": bk},
        "options": {"stages": stages, "warps": warps, "group_m": 8, "persistent": kernel is mm_persistent},
        "operands": "pointers" if kernel is mm_pointers else "maps",
    }  # fmt: skip


driver.set_active(_Driver())
HERE.mkdir(exist_ok=True)
programs = [
    compile_one(mm_tma, "fp16", (128, 128, 64), 4, 8),
    compile_one(mm_tma, "fp16", (128, 256, 64), 3, 8),
    compile_one(mm_tma, "fp16", (64, 128, 64), 4, 4),
    compile_one(mm_tma, "e4m3", (128, 128, 128), 4, 8),
    compile_one(mm_tma, "e4m3", (128, 256, 128), 3, 8),
    compile_one(mm_persistent, "bf16", (128, 128, 64), 4, 8),
    compile_one(mm_persistent, "fp16", (128, 256, 64), 3, 8),
    compile_one(mm_pointers, "bf16", (128, 128, 64), 3, 8),
    compile_one(mm_pointers, "fp16", (128, 128, 32), 4, 4),
    compile_one(mm_pointers, "fp16", (64, 128, 64), 3, 4),
]
(HERE / "programs.json").write_text(json.dumps(programs, indent=1) + "\n")
