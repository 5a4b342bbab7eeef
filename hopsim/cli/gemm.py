"""`hopsim gemm`: build a GEMM as PTX, run it, compare its bits with the reference, say where the time went."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hopsim.cli.options import (
    Backend,
    BackendOption,
    CheckOption,
    GpuOption,
    JsonOption,
    MaxCyclesOption,
    Numerics,
    NumericsOption,
    RunSchedule,
    RunScheduleOption,
    SeedOption,
    SetOption,
    TraceOption,
    ValuesOption,
)
from hopsim.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hopsim.cli.gemm_choice import Choice
    from hopsim.kernels.gemm.launch import Device, GemmRun
    from hopsim.kernels.gemm.problem import GemmProblem
    from hopsim.report.facts import Row


class Dtype(StrEnum):
    """Element type of A and B."""

    BF16 = "bf16"
    FP16 = "fp16"
    E4M3 = "e4m3"
    TF32 = "tf32"
    INT8 = "int8"


class OutDtype(StrEnum):
    """Element type of C."""

    BF16 = "bf16"
    FP16 = "fp16"
    F32 = "f32"
    S32 = "s32"


class KernelSchedule(StrEnum):
    """How the kernel overlaps copies and products."""

    PIPELINED = "pipelined"
    WARP_SPECIALIZED = "warp-specialized"


def gemm(
    m: Annotated[int, typer.Option("--m", help="Rows of A and C.")],
    n: Annotated[int, typer.Option("--n", help="Rows of B, columns of C.")],
    k: Annotated[int, typer.Option("--k", help="Columns of A and B.")],
    dtype: Annotated[
        Dtype, typer.Option("--dtype", help="Type of A and B; sums are f32, of int8 s32.")
    ] = Dtype.BF16,
    out_dtype: Annotated[
        OutDtype | None,
        typer.Option(
            "--out-dtype",
            help="Type of C; by default that of A, bf16 for e4m3, f32 for tf32, s32 for int8.",
        ),
    ] = None,
    schedule: Annotated[
        KernelSchedule,
        typer.Option("--schedule", help="Of the kernel: who copies, who multiplies."),
    ] = KernelSchedule.WARP_SPECIALIZED,
    tile: Annotated[
        str | None,
        typer.Option(
            "--tile", metavar="MxNxK", help="Tile of a CTA, K of a stage; chosen if not given."
        ),
    ] = None,
    stages: Annotated[
        int | None, typer.Option("--stages", help="Slots of the ring; chosen if not given.")
    ] = None,
    warpgroups: Annotated[
        int | None,
        typer.Option("--warpgroups", help="Warpgroups that multiply, 1 or 2; chosen if not given."),
    ] = None,
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="MxN", help="CTAs that share loads.")
    ] = "1x1",
    persistent: Annotated[
        bool,
        typer.Option(
            "--persistent/--no-persistent", help="One CTA an SM walks over several tiles."
        ),
    ] = False,
    group_m: Annotated[
        int, typer.Option("--group-m", help="Rows of tiles that are walked together.")
    ] = 8,
    values: ValuesOption = True,
    check: CheckOption = True,
    numerics: NumericsOption = Numerics.HOPPER,
    seed: SeedOption = 0,
    run_schedule: RunScheduleOption = RunSchedule.TIMED,
    gpu: GpuOption = "h100-sxm",
    settings: SetOption = None,
    max_cycles: MaxCyclesOption = None,
    trace: TraceOption = None,
    ptx: Annotated[
        str | None,
        typer.Option(
            "--ptx", metavar="FILE", help="Save the kernel's PTX; reports name its lines."
        ),
    ] = None,
    json_file: JsonOption = None,
    backend: BackendOption = Backend.SIM,
) -> None:
    """Run C[M,N] = A[M,K] B[N,K]^T and compare the bits of C with the reference."""
    from hopsim.cli.gemm_choice import choose
    from hopsim.cli.launching import launch_json, launch_options, make_gpu, progress_bar, save_trace
    from hopsim.cli.output import Output
    from hopsim.config import load
    from hopsim.kernels.gemm.kernel import build
    from hopsim.kernels.gemm.launch import launch
    from hopsim.kernels.gemm.plan import Tile
    from hopsim.kernels.gemm.problem import GemmProblem
    from hopsim.report.launch import exit_code, launch_report, tflops

    output = Output(json_file)
    device = make_gpu(backend, gpu, settings)
    options = launch_options(
        run_schedule,
        values=values,
        check=check,
        numerics=numerics,
        seed=seed,
        max_cycles=max_cycles,
        trace=trace,
    )
    problem = GemmProblem(m, n, k, dtype.value, out_dtype.value if out_dtype else "")
    along_m, along_n = _extents(cluster, 2, "--cluster", "2x1")
    choice = choose(
        problem, load(gpu),
        has_producer=schedule is KernelSchedule.WARP_SPECIALIZED,
        tile=Tile(*_extents(tile, 3, "--tile", "128x128x64")) if tile is not None else None,
        warpgroups=warpgroups, stages=stages, cluster=(along_m, along_n),
    )  # fmt: skip
    kernel = build(
        schedule.value, problem, choice.tile, choice.stages,
        warpgroups=choice.warpgroups, cluster=(along_m, along_n), persistent=persistent or None, group_m=group_m,
    )  # fmt: skip
    saved = _save_ptx(kernel.ptx, ptx)
    a, b = operands(problem, seed if values else None)
    with progress_bar(f"gemm {m} x {n} x {k}") as tell:
        done = launch(cast("Device", device), kernel, a, b, progress=tell, **options)
    result = done.result
    outcome = _Outcome(problem, done, a, b, numerics)
    code = exit_code(result)
    if code == 0 and not outcome.is_right:
        code = 1
    rate = tflops(problem.flops, result.time_us) if result.time_us else None
    output.show(
        launch_report(
            result,
            first=[("problem", _words(problem)), ("choice", _choice_words(choice))],
            outcome=outcome.rows,
            last=[*saved, *save_trace(result, trace)],
            flops=problem.flops,
            path=ptx or f"<{kernel.entry}>",
        )
    )
    parameters = {
        "m": m, "n": n, "k": k, "dtype": problem.dtype, "out_dtype": problem.out_dtype, "flops": problem.flops,
        "schedule": schedule.value, "tile": str(choice.tile), "stages": choice.stages,
        "warpgroups": choice.warpgroups, "cluster": [along_m, along_n], "persistent": persistent,
        "group_m": group_m, "chosen": list(choice.chosen), "shared_bytes": kernel.shared_bytes,
    }  # fmt: skip
    output.finish(
        launch_json("gemm", result, {"gemm": parameters, "tflops": rate, **outcome.content}), code
    )


def operands(problem: GemmProblem, seed: int | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return A (m, k) and B (n, k) in the problem's type: random numbers, or zeros where nobody looks (None)."""
    import numpy as np

    from hopsim.kernels.gemm.launch import NUMPY_TYPES

    kind = NUMPY_TYPES[problem.dtype]
    if seed is None:
        return np.zeros((problem.m, problem.k), kind), np.zeros((problem.n, problem.k), kind)
    rng = np.random.default_rng(seed)
    if kind.kind == "i":
        shapes = (problem.m, problem.k), (problem.n, problem.k)
        a, b = (rng.integers(-128, 128, shape).astype(kind) for shape in shapes)
        return a, b
    a = rng.standard_normal((problem.m, problem.k), np.float32).astype(kind)
    b = rng.standard_normal((problem.n, problem.k), np.float32).astype(kind)
    return a, b


