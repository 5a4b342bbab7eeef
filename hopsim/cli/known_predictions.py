"""Predictions kept in a file: one of an unchanged program, configuration and model need not be simulated again."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from hopsim.kernels.measured.predict import Prediction
from hopsim.kernels.measured.sets import Measured

MODEL: Final = ("hw", "isa", "layout", "launch", "runtime", "config")
"""Packages that decide what a simulation gives."""


def model_hash(config: str, settings: dict[str, str] | None = None) -> str:
    """Return a hash of everything that decides what a simulation of a program gives."""
    from hopsim.config import load

    digest = hashlib.sha256(repr(load(config, settings)).encode())
    package = Path(__file__).parents[1]
    for name in MODEL:
        for path in sorted((package / name).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


class KnownPredictions:
    """Predictions by program, problem, configuration and model.

    Args:
        file: where they are kept; None keeps them in memory.
        config: name or path.  settings: replaced numbers.
    """

    def __init__(self, file: Path | None, config: str, settings: dict[str, str]) -> None:
        self._file = file
        self._config = config
        self._settings = settings
        self._held: dict[str, dict[str, Any]] = {}
        if file is not None and file.exists():
            self._held = json.loads(file.read_text(encoding="utf-8"))

    @cached_property
    def _model(self) -> str:
        return model_hash(self._config, self._settings)

    def _key(self, case: Measured) -> str:
        parts = (
            case.program.ptx_sha256,
            case.size,
            case.grid,
            case.program.shared_bytes,
            self._model,
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]

    def of(self, case: Measured) -> Prediction | None:
        """Return a known prediction."""
        found = self._held.get(self._key(case))
        return None if found is None else Prediction(**found)

    def add(self, case: Measured, one: Prediction) -> None:
        """Keep a prediction."""
        self._held[self._key(case)] = {
            "cycles": one.cycles, "time_us": one.time_us, "counters": dict(one.counters), "seconds": one.seconds,
            "error": one.error,
        }  # fmt: skip
        if self._file is not None:
            self._file.write_text(json.dumps(self._held), encoding="utf-8")
