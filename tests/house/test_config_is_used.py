"""Every number of a configuration is read by something: `--set` must not accept what changes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import hopsim
from hopsim.config import load
from hopsim.config.quantities import Group

PACKAGE = Path(hopsim.__file__).parent


def fields(group: Group, path: str = "") -> dict[str, str]:
    """Return the name in Python of each number, by its path."""
    found: dict[str, str] = {}
    for name in type(group).model_fields:
        value = getattr(group, name)
        if isinstance(value, Group):
            found |= fields(value, f"{path}{name}.")
        else:
            found[f"{path}{name}"] = name
    return found


def test_every_number_is_read_outside_of_the_configuration() -> None:
    text = "\n".join(
        file.read_text(encoding="utf-8")
        for file in PACKAGE.rglob("*.py")
        if (PACKAGE / "config") not in file.parents
    )
    read = set(re.findall(r"\.([a-z_0-9]+)\b", text))
    found = fields(load("h100-sxm"))
    assert len(found) > 150
    assert sorted(path for path, name in found.items() if name not in read) == []
