"""wmma: each load, product and store of fragments becomes what ptxas makes of it: plain loads, mma.sync, plain stores.

Source: PTX ISA 8.7 "wmma.load", "wmma.mma", "wmma.store"; recorded on an H100 (tests/silicon/probes/wmma.npz); machine code
of ptxas 13.0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from hopsim.isa.program.frames import retargeted
from hopsim.isa.program.wmma_accesses import lower_access
from hopsim.isa.program.wmma_output import Output, Wrong
from hopsim.isa.program.wmma_products import lower_product
from hopsim.isa.ptx.ast import Span
from hopsim.isa.ptx.flat import FlatBody, FlatInstruction


class Lowered(NamedTuple):
    """A body without `wmma`, and what is wrong in it."""

    body: FlatBody
    wrong: tuple[Wrong, ...]


def lower(body: FlatBody) -> Lowered:
    """Put what ptxas makes of them in the place of all `wmma` that are modelled; others stay as they are."""
    if not any(one.opcode[0] == "wmma" for one in body.instructions):
        return Lowered(body, ())
    out = Output(body)
    places: list[int] = []
    for instruction in body.instructions:
        places.append(len(out.instructions))
        out.begin(instruction)
        if not _lower_one(out, instruction):
            out.instructions.append(instruction)
    places.append(len(out.instructions))
    instructions = tuple([retargeted(one, places) for one in out.instructions])
    labels = {name: places[target] for name, target in body.labels.items()}
    body = replace(body, instructions=instructions, registers=tuple(out.registers), labels=labels)
    return Lowered(body, tuple(out.wrong))


def is_lowered(opcode: tuple[str, ...]) -> bool:
    """Say whether an opcode is one that `lower` takes."""
    alone = FlatInstruction(Span(1, 1), None, None, opcode, ())
    # Without operands it is wrong, which is told only of what is modelled.
    return bool(lower(FlatBody((alone,), (), {}, ())).wrong)


def _lower_one(out: Output, instruction: FlatInstruction) -> bool:
    """Emit what ptxas makes of an instruction; say whether it is a `wmma` that is modelled."""
    operands = instruction.operands
    match instruction.opcode:
        case ("wmma", "load", ("a" | "b" | "c") as which, "sync", "aligned", layout, shape, *rest):
            return lower_access(out, instruction, which, layout, shape, rest, operands)
        case ("wmma", "store", "d", "sync", "aligned", layout, shape, *rest):
            address, *others = operands or (None,)
            turned = (*others[:1], address, *others[1:]) if address is not None else ()
            return lower_access(out, instruction, "d", layout, shape, rest, turned)
        case ("wmma", "mma", "sync", "aligned", a_layout, b_layout, shape, *rest):
            is_known = {a_layout, b_layout} <= {"row", "col"}
            return is_known and lower_product(out, instruction, shape, rest)
        case _:
            return False
