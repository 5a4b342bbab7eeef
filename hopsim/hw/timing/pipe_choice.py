"""What ptxas gives the multiplier that the ALU could do too.

IMAD adds two registers (a product with one) and shifts by a literal (a product with a power of two), VIADD adds a literal,
and a predicate becomes a number by a copy that it guards; all these pass the pipe of products.  Where the ALU has more to do
than that pipe, in the whole program, ptxas gives it these, at most four for each that the ALU has of a straight run;
elsewhere it leaves them to the ALU.

Source: machine code of ptxas 13.0 for the microbenchmarks `pipes_*` and `beside_wgmma_*` (additions alone: 103 IMAD.IADD
and 25 IADD3; shifts and logic: 30 IMAD.SHL of 32) and for CUDA C++ kernels (tests/silicon/workloads: IMAD.SHL, IMAD.IADD and
VIADD in `random_walk` and `scan_blocks`, SHF, LEA and IADD3 in `gemm_registers`, `spmv_rows`, `layer_norm`); hopsim's
recordings, H100 SXM, tests/silicon/micro.json: beside_wgmma_none_w8_addresses (256 add.s32 take 410 cycles), pipes_w16 (64
additions of a literal and xor of each of four warps 289 cycles, 96 of setp, selp and add 473).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hopsim.isa.forms.bound import BoundInstruction, ConstantArg
from hopsim.isa.program.codegen import Segment

ALU: Final = "alu"
MULTIPLIER: Final = "imad"
MULTIPLIES: Final = (MULTIPLIER, "fp32")
SHARE: Final = 4
"""Instructions that the multiplier has for each of the ALU's, at most."""
WORDS: Final = ("b32", "s32", "u32")


def multiplied(program: Sequence[Segment], gone: frozenset[int]) -> frozenset[int]:
    """Return the `id` of instructions of the ALU that the multiplier does.

    Args:
        gone: instructions of which ptxas makes none.
    """
    left = [bound for bound in _all(program) if id(bound) not in gone]
    added = _added(left)
    either = {id(bound) for bound in left if _is_either(bound, added)}
    for_alu = sum(bound.form.unit == ALU for bound in left) - len(either)
    for_multiplier = sum(bound.form.unit in MULTIPLIES for bound in left)
    if for_alu <= for_multiplier:
        return frozenset()
    found: set[int] = set()
    for segment in program:
        # What each has of a straight run.
        given = {ALU: 0, MULTIPLIER: 0}
        for bound in segment.instructions:
            if id(bound) in gone:
                continue
            unit = bound.form.unit
            if id(bound) in either and given[MULTIPLIER] < SHARE * (given[ALU] + 1):
                unit = MULTIPLIER
                found.add(id(bound))
            if unit in given:
                given[unit] += 1
    return frozenset(found)


def _all(program: Iterable[Segment]) -> Iterable[BoundInstruction]:
    return (bound for segment in program for bound in segment.instructions)


def _added(instructions: Sequence[BoundInstruction]) -> frozenset[int]:
    """Return the registers that nothing but sums read."""
    readers: dict[int, bool] = {}
    for bound in instructions:
        for register in bound.reads:
            readers[register] = readers.get(register, True) and _is_sum(bound)
    return frozenset(register for register, only in readers.items() if only)


def _is_sum(bound: BoundInstruction) -> bool:
    opcode = bound.instruction.opcode
    return opcode[0] in ("add", "sub") and len(opcode) == 2 and opcode[1] in WORDS


def _is_either(bound: BoundInstruction, added: frozenset[int]) -> bool:
    """Whether both can do an instruction.

    Args:
        added: registers that nothing but sums read.
    """
    opcode = bound.instruction.opcode
    if opcode == ("shl", "b32"):
        return isinstance(bound.args[-1], ConstantArg)
    if opcode[0] == "selp" and opcode[1] in WORDS:
        return bound.writes <= added and all(isinstance(arg, ConstantArg) for arg in bound.args[:2])
    return _is_sum(bound)


__all__ = ["multiplied"]
