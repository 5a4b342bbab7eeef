"""`hopsim surroundings maps|dependent`: what a launch around a GEMM costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hopsim.cli.command import Command, Group
from hopsim.cli.options import (
    CheckOption,
    GpuOption,
    JsonOption,
    RunSchedule,
    RunScheduleOption,
    SeedOption,
    SetOption,
    extents,
    overrides,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hopsim.cli.output import Output
    from hopsim.launch.device import Device
    from hopsim.report.surroundings import Way

app = typer.Typer(
    cls=Group,
    help="Show what surrounds a kernel: where tensor maps come from, dependent launches.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

MOption = Annotated[int, typer.Option("--m", metavar="N", help="Rows of A.")]
NOption = Annotated[int, typer.Option("--n", metavar="N", help="Rows of B.")]
KOption = Annotated[int, typer.Option("--k", metavar="N", help="Columns of A and B.")]
TileOption = Annotated[str, typer.Option("--tile", metavar="MxNxK", help="Tile of a CTA.")]
StagesOption = Annotated[int, typer.Option("--stages", metavar="N", help="Slots of the ring.")]


@app.command("maps", cls=Command)
def maps(
    m: MOption = 512,
    n: NOption = 512,
    k: KOption = 512,
    tile: TileOption = "128x128x64",
    stages: StagesOption = 4,
    prefetch: Annotated[
        bool, typer.Option("--prefetch/--no-prefetch", help="prefetch.tensormap at the start.")
    ] = True,
    check: CheckOption = True,
    seed: SeedOption = 0,
    run_schedule: RunScheduleOption = RunSchedule.TIMED,
    gpu: GpuOption = "h100-sxm",
    settings: SetOption = None,
    json_file: JsonOption = None,
) -> None:
    """Run one GEMM with tensor maps by value, copied to the device, and edited on the device."""
    from hopsim.cli.output import Output
    from hopsim.kernels.gemm.problem import GemmProblem
    from hopsim.kernels.surroundings.end_to_end import run_maps
    from hopsim.kernels.surroundings.maps import WAYS
    from hopsim.reference.gemm import gemm
    from hopsim.report.surroundings import Way
    from hopsim.runtime.gpu import Gpu

    output = Output(json_file)
    changes = overrides(settings)
    rng, kind = _numbers(seed)
    a, b = (rng.standard_normal((rows, k)).astype(kind) for rows in (m, n))
    expected = gemm(a, b, out_dtype=kind)
    shape = _tile(tile)
    ways: list[Way] = []
    for way in WAYS:
        done = run_maps(
            cast("Device", Gpu(gpu, changes)), GemmProblem(m, n, k), a, b, way,
            tile=shape, stages=stages, warpgroups=2 if shape[0] % 128 == 0 else 1,
            prefetches=prefetch, check=check, schedule=run_schedule.value, seed=seed,
        )  # fmt: skip
        ways.append(Way(way, done.verdict, _same(done.c, expected), done.launches, done.cycles))
    _finish("maps", ways, output, {"m": m, "n": n, "k": k, "prefetch": prefetch}, changes)


@app.command("dependent", cls=Command)
def dependent(
    m: MOption = 512,
    n: NOption = 512,
    k: KOption = 512,
    columns: Annotated[
        int, typer.Option("--l", metavar="N", help="Rows of D, columns of Y.")
    ] = 512,
    tile: TileOption = "64x128x64",
    stages: StagesOption = 3,
    check: CheckOption = True,
    seed: SeedOption = 0,
    run_schedule: RunScheduleOption = RunSchedule.TIMED,
    gpu: GpuOption = "h100-sxm",
    settings: SetOption = None,
    json_file: JsonOption = None,
) -> None:
    """Run X = A B^T, then Y = X D^T, plainly and with programmatic dependent launch."""
    from hopsim.cli.output import Output
    from hopsim.kernels.surroundings.dependent import run_pair
    from hopsim.kernels.surroundings.end_to_end import worst_verdict
    from hopsim.reference.gemm import gemm
    from hopsim.report.surroundings import Way
    from hopsim.runtime.gpu import Gpu

    output = Output(json_file)
    changes = overrides(settings)
    rng, kind = _numbers(seed)
    a, b, d = (rng.standard_normal(s).astype(kind) for s in ((m, k), (n, k), (columns, n)))
    expected = gemm(gemm(a, b, out_dtype=kind), d, out_dtype=kind)
    ways: list[Way] = []
    hidden = 0
    for name in ("plain", "dependent"):
        pair = run_pair(
            cast("Device", Gpu(gpu, changes)), a, b, d, dependent=name == "dependent", tile=_tile(tile),
            stages=stages, check=check, schedule=run_schedule.value, seed=seed,
        )  # fmt: skip
        verdict = worst_verdict(pair.launches)
        hidden = pair.hidden_cycles or 0
        what = "prologue and launch" if pair.fits_beside else "launch"
        label = name if name == "plain" else f"{name} ({what}, at most {hidden:,}, hidden)"
        ways.append(Way(label, verdict, _same(pair.y, expected), pair.launches, pair.cycles))
    parameters = {"m": m, "n": n, "k": k, "l": columns, "hidden_cycles": hidden}
    _finish("dependent", ways, output, parameters, changes)


def _numbers(seed: int) -> tuple[Any, Any]:
    import numpy as np

    from hopsim.kernels.gemm.launch import NUMPY_TYPES

    return np.random.default_rng(seed), NUMPY_TYPES["bf16"]


def _same(got: NDArray[Any], expected: NDArray[Any]) -> bool:
    import numpy as np

    return np.array_equal(got.view(np.uint16), expected.view(np.uint16))


def _tile(text: str) -> tuple[int, int, int]:
    m, n, k = extents(text, 3, "--tile", "128x128x64")
    return m, n, k


def _finish(
    name: str,
    ways: list[Way],
    output: Output,
    parameters: dict[str, Any],
    changes: dict[str, str],
) -> None:
    from hopsim.report.launch import changed_table
    from hopsim.report.surroundings import content, ways_table

    output.show(*changed_table(changes), ways_table(ways))
    bad = any(not way.is_exact or way.verdict in ("hazard", "deadlock") for way in ways)
    output.finish(
        {
            "command": f"surroundings {name}",
            "set": changes,
            "parameters": parameters,
            "ways": content(ways),
        },
        int(bad),
    )
