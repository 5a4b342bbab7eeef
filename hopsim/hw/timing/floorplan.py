"""Where SMs are: in which GPC, at which port to L2, in which CPC.

SMs are numbered in rows: the first TPC of every GPC, then the second of every GPC that has one, and so on, which is how
%smid is numbered.  TPCs that clusters larger than themselves do not use are numbered last; they lie in the smallest GPC all
the same, behind its own TPCs.  The CPCs of a GPC take its TPCs in turn.

Source: hopsim's recordings on an H100 SXM: %smid of the CTAs of clusters of 1 to 16; tests/silicon/micro.json, *_by_sm and
steady_*: SMs of CPCs with two TPCs are quicker where several CTAs load, and the TPCs outside have no port of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from hopsim.config.groups import Device


def number_sms(device: Device) -> list[list[int]]:
    """Return the SMs of each GPC, ascending."""
    pair = device.sms_per_tpc
    result: list[list[int]] = [[] for _ in device.gpc_sm_counts]
    # A TPC that is a GPC of its own is numbered after all others.
    order = sorted(range(len(result)), key=lambda gpc: device.gpc_sm_counts[gpc] <= pair)
    number = 0
    for alone in (False, True):
        gpcs = [gpc for gpc in order if (device.gpc_sm_counts[gpc] <= pair) is alone]
        row = 0
        while any(device.gpc_sm_counts[gpc] > row * pair for gpc in gpcs):
            for gpc in gpcs:
                count = min(pair, device.gpc_sm_counts[gpc] - row * pair)
                result[gpc] += range(number, number + max(0, count))
                number += max(0, count)
            row += 1
    return result


def by_port(gpcs: Sequence[Sequence[int]], sms_per_tpc: int) -> list[list[int]]:
    """Return the SMs that share each port to L2: those of a GPC, the TPCs outside with the smallest one.

    Args:
        gpcs: SMs of each GPC; a TPC outside is one of its own.

    >>> by_port([[0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11, 12, 13], [14, 15]], 2)
    [[0, 1, 6, 7, 14, 15], [2, 3, 8, 9], [4, 5, 10, 11, 12, 13]]
    """
    ports = [list(sms) for sms in gpcs if len(sms) > sms_per_tpc]
    outside = [sm for sms in gpcs if len(sms) <= sms_per_tpc for sm in sms]
    if not ports:
        return [outside]
    min(ports, key=len).extend(outside)
    return ports


def by_cpc(ports: Sequence[Sequence[int]], sms_per_tpc: int, cpcs: int) -> list[list[int]]:
    """Return the SMs of each CPC: those of a GPC take its TPCs in turn.

    Args:
        ports: SMs of each GPC, TPC after TPC.
        cpcs: of a GPC.

    >>> by_cpc([[0, 1, 4, 5, 8, 9, 12, 13]], 2, 3)
    [[0, 1, 12, 13], [4, 5], [8, 9]]
    """
    result: list[list[int]] = []
    for sms in ports:
        tpcs = [sms[place : place + sms_per_tpc] for place in range(0, len(sms), sms_per_tpc)]
        shared = [[sm for tpc in tpcs[first::cpcs] for sm in tpc] for first in range(cpcs)]
        result += [cpc for cpc in shared if cpc]
    return result


__all__ = ["by_cpc", "by_port", "number_sms"]
