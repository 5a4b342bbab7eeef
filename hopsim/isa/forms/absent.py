"""What sm_90a has and hopsim has not, by the first word of an opcode: what it is, and what does the same.

Source: PTX ISA 8.7 "Texture Instructions", "Surface Instructions", "Stack Manipulation Instructions", "Video Instructions".
"""

from __future__ import annotations

from typing import Final

TEXTURES: Final = "textures; global memory is read by ld.global.nc (__ldg)"
SURFACES: Final = "surfaces; global memory is read and written by ld and st"
STACK: Final = "memory of a size that is known at run time only; an array of fixed size, or malloc"
VIDEO: Final = "of the video instructions only vabsdiff2 and vabsdiff4 are, those that nvcc emits"
SEVERAL_DEVICES: Final = "memory of several devices"

ABSENT: Final = {
    **dict.fromkeys(("tex", "tld4", "txq", "istypep"), TEXTURES),
    **dict.fromkeys(("suld", "sust", "sured", "suq"), SURFACES),
    **dict.fromkeys(("alloca", "stacksave", "stackrestore"), STACK),
    **dict.fromkeys(
        (f"v{name}{parts}" for name in ("add", "sub", "avrg", "min", "max", "set") for parts in (2, 4)), VIDEO
    ),
    **dict.fromkeys(("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset"), VIDEO),
    "multimem": SEVERAL_DEVICES,
}  # fmt: skip
"""The words that follow `is not modelled: `."""

ONE_WAY: Final[dict[tuple[str, ...], str]] = {
    ("fence", "acquire", "sync_restrict::shared::cluster"): "fence.acquire.cluster orders more",
    ("fence", "release", "sync_restrict::shared::cta"): "fence.release.cluster orders more",
}
"""Fences of shared memory alone, by their first words: what does the same and more."""
