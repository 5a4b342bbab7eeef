"""The copies of the TMA unit, whether a plan is one of a box (`box_copy`) or of a column of pixels (`column_copy`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopsim.layout import box_copy, column_copy
from hopsim.layout.box import BoxPlan
from hopsim.layout.box_shared import Bytes
from hopsim.layout.column import ColumnPlan

Plan = BoxPlan | ColumnPlan


def copy_in(plan: Plan, buffer: Bytes, base_addr: int, shared: Bytes) -> None:
    """Load: the bytes of an allocation that begins at `base_addr` to those of a CTA's shared memory.

    Raises: MachineFault: the copy leaves the allocation or the shared memory; so the others.
    """
    if isinstance(plan, BoxPlan):
        box_copy.copy_in(plan, buffer, base_addr, shared)
    else:
        column_copy.copy_in(plan, buffer, base_addr, shared)


def copy_out(plan: Plan, held: Bytes, buffer: Bytes, base_addr: int, held_base: int) -> None:
    """Store: the bytes of shared memory from `held_base` on to those of an allocation."""
    if isinstance(plan, BoxPlan):
        box_copy.copy_out(plan, held, buffer, base_addr, held_base)
    else:
        column_copy.copy_out(plan, held, buffer, base_addr, held_base)


def reduce_out(
    plan: Plan, held: Bytes, buffer: Bytes, base_addr: int, op: str, held_base: int
) -> None:
    """Reduce the bytes of shared memory from `held_base` on into those of an allocation, by the type of the map."""
    if isinstance(plan, BoxPlan):
        box_copy.reduce_out(plan, held, buffer, base_addr, op, held_base)
    else:
        column_copy.reduce_out(plan, held, buffer, base_addr, op, held_base)


def inside_chunks(plan: Plan) -> NDArray[np.int64]:
    """Return the shared address of every 16-byte chunk of which all elements are inside the tensor, (chunks,), in order."""
    if isinstance(plan, BoxPlan):
        return box_copy.inside_chunks(plan)
    return column_copy.inside_chunks(plan)
