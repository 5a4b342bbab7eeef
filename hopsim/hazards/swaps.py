"""Plain accesses of words that compare-and-swaps change: no barrier is missing there, but strength.

Threads that loop on a compare-and-swap need no edge among each other, neither within a warp (its threads make progress
each by itself) nor between blocks.  Two plain accesses commonly stand beside such a loop: the read that gives the first
value to compare (`atomicAdd` of a double in CUDA's programming guide), and the write by which who took a lock gives it
back.  A barrier in their place would order one round of one warp or block, or, where others wait for a lock, never end.

Source: PTX ISA 8.7 "Memory Consistency Model": "Morally Strong Operations", "Conflict and data-races"; "Independent thread
scheduling".
"""

from __future__ import annotations

import re
from typing import Final, Literal

from hopsim.hazards.facts import LaunchFacts
from hopsim.hazards.records import Record

TAKES: Final = re.compile(r"^atom\S*\.(cas|exch)\b")
SWAPS: Final = re.compile(r"^atom\S*\.cas\b")


def is_mixed(first: Record, second: Record) -> bool:
    """Whether one of two accesses of the same size is strong, and the other a plain one of threads."""
    if first.flight is not None or second.flight is not None:
        return False
    return bool(first.scope) != bool(second.scope) and first.count_bytes == second.count_bytes


def swap_story(
    first: Record, second: Record, facts: LaunchFacts
) -> Literal["", "guess", "release"]:
    """Say what a plain access is to a compare-and-swap: the first value that it compares, or what gives a lock back."""
    if not is_mixed(first, second):
        return ""
    plain, strong = (second, first) if first.scope else (first, second)
    mnemonic = facts.mnemonic(strong.line)
    if plain.kind == "r":
        is_guess = plain.line in facts.guess_lines and SWAPS.match(mnemonic) is not None
        return "guess" if is_guess else ""
    gives_back = TAKES.match(mnemonic) and plain.line in facts.lines_after(strong.line)
    return "release" if gives_back else ""
