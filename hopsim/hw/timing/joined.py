"""Instructions of which ptxas makes none, because another one does their work too.

A machine instruction does more than one of PTX: LOP3 is any logic of three operands, IADD3 adds three, LEA and IMAD shift or
multiply and add, ISETP joins its result with a predicate, floating point negates its operands, VIMNMX3 takes the least of
three.  What makes a value that nothing else reads becomes part of the reader.  Generic addresses of global memory are
global addresses, and the lower half of a register pair is a register.

Source: machine code of ptxas 13.0 for each of these (tests/hw/timing/test_joined.py lists the PTX), and for CUDA C++
kernels (tests/silicon/workloads).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from hopsim.isa.forms.bound import Arg, BoundInstruction, ConstantArg, RegisterArg

OPERANDS: Final = 3
"""Of LOP3, IADD3 and VIMNMX3."""
LOGIC: Final = ("and", "or", "xor", "not")
WORDS: Final = ("b32", "s32", "u32")
PAIRS: Final = ("b64", "s64", "u64")
EXTREMES: Final = ("min", "max")
NEGATES: Final = ("add", "sub", "mul", "fma", "setp")
"""Operations of f32 that negate an operand."""
TAKES_SIZE: Final = ("add", "sub", "mul", "setp")
"""Those that take its absolute value."""


@dataclass(slots=True, eq=False)
class Joined:
    """What ptxas joins.

    Args:
        gone: `id` of instructions that are part of those that read their results, or nothing.
        multiplied: `id` of additions that are part of a multiplication.
    """

    gone: frozenset[int] = frozenset()
    multiplied: frozenset[int] = frozenset()


def joined(instructions: Sequence[BoundInstruction]) -> Joined:
    """Find what is joined in all instructions of a program."""
    finder = _Finder(instructions)
    for bound in instructions:
        finder.look_at(bound)
    return Joined(frozenset(finder.gone), frozenset(finder.multiplied))


@dataclass(slots=True, eq=False)
class _Uses:
    """Who writes a register, and who reads it."""

    writers: list[BoundInstruction] = field(default_factory=list[BoundInstruction])
    readers: list[BoundInstruction] = field(default_factory=list[BoundInstruction])


class _Finder:
    """Looks at instructions in program order; an instruction takes part in one join at most, but as a reader of its own."""

    def __init__(self, instructions: Iterable[BoundInstruction]) -> None:
        self.gone: set[int] = set()
        self.multiplied: set[int] = set()
        self._uses: dict[int, _Uses] = {}
        for bound in instructions:
            for register in bound.writes:
                self._uses.setdefault(register, _Uses()).writers.append(bound)
            for register in bound.reads:
                self._uses.setdefault(register, _Uses()).readers.append(bound)
        # Operands of a LOP3, IADD3 or VIMNMX3 that has taken another instruction in; it takes no second one.
        self._full: set[int] = set()

    def look_at(self, bound: BoundInstruction) -> None:
        opcode = bound.instruction.opcode
        if bound.instruction.guard is not None:
            return
        name, kind = opcode[0], opcode[-1]
        if _is_nothing(opcode):
            self.gone.add(id(bound))
        elif name in ("and", "or") and kind == "pred":
            self._join_predicates(bound)
        elif name == "shl" and isinstance(bound.args[-1], ConstantArg):
            sums = ("add", "sub") if kind in WORDS else ("add",)
            self._join_all(
                bound, lambda reader: _is(reader, sums, WORDS if kind in WORDS else PAIRS)
            )
        elif opcode == ("cvt", "s64", "s32"):
            self._join_all(bound, lambda reader: _is(reader, ("add",), PAIRS))
        elif opcode[:2] == ("mul", "lo") and kind in WORDS:
            self._join_product(bound)
        elif name in ("neg", "abs") and kind == "f32":
            takes = NEGATES if name == "neg" else TAKES_SIZE
            self._join_all(bound, lambda reader: _is(reader, takes, ("f32",)))
        elif kind in WORDS and name in LOGIC:
            self._join_operands(bound, lambda reader: _is(reader, LOGIC, WORDS))
        elif kind in WORDS and name in ("add", "sub") and len(opcode) == 2:
            self._join_operands(bound, lambda reader: _is(reader, ("add", "sub"), WORDS))
        elif kind in ("s32", "u32") and name in EXTREMES:
            self._join_operands(bound, lambda reader: reader.instruction.opcode == opcode)

    def _readers(self, bound: BoundInstruction) -> list[BoundInstruction]:
        """Return who reads the only result of an instruction, or nobody if others write that register."""
        if len(bound.writes) != 1:
            return []
        uses = self._uses[next(iter(bound.writes))]
        return uses.readers if len(uses.writers) == 1 else []

    def _join_all(self, bound: BoundInstruction, takes: Callable[[BoundInstruction], bool]) -> None:
        """Let an instruction be part of all that read it."""
        readers = self._readers(bound)
        if readers and all(takes(reader) for reader in readers):
            self.gone.add(id(bound))
            self._full.update(id(reader) for reader in readers)

    def _join_operands(
        self, bound: BoundInstruction, takes: Callable[[BoundInstruction], bool]
    ) -> None:
        """Let the only reader of an instruction of two operands have three."""
        readers = self._readers(bound)
        if len(readers) != 1 or id(bound) in self._full:
            return
        (reader,) = readers
        if reader.instruction.guard is not None or id(reader) in self._full or not takes(reader):
            return
        operands = _operands(bound) | (_operands(reader) - {("r", *bound.writes)})
        literals = [one for one in operands if one[0] == "c"]
        if len(operands) <= OPERANDS and len(literals) <= 1:
            self.gone.add(id(bound))
            self._full.add(id(reader))

    def _join_product(self, bound: BoundInstruction) -> None:
        """Let a product be part of the only sum that it is for."""
        readers = self._readers(bound)
        if len(readers) == 1 and _is(readers[0], ("add",), WORDS):
            self.gone.add(id(bound))
            self.multiplied.add(id(readers[0]))
            self._full.add(id(readers[0]))

    def _join_predicates(self, bound: BoundInstruction) -> None:
        """Let the comparison that makes one predicate take in the other."""
        for register in bound.reads:
            uses = self._uses[register]
            if len(uses.writers) != 1 or len(uses.readers) != 1:
                continue
            (maker,) = uses.writers
            if maker.instruction.opcode[0] == "setp" and id(maker) not in self._full:
                self.gone.add(id(bound))
                self._full.add(id(maker))
                return


def _is_nothing(opcode: tuple[str, ...]) -> bool:
    """Whether an instruction gives another name to what there is."""
    return (opcode[0] == "cvta" and "global" in opcode) or opcode[:3] in (
        ("cvt", "u32", "u64"),
        ("cvt", "u64", "u32"),
    )


def _is(bound: BoundInstruction, names: Sequence[str], kinds: Sequence[str]) -> bool:
    opcode = bound.instruction.opcode
    return opcode[0] in names and opcode[-1] in kinds


def _operands(bound: BoundInstruction) -> set[tuple[str, int]]:
    """Return the different operands of an instruction: registers ("r") and literals ("c")."""
    return {_key(arg, number) for number, arg in enumerate(bound.args)}


def _key(arg: Arg, number: int) -> tuple[str, int]:
    if isinstance(arg, RegisterArg):
        return "r", arg.register.index
    if isinstance(arg, ConstantArg):
        return "c", int(arg.value)
    # What is no operand of these is like none other.
    return "?", number


__all__ = ["Joined", "joined"]
