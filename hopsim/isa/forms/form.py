"""How one instruction form is declared: syntax, operand types, semantics, unit, effects, source, side by side.

    @form("add{.sat}.{t} d, a, b", t=("u32", "s32"), sat=("sat",), unit="alu", source='PTX ISA 8.7, "add"')
    def add(sat, t):                      # called once, when the instruction is bound: slots in, callable out
        return integer.make_add(t.width_bits)

The syntax string is the PTX line with slots:

- `word` must be there; `{t}` is a slot whose alternatives are given by keyword; `{.sat}` is an optional slot.
  Modifiers are matched as a set, but for types and layouts, and those that `joined` counts (`hopsim.isa.forms.spelling`);
  where two slots share an alternative (`cvt.{dt}.{at}`) the first one in the text fills the first slot.
- operands: `d` (a name that begins with `d`) is written, any other name is read.  `+{d}` (read and written later) and
  `&{a}` (read later) hand register numbers to the operation instead of values: an asynchronous instruction needs them.
  `name:t` gives its type (a slot or a PTX type; without it, slot `t`).  `name?` may be missing.
  `[a]` is an address, `[a, {c}]` an address with tensor coordinates.  `[param]` and `[dparam]` (written) are parameters
  of an expanded call (`hopsim.isa.program.calls`), which lie in registers.  `{d}` is a vector, `{d}?` a vector or a scalar.
  `d|p:pred` is a pair, `d|p:pred?` a pair whose second half may be missing.  `name:label` is a branch target,
  `{name}:label` a list of them.
  `#name` is an immediate.  `name:clock` is one of the clock special registers.  A type with `~` (`d:t~`) may sit in a wider
  register (PTX "Operand Size Exceeding Instruction-Type Size").

Three kinds of semantics, chosen by the decorator:

- `form`: pure.  The factory returns `op(a, b, ...) -> d` on raw bits (`hopsim.isa.values`); no context.
- `local_form`: `op(ctx, a, ...) -> d`: reads the thread's own context (special registers, parameters), nothing shared.
- `shared_form`: `op(ctx, a, ...)` touches memory, barriers, other lanes or asynchronous units.  It starts a new segment
  of the program, so that a schedule can choose what happens before it.  It returns its destinations, None when it has
  none, or BLOCKED after it has told `ctx` what it waits for; it is then called again when the wait may be over.

Extended precision: `.cc` in the opcode says that the carry flag CC.CF is one more result, after the destinations, and
`takes_carry` that it is one more operand, the last.

From a declaration derive parsing, operand checks, register reads and writes, the bound closure, the support matrix
(`hopsim isa`) and test parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

from hopsim.isa.forms.spelling import Slot, Spelling
from hopsim.isa.types import TYPES, ScalarType

Purity = Literal["pure", "local", "shared"]
Operation = Callable[..., Any]
Factory = Callable[..., "Operation | str"]
Counts = Callable[[dict[str, str]], dict[str, int]]

UNITS: Final = (
    "alu", "imad", "fp32", "fp16", "fp64", "mufu", "convert", "predicate", "move", "branch", "special", "shuffle",
    "lsu_shared", "lsu_global", "lsu_local", "lsu_const", "atomic", "barrier", "cluster_barrier", "mbarrier", "fence",
    "tensor", "tensor_sync", "mma", "matrix_copy", "tma", "tma_sync", "cp_async", "control", "none",
)  # fmt: skip


PARAMETERS: Final = ("param", "dparam")
"""Names of operands that are parameters of calls."""


class _Blocked:
    """The answer of a shared form that cannot proceed yet."""

    def __repr__(self) -> str:
        return "BLOCKED"


BLOCKED: Final = _Blocked()


class Unmodelled(str):
    """What `check` says of a combination that PTX has and hopsim does not."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """One operand as declared.

    `shape` is `scalar`, `address`, `tensor` (address with coordinates), `parameter`, `vector`, `maybe_vector`, `pair`,
    `maybe_pair`, `label`, `labels` or `clock`; `role` is `read`, `write`, `update`
    or `borrow` (the last two by register number).  `second` describes the second half of a pair.
    """

    name: str
    shape: str
    role: str
    type: str
    relaxed: bool
    optional: bool
    second: OperandSpec | None = None
    immediate: bool = False


@dataclass(frozen=True)
class Form:
    """One declared instruction form."""

    syntax: str
    base: tuple[str, ...]
    required: tuple[str, ...]
    slots: tuple[Slot, ...]
    operands: tuple[OperandSpec, ...]
    factory: Factory
    purity: Purity
    unit: str
    source: str
    effects: tuple[str, ...] = ()
    quiet: bool = False
    may_block: bool = False
    data: bool = False
    data_operands: tuple[str, ...] = ()
    collective: bool = False
    takes_carry: bool = False
    joined: int = 0
    check: Callable[[dict[str, str]], str] | None = None
    agree: Callable[[dict[str, str], Sequence[Any]], str] | None = None
    counts: Counts | None = None
    limits: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])
    type_slots: frozenset[str] = frozenset()
    doc: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """The base opcode, for example `mbarrier.arrive`."""
        return ".".join(self.base)

    @cached_property
    def spelling(self) -> Spelling:
        """Which opcodes it has."""
        slots = {slot.name: slot for slot in self.slots}
        head = self.syntax.partition(" ")[0].removeprefix(self.name)
        words: list[str] = _WORD.findall(head)
        items = tuple(slots[word.strip("{}.")] if word[0] == "{" else word for word in words)
        return Spelling(self.base, items, self.joined)

    @property
    def uses_carry(self) -> bool:
        """Whether it takes or leaves CC.CF."""
        return self.takes_carry or "cc" in (*self.base, *self.required)

    def bind(self, slots: dict[str, str]) -> Operation | str:
        """Call the factory: type slots arrive as `ScalarType` (or None), the others as words (or `""`)."""
        given: dict[str, str | ScalarType | None] = {
            name: TYPES.get(word) if name in self.type_slots else word
            for name, word in slots.items()
        }
        return self.factory(**given)

    def match(self, opcode: tuple[str, ...]) -> dict[str, str] | None:
        """Return the slot values when `opcode` is an instance of this form, else None.

        Missing optional slots have the value `""`.
        """
        return self.spelling.match(opcode)


_WORD = re.compile(r"\{[^}]*\}|[^.{}]+")
_SLOT = re.compile(r"\{(\.?)(\w+)\}")
_ITEM = re.compile(
    r"(?P<mark>[+&#])?(?:"
    r"\[(?P<addr>\w+)(?:\s*,\s*\{(?P<coords>\w+)\})?\]"
    r"|\{(?P<vec>\w+)\}(?::(?P<vtype>\w+~?))?(?P<maybe>\?)?"
    r"|(?P<name>\w+)(?::(?P<type>\w+~?))?(?:\|(?P<second>\w+)(?::(?P<stype>\w+~?))?(?P<sopt>\?)?)?"
    r")(?P<opt>\?)?$"
)


def _split_operands(text: str) -> list[str]:
    items: list[str] = []
    depth = 0
    current = ""
    for char in text:
        if char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
        if char == "," and depth == 0:
            items.append(current.strip())
            current = ""
        else:
            current += char
    if current.strip():
        items.append(current.strip())
    return items


def _operand(item: str, default: str) -> OperandSpec:
    found = _ITEM.match(item)
    assert found, f"operand {item!r} is not in the syntax language"
    optional = found["opt"] is not None
    mark = found["mark"]

    def typed(text: str | None) -> tuple[str, bool]:
        name = text or default
        return (name[:-1], True) if name.endswith("~") else (name, False)

    def role(name: str) -> str:
        if mark in ("+", "&"):
            return "update" if mark == "+" else "borrow"
        return "write" if name.startswith("d") else "read"

    if found["addr"] in PARAMETERS:
        return OperandSpec(
            found["addr"], "parameter", role(found["addr"]), default, False, optional
        )
    if found["addr"]:
        shape = "tensor" if found["coords"] else "address"
        return OperandSpec(found["addr"], shape, "read", "b64", False, optional)
    if found["vec"]:
        kind, relaxed = typed(found["vtype"])
        if kind == "label":
            return OperandSpec(found["vec"], "labels", "read", kind, False, optional)
        shape = "maybe_vector" if found["maybe"] else "vector"
        return OperandSpec(found["vec"], shape, role(found["vec"]), kind, relaxed, False)
    kind, relaxed = typed(found["type"])
    name = found["name"]
    if kind in ("label", "clock"):
        return OperandSpec(name, kind, "read", kind, False, optional)
    if found["second"]:
        skind, srelaxed = typed(found["stype"])
        second = OperandSpec(found["second"], "scalar", "write", skind, srelaxed, False)
        shape = "maybe_pair" if found["sopt"] else "pair"
        return OperandSpec(name, shape, "write", kind, relaxed, False, second)
    return OperandSpec(name, "scalar", role(name), kind, relaxed, optional, immediate=mark == "#")


def parse_syntax(
    syntax: str, alternatives: dict[str, tuple[str, ...]]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Slot, ...], tuple[OperandSpec, ...]]:
    """Read a syntax string: base words, required words after the first slot, slots, operands."""
    head, _, tail = syntax.partition(" ")
    slots: list[Slot] = []
    for optional, name in _SLOT.findall(head):
        assert name in alternatives, f"{syntax!r}: slot {name} has no alternatives"
        slots.append(Slot(name, alternatives[name], bool(optional)))
    literal = _SLOT.split(head)[0].rstrip(".")
    base = tuple(literal.split("."))
    without_slots = _SLOT.sub("", head[len(literal) :])
    required = tuple(word for word in without_slots.split(".") if word)
    default = "t" if "t" in alternatives else "b32"
    operands = tuple(_operand(item, default) for item in _split_operands(tail))
    return base, required, tuple(slots), operands


class Registry:
    """All declared forms, by first word of the opcode, in order of declaration."""

    def __init__(self) -> None:
        self.by_word: dict[str, list[Form]] = {}
        self._cache: dict[tuple[str, ...], list[tuple[Form, dict[str, str]]]] = {}

    def add(self, form: Form) -> None:
        """Register a form."""
        self.by_word.setdefault(form.base[0], []).append(form)
        self._cache.clear()

    def __iter__(self) -> Iterator[Form]:
        for forms in self.by_word.values():
            yield from forms

    def find(self, opcode: tuple[str, ...]) -> list[tuple[Form, dict[str, str]]]:
        """Return every form that matches `opcode`, with its slot values, longest base first."""
        cached = self._cache.get(opcode)
        if cached is None:
            cached = list[tuple[Form, dict[str, str]]]()
            for form in self.by_word.get(opcode[0], ()):
                slots = form.match(opcode)
                if slots is not None:
                    cached.append((form, slots))
            cached.sort(key=lambda pair: -len(pair[0].base))
            self._cache[opcode] = cached
        return cached


FORMS: Final = Registry()


def _declare(purity: Purity, syntax: str, options: dict[str, Any]) -> Callable[[Factory], Factory]:
    unit = options.pop("unit")
    source = options.pop("source")
    effects = tuple(options.pop("effects", ()))
    flags = {
        key: options.pop(key)
        for key in ("quiet", "may_block", "data", "collective", "takes_carry", "joined")
        if key in options
    }
    data_operands = tuple(options.pop("data_operands", ()))
    check = options.pop("check", None)
    agree = options.pop("agree", None)
    counts = options.pop("counts", None)
    limits = options.pop("limits", {})
    assert unit in UNITS, f"{syntax!r}: unit {unit!r} is not one of {UNITS}"
    base, required, slots, operands = parse_syntax(syntax, options)

    def register(factory: Factory) -> Factory:
        kinds = {slot.name for slot in slots if all(word in TYPES for word in slot.alternatives)}
        FORMS.add(
            Form(syntax, base, required, slots, operands, factory, purity, unit, source, effects,
                 data_operands=data_operands, check=check, agree=agree, counts=counts, limits=limits,
                 type_slots=frozenset(kinds), doc=(factory.__doc__ or "").strip(), **flags)
        )  # fmt: skip
        return factory

    return register


def form(syntax: str, **options: Any) -> Callable[[Factory], Factory]:
    """Declare a pure form: `op(a, b, ...) -> d`.

    Args:
        syntax: see the module docstring.
        options: alternatives of each slot (tuples of words), and `unit`, `source`, `effects`, `check`, `takes_carry`,
            `joined`.

    `check(slots)` returns what is wrong with a combination of slots, or the empty string (`Unmodelled` where only hopsim
    lacks it), `agree(slots, operands)` what is wrong with operands that fit one by one; `counts(slots)` gives the number of
    items of each vector operand, by name; `limits` the values that immediates may have, by operand.
    """
    return _declare("pure", syntax, options)


def local_form(syntax: str, **options: Any) -> Callable[[Factory], Factory]:
    """Declare a form that reads the thread's own context: `op(ctx, a, ...) -> d`."""
    return _declare("local", syntax, options)


def shared_form(syntax: str, **options: Any) -> Callable[[Factory], Factory]:
    """Declare a form that other agents can see: `op(ctx, a, ...) -> d | None | BLOCKED`.

    Besides `form`'s options: `quiet` (the step goes on after it: nothing outside the warp sees it), `may_block`,
    `data` (its destinations hold data that a `values=False` run does not compute), `data_operands` (operands that carry
    such data; the operation is given None for them), `collective` (all lanes of a warp take part, so its guard must be
    uniform over the warp).
    """
    return _declare("shared", syntax, options)
