"""`hopsim gemm`: build a GEMM as PTX, run it, compare its bits with the reference, say where the time went."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hopsim.cli.gemm_choices import (
    Dtype,
    KernelSchedule,
    MajorMode,
    Order,
    OutDtype,
    Reduction,
    SwizzleMode,
)
from hopsim.cli.judged import Outcome, outcome_of_bits, run_judged
from hopsim.cli.options import (
    Backend,
    BackendOption,
    CheckOption,
    GpuOption,
    JsonOption,
    LinesOption,
    MaxCyclesOption,
    Numerics,
    NumericsOption,
    RunSchedule,
    RunScheduleOption,
    SeedOption,
    SetOption,
    TraceOption,
    ValuesOption,
    Warm,
    WarmOption,
    extents,
    overrides,
)
from hopsim.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hopsim.config import HardwareConfig
    from hopsim.kernels.gemm.kernel import GemmKernel
    from hopsim.kernels.gemm.launch import GemmRun
    from hopsim.kernels.gemm.problem import GemmProblem
    from hopsim.kernels.gemm.tile import Tile
    from hopsim.launch.device import Device
    from hopsim.report.facts import Row
    from hopsim.results import LaunchResult

    Operands = tuple[NDArray[Any], NDArray[Any]]


def gemm(
    m: Annotated[int, typer.Option("--m", metavar="N", help="Rows of A and C.")],
    n: Annotated[int, typer.Option("--n", metavar="N", help="Rows of B, columns of C.")],
    k: Annotated[int, typer.Option("--k", metavar="N", help="Columns of A and B.")],
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
        typer.Option(
            "--schedule",
            help="Of the kernel: who copies, who multiplies; chosen by DeepGEMM's rules.",
        ),
    ] = KernelSchedule.WARP_SPECIALIZED,
    tile: Annotated[
        str | None,
        typer.Option(
            "--tile", metavar="MxNxK", help="Tile of a CTA, K of a stage; chosen if not given."
        ),
    ] = None,
    stages: Annotated[
        int | None,
        typer.Option("--stages", metavar="N", help="Slots of the ring; chosen if not given."),
    ] = None,
    warpgroups: Annotated[
        int | None,
        typer.Option(
            "--warpgroups",
            metavar="N",
            help="Warpgroups that multiply, 1 or 2; chosen if not given.",
        ),
    ] = None,
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="MxN", help="CTAs that share loads.")
    ] = "1x1",
    persistent: Annotated[
        bool | None,
        typer.Option(
            "--persistent/--no-persistent", help="One CTA an SM walks over several tiles."
        ),
    ] = None,
    order: Annotated[Order, typer.Option("--order", help="How tiles are walked.")] = Order.GROUPED,
    group_m: Annotated[
        int,
        typer.Option(
            "--group-m", metavar="N", help="Rows of tiles that are walked together, if grouped."
        ),
    ] = 8,
    splits: Annotated[
        int,
        typer.Option("--splits", metavar="N", help="CTAs that share the K of a tile (split-k)."),
    ] = 1,
    reduction: Annotated[
        Reduction, typer.Option("--reduction", help="How they add up; tma and atomic need f32.")
    ] = Reduction.TMA,
    a_major: Annotated[
        MajorMode, typer.Option("--a-major", help="A is (m, k) in memory, or (k, m).")
    ] = MajorMode.K,
    b_major: Annotated[
        MajorMode, typer.Option("--b-major", help="B is (n, k) in memory, or (k, n).")
    ] = MajorMode.K,
    swizzle: Annotated[
        SwizzleMode | None,
        typer.Option("--swizzle", help="Of A and B; the widest that fits if not given."),
    ] = None,
    a_in_registers: Annotated[
        bool, typer.Option("--a-in-registers", help="wgmma takes A from registers.")
    ] = False,
    values: ValuesOption = True,
    check: CheckOption = True,
    numerics: NumericsOption = Numerics.HOPPER,
    seed: SeedOption = 0,
    run_schedule: RunScheduleOption = RunSchedule.TIMED,
    gpu: GpuOption = "h100-sxm",
    settings: SetOption = None,
    max_cycles: MaxCyclesOption = None,
    warm: WarmOption = Warm.NOTHING,
    trace: TraceOption = None,
    lines: LinesOption = None,
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
    from hopsim.cli.launching import (
        launch_json,
        launch_options,
        make_gpu,
        progress_bar,
        save_ptx,
        save_trace,
        show_lines,
    )
    from hopsim.cli.output import Output, check_targets
    from hopsim.config import load
    from hopsim.kernels.gemm.kernel import plan_options
    from hopsim.kernels.gemm.problem import GemmProblem
    from hopsim.kernels.gemm.tile import Tile
    from hopsim.layout.swizzle import Swizzle
    from hopsim.report.launch import exit_code, launch_report, rate

    output = Output(json_file)
    check_targets((ptx, "--ptx"))
    device = make_gpu(backend, gpu, settings, lines=lines)
    options = launch_options(
        run_schedule,
        values=values,
        check=check,
        numerics=numerics,
        seed=seed,
        max_cycles=max_cycles,
        warm=warm,
        trace=trace,
        lines=lines,
    )
    problem = GemmProblem(
        m, n, k, dtype.value, out_dtype.value if out_dtype else "", a_major.value, b_major.value
    )
    hardware = load(gpu, overrides(settings))
    along_m, along_n = extents(cluster, 2, "--cluster", "2x1")
    wanted: dict[str, Any] = {
        "cluster": (along_m, along_n), "persistent": persistent, "order": order.value,
        "group_m": group_m, "splits": splits, "reduction": reduction.value,
        "swizzle": Swizzle[swizzle.name] if swizzle else None, "a_in_registers": a_in_registers,
    }  # fmt: skip
    given_tile = Tile(*extents(tile, 3, "--tile", "128x128x64")) if tile is not None else None
    if schedule is KernelSchedule.CHOSEN:
        _refuse_choices(
            {"tile": given_tile, "warpgroups": warpgroups, "stages": stages} | plan_options(wanted)
        )
        kernel, rows, chosen = _by_rules(problem, hardware)
    else:
        kernel, rows, chosen = _fitted(
            problem,
            hardware,
            schedule.value,
            given_tile,
            warpgroups,
            stages,
            wanted,
        )
    plan = kernel.plan
    saved = save_ptx(kernel.ptx, ptx)
    with progress_bar(f"gemm {m} x {n} x {k}") as tell:
        result, outcome = _run(
            cast("Device", device), kernel, seed, numerics, {**options, "progress": tell}
        )
    code = exit_code(result)
    if code == 0 and not outcome.is_right:
        code = 1
    output.show(
        launch_report(
            result,
            first=[("problem", _words(problem)), *rows],
            outcome=outcome.rows,
            checks=check,
            last=[*saved, *save_trace(output, result, trace)],
            flops=problem.flops,
            path=ptx or f"<{kernel.entry}>",
            changes=overrides(settings),
        )
    )
    parameters = {
        "m": m, "n": n, "k": k, "dtype": problem.dtype, "out_dtype": problem.out_dtype, "flops": problem.flops,
        "schedule": kernel.schedule, "tile": str(plan.tile), "stages": plan.stages,
        "warpgroups": plan.warpgroups, "cluster": list(plan.cluster), "persistent": plan.persistent,
        "order": plan.order, "group_m": plan.group_m, "splits": plan.splits, "reduction": plan.reduction,
        "chosen": list(chosen), "choice": [str(words) for _, words in rows], "shared_bytes": kernel.shared_bytes,
    }  # fmt: skip
    told = show_lines(output, device, lines)
    output.finish(
        launch_json(
            "gemm",
            result,
            {"gemm": parameters, "tflops": rate(result, problem.flops), **outcome.content, **told},
            checks=check,
            settings=settings,
        ),
        code,
    )


def operands(problem: GemmProblem, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return A and B as they lie in memory, in the problem's type: random numbers."""
    import numpy as np

    from hopsim.kernels.gemm.launch import NUMPY_TYPES

    kind = NUMPY_TYPES[problem.dtype]
    rng = np.random.default_rng(seed)
    if kind.kind == "i":
        shapes = (problem.m, problem.k), (problem.n, problem.k)
        a, b = (rng.integers(-128, 128, shape).astype(kind) for shape in shapes)
        return a, b
    a = rng.standard_normal(problem.a_shape, np.float32).astype(kind)
    b = rng.standard_normal(problem.b_shape, np.float32).astype(kind)
    return a, b


