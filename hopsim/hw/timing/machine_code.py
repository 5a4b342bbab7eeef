"""What ptxas makes of one PTX instruction: how many machine instructions, and which sequences have numbers of their own."""

from __future__ import annotations

from typing import Final

from hopsim.config import HardwareConfig
from hopsim.isa.forms.decode import BoundInstruction, RegisterArg

WIDE_UNITS: Final = ("alu", "imad")
WIDE_BITS: Final = 64
FP8: Final = ("e4m3", "e5m2")
COPY: Final = 0.5
"""Machine instructions of a copy of a register. Source: machine code of ptxas 13.0, Triton's accumulators set to zero."""


def instruction_count(config: HardwareConfig, bound: BoundInstruction) -> float:
    """Return the machine instructions of one PTX instruction.

    Most copies of registers are none, and a machine instruction zeroes two registers; 64-bit integer arithmetic is done in
    halves, a product of fp8 values as products of f16 values.
    """
    unit = bound.form.unit
    if unit == "none":
        return 0
    is_move = unit == "move" and bound.form.base[0] == "mov"
    if is_move and isinstance(bound.args[0], RegisterArg):
        return COPY
    sequence = sequence_of(bound)
    if sequence is not None:
        return config.issue.sequence[sequence]
    if unit == "mma" and dict(bound.slots).get("at") in FP8:
        return config.mma_sync.fp8_instructions
    if unit in WIDE_UNITS and any(
        destination.register is not None and destination.register.width_bits == WIDE_BITS
        for destination in bound.destinations
    ):
        return 2
    return 1


def sequence_of(bound: BoundInstruction) -> str | None:
    """Return the name in `issue.sequence` of what ptxas makes several instructions of."""
    opcode = bound.instruction.opcode
    name, kind = opcode[0], opcode[-1]
    if name in ("div", "rem"):
        if kind in ("s32", "u32"):
            return f"{name}_{kind}"
        if kind in ("s64", "u64"):
            return "div_64"
        if kind == "f64":
            return "div_f64"
    if name in ("div", "rcp", "sqrt") and kind == "f32":
        return None if "approx" in opcode or "full" in opcode else f"{name}_f32"
    if name == "mbarrier" and opcode[1] == "init":
        return "mbarrier_init"
    if name == "prefetch" and "tensormap" in opcode:
        return "prefetch_tensormap"
    if bound.form.name.startswith(("cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor")):
        return "bulk_copy"
    return None
