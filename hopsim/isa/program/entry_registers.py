"""How many registers a thread has at entry where a kernel moves them with `setmaxnreg`.

Source: ptxas 13.0 -v for sm_90a ("Used ... registers", C7508).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Final

from hopsim.isa.forms.bound import BoundInstruction, ConstantArg

Directives = Sequence[tuple[str, tuple[int, ...]]]

REGISTERS_OF_SM: Final = 65_536
THREADS_OF_SM: Final = 2_048
CTAS_OF_SM: Final = 32
MOST: Final = 255
"""Of a thread; a larger `.maxnreg` is ignored."""
FEWEST: Final = 24
"""Of a thread; a smaller `.maxnreg` is raised to it."""


def entry_registers(directives: Directives, instructions: Iterable[BoundInstruction]) -> int | None:
    """Return the registers of a thread at entry, or None where ptxas does not know them and ignores `setmaxnreg`.

    They are known by `.maxnreg`, or by a share of the register file: `.maxntid` or `.reqntid` together with a
    `.minnctapersm` that fits an SM.  Both together give the smaller.  Where the kernel takes registers with
    `setmaxnreg.inc`, they are no more than the largest number that it asks for.

    Args:
        directives: of the entry: (name without its dot, numbers).
    """
    known = _bound(dict(directives))
    if known is None:
        return None
    asked = [
        count.value
        for bound in instructions
        if bound.form.name == "setmaxnreg" and ("action", "inc") in bound.slots
        for count in bound.args
        if isinstance(count, ConstantArg)
    ]
    return min(known, max(asked, default=MOST))


def _bound(given: dict[str, tuple[int, ...]]) -> int | None:
    bounds: list[int] = []
    if "maxnreg" in given:
        bounds.append(max(FEWEST, given["maxnreg"][0]))
    threads = given.get("maxntid") or given.get("reqntid")
    if threads and "minnctapersm" in given:
        ctas = given["minnctapersm"][0]
        wanted = -(-prod(threads) // 32) * 32 * ctas
        if ctas <= CTAS_OF_SM and wanted <= THREADS_OF_SM:
            bounds.append(REGISTERS_OF_SM // wanted // 8 * 8)
    return min(*bounds, MOST) if bounds else None


__all__ = ["entry_registers"]
