"""The units of the chip that a launch runs on: SMs in their places, L2, device memory, the SM-to-SM network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hopsim.config import HardwareConfig
from hopsim.errors import LaunchError
from hopsim.hw.machine.launch import Machine
from hopsim.hw.machine.memory import GLOBAL_BASE
from hopsim.hw.timing.cta_scheduler import Placement
from hopsim.hw.timing.dram import DramChannels
from hopsim.hw.timing.fabric import Fabric
from hopsim.hw.timing.floorplan import by_cpc, by_port
from hopsim.hw.timing.gpc_port import GpcPort
from hopsim.hw.timing.l2 import L2Cache
from hopsim.hw.timing.load_gate import Cpc
from hopsim.hw.timing.local_memory import LocalMemory
from hopsim.hw.timing.occupancy import occupancy
from hopsim.hw.timing.sm import Sm

WARM_LINES: Final = 4096
LOCAL_ALIGNMENT: Final = 512


class Chip:
    """All units of one launch.

    Args:
        config: numbers of the chip.
        machine: the launch; its CTAs' needs say how many fit an SM and how large L1 is.
    Raises:
        LaunchError: a CTA, or a cluster, does not fit.
    """

    def __init__(self, config: HardwareConfig, machine: Machine) -> None:
        device = config.device
        self.dram = DramChannels(config.dram, config.l2.line_bytes, config.l2.latency_near_cycles)
        self.occupancy = occupancy(
            device, machine.threads, machine.registers_per_thread, machine.shared_bytes
        )
        self.placement = placement = Placement(device, self.occupancy.ctas_per_sm)
        ports = by_port(placement.sms_of, device.sms_per_tpc)
        self.l2 = L2Cache(config.l2, self.dram, list(map(len, ports)))
        self.l2.tags.cover(GLOBAL_BASE, GLOBAL_BASE)
        self.fabric = Fabric(config.dsmem, device.sm_count)
        if machine.cluster_size > placement.largest_cluster():
            raise LaunchError(
                f"a cluster of {machine.cluster_size} CTAs fits in no GPC "
                f"({placement.largest_cluster()} places in the largest)",
                hint="use smaller clusters",
            )
        # Whether an SM may hold several CTAs at a time: those that are no clusters take an SM each as long as there are any.
        self.shares_sms = self.occupancy.ctas_per_sm > 1 and (
            machine.cluster_size > 1 or machine.cluster_count > device.sm_count
        )
        ctas = machine.cluster_count * machine.cluster_size
        # Share of the SMs that have a CTA when a launch has begun.
        self.busy = min(1.0, ctas / device.sm_count)
        resident_shared = self.occupancy.shared_bytes_per_cta * self.occupancy.ctas_per_sm
        self.gpcs = [GpcPort(config.l2, self.l2, gpc, len(sms)) for gpc, sms in enumerate(ports)]
        port_of = {sm: port for port, sms in zip(self.gpcs, ports, strict=True) for sm in sms}
        cpc_of: dict[int, Cpc] = {}
        for sms in by_cpc(ports, device.sms_per_tpc, device.cpcs_per_gpc):
            cpc_of.update(dict.fromkeys(sms, Cpc(config.l2.on_way_per_cpc_bytes)))
        self.sms = [
            Sm(config, number, port_of[number], cpc_of[number], resident_shared)
            for number in range(device.sm_count)
        ]
        self.sms_of_gpcs = [[self.sms[number] for number in sms] for sms in ports]

    def local_memory(self, machine: Machine) -> LocalMemory:
        """Return where the local memory of a launch lies: behind its global memory, with a place for each CTA that fits."""
        end = max((region.base + region.size for region in machine.memory.regions), default=0)
        base = max(GLOBAL_BASE, end)
        base += -base % LOCAL_ALIGNMENT
        places = len(self.sms) * self.occupancy.ctas_per_sm
        return LocalMemory(base, machine.local_bytes, machine.threads, places)

    def warm(self, ranges: Sequence[tuple[int, int]], line_bytes: int) -> None:
        """Put memory into L2: (address, bytes) of each range."""
        for address, count_bytes in ranges:
            lines = np.arange(
                address // line_bytes, (address + count_bytes - 1) // line_bytes + 1, dtype=np.int64
            )
            for first in range(0, len(lines), WARM_LINES):
                chosen = lines[first : first + WARM_LINES] * line_bytes
                self.l2.warm(self.l2.tags.number(chosen))
