"""Read a hardware configuration: TOML with units and sources in, plain numbers out.

A configuration is a name (`h100-sxm`, a file of `configs/`) or a path.  `extends = "h100-sxm"`
starts from another one.  Each number is a table: `{ value = "29cycles", source = "..." }`;
one that nobody has measured says `guess = true`.  Overrides replace single values:
`{"dram.bandwidth": "4.8TB/s"}`.

    >>> load("h100-sxm").smem.latency_cycles
    23
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from pydantic import ValidationError

from hopsim.config.groups import CONFIG_VERSION
from hopsim.config.hardware import PLACES, Fact, HardwareConfig, Place
from hopsim.config.quantities import Unit
from hopsim.errors import ConfigError
from hopsim.toml_text import in_toml
from hopsim.toml_text import read as read_toml
from hopsim.units import KIND_WORDS, Quantity, parse, to_bytes_per_clk, to_cycles

Override = str | int | float | list[int] | list[str]

_PACKAGE: Final = Path(__file__).resolve().parents[1]
# A wheel carries the folder inside the package; a checkout has it beside the package.
_FOLDERS: Final = (_PACKAGE / "configs", _PACKAGE.parent / "configs")
_CLOCK: Final = "device.clock"
SOME_KEYS: Final = 4
"""Of a group, named in an error."""
# Words for what pydantic finds, and which of its numbers belongs behind them; of other kinds `_convert` lets nothing by.
_WRONG: Final = "expected another value"
_BOUNDS: Final = {
    "greater_than": ("expected a value greater than", "gt"),
    "greater_than_equal": ("expected a value greater than or equal to", "ge"),
    "less_than": ("expected a value less than", "lt"),
    "less_than_equal": ("expected a value less than or equal to", "le"),
}


@dataclass(frozen=True, slots=True)
class _Written:
    """A value as written, before its unit is converted; `depth` is 0 in the file asked for, 1 in what it extends."""

    value: Any
    source: str
    guess: bool
    origin: str
    depth: int = 0


def names() -> tuple[str, ...]:
    """Return the names of the configurations that hopsim brings along, sorted."""
    return tuple(
        sorted(
            {path.stem for folder in _FOLDERS if folder.is_dir() for path in folder.glob("*.toml")}
        )
    )


def load(config: str | Path, overrides: Mapping[str, Override] | None = None) -> HardwareConfig:
    """Return a hardware configuration.

    Args:
        config: a name such as `h100-sxm`, or the path of a TOML file.
        overrides: values with units by key, for example `{"dram.bandwidth": "4.8TB/s"}`.
    Raises:
        ConfigError: no such file, an unknown or missing key, a wrong unit, a value out of range, or
            a number that says neither source nor guess.
    """
    path = _find(config)
    written = _read(path, seen=())
    for key, value in _by_key(overrides or {}).items():
        if key not in PLACES:
            raise _unknown(str(key), where="override")
        unit = PLACES[key].unit
        if isinstance(value, str) and unit is not None and unit.many == "list":
            value = [part.strip() for part in value.strip("[] ").split(",")]
        written[key] = _Written(value, "override", False, "override", depth=-1)
    missing = [key for key in PLACES if key not in written]
    if missing:
        raise ConfigError(
            f"no value for {', '.join(missing)}", where=str(path), hint='extends = "h100-sxm"'
        )
    return _build(path.stem, written)


def _by_key(overrides: object) -> Mapping[str, Override]:
    if not isinstance(overrides, Mapping):
        raise ConfigError(
            f"expected values by key, got {overrides!r}",
            where="overrides",
            hint='{"dram.bandwidth": "4.8TB/s"}',
        )
    return cast(Mapping[str, Override], overrides)


def _find(config: str | Path) -> Path:
    text = str(config)
    if text.endswith(".toml") or "/" in text:
        path = Path(config)
        if not path.is_file():
            raise ConfigError("no such configuration file", where=text)
        return path
    for folder in _FOLDERS:
        path = folder / f"{text}.toml"
        if path.is_file():
            return path
    raise ConfigError(
        f"no configuration named {text!r}; there are {', '.join(names())}",
        hint=_nearest(text, names()) or "a name of these, or the path of a .toml file",
    )


def _read(path: Path, seen: tuple[Path, ...]) -> dict[str, _Written]:
    tree = read_toml(path)
    version = tree.pop("hopsim_config", None)
    if type(version) is not int or version != CONFIG_VERSION:
        raise ConfigError(
            f"expected hopsim_config = {CONFIG_VERSION} on top, got {version!r}",
            where=str(path),
            hint="write it, or use the hopsim version that this file is for",
        )
    written: dict[str, _Written] = {}
    base = tree.pop("extends", None)
    if base is not None:
        if not isinstance(base, str):
            raise ConfigError(
                f"extends: expected text, got {base!r}",
                where=str(path),
                hint='extends = "h100-sxm"',
            )
        beside = path.parent / f"{base}.toml"
        here = path.resolve()
        # A file may have the name of the one that it starts from.
        is_own_name = base in names() and beside.resolve() == here
        parent = beside if beside.is_file() and not is_own_name else _find(base)
        if parent.resolve() in (here, *seen):
            raise ConfigError(f"extends {base!r}, which extends this file", where=str(path))
        written = _read(parent, (here, *seen))
    for key, value in _leaves(tree, ""):
        where = f"{path}: {key}"
        if key not in PLACES:
            raise _unknown(key, where=str(path))
        written[key] = replace(_written(value, PLACES[key], where, path.name), depth=len(seen))
    return written


def _leaves(tree: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    """Yield (dotted key, value) of each entry that is no table, or a table with a `value`."""
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and "value" not in value and key not in PLACES:
            yield from _leaves(cast("dict[str, Any]", value), f"{key}.")
        else:
            yield key, value


def _written(value: Any, place: Place, where: str, origin: str) -> _Written:
    if place.unit is None and isinstance(value, str):
        return _Written(value, "", False, origin)
    if not isinstance(value, dict):
        raise ConfigError(
            f"expected a table with value and source, got {value!r}",
            where=where,
            hint=f'{{ value = {in_toml(value)}, source = "..." }},'
            " with guess = true where nobody has measured it",
        )
    table = cast("dict[str, Any]", value)
    for name in table:
        if name not in ("value", "source", "guess"):
            raise ConfigError(f"unknown entry {name!r}; expected value, source, guess", where=where)
    source, guess = table.get("source", ""), table.get("guess", False)
    if not isinstance(source, str) or not isinstance(guess, bool):
        raise ConfigError(
            f"expected source = text and guess = true or false, got {table!r}", where=where
        )
    if "value" not in table:
        raise ConfigError(f"expected a value, got {table!r}", where=where)
    if not source.strip():
        raise ConfigError(
            "a number needs a source",
            where=where,
            hint='source = "who measured it", or guess = true with the reason',
        )
    return _Written(table["value"], source, guess, origin)


def _unknown(key: str, where: str) -> ConfigError:
    inside = [one for one in PLACES if one.startswith(f"{key}.")]
    if inside:
        more = ", ..." if len(inside) > SOME_KEYS else ""
        return ConfigError(
            f"{key!r} is a group of numbers, not one",
            where=where,
            hint=f"name one of it: {', '.join(inside[:SOME_KEYS])}{more}",
        )
    by_attribute = next(
        (
            k
            for k, p in PLACES.items()
            if key in (f"{p.group}.{p.attribute}", f"{p.group}.{p.attribute}.{p.entry}")
        ),
        "",
    )
    nearest = by_attribute or _nearest(key, PLACES)
    return ConfigError(
        f"unknown key {key!r}",
        where=where,
        hint=f"did you mean {nearest!r}?" if nearest else "hopsim config show lists the keys",
    )


def _nearest(text: str, known: Iterable[str]) -> str:
    return next(iter(difflib.get_close_matches(text, list(known), n=1, cutoff=0.6)), "")


def _build(name: str, written: Mapping[str, _Written]) -> HardwareConfig:
    clock_hz = float(_convert(written[_CLOCK].value, PLACES[_CLOCK], 0.0, _where(_CLOCK, written)))
    if clock_hz <= 0:
        raise ConfigError(
            f"expected a value greater than 0, got {written[_CLOCK].value!r}",
            where=_where(_CLOCK, written),
        )
    tree: dict[str, dict[str, Any]] = {}
    facts: list[Fact] = []
    for key, place in PLACES.items():
        item = written[key]
        value = _convert(item.value, place, clock_hz, _where(key, written))
        group = tree.setdefault(place.group, {})
        if place.entry:
            group.setdefault(place.attribute, {})[place.entry] = value
        else:
            group[place.attribute] = value
        text: Any = item.value
        if isinstance(text, list):
            text = tuple(cast("list[Any]", text))
        unit = _unit_word(place)
        facts.append(Fact(key, text, value, unit, item.source, item.guess, item.origin))
    try:
        return HardwareConfig.model_validate({"name": name, **tree, "facts": tuple(facts)})
    except ValidationError as error:
        raise _readable(error, written) from error


def _where(key: str, written: Mapping[str, _Written]) -> str:
    return f"{written[key].origin}: {key}"


def _unit_word(place: Place) -> str:
    if place.unit is None:
        return ""
    ending = place.unit.ending.removeprefix("_")
    return {"bytes_per_clk": "B/clk", "flop_per_clk": "FLOP/clk", "bytes": "B", "hz": "Hz"}.get(
        ending, ending
    )


def _convert(value: Any, place: Place, clock_hz: float, where: str) -> Any:
    unit = place.unit
    if unit is None:
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(f"expected a name, got {value!r}", where=where)
        return value
    if unit.many == "list":
        if not isinstance(value, list) or not value:
            raise ConfigError(f"expected a list of values, got {value!r}", where=where)
        return tuple(_number(item, unit, clock_hz, where) for item in cast("list[Any]", value))
    return _number(value, unit, clock_hz, where)


def _number(value: Any, unit: Unit, clock_hz: float, where: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigError(f"expected {KIND_WORDS[unit.kinds[0]]}, got {value!r}", where=where)
    try:
        return _converted(parse(value, *unit.kinds, where=where), value, unit, clock_hz, where)
    except (OverflowError, ValueError):
        # Python's own words are about its types; it does not even write a whole number of so many digits.
        got = repr(value[:40]) if isinstance(value, str) else "a larger one"
        raise ConfigError(
            f"expected a number that a double holds, up to {sys.float_info.max:.1e}, got {got}",
            where=where,
        ) from None


def _converted(
    quantity: Quantity, value: str | int | float, unit: Unit, clock_hz: float, where: str
) -> int | float:
    number: int | float
    if quantity.kind == "seconds":
        number = to_cycles(quantity, clock_hz)
    elif quantity.kind == "bytes_per_second":
        number = to_bytes_per_clk(quantity, clock_hz)
    else:
        number = quantity.value
        if unit.whole and "seconds" not in unit.kinds and not isinstance(number, int):
            raise ConfigError(f"expected a whole number, got {value!r}", where=where)
        # Cycles are added to times, which are doubles.
        float(number)
    return round(number) if unit.whole else float(number)


def _readable(error: ValidationError, written: Mapping[str, _Written]) -> ConfigError:
    first = error.errors(include_url=False)[0]
    path = [str(part) for part in first["loc"]]
    key = next(
        (
            key
            for key, place in PLACES.items()
            if path[:2] == [place.group, place.attribute]
            and (not place.entry or path[2:3] == [place.entry])
        ),
        ".".join(path),
    )
    context = first.get("ctx", {})
    if key not in written:
        return ConfigError(str(context.get("error", _WRONG)), where=_blame(path[0], written))
    beginning, bound = _BOUNDS.get(first["type"], (_WRONG, ""))
    what = f"{beginning} {context[bound]:g}" if bound else beginning
    got, at = written[key].value, first["loc"][-1]
    if isinstance(got, list) and isinstance(at, int):
        items = cast("list[Any]", got)
        got, what = items[at], f"entry {at}: {what}"
    return ConfigError(f"{what}, got {got!r}", where=_where(key, written))


def _blame(group: str, written: Mapping[str, _Written]) -> str:
    """Say where a rule between values of one group broke: at those that were written last, over those of other files."""
    keys = [key for key in written if key.startswith(f"{group}.")]
    least = min(written[key].depth for key in keys)
    last = [key for key in keys if written[key].depth == least]
    origin = written[last[0]].origin
    return f"{origin}: {group if len(last) == len(keys) else ', '.join(last)}"
