"""Reads of shared memory that nobody had written: told at the end, where no race explains them.

Source: PTX ISA 8.7 "State Spaces: Shared": its contents at entry are undefined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from hopsim.hazards.findings import WHAT, Finding, Findings, Level
from hopsim.hazards.records import Ints, Record
from hopsim.hazards.rules import RULES
from hopsim.hazards.shadow import LARGEST_SHIFT, Region
from hopsim.hazards.world import World
from hopsim.isa.program.symbols import SHARED_RESERVED_BYTES

MAY_PAD: Final = "wgmma"
"""What may read rows that nobody wrote, and whose results nobody stores."""


class Unwritten:
    """Every access that found bytes of shared memory with nothing in them."""

    def __init__(self, world: World, findings: Findings) -> None:
        self.findings = findings
        # What each saw first, by number of the access.
        self._looks: dict[int, tuple[Record, tuple[int, int]]] = {}
        facts = world.facts
        # What an exchange finds is of no account where nobody looks at it: it is a store.
        self._stores = {line for line in facts.unread_looks if ".exch" in facts.mnemonic(line)}

    def look(self, region: Region, record: Record, where: Callable[[], Ints]) -> None:
        """A read or atomic finds granules that nobody has written."""
        # What the system reserves it has cleared: groups of cooperative groups meet there.
        if record.start < SHARED_RESERVED_BYTES or record.line in self._stores:
            return
        if record.kind == "r":
            record.unwritten = True
        if record.number in self._looks:
            return
        cells = _inside(region, record, where())
        if len(cells):
            self._looks[record.number] = (record, region.span(cells))

    def finish(self) -> None:
        """Enter the reads that no finding explains."""
        explained = {
            (line, access.what)
            for finding in self.findings.found.values()
            for access, lines in zip((finding.first, finding.second), finding.sites, strict=True)
            if access is not None
            for line in lines
        }
        for record, span in self._looks.values():
            if (record.line, WHAT[record.kind]) in explained:
                continue
            agent, _, mask = record.parts[0]
            may_pad = record.flight is not None and record.flight.kind == MAY_PAD
            level: Level = "note" if may_pad else "hazard"
            side = self.findings.side(record, (agent, mask), span, "")
            self.findings.add(
                Finding(
                    "HS701", level, RULES["HS701"].sentence, None, side,
                    "a write before the read", f"write the bytes before :{record.line}, or wait for the copy that does",
                    cause=(MAY_PAD,) if may_pad else None,
                )
            )  # fmt: skip


def _inside(region: Region, record: Record, cells: Ints) -> Ints:
    """Return the granules of a read that count: of the box of a tensor store those that lie inside the tensor."""
    if record.inside is None:
        return cells
    chunks = (record.inside() - region.base) >> LARGEST_SHIFT
    return cells[np.isin(cells >> (LARGEST_SHIFT - region.shift), chunks)]
