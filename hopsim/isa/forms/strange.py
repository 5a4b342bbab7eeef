"""What an opcode is that no form has: which word of it PTX cannot have, or which one is like a word that a form has.

Not every word that PTX has is known here, and later versions have more.  So only what no version can have is called wrong:
types and vectors of a size that is no power of two, and shapes of wgmma whose N is none.

    >>> impossible(("mul", "f33"))
    ('PTX has no type .f33', 'did you mean .f32?')
    >>> impossible(("wgmma", "mma_async", "m64n12k16"))
    ('the N of m64n12k16 must be a multiple of 8 up to 256, got 12', 'did you mean .m64n8k16 or .m64n16k16?')

Source: PTX ISA 8.7 "Fundamental Types", "Vectors", "Register Fragments and Shared Memory Matrix Layouts".
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final

from hopsim.isa.forms.absent import ABSENT, ONE_WAY
from hopsim.isa.forms.form import FORMS

_TYPE: Final = re.compile(r"([subf])(\d+)(x\d+)?", re.ASCII)
# Narrower ones are of matrices: later versions have such of odd sizes.
_NARROWEST: Final = 8
_WIDEST: Final = {"s": 64, "u": 64, "b": 128, "f": 64}
_VECTOR: Final = re.compile(r"v(\d+)", re.ASCII)
_SHAPE: Final = re.compile(r"m(\d+)n(\d+)k(\d+)", re.ASCII)
_N_STEP: Final = 8
_N_MOST: Final = 256


def impossible(opcode: tuple[str, ...]) -> tuple[str, str]:
    """Say what is wrong with a word that no version of PTX can have, and what to try; two empty texts where none is such."""
    for word in opcode[1:]:
        if match := _TYPE.fullmatch(word):
            bits = int(match[2])
            if bits > _NARROWEST and not _is_power_of_two(bits):
                widest = _WIDEST[match[1]]
                near = min(widest, 1 << bits.bit_length() - 1)
                return (
                    f"PTX has no type .{word}",
                    f"did you mean .{match[1]}{near}{match[3] or ''}?",
                )
        elif match := _VECTOR.fullmatch(word):
            if not _is_power_of_two(int(match[1])):
                return f"a vector has 2, 4 or 8 elements, got .{word}", "use .v2 or .v4"
        elif opcode[0] == "wgmma" and (match := _SHAPE.fullmatch(word)):
            m, n, k = (int(number) for number in match.groups())
            if n % _N_STEP or not _N_STEP <= n <= _N_MOST:
                what = f"the N of {word} must be a multiple of {_N_STEP} up to {_N_MOST}, got {n}"
                below = n // _N_STEP * _N_STEP
                near = {min(max(one, _N_STEP), _N_MOST) for one in (below, below + _N_STEP)}
                shapes = " or ".join(f".m{m}n{one}k{k}" for one in sorted(near))
                return what, f"did you mean {shapes}?"
    return "", ""


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def strange(opcode: tuple[str, ...]) -> str:
    """Say what becomes of an opcode that no form has: of which kind it is, or which word of it is like a known one."""
    first, *rest = opcode
    if first in ABSENT:
        return f"is not modelled: {ABSENT[first]}"
    if opcode[:3] in ONE_WAY:
        return f"is not modelled: {ONE_WAY[opcode[:3]]}"
    forms = FORMS.by_word.get(first, ())
    doubt = "is wrong PTX or not modelled"
    if not forms:
        near = get_close_matches(first, FORMS.by_word, n=1, cutoff=0.8)
        return f"{doubt} (did you mean {near[0]}?)" if near else doubt
    words = dict.fromkeys(
        word
        for form in forms
        for word in (*form.base, *form.required, *(w for s in form.slots for w in s.alternatives))
    )
    for word in rest:
        if word not in words:
            near = get_close_matches(word, words, n=1)
            like = f"; did you mean .{near[0]}?" if near else ""
            return f"{doubt}: no form of {first} has .{word}{like}"
    for form in forms:
        if form.spelling.match(opcode, in_order=False) is not None:
            return f"{doubt}: its words stand in this order, {form.syntax.partition(' ')[0]}"
    return doubt
