"""The legal shapes and types of mma.sync and mma.sp, as data.

Source: PTX ISA 8.7 "mma", "mma.sp", tables of shapes.
"""

from __future__ import annotations

from typing import Final

HALF_SHAPES: Final = ("m16n8k8", "m16n8k16")
TF32_SHAPES: Final = ("m16n8k4", "m16n8k8")
FP8_SHAPES: Final = ("m16n8k16", "m16n8k32")
INT8_SHAPES: Final = ("m8n8k16", "m16n8k16", "m16n8k32")
INT4_SHAPES: Final = ("m8n8k32", "m16n8k32", "m16n8k64")
BIT_SHAPES: Final = ("m8n8k128", "m16n8k128", "m16n8k256")
DOUBLE_SHAPES: Final = ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")
FP8: Final = ("e4m3", "e5m2")
INT8: Final = ("s8", "u8")
INT4: Final = ("s4", "u4")
WIDTHS: Final = {
    "f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
    "f64": 64,
}  # fmt: skip
"""Bits of an element of A and B."""

SPARSE_HALF_SHAPES: Final = ("m16n8k16", "m16n8k32")
SPARSE_TF32_SHAPES: Final = ("m16n8k8", "m16n8k16")
SPARSE_FP8_SHAPES: Final = ("m16n8k64",)
SPARSE_INT8_SHAPES: Final = ("m16n8k32", "m16n8k64")
SPARSE_INT4_SHAPES: Final = ("m16n8k64", "m16n8k128")


def dimensions(shape: str) -> tuple[int, int, int]:
    """Return M, N and K.

    >>> dimensions("m16n8k256")
    (16, 8, 256)
    """
    m, _, rest = shape[1:].partition("n")
    n, _, k = rest.partition("k")
    return int(m), int(n), int(k)
