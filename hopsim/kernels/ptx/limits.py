"""What kernels are planned with: the resources of an H100 SXM that decide what fits.

How long things take is in `configs/`; these are limits of the architecture, and the device's number of SMs.

Source: CUDA Hopper tuning guide 13.0; NVIDIA H100 architecture white paper (SXM5).
"""

from __future__ import annotations

from typing import Final

SMS: Final = 132

SHARED_LIMIT_BYTES: Final = 232_448
"""Dynamic shared memory that one CTA can have: 227 KiB."""

SHARED_PER_SM_BYTES: Final = 233_472
"""Shared memory of one SM: 228 KiB."""

RESERVED_PER_CTA_BYTES: Final = 1024
"""Of it, what the system keeps in each CTA."""

REGISTER_FILE: Final = 65_536
"""32-bit registers of one SM."""

THREADS_PER_SM: Final = 2048
"""64 warps."""
