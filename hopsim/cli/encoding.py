"""What an encoding other than UTF-8 has no signs for: bars on standard output, names of files.

A terminal or a pipe of another encoding (`LC_ALL=C`, `PYTHONIOENCODING=latin-1`) gets plain signs in the place of those that
it lacks: what a run found must not end in a traceback.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import Final

PLAIN_SIGNS: Final = "hopsim-plain-signs"
_PLAIN: Final = {
    **dict.fromkeys("█▉▊▋▌", "#"), **dict.fromkeys("▍▎▏", ":"), "†": "*", "…": "~", "─": "-", "│": "|",
}  # fmt: skip
# Bytes that Python could not decode in the name of a file come as characters of this range.
_ESCAPED: Final = range(0xDC80, 0xDD00)


def settle_streams() -> None:
    """Let standard output and standard error take every text, whatever their encoding."""
    codecs.register_error(PLAIN_SIGNS, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAIN_SIGNS)


def file_name(text: str) -> str:
    """Return a name that stands in a file of UTF-8 as the system's calls take it, whatever the locale.

    >>> file_name("x.npy")
    'x.npy'
    """
    return os.fsdecode(text.encode())


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return what stands for the first sign that an encoding lacks, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    sign = error.object[error.start]
    if ord(sign) in _ESCAPED:
        return bytes([ord(sign) - 0xDC00]), error.start + 1
    return _PLAIN.get(sign, "?"), error.start + 1
