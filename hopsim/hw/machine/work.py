"""What an asynchronous operation has to move or multiply, as the timing models need it: sizes and places, never values.

The machine fills one record for each operation (`Operation.work`); a schedule that knows no time ignores it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hopsim.hw.machine.cta import Cta

TENSOR_ROWS = 64


class BoxLines(Protocol):
    """The part of a tensor-map box that lies inside the tensor, as L2 sees it."""

    @property
    def coords(self) -> tuple[int, ...]:
        """Coordinates of the box: with the map they identify it."""
        ...

    @property
    def inside_bytes(self) -> int:
        """How many of its bytes lie inside the tensor."""
        ...

    def lines(self) -> NDArray[np.int64]:
        """Return the sorted distinct addresses of the 128-byte lines it touches in global memory."""
        ...

    def sectors(self) -> int:
        """Return how many 32-byte sectors of them it touches."""
        ...

    def sector_addresses(self) -> NDArray[np.int64]:
        """Return the sorted distinct addresses of those sectors."""
        ...

    def splits(self) -> tuple[int, int, int]:
        """Return lines more than with rows that begin at lines, parts of sectors, and lines of rows with such parts."""
        ...


class TensorWork(NamedTuple):
    """One wgmma.mma_async m64nNkK.

    Args:
        kind: PTX type of A (`bf16`, `e4m3`, ...).
        n, k: of the shape.
        element_bits: width of one element of A and B.
        a_shared: A comes through a descriptor, not from registers.
        sparse: half of A is stored and multiplied.
        warpgroup: whose operations execute in order.
    """

    kind: str
    n: int
    k: int
    element_bits: int
    a_shared: bool
    sparse: bool
    warpgroup: Any

    @property
    def stored_k(self) -> int:
        """Elements of a row of A that are stored."""
        return self.k // 2 if self.sparse else self.k

    @property
    def shared_bytes(self) -> int:
        """Bytes of operands read from shared memory."""
        elements = self.n * self.k + (TENSOR_ROWS * self.stored_k if self.a_shared else 0)
        return elements * self.element_bits // 8


class TmaWork(NamedTuple):
    """One tensor copy (cp.async.bulk.tensor, cp.reduce.async.bulk.tensor, prefetch).

    Args:
        direction: `load`, `store`, `reduce` or `prefetch`.
        total_bytes: bytes of the box in shared memory (of one destination), out-of-bounds elements included.
        rank: of the tensor map.
        tensor_map: identity of the map, hashable: its first use by an SM fetches the descriptor.
        plan: what the box touches in global memory.
        destinations: CTAs that receive the data (several: multicast); the CTA itself for stores.
        fetch_bytes: what a miss brings into L2 at least, as the tensor map says.
    """

    direction: str
    total_bytes: int
    rank: int
    tensor_map: Any
    plan: BoxLines
    destinations: tuple[Cta, ...]
    fetch_bytes: int = 0


class CopyWork(NamedTuple):
    """cp.async by the threads of a strand, or one plain bulk copy.

    Args:
        direction: `load` (global to shared), `store`, `reduce`, `prefetch`, or `peer` (shared to a CTA of the cluster).
        addresses: global byte addresses, one a lane (or one int); shared ones for `peer`.
        count_bytes: bytes from each address.
        lanes: threads that take part.
        destinations: CTAs that receive the data; the CTA itself for stores.
        fetch_bytes: what a miss brings into L2 at least, as the instruction says.
        through_l1: whether what comes is in L1 first.
    """

    direction: str
    addresses: int | NDArray[np.uint64]
    count_bytes: int
    lanes: int
    destinations: tuple[Cta, ...]
    fetch_bytes: int = 0
    through_l1: bool = False


class ArriveWork(NamedTuple):
    """One arrival on an mbarrier of another CTA of the cluster."""

    source: Cta
    target: Cta


__all__ = ["ArriveWork", "BoxLines", "CopyWork", "TensorWork", "TmaWork"]
