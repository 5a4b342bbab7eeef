"""How much a kernel may declare in each state space.

Source: ptxas 13.0, which refuses what is larger for sm_90a.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hopsim.errors import PtxError
from hopsim.isa.program.symbols import Placement, parameters, size_of
from hopsim.isa.ptx.ast import Block, Function, PtxModule, Span, Variable

SHARED_MOST: Final = 232_448
CONST_MOST: Final = 65_536
PARAMETERS_MOST: Final = 32_764
PARAMETERS_MOST_BEFORE: Final = 4_352
LARGE_PARAMETERS: Final = (8, 1)
"""The `.version` that has more parameters."""


def too_large(function: Function, placement: Placement, module: PtxModule) -> list[PtxError]:
    """Return what is wrong with the sizes of an entry's shared memory and parameters and of the module's constants."""
    errors: list[PtxError] = []

    def judge(size: int, most: int, what: str, span: Span, hint: str) -> None:
        if size > most:
            errors.append(
                PtxError(
                    f"{what}: {size:,} bytes, at most {most:,}",
                    where=module.path, line=span.line, column=span.column, hint=hint,
                    source="ptxas 13.0",
                )
            )  # fmt: skip

    is_new = module.version >= LARGE_PARAMETERS
    judge(
        parameters(function)[1],
        PARAMETERS_MOST if is_new else PARAMETERS_MOST_BEFORE,
        f"'{function.name}' has too many parameters",
        function.span,
        "pass a pointer to them" if is_new else ".version 8.1 takes 32,764 bytes",
    )
    judge(
        placement.shared_static_bytes,
        SHARED_MOST,
        f"'{function.name}' declares too much shared memory",
        function.span,
        "a CTA of an SM has 227 KiB at most, dynamic memory included",
    )
    constants = [item for item in _variables(module) if item.space == "const"]
    if constants:
        total = sum(size_of(item) for item in constants)
        judge(
            total, CONST_MOST, "the file has too many constants", constants[-1].span,
            "keep them in .global memory",
        )  # fmt: skip
    return errors


def _variables(module: PtxModule) -> Iterator[Variable]:
    """Give all variables of a file, those of bodies too."""
    todo: list[Sequence[object]] = [module.items]
    while todo:
        for item in todo.pop():
            if isinstance(item, Variable):
                yield item
            elif isinstance(item, Block):
                todo.append(item.statements)
            elif isinstance(item, Function) and item.body is not None:
                todo.append(item.body.statements)
