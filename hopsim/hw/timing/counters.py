"""What a timed run counted, under Nsight Compute's names where the meaning is the same.

Names that begin with `hopsim__` are ours. `smsp__inst_executed` is what `MachineCode.counted` makes
of PTX instructions; what ptxas makes of them differs by some percent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hopsim.hw.machine.thread_groups import WARP, WARPGROUP
from hopsim.hw.timing.dram import DramChannels
from hopsim.hw.timing.fabric import Fabric
from hopsim.hw.timing.l2 import L2Cache
from hopsim.hw.timing.sm import Sm
from hopsim.hw.timing.stalls import Stall

WARPGROUP_WARPS: Final = WARPGROUP // WARP
PERCENT: Final = 100.0
# Waits that Nsight Compute has no state of its own for keep PTX's words.
STALL_NAMES: Final = {stall: stall.name.lower() for stall in Stall}


class Totals:
    """Sums over all warps of a run: instructions, and warp cycles by state."""

    __slots__ = ("events", "instructions", "stalls")

    def __init__(self) -> None:
        self.instructions = 0
        self.events = 0
        self.stalls = [0.0] * len(Stall)

    def shares(self) -> dict[str, float]:
        """Return each state's share of the warps' time, those that never occurred left out."""
        total = sum(self.stalls)
        if total <= 0:
            return {}
        return {
            STALL_NAMES[stall]: self.stalls[stall] / total
            for stall in Stall
            if self.stalls[stall] > 0
        }


def counters(
    cycles: int, sms: Sequence[Sm], l2: L2Cache, dram: DramChannels, fabric: Fabric, totals: Totals
) -> dict[str, int | float]:
    """Return all counters of a run that took `cycles`."""
    count = len(sms)
    lts = l2.counters
    looked_up = lts.read + lts.written
    span = max(1, cycles)

    def share(busy: float, units: int) -> float:
        return PERCENT * busy / (units * span)

    tensor_operations = sum(sm.tensor.operations for sm in sms)
    return {
        "gpc__cycles_elapsed.max": cycles,
        "sm__cycles_active.avg": sum(sm.active_cycles for sm in sms) / count,
        "dram__bytes_read.sum": dram.read_bytes,
        "dram__bytes_write.sum": dram.written_bytes + l2.tags.old_written() * l2.sector_bytes,
        "lts__t_sectors_op_read.sum": lts.read,
        "lts__t_sectors_op_write.sum": lts.written,
        "lts__t_sector_hit_rate.pct": PERCENT * lts.hit / looked_up if looked_up else 0.0,
        "smsp__inst_executed.sum": totals.instructions,
        "sm__inst_executed_pipe_tensor_op_gmma.sum": tensor_operations * WARPGROUP_WARPS,
        "l1tex__data_bank_conflicts_pipe_lsu.sum": sum(sm.pipe.conflicts for sm in sms),
        # Operand reads of wgmma are among them, as recordings of GEMMs show.
        "l1tex__data_pipe_lsu_wavefronts.sum": sum(
            sm.pipe.wavefronts + sm.tensor.operand_bytes // sm.pipe.wavefront_bytes for sm in sms
        ),
        "hopsim__tensor_core_busy.pct": share(sum(sm.tensor.busy_cycles for sm in sms), count),
        "hopsim__mma_sync_busy.pct": share(sum(sm.mma.busy_cycles for sm in sms), count),
        "hopsim__tma_busy.pct": share(sum(sm.tma.busy_cycles for sm in sms), count),
        "hopsim__issue_busy.pct": share(
            sum(sm.issue.busy_slots for sm in sms), count * len(sms[0].issue.free)
        ),
        "hopsim__l2_busy.pct": share(l2.slices.busy_cycles, l2.slices.partitions),
        "hopsim__dram_busy.pct": share(dram.busy_cycles, 1),
        "hopsim__tma_bytes.sum": sum(sm.tma.bytes_moved for sm in sms),
        "hopsim__l2_requested_bytes.sum": lts.requested * l2.sector_bytes,
        "hopsim__l2_merged_bytes.sum": lts.merged * l2.sector_bytes,
        "hopsim__dsmem_bytes.sum": fabric.bytes_moved,
        "hopsim__l2_dirty_bytes_left.sum": l2.tags.dirty_sectors() * l2.sector_bytes,
        "hopsim__events.sum": totals.events,
    }
