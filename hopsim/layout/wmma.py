"""Which lane and register hold which element of a wmma fragment, on an H100; PTX leaves it open.

Fragments are those of `mma.sync` m16n8k16 (tf32: m16n8k4, twice; f64: m8n8k4), whatever their layout in memory; those of
m8n32k16 are of the transposed product.  f16 fragments of A and B have eight registers, in which what does not fill them
is repeated.

>>> fragment("a", "m16n16k16", "bf16").registers
((0, 0), (8, 0), (0, 8), (8, 8))

Source: recorded on an H100, tests/silicon/probes/wmma.npz; PTX ISA 8.7 "Matrix Fragments for WMMA" for their sizes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

SHAPES: Final = {
    "m16n16k16": (16, 16, 16), "m32n8k16": (32, 8, 16), "m8n32k16": (8, 32, 16), "m16n16k8": (16, 16, 8),
    "m8n8k4": (8, 8, 4),
}  # fmt: skip
"""M, N and K."""
F16_REGISTERS: Final = 8
"""Of a fragment of A or B."""
INPUT_BITS: Final = {"f16": 16, "bf16": 16, "s8": 8, "u8": 8, "tf32": 32, "f64": 64}


class Fragment(NamedTuple):
    """Which elements each thread holds: those of row or column `group + outer`, at `step * thread + inner` and behind it.

    `group` is lane / 4, `thread` lane % 4.

    Args:
        registers: (outer, inner) of each register.
        outer_is_row: whether `group` counts rows of the matrix.
        bits: of an element.
        step: elements of a register, and those of C that neighbour each other.
        rows, columns: of the matrix.
    """

    registers: tuple[tuple[int, int], ...]
    outer_is_row: bool
    bits: int
    step: int
    rows: int
    columns: int

    @property
    def elements(self) -> int:
        """Elements in a register, which has 32 bits, or 64 of f64."""
        return max(1, 32 // self.bits)

    @property
    def register_bits(self) -> int:
        """Width of a register."""
        return max(32, self.bits)


def fragment(which: str, shape: str, kind: str) -> Fragment:
    """Return the fragment of A, B or C ("a", "b", "c"; D is like C)."""
    m, n, k = SHAPES[shape]
    bits = INPUT_BITS.get(kind, 32)
    each = max(1, 32 // bits)
    is_turned = (m, n) == (8, 32)
    if kind == "f64":
        places = [(0, 0), (0, 1)] if which == "c" else [(0, 0)]
        rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n)}[which]
        return Fragment(tuple(places), which != "b", bits, len(places), rows, columns)
    if which == "c":
        pair = [(8 * half, one) for half in (0, 1) for one in range(2 // each)]
        wide = not is_turned and n > 8
        blocks = [(0, 8 * i) if wide else (16 * i, 0) for i in range(2)]
        places = [(outer + o, inner + i) for outer, inner in blocks for o, i in pair]
        return Fragment(tuple(places), not is_turned, bits, 2, m, n)
    # The operand whose rows come in sixteens is the first of `mma.sync`.
    is_first = (which == "a") != is_turned
    size = m if which == "a" else n
    depth = range(k // (4 * each))
    if is_first:
        places = [
            (block + 8 * half, 4 * each * i) for block in range(0, size, 16) for i in depth for half in (0, 1)
        ]  # fmt: skip
    else:
        places = [(block, 4 * each * i) for block in range(0, size, 8) for i in depth]
    if kind == "f16":
        places *= F16_REGISTERS // len(places)
    rows, columns = (m, k) if which == "a" else (k, n)
    return Fragment(tuple(places), which == "a", bits, each, rows, columns)
