"""Microbenchmarks as an H100 measured them, and as they are predicted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, cast

from hopsim.kernels.micro.recording import benchmarks, run
from hopsim.launch.device import Device
from hopsim.runtime.gpu import Gpu

SILICON: Final = Path(__file__).parents[2] / "silicon" / "micro.json"
ROWS: Final[dict[str, dict[str, Any]]] = {
    row["name"]: row for row in json.loads(SILICON.read_text(encoding="utf-8"))
}
"""What was recorded, by name."""


def simulated(name: str, group: str | None = None) -> dict[str, float]:
    """Return the cycles of a microbenchmark by label.

    Args:
        group: that it is looked for in.
    """
    (one,) = (one for one in benchmarks(group) if one.name == name)
    return dict(run(cast(Device, Gpu()), one, 0, check=False)["cycles"])
