"""Say how many device tests ran, and on what: `make test-gpu` is one command for all of them."""

from __future__ import annotations

from typing import Any

import pytest

import hopsim as hs


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.getoption("-m") != "gpu":
        return
    stats: dict[str, list[Any]] = terminalreporter.stats
    counts = {
        outcome: len(stats.get(outcome, [])) for outcome in ("passed", "failed", "error", "skipped")
    }
    try:
        with hs.CudaGpu(0) as device:
            where = f"{device.facts.name}, driver {device.facts.driver}"
    except hs.DeviceError as error:
        where = str(error)
    told = ", ".join(f"{number} {outcome}" for outcome, number in counts.items())
    terminalreporter.write_line(f"device tests: {told}; on {where}")
