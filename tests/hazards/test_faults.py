"""What a fault is told as: its rule whatever the program calls its things, and the threads that faulted."""

from __future__ import annotations

import pytest

from hopsim.findings import Access
from tests.machine.programs import launch

STORE = "mov.u64 %rd1, NAME; mad.wide.u32 %rd1, %t, 4, %rd1; st.global.u32 [%rd1], %t;"


def faulted(body: str, words: int, block: int = 64, module: str = "") -> tuple[str, Access]:
    """The rule of the fault that ends a launch with an output array of so many words, and who faulted."""
    result, _, _ = launch(body, out=words, block=block, module=module, check=True)
    assert result.faulted
    (fault,) = (one for one in result.hazards if one.is_fault)
    assert fault.second is not None
    return fault.rule, fault.second


@pytest.mark.parametrize(
    "access",
    [
        "ld.global.u32 %r1, [%mine];",
        "st.global.u32 [%mine], %t;",
        "atom.global.add.u32 %r1, [%mine], 1;",
    ],
)
@pytest.mark.parametrize(("size", "warp", "lane"), [(63, 1, 31), (40, 1, 8), (5, 0, 5)])
def test_the_thread_that_faulted_is_named(access: str, size: int, warp: int, lane: int) -> None:
    rule, side = faulted(access, size)
    assert (rule, side.cta, side.warp, side.lanes) == ("HS703", (0, 0, 0), warp, 1 << lane)


def test_the_thread_of_a_misaligned_address_is_named() -> None:
    body = "setp.eq.u32 %p1, %t, 37; @%p1 add.u64 %mine, %mine, 1; ld.global.u32 %r1, [%mine];"
    rule, side = faulted(body, 64)
    assert (rule, side.warp, side.lanes) == ("HS704", 1, 1 << 5)


def test_an_address_that_all_threads_share_names_the_first_warp() -> None:
    rule, side = faulted("add.u64 %rd1, %out, 0x100; ld.global.u32 %r1, [%rd1];", 4)
    assert (rule, side.warp, side.lanes) == ("HS703", 0, 0)


@pytest.mark.parametrize(
    "name", ["descriptor_table", "table", "not_aligned", "never_written", "shared_sums"]
)
def test_names_of_the_program_do_not_choose_the_rule(name: str) -> None:
    variable = f".global .b32 {name}[4];"
    rule, side = faulted(STORE.replace("NAME", name), 32, 32, variable)
    assert (rule, side.lanes, side.space) == ("HS703", 1 << 4, "global")


# Whatever a misuse of a barrier says, a barrier does not lie in global memory.
@pytest.mark.parametrize(
    ("rule", "arrive"),
    [
        ("HS206", "mbarrier.arrive.shared::cta.b64 _, [bar];"),
        ("HS221", "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 1048576;"),
        ("HS704", "@%p1 mbarrier.init.shared::cta.b64 [bar+4], 1;"),
    ],
)
def test_a_barrier_lies_in_shared_memory(rule: str, arrive: str) -> None:
    body = (
        ".shared .align 8 .b64 bar; setp.eq.u32 %p1, %t, 0;"
        f"@%p1 mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0; {arrive}"
    )
    found, side = faulted(body, 64)
    assert (found, side.space) == (rule, "shared::cta")
