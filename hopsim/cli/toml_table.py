"""Read a TOML table entry by entry, with errors that name the file, the table and the entry."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from hopsim.cli.usage import nearest
from hopsim.errors import ConfigError
from hopsim.toml_text import read

T = TypeVar("T")

SHORT_TYPES: Mapping[str, str] = {
    "f16": "float16", "fp16": "float16", "half": "float16", "f32": "float32", "fp32": "float32", "float": "float32",
    "f64": "float64", "fp64": "float64", "double": "float64", "bf16": "bfloat16", "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2", "s8": "int8", "u8": "uint8", "s16": "int16", "u16": "uint16", "s32": "int32", "int": "int32",
    "u32": "uint32", "b32": "uint32", "s64": "int64", "u64": "uint64", "b64": "uint64",
}  # fmt: skip
"""What PTX, CUDA and `hopsim gemm` call a type that numpy calls otherwise."""
_WORDS: Mapping[type[Any], str] = {
    str: "text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "a table",
}  # fmt: skip

_EXAMPLES: Mapping[type[Any], str] = {
    str: '"text"', int: "1", float: "0.5", bool: "true", list: "[1, 2]", dict: "{ int32 = 1 }",
}  # fmt: skip


class TomlTable:
    """One table; `done` complains about what nobody asked for.

    Args:
        where: `file` or `file: [table]`.
    """

    def __init__(self, entries: Mapping[str, Any], where: str) -> None:
        self.entries = entries
        self.where = where
        self._asked: list[str] = []

    def error(self, what: str, hint: str = "") -> ConfigError:
        """Return an error at this table."""
        return ConfigError(what, where=self.where, hint=hint)

    def missing(self, name: str, example: str) -> ConfigError:
        """Return the error that an entry is missing; one that is nearly called so is named."""
        near = difflib.get_close_matches(name, self.entries, n=1)
        if near:
            return self.error(f"{name} is missing", hint=f"is {near[0]!r} meant to be {name!r}?")
        return self.error(f"{name} is missing", hint=example)

    def has(self, name: str) -> bool:
        """Whether the entry is there."""
        self._asked.append(name)
        return name in self.entries

    def optional(self, name: str, kind: type[T], default: T, example: str = "") -> T:
        """Return an entry of a type, or the default.

        Args:
            example: of its value, for the error; else any of that type.
        Raises: ConfigError: it has another type.
        """
        if not self.has(name):
            return default
        value = self.entries[name]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        fits = is_number if kind is float else isinstance(value, kind)
        if not fits or (kind is int and isinstance(value, bool)):
            raise self.error(
                f"{name}: expected {_WORDS[kind]}, got {value!r}",
                hint=f"{name} = {example or _EXAMPLES[kind]}",
            )
        return cast("T", value)

    def required(self, name: str, kind: type[T], example: str) -> T:
        """Return an entry of a type.

        Raises: ConfigError: it is missing or has another type.
        """
        if not self.has(name):
            raise self.missing(name, f"{name} = {example}")
        return self.optional(name, kind, kind(), example)

    def text(self, name: str, what: str, example: str, hint: str) -> str | None:
        """Return a text, or None where there is no such entry.

        Args:
            what: it names.  hint: for one that is empty.
        Raises: ConfigError: it is empty, or no text.
        """
        if not self.has(name):
            return None
        found = self.required(name, str, example)
        if not found:
            raise self.error(f"{name}: expected {what}, got ''", hint=hint)
        return found

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """Return a whole number or a list of them as a tuple, None if absent.

        Raises: ConfigError: it is something else.
        """
        if not self.has(name):
            return None
        value = self.entries[name]
        parts = cast("list[Any]", value if isinstance(value, list) else [value])
        if not parts or any(not isinstance(part, int) or isinstance(part, bool) for part in parts):
            raise self.error(
                f"{name}: expected a whole number or a list of them, got {value!r}",
                hint=f"{name} = [64, 32], or {name} = 64",
            )
        return tuple(parts)

    def table(self, name: str) -> TomlTable:
        """Return a table inside, empty if absent.

        Raises: ConfigError: it is no table.
        """
        if self.has(name) and not isinstance(self.entries[name], dict):
            raise self.error(
                f"{name}: expected a table, got {self.entries[name]!r}", hint=f"[{name}.x]"
            )
        return self.inner(name, self.optional(name, dict, {}))

    def tables(self, name: str) -> list[TomlTable]:
        """Return a list of tables inside, empty if absent.

        Raises: ConfigError: it is no list of tables.
        """
        found: list[Any] = self.optional(name, list, [], "[{ int32 = 1 }]")
        if any(not isinstance(one, dict) for one in found):
            raise self.error(
                f"{name}: expected tables, written [[{name}]], got {found!r}",
                hint=f"{name} = [{{ int32 = 1 }}]",
            )
        return [self.inner(f"{name} {position}", one) for position, one in enumerate(found)]

    def inner(self, name: str, entries: Mapping[str, Any]) -> TomlTable:
        """Return a table whose errors name this one and `name`."""
        joint = ", " if ": " in self.where else ": "
        return TomlTable(entries, f"{self.where}{joint}{name}")

    def choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        """Return one of some words.

        Raises: ConfigError: it is another, or missing without a default.
        """
        if default is not None and not self.has(name):
            return default
        value = self.required(name, str, f'"{choices[0]}"')
        if value not in choices:
            known_as = SHORT_TYPES.get(value.lower(), "")
            near = known_as if known_as in choices else nearest(value, choices)
            raise self.error(
                f"{name}: expected one of {', '.join(choices)}, got {value!r}",
                hint=f'did you mean "{near}"?' if near else f'{name} = "{choices[0]}"',
            )
        return value

    def done(self) -> None:
        """Check that every entry was asked for.

        Raises: ConfigError: there is an entry that means nothing here.
        """
        for name in self.entries:
            if name not in self._asked:
                known = list(dict.fromkeys(self._asked))
                near = difflib.get_close_matches(name, known, n=1)
                raise self.error(
                    f"unknown entry {name!r}",
                    hint=f"did you mean {near[0]!r}?"
                    if near
                    else f"known here are {', '.join(known)}",
                )


def read_toml(path: Path) -> TomlTable:
    """Return the top table of a file.

    Raises: ConfigError: it cannot be read or is not TOML.
    """
    return TomlTable(read(path), str(path))
