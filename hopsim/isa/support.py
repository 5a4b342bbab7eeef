"""The support matrix: what `hopsim isa` prints, derived from the declared forms."""

from __future__ import annotations

from typing import NamedTuple

from hopsim.isa.catalog import FORMS
from hopsim.isa.forms.form import Form


class SupportRow(NamedTuple):
    """One declared form.

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


def support_matrix(word: str = "") -> list[SupportRow]:
    """Return every declared form, sorted by base opcode, then in order of declaration.

    Args:
        word: keep only forms whose base opcode begins with it (`mbarrier`, `cvt`, `ld.param`); empty keeps all.
    """
    rows = [_row(form) for form in FORMS]
    chosen = [
        row for row in rows if not word or row.name == word or row.name.startswith(f"{word}.")
    ]
    return sorted(chosen, key=lambda row: row.name)
