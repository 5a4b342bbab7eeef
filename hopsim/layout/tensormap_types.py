"""The enumerations of a tensor map, numbered as the driver numbers them.

>>> TensorDataType.from_name("bfloat16").ptx_code, Interleave.from_name("16B").value
(10, 1)
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self

from hopsim.errors import TensorMapError


class _Named(IntEnum):
    """An enumeration whose members users write as text: `none`, `16B`, `nan`, `bfloat16`."""

    @property
    def text(self) -> str:
        """The name that `from_name` takes."""
        name = self.name.lower()
        return name[1:] + "B" if name[1:].isdigit() else name

    @classmethod
    def from_name(cls, name: str) -> Self:
        """Return the member of that name.

        Raises: TensorMapError: there is none.
        """
        for member in cls:
            if member.text == name:
                return member
        raise TensorMapError(
            f"unknown {cls.__name__} {name!r}",
            where="tensor map",
            hint="one of " + ", ".join(member.text for member in cls),
        )


class TensorDataType(_Named):
    """Element types, numbered as `CUtensorMapDataType`; names as `float16`, `tfloat32_ftz`."""

    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    UINT64 = 4
    INT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT32_FTZ = 10
    TFLOAT32 = 11
    TFLOAT32_FTZ = 12

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return _ITEM_BYTES[self]

    @property
    def ptx_code(self) -> int:
        """The code of `tensormap.replace.tile.elemtype`, which orders three types differently."""
        return _PTX_CODES[self]


_ITEM_BYTES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)
_PTX_CODES = (0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12)
FROM_PTX_CODE = {code: TensorDataType(number) for number, code in enumerate(_PTX_CODES)}
NAN_FILL_TYPES = frozenset(t for t in TensorDataType if t >= 6) - {TensorDataType.FLOAT64}


class Interleave(_Named):
    """`CUtensorMapInterleave`."""

    NONE = 0
    B16 = 1
    B32 = 2


class L2Promotion(_Named):
    """`CUtensorMapL2promotion`."""

    NONE = 0
    B64 = 1
    B128 = 2
    B256 = 3

    @property
    def fetch_bytes(self) -> int:
        """Bytes that a miss brings into L2 at least."""
        return 32 << self.value if self.value else 0


class OobFill(_Named):
    """What a load puts in place of elements outside the tensor: `CUtensorMapFloatOOBfill`."""

    ZEROS = 0
    NAN = 1
