"""One program beside what a device, or an export of Nsight Compute, says of it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Final

from hopsim.errors import ConfigError
from hopsim.report.quantities import plural

CYCLES: Final = "gpc__cycles_elapsed.max"
REPEATS: Final = 20
EXPORT: Final = "ncu --csv --page raw --print-units base --log-file FILE ..."
"""What writes a file for `--ncu`."""


def compare_one(
    ptx: Path,
    launch_path: Path | None,
    entry: str,
    ncu: Path | None,
    device: int | None,
    config: str,
    settings: dict[str, str],
    json_file: str | None,
) -> None:
    """Simulate a program and print what was measured beside it.

    Raises: ConfigError, LaunchError, DeviceError.
    """
    from rich.text import Text

    from hopsim.cli.file_case import only_entry
    from hopsim.cli.launch_file import make_arguments, read_launch_file
    from hopsim.cli.output import Output
    from hopsim.isa.program.kernel import load
    from hopsim.report.accuracy import counter_table
    from hopsim.report.launch import changed_table, exit_code, launch_report
    from hopsim.runtime.gpu import Gpu

    if launch_path is None or (ncu is None and device is None):
        raise ConfigError(
            "a program needs to be launched, and a measurement of it",
            where="--args" if launch_path is None else "--ncu",
            hint=f"hopsim compare {ptx} --args FILE.toml, and --ncu FILE or --device 0",
        )
    output = Output(json_file)
    described = read_launch_file(launch_path)
    kernel = only_entry(load(str(ptx)), entry or described.entry)

    def run(gpu: Any, **options: Any) -> Any:
        arguments, arrays = make_arguments(described, gpu, 0)
        del arrays
        return gpu.launch(
            kernel,
            described.grid,
            described.block,
            described.cluster,
            arguments,
            described.shared_bytes,
            **options,
        )

    result = run(Gpu(config, settings), check=False)
    if not result.is_finished:
        output.show(launch_report(result, checks=False, path=str(ptx), changes=settings))
    elif settings:
        output.show(*changed_table(settings))
    predicted: dict[str, float] = dict(result.counters)
    if result.cycles is not None:
        predicted[CYCLES] = result.cycles
    content: dict[str, Any] = {
        "command": "compare",
        "set": settings,
        "kernel": kernel.name,
        "predicted": predicted,
    }
    if ncu is not None:
        grid = 1
        for extent in described.grid:
            grid *= extent
        content["ncu"] = _of_export(ncu, kernel.name, grid)
        output.show(
            Text(f"{kernel.name}: Nsight Compute, {ncu}"), counter_table(content["ncu"], predicted)
        )
    if device is not None:
        from hopsim.cuda.gpu import CudaGpu

        with CudaGpu(device) as gpu:
            real = run(gpu, repeats=REPEATS, measure_clock=True)
            name = gpu.facts.name
        measured = {
            "time_us": real.time_us or 0.0,
            "cycles at the measured clock": float(real.cycles or 0),
        }
        told = {
            "time_us": result.time_us or 0.0,
            "cycles at the measured clock": float(result.cycles or 0),
        }
        content["device"] = {"name": name, **measured, "clock_hz": real.clock_hz}
        output.show(Text(f"{kernel.name}: {name}, L2 flushed"), counter_table(measured, told))
    output.finish(content, exit_code(result))


def _of_export(path: Path, kernel: str, grid: int) -> dict[str, float]:
    """Return the median metrics of the launches of a kernel in an export.

    Raises: ConfigError: it cannot be read, or has no such launch.
    """
    from hopsim.kernels.measured.ncu import middle, read_csv

    try:
        launches = [one for one in read_csv(path) if one.kernel.partition("(")[0] == kernel]
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}", where="--ncu", hint=EXPORT
        ) from None
    except (UnicodeDecodeError, csv.Error, KeyError):
        raise ConfigError(
            f"{path} is no export of Nsight Compute", where="--ncu", hint=EXPORT
        ) from None
    same = [one for one in launches if one.grid in (None, grid)]
    if not same:
        raise ConfigError(
            f"{path} has no launch of {kernel} with {plural(grid, 'CTA')}",
            where="--ncu",
            hint=EXPORT,
        )
    return middle([one.metrics for one in same])
