"""Loads of neighbouring words of shared memory that ptxas makes one of.

Where it knows that an address is a multiple of 16 bytes (variables of shared memory, plus what is shifted or multiplied far
enough), four words in a row that a basic block loads one by one come with one LDS.128, two with LDS.64.  Of global memory it
knows no such address: pointers are parameters.

Source: machine code of ptxas 13.0 for a product of CUDA C++ by tiles in shared memory (tests/silicon/workloads,
`gemm_tiled`: 32 words of a row are 8 LDS.128, those of a column, of which lanes load neighbours, stay 32 LDS).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from hopsim.hw.timing.basic_blocks import blocks
from hopsim.isa.forms.bound import (
    AddressArg,
    Arg,
    BoundInstruction,
    ConstantArg,
    RegisterArg,
    SymbolArg,
)
from hopsim.isa.program.codegen import Segment

SHARED: Final = "lsu_shared"
LOADS: Final = (SHARED, "lsu_global")
WEAK: Final = ("", "weak")
WORD_BYTES: Final = 4
WIDTHS: Final = (4, 2)
"""Words of a joined load, the widest first."""
PLACED: Final = 4
"""Bits that are zero of the address of a variable, which ptxas places."""
ALL: Final = 64


class Wide(NamedTuple):
    """The first load of some that are one.

    Args:
        words: of a lane.
        shift_bytes: by which its own word lies behind the lowest.
    """

    words: int
    shift_bytes: int


@dataclass(slots=True, eq=False)
class WideLoads:
    """What is joined, by number of segment.

    Args:
        first: the load that is done for all.
        others: for each other load, the number of the first.
    """

    first: dict[int, Wide] = field(default_factory=dict[int, Wide])
    others: dict[int, int] = field(default_factory=dict[int, int])


def wide_loads(program: Sequence[Segment]) -> WideLoads:
    """Find the loads of a program that are joined."""
    found = WideLoads()
    zeros = _zeros(bound for segment in program for bound in segment.instructions)
    for block in blocks(program):
        # Loads since the last store or barrier, by base, then by offset.
        seen: dict[int, dict[int, int]] = {}
        for number in block:
            segment = program[number]
            head = segment.instructions[0]
            if segment.head is not None and not _is_load(head):
                _join(seen, zeros, found)
                seen = {}
            place = _word_of(head) if segment.head is not None else None
            if place is not None:
                base, offset = place
                seen.setdefault(base, {}).setdefault(offset, number)
            for bound in segment.instructions:
                for register in bound.writes & seen.keys():
                    _join({register: seen.pop(register)}, zeros, found)
        _join(seen, zeros, found)
    return found


def _join(seen: dict[int, dict[int, int]], zeros: dict[int, int], found: WideLoads) -> None:
    for base, numbers in seen.items():
        left = dict(numbers)
        for words in WIDTHS:
            size = words * WORD_BYTES
            if 1 << zeros.get(base, 0) < size:
                continue
            for begin in sorted(offset for offset in left if offset % size == 0):
                parts = [left.get(begin + WORD_BYTES * part) for part in range(words)]
                if None in parts:
                    continue
                known = [number for number in parts if number is not None]
                first = min(known)
                found.first[first] = Wide(words, WORD_BYTES * known.index(first))
                found.others.update((number, first) for number in known if number != first)
                for part in range(words):
                    del left[begin + WORD_BYTES * part]


def _is_load(bound: BoundInstruction) -> bool:
    is_weak = dict(bound.slots).get("sem", "") in WEAK
    return bound.form.unit in LOADS and bound.form.base[0] == "ld" and is_weak


def _word_of(bound: BoundInstruction) -> tuple[int, int] | None:
    """Return the base register and the offset of a load of one word of shared memory."""
    if bound.form.unit != SHARED or not _is_load(bound) or bound.instruction.guard is not None:
        return None
    (place, *_) = bound.args
    if not isinstance(place, AddressArg) or not isinstance(place.base, RegisterArg):
        return None
    widths = [one.from_bits for one in bound.destinations]
    return (place.base.register.index, place.offset) if widths == [8 * WORD_BYTES] else None


def _zeros(instructions: Iterable[BoundInstruction]) -> dict[int, int]:
    """Return how many of the lowest bits of a register are zero, as far as that is known, of those that are written once."""
    body = list(instructions)
    writes = Counter(register for bound in body for register in bound.writes)
    known: dict[int, int] = {}
    for bound in body:
        if len(bound.writes) != 1 or bound.instruction.guard is not None:
            continue
        (register,) = bound.writes
        if writes[register] == 1:
            known[register] = _zeros_of(bound, known)
    return known


def _zeros_of(bound: BoundInstruction, known: dict[int, int]) -> int:
    name = bound.instruction.opcode[0]
    values = [_zeros_of_arg(arg, known) for arg in bound.args]
    if name == "mov":
        return values[0]
    if name in ("add", "sub", "or"):
        return min(values)
    last = bound.args[-1] if bound.args else None
    if name == "shl" and isinstance(last, ConstantArg):
        return values[0] + int(last.value)
    if name == "mul":
        return values[0] + values[1]
    if name == "mad":
        return min(values[0] + values[1], values[2])
    return 0


def _zeros_of_arg(arg: Arg, known: dict[int, int]) -> int:
    if isinstance(arg, RegisterArg):
        return known.get(arg.register.index, 0)
    if isinstance(arg, SymbolArg):
        return PLACED if arg.symbol.kind == "shared" and arg.symbol.offset % 16 == 0 else 0
    if isinstance(arg, ConstantArg):
        value = int(arg.value)
        return (value & -value).bit_length() - 1 if value else ALL
    return 0


__all__ = ["Wide", "WideLoads", "wide_loads"]
