"""Why warps do not issue."""

from __future__ import annotations

from enum import IntEnum


class Stall(IntEnum):
    """Why a warp does not issue; names follow Nsight Compute's warp states where it has one."""

    SELECTED = 0
    NOT_SELECTED = 1
    WAIT = 2
    SHORT_SCOREBOARD = 3
    LONG_SCOREBOARD = 4
    BARRIER = 5
    MEMBAR = 6
    GMMA = 7
    MATH_PIPE_THROTTLE = 8
    SLEEPING = 9
    BRANCH_RESOLVE = 10
    MBARRIER = 11
    BULK_GROUP = 12
    COPY_GROUP = 13
    CLUSTER_BARRIER = 14
    REGISTERS = 15
    CONVERGENCE = 16
    NO_INSTRUCTION = 17
    DISPATCH_STALL = 18


__all__ = ["Stall"]
