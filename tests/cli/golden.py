"""Compare text with a file beside the tests; HOPSIM_UPDATE_GOLDEN=1 writes the files anew, for review."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

BLOCK = re.compile(r"```console\n\$ hopsim ([^\n]*)\n(.*?)```", re.DOTALL)
GOLDEN = Path(__file__).parent / "golden"


def assert_golden(text: str, path: Path) -> None:
    if os.environ.get("HOPSIM_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def assert_page(page: Path, hopsim: Callable[..., Result], blocks: int) -> None:
    """Run every command that a page shows, and hold the page to what they print."""
    text = page.read_text(encoding="utf-8")

    def replay(block: re.Match[str]) -> str:
        done = hopsim(*shlex.split(block[1]))
        assert done.exit_code == 0, done.output
        return f"```console\n$ hopsim {block[1]}\n{done.stdout}```"

    found = BLOCK.sub(replay, text)
    if os.environ.get("HOPSIM_UPDATE_GOLDEN"):
        page.write_text(found, encoding="utf-8")
    assert found == page.read_text(encoding="utf-8")
    assert len(BLOCK.findall(text)) == blocks
