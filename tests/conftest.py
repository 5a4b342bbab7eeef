"""Marks the tests that `tests/exhaustive.txt` lists."""

from __future__ import annotations

from pathlib import Path

import pytest

LIST = Path(__file__).with_name("exhaustive.txt")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark them before pytest chooses by marks.

    Raises: UsageError: a listed test is none of its file's; told only where whole files were asked for.
    """
    listed = {
        line for line in LIST.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"
    }
    for item in items:
        if item.nodeid in listed:
            item.add_marker(pytest.mark.exhaustive)
            listed.remove(item.nodeid)
    files = {item.nodeid.partition("::")[0] for item in items}
    gone = sorted(name for name in listed if name.partition("::")[0] in files)
    if gone and not any("::" in arg for arg in config.args):
        raise pytest.UsageError(f"{LIST.name} lists what is no test: {', '.join(gone)}")