def _run(
    device: Device, kernel: GemmKernel, seed: int, numerics: Numerics, options: dict[str, Any]
) -> tuple[LaunchResult, Outcome]:
    """Launch a kernel on random operands and judge C: bit for bit with Hopper's numerics, else by the bound of f32 sums."""
    from hopsim.kernels.gemm.launch import launch, launch_dry

    return run_judged(
        lambda: launch_dry(device, kernel, **options),
        lambda: operands(kernel.problem, seed),
        lambda given: launch(device, kernel, *given, **options),
        _compare_bits if numerics is Numerics.HOPPER else _compare_bound,
        values=options["values"],
    )


def _compare_bits(done: GemmRun, given: Operands) -> Outcome:
    import numpy as np

    from hopsim.kernels.gemm.expected import expected, is_admissible
    from hopsim.report.comparison import compare_bits

    admissible = expected(done.kernel, *given)
    # where several orders of addition are possible, each element may follow its own
    fits = is_admissible(done.c, admissible)
    nearest = np.where(fits, done.c, admissible[0])
    against = "the reference" if len(admissible) == 1 else "a sum in some order of the parts"
    comparison = compare_bits("C", done.c, nearest, against)
    return outcome_of_bits(comparison)


def _compare_bound(done: GemmRun, given: Operands) -> Outcome:
    from hopsim.kernels.gemm.expected import f32_error

    worst, is_within = f32_error(done.c, done.kernel.problem, *given)
    state = "within" if is_within else "outside"
    return Outcome(
        is_within,
        [
            ("bits", "not compared: --numerics float32 is an approximation of the tensor core"),
            ("error", f"{worst:.3g} at most, {state} the bound of f32 sums"),
        ],
        {"comparison": None, "largest_error": worst, "within_bound": is_within},
    )


