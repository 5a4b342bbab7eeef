"""Registers that wgmma reads and writes while threads go on.

Source: PTX ISA 8.7 "wgmma.fence", "wgmma.mma_async", "wgmma.wait_group".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from hopsim.events import FlightEvent, RegisterEvent, SyncEvent
from hopsim.hazards.clocks import Agent, bits
from hopsim.hazards.findings import Finding, Findings, Level
from hopsim.hazards.records import Flight
from hopsim.hazards.rules import RULES
from hopsim.hazards.world import World
from hopsim.isa.program.register_masks import mask_of

# CUTLASS's warpgroup_fence_operand.
KEPT_IN_PLACE: Final = (
    "(in CUDA, before it for each register, so that nvcc moves no access behind it:"
    '  asm volatile("" : "+f"(r) :: "memory");)'
)


cached_mask = lru_cache(maxsize=4096)(mask_of)
"""The same operands come again and again."""


@dataclass(slots=True)
class InFlight:
    """One wgmma whose registers a warp may not touch."""

    flight: Flight
    accumulator: int
    operand: int
    shape: Any


@dataclass(slots=True)
class WarpRegisters:
    """What a warp has done with wgmma's registers since its last wgmma.fence."""

    fenced: bool = False
    touched: dict[int, int] = field(default_factory=dict[int, int])
    flying: list[InFlight] = field(default_factory=list[InFlight])
    # Accumulators since the last fence, with the shape that wrote them: only the same shape may follow without one.
    shapes: dict[int, tuple[Any, int]] = field(default_factory=dict[int, "tuple[Any, int]"])


class Registers:
    """Handles register uses, wgmma.fence, and wgmma itself."""

    def __init__(self, world: World, findings: Findings) -> None:
        self.world = world
        self.findings = findings

    def _of(self, agent: Agent) -> WarpRegisters:
        if agent.registers is None:
            agent.registers = WarpRegisters()
        return agent.registers

    def used(self, event: RegisterEvent) -> None:
        """Instructions of threads read or wrote registers that some wgmma of the kernel uses."""
        for agent, mask in self.world.parties(event.agent):
            state = self._of(agent)
            for line, read, written in event.uses:
                touched = read | written
                for one in state.flying:
                    if touched & one.accumulator:
                        self._early(
                            one,
                            agent,
                            mask,
                            line,
                            touched & one.accumulator,
                            bool(written & one.accumulator),
                        )
                    elif written & one.operand:
                        self._report(
                            "HS013",
                            "hazard",
                            one,
                            agent,
                            mask,
                            line,
                            written & one.operand,
                            "write",
                        )
                    elif read & one.operand:
                        self._report(
                            "HS013", "note", one, agent, mask, line, read & one.operand, "read"
                        )
                if touched & ~state.touched.get(line, 0):
                    state.touched[line] = state.touched.get(line, 0) | touched

    def _early(
        self, one: InFlight, agent: Agent, mask: int, line: int, registers: int, writes: bool
    ) -> None:
        flight = one.flight
        if flight.group is None:
            rule = "HS010"
        elif flight.left_at is not None and not flight.left_usefully:
            rule = "HS009"
        else:
            rule = "HS011"
        self._report(
            rule, "hazard", one, agent, mask, line, registers, "write" if writes else "read"
        )

    def fence(self, event: SyncEvent) -> None:
        """wgmma.fence."""
        for agent, _ in self.world.parties(event.agent):
            state = self._of(agent)
            state.fenced = True
            state.touched = {}
            state.shapes = {}

    def issued(self, event: FlightEvent, flight: Flight) -> None:
        """A wgmma is issued."""
        d, a, shape = event.detail
        accumulator = cached_mask(d)
        operand = 0 if a is None else cached_mask(a)
        for agent, mask in self.world.parties(event.agent):
            state = self._of(agent)
            self._check_fence(
                state, agent, mask, event.line, accumulator | operand, accumulator, shape
            )
            state.flying.append(InFlight(flight, accumulator, operand, shape))
            state.shapes[event.line] = (shape, accumulator)

    def _check_fence(
        self,
        state: WarpRegisters,
        agent: Agent,
        mask: int,
        line: int,
        registers: int,
        accumulator: int,
        shape: Any,
    ) -> None:
        if not state.fenced:
            self._unfenced(None, agent, mask, line, registers, "before the first wgmma.mma_async")
            state.fenced = True
            return
        for other, touched in state.touched.items():
            if touched & registers:
                self._unfenced(
                    other, agent, mask, line, touched & registers, "after a register access"
                )
                state.touched = {}
                return
        for other, (earlier, used) in state.shapes.items():
            if used & accumulator and earlier != shape:
                self._unfenced(
                    other, agent, mask, line, used & accumulator, "between mmas of different shapes"
                )
                state.shapes = {}
                return

    def _unfenced(
        self, first: int | None, agent: Agent, mask: int, line: int, registers: int, when: str
    ) -> None:
        name = self._names(registers)
        facts = {"space": "register", "name": name}
        self.findings.add(
            Finding(
                "HS012", "hazard", RULES["HS012"].sentence,
                None if first is None else self.findings.thread_side(agent, mask, first, "register access", **facts),
                self.findings.thread_side(agent, mask, line, "register access", actor="wgmma", proxy="async", **facts),
                f"wgmma.fence {when}", f"before :{line}, in all four warps:  wgmma.fence.sync.aligned;  {KEPT_IN_PLACE}",
            )
        )  # fmt: skip

    def _report(
        self,
        rule: str,
        level: Level,
        one: InFlight,
        agent: Agent,
        mask: int,
        line: int,
        registers: int,
        what: str,
    ) -> None:
        facts = {"space": "register", "name": self._names(registers)}
        flight = one.flight
        flight.told = True
        missing, hint = {
            "HS009": (
                "a wait that covers its group",
                f"lower N of wgmma.wait_group before :{line}",
            ),
            "HS010": (
                "a commit of the wgmma",
                f"after :{flight.line}:  wgmma.commit_group.sync.aligned;",
            ),
        }.get(
            rule,
            ("a wait that covers the wgmma", f"before :{line}:  wgmma.wait_group.sync.aligned 0;"),
        )
        self.findings.add(
            Finding(
                rule, level, RULES[rule].sentence,
                self.findings.thread_side(
                    flight.agent, flight.parts[0][2], flight.line,
                    "register write" if registers & one.accumulator else "register read", actor="wgmma", proxy="async",
                    **facts,
                ),
                self.findings.thread_side(agent, mask, line, f"register {what}", **facts), missing, hint,
                cause=(flight.burst, what if rule == "HS013" else ""),
            )
        )  # fmt: skip

    def waited(self, agent: Agent, covered: int) -> None:
        """A wgmma.wait_group covers all groups with numbers below `covered`."""
        state = self._of(agent)
        state.flying = [
            one for one in state.flying if one.flight.group is None or one.flight.group >= covered
        ]

    def _names(self, registers: int) -> str:
        names: Sequence[str] = self.world.facts.register_names
        shown = [
            names[number] if number < len(names) else f"r{number}"
            for number in list(bits(registers))[:4]
        ]
        more = registers.bit_count() - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
