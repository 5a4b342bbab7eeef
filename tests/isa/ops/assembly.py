"""One line of PTX through the real front end, decoder and code generator, on given register values."""

from __future__ import annotations

import itertools
import re
import subprocess
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from hopsim.isa.catalog import FORMS
from hopsim.isa.forms.bound import BoundInstruction
from hopsim.isa.forms.decode import decode
from hopsim.isa.forms.form import Form, OperandSpec
from hopsim.isa.ops.accesses import LENGTH
from hopsim.isa.program import flow
from hopsim.isa.program.codegen import generate
from hopsim.isa.ptx.ast import Function
from hopsim.isa.ptx.flat import FlatBody
from hopsim.isa.ptx.parser import parse
from hopsim.isa.ptx.scope import flatten
from hopsim.isa.types import TYPES

# Register names begin with their class: p (pred), b (8 bits), h (16), r (32), rd (64), f (f32), fd (f64), q (b128).
CLASSES = {
    "p": "pred",
    "b": "b8",
    "h": "b16",
    "r": "b32",
    "rd": "b64",
    "f": "f32",
    "fd": "f64",
    "q": "b128",
}
BY_WIDTH = {1: "p", 8: "b", 16: "h", 32: "r", 64: "rd", 128: "q"}
HEADER = (
    ".version 8.7\n.target sm_90a\n.address_size 64\n.entry k(.param .u64 P)\n{\n"
    ".shared .align 16 .b8 smem[64];\n"
    + "".join(f".reg .{kind} {name}<10>;\n" for name, kind in CLASSES.items())
)
FIRST_LINE = HEADER.count("\n") + 1


class Threads:
    """What the forms of this package ask of the executing threads."""

    def __init__(self) -> None:
        self.sp = {"%tid.x": 7, "%laneid": 7}
        self.shared_base = 0x400
        self.calls: list[tuple[Any, ...]] = []

    def to_generic(self, space: str, address: Any) -> Any:
        self.calls.append(("to_generic", space, address))
        return address ^ 0x1000

    def from_generic(self, space: str, address: Any) -> Any:
        self.calls.append(("from_generic", space, address))
        return address ^ 0x1000

    def is_space(self, space: str, address: Any) -> Any:
        self.calls.append(("is_space", space, address))
        return address >= 0x1000


@lru_cache(4096)
def body_of(*lines: str) -> FlatBody:
    module = parse(HEADER + "\n".join(lines) + "\n}\n", "test.ptx")
    (entry,) = module.items
    assert isinstance(entry, Function)
    return flatten(entry, module).right()


def bind(line: str) -> BoundInstruction:
    body = body_of(line)
    (instruction,) = body.instructions
    return decode(instruction, body.carry, "test.ptx", line)


@dataclass
class Outcome:
    registers: dict[str, Any]
    threads: Threads = field(repr=False)


def execute(
    lines: str | tuple[str, ...], values: dict[str, Any], threads: Threads | None = None
) -> Outcome:
    """Run straight-line code; registers that have no value are 0 (False)."""
    texts = (lines,) if isinstance(lines, str) else lines
    body = body_of(*texts)
    strand = threads or Threads()
    known = (*body.registers, body.carry)
    registers: list[Any] = [values.get(r.name, False if r.width_bits == 1 else 0) for r in known]
    for run in compiled(*texts):
        run(strand, registers)
    return Outcome({r.name: registers[r.index] for r in known}, strand)


@lru_cache(4096)
def compiled(*lines: str) -> list[Any]:
    """The bodies of the segments of straight-line code."""
    body = body_of(*lines)
    bound = [decode(instruction, body.carry) for instruction in body.instructions]
    plans = flow.segments(bound, set())
    nothing = [0] * len(plans)
    segments = generate(bound, plans, nothing, nothing, {"smem": 0x20, "P": 0}, frozenset(), True)
    return [segment.body for segment in segments]


# --- a sample text of every spelling of a form ----------------------------------------------------


def spellings(form: Form) -> list[dict[str, str]]:
    """Every legal choice of slots."""
    choices = [
        ("", *slot.alternatives) if slot.optional else slot.alternatives for slot in form.slots
    ]
    found: list[dict[str, str]] = []
    for words in itertools.product(*choices):
        slots = {slot.name: word for slot, word in zip(form.slots, words, strict=True)}
        if form.check is None or not form.check(slots):
            found.append(slots)
    return found


def opcode(form: Form, slots: dict[str, str]) -> str:
    """The opcode, with modifiers in the order of the syntax string."""
    text = form.syntax.split(" ")[0]
    for name, word in slots.items():
        text = text.replace("{." + name + "}", f".{word}" if word else "").replace(
            "{" + name + "}", word
        )
    return text


def sample(form: Form, slots: dict[str, str]) -> tuple[str, dict[str, int]]:
    """A text of the form, and the width in bits of every register that it reads."""
    operands: list[str] = []
    reads: dict[str, int] = {"CC.CF": 1} if form.takes_carry else {}
    count = 0

    def register(spec: OperandSpec) -> str:
        nonlocal count
        width = TYPES[slots.get(spec.type, spec.type)].width_bits
        name = f"{BY_WIDTH[width]}{count}"
        count += 1
        if spec.role == "read":
            reads[name] = width
        return name

    width_of = {spec.name: TYPES[slots.get(spec.type, spec.type)].width_bits
                for spec in form.operands if slots.get(spec.type, spec.type) in TYPES}  # fmt: skip
    for spec in form.operands:
        if spec.shape == "label":
            return "", {}
        if spec.type == "b128":
            operands.append(f"q{count}")
            reads |= {f"q{count}.{half}": 64 for half in ("lo", "hi") if spec.role == "read"}
            count += 1
        elif spec.shape == "vector":
            whole = next(width for name, width in width_of.items() if name != spec.name)
            length = LENGTH[slots["v"]] if "v" in slots else whole // width_of[spec.name]
            items = [register(spec) for _ in range(length)]
            operands.append("{" + ", ".join(items) + "}")
        elif spec.immediate:
            operands.append("0xCA")
        elif spec.second is not None:
            operands.append(f"{register(spec)}|{register(spec.second)}")
        else:
            operands.append(register(spec))
    return f"{opcode(form, slots)} {', '.join(operands)};", reads


OWN = ("compare", "control", "convert", "floating", "integer", "logic", "moves", "video")


def own_forms() -> list[Form]:
    """The pure and local forms of the families tested here."""
    return [
        f for f in FORMS if f.factory.__module__.rsplit(".", 1)[-1] in OWN and f.unit != "branch"
    ]


def refused(lines: list[str], folder: Path, head: str = HEADER) -> dict[int, str]:
    """The lines that ptxas refuses, by index.  It stops early at some errors, so the rest is asked again.

    `head` is what stands before them, up to the body of a kernel.
    """
    source, binary = folder / "lines.ptx", folder / "lines.cubin"
    first_line = head.count("\n") + 1
    bad: dict[int, str] = {}
    live = list(range(len(lines)))
    while True:
        source.write_text(head + "\n".join(lines[k] for k in live) + "\nret;\n}\n")
        command = ["ptxas", "-arch=sm_90a", "-o", str(binary), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.findall(r"line (\d+); error\s*: (.*)", done.stderr)
        assert found or done.returncode == 0, done.stderr
        if not found:
            return bad
        for number, message in found:
            bad.setdefault(live[int(number) - first_line], message)
        live = [k for k in live if k not in bad]
