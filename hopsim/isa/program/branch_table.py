"""Branches by an index (`brx.idx`): a table of targets, and the way through it.

Lanes whose index differs part one target at a time: those that go elsewhere than the first lane come back to the branch,
which is a segment of its own.

Source: PTX ISA 8.7 "brx.idx", ".branchtargets"; an index outside of the list is undefined there and a fault here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hopsim.isa.forms.bound import BoundInstruction


def way(strand: Any, table: Sequence[int], index: int) -> int:
    """Return the segment that an index leads to.

    Raises: MachineFault: the index is outside of the table.
    """
    if index >= len(table):
        raise strand.fault(
            f"brx.idx: index {index} is outside of the list of {len(table)} targets",
            "compare the index with the number of targets first, and branch around",
        )
    return table[index]


def by_index(
    bound: BoundInstruction, index: str, here: int, after: int, join: int, table: str
) -> list[str]:
    """Return the lines of Python for one branch.

    Args:
        index: the expression of its index.
        here: number of its segment.  after: that of the segment behind, where a guard is false.
        join: where its lanes meet again.
        table: name of the list of segments.
    """
    lines: list[str] = []
    if bound.instruction.guard is not None:
        register, negated = bound.instruction.guard
        held, other = ("False", "True") if negated else ("True", "False")
        ways = f"{after}, {here}" if negated else f"{here}, {after}"
        differs = "p.any()" if negated else "not p.all()"
        lines += [
            f"p = r[{register.index}]",
            f"if p is {other}: return {after}",
            f"if p is not {held} and {differs}: return s.diverge(p, {ways}, {join})",
        ]
    return [
        *lines,
        f"i = {index}",
        f"if isinstance(i, int): return way(s, {table}, i)",
        "one = i[0].item()",
        f"return s.diverge(i == one, way(s, {table}, one), {here}, {join})",
    ]
