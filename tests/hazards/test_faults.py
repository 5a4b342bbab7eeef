"""What a fault is told as: its rule whatever the program calls its things, and the threads that faulted."""

from __future__ import annotations

import numpy as np
import pytest

import hopsim as hs
from hopsim.results import Access

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
COPY = """
.visible .entry copy(.param .u64 x)
{
    .reg .b32 %t, %a;
    .reg .b64 %p;
    ld.param.u64 %p, [x];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %p, %t, 4, %p;
    ACCESS
    ret;
}
"""
NAMED = """
.global .b32 NAME[4];
.visible .entry store()
{
    .reg .b32 %t;
    .reg .b64 %p;
    mov.u32 %t, %tid.x;
    mov.u64 %p, NAME;
    mad.wide.u32 %p, %t, 4, %p;
    st.global.u32 [%p], %t;
    ret;
}
"""


def faulted(text: str, block: int, *sizes: int) -> tuple[str, Access]:
    """The rule of the fault that ends a launch with arrays of these sizes, and who faulted."""
    gpu = hs.Gpu()
    args = [gpu.array(np.zeros(size, np.uint32)) for size in sizes]
    module = hs.loads(HEAD + text)
    kernel = module[next(iter(module))]
    result = gpu.launch(kernel, 1, block, args=args, schedule="in-order")
    assert result.faulted
    (fault,) = (one for one in result.hazards if one.is_fault)
    assert fault.second is not None
    return fault.rule, fault.second


@pytest.mark.parametrize(
    "access",
    ["ld.global.u32 %a, [%p];", "st.global.u32 [%p], %t;", "atom.global.add.u32 %a, [%p], 1;"],
)
@pytest.mark.parametrize(("size", "warp", "lane"), [(63, 1, 31), (40, 1, 8), (5, 0, 5)])
def test_the_thread_that_faulted_is_named(access: str, size: int, warp: int, lane: int) -> None:
    rule, side = faulted(COPY.replace("ACCESS", access), 64, size)
    assert (rule, side.cta, side.warp, side.lanes) == ("HS703", (0, 0, 0), warp, 1 << lane)


def test_the_thread_of_a_misaligned_address_is_named() -> None:
    access = "setp.eq.u32 %q, %t, 37;\n @%q add.u64 %p, %p, 1;\n ld.global.u32 %a, [%p];"
    text = COPY.replace("ACCESS", access).replace(".reg .b64", ".reg .pred %q;\n .reg .b64")
    rule, side = faulted(text, 64, 64)
    assert (rule, side.warp, side.lanes) == ("HS704", 1, 1 << 5)


def test_an_address_that_all_threads_share_names_the_first_warp() -> None:
    access = "ld.global.u32 %a, [%u];"
    text = COPY.replace("ACCESS", access).replace(
        "mov.u32 %t", "add.u64 %u, %p, 0x100;\n mov.u32 %t"
    )
    rule, side = faulted(text.replace(".reg .b64 %p", ".reg .b64 %p, %u"), 64, 4)
    assert (rule, side.warp, side.lanes) == ("HS703", 0, 0)


@pytest.mark.parametrize(
    "name", ["descriptor_table", "table", "not_aligned", "never_written", "shared_sums"]
)
def test_names_of_the_program_do_not_choose_the_rule(name: str) -> None:
    rule, side = faulted(NAMED.replace("NAME", name), 32)
    assert (rule, side.lanes, side.space) == ("HS703", 1 << 4, "global")
