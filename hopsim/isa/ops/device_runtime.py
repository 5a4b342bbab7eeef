"""Calls of CUDA's device runtime, and where a call through a register ends that is of no function.

A text calls these as functions; `hopsim.isa.program.calls` makes instructions of the calls.

Source: CUDA C++ Programming Guide 13.0 "Formatted Output", "Assertion", "Dynamic Global Memory Allocation and Operations".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hopsim.isa.context import Context
from hopsim.isa.forms.form import shared_form
from hopsim.isa.values import Value

CALL: Final = 'PTX ISA 8.7, "call"'


@shared_form(
    "call.vprintf d:b32, format:b64, arguments:b64", unit="control", effects=("reads [format]", "reads [arguments]"), source=CALL,
)  # fmt: skip
def vprintf() -> Callable[[Context, Value, Value], Value]:
    """Prints; the number of arguments is the result."""
    return lambda ctx, form, arguments: ctx.print_formatted(form, arguments)


@shared_form(
    "call.__assertfail message:b64, file:b64, line:b32, function:b64, size:b64", unit="control", effects=("reads [message]",), source=CALL,
)  # fmt: skip
def assert_fail() -> Callable[..., None]:
    """Ends the launch with the assertion that failed."""

    def run(ctx: Context, *where: Value) -> None:
        message, file, line, function, _ = where
        ctx.fail_assertion(message, file, line, function)

    return run


@shared_form("call.malloc d:b64, size:b64", unit="control", source=CALL)
def malloc() -> Callable[[Context, Value], Value]:
    """Allocates from the heap of the device; 0 where it has no room."""
    return lambda ctx, size: ctx.heap_allocate(size)


@shared_form("call.free a:b64", unit="control", source=CALL)
def free() -> Callable[[Context, Value], None]:
    """Gives an allocation back to the heap of the device."""
    return lambda ctx, a: ctx.heap_free(a)


@shared_form("call.nowhere a:b64", unit="control", source=CALL)
def nowhere() -> Callable[[Context, Any], None]:
    """Where a call through a register ends whose address is that of no function it can be of."""
    return lambda ctx, a: ctx.call_nowhere(a)


@shared_form("call.again", unit="control", source=CALL)
def again() -> Callable[[Context], None]:
    """Where a call through a register ends that would be recursion."""
    return lambda ctx: ctx.call_again()
