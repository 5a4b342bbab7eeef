"""Importing this module declares every instruction form: one import per family of `hopsim.isa.ops`.

A module that decodes instructions imports it, so that `hopsim.isa.forms.form.FORMS` is full.
"""

from __future__ import annotations

from hopsim.isa.forms.form import FORMS
from hopsim.isa.ops import (
    async_copy,
    atomics,
    barriers,
    compare,
    control,
    convert,
    device_runtime,
    floating,
    integer,
    logic,
    matrix,
    mbarriers,
    memory,
    mma,
    mma_sparse,
    moves,
    tensor_copy,
    tensor_maps,
    video,
    warp,
    wgmma,
    wgmma_sparse,
)

FAMILIES = (
    async_copy, atomics, barriers, compare, control, convert, device_runtime, floating, integer, logic, matrix, mbarriers,
    memory, mma, mma_sparse, moves, tensor_copy, tensor_maps, video, warp, wgmma, wgmma_sparse,
)  # fmt: skip

__all__ = ["FAMILIES", "FORMS"]
