"""How a PTX text begins: `.version`, `.target`, `.address_size`.

Source: PTX ISA 8.7 "PTX Module Directives"; what is refused is what ptxas 13.0 refuses.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, NamedTuple

from hopsim.isa.ptx.declarations import declared_name, integer
from hopsim.isa.ptx.lexer import Cursor, Source
from hopsim.isa.ptx.suggest import closest

_FIRST_VERSIONS: Final = {
    "sm_70": (6, 0), "sm_75": (6, 3), "sm_80": (7, 0), "sm_86": (7, 1), "sm_87": (7, 4), "sm_89": (7, 8),
    "sm_90": (7, 8), "sm_90a": (8, 0),
}  # fmt: skip
"""Source: PTX ISA 8.7 "Release Notes"."""

_ADDRESS_SIZE: Final = 64
"""The one that `ptxas -arch=sm_90a` (13.0) takes, also without `.address_size`, where the PTX ISA says 32."""

_HOPPER: Final = 90
_ARCHITECTURE: Final = re.compile(r"sm_(\d+)([af]?)", re.ASCII)
_TARGET_OPTIONS: Final = ("debug", "texmode_unified", "texmode_independent")
"""What may stand beside the architecture.  Source: PTX ISA 8.7 ".target", less `map_f64_to_f32`, which ptxas
(13.0) refuses from sm_13 on."""

_BEGINNING: Final = "a PTX file begins with .version, .target and .address_size; nvcc -arch=sm_90a -ptx makes one of CUDA"
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")


class Header(NamedTuple):
    """What a text says of itself.

    Args:
        version: major and minor.  target: the architecture and its options.  address_size: bits.
    """

    version: tuple[int, int]
    target: tuple[str, ...]
    address_size: int


def read_header(cursor: Cursor) -> Header:
    """Read the beginning of a text; the cursor stands behind it then.

    Raises: PtxError.
    """
    source = cursor.source
    version = _version(cursor)
    _expect(cursor, ".target", "after '.version'")
    start = cursor.start
    target = [_target(cursor, "'.target'")]
    if not _ARCHITECTURE.fullmatch(target[0]):
        source.fail(
            f"expected an architecture like sm_90a after '.target', got '{target[0]}'",
            start,
            "write .target sm_90a",
        )
    first = _FIRST_VERSIONS.get(target[0], version)
    if version < first:
        source.fail(
            f"{target[0]} needs .version {first[0]}.{first[1]} or later, got {version[0]}.{version[1]}",
            start,
            f"write .version {first[0]}.{first[1]}",
        )
    _check_ascii(source)
    while cursor.accept(","):
        target.append(_target(cursor, "','"))
    address_size = _ADDRESS_SIZE
    if cursor.accept(".address_size"):
        start = cursor.start
        address_size = integer(cursor, "an address size")
        if address_size != _ADDRESS_SIZE:
            source.fail(
                f"sm_90 has addresses of {_ADDRESS_SIZE} bits only, got {address_size}",
                start,
                f"write .address_size {_ADDRESS_SIZE}",
            )
    return Header(version, tuple(target), address_size)


def _check_ascii(source: Source) -> None:
    """Raise at the first character that is not ASCII, in comments and strings too."""
    text = source.text
    found = None if text.isascii() else _NOT_ASCII.search(text)
    if found is not None:
        name = unicodedata.name(found[0], "which has no name")
        source.fail(
            f"expected ASCII, got U+{ord(found[0]):04X} ({name})",
            found.start(),
            "ptxas takes no other characters, in comments and strings neither",
        )


def _expect(cursor: Cursor, word: str, place: str) -> None:
    if not cursor.accept(word):
        shown, hint = cursor.shown(), _BEGINNING
        if cursor.text == "\ufeff":
            shown = "a byte order mark (U+FEFF)"
            hint = "save the file as UTF-8 without it: ptxas takes none"
        elif cursor.at("end") and word == ".version":
            shown = "nothing but comments" if cursor.source.text.strip() else "an empty file"
        cursor.fail(f"expected '{word}' {place}, got {shown}", hint)


def _target(cursor: Cursor, after: str) -> str:
    start = cursor.start
    name = declared_name(cursor, after)
    match = _ARCHITECTURE.fullmatch(name)
    # What has a letter runs on that architecture alone, what has none also on later ones.
    if match and (int(match[1]) > _HOPPER or (match[2] and int(match[1]) != _HOPPER)):
        cursor.source.fail(
            f"code for {name} does not run on Hopper",
            start,
            "compile for sm_90a, or for sm_90 or an older one without a letter",
        )
    if not match and name not in _TARGET_OPTIONS and after == "','":
        near = closest(name, _TARGET_OPTIONS)
        cursor.source.fail(
            f"unknown target option '{name}': expected one of {', '.join(_TARGET_OPTIONS)}",
            start,
            f"did you mean '{near}'?" if near else "",
        )
    return name


def _version(cursor: Cursor) -> tuple[int, int]:
    _expect(cursor, ".version", "at the start of the file")
    match = re.fullmatch(r"(\d+)\.(\d+)", cursor.text)
    if match is None:
        cursor.fail(
            f"expected a version like 8.7 after '.version', got {cursor.shown()}",
            "write .version 8.7",
        )
    cursor.advance()
    return int(match[1]), int(match[2])
