"""Twins whose one cause shows in several places, or as another rule: see `programs`, and `test_causes` for their hints."""

from __future__ import annotations

from tests.hazards.programs import FULL, Twin, init, load, only, wait

SYNC = "bar.sync 0;\n"
ELECTED = "setp.eq.u32 %p2, %w, 0;\nelect.sync _|%p1, -1;\nand.pred %p2, %p2, %p1;\n"


def _filled(count_bytes: int) -> str:
    """A tile is expected, and fetched, by whom %p2 names."""
    expect = f"@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+{FULL}], {count_bytes}; //b\n"
    fill = expect + load(guard="@%p2 ", count_bytes=count_bytes)
    return init() + SYNC + "-setp.ge.u32 %p2, %t, 0;\n" + only("+", ELECTED) + fill + wait()


COMPANY = [
    # Whether the arrivals are too many or the bytes: one lane should do it.
    Twin("duplicate-issue of an arrive that expects", _filled(2048), (("HS207", "", "b"),)),
    Twin("duplicate-issue of an arrive that expects too much", _filled(8192), (("HS207", "", "b"),)),
]
