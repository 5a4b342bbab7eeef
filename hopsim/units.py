"""Quantities with units, for configuration files, command-line settings and printed numbers.

Text such as `"3.35TB/s"` becomes a number in one canonical unit with a named kind, and back.  The
arithmetic is exact decimal, so `parse(format(q)) == q` for every quantity.  Imports only errors.

    >>> parse("228KiB")
    Quantity(value=233472, kind='bytes')
    >>> format_quantity(parse("3350GB/s"))
    '3.35TB/s'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final, Literal, NamedTuple

from hopsim.errors import ConfigError

Kind = Literal[
    "count",
    "fraction",
    "bytes",
    "seconds",
    "cycles",
    "hertz",
    "bytes_per_second",
    "bytes_per_clk",
    "flop_per_clk",
]


class Quantity(NamedTuple):
    """A number in the canonical unit of its kind; an int where the number is whole."""

    value: int | float
    kind: Kind


KIND_WORDS: Final[dict[Kind, str]] = {
    "count": 'a count such as "132"',
    "fraction": 'a share such as "92%"',
    "bytes": 'a size such as "228KiB"',
    "seconds": 'a time such as "15ns"',
    "cycles": 'a number of clock cycles such as "33cycles"',
    "hertz": 'a frequency such as "1.98GHz"',
    "bytes_per_second": 'a bandwidth such as "3.35TB/s"',
    "bytes_per_clk": 'a bandwidth such as "64B/clk"',
    "flop_per_clk": 'a rate such as "4096FLOP/clk"',
}

_DECIMAL: Final = {"": 0, "K": 3, "M": 6, "G": 9, "T": 12}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}


def _scales(unit: str, per: str = "") -> dict[str, Fraction]:
    decimal = {f"{p}{unit}{per}": Fraction(10**e) for p, e in _DECIMAL.items()}
    binary = {f"{p}{unit}{per}": Fraction(2**e) for p, e in _BINARY.items()}
    return decimal | binary


# Suffix -> size in the canonical unit, for each kind; the first is the canonical suffix.
_SUFFIXES: Final[dict[Kind, dict[str, Fraction]]] = {
    "count": {"": Fraction(1)},
    "fraction": {"%": Fraction(1, 100)},
    "bytes": _scales("B"),
    "seconds": {
        "s": Fraction(1),
        "ms": Fraction(1, 10**3),
        "us": Fraction(1, 10**6),
        "ns": Fraction(1, 10**9),
        "ps": Fraction(1, 10**12),
    },
    "cycles": {"cycles": Fraction(1), "cycle": Fraction(1), "clk": Fraction(1)},
    "hertz": {f"{p}Hz": Fraction(10**e) for p, e in _DECIMAL.items()} | {"kHz": Fraction(1000)},
    "bytes_per_second": _scales("B", "/s"),
    "bytes_per_clk": {"B/clk": Fraction(1), "KB/clk": Fraction(1000), "KiB/clk": Fraction(1024)},
    "flop_per_clk": {"FLOP/clk": Fraction(1)},
}
_BY_SUFFIX: Final[dict[str, tuple[Kind, Fraction]]] = {
    suffix: (kind, scale) for kind, table in _SUFFIXES.items() for suffix, scale in table.items()
}
# What `format_quantity` may write; the rest is only read.
_WRITTEN: Final[dict[Kind, tuple[str, ...]]] = {
    "count": ("",),
    "fraction": ("%",),
    "bytes": ("GiB", "MiB", "KiB", "B"),
    "seconds": ("s", "ms", "us", "ns", "ps"),
    "cycles": ("cycles",),
    "hertz": ("GHz", "MHz", "KHz", "Hz"),
    "bytes_per_second": ("TB/s", "GB/s", "MB/s", "B/s"),
    "bytes_per_clk": ("B/clk",),
    "flop_per_clk": ("FLOP/clk",),
}
_TEXT: Final = re.compile(r"([+-]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z%/]*)")


def _number(exact: Fraction) -> int | float:
    return exact.numerator if exact.denominator == 1 else exact.numerator / exact.denominator


def _words(kinds: Sequence[Kind]) -> str:
    """Say what is expected: each thing once, with an example of each kind.

    >>> _words(("bytes_per_clk", "bytes_per_second"))
    'a bandwidth such as "64B/clk" or "3.35TB/s"'
    """
    examples: dict[str, list[str]] = {}
    for kind in kinds:
        thing, _, example = KIND_WORDS[kind].partition(" such as ")
        examples.setdefault(thing, []).append(example)
    said = (f"{thing} such as {' or '.join(some)}" for thing, some in examples.items())
    return " or ".join(said) or "a number with its unit"


def parse(text: str | int | float, *expected: Kind, where: str = "") -> Quantity:
    """Return the quantity that `text` says.

    Args:
        text: number and unit, for example `"33cycles"`; a bare number is a count, or a fraction
            where only that fits.
        expected: the kinds that will do; none given means any.
        where: the configuration key or option, for the error message.
    Raises:
        ConfigError: not a number, an unknown unit, or a unit of another kind.
    """
    written = str(text)
    wanted = _words(expected)
    found = _TEXT.fullmatch(written.strip())
    known = ", ".join(s for kind in (expected or _SUFFIXES) for s in _SUFFIXES[kind] if s)
    hint = f"a number with one of the units {known}" if known else "a number without a unit"
    if found is None:
        raise ConfigError(f"expected {wanted}, got {written!r}", where=where, hint=hint)
    digits, suffix = found[1], found[2]
    if suffix not in _BY_SUFFIX:
        raise ConfigError(
            f"expected {wanted}, got {written!r}: unknown unit {suffix!r}", where=where, hint=hint
        )
    kind, scale = _BY_SUFFIX[suffix]
    if kind == "count" and "fraction" in expected and "count" not in expected:
        kind = "fraction"
    if expected and kind not in expected:
        got = "no unit" if not suffix else KIND_WORDS[kind].split(" such")[0]
        raise ConfigError(
            f"expected {wanted}, got {written!r} ({got})",
            where=where,
            hint=hint,
        )
    return Quantity(_number(Fraction(digits.replace("_", "")) * scale), kind)


def format_quantity(quantity: Quantity) -> str:
    """Return the shortest text that parses back to exactly this quantity."""
    kind = quantity.kind
    exact = Fraction(Decimal(repr(quantity.value)))
    candidates: list[str] = []
    for suffix in _WRITTEN[kind]:
        scaled = exact / _SUFFIXES[kind][suffix]
        text = _plain_decimal(scaled)
        if text is not None:
            candidates.append(text + suffix)
    assert candidates, quantity
    return min(candidates, key=len)


def _plain_decimal(value: Fraction) -> str | None:
    """Return `value` as a decimal without exponent, or None when it has no finite one."""
    remaining = value.denominator
    places = 0
    while remaining % 10 == 0:
        remaining //= 10
        places += 1
    for prime in (2, 5):
        while remaining % prime == 0:
            remaining //= prime
            places += 1
    if remaining != 1:
        return None
    digits = abs(value.numerator) * 10**places // value.denominator
    sign = "-" if value < 0 else ""
    whole, rest = divmod(digits, 10**places)
    tail = str(rest).rjust(places, "0").rstrip("0") if places else ""
    return f"{sign}{whole}.{tail}" if tail else f"{sign}{whole}"


def to_cycles(quantity: Quantity, clock_hz: float) -> float:
    """Return a time in cycles of a clock; a number of cycles stays as it is.

    Args:
        quantity: kind `cycles` or `seconds`.
        clock_hz: the clock that the cycles count.
    """
    assert quantity.kind in ("cycles", "seconds"), quantity
    return quantity.value if quantity.kind == "cycles" else quantity.value * clock_hz


def to_bytes_per_clk(quantity: Quantity, clock_hz: float) -> float:
    """Return a bandwidth in bytes for each cycle of a clock.

    Args:
        quantity: kind `bytes_per_clk` or `bytes_per_second`.
        clock_hz: the clock.
    """
    assert quantity.kind in ("bytes_per_clk", "bytes_per_second"), quantity
    return quantity.value if quantity.kind == "bytes_per_clk" else quantity.value / clock_hz
