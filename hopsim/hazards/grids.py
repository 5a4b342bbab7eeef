"""griddepcontrol: what a grid may touch before the grids before it are complete.

Source: PTX ISA 8.7 "griddepcontrol"; contested rule `grid_dependency`: what the grids before it wrote is not known here.
"""

from __future__ import annotations

from typing import Final

from hopsim.events import SyncEvent
from hopsim.hazards.clocks import GRIDS
from hopsim.hazards.findings import Finding, Findings
from hopsim.hazards.records import Eye
from hopsim.hazards.rules import RULES
from hopsim.hazards.world import World

WAIT: Final = "griddepcontrol.wait"


class Grids:
    """Accesses to global memory in a kernel that waits for other grids."""

    def __init__(self, world: World, findings: Findings) -> None:
        self.world = world
        self.findings = findings
        facts = world.facts
        lines = (line for line in facts.kernel_lines if facts.mnemonic(line) == WAIT)
        self.line = next(lines, 0)

    @property
    def is_used(self) -> bool:
        """Whether the kernel waits for other grids at all."""
        return self.line > 0

    def wait(self, event: SyncEvent) -> None:
        """griddepcontrol.wait."""
        for agent, mask in self.world.parties(event.agent):
            for view in agent.own(mask):
                view.hb[GRIDS] = 1

    def check(self, eyes: list[Eye], line: int, what: str) -> None:
        """Look at an access to global memory."""
        for agent, mask, view in eyes:
            if view.hb.get(GRIDS):
                continue
            self.findings.add(
                Finding(
                    "HS605", self.world.options.grid_dependency, RULES["HS605"].sentence, None,
                    self.findings.thread_side(agent, mask, line, what, space="global"),
                    f"griddepcontrol.wait before :{line}; the wait stands at :{self.line}",
                    f"move griddepcontrol.wait in front of :{line}, unless no grid before writes these bytes",
                )
            )  # fmt: skip
            return
