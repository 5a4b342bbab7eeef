"""What is told of each access: to a timing model, and to whoever listens to accesses."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopsim.events import Access
from hopsim.hw.machine.memory import OFFSET_MASK, RANK_SHIFT
from hopsim.hw.machine.windows import GenericAddresses
from hopsim.isa.program.codegen import pick
from hopsim.isa.values import Value


class AccessNote(NamedTuple):
    """What a timing model needs of one access: space, addresses, bytes a lane, write or read or atomic, remote or not.

    `fetch_bytes` is what a miss brings into L2 at least; `beside`: what lanes access that point into other spaces.
    """

    kind: str
    space: str
    addresses: Any
    count_bytes: int
    lanes: int
    remote: bool
    fetch_bytes: int = 0
    beside: tuple[Any, ...] = ()


def first_of(address: Value) -> int:
    """Return the address of the first lane."""
    return address if isinstance(address, int) else int(address[0])


class AccessNotes(GenericAddresses):
    """Tells of the accesses of a strand."""

    def _note(
        self,
        kind: str,
        space: str,
        address: Value,
        count_bytes: int,
        sem: str,
        scope: str,
        value: Any = None,
        fetch_bytes: int = 0,
        before: Any = None,
    ) -> None:
        machine = self.machine
        if machine.timed:
            remote = space == "shared::cluster" and first_of(address) >> RANK_SHIFT != self.cta.rank
            target = self.acting or self
            target.access = AccessNote(
                kind, space, address, count_bytes, self.lanes, remote, fetch_bytes
            )
        if machine.probe.access and space not in ("param", "const", "local"):
            if space == "global":
                self._tell(
                    kind,
                    "global",
                    -1,
                    address,
                    count_bytes,
                    sem,
                    scope,
                    self.tids,
                    value,
                    before=before,
                )
            elif isinstance(address, np.ndarray) and space == "shared::cluster":
                ranks = (address >> address.dtype.type(RANK_SHIFT)).tolist()
                for rank in sorted(set(ranks)):
                    chosen = np.array([one == rank for one in ranks])
                    part, held = pick(value, chosen), pick(before, chosen)
                    where, who = address[chosen], self.tids[chosen]
                    self._tell_shared(
                        kind, rank, where, count_bytes, sem, scope, who, part, before=held
                    )
            else:
                rank = first_of(address) >> RANK_SHIFT
                self._tell_shared(
                    kind, rank, address, count_bytes, sem, scope, self.tids, value, before=before
                )

    def _tell_shared(
        self,
        kind: str,
        rank: int,
        address: Value,
        count_bytes: int,
        sem: str,
        scope: str,
        tids: NDArray[np.int64],
        value: Any,
        shares: Any = None,
        before: Any = None,
    ) -> None:
        ctas = self.cta.cluster.ctas
        if rank < len(ctas):
            owner, inside = ctas[rank].index, address & OFFSET_MASK
            self._tell(
                kind, "shared", owner, inside, count_bytes, sem, scope, tids, value, shares, before
            )

    def _tell(
        self, kind: str, space: str, owner: int, address: Value, count_bytes: int, sem: str, scope: str,
        tids: NDArray[np.int64], value: Any, shares: Any = None, before: Any = None,
    ) -> None:  # fmt: skip
        event = Access(
            (self.cta.index, tids),
            self.line,
            kind,
            space,
            owner,
            address,
            count_bytes,
            sem,
            scope,
            value,
            shares,
            before,
        )
        for listen in self.machine.probe.access:
            listen(event)
