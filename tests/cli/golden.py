"""Compare text with a file beside the tests; HOPSIM_UPDATE_GOLDEN=1 writes the files anew, for review."""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"


def assert_golden(text: str, path: Path) -> None:
    if os.environ.get("HOPSIM_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
