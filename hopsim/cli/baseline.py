"""The baselines that `hopsim check` reads: findings that are known already."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from hopsim.errors import ConfigError
from hopsim.report.suppressions import BASELINE_FORMAT, FINGERPRINT


def read_baseline(path: Path) -> list[str]:
    """Return the findings that a baseline knows.

    Raises: ConfigError: the file cannot be read, or is none.
    """
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}",
            where="--baseline",
            hint=f"--write-baseline {path}",
        ) from None
    except ValueError as error:
        raise ConfigError(
            f"{path} is no JSON: {error}", where="--baseline", hint=f"--write-baseline {path}"
        ) from None
    table = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    findings = table.get("findings")
    if table.get("format") != BASELINE_FORMAT or not isinstance(findings, list):
        raise ConfigError(
            f"{path} is no baseline of format {BASELINE_FORMAT}",
            where="--baseline",
            hint=f"--write-baseline {path}",
        )
    for position, name in enumerate(cast("list[object]", findings)):
        if not isinstance(name, str) or not FINGERPRINT.fullmatch(name):
            raise ConfigError(
                f"{path}: findings[{position}]: expected the name of a finding, as HS001-0123456789abcdef, got {name!r}",
                where="--baseline",
                hint=f"--write-baseline {path}",
            )
    return cast("list[str]", findings)