class _Outcome:
    """Whether C is right: bit for bit with Hopper's numerics, within the error bound of f32 sums otherwise."""

    def __init__(
        self,
        problem: GemmProblem,
        done: GemmRun,
        a: NDArray[Any],
        b: NDArray[Any],
        numerics: Numerics,
    ) -> None:
        self.is_right = True
        self.rows: list[Any] = []
        self.content: dict[str, Any] = {"comparison": None}
        if not done.result.values or done.result.verdict == "deadlock":
            return
        if numerics is Numerics.HOPPER:
            self._compare_bits(problem, done, a, b)
        else:
            self._compare_bound(done, a, b)

    def _compare_bits(
        self, problem: GemmProblem, done: GemmRun, a: NDArray[Any], b: NDArray[Any]
    ) -> None:
        from dataclasses import asdict

        from hopsim.kernels.gemm.launch import NUMPY_TYPES
        from hopsim.reference.gemm import gemm as reference
        from hopsim.report.comparison import compare_bits

        expected = reference(a, b, out_dtype=NUMPY_TYPES[problem.out_dtype])
        comparison = compare_bits("C", done.c, expected, "the reference")
        self.is_right = comparison.is_equal
        self.rows = [("bits", comparison.__rich__())]
        self.content = {"comparison": {**asdict(comparison), "equal": comparison.is_equal}}

    def _compare_bound(self, done: GemmRun, a: NDArray[Any], b: NDArray[Any]) -> None:
        import numpy as np

        from hopsim.reference.gemm import gemm_f64

        exact = gemm_f64(a, b)
        magnitude = gemm_f64(np.abs(a.astype(np.float64)), np.abs(b.astype(np.float64)))
        got = done.c.astype(np.float64)
        # Any order of k f32 additions, then one rounding to C's type (Higham, "Accuracy and Stability", 3.1).
        step = {"bfloat16": 2.0**-8, "float16": 2.0**-11}.get(done.c.dtype.name, 2.0**-24)
        bound = 2 * a.shape[1] * 2.0**-24 * magnitude + step * np.abs(exact) + 2.0**-24
        error = np.abs(got - exact)
        self.is_right = bool((error <= bound).all())
        worst = float(np.nanmax(error)) if error.size else 0.0
        state = "within" if self.is_right else "outside"
        self.rows = [
            ("bits", "not compared: --numerics float32 is an approximation of the tensor core"),
            ("error", f"{worst:.3g} at most, {state} the bound of f32 sums"),
        ]
        self.content = {"comparison": None, "largest_error": worst, "within_bound": self.is_right}


def _extents(text: str, count: int, where: str, example: str) -> tuple[int, ...]:
    if not re.fullmatch("x".join([r"\d{1,6}"] * count), text.strip()):
        raise ConfigError(
            f"expected {count} numbers joined by x, got {text!r}",
            where=where,
            hint=f"{where} {example}",
        )
    return tuple(int(part) for part in text.split("x"))


def _save_ptx(text: str, path: str | None) -> list[Row]:
    from pathlib import Path

    if path is None:
        return []
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}", where="--ptx") from None
    return [("PTX", f"saved to {path}")]


def _words(problem: GemmProblem) -> str:
    p = problem
    sums = "s32" if p.out_dtype == "s32" else "f32"
    return f"C[{p.m},{p.n}] = A[{p.m},{p.k}] B[{p.n},{p.k}]^T   {p.dtype} -> {p.out_dtype}, {sums} sums"


def _choice_words(choice: Choice) -> str:
    given = {"tile": f"tile {choice.tile}", "stages": f"{choice.stages} stages"}
    given["warpgroups"] = (
        f"{choice.warpgroups} consumer warpgroup{'s' if choice.warpgroups > 1 else ''}"
    )
    words = [text + (" (chosen)" if name in choice.chosen else "") for name, text in given.items()]
    return ", ".join(words)
