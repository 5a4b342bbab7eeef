"""Which line of the source a PTX line was compiled from, and which line of it called what was inlined there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from hopsim.findings import SourceLocation
from hopsim.isa.program.kernel import Kernel
from hopsim.isa.ptx.ast import Directive
from hopsim.runtime.checking import FILE

LOC: Final = re.compile(
    r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*\binlined_at\s+(\d+)\s+(\d+)\s+(\d+))?"
)
DEEPEST: Final = 64
"""Calls within calls that are followed: a text whose calls go round in a circle ends there."""

Place = tuple[int, int, int]


def sources_of(kernel: Kernel) -> dict[int, SourceLocation]:
    """Return the source line of each PTX line that has one (`nvcc -lineinfo`, Triton)."""
    files = files_of(kernel)
    return {
        one.span.line: SourceLocation(files[one.loc.file], one.loc.line, one.loc.column)
        for one in kernel.body.instructions
        if one.loc is not None and one.loc.file in files
    }


def callers_of(kernel: Kernel) -> dict[int, SourceLocation]:
    """Return for each PTX line of an inlined function the source line from which the outermost one was called.

    Source: PTX ISA ".loc": `inlined_at` is the place of the call, whose own `.loc` may say that it was inlined too.
    """
    files = files_of(kernel)
    return {
        line: SourceLocation(files[place[0]], place[1], place[2])
        for line, place in outermost(kernel.module.lines)
        if place[0] in files
    }


def outermost(lines: Sequence[str]) -> Iterator[tuple[int, Place]]:
    """Give the PTX lines of inlined functions, and the place of the outermost call.

    >>> text = [".loc 1 8 3", "nop;", ".loc 2 5 1, function_name f, inlined_at 1 8 3", "nop;"]
    >>> list(outermost([*text, ".loc 3 4 2, function_name g, inlined_at 2 5 1", "nop;"]))
    [(4, (1, 8, 3)), (6, (1, 8, 3))]
    """
    calls: dict[Place, Place | None] = {}
    caller: Place | None = None
    for number, text in enumerate(lines, 1):
        found = LOC.match(text)
        if found is None:
            if caller is not None:
                yield number, caller
            continue
        at = [None if part is None else int(part) for part in found.groups()]
        here = (at[0] or 0, at[1] or 0, at[2] or 0)
        caller = None if at[3] is None else (at[3], at[4] or 0, at[5] or 0)
        calls[here] = caller
        for _ in range(DEEPEST):
            further = None if caller is None else calls.get(caller)
            if further is None:
                break
            caller = further


def files_of(kernel: Kernel) -> dict[int, str]:
    """Return the names of the source files by their numbers."""
    files: dict[int, str] = {}
    for item in kernel.module.tree.items:
        if isinstance(item, Directive) and item.name == "file":
            found = FILE.match(item.text)
            if found is not None:
                files[int(found[1])] = found[2]
    return files
