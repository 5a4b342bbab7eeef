"""The types, roundings and state spaces of wmma, as data; its shapes are those of `hopsim.layout.wmma`.

Source: PTX ISA 8.7 "wmma.load", "wmma.mma", "wmma.store".
"""

from __future__ import annotations

from typing import Final

SOURCE: Final = 'PTX ISA 8.7, "wmma.load", "wmma.store", "wmma.mma"'
INPUTS: Final = {"m16n16k8": ("tf32",), "m8n8k4": ("f64",)}
"""Types of A and B of these shapes; of the others they are those below."""
HALF_AND_BYTE: Final = ("f16", "bf16", "s8", "u8")
SUMS: Final = {
    "f16": ("f16", "f32"),
    "bf16": ("f32",),
    "tf32": ("f32",),
    "s8": ("s32",),
    "u8": ("s32",),
    "f64": ("f64",),
}
"""Types of C and D by that of A and B."""
SUMS_IN_MEMORY: Final = {"m16n16k8": ("f32",), "m8n8k4": ("f64",)}
"""Types of C and D of these shapes; of the others they are those below."""
ALL_SUMS: Final = ("f16", "f32", "s32")
ROUNDINGS: Final = ("rn", "rz", "rm", "rp")
SPACES: Final = ("global", "shared", "shared::cta")
