"""How many CTAs, one an SM, a chip runs at once: the grid of a persistent kernel."""

from __future__ import annotations

from typing import Final

from hopsim.config import HardwareConfig

H100_CTAS: Final = {1: 132, 2: 132, 4: 120}
"""In clusters of 1, 2 and 4: a cluster stays inside a GPC.

Source: cuOccupancyMaxActiveClusters on an H100 80GB HBM3, driver 580.159.04: 132, 66 and 30 clusters. Dies differ in how
the SMs spread over GPCs.
"""


def resident_ctas(hardware: HardwareConfig, cluster_size: int) -> int | None:
    """Return the CTAs that a chip runs at once, in whole clusters; None: it has the SMs of an H100 (`H100_CTAS`).

    Args:
        cluster_size: CTAs of a cluster.
    """
    device = hardware.device
    if device.sm_count == H100_CTAS[1]:
        return None
    return cluster_size * sum(sms // cluster_size for sms in device.gpc_sm_counts)
