"""Branches by an index: `brx.idx` and its list of targets."""

from __future__ import annotations

import numpy as np
import pytest

from hopsim.errors import MachineFault, PtxError, ValuesNeeded
from tests.machine.programs import ORDERS, build, expect, launch

LANES = np.arange(64)
SWITCH = """
    {index}
    mov.u32 %r9, 7;
ts: .branchtargets A, B, C, B;
    {guard} brx.idx{uni} %r1, ts;
    mov.u32 %r9, 5;
    bra E;
A:  mov.u32 %r9, 100;
    bra E;
B:  mul.lo.u32 %r9, %r1, 10;
    bra E;
C:  mov.u32 %r9, 300;
E:  add.u32 %r9, %r9, %t;
    shfl.sync.idx.b32 %r8, %r9, 0, 31, -1;
    mad.lo.u32 %r9, %r8, 1000, %r9;
    st.global.u32 [%mine], %r9;
"""


def chosen(index: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """What SWITCH stores: the lanes meet again, and read what the first one has."""
    table = np.array([100, 10, 300, 30])
    value = np.where(taken, table[index], 5) + LANES
    return (value[LANES // 32 * 32] * 1000 + value).astype(np.uint32)


EVERYONE = np.ones(64, bool)
INDICES = {
    "one for all": ("mov.u32 %r1, 2;", np.full(64, 2)),
    "by lane": ("and.b32 %r1, %t, 3;", LANES & 3),
    "by warp": ("shr.u32 %r1, %t, 5;", LANES >> 5),
    "two of a warp": ("setp.lt.u32 %p1, %t, 7; selp.u32 %r1, 3, 0, %p1;", np.where(LANES < 7, 3, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", INDICES)
def test_lanes_go_where_their_index_leads_and_meet_again(name: str) -> None:
    text, index = INDICES[name]
    body = SWITCH.format(index=text, guard="", uni=".uni" if name == "one for all" else "")
    expect(body, chosen(index, EVERYONE), block=64, orders=(*ORDERS, {"schedule": "timed"}))


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("name", INDICES)
def test_a_guard_falls_through(name: str, negated: bool) -> None:
    text, index = INDICES[name]
    guard = f"setp.gt.u32 %p2, %t, 20; @{'!' if negated else ''}%p2"
    expect(
        SWITCH.format(index=text, guard=guard, uni=""),
        chosen(index, (LANES > 20) ^ negated),
        block=64,
    )


def test_a_loop_that_ends_by_index_and_a_target_behind_the_end() -> None:
    body = """
    mov.u32 %r1, 0;
    mov.u32 %r2, %t;
    {
ts: .branchtargets DONE, DONE, AGAIN;
AGAIN:
    add.u32 %r1, %r1, 1;
    shr.u32 %r2, %r2, 1;
    st.global.u32 [%mine], %r1;
    min.u32 %r3, %r2, 2;
    brx.idx %r3, ts;
DONE:
    }
    """
    steps = [max(1, int(t // 2).bit_length()) for t in range(32)]
    expect(body, np.array(steps, np.uint32), orders=ORDERS)


def test_a_function_with_a_list_is_called_twice() -> None:
    module = """
    .func (.reg .b32 d) f(.reg .b32 a)
    {
    ts: .branchtargets A, B;
        brx.idx a, ts;
    A:  mov.u32 d, 11;
        ret;
    B:  mov.u32 d, 22;
    }
    """
    body = """
    and.b32 %r1, %t, 1;
    call (%r2), f, (%r1);
    xor.b32 %r1, %r1, 1;
    call (%r3), f, (%r1);
    mad.lo.u32 %r2, %r2, 100, %r3;
    st.global.u32 [%mine], %r2;
    """
    expect(body, np.where(np.arange(32) & 1, 2211, 1122), module=module)


def test_an_index_outside_of_the_list_is_a_fault() -> None:
    body = SWITCH.format(index="mov.u32 %r1, %t;", guard="", uni="")
    with pytest.raises(MachineFault, match="index 4 is outside of the list of 4 targets"):
        launch(body)
    launch(body, block=4)


def test_the_index_must_be_known() -> None:
    rows = ".shared .align 16 .b8 rows[512]; mov.u32 %r50, rows; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r50];"
    body = SWITCH.format(index=rows, guard="", uni="")
    with pytest.raises(ValuesNeeded):
        launch(body, values=False)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("brx.idx %rd1, ts;", "operand a is .u32 .32 bits., but register %rd1 is .b64"),
        ("brx.idx %f1, ts;", "operand a is .u32, but register %f1 is .f32"),
        ("brx.idx %r1, A;", "label of a .branchtargets list"),
        ("bra ts;", "operand target must be a label"),
        ("mov.u32 %r1, ts;", "operand a must be a register or an immediate"),
    ],
)
def test_what_ptxas_refuses_is_refused(line: str, why: str) -> None:
    with pytest.raises(PtxError, match=why):
        assert build(f"ts: .branchtargets A, B; {line} A: B:").unsupported == []
