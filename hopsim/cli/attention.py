"""`hopsim attention`: a forward attention kernel, its bits against the reference, its cycles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

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
    RunSchedule,
    RunScheduleOption,
    SeedOption,
    SetOption,
    TraceOption,
    ValuesOption,
    Warm,
    WarmOption,
    overrides,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hopsim.kernels.attention.launch import AttentionKernel, AttentionRun
    from hopsim.kernels.attention.plan import AttentionProblem
    from hopsim.launch.device import Device
    from hopsim.results import LaunchResult

    Operands = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


def attention(
    heads: Annotated[int, typer.Option("--heads", metavar="N", help="Batch times heads.")] = 1,
    seq_q: Annotated[int, typer.Option("--seq-q", metavar="N", help="Rows of Q.")] = 256,
    seq_kv: Annotated[
        int | None,
        typer.Option("--seq-kv", metavar="N", help="Rows of K and V; by default those of Q."),
    ] = None,
    head_dim: Annotated[int, typer.Option("--head-dim", metavar="N", help="64 or 128.")] = 128,
    causal: Annotated[
        bool, typer.Option("--causal/--no-causal", help="A row sees no later column.")
    ] = False,
    dtype: Annotated[str, typer.Option("--dtype", metavar="TYPE", help="bf16 or fp16.")] = "bf16",
    block_kv: Annotated[
        int, typer.Option("--block-kv", metavar="N", help="Rows of K and V a stage.")
    ] = 128,
    stages: Annotated[int, typer.Option("--stages", metavar="N", help="Slots of each ring.")] = 2,
    values: ValuesOption = True,
    check: CheckOption = True,
    seed: SeedOption = 0,
    run_schedule: RunScheduleOption = RunSchedule.TIMED,
    gpu: GpuOption = "h100-sxm",
    settings: SetOption = None,
    max_cycles: MaxCyclesOption = None,
    warm: WarmOption = Warm.NOTHING,
    trace: TraceOption = None,
    lines: LinesOption = None,
    ptx: Annotated[
        str | None, typer.Option("--ptx", metavar="FILE", help="Save the kernel's PTX.")
    ] = None,
    json_file: JsonOption = None,
    backend: BackendOption = Backend.SIM,
) -> None:
    """Run O = softmax(Q K^T / sqrt(d)) V in FlashAttention-3's manner and compare its bits."""
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
    from hopsim.kernels.attention.launch import build
    from hopsim.kernels.attention.plan import AttentionProblem
    from hopsim.report.launch import exit_code, launch_report, rate
    from hopsim.report.quantities import plural

    output = Output(json_file)
    check_targets((ptx, "--ptx"))
    device = cast("Device", make_gpu(backend, gpu, settings, lines=lines))
    options = launch_options(
        run_schedule,
        values=values,
        check=check,
        numerics=Numerics.HOPPER,
        seed=seed,
        max_cycles=max_cycles,
        warm=warm,
        trace=trace,
        lines=lines,
    )
    seq_kv = seq_q if seq_kv is None else seq_kv
    problem = AttentionProblem(heads, seq_q, seq_kv, head_dim, causal, dtype)
    kernel = build(problem, block_kv=block_kv, stages=stages)
    saved = save_ptx(kernel.ptx, ptx)
    with progress_bar(f"attention {heads} x {seq_q} x {seq_kv}") as tell:
        result, outcome = _run(device, kernel, seed, {**options, "progress": tell})
    code = exit_code(result) or int(not outcome.is_right)
    seen = "causal" if causal else "all to all"
    words = f"{plural(heads, 'head')}, {seq_q} x {problem.seq_kv}, head {head_dim}, {seen}, {dtype}"
    output.show(
        launch_report(
            result,
            first=[
                ("problem", words),
                ("tile", f"128 rows, {block_kv} columns a block, {stages} stages"),
            ],
            outcome=outcome.rows,
            checks=check,
            last=[*saved, *save_trace(output, result, trace)],
            flops=problem.flops,
            path=ptx or f"<{kernel.entry}>",
            changes=overrides(settings),
        )
    )
    parameters = {
        "heads": heads, "seq_q": seq_q, "seq_kv": problem.seq_kv, "head_dim": head_dim,
        "causal": causal, "dtype": dtype, "block_kv": block_kv, "stages": stages,
        "flops": problem.flops,
    }  # fmt: skip
    told = show_lines(output, device, lines)
    output.finish(
        launch_json(
            "attention",
            result,
            {
                "attention": parameters,
                "tflops": rate(result, problem.flops),
                **outcome.content,
                **told,
            },
            checks=check,
            settings=settings,
        ),
        code,
    )


def operands(problem: AttentionProblem, seed: int) -> Operands:
    """Return Q, K and V: normal numbers."""
    import numpy as np

    from hopsim.kernels.attention.launch import NUMPY_TYPES

    kind = NUMPY_TYPES[problem.dtype]
    q_shape = (problem.heads, problem.seq_q, problem.head_dim)
    kv_shape = (problem.heads, problem.seq_kv, problem.head_dim)
    rng = np.random.default_rng(seed)
    q = rng.standard_normal(q_shape, np.float32).astype(kind)
    k = rng.standard_normal(kv_shape, np.float32).astype(kind)
    v = rng.standard_normal(kv_shape, np.float32).astype(kind)
    return q, k, v


def _run(
    device: Device, kernel: AttentionKernel, seed: int, options: dict[str, Any]
) -> tuple[LaunchResult, Outcome]:
    """Launch a kernel on random operands and compare O with the reference."""
    from hopsim.kernels.attention.launch import launch, launch_dry

    return run_judged(
        lambda: launch_dry(device, kernel, **options),
        lambda: operands(kernel.problem, seed),
        lambda given: launch(device, kernel, *given, **options),
        _outcome,
        values=options["values"],
    )


def _outcome(done: AttentionRun, inputs: Operands) -> Outcome:
    """Return whether O has the bits of the reference, and how far it is from exact attention."""
    import numpy as np

    from hopsim.reference.attention import attention as reference
    from hopsim.reference.attention import attention_f64
    from hopsim.report.comparison import compare_bits

    problem = done.kernel.problem
    q, k, v = inputs
    expected = reference(q, k, v, causal=problem.causal, block_kv=done.kernel.plan.block_kv)
    bits = outcome_of_bits(compare_bits("O", done.o, expected, "the reference"))
    away = np.abs(done.o.astype(np.float64) - attention_f64(q, k, v, causal=problem.causal))
    worst = float(np.nanmax(away))
    return Outcome(
        bits.is_right,
        [*bits.rows, ("error", f"{worst:.3g} at most from attention in float64")],
        {**bits.content, "largest_error": worst},
    )
