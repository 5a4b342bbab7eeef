"""Threads that execute together.

Source: PTX ISA 8.7 "Predefined Constants" (WARP_SZ), "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions".
"""

from __future__ import annotations

from typing import Final

from hopsim.isa.ptx.constants import WARP_SIZE

WARP: Final = WARP_SIZE
"""Threads of a warp."""
WARPGROUP: Final = 4 * WARP
"""Threads of a warpgroup: four warps that follow each other."""

__all__ = ["WARP", "WARPGROUP"]
