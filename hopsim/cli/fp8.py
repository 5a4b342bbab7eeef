"""`hopsim fp8`: DeepGEMM's scaled fp8 product beside plain fp8, and how far both are from exact."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, cast

import typer

from hopsim.cli.options import (
    Backend,
    BackendOption,
    CheckOption,
    GpuOption,
    JsonOption,
    RunSchedule,
    RunScheduleOption,
    SeedOption,
    SetOption,
    overrides,
)


def fp8(
    m: Annotated[int, typer.Option("--m", metavar="N", help="Rows of A and C.")] = 256,
    n: Annotated[int, typer.Option("--n", metavar="N", help="Rows of B, columns of C.")] = 256,
    k: Annotated[int, typer.Option("--k", metavar="N", help="Columns of A and B.")] = 4096,
    tile_m: Annotated[int, typer.Option("--tile-m", metavar="N", help="64 or 128.")] = 128,
    tile_n: Annotated[
        int, typer.Option("--tile-n", metavar="N", help="8 to 192 in steps of 8.")
    ] = 128,
    stages: Annotated[int, typer.Option("--stages", metavar="N", help="Slots of the ring.")] = 4,
    spread: Annotated[
        float,
        typer.Option(
            "--spread", metavar="X", help="Rows and blocks of K differ by up to 2^X in size."
        ),
    ] = 0.0,
    check: CheckOption = True,
    seed: SeedOption = 0,
    run_schedule: RunScheduleOption = RunSchedule.TIMED,
    gpu: GpuOption = "h100-sxm",
    settings: SetOption = None,
    json_file: JsonOption = None,
    backend: BackendOption = Backend.SIM,
) -> None:
    """Run fp8-scaled and fp8 on the same numbers: bits, cycles, and the error of each."""
    from rich.text import Text

    from hopsim.cli.launching import launch_json, make_gpu
    from hopsim.cli.output import Output
    from hopsim.kernels.fp8_scaled.errors import compare, operands
    from hopsim.kernels.gemm.problem import GemmProblem
    from hopsim.launch.device import Device
    from hopsim.report.fp8 import fp8_table
    from hopsim.report.launch import changed_table, exit_code

    output = Output(json_file)
    device = cast("Device", make_gpu(backend, gpu, settings))
    problem = GemmProblem(m, n, k, "e4m3", "f32")
    a, b = operands(problem, seed, spread)
    options = {"check": check, "schedule": run_schedule.value, "seed": seed}
    if backend is Backend.CUDA:
        options = {"check": False}
    outcomes = compare(device, problem, a, b, (tile_m, tile_n), stages, **options)
    words = f"C[{m},{n}] = A[{m},{k}] B[{n},{k}]^T   e4m3 -> f32, tile {tile_m}x{tile_n}x128"
    changes = overrides(settings)
    output.show(Text(words), *changed_table(changes), fp8_table(outcomes, problem.flops))
    content = [
        {
            **launch_json("fp8", one.result, {"schedule_of_kernel": one.name}, settings=settings),
            "equal": one.is_exact,
            "error_of_sums": asdict(one.sums),
            "error_in_all": asdict(one.whole),
        }
        for one in outcomes
    ]
    code = max(exit_code(one.result) or int(not one.is_exact) for one in outcomes)
    parameters = {"m": m, "n": n, "k": k, "tile": [tile_m, tile_n], "spread": spread}
    output.finish(
        {"command": "fp8", "set": changes, "parameters": parameters, "kernels": content}, code
    )
