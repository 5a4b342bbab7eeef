"""What ptxas makes of one PTX instruction: how many machine instructions, and which sequences have numbers of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from hopsim.config import HardwareConfig
from hopsim.hw.timing.joined import joined
from hopsim.hw.timing.mma_pipe import kind_of
from hopsim.hw.timing.needed import halved, known
from hopsim.hw.timing.pipe_choice import MULTIPLIER, multiplied
from hopsim.hw.timing.sequences import sequence_of
from hopsim.hw.timing.wide_loads import wide_loads
from hopsim.isa.forms.bound import AddressArg, BoundInstruction, ConstantArg, RegisterArg
from hopsim.isa.program.codegen import Segment

WIDE_UNITS: Final = ("alu", "imad")
WIDE_BITS: Final = 64
WIDE: Final = "imad_wide"
"""The pipe of a product of 32 bits that is added to 64."""
WIDENED: Final = ("s32", "u32")
UNIFORM: Final = "uniform"
"""The pipe of what is the same for a whole warp."""
UNIFORM_UNITS: Final = ("alu", "imad", "move", "convert")
DESCRIPTOR_SUM: Final = 2
"""Machine instructions executed for a sum of 64 bits: it, and copies to where a wgmma takes its descriptors from."""
COPY: Final = 0.5
"""Machine instructions of a copy of a register. Source: machine code of ptxas 13.0, Triton's accumulators set to zero."""

TRY_WAIT: Final = 3
"""The phase is moved to the sign bit of a vector register first. This and the following: machine code of ptxas 13.0."""
EXPECT_TX: Final = 2
FENCE_ASYNC: Final = 2
BULK_COMMIT: Final = 3
"""A branch around it, whose ways join again."""
BULK_COPY: Final = 10
"""Of an elected thread: 7 where all that it needs is uniform, else 12 or 13."""
EXTRACT: Final = 2
MATRICES: Final = ("tensor", "mma")
"""Units that multiply them."""


