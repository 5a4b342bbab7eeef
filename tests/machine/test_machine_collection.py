"""Python's garbage collector around a launch: nothing of the launch stays, and all is as it was before."""

from __future__ import annotations

import contextlib
import gc

import numpy as np

import hopsim as hs
from hopsim.hw.machine.launch import Machine

EMPTY = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry k() { ret; }
"""


def machines() -> set[int]:
    return {id(one) for one in gc.get_objects() if isinstance(one, Machine)}


def test_a_launch_leaves_no_machine_behind() -> None:
    """Each is one cycle of references, with the shared and local memory of its CTAs."""
    kernel, gpu = hs.loads(EMPTY)["k"], hs.Gpu()
    before = machines()
    for schedule in ("timed", "in-order"):
        gpu.launch(kernel, grid=2, block=64, schedule=schedule)
        assert machines() <= before


def test_the_collector_is_as_it_was_after_a_launch_and_after_an_error() -> None:
    thresholds, frozen = gc.get_threshold(), gc.get_freeze_count()
    kernel, gpu = hs.loads(EMPTY)["k"], hs.Gpu()
    gpu.launch(kernel, grid=1, block=32)
    with contextlib.suppress(hs.LaunchError):
        gpu.launch(kernel, grid=1, block=32, args=[np.int32(1)])
    assert (gc.get_threshold(), gc.get_freeze_count()) == (thresholds, frozen)
