"""One program beside what a device, or an export of Nsight Compute, says of it."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hopsim.errors import ConfigError
from hopsim.kernels.measured.ncu_export import is_named, middle, read_csv
from hopsim.launch.geometry import Triple, triple

CYCLES: Final = "gpc__cycles_elapsed.max"
REPEATS: Final = 20
EXPORT: Final = (
    f"ncu --csv --page raw --metrics {CYCLES},dram__bytes_read.sum,... --log-file FILE PROGRAM"
)
"""What writes a file for `--ncu`."""
NAMED_MAX: Final = 8
"""Kernels that an error names: an application may launch hundreds."""


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

    from hopsim.cli.expected_bits import code_with, compare_arrays, plain, read_expected
    from hopsim.cli.file_case import only_entry
    from hopsim.cli.launch_file import make_arguments, read_launch_file
    from hopsim.cli.output import Output
    from hopsim.cli.toml_words import of_launch_file
    from hopsim.isa.program.kernel import load
    from hopsim.report.accuracy import counter_table
    from hopsim.report.facts import fact_table
    from hopsim.report.launch import changed_rows, exit_code, launch_report
    from hopsim.runtime.gpu import Gpu

    if launch_path is None or (ncu is None and device is None):
        raise ConfigError(
            "a program needs to be launched, and a measurement of it",
            where="--args" if launch_path is None else "--ncu",
            hint=f"hopsim compare {ptx} --args FILE.toml, and --ncu FILE or --device 0",
        )
    output = Output(json_file)
    described = read_launch_file(launch_path)
    expected = read_expected(described)
    kernel = only_entry(load(str(ptx)), entry or described.entry)

    def run(gpu: Any, **options: Any) -> Any:
        arguments, arrays = make_arguments(described, gpu, 0)
        with of_launch_file():
            result = gpu.launch(
                kernel,
                described.grid,
                described.block,
                described.cluster,
                arguments,
                described.shared_bytes,
                **options,
            )
        return result, arrays

    result, arrays = run(Gpu(config, settings), check=False)
    comparisons, outcome = compare_arrays(result, described, arrays, expected)
    if not result.is_finished:
        output.show(
            launch_report(result, outcome=outcome, checks=False, path=str(ptx), changes=settings)
        )
    elif settings or outcome:
        output.show(fact_table([*changed_rows(settings), *outcome]))
    predicted: dict[str, float] = dict(result.counters)
    if result.cycles is not None:
        predicted[CYCLES] = result.cycles
    content: dict[str, Any] = {
        "command": "compare",
        "set": settings,
        "kernel": kernel.name,
        "predicted": predicted,
        "comparisons": plain(comparisons),
    }
    if ncu is not None:
        launches = _launches(
            ncu, kernel.name, triple(described.grid, "grid"), triple(described.block, "block")
        )
        content["ncu"] = _comparable(ncu, kernel.name, launches, predicted)
        content["ncu_launches"] = len(launches)
        of_several = f", median of {len(launches)} launches" if len(launches) > 1 else ""
        output.show(
            Text(f"{kernel.name}: Nsight Compute, {ncu}{of_several}"),
            counter_table(content["ncu"], predicted),
        )
        if CYCLES not in content["ncu"]:
            output.show(Text(f"the file has no {CYCLES}, so that cycles are not compared"))
    if device is not None:
        from hopsim.cuda.gpu import CudaGpu

        with CudaGpu(device) as gpu:
            real, _ = run(gpu, repeats=REPEATS, measure_clock=True)
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
    output.finish(content, code_with(exit_code(result), comparisons))


def _launches(path: Path, kernel: str, grid: Triple, block: Triple) -> list[Mapping[str, float]]:
    """Return the metrics of the launches of a kernel in an export.

    Args:
        kernel: its entry in the PTX.  grid, block: of the launches that count.
    Raises: ConfigError: it cannot be read, has no such launch, or those of several kernels.
    """
    try:
        launches = read_csv(path)
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}", where="--ncu", hint=EXPORT
        ) from None
    except (UnicodeDecodeError, csv.Error, KeyError):
        raise ConfigError(
            f"{path} is no export of Nsight Compute", where="--ncu", hint=EXPORT
        ) from None
    same = [
        one
        for one in launches
        if is_named(kernel, one.kernel) and one.grid in (None, grid) and one.block in (None, block)
    ]
    if not same:
        told = any(one.block is not None for one in launches)
        there = dict.fromkeys(one.kernel + _shape(one.grid, one.block) for one in launches)
        raise ConfigError(
            f"{path} has no launch of {kernel}{_shape(grid, block if told else None)}",
            where="--ncu",
            hint=f"it has {_few(list(there))}" if there else EXPORT,
        )
    names = list(dict.fromkeys(one.kernel for one in same))
    if len(names) > 1 and kernel not in names:
        raise ConfigError(
            f"which of these in {path} is {kernel}? {_few(names)}",
            where="--ncu",
            hint="ncu --print-kernel-base mangled names instances of a template apart",
        )
    return [one.metrics for one in same if kernel not in names or one.kernel == kernel]


def _comparable(
    path: Path, kernel: str, launches: Sequence[Mapping[str, float]], predicted: Iterable[str]
) -> dict[str, float]:
    """Return the median metrics of launches.

    Args:
        predicted: counters that can stand beside them.
    Raises: ConfigError: there is none of these.
    """
    found = middle(launches)
    if not found.keys() & set(predicted):
        raise ConfigError(
            f"{path} has launches of {kernel}, and of the counters that hopsim predicts none",
            where="--ncu",
            hint=EXPORT,
        )
    return found


def _shape(grid: Triple | None, block: Triple | None) -> str:
    """Return ` with a grid of (8, 4, 1) and blocks of (64, 1, 1)`, as far as they are known."""
    if grid is None:
        return ""
    return f" with a grid of {grid}" + (f" and blocks of {block}" if block else "")


def _few(names: Sequence[str]) -> str:
    """Return the first names of many."""
    more = f", and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return "; ".join(names[:NAMED_MAX]) + more
