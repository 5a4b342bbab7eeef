"""Where lanes of one warp that parted meet again.

A join has parties: strands, or joins inside it that count as one.  A party arrives, leaves the program, or is brought
together with lanes outside by a collective; when all that are left have arrived they become one strand and go on.  It is
opened before that where a missing lane asks for news in a loop (`yielding`), and, as a last resort, where nothing else can
happen: PTX promises progress to each thread, not that warps converge.

Source: PTX ISA 8.7 "Independent Thread Scheduling"; CUDA C++ Programming Guide, "Independent Thread Scheduling".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hopsim.hw.machine.strand import StrandCore


class Join:
    """The point where parted lanes meet: `expected` parties have not left, `arrived` of them wait here."""

    __slots__ = ("arrived", "expected", "outer", "segment")

    def __init__(self, segment: int, expected: int, outer: Join | None) -> None:
        self.segment = segment
        self.expected = expected
        self.outer = outer
        self.arrived: list[StrandCore] = []


def meet(strand: StrandCore, join: Join) -> StrandCore | None:
    """Let a strand arrive at its join; return the strand that goes on from there now, if any."""
    join.arrived.append(strand)
    if len(join.arrived) < join.expected:
        strand.machine.parted[join] = None
        return None
    return _close(join)


def leave(strand: StrandCore) -> None:
    """Let a strand leave its join for good: whoever waits there for it alone goes on."""
    join = strand.join
    strand.join = None
    if join is not None:
        _withdraw(join)


def share(strands: Sequence[StrandCore]) -> None:
    """Give strands that become one the innermost join that all of them are inside of."""
    common = strands[0].join
    while common is not None and not all(_is_inside(strand, common) for strand in strands):
        common = common.outer
    for strand in strands:
        while strand.join is not common:
            _step_out(strand)
    if common is not None:
        common.expected -= len(strands) - 1


def open_all(parted: dict[Join, None]) -> bool:
    """Let lanes that wait at joins go on without the missing ones; return whether there were any."""
    joins = list(parted)
    parted.clear()
    for join in joins:
        _open(join)
    return bool(joins)


def give_way(strand: StrandCore) -> None:
    """Let lanes that wait for a strand, at any join that it is inside of, go on without it."""
    join = strand.join
    while join is not None:
        # Who is let go may join those who wait farther out.
        outer = join.outer
        if join.arrived:
            strand.machine.parted.pop(join, None)
            _open(join)
        join = outer


def _open(join: Join) -> None:
    """Let lanes that wait at a join go on without the missing ones."""
    strands, join.arrived = join.arrived, []
    if not strands:
        return
    leader = _unite(strands, join.segment)
    join.expected -= len(strands) - 1
    outer: Join | None = join
    while outer is not None and outer.segment == join.segment:
        outer = outer.outer
        _step_out(leader)
    leader.is_apart = True
    leader.machine.spawned(leader)


def _is_inside(strand: StrandCore, join: Join) -> bool:
    inner = strand.join
    while inner is not None and inner is not join:
        inner = inner.outer
    return inner is join


def _step_out(strand: StrandCore) -> None:
    """Move a strand from its join to the one around it."""
    join = strand.join
    assert join is not None
    strand.join = join.outer
    if join.outer is not None:
        join.outer.expected += 1
    _withdraw(join)


def _withdraw(join: Join) -> None:
    """Count one party less; who waits for nobody else now goes on."""
    inner: Join | None = join
    while inner is not None:
        inner.expected -= 1
        if inner.expected:
            if len(inner.arrived) == inner.expected:
                leader = _close(inner)
                if leader is not None:
                    leader.machine.spawned(leader)
            return
        # Nobody is left in it, so that the join around it has a party less.
        inner = inner.outer


def _close(join: Join) -> StrandCore | None:
    """Make one strand of all that arrived; return it, or None when it waits at a join around this one."""
    while True:
        leader = _unite(join.arrived, join.segment)
        leader.machine.parted.pop(join, None)
        outer = join.outer
        leader.join = outer
        leader.segment = join.segment
        if outer is None or outer.segment != join.segment:
            return leader
        outer.arrived.append(leader)
        if len(outer.arrived) < outer.expected:
            leader.machine.parted[outer] = None
            return None
        join = outer


def _unite(strands: Sequence[StrandCore], segment: int) -> StrandCore:
    leader, *others = sorted(strands, key=lambda strand: strand.key)
    if others:
        leader.absorb(others, leader.machine.program[segment].live)
    return leader
