"""How many CTAs of a kernel an SM holds and what limits it; how many the chip holds, in whole clusters.

Source: CUDA occupancy calculator, compute capability 9.0: registers in units of 256 a warp
from the sub-partition that has the warp, shared memory in units of 128 bytes with 1 KiB reserved
for each CTA.
"""

from __future__ import annotations

from typing import Final

from hopsim.config.groups import Device
from hopsim.errors import LaunchError
from hopsim.hw.machine.thread_groups import WARP
from hopsim.results import Occupancy

REGISTER_STEP: Final = 8


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def resident_ctas(device: Device, ctas_per_sm: int, cluster_size: int) -> int:
    """Return the CTAs that the chip holds at once, in whole clusters; 0: a cluster fits nowhere.

    A cluster stays inside a GPC, and its CTAs are on different SMs.

    Args:
        device: SMs of each GPC.
        ctas_per_sm: that an SM holds (`occupancy`).
        cluster_size: CTAs of a cluster.

    >>> from hopsim.config import load
    >>> [resident_ctas(load("h100-sxm").device, 1, size) for size in (1, 2, 4)]
    [132, 132, 120]
    """
    return cluster_size * sum(
        sms * ctas_per_sm // cluster_size for sms in device.gpc_sm_counts if sms >= cluster_size
    )


def occupancy(
    device: Device, threads: int, registers_per_thread: int, shared_bytes: int
) -> Occupancy:
    """Return the occupancy of a kernel; `sms_used` is 0 (a launch fills it in).

    Args:
        device: limits of the SM.
        threads: of one CTA.
        registers_per_thread: as the kernel is compiled.
        shared_bytes: static plus dynamic, without the reserved part.
    Raises:
        LaunchError: not even one CTA fits.
    """
    warps = -(-threads // WARP)
    registers = min(
        _up(max(1, registers_per_thread), REGISTER_STEP),
        _up(device.registers_per_thread_max, REGISTER_STEP),
    )
    registers_per_warp = _up(registers * WARP, device.register_allocation_unit)
    warps_by_registers = (
        device.registers_per_sm // device.subpartitions // registers_per_warp * device.subpartitions
    )
    # The warps of a CTA are spread over the sub-partitions: the fullest one must hold its part.
    spread = _up(warps, device.subpartitions)
    too_many = registers_per_warp * spread > device.registers_per_sm
    shared = _up(
        shared_bytes + device.reserved_shared_per_cta_bytes, device.shared_allocation_unit_bytes
    )
    limits = {
        "warps": device.max_warps_per_sm // warps,
        "registers": 0 if too_many else warps_by_registers // warps,
        "shared memory": device.shared_per_sm_bytes // shared,
        "CTAs": device.max_ctas_per_sm,
    }
    ctas = min(limits.values())
    limiter = next(name for name, limit in limits.items() if limit == ctas)
    if ctas == 0:
        got = {
            "warps": f"{warps} warps a CTA, the SM has {device.max_warps_per_sm}",
            "registers": f"{registers} registers x {threads} threads, the SM has {device.registers_per_sm}",
            "shared memory": f"{shared} bytes of shared memory, the SM has {device.shared_per_sm_bytes}",
        }[limiter]
        raise LaunchError(
            f"a CTA does not fit on an SM: {got}", hint="use a smaller block, tile or fewer stages"
        )
    return Occupancy(
        ctas_per_sm=ctas,
        warps_per_sm=ctas * warps,
        warps_max=device.max_warps_per_sm,
        limiter=limiter,
        registers_per_thread=registers,
        shared_bytes_per_cta=shared,
        sms_used=0,
    )
