"""The support matrix: what `hopsim isa` prints, derived from the declared forms."""

from __future__ import annotations

from typing import Final, NamedTuple

from hopsim.isa.catalog import FORMS
from hopsim.isa.forms.form import Form
from hopsim.isa.wmma import HALF_AND_BYTE, ROUNDINGS, SOURCE, SPACES
from hopsim.layout.wmma import SHAPES


class SupportRow(NamedTuple):
    """One form.

    `spellings` counts the opcodes that the form accepts, taking each modifier in one place only.
    """

    name: str
    syntax: str
    slots: tuple[tuple[str, tuple[str, ...], bool], ...]
    unit: str
    purity: str
    effects: tuple[str, ...]
    source: str
    doc: str
    spellings: int


def _row(form: Form) -> SupportRow:
    spellings = 1
    for slot in form.slots:
        spellings *= len(slot.alternatives) + slot.optional
    slots = tuple((slot.name, slot.alternatives, slot.optional) for slot in form.slots)
    first_sentence = form.doc.split("\n\n")[0].replace("\n", " ")
    return SupportRow(
        form.name,
        form.syntax,
        slots,
        form.unit,
        form.purity,
        form.effects,
        form.source,
        first_sentence,
        spellings,
    )


_LAYOUT: Final = ("layout", ("row", "col"), False)
_SHAPE: Final = ("shape", tuple(SHAPES), False)
_SPACE: Final = ("space", SPACES, True)
_WMMA: Final = (
    SupportRow(
        "wmma.load", "wmma.load.{operand}.sync.aligned.{layout}.{shape}{.space}.{t} {d}, [a], {stride}",
        (
            ("operand", ("a", "b", "c"), False), _LAYOUT, _SHAPE, _SPACE,
            ("t", (*HALF_AND_BYTE, "tf32", "f32", "s32", "f64"), False),
        ),
        "lsu_global", "shared", ("reads [a]",), SOURCE, "Loads a fragment: plain loads, as ptxas makes them.", 312,
    ),
    SupportRow(
        "wmma.mma",
        "wmma.mma.sync.aligned.{alayout}.{blayout}.{shape}.{dt}{.at.bt}.{ct}{.rnd}{.satfinite} {d}, {a}, {b}, {c}",
        (
            ("alayout", ("row", "col"), False), ("blayout", ("row", "col"), False), _SHAPE,
            ("dt", ("f32", "f16", "s32", "f64"), False), ("at", ("bf16", "tf32", "s8", "u8", "f64"), True),
            ("ct", ("f32", "f16", "s32", "f64"), False), ("rnd", ROUNDINGS, True), ("satfinite", ("satfinite",), True),
        ),
        "mma", "shared", (), SOURCE, "Multiplies fragments: mma.sync for each half of D.", 132,
    ),
    SupportRow(
        "wmma.store", "wmma.store.d.sync.aligned.{layout}.{shape}{.space}.{t} [a], {d}, {stride}",
        (_LAYOUT, _SHAPE, _SPACE, ("t", ("f16", "f32", "s32", "f64"), False)),
        "lsu_global", "shared", ("writes [a]",), SOURCE, "Stores a fragment: plain stores, as ptxas makes them.", 88,
    ),
)  # fmt: skip
"""What is no form of its own, but others stand for it."""


def support_matrix(word: str = "") -> list[SupportRow]:
    """Return every form, declared or lowered to others, sorted by base opcode, then in order of declaration.

    Args:
        word: keep only forms whose base opcode begins with it (`mbarrier`, `cvt`, `ld.param`); empty keeps all.
    """
    rows = [*map(_row, FORMS), *_WMMA]
    chosen = [
        row for row in rows if not word or row.name == word or row.name.startswith(f"{word}.")
    ]
    return sorted(chosen, key=lambda row: row.name)
