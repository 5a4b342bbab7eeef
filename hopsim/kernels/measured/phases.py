"""Where the time of a GEMM goes: the SM clock read inside hopsim's own kernels, between the phases that all have.

A whole kernel can be predicted well because two errors cancel.  Each warp notes the clock at the end of each phase in
registers, and stores what it noted when it ends, so that the kernel does what it did.  The stores lengthen the end of
the launch by some hundred cycles, which is part of no phase.

    rows = record(Path("ncu.csv"), print)                            # on an H100, with Nsight Compute
    found, cycles = run(hopsim.Gpu(), cases()[0], values=False)      # the same program on the simulator
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hopsim.errors import DeviceError, HopsimError
from hopsim.kernels.gemm.kernel import GemmKernel, build
from hopsim.kernels.gemm.launch import NUMPY_TYPES, arguments
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.gemm.silicon import operands, sha256
from hopsim.kernels.measured.ncu import profile
from hopsim.kernels.measured.ncu_export import middle
from hopsim.kernels.probes.probe import load_module

PHASES: Final = ("start", "first data", "main loop", "last products", "epilogue", "stores")
"""From the entry of a CTA to the barriers' initialisation (all of a cluster's); to the first wgmma; to the end of the loop
over K; to the end of its products; to the issue of the last store; until C is written."""
LONGEST: Final = "longest CTA"
"""From its entry to its exit."""
MARKS: Final = len(PHASES) + 2
"""Clocks of a warp: at its entry, at the end of each phase, and when it exits."""
METRICS: Final = (
    "gpc__cycles_elapsed.max", "gpu__time_duration.sum", "gpc__cycles_elapsed.min", "sm__cycles_active.max",
)  # fmt: skip
PROFILES: Final = 3
NCU_LIMIT_S: Final = 300.0

Size = tuple[int, int, int]
CONFIGURATIONS: Final[tuple[tuple[str, str, Size, int, dict[str, Any]], ...]] = (
    ("pipelined", "bf16", (64, 64, 64), 6, {}),
    ("pipelined", "bf16", (128, 128, 64), 4, {}),
    ("pipelined", "bf16", (128, 256, 64), 3, {"warpgroups": 2}),
    ("pipelined", "e4m3", (128, 128, 128), 4, {}),
    ("warp-specialized", "bf16", (64, 128, 64), 6, {}),
    ("warp-specialized", "bf16", (128, 128, 64), 4, {}),
    ("warp-specialized", "fp16", (128, 128, 64), 5, {"warpgroups": 2}),
    ("warp-specialized", "fp16", (256, 128, 64), 4, {"warpgroups": 2}),
    ("cooperative", "bf16", (128, 256, 64), 4, {"warpgroups": 2}),
    ("cooperative", "e4m3", (128, 256, 128), 4, {"warpgroups": 2}),
    ("warp-specialized", "bf16", (128, 128, 64), 4, {"cluster": (2, 1)}),
    ("warp-specialized", "bf16", (128, 128, 64), 6, {"cluster": (1, 2)}),
)
"""Schedule, type, tile, stages and further options of `build`: each CTA has one tile of `SIZES`."""
SIZES: Final[tuple[Size, ...]] = (
    (512, 512, 512),
    (1024, 1024, 1024),
    (1000, 1416, 528),
    (2048, 2048, 2048),
)


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel with clocks in it."""

    kernel: GemmKernel
    ptx: str

    @property
    def name(self) -> str:
        """Kernel and problem."""
        p = self.kernel.problem
        return f"{self.kernel.entry} {p.m}x{p.n}x{p.k}"


def cases() -> list[Case]:
    """Return all cases, the configurations of a size together."""
    found: list[Case] = []
    for size in SIZES:
        for schedule, dtype, tile, stages, options in CONFIGURATIONS:
            kernel = build(schedule, GemmProblem(*size, dtype), tile, stages, **options)
            found.append(Case(kernel, with_clocks(kernel.ptx)))
    return found


# --- the clocks -----------------------------------------------------------------------------------


def with_clocks(ptx: str) -> str:
    """Return one of hopsim's own TMA GEMMs that notes the clock; its last parameter is where.

    A warp that a phase does not concern notes 0 for it.
    """
    text = re.sub(r"(\.param \.u32 k)\n", r"\1,\n    .param .u64 clocks\n", ptx, count=1)
    declared = f".reg .b64 %mark<{MARKS}>; .reg .b64 %to<2>; .reg .b32 %who<3>; .reg .pred %notes;"
    cleared = "\n".join(f"    mov.b64 %mark{number}, 0;" for number in range(1, MARKS))
    text = text.replace("\n{\n", f"\n{{\n    {declared}\n{_mark(0)}\n{cleared}\n", 1)
    text = _after(text, r"(?:bar\.sync +0|barrier\.cluster\.wait\.aligned);", 1)
    text = _before(text, r"wgmma\.fence\.sync\.aligned;", 2)
    text = _after(text, r"K_DONE:", 3)
    text = _after(text, r"wgmma\.wait_group\.sync\.aligned 0;", 4)
    text = _before(text, r"@%\w+ cp\.async\.bulk\.wait_group 0;", 5, last=True)
    text = _after(text, r"@%\w+ cp\.async\.bulk\.wait_group 0;", 6, last=True)
    return _before(text, r"ret;", MARKS - 1, last=True, more=_stores())


def _mark(number: int) -> str:
    return f"    mov.u64 %mark{number}, %clock64;"


def _line(text: str, pattern: str, last: bool) -> re.Match[str]:
    found = list(re.finditer(rf"^[ \t]*{pattern}.*$", text, re.MULTILINE))
    assert found, (pattern, "is in none of the lines")
    return found[-1 if last else 0]


