"""128 bits: registers, loads, stores and atomics of `.b128`."""

from __future__ import annotations

import numpy as np
import pytest

from hopsim.errors import MachineFault
from tests.machine.programs import ORDERS, UNTIMED, expect, launch

LANES = np.arange(32, dtype=np.uint64)
TOP = np.uint64(1 << 63)
PAIR = """
.reg .b128 %q<8>;
cvt.u64.u32 %rd1, %t;
or.b64 %rd2, %rd1, 0x8000000000000000;
mov.b128 %q1, {%rd1, %rd2};
mul.wide.u32 %rd3, %t, 16;
add.u64 %rd4, %out, %rd3;
"""


@pytest.mark.parametrize("space", ["shared", "local", "generic", "relaxed", "register"])
def test_a_word_of_128_bits_goes_through_memory(space: str) -> None:
    there = {
        "shared": ".shared .align 16 .b8 box[512]; mov.u64 %rd5, box; add.u64 %rd5, %rd5, %rd3;"
        " st.shared.b128 [%rd5], %q1; ld.shared.b128 %q2, [%rd5];",
        "local": ".local .align 16 .b8 mine[32]; st.local.b128 [mine+16], %q1; ld.local.b128 %q2, [mine+16];",
        "generic": "st.b128 [%rd4], %q1; ld.b128 %q2, [%rd4];",
        "relaxed": "st.relaxed.gpu.global.b128 [%rd4], %q1; ld.relaxed.gpu.global.b128 %q2, [%rd4];",
        "register": "mov.b128 %q2, %q1;",
    }[space]  # fmt: skip
    body = f"{PAIR}{there} mov.b128 {{%rd6, %rd7}}, %q2; st.global.v2.b64 [%rd4], {{%rd7, %rd6}};"
    expected = np.stack([LANES | TOP, LANES], 1).reshape(-1)
    expect(body, expected, dtype=np.uint64, orders=ORDERS)


def test_a_parameter_of_128_bits_and_a_guard() -> None:
    body = f"""{PAIR}
    setp.lt.u32 %p1, %t, 5;
    .param .align 16 .b8 given[16];
    @%p1 mov.b128 %q1, {{7, 9}};
    mov.b128 {{%r1, %r2, %r3, %r4}}, %q1;
    mov.b128 %q3, {{%r3, %r4, %r1, %r2}};
    st.global.b128 [%rd4], %q3;
    """
    low, high = np.where(LANES < 5, 7, LANES), np.where(LANES < 5, 9, LANES | TOP)
    expect(body, np.stack([high, low], 1).reshape(-1).astype(np.uint64), dtype=np.uint64)


@pytest.mark.parametrize("space", ["global", "shared"])
def test_compare_and_swap_of_16_bytes_looks_at_all_of_them(space: str) -> None:
    cell = "%out" if space == "global" else "box"
    begin = "" if space == "global" else """
    .shared .align 16 .b8 box[16];
    setp.eq.u32 %p2, %t, 0;
    @%p2 st.shared.v2.b64 [box], {0, 0};
    bar.sync 0;"""  # fmt: skip
    end = "" if space == "global" else """
    bar.sync 0;
    ld.shared.v2.b64 {%rd6, %rd7}, [box];
    @%p2 st.global.v2.b64 [%out], {%rd6, %rd7};"""  # fmt: skip
    # Each thread counts both words up by different steps, and tries again where another was there first.
    body = f"""
    .reg .b128 %q<8>;
    {begin}
    mov.u64 %rd1, 0; mov.u64 %rd2, 0;
L:  add.u64 %rd3, %rd1, 1;
    sub.u64 %rd4, %rd2, 3;
    mov.b128 %q1, {{%rd1, %rd2}};
    mov.b128 %q2, {{%rd3, %rd4}};
    atom.{space}.cas.b128 %q3, [{cell}], %q1, %q2;
    mov.b128 {{%rd8, %rd9}}, %q3;
    setp.ne.u64 %p1, %rd8, %rd1;
    setp.ne.or.u64 %p1, %rd9, %rd2, %p1;
    mov.u64 %rd1, %rd8; mov.u64 %rd2, %rd9;
    @%p1 bra L;
    {end}
    """
    blocks = 2 if space == "global" else 1
    expected = np.array([64 * blocks, -3 * 64 * blocks & (1 << 64) - 1], np.uint64)
    expect(body, expected, dtype=np.uint64, grid=blocks, block=64, orders=UNTIMED)


def test_only_one_half_of_16_bytes_is_no_match() -> None:
    body = """
    .reg .b128 %q<8>;
    mov.b128 %q1, {5, 7};
    mov.b128 %q2, {1, 2};
    atom.global.cas.b128 %q3, [%out], %q1, %q2;
    st.global.b128 [%out+16], %q3;
    """
    _, got, _ = launch(body, block=1, out=4, dtype=np.uint64, fill=5)
    assert got.tolist() == [5, 5, 5, 5]


def test_an_exchange_of_16_bytes_hands_on_whole_values() -> None:
    # The values wander through the cell: each is seen once, both words of one thread.
    body = f"{PAIR} atom.global.exch.b128 %q2, [%out+512], %q1; st.global.b128 [%rd4], %q2;"
    for order in ORDERS:
        _, got, _ = launch(body, order, out=66, dtype=np.uint64, fill=99)
        pairs = sorted(map(tuple, got.reshape(-1, 2).tolist()))
        mine = [(k, k | 1 << 63) for k in range(32)]
        assert pairs == sorted([(99, 99), *mine])


@pytest.mark.parametrize("what", ["ld.global.b128 %q1", "atom.global.exch.b128 %q1"])
def test_16_bytes_are_aligned(what: str) -> None:
    rest = ", %q2" if "exch" in what else ""
    body = f".reg .b128 %q<3>; mov.b128 %q2, {{1, 2}}; {what}, [%out+8]{rest};"
    with pytest.raises(MachineFault, match="not aligned to 16|16-byte"):
        launch(body)
