"""Where lanes that have jumped there have nothing more to do than to leave."""

from __future__ import annotations

from typing import Any

import pytest

from hopsim.isa.program.leaving import leaving
from tests.hw.timing.kernels import kernel

WORK = "bar.warp.sync -1;"
"""Of which ptxas makes no predicate."""


def lines(body: str) -> list[str]:
    """Return the first opcode of each segment from which lanes leave."""
    program: Any = kernel(body).program(True)
    return [
        ".".join(program[number].instructions[0].instruction.opcode)
        for number in sorted(leaving(program))
    ]


def test_a_branch_to_a_return_is_an_exit() -> None:
    assert lines(f"@%p1 bra $end; {WORK} $end: ret;") == ["ret"]


def test_lanes_that_branch_on_by_the_same_predicate_only_leave() -> None:
    again = f"@%p1 bra $more; {WORK} $more: @%p1 bra $end; {WORK} $end: ret;"
    assert lines(again) == ["bra", "ret"]


@pytest.mark.parametrize(
    "second",
    [
        pytest.param("@!%p1 bra $end;", id="the others leave"),
        pytest.param("@%p2 bra $end;", id="another predicate"),
        pytest.param(f"{WORK} @%p1 bra $end;", id="something to do before"),
    ],
)
def test_whoever_has_more_to_do_stays(second: str) -> None:
    assert lines(f"@%p1 bra $more; {WORK} $more: {second} {WORK} $end: ret;") == ["ret"]


def test_whoever_comes_by_another_predicate_stays() -> None:
    body = f"@%p1 bra $more; {WORK} @%p2 bra $more; {WORK} $more: @%p1 bra $end; {WORK} $end: ret;"
    assert lines(body) == ["ret"]