def _after(text: str, pattern: str, number: int, *, last: bool = False) -> str:
    at = _line(text, pattern, last).end()
    return f"{text[:at]}\n{_mark(number)}{text[at:]}"


def _before(text: str, pattern: str, number: int, *, last: bool = False, more: str = "") -> str:
    at = _line(text, pattern, last).start()
    return f"{text[:at]}{_mark(number)}\n{more}{text[at:]}"


def _stores() -> str:
    lines = [
        "ld.param.u64 %to0, [clocks];",
        "mov.u32 %who0, %tid.x;",
        "and.b32 %who1, %who0, 31;",
        "setp.eq.u32 %notes, %who1, 0;",
        "mov.u32 %who1, %ctaid.x;",
        "mov.u32 %who2, %ntid.x;",
        "mad.lo.u32 %who1, %who1, %who2, %who0;",
        "shr.u32 %who1, %who1, 5;",
        f"mad.wide.u32 %to1, %who1, {8 * MARKS}, %to0;",
        *(f"@%notes st.global.u64 [%to1+{8 * i}], %mark{i};" for i in range(MARKS)),
    ]
    return "".join(f"    {line}\n" for line in lines)


def lengths(table: NDArray[np.uint64], ctas: int) -> dict[str, float]:
    """Return the cycles of each phase: of a CTA those of its last warp, of all CTAs the median; and of the longest CTA.

    Args:
        table: a row of clocks for each warp.
    """
    clocks = table.astype(np.int64).reshape(ctas, -1, MARKS)
    entry = clocks[:, :, 0].min(axis=1)
    # Only who multiplies has all marks.
    concerned = clocks[:, :, 2] > 0
    found: dict[str, float] = {}
    before = np.zeros(ctas)
    for number, name in enumerate(PHASES, 1):
        noted = concerned & (clocks[:, :, number] > 0)
        end = np.where(noted, clocks[:, :, number] - entry[:, None], 0).max(axis=1)
        found[name] = round(float(np.median(end - before)), 1)
        before = end
    found[LONGEST] = float((clocks[:, :, -1].max(axis=1) - entry).max())
    return found


def run(gpu: Any, case: Case, **options: Any) -> tuple[dict[str, float], int | None]:
    """Launch a case on a `hopsim.Gpu` or `hopsim.CudaGpu`; return `lengths`, and the cycles of the launch."""
    kernel = case.kernel
    problem = kernel.problem
    a, b = (gpu.array(one) for one in operands(problem))
    c = gpu.array(np.zeros((problem.m, problem.n), NUMPY_TYPES[problem.out_dtype]))
    ctas = kernel.grid[0]
    clocks = gpu.array(np.zeros((ctas * kernel.block // 32, MARKS), np.uint64))
    result = gpu.launch(
        load_module(case.ptx)[kernel.entry], kernel.grid, kernel.block, kernel.cluster,
        [*arguments(kernel, a, b, c), clocks], kernel.shared_bytes, **options,
    )  # fmt: skip
    return lengths(clocks.numpy(), ctas), result.cycles


# --- recording ------------------------------------------------------------------------------------


def record(log: Path, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Run all cases under Nsight Compute; return a row for each, as plain data.

    Args:
        log: where Nsight Compute writes; a file beside it takes the clocks meanwhile.
    Raises: DeviceError: there is no `ncu`, or launches are missing.
    """
    noted = log.with_suffix(".json")
    found = profile(__name__, str(noted), METRICS, log, NCU_LIMIT_S, say, kernels="gemm_")
    runs: list[list[dict[str, float]]] = json.loads(noted.read_text(encoding="utf-8"))
    noted.unlink()
    chosen = cases()
    if len(found) != PROFILES * len(chosen) or len(runs) != len(chosen):
        raise DeviceError(f"{PROFILES * len(chosen)} launches were expected, got {len(found)}")
    rows: list[dict[str, Any]] = []
    for number, case in enumerate(chosen):
        mine = found[PROFILES * number : PROFILES * (number + 1)]
        p = case.kernel.problem
        rows.append({
            "kernel": case.kernel.entry, "m": p.m, "n": p.n, "k": p.k,
            "ptx_sha256": sha256(case.ptx), "grid": case.kernel.grid[0],
            "cycles": [one.metrics[METRICS[0]] for one in mine],
            "time_ns": [one.metrics[METRICS[1]] for one in mine],
            # Of the slowest GPC, and of the SM that worked longest.
            "cycles_slowest_gpc": [one.metrics[METRICS[2]] for one in mine],
            "cycles_active": [one.metrics[METRICS[3]] for one in mine],
            "phases": middle(runs[number]),
        })  # fmt: skip
    return rows


def launch_all(file: Path) -> None:
    """Launch every case some times and write what was noted; what Nsight Compute looks at."""
    from hopsim.cuda.gpu import CudaGpu

    gpu = CudaGpu(0, isolate=False)
    found = [
        [run(gpu, case, timing=False)[0] for _ in range(PROFILES)] for case in cases()
    ]  # fmt: skip
    file.write_text(json.dumps(found), encoding="utf-8")


def with_rows(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Case, Mapping[str, Any]]]:
    """Return each case and the recorded row of it.

    Raises: HopsimError: the rows are of other programs.
    """
    chosen = cases()
    hashes = [sha256(case.ptx) for case in chosen]
    if hashes != [row["ptx_sha256"] for row in rows]:
        raise HopsimError(
            "the kernels are no longer those that were recorded",
            hint="hopsim record tests/silicon --part phases",
        )
    return list(zip(chosen, rows, strict=True))


if __name__ == "__main__":
    launch_all(Path(sys.argv[1]))
