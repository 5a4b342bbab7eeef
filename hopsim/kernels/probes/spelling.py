"""Every spelling of a scalar instruction form as one line of PTX, made from the declaration itself.

>>> from hopsim.isa.catalog import FORMS
>>> form, slots = FORMS.find(("add", "rz", "f32"))[0]
>>> line = spell(form, slots)
>>> line.text
'add.rz.f32 {d0}, {s0}, {s1};'
>>> line.sources, line.results
(('f32', 'f32'), (32,))
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from hopsim.isa.forms.form import Form, OperandSpec
from hopsim.isa.types import TYPES

# Operands that are amounts or positions, not numbers of the instruction's type: opcode -> their places.
_AMOUNTS = {
    "shl": (1,), "shr": (1,), "shf": (2,), "bfe": (1, 2), "bfi": (2, 3), "szext": (1,), "bmsk": (0, 1),
}  # fmt: skip
# Where a form says of which integer type an operand is, and not the opcode, these were recorded on values of bits.
_ANY_BITS = ("add", "sub", "mad", "dp4a", "dp2a")
TABLES = (0x00, 0x80, 0x96, 0xE8, 0xCA, 0x1B, 0xFE, 0x57)
"""Truth tables of lop3: it takes an immediate."""


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction with named places for its registers.

    Args:
        opcode: the mnemonic.
        text: the instruction, with `{s0}`, `{s1}`, ... for sources and `{d0}`, ... for results.
        sources: class of each source: a PTX type, `pred` or `shift`.
        results: width in bits of each result, 1 for a predicate.
    """

    opcode: str
    text: str
    sources: tuple[str, ...]
    results: tuple[int, ...]


def slots_of(form: Form) -> Iterator[dict[str, str]]:
    """Give every legal choice of a form's modifiers."""
    choices = [
        ("", *slot.alternatives) if slot.optional else slot.alternatives for slot in form.slots
    ]
    for chosen in itertools.product(*choices):
        slots = {slot.name: word for slot, word in zip(form.slots, chosen, strict=True)}
        if form.check is None or not form.check(slots):
            yield slots


def _opcode(form: Form, slots: dict[str, str]) -> str:
    text = form.syntax.partition(" ")[0]
    for name, word in slots.items():
        text = text.replace("{." + name + "}", f".{word}" if word else "").replace(
            "{" + name + "}", word
        )
    return text


def _type(spec: OperandSpec, slots: dict[str, str]) -> str:
    return slots.get(spec.type, spec.type)


def _source(form: Form, spec: OperandSpec, slots: dict[str, str]) -> str:
    """Return the type whose telling values an operand gets."""
    kind = TYPES[_type(spec, slots)]
    is_fixed = spec.type not in slots and kind.kind in ("signed", "unsigned")
    return f"b{kind.width_bits}" if is_fixed and form.base[0] in _ANY_BITS else kind.name


def spell(form: Form, slots: dict[str, str], table: int = 0x96) -> Line:
    """Return one spelling of a form whose operands are all scalars.

    Args:
        table: the truth table of lop3.
    """
    opcode = _opcode(form, slots)
    amounts = _AMOUNTS.get(form.base[0], ())
    texts: list[str] = []
    sources: list[str] = []
    results: list[int] = []
    for spec in form.operands:
        if spec.role == "write":
            names: list[str] = []
            for half in (spec, spec.second):
                if half is not None:
                    names.append(f"{{d{len(results)}}}")
                    results.append(TYPES[_type(half, slots)].width_bits)
            texts.append("|".join(names))
        elif form.base[0] == "lop3" and spec.name == "lut":
            texts.append(f"{table:#x}")
        else:
            texts.append(f"{{s{len(sources)}}}")
            sources.append("shift" if len(sources) in amounts else _source(form, spec, slots))
    return Line(opcode, f"{opcode} {', '.join(texts)};", tuple(sources), tuple(results))


def is_scalar(form: Form) -> bool:
    """Whether a form reads and writes nothing but the registers that it names, one each."""
    return (
        form.purity == "pure"
        and not form.uses_carry
        and all(spec.shape in ("scalar", "pair") and not spec.optional for spec in form.operands)
    )
