"""What a checked run finds: hazards, with the two accesses of each, and deadlocks, with who waits for what.

Plain frozen records in words and numbers; a `LaunchResult` holds them.

    >>> str(SourceLocation("gemm.cu", 12, 5))
    'gemm.cu:12:5'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Level = Literal["hazard", "note"]
Space = Literal["global", "shared::cta", "shared::cluster", "local", "param", "const", "register"]
Proxy = Literal["generic", "async", "tensormap"]
Dim = tuple[int, int, int]

FAULT: Final = "fault"
"""Of `Access.what`: the instruction that the run ended at."""


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A line of the program that the PTX was compiled from, as `.loc` tells it."""

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")


@dataclass(frozen=True, slots=True)
class Access:
    """One side of a hazard: who touched which bytes, and where in the program.

    Args:
        what: `read`, `write`, `atomic`, `fault`, or a register or object access in words.
        cta: its coordinates in the grid.
        warp: index in the CTA.
        lanes: bit mask of lanes; 0 when an asynchronous operation acts for the warp.
        line: 1-based PTX line; 0 when unknown.
        text: the instruction.
        start: first byte, counted from the start of the space (shared) or the array (global); None
            for registers.
        stop: one past the last byte.
        source: the source line, where the PTX tells it.
        actor: the asynchronous operation that made the access, for example `TMA load`; empty for a
            thread's own.
        name: the array or registers touched, or the tile that a copy moves, where known.
        symbol: the shared variable that the first byte belongs to, `tile+0x40`, where known.
    """

    what: str
    cta: Dim
    warp: int
    lanes: int
    line: int
    text: str
    proxy: Proxy
    space: Space
    start: int | None = None
    stop: int | None = None
    source: SourceLocation | None = None
    actor: str = ""
    name: str = ""
    symbol: str = ""


@dataclass(frozen=True, slots=True)
class Hazard:
    """A rule of PTX that the program broke.

    Args:
        rule: stable id `HSnnn`; ids never change meaning.
        title: the rule's short name, for example `tma-read-unwaited`.
        level: `hazard` decides the verdict, `note` does not.
        message: what happened, one sentence.
        first: the earlier access, where there is one.
        second: the later access.
        missing: the edge that would have ordered the two.
        hint: what to change.
        chain: the edges that do exist between the two, oldest first, in words.
        causes: further rules that explain this one, for example a fence in the wrong space.
        count: how often it was seen.
        silicon: what real hardware probably does.
        ptx: the rule of PTX, by the title of its page.
    """

    rule: str
    title: str
    level: Level
    message: str
    first: Access | None = None
    second: Access | None = None
    missing: str = ""
    hint: str = ""
    chain: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    count: int = 1
    silicon: str = ""
    ptx: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether the run ended at it: `missing` is then the rule, as there is no edge that could be added."""
        return self.second is not None and self.second.what == FAULT


@dataclass(frozen=True, slots=True)
class Wait:
    """One warp that waits for something that never comes.

    Args:
        kind: `mbarrier`, `bar`, `barrier.cluster`, `setmaxnreg`, `wgmma`, or what else it waits on.
        address: of the mbarrier, or the number of the named barrier.
        symbol: the shared variable that the mbarrier lies in, where known.
        phase: the phase that the mbarrier is in, counted from 0.
        parity: the parity that the warp waits for.
        pending_arrivals: arrivals still missing in this phase.
        expected_arrivals: arrivals that a phase needs.
        tx_bytes: transaction bytes still missing in this phase.
        line: 1-based PTX line of the wait.
        text: the instruction.
    """

    cta: Dim
    warp: int
    lanes: int
    kind: str
    line: int
    text: str
    address: int | None = None
    phase: int | None = None
    parity: int | None = None
    pending_arrivals: int | None = None
    expected_arrivals: int | None = None
    tx_bytes: int | None = None
    source: SourceLocation | None = None
    symbol: str = ""

    def __str__(self) -> str:
        cta = ",".join(map(str, self.cta))
        at = f" {self.address:#x}" if self.kind == "mbarrier" and self.address is not None else ""
        at = at or (f" {self.address}" if self.address is not None else "")
        facts: list[str] = []
        if self.phase is not None:
            facts.append(f"phase {self.phase}")
        if self.parity is not None:
            facts.append(f"waited parity {self.parity}")
        if self.pending_arrivals is not None:
            of = f" of {self.expected_arrivals}" if self.expected_arrivals is not None else ""
            facts.append(f"{self.pending_arrivals}{of} arrivals missing")
        if self.tx_bytes is not None:
            facts.append(f"{self.tx_bytes} bytes missing")
        state = f": {', '.join(facts)}" if facts else ""
        what = f"waits on {self.kind}{at} at line {self.line}{state}"
        return f"cta ({cta}) warp {self.warp} {what}  [{self.text}]"


@dataclass(frozen=True, slots=True)
class Deadlock:
    """Why nothing could progress.

    Args:
        waiting: every warp that has not exited, in order of CTA and warp.
        in_flight: asynchronous operations that had not landed, in words.
        cycle: when the last thing happened; None without timing.
        barriers: for each thing waited for, its state and who waits for it, in words.
        history: what happened on each mbarrier and named barrier before, in words.
        chains: who waits for whom: `warp 0 -> mbarrier 0x408 -> warp 1 (exited)`.
        not_started: CTAs that found no place on the chip.
    """

    waiting: tuple[Wait, ...]
    in_flight: tuple[str, ...] = ()
    cycle: int | None = None
    barriers: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    chains: tuple[str, ...] = ()
    not_started: int = 0

    def __str__(self) -> str:
        one = len(self.waiting) == 1
        who = "1 warp waits" if one else f"{len(self.waiting)} warps wait"
        lines = [f"deadlock: {who} and nothing is on its way to {'it' if one else 'them'}"]
        lines += [f"  {wait}" for wait in self.waiting]
        lines += [f"  in flight: {operation}" for operation in self.in_flight]
        lines += [f"  before: {line}" for line in self.history]
        lines += [f"  chain: {line}" for line in self.chains]
        return "\n".join(lines)
