"""Reads of shared memory that nobody had written: told at the end, where no race explains them.

Source: PTX ISA 8.7 "State Spaces: Shared": its contents at entry are undefined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hopsim.hazards.findings import WHAT, Finding, Findings, Level
from hopsim.hazards.records import Ints, Record
from hopsim.hazards.rules import RULES
from hopsim.hazards.shadow import Region
from hopsim.hazards.world import World
from hopsim.isa.program.symbols import SHARED_RESERVED_BYTES

# Operations that are told: a store by TMA may well carry bytes that nobody will look at.
TOLD: Final = frozenset({"wgmma", "red.async"})


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
        if record.flight is None or record.flight.kind in TOLD:
            self._looks[record.number] = (record, region.span(where()))

    def finish(self) -> None:
        """Enter the reads that no finding explains."""
        explained = {
            (access.line, access.what)
            for finding in self.findings.found.values()
            for access in (finding.first, finding.second)
            if access is not None
        }
        for record, span in self._looks.values():
            if (record.line, WHAT[record.kind]) in explained:
                continue
            agent, _, mask = record.parts[0]
            # A wgmma may compute rows that nobody stores.
            level: Level = "hazard" if record.flight is None else "note"
            side = self.findings.side(record, (agent, mask), span, "")
            self.findings.add(
                Finding(
                    "HS701", level, RULES["HS701"].sentence, None, side,
                    "a write before the read", f"write the bytes before :{record.line}, or wait for the copy that does",
                    cause=None if record.flight is None else (record.flight.kind,),
                )
            )  # fmt: skip
