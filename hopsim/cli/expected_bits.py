"""The bits that arrays of a launch file must have after the run: its `compare` entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from hopsim.cli.launch_arrays import read_npy
from hopsim.cli.launch_file import LaunchFile
from hopsim.errors import ConfigError
from hopsim.launch.arrays import DeviceArray

if TYPE_CHECKING:
    from hopsim.report.comparison import Comparison
    from hopsim.report.facts import Row
    from hopsim.results import LaunchResult

Expected = Mapping[str, NDArray[Any]]


def read_expected(described: LaunchFile) -> Expected:
    """Return the bits that arrays must have after the run, by name; a file that is none is told before it.

    Raises: ConfigError.
    """
    found: dict[str, NDArray[Any]] = {}
    for name, spec in described.arrays.items():
        if spec.compare is None:
            continue
        where = f"{described.path}: arrays.{name}: compare"
        host = read_npy(spec.compare, spec.dtype, where)
        if host.shape != spec.shape:
            raise ConfigError(
                f"expected the shape of {name}, {list(spec.shape)}, got {list(host.shape)} from {spec.compare}",
                where=where,
                hint="an array of that shape, or another shape in the launch file",
            )
        found[name] = host
    return found


def compare_arrays(
    result: LaunchResult,
    described: LaunchFile,
    arrays: Mapping[str, DeviceArray],
    expected: Expected,
) -> tuple[list[Comparison], list[Row]]:
    """Return arrays beside their expected bits, and the rows that say so; of an unfinished run only why there are none."""
    from hopsim.report.comparison import compare_bits
    from hopsim.report.launch import unfinished_rows

    if not result.is_finished:
        return [], unfinished_rows(result) if expected else []
    found = [
        compare_bits(name, arrays[name].numpy(), expected[name], spec.compare.name)
        for name, spec in described.arrays.items()
        if spec.compare is not None
    ]
    return found, [("bits" if k == 0 else "", one.__rich__()) for k, one in enumerate(found)]


def code_with(code: int, comparisons: list[Comparison]) -> int:
    """Return the exit code of a command: 1 also where nothing but bits differ."""
    return 1 if code == 0 and any(not one.is_equal for one in comparisons) else code


def plain(comparisons: list[Comparison]) -> list[dict[str, Any]]:
    """Return comparisons as plain data."""
    return [{**asdict(one), "equal": one.is_equal} for one in comparisons]
