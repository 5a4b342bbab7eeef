"""Loops that wait for a word, words that a wait or a swap is given, answers that nobody heeds: found in the program.

A loop that waits is a strong load whose value decides whether the very same load comes next, with nothing else that others
could see in between.  Its segment is wrapped: after each look the checker hears what it saw, in which threads that ended
the loop, and can ask whether another value would have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from hopsim.events import Poll, Probe, SyncEvent
from hopsim.isa.forms.bound import BoundInstruction, RegisterArg, SymbolArg
from hopsim.isa.program.codegen import Segment
from hopsim.isa.program.flow import EXIT, SYNCHRONISING, is_branch
from hopsim.isa.program.kernel import Kernel
from hopsim.isa.ptx.flat import Register
from hopsim.runtime.places import Places, line_of

# What a loop may do between two looks besides computing.
IDLE: Final = ("nanosleep",)
# What shows others nothing: between two looks it is part of waiting.
QUIET: Final = (
    "ld",
    "nanosleep",
    "fence",
    "membar",
    "shfl",
    "vote",
    "match",
    "redux",
    "activemask",
)
STRONG: Final = (*SYNCHRONISING, "volatile", "mmio")
WAITS: Final = ("mbarrier.test_wait", "mbarrier.try_wait")
PARITY_WAITS: Final = ("mbarrier.test_wait.parity", "mbarrier.try_wait.parity")


def poll_lines(program: Sequence[Segment]) -> frozenset[int]:
    """Return the PTX lines of loads that a loop repeats until their value ends it."""
    return frozenset(segment.line for segment in program if loop_side(program, segment) is not None)


def choice_lines(program: Sequence[Segment]) -> frozenset[int]:
    """Return the PTX lines of strong loads whose value decides the branch that follows, and that no loop just repeats."""
    return frozenset(
        segment.line
        for segment in program
        if loop_side(program, segment) is None and _waiting_sides(program, segment) is not None
    )


def _waiting_sides(program: Sequence[Segment], segment: Segment) -> list[int] | None:
    """Return the successors of a look that come to look again and do nothing meanwhile; None: it decides nothing."""
    if not _decides(segment):
        return None
    sides = [one for one in segment.successors if _looks_again(program, one, segment.number)]
    return sides if len(sides) < 2 else None


def _looks_again(program: Sequence[Segment], start: int, wanted: int) -> bool:
    """Whether some path leads to a segment through others that only look and compute."""
    seen: set[int] = set()
    todo = [start]
    while todo:
        number = todo.pop()
        if number == wanted:
            return True
        if number == EXIT or number in seen:
            continue
        seen.add(number)
        here = program[number]
        if here.head is None or here.instructions[0].instruction.opcode[0] in QUIET:
            todo += here.successors
    return False


def _decides(segment: Segment) -> bool:
    """Whether a segment is a strong load, what computes with it, and a branch."""
    first = segment.instructions[0]
    if segment.head is None or not _is_strong_load(first) or len(segment.successors) != 2:
        return False
    if len(first.destinations) != 1 or first.destinations[0].register is None:
        return False
    return first.instruction.guard is None and all(map(_is_pure, segment.instructions[1:]))


def loop_side(program: Sequence[Segment], segment: Segment) -> int | None:
    """Return the successor by which a segment that waits for a word comes back to itself, or None."""
    if not _decides(segment):
        return None
    back = [one for one in segment.successors if _comes_back(program, one, segment.number)]
    return back[0] if len(back) == 1 else None


def _is_strong_load(bound: BoundInstruction) -> bool:
    opcode = bound.instruction.opcode
    return opcode[0] == "ld" and any(word in STRONG for word in opcode)


def _is_atomic(bound: BoundInstruction) -> bool:
    return bound.instruction.opcode[0] in ("atom", "red")


def _is_pure(bound: BoundInstruction) -> bool:
    """Whether only registers decide what an instruction does, so that it can be asked again later."""
    special = any(isinstance(a, SymbolArg) and a.symbol.kind == "special" for a in bound.args)
    return is_branch(bound) or (bound.form.purity == "pure" and not special)


def _comes_back(program: Sequence[Segment], start: int, wanted: int) -> bool:
    """Whether a path with no choice, and nothing that others could see, leads back."""
    for _ in program:
        if start == wanted:
            return True
        if start == EXIT or len(program[start].successors) != 1:
            return False
        here = program[start]
        if here.head is not None and here.instructions[0].instruction.opcode[0] not in IDLE:
            return False
        start = here.successors[0]
    return False


def parity_lines(kernel: Kernel, places: Places) -> frozenset[int]:
    """Return the PTX lines of loads from shared memory whose value becomes the parity that a wait is for."""
    waits = [one for one in kernel.instructions if one.form.syntax.startswith(PARITY_WAITS)]
    return frozenset(
        line_of(bound, places)
        for bound in _feeding(kernel, waits, "p")
        if bound.instruction.opcode[:2] in (("ld", "shared"), ("ld", "shared::cta"))
    )


def guess_lines(kernel: Kernel, places: Places) -> frozenset[int]:
    """Return the PTX lines of plain loads whose value becomes what a compare-and-swap compares."""
    swaps = [
        one
        for one in kernel.instructions
        if one.instruction.opcode[0] == "atom" and "cas" in one.instruction.opcode
    ]
    return frozenset(
        line_of(bound, places)
        for bound in _feeding(kernel, swaps, "b")
        if bound.instruction.opcode[0] == "ld" and not _is_strong_load(bound)
    )


def _feeding(
    kernel: Kernel, users: Sequence[BoundInstruction], operand: str
) -> list[BoundInstruction]:
    """Return the instructions whose value becomes an operand of some others, be it through what only computes."""
    wanted = {
        arg.register.index
        for bound in users
        for name, arg in zip(bound.arg_names, bound.args, strict=True)
        if name == operand and isinstance(arg, RegisterArg)
    }
    grown = bool(wanted)
    while grown:
        grown = False
        for bound in kernel.instructions:
            if bound.writes & wanted and bound.form.purity == "pure" and not bound.reads <= wanted:
                wanted |= bound.reads
                grown = True
    return [bound for bound in kernel.instructions if bound.writes & wanted]


def unread_answers(program: Sequence[Segment]) -> frozenset[int]:
    """Return the PTX lines of waits on mbarriers whose answer no instruction reads before another takes its place."""
    return frozenset(
        segment.line
        for segment in program
        if segment.instructions[0].form.syntax.startswith(WAITS)
        and not _is_read(program, segment, segment.instructions[0].destinations[0].register)
    )


def unread_looks(program: Sequence[Segment]) -> frozenset[int]:
    """Return the PTX lines of atomics and strong loads whose value no instruction reads before another takes its place."""
    return frozenset(
        segment.line
        for segment in program
        if (_is_strong_load(segment.instructions[0]) or _is_atomic(segment.instructions[0]))
        and not any(
            _is_read(program, segment, destination.register)
            for destination in segment.instructions[0].destinations
        )
    )


def _is_read(program: Sequence[Segment], segment: Segment, register: Register | None) -> bool:
    """Whether what the head of a segment leaves in a register is read."""
    if register is None:
        return False
    for bound in segment.instructions[1:]:
        if register.index in bound.reads:
            return True
        if register.index in bound.writes and bound.instruction.guard is None:
            return False
    return any(
        one != EXIT and program[one].live >> register.index & 1 for one in segment.successors
    )


def lines_after(kernel: Kernel, places: Places, line: int) -> frozenset[int]:
    """Return the PTX lines that may execute after the instruction of a line."""
    plans, body = kernel.plans, kernel.instructions
    found: set[int] = set()
    todo: list[int] = []
    for plan in plans:
        lines = [line_of(bound, places) for bound in body[plan.start : plan.stop]]
        if line in lines:
            found |= set(lines[lines.index(line) + 1 :])
            todo += plan.successors
    seen: set[int] = set()
    while todo:
        number = todo.pop()
        if number != EXIT and number not in seen:
            seen.add(number)
            found |= {
                line_of(bound, places) for bound in body[plans[number].start : plans[number].stop]
            }
            todo += plans[number].successors
    return frozenset(found)


# --- telling ----------------------------------------------------------------------------------------


def polled_program(program: Sequence[Segment], probe: Probe) -> Sequence[Segment]:
    """Return the program with each look of a loop that waits, and each that decides a branch, told to `probe.sync`."""
    return [_polled(program, segment, probe) for segment in program]


def _polled(program: Sequence[Segment], segment: Segment, probe: Probe) -> Segment:
    side = loop_side(program, segment)
    if side is not None:
        return replace(segment, body=_told("poll", segment, side, probe))
    waiting = _waiting_sides(program, segment)
    if waiting is None:
        return segment
    what, side = ("round", waiting[0]) if waiting else ("choice", segment.successors[0])
    return replace(segment, body=_told(what, segment, side, probe))


class _Asked:
    """A strand that is asked where a segment would lead, and does not part."""

    def __init__(self, strand: Any) -> None:
        self._strand = strand
        self.loops: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._strand, name)

    def diverge(self, predicate: Any, when_true: int, when_false: int, join: int) -> int:
        """Remember which lanes would go where."""
        self.loops = (predicate, when_true)
        return when_true


def _told(what: str, segment: Segment, side: int, probe: Probe) -> Callable[..., int]:
    body, line = segment.body, segment.line
    register = segment.instructions[0].destinations[0].register
    assert register is not None
    watched = register.index

    def ended(asked: _Asked, registers: list[Any]) -> Any:
        asked.loops = None
        following = body(asked, registers)
        if asked.loops is None:
            return following != side
        predicate, when_true = asked.loops
        return ~predicate if when_true == side else predicate

    def run(strand: Any, registers: list[Any]) -> int:
        asked, seen = _Asked(strand), list(registers)

        def would_end(value: int) -> Any:
            other = list(seen)
            other[watched] = value
            return ended(asked, other)

        poll = Poll(seen[watched], ended(asked, list(seen)), would_end)
        event = SyncEvent(strand.agent, line, what, poll)
        for listen in probe.sync:
            listen(event)
        return body(strand, registers)

    return run
