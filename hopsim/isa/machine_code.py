"""The machine code that PTX becomes, as data."""

from __future__ import annotations

from typing import Final

INSTRUCTION_BYTES: Final = 16
"""Of one machine instruction. Source: NVIDIA CUDA Binary Utilities 13.0, instruction set of compute capability 7.0 on."""