def _words(problem: GemmProblem) -> str:
    p = problem
    sums = "s32" if p.out_dtype == "s32" else "f32"
    return f"C[{p.m},{p.n}] = A[{p.m},{p.k}] B[{p.n},{p.k}]^T   {p.dtype} -> {p.out_dtype}, {sums} sums"


def _refuse_choices(given: dict[str, Any]) -> None:
    """Say so where an option is given that `--schedule chosen` decides.

    Raises: ConfigError.
    """
    names = [
        name.removesuffix("_mode").replace("_", "-")
        for name, value in given.items()
        if value is not None
    ]
    if names:
        raise ConfigError(
            f"--schedule chosen decides --{names[0]} itself",
            where=f"--{names[0]}",
            hint=f"leave --{names[0]} out, or name a schedule",
        )


def _by_rules(
    problem: GemmProblem, hardware: HardwareConfig
) -> tuple[GemmKernel, list[Row], tuple[str, ...]]:
    """Return the kernel of `hopsim.kernels.choose`, and why."""
    from hopsim.kernels.gemm.choice import choose_for

    found = choose_for(problem, hardware.device.sm_count)
    labels = ["choice", *[""] * (len(found.reasons) - 1)]
    chosen = ("schedule", "tile", "stages", "warpgroups", "cluster", "order")
    return found.build(), list(zip(labels, found.reasons, strict=True)), chosen


def _fitted(
    problem: GemmProblem,
    hardware: HardwareConfig,
    schedule: str,
    tile: Tile | None,
    warpgroups: int | None,
    stages: int | None,
    wanted: dict[str, Any],
) -> tuple[GemmKernel, list[Row], tuple[str, ...]]:
    """Return the kernel of a schedule with what is left open fitted by the roofline."""
    from hopsim.hw.timing.occupancy import resident_ctas
    from hopsim.kernels.gemm.kernel import build, plan_options
    from hopsim.kernels.gemm.roofline import fit
    from hopsim.kernels.gemm.schedules import schedule_named

    found = fit(
        problem, hardware, schedule_named(schedule),
        tile=tile, warpgroups=warpgroups, stages=stages, given=plan_options(wanted),
    )  # fmt: skip
    kernel = build(
        schedule, problem, found.tile, found.stages, warpgroups=found.warpgroups,
        resident_ctas=resident_ctas(hardware.device, 1, math.prod(wanted["cluster"])), **wanted,
    )  # fmt: skip
    words = {
        "tile": f"tile {found.tile}",
        "stages": f"{found.stages} stage{'s' if found.stages > 1 else ''}",
        "warpgroups": f"{found.warpgroups} consumer warpgroup{'s' if found.warpgroups > 1 else ''}",
    }
    marked = [text + (" (chosen)" if name in found.chosen else "") for name, text in words.items()]
    return kernel, [("choice", ", ".join(marked))], found.chosen
