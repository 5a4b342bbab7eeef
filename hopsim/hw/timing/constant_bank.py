"""Parameters that a kernel reads: ptxas loads them from the constant bank in each basic block that needs them.

An `ld.param` is no machine instruction where it stands: what it reads costs no register that way, so ptxas loads it again
wherever it is used, with LDC, which is waited for like other loads, or with ULDC, which is not.  In the innermost loops it
is kept.

Source: machine code of ptxas 13.0 for the GEMMs of CUTLASS (tests/silicon/libraries/cutlass): of 43 `ld.param` that 145
pairs of a block and a parameter have need of, 145 loads are made, of 20 with 87 pairs 98, of 92 with 613 pairs 468; half of
all are ULDC, which have no scoreboard and a stall of one or two cycles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hopsim.hw.timing.basic_blocks import blocks, reads_clock, spins
from hopsim.isa.forms.bound import AddressArg, BoundInstruction, ConstantArg, RegisterArg, SymbolArg
from hopsim.isa.program.codegen import Segment

UNIT: Final = "lsu_const"


@dataclass(slots=True, eq=False)
class Loads:
    """What the block that a segment begins loads.

    Args:
        registers: that the loads fill.
        count: of loads.
        lines: of the constant bank.
    """

    registers: set[int] = field(default_factory=set[int])
    count: int = 0
    lines: set[int] = field(default_factory=set[int])


NO_LOADS: Final = Loads()


class ConstantBank:
    """What a program loads from the constant bank, and where.

    Args:
        program: compiled segments, by number.
        offsets: of each parameter, in bytes.
        line_bytes: of the bank, which come together.
    """

    def __init__(
        self, program: Sequence[Segment], offsets: Mapping[str, int], line_bytes: int
    ) -> None:
        self._line_bytes = line_bytes
        instructions = [bound for segment in program for bound in segment.instructions]
        self._writes = Counter(register for bound in instructions for register in bound.writes)
        self._places = self._addresses(instructions, offsets)
        loads = [bound for bound in instructions if self._is_anywhere(bound)]
        self.gone = frozenset(map(id, loads))
        """The `id` of each `ld.param` that is no machine instruction where it stands."""
        filled = {register: bound for bound in loads for register in bound.writes}
        starts = {number: block.start for block in blocks(program) for number in block}
        stands = {
            id(bound): segment.number
            for segment in program
            for bound in segment.instructions
            if id(bound) in self.gone
        }
        loops = set(_innermost(program))
        needs: dict[tuple[int, int], BoundInstruction] = {}
        for segment in program:
            for bound in segment.instructions:
                for register in bound.reads & filled.keys():
                    load = filled[register]
                    home = stands[id(load)]
                    at = starts[segment.number]
                    if segment.number in loops or starts[home] == at:
                        at = _after_clocks(program, starts[home], home)
                    needs[at, id(load)] = load
        self.of: dict[int, Loads] = {}
        """What is loaded, by the segment that its block begins with."""
        for (at, _), load in needs.items():
            here = self.of.setdefault(at, Loads())
            here.registers |= load.writes
            here.count += 1
            here.lines.add(self._place(load) // line_bytes)

    def lines(self, bound: BoundInstruction) -> Iterator[int]:
        """Give the lines that an instruction reads where it stands."""
        if bound.form.unit == UNIT and id(bound) not in self.gone:
            place = self._place(bound)
            if place >= 0:
                yield place // self._line_bytes

    def _addresses(
        self, instructions: Sequence[BoundInstruction], offsets: Mapping[str, int]
    ) -> dict[int | str, int]:
        """Return what is known of addresses of parameters: bytes from the first one, by name and by register."""
        found: dict[int | str, int] = {**offsets}
        for bound in instructions:
            once = all(self._writes[register] == 1 for register in bound.writes)
            if not (bound.args and bound.writes and once):
                continue
            base, more = bound.args[0], bound.args[-1]
            if bound.instruction.opcode[0] == "mov" and isinstance(base, SymbolArg):
                start = found.get(base.symbol.name) if base.symbol.kind == "param" else None
                start = None if start is None else start + base.symbol.offset
            elif bound.instruction.opcode[0] == "add" and isinstance(base, RegisterArg):
                start = found.get(base.register.index) if isinstance(more, ConstantArg) else None
                start = None if start is None else start + _signed(more)
            else:
                continue
            if start is not None:
                found |= dict.fromkeys(bound.writes, start)
        return found

    def _is_anywhere(self, bound: BoundInstruction) -> bool:
        return (
            bound.form.unit == UNIT
            and bound.instruction.guard is None
            and all(self._writes[register] == 1 for register in bound.writes)
            and self._place(bound) >= 0
        )

    def _place(self, load: BoundInstruction) -> int:
        """Return the first byte of the parameters that a load reads; less than zero: it is not known."""
        (address,) = (arg for arg in load.args if isinstance(arg, AddressArg))
        base = address.base
        if isinstance(base, SymbolArg) and base.symbol.kind == "param":
            start = self._places.get(base.symbol.name)
            return -1 if start is None else start + base.symbol.offset + address.offset
        if isinstance(base, RegisterArg) and base.register.index in self._places:
            return self._places[base.register.index] + address.offset
        return -1


def _signed(literal: object) -> int:
    """Return a literal of 64 bits with its sign."""
    assert isinstance(literal, ConstantArg)
    value = int(literal.value)
    return value - (1 << 64) if value >> 63 else value


def _after_clocks(program: Sequence[Segment], start: int, number: int) -> int:
    """Return the first segment to which an instruction of its block can move: it does not pass who reads a clock."""
    return next((one for one in range(number, start, -1) if reads_clock(program[one])), start)


def _innermost(program: Sequence[Segment]) -> Iterator[int]:
    """Give the segments of loops that have no loop inside but waits."""
    loops = [
        range(successor, segment.number + 1)
        for segment in program
        for successor in segment.successors
        if 0 <= successor <= segment.number and not spins(segment)
    ]
    for loop in loops:
        if not any(other != loop and loop.start <= other.start < other.stop <= loop.stop for other in loops):  # fmt: skip
            yield from loop


__all__ = ["NO_LOADS", "ConstantBank", "Loads"]
