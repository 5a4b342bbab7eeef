"""Wire the hazard checker to a launch: the facts it needs, and the events of registers that wgmma uses.

The checker knows neither machine nor kernel.  Register events come from the program itself: the few segments that touch
a register of some wgmma are wrapped, so that all others cost nothing; and so are loops that wait for a word (`polling`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hopsim.events import Probe, RegisterEvent
from hopsim.findings import SourceLocation
from hopsim.hazards.facts import LaunchFacts
from hopsim.hw.machine.memory import GlobalMemory
from hopsim.isa.forms.bound import BoundInstruction, RegisterArg, TupleArg
from hopsim.isa.program.codegen import Segment
from hopsim.isa.program.kernel import Kernel
from hopsim.isa.program.symbols import SHARED_RESERVED_BYTES
from hopsim.isa.ptx.ast import Directive
from hopsim.launch.geometry import Geometry
from hopsim.runtime.places import Places, line_at, line_of, texts_of
from hopsim.runtime.polling import (
    choice_lines,
    guess_lines,
    lines_after,
    parity_lines,
    poll_lines,
    polled_program,
    unread_answers,
    unread_looks,
)

FILE = re.compile(r'\s*(\d+)\s+"([^"]*)"')
# Instructions whose effects on order no rule follows yet.
UNCHECKED = (("fence.proxy.alias", "fence.proxy.alias is not checked"),)

# One instruction's use of watched registers: line, read, written, guard register and whether it is negated.
Use = tuple[int, int, int, int, bool]


def launch_facts(
    kernel: Kernel,
    program: Sequence[Segment],
    places: Places,
    shapes: Geometry,
    memory: GlobalMemory,
) -> LaunchFacts:
    """Return what the checker is told of a launch."""
    files: dict[int, str] = {}
    for item in kernel.module.tree.items:
        if isinstance(item, Directive) and item.name == "file":
            found = FILE.match(item.text)
            if found is not None:
                files[int(found.group(1))] = found.group(2)
    sources: dict[int, SourceLocation] = {}
    unchecked: list[tuple[int, str, str]] = []
    mnemonics: dict[int, str] = {}
    text = kernel.module.lines
    for instruction in kernel.body.instructions:
        span = instruction.span
        line = line_at(span, places)
        mnemonics[line] = instruction.mnemonic
        loc = instruction.loc
        if loc is not None and loc.file in files:
            sources[line] = SourceLocation(files[loc.file], loc.line, loc.column)
        for start, why in UNCHECKED:
            if instruction.mnemonic.startswith(start):
                unchecked.append((span.line, text[span.line - 1].strip(), why))
    return LaunchFacts(
        path=kernel.module.path,
        lines=text,
        mnemonics=mnemonics,
        texts=texts_of(kernel, places),
        sources=sources,
        version=kernel.module.tree.version,
        grid=shapes.grid,
        block=shapes.block,
        cluster=shapes.cluster,
        regions=[(region.base, region.size, region.name) for region in memory.regions],
        shared_bytes=SHARED_RESERVED_BYTES + shapes.shared_bytes,
        register_names=[register.name for register in kernel.registers],
        unchecked=unchecked,
        moves_registers=kernel.entry_registers is not None,
        serialised_lines=[line_of(bound, places) for bound in kernel.serialised_wgmma],
        poll_lines=poll_lines(program),
        choice_lines=choice_lines(program),
        parity_lines=parity_lines(kernel, places),
        guess_lines=guess_lines(kernel, places),
        unread_answers=unread_answers(program),
        unread_looks=unread_looks(program),
        lines_after=lambda line: lines_after(kernel, places, line),
        shared_name=kernel.placement.shared_name,
    )


def watched_program(program: Sequence[Segment], places: Places, probe: Probe) -> Sequence[Segment]:
    """Return the program with its uses of wgmma's registers told to `probe.register`, and its looks to `probe.sync`."""
    program = polled_program(program, probe)
    watched = 0
    for segment in program:
        for bound in segment.instructions:
            watched |= _wgmma_registers(bound)
    if not watched:
        return program
    return [_watch(segment, watched, places, probe) for segment in program]


def _wgmma_registers(bound: BoundInstruction) -> int:
    """Return the registers that a wgmma uses while it is in flight, as a bit mask."""
    mask = 0
    if bound.instruction.opcode[:2] == ("wgmma", "mma_async"):
        for arg in bound.args:
            if isinstance(arg, TupleArg) and arg.by_index:
                for item in arg.items:
                    if isinstance(item, RegisterArg):
                        mask |= 1 << item.register.index
    return mask


def _use(bound: BoundInstruction, watched: int, places: Places) -> Use | None:
    if _wgmma_registers(bound):
        return None
    read = written = 0
    for register in bound.reads:
        read |= 1 << register & watched
    for register in bound.writes:
        written |= 1 << register & watched
    if not read and not written:
        return None
    guard = bound.instruction.guard
    return (
        line_of(bound, places),
        read,
        written,
        -1 if guard is None else guard[0].index,
        guard is not None and guard[1],
    )


def _watch(segment: Segment, watched: int, places: Places, probe: Probe) -> Segment:
    uses = [_use(bound, watched, places) for bound in segment.instructions]
    head, body = segment.head, segment.body
    first = uses[0] if head is not None else None
    rest = tuple(use for use in (uses[1:] if head is not None else uses) if use is not None)
    if first is not None and head is not None:
        head = _watched_head(head, first, probe)
    if rest:
        body = _watched_body(body, rest, probe)
    if head is segment.head and body is segment.body:
        return segment
    return replace(segment, head=head, body=body)


def _watched_head(run: Callable[..., int], use: Use, probe: Probe) -> Callable[..., int]:
    def head(strand: Any, registers: list[Any]) -> int:
        # A strand that waits, or parts, comes again.
        agent = strand.agent
        told = _executed((use,), registers)
        outcome = run(strand, registers)
        if outcome == 0 and told:
            _tell(probe, agent, told)
        return outcome

    return head


def _watched_body(
    run: Callable[..., int], uses: tuple[Use, ...], probe: Probe
) -> Callable[..., int]:
    always = tuple(use[:3] for use in uses)
    guarded = any(use[3] >= 0 for use in uses)

    def body(strand: Any, registers: list[Any]) -> int:
        agent = strand.agent
        following = run(strand, registers)
        told = _executed(uses, registers) if guarded else always
        if told:
            _tell(probe, agent, told)
        return following

    return body


def _executed(uses: tuple[Use, ...], registers: list[Any]) -> tuple[tuple[int, int, int], ...]:
    """Return the uses whose guard holds in some lane."""
    found: list[tuple[int, int, int]] = []
    for line, read, written, guard, negated in uses:
        if guard >= 0:
            value = registers[guard]
            holds = (
                bool((~value).any() if negated else value.any())
                if hasattr(value, "any")
                else bool(value) != negated
            )
            if not holds:
                continue
        found.append((line, read, written))
    return tuple(found)


def _tell(probe: Probe, agent: Any, uses: tuple[tuple[int, int, int], ...]) -> None:
    event = RegisterEvent(agent, uses)
    for listen in probe.register:
        listen(event)
