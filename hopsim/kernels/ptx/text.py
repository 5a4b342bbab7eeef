"""A small writer of PTX text: registers, labels, guards, comments.

It knows layout and names only; what an instruction means is left to whoever writes it.

>>> k = PtxEntry("twice", [Param("n", ".u32")], [".reqntid 32"])
>>> n = k.let(".b32", "n", "ld.param.u32", "[n]")
>>> _ = k.let(".b32", "double", "add.s32", n, n, note="n + n")
>>> k.emit("ret")
>>> print(k.text().split(")")[1].strip())
.reqntid 32
{
    .reg .b32 %n, %double;
<BLANKLINE>
    ld.param.u32            %n, [n];
    add.s32                 %double, %n, %n;                        // n + n
    ret;
}
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

_OPCODE_COLUMN = 24
_NOTE_COLUMN = 68
_REGS_A_LINE = 6


@dataclass(frozen=True, slots=True)
class Reg:
    """One PTX register: its name with `%`, and its type such as `.b32`."""

    name: str
    kind: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Param:
    """One kernel parameter: `kind` is its type, `array_bytes` the size of a by-value structure."""

    name: str
    kind: str
    array_bytes: int = 0

    def __str__(self) -> str:
        if self.array_bytes:
            return f".param .align 64 {self.kind} {self.name}[{self.array_bytes}]"
        return f".param {self.kind} {self.name}"


Operand = Reg | int | str


def address(base: Operand, offset: int = 0) -> str:
    """Return the memory operand `[base]` or `[base+offset]`."""
    return f"[{base}+{offset}]" if offset else f"[{base}]"


def vector(items: Sequence[Operand]) -> str:
    """Return the operand `{a, b, ...}`."""
    return "{" + ", ".join(str(item) for item in items) + "}"


@dataclass(slots=True)
class _Block:
    """One `{ ... }`: its register declarations come first, whatever order they were asked in."""

    singles: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    ranges: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])

    def declarations(self) -> list[str]:
        lines: list[str] = []
        for kind, regs in self.singles.items():
            for first in range(0, len(regs), _REGS_A_LINE):
                names = ", ".join(regs[first : first + _REGS_A_LINE])
                lines.append(f".reg {kind} {names};")
        return lines + self.ranges


class PtxEntry:
    """The text of one `.entry`, written from top to bottom.

    Args:
        name: entry name.
        params: its parameters in order.
        directives: performance directives, one a line, between parameters and body.
    """

    def __init__(self, name: str, params: Sequence[Param], directives: Sequence[str]) -> None:
        self.name = name
        self._params = list(params)
        self._directives = list(directives)
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}
        self._blocks = [_Block()]

    def _unique(self, name: str) -> str:
        candidate, count = name, self._counts.get(name, 1)
        while candidate in self._taken:
            count += 1
            candidate = f"{name}_{count}"
        self._counts[name] = count
        self._taken.add(candidate)
        return candidate

    def reg(self, kind: str, name: str) -> Reg:
        """Declare a register in the current block; a name already taken gets a number."""
        unique = self._unique(f"%{name}")
        self._blocks[-1].singles.setdefault(kind, []).append(unique)
        return Reg(unique, kind)

    def regs(self, kind: str, name: str, count: int) -> list[Reg]:
        """Declare `%name0` to `%name<count-1>` in the current block."""
        unique = self._unique(f"%{name}")
        if unique[-1].isdigit():  # ptxas takes all digits at the end for the index
            unique = self._unique(f"{unique}_")
        self._blocks[-1].ranges.append(f".reg {kind} {unique}<{count}>;")
        return [Reg(f"{unique}{index}", kind) for index in range(count)]

    def emit(
        self,
        opcode: str,
        *operands: Operand,
        guard: Reg | None = None,
        unless: Reg | None = None,
        note: str = "",
    ) -> None:
        """Write one instruction, executed where predicate `guard` is true or `unless` is false."""
        prefix = f"@{guard} " if guard else f"@!{unless} " if unless else ""
        text = prefix + opcode
        if operands:
            listed = ", ".join(str(operand) for operand in operands)
            text = f"{text:<{_OPCODE_COLUMN - 1}} {listed}"
        self._line(text + ";", note)

    def let(self, kind: str, name: str, opcode: str, *operands: Operand, note: str = "") -> Reg:
        """Declare a register, write the instruction that gives it its value, return it."""
        result = self.reg(kind, name)
        self.emit(opcode, result, *operands, note=note)
        return result

    def label(self, name: str) -> str:
        """Return a label name that no other label of this entry has."""
        return self._unique(name)

    def place(self, label: str) -> None:
        """Put a label here."""
        self._blocks[-1].lines.append(f"{'    ' * (len(self._blocks) - 1)}{label}:")

    def comment(self, text: str) -> None:
        """Write a comment on its own line, after an empty one."""
        lines = self._blocks[-1].lines
        if lines:
            lines.append("")
        lines.append(f"{self._indent()}// {text}")

    @contextmanager
    def loop(
        self, left: Reg, more: Reg, name: str, step: int = 1, *, nounroll: bool = False
    ) -> Generator[None]:
        """Write a loop that is left when a counter has come to zero.

        Args:
            left: the counter, 32 bits; at least `step` before.
            more: predicate of the loop.
            name: of its label.
            step: taken off the counter each time.
            nounroll: whether ptxas is asked not to unroll it.
        """
        again = self.label(name)
        self.place(again)
        if nounroll:
            self.pragma("nounroll")
        yield
        self.emit("sub.u32", left, left, step)
        self.emit("setp.ne.u32", more, left, 0)
        self.emit("bra", again, guard=more)

    def pragma(self, word: str) -> None:
        """Write what ptxas is asked, as at the head of a loop."""
        self._blocks[-1].lines.append(f'{self._indent()}.pragma "{word}";')

    @contextmanager
    def block(self) -> Generator[None]:
        """Write `{ ... }`; registers declared inside are local to it."""
        self._blocks.append(_Block())
        yield
        inner = self._blocks.pop()
        indent = self._indent()
        out = self._blocks[-1].lines
        out.append(f"{indent}{{")
        out.extend(f"{indent}    {line}" for line in inner.declarations())
        out.append("")
        out.extend(inner.lines)
        out.append(f"{indent}}}")

    def text(self) -> str:
        """Return the entry as PTX, without module directives."""
        assert len(self._blocks) == 1, "text() inside an open block"
        body = self._blocks[0]
        params = ",\n".join(f"    {param}" for param in self._params)
        lines = [f".visible .entry {self.name}(", params, ")", *self._directives, "{"]
        lines += [f"    {line}" for line in body.declarations()]
        lines += ["", *body.lines, "}", ""]
        return "\n".join(line.rstrip() for line in lines)

    def _indent(self) -> str:
        return "    " * len(self._blocks)

    def _line(self, text: str, note: str) -> None:
        text = self._indent() + text
        self._blocks[-1].lines.append(f"{text:<{_NOTE_COLUMN - 1}} // {note}" if note else text)


def module_text(entry: PtxEntry, shared_symbol: str, shared_align: int = 1024) -> str:
    """Return a whole sm_90a module: header, dynamic shared memory symbol, one entry.

    Source: PTX ISA 8.7 "PTX Module Directives"; 8.7 is what a CUDA 12.8 driver reads.
    """
    header = [
        ".version 8.7",
        ".target sm_90a",
        ".address_size 64",
        "",
        f".extern .shared .align {shared_align} .b8 {shared_symbol}[];",
        "",
    ]
    return "\n".join(header) + "\n" + entry.text()
