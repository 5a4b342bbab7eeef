"""The legal shapes and types of wgmma.mma_async, as data.

Source: PTX ISA 8.7 "wgmma.mma_async", tables of shapes and of matrix types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Major = Literal["K", "MN"]

DENSE_K: Final = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32}
ELEMENT_BYTES: Final = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1}
INTEGER_N: Final = (8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256)
SHAPES: Final = tuple(f"m64n{n}k{k}" for k in (8, 16, 32) for n in range(8, 257, 8))
SPARSE_SHAPES: Final = tuple(f"m64n{n}k{k}" for k in (16, 32, 64) for n in range(8, 257, 8))


@dataclass(frozen=True, slots=True)
class WgmmaShape:
    """One wgmma form: shape, types, majors, whether only half of A is stored.

    `kind` is the type pair as timing models name it.
    """

    n: int
    k: int
    d: str
    a: str
    b: str
    a_major: Major = "K"
    b_major: Major = "K"
    saturate: bool = False
    sparse: bool = False

    @property
    def stored_k(self) -> int:
        """Elements of a row of A that are stored."""
        return self.k // 2 if self.sparse else self.k

    @property
    def kind(self) -> str:
        """Type of A; the rate depends on nothing else."""
        return self.a

    @property
    def a_bytes(self) -> int:
        """Bytes of one element of A."""
        return ELEMENT_BYTES[self.a]

    @property
    def b_bytes(self) -> int:
        """Bytes of one element of B."""
        return ELEMENT_BYTES[self.b]

    @property
    def d_registers(self) -> int:
        """32-bit registers of the accumulator per thread."""
        return self.n // 4 if self.d == "f16" else self.n // 2


def shape_problem(shape: str, d: str, a: str, b: str, sparse: bool = False) -> str:
    """Return what is wrong with a combination of shape and types, or the empty string."""
    n, k = parse_shape(shape)
    wanted = DENSE_K[a] * (2 if sparse else 1)
    if k != wanted:
        return f"shape .{shape} does not go with .{a}: k must be {wanted}, got {k}"
    pairs = {"f16": ("f16",), "bf16": ("bf16",), "tf32": ("tf32",), "e4m3": ("e4m3", "e5m2"),
             "e5m2": ("e4m3", "e5m2"), "s8": ("s8", "u8"), "u8": ("s8", "u8")}  # fmt: skip
    if b not in pairs[a]:
        return f".{a} does not multiply .{b}; expected .{' or .'.join(pairs[a])}"
    results = {"f16": ("f16", "f32"), "e4m3": ("f16", "f32"), "e5m2": ("f16", "f32"),
               "bf16": ("f32",), "tf32": ("f32",), "s8": ("s32",), "u8": ("s32",)}  # fmt: skip
    if d not in results[a]:
        return f".{a} accumulates in .{' or .'.join(results[a])}, got .{d}"
    if d == "s32" and n not in INTEGER_N:
        return f"shape .{shape} is not legal for integers: n must be 8, 16, 24, 32, 48, 64, ... 256, got {n}"
    return ""


def parse_shape(shape: str) -> tuple[int, int]:
    """Return (n, k) of `m64nNkK`."""
    n, _, k = shape[len("m64n") :].partition("k")
    return int(n), int(k)
