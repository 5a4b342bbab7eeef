"""A launch file for a kernel, with what the PTX says filled in: `hopsim run FILE.ptx --template`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hopsim.isa.ptx.flat import FlatAddress, SymbolRef
from hopsim.launch.arguments import MAP_BYTES

if TYPE_CHECKING:
    from hopsim.isa.program.kernel import Kernel
    from hopsim.isa.program.symbols import Parameter

MAP_ALIGN = 64
_SCALARS = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}


def launch_template(kernel: Kernel) -> str:
    """Return the text of a launch file; what the PTX cannot tell is to be filled in."""
    required, largest = kernel.directive("reqntid"), kernel.directive("maxntid")
    block = required or largest or (128,)
    why = "as .reqntid says" if required else ".maxntid allows no more" if largest else "threads"
    lines = [
        f'entry = "{kernel.name}"',
        "grid = 1  # CTAs: a number, or [x, y, z]",
        f"block = {block[0] if len(block) == 1 else list(block)}  # {why}",
    ]
    if kernel.placement.has_dynamic_shared:
        lines.append("shared_bytes = 0  # dynamic shared memory: this kernel uses it")
    arrays: dict[str, str] = {}
    read = _read_parameters(kernel)
    lines.append("args = [")
    lines += [f"  {_argument(kernel, parameter, arrays, read)}" for parameter in kernel.params]
    lines.append("]")
    for name, dtype in arrays.items():
        lines += [
            "", f"[arrays.{name}]", f'dtype = "{dtype}"', "shape = [128, 128]  # outermost first",
            'random = "normal"  # or npy = "FILE", fill = 0, uninitialised = true', f'# save = "{name}.npy"',
        ]  # fmt: skip
    return "\n".join(lines)


def _read_parameters(kernel: Kernel) -> set[str]:
    """Return the parameters that some instruction names; Triton adds two for scratch that few kernels need."""
    symbols = (
        operand.base if isinstance(operand, FlatAddress) else operand
        for instruction in kernel.body.instructions
        for operand in instruction.operands
    )
    return {one.name for one in symbols if isinstance(one, SymbolRef) and one.kind == "param"}


def _argument(kernel: Kernel, parameter: Parameter, arrays: dict[str, str], read: set[str]) -> str:
    """Return the line of one parameter; its array and what it may hold are added to `arrays`."""
    note = f"  # .{parameter.type} {parameter.name}"
    name = f"a{len(arrays)}"
    pointers = [one.name for one in kernel.function.params if "ptr" in one.attributes]
    if parameter.is_array:
        if parameter.size == MAP_BYTES and parameter.align >= MAP_ALIGN:
            arrays[name] = "bfloat16"
            note = f"  # {parameter.name}, a tensor map: box innermost first"
            return f'{{ tensor_map = "{name}", box = [64, 128], swizzle = "128B" }},{note}'
        return f'{{ kind = "struct", size_bytes = {parameter.size} }},  # {parameter.name}'
    if parameter.name in pointers or (parameter.is_pointer and not pointers):
        if parameter.name not in read:
            return f"{{ null = true }},{note}: the kernel does not read it"
        # `.ptr` marks addresses; where no parameter has it, any that is as wide may be one.
        arrays[name] = "float32"
        other = "{ null = true }" if pointers else "{ int64 = 1 }"
        return f'{{ array = "{name}" }},{note}; or {other}'
    bits = parameter.size * 8
    return f"{{ {_SCALARS.get(parameter.type, f'int{bits}')} = 1 }},{note}"