class MachineCode:
    """What ptxas makes of a program.

    Args:
        config: lengths of sequences.
        program: its segments.
        constants: the `id` of loads of parameters that are made elsewhere.
    """

    def __init__(
        self,
        config: HardwareConfig,
        program: Sequence[Segment],
        constants: frozenset[int] = frozenset(),
    ) -> None:
        self._config = config
        instructions = [bound for segment in program for bound in segment.instructions]
        self._low = _halves(instructions)
        self._halved = halved(instructions)
        self._wide, self._narrow, fused = _sums_of_products(instructions, self._halved)
        self._folded = _offsets(instructions) | fused
        self._uniform = _of_descriptors(instructions)
        self.wide = wide_loads(program)
        parts = joined(instructions)
        gone = self._uncounted = parts.gone
        if any(bound.form.unit in MATRICES for bound in instructions):
            # ptxas copies there about as much as it joins, into pairs of registers and uniform ones (D-SASS).
            shifts = (id(bound) for bound in instructions if bound.instruction.opcode[0] == "shl")
            gone, self._uncounted = frozenset[int](), parts.gone.intersection(shifts)
            self._multiplied = frozenset[int]()
        else:
            self._multiplied = parts.multiplied | multiplied(program, gone | self._uniform)
        self._gone = (
            gone
            | constants
            | known(instructions)
            | {id(program[number].instructions[0]) for number in self.wide.others}
        )
        self._again = frozenset(
            id(bound) for segment in program for bound in _divisions_again(segment.instructions)
        )

    def sequence(self, bound: BoundInstruction) -> str | None:
        """Return the name in `issue.sequence` of what ptxas makes several instructions of."""
        name = sequence_of(bound)
        return f"{name}_again" if id(bound) in self._again else name

    def unit(self, bound: BoundInstruction) -> str:
        """Return the pipe of an instruction: ptxas adds a 64-bit product with the instruction that makes it."""
        if id(bound) in self._uniform:
            return UNIFORM
        if id(bound) in self._wide:
            return WIDE
        is_multiplied = id(bound) in self._multiplied or id(bound) in self._narrow
        return MULTIPLIER if is_multiplied else bound.form.unit

    def halves(self, bound: BoundInstruction) -> bool:
        """Whether it is done in halves of 64 bits."""
        return self.unit(bound) == "alu" and self.issued(bound) == 2 and _has_wide_result(bound)

    def issued(self, bound: BoundInstruction) -> float:
        """Return the machine instructions of one PTX instruction that take an issue slot and a pipe."""
        if id(bound) in self._gone or (bound.writes and bound.writes <= self._folded):
            return 0
        if bound.reads <= self._low and _has_wide_literal(bound, ("add",)):
            return 1
        return self._length(bound)

    def counted(self, instructions: Sequence[BoundInstruction]) -> int:
        """Return how many machine instructions Nsight Compute counts for a straight run.

        Issue takes what `issued` says; this knows more of what ptxas leaves out, fuses and adds.
        """
        return round(
            sum(
                self._counted(bound)
                for bound in instructions
                if id(bound) not in self._gone
                and id(bound) not in self._uncounted
                and not (bound.writes and bound.writes <= self._folded)
            )
        )

    def _length(self, bound: BoundInstruction) -> float:
        """Return the machine instructions of one PTX instruction.

        Most copies of registers are none, and a machine instruction zeroes two registers; 64-bit integer arithmetic is
        done in halves, a product of fp8 values as products of f16 values, of nibbles as of bytes.
        """
        config = self._config
        unit = bound.form.unit
        if unit == "none" or _extends(bound):
            return 0
        if _has_wide_literal(bound, ("and", "or", "xor")):
            return 1
        is_move = unit == "move" and bound.form.base[0] == "mov"
        if is_move and isinstance(bound.args[0], RegisterArg):
            return COPY
        sequence = self.sequence(bound)
        if sequence is not None:
            return config.issue.sequence[sequence]
        if id(bound) in self._wide or id(bound) in self._uniform:
            return 1
        if unit == "mma":
            return config.mma_sync.instructions.get(kind_of(bound), 1)
        return 2 if _has_wide_result(bound) and not bound.writes <= self._halved else 1

    def _counted(self, bound: BoundInstruction) -> float:
        opcode = bound.instruction.opcode
        name = opcode[0]
        if name == "wgmma" and opcode[1] == "commit_group":
            return 0  # a flag of the wgmma before
        if name in ("mul", "mad") and "wide" in opcode:
            # Of unsigned ones a literal factor makes a shift and an addition of halves.
            factor = bound.args[1]
            is_literal = isinstance(factor, ConstantArg)
            return 2 if opcode == ("mad", "wide", "u32") and is_literal else 1
        if name == "mov" and isinstance(bound.args[-1], ConstantArg):
            return COPY
        if name == "bfe":
            return EXTRACT
        if name == "mbarrier" and "try_wait" in opcode:
            return TRY_WAIT
        if name == "mbarrier" and "expect_tx" in opcode:
            return EXPECT_TX
        if name == "fence" and "async" in opcode:
            return FENCE_ASYNC
        if bound.form.name.startswith("cp.async.bulk.commit_group"):
            return BULK_COMMIT
        if sequence_of(bound) == "bulk_copy":
            return BULK_COPY
        if id(bound) in self._uniform and _has_wide_result(bound):
            return DESCRIPTOR_SUM
        return self._length(bound)


def _divisions_again(instructions: Iterable[BoundInstruction]) -> Iterator[BoundInstruction]:
    """Give the 32-bit divisions of a straight run by what was divided by before: ptxas keeps its reciprocal."""
    known: set[tuple[str, int]] = set()
    for bound in instructions:
        opcode = bound.instruction.opcode
        kind = opcode[-1]
        divides = opcode[0] in ("div", "rem") and kind in ("s32", "u32")
        divisor = bound.args[-1] if divides else None
        key = (kind, divisor.register.index) if isinstance(divisor, RegisterArg) else None
        if key in known:
            yield bound
        if bound.writes:
            known = {(form, register) for form, register in known if register not in bound.writes}
        if key is not None and key[1] not in bound.writes:
            known.add(key)


def _halves(instructions: Iterable[BoundInstruction]) -> frozenset[int]:
    """Return the 64-bit registers whose upper half is zero."""
    zero: set[int] = set()
    other: set[int] = set()
    for bound in instructions:
        (zero if _extends(bound) else other).update(bound.writes)
    return frozenset(zero - other)


