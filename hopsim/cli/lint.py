"""`hopsim lint FILE`: everything in a PTX text that hopsim does not model, before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hopsim.cli.options import JsonOption, PtxArgument
from hopsim.errors import PtxError

if TYPE_CHECKING:
    from hopsim.isa.program.kernel import Kernel
    from hopsim.report.lint import KernelLint


def lint(
    file: PtxArgument,
    json_file: JsonOption = None,
) -> None:
    """Parse and decode a PTX text; list what is not modelled (exit 4) or wrong (exit 2)."""
    from dataclasses import asdict

    from hopsim.cli.output import Output
    from hopsim.isa.program.kernel import load
    from hopsim.report.lint import lint_report

    output = Output(json_file)
    module = load(file)
    kernels = [_examine(module[name]) for name in module]
    output.show(lint_report(str(file), kernels))
    code = 0
    if any(kernel.unsupported for kernel in kernels):
        code = 4
    if any(kernel.errors for kernel in kernels):
        code = 2
    content = [
        {
            **asdict(kernel),
            "unsupported": [
                {"line": line, "text": text, "why": why} for line, text, why in kernel.unsupported
            ],
        }
        for kernel in kernels
    ]
    output.finish({"command": "lint", "file": str(file), "kernels": content}, code)


def _examine(kernel: Kernel) -> KernelLint:
    from hopsim.report.lint import KernelLint

    try:
        found = kernel.examined
    except PtxError as error:
        # A name of the module that is defined twice.
        return KernelLint(kernel.name, 0, (), (str(error),))
    errors = tuple(str(error) for error in found.errors)
    return KernelLint(kernel.name, found.instructions, found.unsupported, errors)
