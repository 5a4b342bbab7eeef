"""The body of a function in one list, its names resolved: what `hopsim.isa.ptx.scope` makes of the tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from hopsim.isa.ptx.ast import Directive, Immediate, Sink, SourceLoc, Span, Variable


@dataclass(frozen=True, slots=True)
class Register:
    """One virtual register of a function after scope resolution.

    `name` is unique in the function (`%r5`; `P1` of the third scope that declares it is `P1@3`); a
    component of a vector register is a register of its own (`abcd.x`), and so is each half of one of
    `.b128` (`q.lo`, `q.hi`, 64 bits wide).  `type` is the declared type
    without the dot; `width_bits` is 1 for predicates.  `index` is its position in
    `FlatBody.registers`.
    """

    name: str
    type: str
    width_bits: int
    index: int


@dataclass(frozen=True, slots=True)
class LabelRef:
    """A branch target: the index of the instruction it stands before.

    At the end of a body that is `len(instructions)`.
    """

    name: str
    target: int


@dataclass(frozen=True, slots=True)
class SymbolRef:
    """Variable, parameter, function, special register (`%tid.x`), `.callprototype` label or part of a register (`%r1.b0`).

    `kind`: `special`, `param`, `shared`, `global`, `const`, `local`, `function`, `prototype`, `part`.
    """

    kind: str
    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class FlatAddress:
    """An address operand after resolution."""

    base: Register | SymbolRef | Immediate
    offset: int = 0
    coordinates: tuple[FlatOperand, ...] = ()


@dataclass(frozen=True, slots=True)
class FlatVector:
    """A vector operand after resolution; a whole vector register becomes its components, one of `.b128` its halves.

    The label of a `.branchtargets` list becomes the vector of its `LabelRef`s (`brx.idx %r1, ts`).
    """

    items: tuple[FlatOperand, ...]

    @property
    def halves(self) -> tuple[Register, ...]:
        """The two halves of a register of `.b128` that this is; none of any other vector."""
        halves = tuple(
            [item for item in self.items if isinstance(item, Register) and item.type == "b128"]
        )
        return halves if len(halves) == len(self.items) == 2 else ()


@dataclass(frozen=True, slots=True)
class FlatPair:
    """`p|q` after resolution."""

    first: FlatOperand
    second: FlatOperand


@dataclass(frozen=True, slots=True)
class FlatNegated:
    """`!p` after resolution."""

    register: Register


@dataclass(frozen=True, slots=True)
class FlatParameter:
    """`[param0+4]` of an expanded call: the registers that hold what `ld.param` and `st.param` name, one an element."""

    registers: tuple[Register, ...]


FlatOperand: TypeAlias = (
    Register
    | Immediate
    | SymbolRef
    | LabelRef
    | FlatAddress
    | FlatParameter
    | FlatVector
    | FlatPair
    | FlatNegated
    | Sink
)


@dataclass(frozen=True, slots=True)
class FlatInstruction:
    """An instruction whose names are resolved.  `guard` is (register, negated)."""

    span: Span
    loc: SourceLoc | None
    guard: tuple[Register, bool] | None
    opcode: tuple[str, ...]
    operands: tuple[FlatOperand, ...]

    @property
    def mnemonic(self) -> str:
        """The full dotted opcode, as written."""
        return ".".join(self.opcode)


@dataclass(frozen=True, slots=True)
class FlatBody:
    """A function body in one list.

    `registers` are those that the body uses, in order of first use.  `labels` maps unique label
    names to instruction indices; `variables` are the `.shared`, `.local`, `.param` variables
    declared in the body, with unique names.  `prototypes` are its `.callprototype` and `.calltargets`
    lists by the name of their `SymbolRef`.
    """

    instructions: tuple[FlatInstruction, ...]
    registers: tuple[Register, ...]
    labels: dict[str, int]
    variables: tuple[Variable, ...]
    prototypes: dict[str, Directive] = field(default_factory=dict[str, Directive])

    @property
    def carry(self) -> Register:
        """The condition code CC.CF, a register that no text names: it follows those of the body."""
        return Register("CC.CF", "pred", 1, len(self.registers))
