r"""The text of a PTX file, or what the file is instead.

    >>> what_binary(b"\x7fELF\x02\x01")
    'an ELF file (a cubin, an object or a program)'

Source: PTX ISA 8.7 "Source Format": PTX is ASCII text; what is none is told by the parser, with its place.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hopsim.errors import PtxError

_KINDS: Final = {
    b"\x7fELF": "an ELF file (a cubin, an object or a program)",
    b"\x50\xed\x55\xba": "a fat binary of CUDA",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
_EXTRACT: Final = (
    "cuobjdump -ptx prints the PTX that a binary holds; nvcc -arch=sm_90a -ptx makes PTX"
)
_SAVE: Final = "save it as ASCII or UTF-8"
_GIVE: Final = "give the path of a PTX text file"


def what_binary(content: bytes) -> str:
    """Return what bytes are that are no PTX text; empty when they may be text."""
    for start, kind in _KINDS.items():
        if content.startswith(start):
            return kind
    return "a binary file" if b"\0" in content else ""


def read_ptx(path: str | Path) -> str:
    r"""Return the text of a PTX file, with its line ends as `\n`.

    Raises: PtxError: it cannot be read, is binary, or is not UTF-8.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise PtxError(f"cannot read {path}: {error.strerror}", hint=_GIVE) from None
    kind = what_binary(content)
    if kind:
        hint = _SAVE if kind == "UTF-16 text" else _EXTRACT
        raise PtxError(f"expected PTX text, got {kind}", where=str(path), hint=hint)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        raise PtxError(
            f"expected PTX text, got the byte 0x{content[error.start]:02x}, which is not UTF-8",
            where=str(path),
            line=before.count(b"\n") + 1,
            column=error.start - before.rfind(b"\n"),
            hint=_SAVE,
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")
