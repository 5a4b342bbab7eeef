"""C's printf, as CUDA's host side does it for a device: a format, and arguments packed in memory.

    >>> parse_format(b"%5d|%-4x|").fill(lambda offset, count: [7, 0, 0, 0, 255][offset], bytes)
    '    7|ff  |'

Source: CUDA C++ Programming Guide 13.0 "Format Specifiers"; C17 7.21.6.1, and glibc where that leaves a choice.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

MOST_ARGUMENTS: Final = 32
"""Further ones are ignored, and their specifiers printed as they stand."""
BAD_STRING: Final = b"(null)"
SPECIFIER: Final = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\d*))?(?P<size>h|ll|l)?"
    r"(?P<type>[cdiouxXpeEfFgGaAs%])"
)
"""As an H100 has them (recorded): C's precision `.*` and sizes `hh`, `j`, `z`, `t` are none, and take no argument."""
WIDE: Final = ("l", "ll")
FLOATS: Final = "eEfFgGaA"
BASES: Final = {"o": 8, "x": 16, "X": 16, "p": 16}

Word = Callable[[int, int], int]
"""(offset in bytes, count of bytes) of the packed arguments -> their bits."""
String = Callable[[int], bytes]
"""Address -> the bytes of a string."""


class FormatFault(Exception):
    """An argument cannot be formatted."""


@dataclass(frozen=True, slots=True)
class _Specifier:
    flags: str
    width: str
    precision: str | None
    size: str
    type: str

    @property
    def arguments(self) -> int:
        """How many it takes; a width may be one."""
        return 1 + (self.width == "*")


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed format: texts and specifiers in turn; `arguments` are those that it takes."""

    parts: tuple[str | _Specifier, ...]
    arguments: int

    def fill(self, word: Word, string: String) -> str:
        """Return what is printed.

        Args:
            word: reads packed arguments: 4 bytes, or 8 at a multiple of 8.
            string: reads what a `%s` points at.
        """
        offset = 0
        texts: list[str] = []

        def take(count: int) -> int:
            nonlocal offset
            offset = -(-offset // count) * count
            value = word(offset, count)
            offset += count
            return value

        for part in self.parts:
            if isinstance(part, str):
                texts.append(part)
                continue
            flags, width, precision = part.flags, 0, None
            if part.width == "*":
                width = _signed(take(4), 32)
                if width < 0:
                    flags, width = flags + "-", -width
            elif part.width:
                width = int(part.width)
            if part.precision is not None:
                precision = int(part.precision or 0)
            is_wide = part.size in WIDE or part.type in "ps" or part.type in FLOATS
            texts.append(_one(part, flags, width, precision, take(8 if is_wide else 4), string))
        return "".join(texts)


def parse_format(text: bytes) -> Template:
    """Parse a format; what is no specifier stands for itself, as do those past the 32nd argument."""
    source = text.decode("utf-8", errors="replace")
    parts: list[str | _Specifier] = []
    count = position = 0
    while position < len(source):
        match = SPECIFIER.match(source, position) if source[position] == "%" else None
        if match is None:
            end = source.find("%", position + 1)
            end = len(source) if end < 0 else end
            parts.append(source[position:end])
            position = end
            continue
        position = match.end()
        if match["type"] == "%":
            parts.append("%")
            continue
        one = _Specifier(
            match["flags"],
            match["width"] or "",
            match["precision"],
            match["size"] or "",
            match["type"],
        )
        if count + one.arguments > MOST_ARGUMENTS:
            parts.append(match[0])
            continue
        count += one.arguments
        parts.append(one)
    return Template(tuple(parts), count)


def _signed(bits: int, width_bits: int) -> int:
    sign = 1 << width_bits - 1
    return ((bits & (1 << width_bits) - 1) ^ sign) - sign


def _one(
    part: _Specifier, flags: str, width: int, precision: int | None, bits: int, string: String
) -> str:
    kind = part.type
    if kind == "s":
        text = string(bits)
        return _padded(text[:precision].decode("utf-8", errors="replace"), "", flags, width, False)
    if kind == "c":
        return _padded(chr(bits & 0xFF), "", flags, width, False)
    if kind in FLOATS:
        value = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
        return _float(value, kind, flags, width, precision)
    return _integer(part, flags, width, precision, bits)


def _padded(body: str, sign: str, flags: str, width: int, zeros: bool) -> str:
    missing = max(0, width - len(body) - len(sign))
    if "-" in flags:
        return sign + body + " " * missing
    if zeros and "0" in flags:
        return sign + "0" * missing + body
    return " " * missing + sign + body


def _sign(is_negative: bool, flags: str) -> str:
    if is_negative:
        return "-"
    return "+" if "+" in flags else " " if " " in flags else ""


def _integer(part: _Specifier, flags: str, width: int, precision: int | None, bits: int) -> str:
    kind = part.type
    if kind == "p" and bits == 0:
        return _padded("(nil)", "", flags, width, False)
    width_bits = 16 if part.size == "h" else 64 if part.size in WIDE or kind == "p" else 32
    bits &= (1 << width_bits) - 1
    sign, value = "", bits
    if kind in "di":
        value = _signed(bits, width_bits)
        sign, value = _sign(value < 0, flags), abs(value)
    base = BASES.get(kind, 10)
    digits = {8: f"{value:o}", 10: f"{value}", 16: f"{value:x}"}[base]
    if precision == 0 and value == 0:
        digits = ""
    digits = digits.rjust(precision or 0, "0")
    if kind == "o" and "#" in flags and not digits.startswith("0"):
        digits = "0" + digits
    if kind == "p" or (base == 16 and "#" in flags and value):
        sign = "0x"
    if kind == "X":
        digits, sign = digits.upper(), sign.upper()
    return _padded(digits, sign, flags, width, precision is None)


def _float(value: float, kind: str, flags: str, width: int, precision: int | None) -> str:
    sign = _sign(math.copysign(1.0, value) < 0, flags)
    value = abs(value)
    if not math.isfinite(value):
        text = "nan" if math.isnan(value) else "inf"
        return _padded(text.upper() if kind.isupper() else text, sign, flags, width, False)
    if kind in "aA":
        sign += "0x"
        text = _hexadecimal(value, precision, "#" in flags)
    else:
        mark = "#" if "#" in flags else ""
        text = f"%{mark}.{6 if precision is None else precision}{kind.lower()}" % value
    if kind.isupper():
        text, sign = text.upper(), sign.upper()
    return _padded(text, sign, flags, width, True)


def _hexadecimal(value: float, precision: int | None, point: bool) -> str:
    """Return `h.hhhp+d` as glibc writes it: one digit before the point, rounded to nearest even."""
    if value == 0.0:
        lead, fraction, exponent = 0, 0, 0
    else:
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        lead, exponent = (1, (bits >> 52) - 1023) if bits >> 52 else (0, -1022)
        fraction = bits & (1 << 52) - 1
    digits = 13
    if precision is not None and precision < digits:
        shift = 4 * (digits - precision)
        whole = lead << 52 | fraction
        kept, rest = whole >> shift, whole & (1 << shift) - 1
        half = 1 << shift - 1
        kept += rest > half or (rest == half and kept & 1 == 1)
        lead, fraction = kept >> 4 * precision, kept & (1 << 4 * precision) - 1
        digits = precision
    text = f"{fraction:0{digits}x}" if digits else ""
    text = text.rstrip("0") if precision is None else text.ljust(precision, "0")
    dot = "." if text or point else ""
    return f"{lead:x}{dot}{text}p{exponent:+d}"
