"""How the tensor core multiplies each pair of types, for wgmma and for mma.sync."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

DFormat = Literal["f32", "f16"]


@dataclass(frozen=True, slots=True)
class MmaKind:
    """The parameters of one type pair on one unit.

    Args:
        a, b: names of the operand formats.
        instruction_k: elements along K that one instruction sums.
        fraction_bits: F, the bits below the largest exponent that a term keeps.
        cleared_low_bits: low bits of an f32 result that are always zero.
        through_f16: the assembler makes two f16 instructions of it, see `tensor_core.mma_chain`.
    """

    a: str
    b: str
    instruction_k: int
    fraction_bits: int
    cleared_low_bits: int = 0
    through_f16: bool = False


FP8: Final = ("e4m3", "e5m2")

# Recorded on an H100: tests/silicon/probes/wgmma.npz.
WGMMA: Final[dict[tuple[str, str], MmaKind]] = {
    ("f16", "f16"): MmaKind("f16", "f16", 16, 25),
    ("bf16", "bf16"): MmaKind("bf16", "bf16", 16, 25),
    ("tf32", "tf32"): MmaKind("tf32", "tf32", 8, 25),
    **{(a, b): MmaKind(a, b, 32, 13, cleared_low_bits=10) for a in FP8 for b in FP8},
}

# Recorded on an H100: tests/silicon/probes/mma_sync.npz.
MMA_SYNC: Final[dict[tuple[str, str], MmaKind]] = {
    **{pair: WGMMA[pair] for pair in (("f16", "f16"), ("bf16", "bf16"), ("tf32", "tf32"))},
    **{(a, b): MmaKind(a, b, 32, 25, through_f16=True) for a in FP8 for b in FP8},
}

__all__ = ["FP8", "MMA_SYNC", "WGMMA", "DFormat", "MmaKind"]
