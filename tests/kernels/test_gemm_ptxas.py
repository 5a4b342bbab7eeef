from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hopsim.kernels.gemm.kernel import build
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.layout.swizzle import Swizzle

PTXAS = shutil.which("ptxas")
WS = "warp-specialized"
TWO = {"warpgroups": 2}
CASES: list[tuple[str, str, str, tuple[int, int, int], int, dict[str, Any]]] = [
    ("pipelined", "bf16", "", (64, 64, 64), 4, {}),
    ("pipelined", "fp16", "", (128, 192, 64), 4, {}),
    ("pipelined", "bf16", "", (128, 256, 64), 3, TWO),
    ("pipelined", "e4m3", "f32", (128, 128, 128), 3, {}),
    ("pipelined", "bf16", "", (64, 48, 32), 3, {}),
    ("pipelined", "bf16", "", (64, 128, 128), 2, {}),
    (WS, "bf16", "", (64, 64, 64), 4, {}),
    (WS, "bf16", "", (64, 152, 64), 4, {}),
    (WS, "bf16", "", (64, 256, 64), 4, {"persistent": True}),
    (WS, "bf16", "", (128, 192, 64), 4, {"persistent": True}),
    (WS, "bf16", "", (128, 256, 64), 4, {"persistent": True, **TWO}),
    (WS, "bf16", "f32", (128, 256, 64), 3, {"cluster": (2, 1), **TWO}),
    (WS, "fp16", "", (256, 128, 64), 4, {"cluster": (1, 2), "persistent": True, **TWO}),
    (WS, "e4m3", "fp16", (128, 256, 128), 4, {"cluster": (2, 2), "persistent": True, **TWO}),
    (WS, "bf16", "", (256, 192, 64), 3, {"cluster": (2, 1), "persistent": True, **TWO}),
    ("mma-simple", "bf16", "", (128, 128, 16), 1, {}),
    ("mma-simple", "e4m3", "fp16", (64, 64, 64), 1, {}),
    ("mma-multistage", "bf16", "", (128, 128, 32), 4, {}),
    ("mma-multistage", "fp16", "f32", (64, 128, 64), 3, {}),
    ("wgmma-simple", "bf16", "", (128, 128, 64), 1, {}),
    ("wgmma-simple", "bf16", "", (128, 128, 64), 1, {"a_in_registers": True, **TWO}),
    ("wgmma-simple", "e4m3", "", (64, 256, 128), 1, {"swizzle": Swizzle.NONE}),
    ("cooperative", "bf16", "", (128, 256, 64), 4, {"cluster": (2, 1), "order": "blocks-m"}),
    ("cooperative", "fp16", "f32", (256, 128, 64), 3, {"cluster": (1, 2), "order": "blocks-n"}),
    ("pingpong", "bf16", "", (64, 256, 64), 4, {"cluster": (2, 1)}),
    ("pingpong", "e4m3", "", (128, 128, 128), 4, {"cluster": (2, 2), "order": "column"}),
    ("split-k", "bf16", "f32", (128, 128, 64), 4, {"splits": 4, **TWO}),
    ("split-k", "bf16", "f32", (64, 256, 64), 3, {"splits": 3, "reduction": "atomic"}),
    ("split-k", "bf16", "", (128, 256, 64), 4, {"splits": 2, "reduction": "dsmem", **TWO}),
    ("stream-k", "bf16", "", (128, 256, 64), 4, TWO),
    ("stream-k", "e4m3", "f32", (64, 128, 128), 4, {}),
    (WS, "e4m3", "", (128, 64, 64), 3, {"release_scope": "cluster", "cluster": (2, 1)}),
]


@pytest.mark.skipif(PTXAS is None, reason="ptxas is not on PATH: the kernel was not assembled")
@pytest.mark.parametrize(("schedule", "dtype", "out", "tile", "stages", "options"), CASES)
def test_ptxas_takes_it_without_spills_or_serialised_wgmma(
    schedule: str, dtype: str, out: str, tile: tuple[int, int, int], stages: int,
    options: dict[str, Any], tmp_path: Path,
) -> None:  # fmt: skip
    kernel = build(schedule, GemmProblem(512, 512, 512, dtype, out), tile, stages, **options)
    source = tmp_path / "kernel.ptx"
    source.write_text(kernel.ptx)
    assert PTXAS is not None
    command = [PTXAS, "-arch=sm_90a", "-v", str(source), "-o", str(tmp_path / "kernel.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = done.stdout + done.stderr
    assert done.returncode == 0, report
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in report
    assert "(C7" not in report
    assert "warning" not in report.lower()
    used = re.search(r"Used (\d+) registers", report)
    assert used is not None
    assert int(used[1]) * kernel.block <= 65_536
