"""Branches and the end of a thread.

The generated code itself follows a branch: the unit `branch` ends a straight run, the label (none: the end of the
thread) is where it goes, the guard decides.  The operation of such a form is never called.
"""

from __future__ import annotations

from collections.abc import Callable

from hopsim.isa.forms.form import form

BRA = 'PTX ISA 8.7, "bra"'


def _nothing() -> None:
    """Stand for an operation that the generated code replaces."""


@form("bra{.uni} target:label", uni=("uni",), unit="branch", source=BRA)
def bra(uni: str) -> Callable[[], None]:
    """Go to a label; `.uni` promises that all threads of the warp go together."""
    del uni
    return _nothing


@form(
    "brx.idx{.uni} a:u32, {targets}:label",
    uni=("uni",),
    unit="branch",
    source='PTX ISA 8.7, "brx.idx"',
)
def brx(uni: str) -> Callable[[], None]:
    """Go to the label whose place in a `.branchtargets` list is the index."""
    del uni
    return _nothing


@form("call{.uni} target:label", uni=("uni",), unit="branch", source='PTX ISA 8.7, "call"')
def call(uni: str) -> Callable[[], None]:
    """Call a function: its body stands in the place of the call, and a guarded call is a branch around it."""
    del uni
    return _nothing


@form("ret{.uni}", uni=("uni",), unit="branch", source='PTX ISA 8.7, "ret"')
def ret(uni: str) -> Callable[[], None]:
    """Return: to the end of the call, or, from the entry function, the thread ends."""
    del uni
    return _nothing


@form("exit", unit="branch", source='PTX ISA 8.7, "exit"')
def leave() -> Callable[[], None]:
    """End the thread."""
    return _nothing
