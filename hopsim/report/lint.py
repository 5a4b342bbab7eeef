"""What `hopsim lint` found in a PTX text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from hopsim.report.quantities import plural
from hopsim.report.story import Story


@dataclass(frozen=True, slots=True)
class KernelLint:
    """One entry: how many of its instructions are modelled, and what of it is wrong or not modelled.

    Args:
        unsupported: (line, text, why).
        errors: what is wrong, rendered.
    """

    name: str
    instructions: int
    unsupported: tuple[tuple[int, str, str], ...] = ()
    errors: tuple[str, ...] = ()


def lint_report(path: str, kernels: Sequence[KernelLint]) -> Story:
    """Return the findings with their places, then one line for each entry."""
    text = Text()
    for kernel in kernels:
        for error in kernel.errors:
            text.append(f"{error}\n", style="red")
        for line, source, why in kernel.unsupported:
            text.append(f"{path}:{line}: ", style="bold")
            text.append(f"{source}\n")
            text.append(f"    {why}\n", style="yellow")
    for kernel in kernels:
        every = "all " if kernel.instructions > 1 else ""
        state = f"ok, {every}{plural(kernel.instructions, 'instruction')} modelled"
        if kernel.unsupported:
            state = f"{plural(len(kernel.unsupported), 'instruction')} not modelled"
        if kernel.errors:
            more = f", {state}" if kernel.unsupported else ""
            state = plural(len(kernel.errors), "error") + more
        text.append(f"{path}: {kernel.name}: {state}\n")
    if not kernels:
        text.append(f"{path}: ok, but it has no entry\n")
    text.rstrip()
    return Story(text)
