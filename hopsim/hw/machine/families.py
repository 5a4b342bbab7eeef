"""The strand with all instruction families: what `ctx` is in the declarations of `hopsim.isa.ops`.

Each family is a layer on the one below: control flow and registers (`strand`), memory (`access`), lanes that meet
(`convergence`), barriers and fences (`sync`), wgmma (`tensor`), lanes of a warp (`warp`), thread-group copies (`copies`),
TMA (`bulk`).
"""

from __future__ import annotations

from hopsim.hw.machine.bulk import BulkOps


class Strand(BulkOps):
    """A strand that can execute every modelled instruction."""
