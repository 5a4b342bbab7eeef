"""What of the values of a program is needed: ptxas makes nothing for the rest.

What is known before a program runs is no instruction: a comparison of literals, as CUTLASS's and DeepGEMM's `wgmma` have
it for their `scale-d`, becomes part of who reads it.  Of a pair of registers whose upper half nobody reads, as that of a
generic address that is used in shared memory, only the lower half is computed.

Source: machine code of ptxas 13.0 for each of these (tests/hw/timing/test_needed.py), and for DeepGEMM's GEMMs
(tests/silicon/libraries/deep_gemm).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from hopsim.isa.forms.bound import (
    AddressArg,
    Arg,
    BoundInstruction,
    ConstantArg,
    RegisterArg,
    TupleArg,
)

PAIR_BITS: Final = 64
KEEPS_LOWER: Final = ("add", "sub", "and", "or", "xor", "not", "neg", "shl", "mov")
"""Operations whose lower half needs the lower halves of their operands alone; a product of 64 bits does too (`mul.lo`)."""
NARROWS: Final = tuple(("cvt", to, wide) for to in ("u32", "s32") for wide in ("u64", "s64"))
"""What cuts an upper half off."""


def known(instructions: Sequence[BoundInstruction]) -> frozenset[int]:
    """Find comparisons of values that are known, and the copies of literals that only these read, by `id`."""
    writes = Counter(register for bound in instructions for register in bound.writes)
    values = {
        register
        for bound in instructions
        if bound.instruction.opcode[0] == "mov"
        and bound.instruction.guard is None
        and isinstance(bound.args[-1], ConstantArg)
        for register in bound.writes
        if writes[register] == 1
    }
    found = {
        id(bound)
        for bound in instructions
        if bound.instruction.opcode[0] == "setp"
        and bound.instruction.guard is None
        and bound.reads <= values
        and all(writes[register] == 1 for register in bound.writes)
    }
    compared = {
        register for bound in instructions if id(bound) in found for register in bound.reads
    }
    others = {
        register for bound in instructions if id(bound) not in found for register in bound.reads
    }
    copies = {
        id(bound) for bound in instructions if bound.writes and bound.writes <= compared - others
    }
    return frozenset(found | copies)


def halved(instructions: Sequence[BoundInstruction]) -> frozenset[int]:
    """Return the registers of 64 bits of which only the lower half is needed, and that is."""
    read = {register for bound in instructions for register in bound.reads}
    found = {
        destination.register.index
        for bound in instructions
        for destination in bound.destinations
        if destination.register is not None
        and destination.register.width_bits == PAIR_BITS
        and destination.register.index in read
    }
    left = list(instructions)
    while found:
        left = [bound for bound in left if bound.reads & found]
        whole = {register for bound in left for register in _whole(bound, found)}
        if not whole & found:
            break
        found -= whole
    return frozenset(found)


def _whole(bound: BoundInstruction, halves: set[int]) -> Iterator[int]:
    """Give the registers that an instruction needs more of than the lower half.

    Args:
        halves: of what it writes only the lower half is needed, if it is among these.
    """
    opcode = bound.instruction.opcode
    if opcode in NARROWS:
        return
    keeps_lower = opcode[0] in KEEPS_LOWER or opcode[:2] == ("mul", "lo")
    if keeps_lower and len(bound.destinations) == 1 and bound.writes <= halves:
        return
    widths: dict[int, int] = {}
    for register, width in _registers(bound.args):
        widths[register] = max(width, widths.get(register, 0))
    yield from (one for one in bound.reads if widths.get(one, PAIR_BITS) == PAIR_BITS)


def _registers(args: Iterable[Arg]) -> Iterator[tuple[int, int]]:
    """Give the registers in arguments, and how many bits of each are read."""
    for arg in args:
        if isinstance(arg, RegisterArg):
            yield arg.register.index, arg.width_bits
        elif isinstance(arg, AddressArg) and isinstance(arg.base, RegisterArg):
            yield arg.base.register.index, arg.width_bits
        elif isinstance(arg, TupleArg):
            yield from _registers(arg.items)
