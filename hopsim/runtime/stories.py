"""Tell a deadlock: which warp waits on what, in which phase, with what missing."""

from __future__ import annotations

from typing import Any

from hopsim.hw.machine.barriers import ClusterBarrier, Mbarrier, NamedBarrier
from hopsim.hw.machine.launch import Machine
from hopsim.results import Deadlock, Wait

KINDS = {"named barrier": "bar", "cluster barrier": "barrier.cluster", "registers": "setmaxnreg", "wgmma group": "wgmma"}


def deadlock_of(machine: Machine, cycle: int | None) -> Deadlock:
    """Return the story of a machine in which nothing can happen."""
    waits: list[Wait] = []
    for strand in sorted(machine.waiting, key=lambda strand: strand.key):
        for warp in strand.warps:
            waits.append(_wait(machine, strand, warp))
    flights = tuple(
        f"{operation.kind} of {operation.issuer} (line {operation.line})"
        for operation in list(machine.flying.values())[:16]
    )
    return Deadlock(tuple(waits), flights, cycle)


def _wait(machine: Machine, strand: Any, warp: int) -> Wait:
    wait = strand.waiting
    subject = wait.subject
    segment = machine.program[strand.segment]
    instruction = segment.instructions[0].instruction
    lanes = 0
    for tid in strand.tids.tolist():
        if tid // 32 == warp:
            lanes |= 1 << tid % 32
    facts: dict[str, Any] = {}
    if isinstance(subject, Mbarrier):
        facts = {
            "address": subject.address, "phase": subject.phase, "pending_arrivals": subject.pending,
            "expected_arrivals": subject.expected, "tx_bytes": subject.tx,
            "parity": wait.detail & 1 if isinstance(wait.detail, int) else None,
        }  # fmt: skip
    elif isinstance(subject, NamedBarrier):
        needed = strand.cta.live if subject.count is None else subject.count
        facts = {
            "address": subject.number, "pending_arrivals": needed - subject.arrived, "expected_arrivals": needed,
        }  # fmt: skip
    elif isinstance(subject, ClusterBarrier):
        facts = {
            "phase": subject.phase, "pending_arrivals": subject.expected - subject.arrived,
            "expected_arrivals": subject.expected,
        }  # fmt: skip
    return Wait(
        cta=strand.cta.id, warp=warp, lanes=lanes, kind=KINDS.get(wait.kind, wait.kind), line=strand.line,
        text=instruction.mnemonic, **facts,
    )  # fmt: skip
