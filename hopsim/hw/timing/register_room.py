"""Registers that a thread has for loads on their way.

ptxas schedules a kernel so that the SM can be full: 65,536 registers for 2,048 threads are 32 for each; for as many as 32
CTAs of a size that the program states they may be more.  Half of them are for loads that have been issued, and for what is
computed from each before it becomes part of something that is live anyway.

Source: machine code of ptxas 13.0: of 27 kernels of CUDA C++ (tests/silicon/workloads) nine use 31 or 32 registers, and only
the two that need more use more; before the first use of a load they issue 13 (`gemm_naive`, `softmax_rows`), 12
(`layer_norm`), 16 words (`gemm_tiled`, `softmax_rows`), of `bodies`, where four words become five, three loads.
The loop of `lists_row_by_row_w1_1` has 61 with `.reqntid 32`, and 32 with 128 or none.
"""

from __future__ import annotations

from typing import Final

from hopsim.config.groups import Device
from hopsim.hw.machine.thread_groups import WARP
from hopsim.isa.program.codegen import Segment

WORD_BITS: Final = 32
FOR_LOADS: Final = 2
"""One part in so many."""


def room_for_loads(device: Device, needed: int, threads: int | None) -> int | None:
    """Return the registers that loads may fill; None: the program needs more than a thread of a full SM has.

    Args:
        needed: registers of a thread.
        threads: of a CTA, if the program states how many.
    """
    most = device.max_warps_per_sm * WARP
    if threads is not None:
        most = min(most, device.max_ctas_per_sm * threads)
    registers = device.registers_per_sm // most
    return registers // FOR_LOADS if needed <= registers else None


def taken(segment: Segment) -> int:
    """Return the registers that a load and what is computed from it in its segment take at most."""
    last: dict[int, int] = {}
    for number, bound in enumerate(segment.instructions):
        for register in bound.reads:
            last[register] = number
    made: dict[int, int] = {}
    known: set[int] = set()
    most = 0
    for number, bound in enumerate(segment.instructions):
        if number and not bound.reads & known:
            continue
        known |= bound.writes
        made = {one: words for one, words in made.items() if last.get(one, -1) > number}
        for destination in bound.destinations:
            register = destination.register
            # What is live before the load has its register.
            if register is not None and not segment.live >> register.index & 1:
                made[register.index] = _words(register.width_bits)
        most = max(most, sum(made.values()))
    return most


def _words(bits: int) -> int:
    """Return the registers of 32 bits of one of PTX; predicates are elsewhere."""
    return -(-bits // WORD_BITS) if bits > 1 else 0


__all__ = ["room_for_loads", "taken"]
