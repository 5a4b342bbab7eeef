"""The issue of a run of instructions by one warp: in order, each when its operands are there and its pipe is free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from hopsim.config import HardwareConfig
from hopsim.hw.timing.beside import Beside
from hopsim.hw.timing.constant_bank import NO_LOADS, Loads
from hopsim.hw.timing.constant_bank import UNIT as CONSTANTS
from hopsim.hw.timing.load_runs import Deferred
from hopsim.hw.timing.machine_code import MachineCode
from hopsim.hw.timing.reorder import reordered
from hopsim.hw.timing.stalls import Stall
from hopsim.isa.forms.bound import BoundInstruction

NEVER: Final = float("inf")
NEVER_BEFORE: Final = float("-inf")
INTEGER: Final = ("s", "u")
ALU: Final = ("alu", "predicate")
MULTIPLIES: Final = ("imad", "imad_wide", "fp32")
MUFU: Final = "mufu"
ACROSS: Final = {**dict.fromkeys(ALU, 0), **dict.fromkeys(MULTIPLIES, 1), MUFU: 2}
"""Pipes whose results take a cycle more to another one. Source: hopsim's recording, H100 SXM, tests/silicon/micro.json,
arithmetic_*: max and add of f32 in turns take 10 cycles, mul.lo and xor 10, rcp and add 23, which alone take 4 and 17 each;
stall counts in machine code of ptxas 13.0 (4 from LOP3 to LOP3, 5 to and from IMAD)."""
VARIABLE: Final = ("mufu", "shuffle", "special", "convert")
"""Units whose results are waited for at a scoreboard."""


@dataclass(slots=True, eq=False)
class Run:
    """What a run takes; times in cycles from the issue of its first instruction.

    Args:
        clock: when the next instruction can issue.
        slots: cycles of the sub-partition's issue port and pipes.
        count: machine instructions.
        ready: when results are there, by register, and what waiting for them is called.
        reads: registers read before they are written in it, and when.
        writes: registers written.
        head_writes: destinations of a first instruction whose latency is known only at run time.
        head_use: when another instruction first reads one of them.
        lost: cycles that the tensor cores stand still meanwhile.
    """

    clock: float = 0.0
    slots: float = 0.0
    count: float = 0.0
    ready: dict[int, tuple[float, Stall]] = field(default_factory=dict[int, tuple[float, Stall]])
    reads: dict[int, float] = field(default_factory=dict[int, float])
    writes: set[int] = field(default_factory=set[int])
    head_writes: frozenset[int] = frozenset()
    head_use: float = NEVER
    lost: float = 0.0


@dataclass(frozen=True, slots=True)
class Behind:
    """What is computed from a load that is not waited for at once; times in cycles.

    Args:
        clock: from the issue of the load, when the next instruction can issue: what waits for it is issued between what
            others wait for, each when it has its operands.
        load: from the load to each result, by register.
        inputs: to each result from what else comes late.
    """

    clock: float
    load: dict[int, float]
    inputs: dict[int, float]


class InOrder:
    """Works out runs.

    Args:
        config: latencies and intervals.
        code: what ptxas makes of each instruction.
    """

    def __init__(self, config: HardwareConfig, code: MachineCode) -> None:
        issue = config.issue
        self._config = config
        self._code = code
        self._latency = issue.latency_cycles
        self._interval = issue.interval_cycles
        self._crowded = {**issue.interval_cycles, **issue.crowded_interval_cycles}
        self._rate = issue.issue_rate
        self._branch_test = float(issue.branch_test_cycles)
        self._gap = issue.crowded_gap_cycles
        self._half = issue.crowded_half_cycles
        self._initialising = config.mbarrier.init_interval_cycles

    def order(
        self, instructions: Sequence[BoundInstruction], has_head: bool
    ) -> list[BoundInstruction]:
        """Return instructions in the order in which ptxas lets them issue.

        Args:
            has_head: whether the first stays the first.
        """
        return reordered(
            instructions,
            has_head,
            self._result_latency,
            self._pipe_cycles,
            lambda one: self._code.issued(one) / self._rate,
            self._code.unit,
        )

    def run(
        self,
        instructions: Sequence[BoundInstruction],
        dynamic: bool,
        *,
        crowded: bool = False,
        prepared: bool = False,
        more: float = 0.0,
        constants: Loads = NO_LOADS,
    ) -> Run:
        """Return what some instructions take.

        Args:
            dynamic: the latency of the first is known only at run time.
            crowded: the tensor cores work meanwhile.
            prepared: only the last machine instruction of the first is here.
            more: machine instructions besides them, of the uniform datapath.
            constants: what is loaded from the constant bank first.
        """
        run = Run()
        intervals = self._crowded if crowded else self._interval
        pipes: dict[str, float] = {}
        pressure: dict[str, float] = {}
        beside = Beside(self._config.issue) if crowded else None
        ready, reads, written = run.ready, run.reads, run.writes
        issued_at: dict[int, float] = {}
        made_by: dict[int, int] = {}
        more += constants.count
        run.count += constants.count
        if constants.count:
            # Half of them are ULDC, and not waited for: so long does the slowest of them take in the mean.
            latency = self._latency[CONSTANTS] * (1.0 - 0.5**constants.count)
            ready |= dict.fromkeys(constants.registers, (latency, Stall.SHORT_SCOREBOARD))
        for position, bound in enumerate(instructions):
            unit = self._code.unit(bound)
            issued = 1.0 if prepared and not position else self._code.issued(bound)
            sequence = self._code.sequence(bound)
            pipe = None if sequence else ACROSS.get(unit)
            if bound.form.base[0] == "setp":
                # The way from a predicate to a branch was measured with it.
                pipe = None
            at = max(run.clock, pipes.get(unit, 0.0)) if issued else 0.0
            for register in bound.reads:
                if register in ready:
                    across = pipe is not None and made_by.get(register, pipe) != pipe
                    at = max(at, ready[register][0] + across)
                    if unit == "branch":
                        # The way from a predicate to a branch is longer than to arithmetic.
                        at = max(at, issued_at.get(register, NEVER_BEFORE) + self._branch_test)
                elif register in run.head_writes:
                    run.head_use = min(run.head_use, at)
                elif register not in written:
                    reads.setdefault(register, at)
            if not issued and bound.writes & constants.registers:
                continue
            if not issued and position:
                # No machine instruction: the result is there when the operands are, as who made them leaves it.
                begun = max(
                    (issued_at.get(register, NEVER_BEFORE) for register in bound.reads),
                    default=NEVER_BEFORE,
                )
                for register in bound.writes:
                    ready[register] = (at, Stall.WAIT)
                    issued_at[register] = begun
                    made_by.pop(register, None)
                written |= bound.writes
                continue
            is_wide = crowded and self._code.halves(bound)
            each = self._half if is_wide else intervals[unit]
            interval = each * issued
            busy = issued / self._rate
            if sequence == "mbarrier_init":
                busy = max(busy, self._initialising)
            if sequence is not None:
                # Its instructions go to several pipes.
                interval = max(busy, intervals[unit]) if unit == MUFU else busy
            pipes[unit] = at + interval
            pressure[unit] = pressure.get(unit, 0.0) + interval
            run.count += issued
            if beside is None:
                run.slots += busy
            else:
                is_fma = bound.form.base[0] == "fma"
                around = max(issued - 1.0, 0.0) if sequence is not None and unit == MUFU else 0.0
                busy = beside.takes(unit, issued - around, is_fma=is_fma, is_wide=is_wide)
                busy += beside.passes(around)
            run.clock = at + busy
            written |= bound.writes
            if position == 0 and dynamic:
                run.head_writes = bound.writes
                continue
            stall = Stall.SHORT_SCOREBOARD if unit in VARIABLE else Stall.WAIT
            for register in bound.writes:
                ready[register] = (at + self._result_latency(bound), stall)
                issued_at[register] = at
                made_by.pop(register, None)
                if pipe is not None:
                    made_by[register] = pipe
        run.clock += more * (self._gap if crowded else 1.0 / self._rate)
        run.slots += more / self._rate
        if beside is not None:
            run.slots = beside.slots + more * self._gap
            run.lost = beside.lost
        run.slots = max([run.slots, *pressure.values()])
        return run

    def behind(
        self, instructions: Sequence[BoundInstruction], loaded: frozenset[int], deferred: Deferred
    ) -> Behind:
        """Return how what follows a load in its segment comes behind it.

        Args:
            instructions: the load, and what follows.
            loaded: its results.
            deferred: what it is not waited for by.
        """
        late = set(loaded | deferred.inputs)
        waiting: list[BoundInstruction] = []
        others = [instructions[0]]
        for bound in instructions[1:]:
            if bound.reads & late:
                late |= bound.writes
                waiting.append(bound)
            else:
                late -= bound.writes
                others.append(bound)
        prompt = self.run(others, True)
        issued = self.run(waiting, False).slots if waiting else 0.0
        return Behind(
            prompt.clock + issued,
            self._ways(waiting, loaded),
            self._ways(waiting, deferred.inputs),
        )

    def _ways(
        self, instructions: Sequence[BoundInstruction], sources: frozenset[int]
    ) -> dict[int, float]:
        """Return how long after some registers each result that depends on them is there."""
        ready = dict.fromkeys(sources, 0.0)
        made_by: dict[int, int] = {}
        for bound in instructions:
            known = [register for register in bound.reads if register in ready]
            if not known:
                for register in bound.writes:
                    ready.pop(register, None)
                continue
            issued = self._code.issued(bound)
            pipe = None if self._code.sequence(bound) else ACROSS.get(self._code.unit(bound))
            at = max(
                ready[register] + (pipe is not None and made_by.get(register, pipe) != pipe)
                for register in known
            )
            for register in bound.writes:
                ready[register] = at + (self._result_latency(bound) if issued else 0.0)
                made_by.pop(register, None)
                if issued and pipe is not None:
                    made_by[register] = pipe
        return ready

    def _pipe_cycles(self, bound: BoundInstruction) -> float:
        issued = self._code.issued(bound)
        if self._code.sequence(bound) is not None:
            # Its instructions go to several pipes.
            busy = issued / self._rate
            return max(busy, self._interval[MUFU]) if bound.form.unit == MUFU else busy
        return self._interval[self._code.unit(bound)] * issued

    def _result_latency(self, bound: BoundInstruction) -> float:
        if bound.form.name == "elect.sync":
            return float(self._config.barrier.elect_cycles)
        sequence = self._code.sequence(bound)
        if sequence is not None:
            return float(self._config.issue.sequence_latency_cycles[sequence])
        unit = bound.form.unit
        if unit == "convert" and _converts_integers(bound):
            unit = "mufu"
        return float(self._latency[unit])


def _converts_integers(bound: BoundInstruction) -> bool:
    """Whether a conversion is between an integer and a floating-point type."""
    slots = dict(bound.slots)
    return (slots.get("dt", " ")[:1] in INTEGER) != (slots.get("at", " ")[:1] in INTEGER)


__all__ = ["NEVER", "Behind", "InOrder", "Run"]
