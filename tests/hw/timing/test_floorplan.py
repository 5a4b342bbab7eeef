"""Where SMs are, against recordings of an H100."""

from __future__ import annotations

from typing import Final

from hopsim.config import load
from hopsim.hw.timing.floorplan import by_cpc, by_port, number_sms

DEVICE: Final = load("h100-sxm").device
PORTS: Final = by_port(number_sms(DEVICE), DEVICE.sms_per_tpc)
CPCS: Final = by_cpc(PORTS, DEVICE.sms_per_tpc, DEVICE.cpcs_per_gpc)


def test_tpcs_outside_share_the_port_of_the_smallest_gpc() -> None:
    assert [len(sms) for sms in PORTS] == [16, 16, 16, 16, 16, 16, 18, 18]
    assert PORTS[0] == [0, 1, 16, 17, 32, 33, 48, 49, *range(124, 132)]
    assert sorted(sm for sms in PORTS for sm in sms) == list(range(DEVICE.sm_count))


def test_cpcs_with_two_tpcs_are_those_that_were_quicker() -> None:
    """Recorded on an H100: CTAs of these 24 SMs took 33,000 cycles, all others 44,000 to 50,000."""
    assert len(CPCS) == 24
    small = sorted(sm for sms in CPCS if len(sms) == 4 for sm in sms)
    assert small == [*range(32, 44), *range(78, 88), 126, 127]
    assert {len(sms) for sms in CPCS} == {4, 6}


def test_a_chip_of_single_tpcs_has_one_port() -> None:
    assert by_port([[0, 1], [2, 3]], 2) == [[0, 1, 2, 3]]
    assert by_cpc([[0, 1, 2, 3]], 2, 3) == [[0, 1], [2, 3]]
