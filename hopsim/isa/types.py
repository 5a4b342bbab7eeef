"""The scalar types of PTX: width, kind, and the numpy dtype a register of that width uses.

Source: PTX ISA 8.7 "Fundamental Types", "Alternate Floating-Point Data Formats", "Packed Data Types".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

Kind = Literal["signed", "unsigned", "bits", "float", "pred", "packed"]


@dataclass(frozen=True, slots=True)
class ScalarType:
    """One PTX type, for example `s32`."""

    name: str
    width_bits: int
    kind: Kind

    @property
    def bytes(self) -> int:
        """Size in memory, in bytes (a predicate has none)."""
        return self.width_bits // 8

    @property
    def mask(self) -> int:
        """All ones in this width."""
        return (1 << self.width_bits) - 1

    @property
    def is_signed(self) -> bool:
        """Whether a wider destination is filled by the sign."""
        return self.kind == "signed"


def _build() -> dict[str, ScalarType]:
    rows: list[ScalarType] = [ScalarType("pred", 1, "pred")]
    rows += [ScalarType(f"s{w}", w, "signed") for w in (8, 16, 32, 64)]
    rows += [ScalarType(f"u{w}", w, "unsigned") for w in (8, 16, 32, 64)]
    rows += [ScalarType(f"b{w}", w, "bits") for w in (8, 16, 32, 64, 128)]
    rows += [ScalarType(f"f{w}", w, "float") for w in (16, 32, 64)]
    rows += [ScalarType("bf16", 16, "float"), ScalarType("tf32", 32, "float")]
    rows += [ScalarType("e4m3", 8, "float"), ScalarType("e5m2", 8, "float")]
    rows += [ScalarType("f16x2", 32, "packed"), ScalarType("bf16x2", 32, "packed")]
    rows += [ScalarType("e4m3x2", 16, "packed"), ScalarType("e5m2x2", 16, "packed")]
    rows += [ScalarType("u16x2", 32, "packed"), ScalarType("s16x2", 32, "packed")]
    return {row.name: row for row in rows}


TYPES: Final[dict[str, ScalarType]] = _build()

DTYPES: Final[dict[int, np.dtype[np.unsignedinteger]]] = {
    8: np.dtype(np.uint8),
    16: np.dtype(np.uint16),
    32: np.dtype(np.uint32),
    64: np.dtype(np.uint64),
}

OPERANDS_ONLY: Final = ("bf16", "bf16x2", "tf32", "e4m3x2", "e5m2x2", "u16x2", "s16x2")
"""Types of instructions that no register is declared with (ptxas 13.0)."""

OPAQUE_BYTES: Final = {"texref": 8, "surfref": 8}
"""Types of module variables that stand for textures and surfaces, which are not modelled, and the room that they take."""

WIDEST_BITS: Final = 64
"""The widest register of the machine; one of `.b128` is two of these."""

INTEGERS: Final = ("u16", "u32", "u64", "s16", "s32", "s64")
BITS: Final = ("b16", "b32", "b64")
_UNTYPED_AND_INTEGER = tuple(f"{kind}{width}" for kind in "bus" for width in (8, 16, 32, 64))
MEMORY_TYPES: Final = (
    *_UNTYPED_AND_INTEGER,
    "f16",
    "bf16",
    "f32",
    "f64",
    "f16x2",
    "bf16x2",
    "b128",
)
