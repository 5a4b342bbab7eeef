"""How much may be on its way to an SM."""

from __future__ import annotations

from typing import Any, cast

from hopsim.hw.machine.operations import Operation
from hopsim.hw.timing.load_gate import Cpc, Load, LoadGate

L1_BYTES = 40


def operation(name: str) -> Operation:
    return cast(Operation, name)


def passing(gate: LoadGate, count_bytes: int) -> list[tuple[Any, float]]:
    return cast(list[tuple[Any, float]], gate.leave(Load(count_bytes)))


def test_loads_pass_in_order_when_there_is_room() -> None:
    gate = LoadGate(Cpc(100), L1_BYTES)
    assert gate.enter(operation("a"), 0.0, Load(60))
    assert not gate.enter(operation("b"), 1.0, Load(50))
    # Nobody overtakes, whether there is room or not.
    assert not gate.enter(operation("c"), 2.0, Load(10))
    assert not gate.enter(operation("d"), 3.0, Load(60))
    assert passing(gate, 60) == [("b", 1.0), ("c", 2.0)]
    assert passing(gate, 10) == []
    assert passing(gate, 50) == [("d", 3.0)]
    assert passing(gate, 60) == []


def test_one_load_always_passes() -> None:
    gate = LoadGate(Cpc(100), L1_BYTES)
    assert gate.enter(operation("large"), 0.0, Load(1000))
    assert not gate.enter(operation("next"), 0.0, Load(1000))
    assert passing(gate, 1000) == [("next", 0.0)]


def test_sms_that_have_work_share_evenly() -> None:
    cpc = Cpc(600)
    for busy, share in ((1, 600), (2, 300), (3, 200)):
        cpc.note(1)
        assert cpc.share_bytes == share, busy
    cpc.note(-1)
    assert cpc.share_bytes == 300
    first, second = LoadGate(cpc, L1_BYTES), LoadGate(cpc, L1_BYTES)
    assert first.enter(operation("a"), 0.0, Load(300))
    assert not first.enter(operation("b"), 0.0, Load(1))
    assert second.enter(operation("c"), 0.0, Load(300))
    # Alone it has all of it.
    cpc.note(-1)
    assert second.enter(operation("d"), 0.0, Load(300))


def test_what_comes_through_l1_needs_room_there_and_keeps_its_place_in_the_row() -> None:
    gate = LoadGate(Cpc(100), L1_BYTES)
    assert gate.enter(operation("a"), 0.0, Load(30, through_l1=True))
    assert gate.enter(operation("past"), 0.0, Load(30))
    assert not gate.enter(operation("b"), 1.0, Load(20, through_l1=True))
    assert not gate.enter(operation("c"), 2.0, Load(10))
    # What does not go through L1 makes no room in it.
    assert gate.leave(Load(30)) == []
    assert gate.leave(Load(30, through_l1=True)) == [("b", 1.0), ("c", 2.0)]
    # One load always passes.
    assert gate.leave(Load(20, through_l1=True)) == []
    assert gate.enter(operation("large"), 3.0, Load(60, through_l1=True))
