"""A configuration as TOML text, as rows for a table, and what of it is guessed."""

from __future__ import annotations

from typing import cast

from hopsim.config.groups import CONFIG_VERSION
from hopsim.config.hardware import PLACES, Fact, HardwareConfig
from hopsim.toml_text import in_toml


def dump(config: HardwareConfig) -> str:
    """Return the configuration as TOML text that loads to the same numbers, overrides included."""
    lines = [f"hopsim_config = {CONFIG_VERSION}"]
    table = ""
    for fact in config.facts:
        parent, name = fact.key.rsplit(".", 1)
        if parent != table:
            lines += ["", f"[{parent}]"]
            table = parent
        if PLACES[fact.key].unit is None:
            lines.append(f"{name} = {in_toml(fact.text)}")
            continue
        entries = [f"value = {in_toml(fact.text)}", f"source = {in_toml(fact.source)}"]
        if fact.guess:
            entries.append("guess = true")
        lines.append(f"{name} = {{ {', '.join(entries)} }}")
    return "\n".join(lines) + "\n"


def show(config: HardwareConfig) -> list[tuple[str, str, str, str]]:
    """Return a row for each fact: key, value as written, the number read with its unit, and its source."""
    return [(fact.key, _shown(fact.text), _read_as(fact), _source(fact)) for fact in config.facts]


def guesses(config: HardwareConfig) -> tuple[Fact, ...]:
    """Return the facts that nobody has measured."""
    return tuple(fact for fact in config.facts if fact.guess)


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, cast("tuple[object, ...]", value)))
    return str(value)


def _read_as(fact: Fact) -> str:
    if not fact.unit:
        return ""
    if fact.unit == "Hz":
        number = f"{fact.value:.0f}"
    elif isinstance(fact.value, float):
        number = f"{fact.value:.6g}"
    else:
        number = _shown(fact.value)
    return f"{number} {fact.unit}"


def _source(fact: Fact) -> str:
    mark = "guess: " if fact.guess else ""
    where = "" if fact.origin == "override" else f"  [{fact.origin}]" if fact.source else ""
    return f"{mark}{fact.source}{where}"


__all__ = ["dump", "guesses", "show"]
