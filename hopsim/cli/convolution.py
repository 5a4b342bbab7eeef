"""`hopsim convolution`: a convolution through im2col maps, its bits against the reference, its cycles."""

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
    extents,
    overrides,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hopsim.kernels.convolution.launch import ConvKernel, ConvRun
    from hopsim.kernels.convolution.problem import ConvProblem
    from hopsim.launch.device import Device
    from hopsim.results import LaunchResult

    Operands = tuple[NDArray[Any], NDArray[Any]]


def convolution(
    images: Annotated[int, typer.Option("--images", metavar="N", help="Images.")] = 1,
    height: Annotated[int, typer.Option("--height", metavar="N", help="Of an image.")] = 28,
    width: Annotated[int, typer.Option("--width", metavar="N", help="Of an image.")] = 28,
    channels: Annotated[
        int, typer.Option("--channels", metavar="N", help="Of the activations.")
    ] = 64,
    filters: Annotated[int, typer.Option("--filters", metavar="N", help="Output channels.")] = 64,
    extent: Annotated[
        str, typer.Option("--extent", metavar="RxS", help="Of a filter along H and W.")
    ] = "3x3",
    stride: Annotated[
        str, typer.Option("--stride", metavar="HxW", help="From pixel to pixel.")
    ] = "1x1",
    padding: Annotated[
        str, typer.Option("--padding", metavar="HxW", help="Zeros on each side.")
    ] = "1x1",
    dilation: Annotated[
        str, typer.Option("--dilation", metavar="HxW", help="Inside a filter.")
    ] = "1x1",
    dtype: Annotated[str, typer.Option("--dtype", metavar="TYPE", help="bf16 or fp16.")] = "bf16",
    tile: Annotated[
        str, typer.Option("--tile", metavar="MxN", help="Pixels and filters of a CTA.")
    ] = "128x64",
    stages: Annotated[int, typer.Option("--stages", metavar="N", help="Slots of the ring.")] = 4,
    persistent: Annotated[
        bool, typer.Option("--persistent/--one-tile", help="A CTA walks over several tiles.")
    ] = False,
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
    """Run a convolution as an implicit GEMM through im2col maps and compare its bits."""
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
    from hopsim.kernels.convolution.launch import build
    from hopsim.kernels.convolution.problem import ConvProblem
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

    def pair(text: str, option: str, example: str = "3x3", least: int = 1) -> tuple[int, int]:
        first, second = extents(text, 2, option, example, least=least)
        return first, second

    pixels = pair(tile, "--tile", "128x64")

    problem = ConvProblem(
        images, height, width, channels, filters, pair(extent, "--extent"), pair(stride, "--stride"),
        pair(padding, "--padding", least=0), pair(dilation, "--dilation"), dtype,
    )  # fmt: skip
    kernel = build(problem, pixels, stages, persistent=persistent)
    saved = save_ptx(kernel.ptx, ptx)
    with progress_bar(f"convolution {images} x {height} x {width} x {channels}") as tell:
        result, outcome = _run(device, kernel, seed, {**options, "progress": tell})
    code = exit_code(result) or int(not outcome.is_right)
    _, p, q, _ = problem.out_shape
    words = (
        f"{plural(images, 'image')}, {height} x {width} x {channels} to {p} x {q} x {filters}, "
        f"filter {extent}, {dtype}"
    )
    output.show(
        launch_report(
            result,
            first=[
                ("problem", words),
                ("tile", f"{pixels[0]} pixels, {pixels[1]} filters, {stages} stages"),
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
        "images": images, "height": height, "width": width, "channels": channels, "filters": filters,
        "extent": list(problem.extent), "stride": list(problem.stride), "padding": list(problem.padding),
        "dilation": list(problem.dilation), "dtype": dtype, "tile": list(pixels), "stages": stages,
        "persistent": persistent, "flops": problem.flops,
    }  # fmt: skip
    told = show_lines(output, device, lines)
    output.finish(
        launch_json(
            "convolution",
            result,
            {
                "convolution": parameters,
                "tflops": rate(result, problem.flops),
                **outcome.content,
                **told,
            },
            checks=check,
            settings=settings,
        ),
        code,
    )


def operands(problem: ConvProblem, seed: int) -> Operands:
    """Return activations and filters: normal numbers."""
    import numpy as np

    from hopsim.kernels.gemm.launch import NUMPY_TYPES

    kind = NUMPY_TYPES[problem.dtype]
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(problem.x_shape, np.float32).astype(kind)
    w = rng.standard_normal(problem.w_shape, np.float32).astype(kind)
    return x, w


def _run(
    device: Device, kernel: ConvKernel, seed: int, options: dict[str, Any]
) -> tuple[LaunchResult, Outcome]:
    """Launch a kernel on random operands and compare the output with the reference."""
    from hopsim.kernels.convolution.launch import launch, launch_dry

    return run_judged(
        lambda: launch_dry(device, kernel, **options),
        lambda: operands(kernel.problem, seed),
        lambda given: launch(device, kernel, *given, **options),
        _outcome,
        values=options["values"],
    )


def _outcome(done: ConvRun, inputs: Operands) -> Outcome:
    """Return whether the output has the bits of the reference."""
    from hopsim.reference.convolution import convolution as reference
    from hopsim.report.comparison import compare_bits

    problem = done.kernel.problem
    x, w = inputs
    expected = reference(
        x, w, stride=problem.stride, padding=problem.padding, dilation=problem.dilation
    ).astype(done.y.dtype)
    return outcome_of_bits(compare_bits("y", done.y, expected, "the reference"))
