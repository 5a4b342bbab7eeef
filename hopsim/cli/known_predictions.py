"""Predictions kept in a file: one of an unchanged program, configuration and model need not be simulated again.

All recorded programs take hours, so that a page may hold predictions of an earlier model where it says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any, Final, cast

from hopsim.cli.model_hash import HASH_DIGITS, model_hash
from hopsim.errors import ConfigError
from hopsim.kernels.measured.predict import Prediction
from hopsim.kernels.measured.sets import Measured

COUNTER_DIGITS: Final = 3
FIELDS: Final = tuple(one.name for one in fields(Prediction))


class KnownPredictions:
    """Predictions by program and problem, each with the model that made it.

    Args:
        file: where they are kept; None keeps them in memory.
        config: name or path.  settings: replaced numbers.
        takes_earlier: whether those of earlier models will do.
    Raises: ConfigError: the file is none of these.
    """

    def __init__(
        self,
        file: Path | None,
        config: str,
        settings: dict[str, str],
        takes_earlier: bool = False,
    ) -> None:
        self._file = file
        self._config = config
        self._settings = settings
        self._takes_earlier = takes_earlier
        self._held: dict[str, dict[str, Any]] = {}
        if file is not None and file.exists():
            self._held = _read(file)

    @cached_property
    def _model(self) -> str:
        return model_hash(self._config, self._settings)[:HASH_DIGITS]

    def _key(self, case: Measured) -> str:
        settings = "".join(f" {key}={self._settings[key]}" for key in sorted(self._settings))
        m, n, k = case.size
        return (
            f"{case.program.name} {m}x{n}x{k} grid {case.grid} ptx {case.program.ptx_sha256[:HASH_DIGITS]}"
            f" shared {case.program.shared_bytes} {self._config}{settings}"
        )

    def of(self, case: Measured) -> Prediction | None:
        """Return a known prediction."""
        found = self._held.get(self._key(case))
        if found is None or (found["model"] != self._model and not self._takes_earlier):
            return None
        return Prediction(**{name: found[name] for name in FIELDS})

    def is_earlier(self, case: Measured) -> bool:
        """Whether what is known is the prediction of an earlier model."""
        return self._held[self._key(case)]["model"] != self._model

    def add(self, case: Measured, one: Prediction) -> None:
        """Keep a prediction."""
        self._held[self._key(case)] = {
            "model": self._model, "cycles": one.cycles, "time_us": one.time_us,
            "counters": {name: round(value, COUNTER_DIGITS) for name, value in sorted(one.counters.items())},
            "seconds": round(one.seconds, 1), "error": one.error,
        }  # fmt: skip
        if self._file is not None:
            write_lines(self._file, self._held)


def write_lines(file: Path, held: Mapping[str, Any]) -> None:
    """Write what is held as JSON, in the order of the keys, a line each.

    Raises: ConfigError: the file cannot be written.
    """
    from hopsim.cli.output import write_file

    lines = (f"{json.dumps(key)}: {json.dumps(held[key])}" for key in sorted(held))
    write_file(file, "{\n" + ",\n".join(lines) + "\n}\n", "--known")


def _read(file: Path) -> dict[str, dict[str, Any]]:
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"not JSON: {error}", where=str(file)) from None
    rows: list[Any] = list(cast("dict[str, Any]", held).values()) if isinstance(held, dict) else [0]
    if not all(
        isinstance(row, dict) and {"model", *FIELDS} <= set(cast("dict[str, Any]", row))
        for row in rows
    ):
        raise ConfigError(
            "these are not predictions kept by hopsim compare --known",
            where=str(file),
            hint="name another file, or delete this one: it is written anew",
        )
    return cast("dict[str, dict[str, Any]]", held)
