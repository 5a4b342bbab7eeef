"""Which instruction an event of a checked run speaks of: its PTX line, or its `Place` where others share that line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from hopsim.events import Place
from hopsim.isa.forms.bound import BoundInstruction
from hopsim.isa.program.codegen import Segment
from hopsim.isa.program.kernel import Kernel
from hopsim.isa.ptx.ast import Span

# The instructions that share a line.
Places: TypeAlias = Mapping[Span, Place]

COMMENT: Final = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
STATEMENT: Final = re.compile(r"(?:/\*.*?\*/|//[^\n]*\n|[^;/]|/(?![/*]))*;", re.DOTALL)


def places_of(kernel: Kernel) -> Places:
    """Return the places of the instructions that share a line."""
    spans = [instruction.span for instruction in kernel.body.instructions]
    many = Counter(span.line for span in spans)
    return {span: Place(span.line, span.column) for span in spans if many[span.line] > 1}


def line_at(span: Span, places: Places) -> int:
    """Return the line of an instruction that begins there, or its place."""
    return places.get(span, span.line)


def line_of(bound: BoundInstruction, places: Places) -> int:
    """Return the line of an instruction, or its place."""
    return line_at(bound.instruction.span, places)


def placed_program(program: Sequence[Segment], places: Places) -> Sequence[Segment]:
    """Return the program with segments that name their instructions, also where they share a line."""
    if not places:
        return program
    return [
        replace(
            one,
            line=line_of(one.instructions[0], places),
            last_line=line_of(one.instructions[-1], places),
        )
        for one in program
    ]


def texts_of(kernel: Kernel, places: Places) -> dict[int, str]:
    """Return what is written of each instruction that does not have one line to itself."""
    lines = kernel.module.lines
    found: dict[int, str] = {}
    for instruction in kernel.body.instructions:
        span = instruction.span
        if span in places or ";" not in lines[span.line - 1]:
            found[line_at(span, places)] = _statement(lines, span)
    return found


def _statement(lines: Sequence[str], span: Span) -> str:
    """Return the text from a place to the semicolon, in one line and without comments."""
    last = span.line
    text = lines[last - 1][span.column - 1 :]
    while (whole := STATEMENT.match(text)) is None and last < len(lines):
        text += "\n" + lines[last]
        last += 1
    return " ".join(COMMENT.sub(" ", text if whole is None else whole.group()).split())
