"""PTX instructions of which ptxas makes several: what the numbers of each are called in `issue.sequence`.

Source: machine code of ptxas 13.0 for every spelling of every scalar instruction, with operands out of memory.
"""

from __future__ import annotations

from typing import Final

from hopsim.isa.forms.bound import BoundInstruction

APPROXIMATED: Final = ("div", "rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos")
"""Functions of f32 that the MUFU approximates; what it makes of subnormal numbers is not what PTX says without `.ftz`."""
NAMED: Final = {"fns": "fns", "vabsdiff2": "vabsdiff2", "vabsdiff4": "vabsdiff4"}
TYPED: Final = {
    "rcp": ("f64",), "sqrt": ("f64",), "rsqrt": ("f64",), "abs": ("s64",), "brev": ("b64",), "clz": ("b32",),
}  # fmt: skip
SPELLED: Final[dict[tuple[str, ...], str]] = {
    ("min", "f64"): "extreme_f64",
    ("max", "f64"): "extreme_f64",
    ("mul", "lo", "s64"): "mul_lo_64",
    ("mul", "lo", "u64"): "mul_lo_64",
    ("mul", "hi", "s64"): "mul_hi_s64",
    ("mul", "hi", "u64"): "mul_hi_u64",
    ("cvt", "rna", "tf32", "f32"): "round_tf32",
    ("ex2", "approx", "f16x2"): "approx_f16x2",
    ("tanh", "approx", "f16x2"): "approx_f16x2",
    ("tanh", "approx", "bf16x2"): "approx_f16x2",
    ("ex2", "approx", "ftz", "bf16x2"): "approx_f16x2",
}


def sequence_of(bound: BoundInstruction) -> str | None:
    """Return what the sequence that ptxas makes of an instruction is called when it stands alone; None: one instruction."""
    opcode = bound.instruction.opcode
    name, kind = opcode[0], opcode[-1]
    if name in ("div", "rem"):
        if kind in ("s32", "u32"):
            return f"{name}_{kind}"
        if kind in ("s64", "u64"):
            return "div_64"
        if kind == "f64":
            return "div_f64"
    if name in NAMED and not (name == "vabsdiff4" and "s32" not in opcode):
        return NAMED[name]
    if kind in TYPED.get(name, ()):
        return f"{name}_{kind}"
    if opcode in SPELLED:
        return SPELLED[opcode]
    if name == "div" and kind == "f32" and "ftz" in opcode and opcode[1] in ("approx", "full"):
        return f"div_{opcode[1]}_ftz"
    if name in APPROXIMATED and kind == "f32" and "ftz" not in opcode:
        # Small operands are scaled before, and results after.
        if "approx" in opcode and name in ("sin", "cos"):
            return "sin_approx"
        return f"{name}_{opcode[1]}" if opcode[1] in ("approx", "full") else f"{name}_f32"
    if name in ("div", "rcp", "sqrt") and kind == "f32":
        return None if "approx" in opcode or "full" in opcode else f"{name}_f32"
    if name == "mbarrier" and opcode[1] == "init":
        return "mbarrier_init"
    if name == "prefetch" and "tensormap" in opcode:
        return "prefetch_tensormap"
    if bound.form.name.startswith(("cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor")):
        return "bulk_copy"
    return None