def _offsets(instructions: Sequence[BoundInstruction]) -> frozenset[int]:
    """Return the registers that become offsets of addresses: sums of a register and a literal, used for nothing else.

    A sum of such a sum and a literal is one too.
    """
    writes = Counter(register for bound in instructions for register in bound.writes)
    found = {
        register
        for bound in instructions
        if _is_addition(bound) and isinstance(bound.args[-1], ConstantArg)
        for register in bound.writes - bound.reads
        if writes[register] == 1
    }
    left = list(instructions)
    while found:
        left = [bound for bound in left if bound.reads & found]
        used = {
            register
            for bound in left
            if not (bound.writes and bound.writes <= found)
            for register in bound.reads - _offset_bases(bound)
        }
        if not used & found:
            break
        found -= used
    return frozenset(found)


def _offset_bases(bound: BoundInstruction) -> frozenset[int]:
    """Return the registers that an instruction adds a literal to without another instruction."""
    return frozenset() if sequence_of(bound) == "bulk_copy" else _bases((bound,))


def _extends(bound: BoundInstruction) -> bool:
    """Whether it fills an upper half with zero: ptxas takes the register that is always zero."""
    opcode = bound.instruction.opcode
    return opcode[0] == "cvt" and opcode[-2:] == ("u64", "u32")


def _has_wide_literal(bound: BoundInstruction, names: tuple[str, ...]) -> bool:
    """Whether it is one of some operations on 64 bits, with a literal."""
    opcode = bound.instruction.opcode
    return (
        opcode[0] in names
        and opcode[-1] in ("b64", "s64", "u64")
        and isinstance(bound.args[-1], ConstantArg)
    )


def _has_wide_result(bound: BoundInstruction) -> bool:
    """Whether it is integer arithmetic of 64 bits."""
    return bound.form.unit in WIDE_UNITS and any(
        destination.register is not None and destination.register.width_bits == WIDE_BITS
        for destination in bound.destinations
    )


def _is_addition(bound: BoundInstruction) -> bool:
    opcode = bound.instruction.opcode
    return opcode[0] == "add" and opcode[-1] in ("s32", "u32", "s64", "u64")


def _sums_of_products(
    instructions: Sequence[BoundInstruction], halved: frozenset[int]
) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
    """Find sums of a 64-bit product and something else that are an address of memory: one instruction each.

    Args:
        halved: registers of which only the lower half is needed.
    Returns: the identities of these additions, of those among them that need no upper half, and the products that nothing
        else needs.
    """
    writes = Counter(register for bound in instructions for register in bound.writes)
    bases = _bases(instructions)
    products = {
        register
        for bound in instructions
        if bound.instruction.opcode[:2] == ("mul", "wide")
        and bound.instruction.opcode[2] in WIDENED
        for register in bound.writes
        if writes[register] == 1
    }
    sums: set[int] = set()
    narrow: set[int] = set()
    summed: Counter[int] = Counter()
    read: Counter[int] = Counter()
    for bound in instructions:
        used = bound.reads & products
        read.update(used)
        if len(used) == 1 and _is_addition(bound) and bound.writes <= bases | halved:
            (narrow if bound.writes <= halved else sums).add(id(bound))
            summed.update(used)
    fused = frozenset(one for one in summed if summed[one] == read[one])
    return frozenset(sums), frozenset(narrow), fused


def _bases(instructions: Iterable[BoundInstruction]) -> frozenset[int]:
    """Return the registers that hold addresses of memory."""
    return frozenset(
        arg.base.register.index
        for bound in instructions
        for arg in bound.args
        if isinstance(arg, AddressArg) and isinstance(arg.base, RegisterArg)
    )


def _of_descriptors(instructions: Sequence[BoundInstruction]) -> frozenset[int]:
    """Find what makes descriptors of wgmma and nothing else: the uniform datapath does it."""
    readers: dict[int, set[int]] = {}
    for bound in instructions:
        for register in bound.reads:
            readers.setdefault(register, set()).add(id(bound))
    products = {id(bound) for bound in instructions if bound.form.unit == "tensor"}
    found = set(products)
    left: list[BoundInstruction] = [
        bound for bound in instructions if bound.form.unit in UNIFORM_UNITS and bound.writes
    ]
    while True:
        more = [
            bound
            for bound in left
            if all(
                register in readers and readers[register] - {id(bound)} <= found
                for register in bound.writes
            )
        ]
        if not more:
            return frozenset(found - products)
        found.update(id(bound) for bound in more)
        left = [bound for bound in left if id(bound) not in found]
