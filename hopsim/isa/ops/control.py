"""Branches, the end of a thread, trap and brkpt.

The generated code itself follows a branch: the unit `branch` ends a straight run, the label (none: the end of the
thread) is where it goes, the guard decides.  The operation of such a form is never called.
"""

from __future__ import annotations

from collections.abc import Callable

from hopsim.isa.context import Context
from hopsim.isa.forms.form import form, shared_form

BRA = 'PTX ISA 8.7, "bra"'


def _nothing() -> None:
    """Stand for an operation that the generated code replaces."""


@form("bra{.uni} target:label", uni=("uni",), unit="branch", source=BRA)
def bra(uni: str) -> Callable[[], None]:
    """Go to a label; `.uni` promises that all threads of the warp go together."""
    del uni
    return _nothing


@form("ret{.uni}", uni=("uni",), unit="branch", source='PTX ISA 8.7, "ret"')
def ret(uni: str) -> Callable[[], None]:
    """Return from the entry function: the thread ends."""
    del uni
    return _nothing


@form("exit", unit="branch", source='PTX ISA 8.7, "exit"')
def leave() -> Callable[[], None]:
    """End the thread."""
    return _nothing


@shared_form("trap", unit="control", source='PTX ISA 8.7, "trap"')
def trap() -> Callable[[Context], None]:
    """Abort the grid."""

    def run(ctx: Context) -> None:
        raise ctx.fault("trap was executed", source='PTX ISA 8.7, "trap"')

    return run


@shared_form("brkpt", unit="control", source='PTX ISA 8.7, "brkpt"')
def brkpt() -> Callable[[Context], None]:
    """Stop for a debugger; there is none."""

    def run(ctx: Context) -> None:
        raise ctx.fault("brkpt was executed", "hopsim has no debugger to hand over to", 'PTX ISA 8.7, "brkpt"')

    return run
