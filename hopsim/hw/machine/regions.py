"""Which memory an address points into: parameters, local and shared memory of a CTA, allocations of global memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from hopsim.errors import MachineFault
from hopsim.hw.machine.access_notes import AccessNotes, first_of
from hopsim.hw.machine.memory import RANK_SHIFT, Region, RegionFault
from hopsim.hw.machine.windows import SHARED_SPACES
from hopsim.isa.values import Value, lanes

OUTSIDE = "check the address arithmetic and the size of the buffer"
NO_ALLOCATION = "pass an array that gpu.array or gpu.empty made"


class AddressedRegions(AccessNotes):
    """Finds what the addresses of a strand point into."""

    def shared_region(self, space: str, address: int) -> Region:
        """Return the shared memory that an address points into: this CTA's or, in the cluster window, a peer's."""
        rank = address >> RANK_SHIFT
        cta = self.cta
        if rank == cta.rank:
            return cta.shared
        if rank >= len(cta.cluster.ctas):
            raise self.fault(
                f"shared address {address:#x} names CTA rank {rank}, but the cluster has {len(cta.cluster.ctas)}"
            )
        if space != "shared::cluster":
            raise self.fault(
                f"shared::cta access to address {address:#x} of CTA rank {rank} from rank {cta.rank}",
                "use the .shared::cluster form for an address from mapa",
            )
        return cta.cluster.ctas[rank].shared

    def region(self, space: str, address: Value, of: Value | None = None) -> Region:
        """Return the region that holds the address of the first lane.

        Args:
            of: the addresses of all lanes, where `address` is that of one: a fault names the lanes that have it.
        Raises: MachineFault.
        """
        first = first_of(address)
        if space in SHARED_SPACES:
            return self.shared_region(space, first)
        if space in ("global", "const"):
            try:
                return self.machine.memory.find(first)
            except RegionFault as fault:
                raise self._region_fault(
                    f"{space} access: {fault.what}",
                    NO_ALLOCATION,
                    fault,
                    address if of is None else of,
                ) from None
        if space == "param":
            return self.machine.parameters
        if space == "local":
            return self.cta.local_region()
        raise AssertionError(space)

    def _region_fault(
        self, what: str, hint: str, fault: RegionFault, address: Value | None
    ) -> MachineFault:
        """Make a fault of the lanes that have the address which a region refuses; of all where they share it."""
        positions = None
        if isinstance(address, np.ndarray):
            positions = np.flatnonzero(address == fault.address)
        return self.fault(what, hint, positions=positions, kind=fault.kind)

    def _local_addresses(self, address: Value, count_bytes: int, what: str) -> Value:
        per_thread = self.machine.local_bytes
        last = int(address.max()) if isinstance(address, np.ndarray) else address
        if last + count_bytes > per_thread:
            positions = None
            if isinstance(address, np.ndarray):
                positions = np.flatnonzero(address == address.max())
            raise self.fault(
                f"{what} local: bytes {last:#x}..{last + count_bytes - 1:#x} leave the thread's local memory "
                f"({per_thread} bytes)", OUTSIDE, positions=positions, kind="outside",
            )  # fmt: skip
        return (lanes(address, self.lanes, 64).astype(np.int64) + self.tids * per_thread).astype(
            np.uint64
        )

    def _by_region(self, space: str, address: Any) -> list[tuple[Region, Any]]:
        """Group lanes by the region they point into."""
        groups: dict[int, tuple[Region, list[int]]] = {}
        for position, one in enumerate(address.tolist()):
            region = self.region(space, one, of=address)
            groups.setdefault(region.base, (region, []))[1].append(position)
        return [(region, np.array(positions)) for region, positions in groups.values()]


def hint_of(fault: RegionFault) -> str:
    """Return what to try where a region refuses an access."""
    if "aligned" in fault.what:
        return "align the address to the access size"
    if "never written" in fault.what:
        return "write it first, or wait for the copy that fills it"
    if "read-only" in fault.what:
        return "write to global memory instead"
    return OUTSIDE
