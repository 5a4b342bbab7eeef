"""printf's formats: what is printed, against glibc where it is at hand."""

from __future__ import annotations

import ctypes
import platform
import struct

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hopsim.hw.machine.formatting import MOST_ARGUMENTS, parse_format

IS_GLIBC = platform.libc_ver()[0] == "glibc"


def pack(*values: int | float | bytes) -> bytes:
    """Pack arguments as nvcc does: ints of 4 bytes, doubles and pointers (here bytes: 8 raw ones) at multiples of 8."""
    data = b""
    for value in values:
        if isinstance(value, int):
            data += struct.pack("<I", value & 0xFFFFFFFF)
            continue
        data += b"\0" * (-len(data) % 8)
        data += struct.pack("<d", value) if isinstance(value, float) else value
    return data


def wide(value: int) -> bytes:
    return struct.pack("<Q", value & (1 << 64) - 1)


def fill(form: str, *values: int | float | bytes) -> str:
    packed = pack(*values)
    template = parse_format(form.encode())

    def word(offset: int, count: int) -> int:
        return int.from_bytes(packed[offset : offset + count], "little")

    return template.fill(word, lambda address: b"string at %d" % address if address else b"(null)")


@pytest.mark.parametrize(
    ("form", "values", "printed"),
    [
        ("plain", (), "plain"),
        ("100%% %", (), "100% %"),
        ("%z %d %k", (5,), "%z 5 %k"),
        ("%d %i %u", (-1, -2, -1), "-1 -2 4294967295"),
        ("%lld %ld %llu", (wide(-5), wide(-6), wide(-7)), "-5 -6 18446744073709551609"),
        ("%hd %hu", (70000, 70000), "4464 4464"),
        ("%.*f|%hhd|%zu|%jd|%d", (5,), "%.*f|%hhd|%zu|%jd|5"),
        ("%d%lld%d", (1, wide(2), 3), "123"),
        ("[%5d|%-5d|%05d|%+d|% d]", (42, 42, -42, 42, 42), "[   42|42   |-0042|+42| 42]"),
        ("[%.3d|%5.3d|%05.3d|%.0d]", (7, 7, 7, 0), "[007|  007|  007|]"),
        ("%x %X %#x %#X %#x %o %#o %#o", (255, 255, 255, 255, 0, 8, 8, 0), "ff FF 0xff 0XFF 0 10 010 0"),
        ("[%*d|%-*d|%*.2f]", (5, 42, 5, 42, 6, 3.14159), "[   42|42   |  3.14]"),
        ("[%*d]", (-5, 42), "[42   ]"),
        ("%c%c[%3c|%-3c]", (104, 105, 33, 33), "hi[  !|!  ]"),
        ("%s|%.3s|%10.2s|%-4.1s|", (wide(9), wide(9), wide(9), wide(9)), "string at 9|str|        st|s   |"),
        ("%s %p %p [%8p]", (wide(0), wide(0), wide(0xABC), wide(0x1)), "(null) (nil) 0xabc [     0x1]"),
        ("%f %.0f %#.0f %10.3f|%-10.1f|", (1.5, 2.5, 2.5, -3.14159, 2.25), "1.500000 2 2.     -3.142|2.2       |"),
        ("%e %.2E %g %G %g %#g", (12345.678, 0.00012, 1e-5, 1e20, 100000.0, 1.0),
         "1.234568e+04 1.20E-04 1e-05 1E+20 100000 1.00000"),
        ("%f %F %5g %05g %+f", (float("inf"), float("-inf"), float("nan"), float("inf"), float("inf")),
         "inf -INF   nan   inf +inf"),
        ("%a %a %A %a %.1a %.0a %a", (1.0, -0.0, 0.1, 1e-310, 1.96875, 1.5, 3.0),
         "0x1p+0 -0x0p+0 0X1.999999999999AP-4 0x0.012688b70e62bp-1022 0x2.0p+0 0x2p+0 0x1.8p+1"),
    ],
)  # fmt: skip
def test_printed(form: str, values: tuple[int | float | bytes, ...], printed: str) -> None:
    assert fill(form, *values) == printed


def test_arguments_are_counted_and_those_past_32_are_left() -> None:
    assert parse_format(b"%d %*.1f %% %s").arguments == 4
    template = parse_format(b"%d" * (MOST_ARGUMENTS + 2))
    assert template.arguments == MOST_ARGUMENTS
    assert template.fill(lambda offset, _: offset // 4 % 10, bytes) == "0123456789" * 3 + "01%d%d"


FLAGS = st.lists(st.sampled_from("-+ #0"), max_size=3, unique=True).map("".join)
WIDTH = st.sampled_from(["", "1", "7", "12"])
PRECISION = st.sampled_from(["", ".", ".0", ".1", ".5", ".14"])


@pytest.mark.skipif(not IS_GLIBC, reason="glibc is the reference")
@settings(max_examples=400, deadline=None)
@given(FLAGS, WIDTH, PRECISION, st.sampled_from("diuxXoeEfFgGaA"), st.sampled_from(["", "ll", "h"]),
       st.integers(-(2**63), 2**63 - 1), st.floats(width=64) | st.sampled_from([0.5, 1.5, 2.5, 1e300, 5e-324]))  # fmt: skip
@example("#", "", ".0", "a", "", 0, 1.0)
@example("", "", ".1", "a", "", 0, 5e-324)
def test_as_glibc_prints(
    flags: str, width: str, precision: str, kind: str, size: str, number: int, value: float
) -> None:
    libc = ctypes.CDLL(None)
    buffer = ctypes.create_string_buffer(2000)
    if kind in "eEfFgGaA":
        form, given_here, there = f"%{flags}{width}{precision}{kind}", value, ctypes.c_double(value)
    else:
        form = f"%{flags}{width}{precision}{size}{kind}"
        given_here = wide(number) if size == "ll" else number
        there = ctypes.c_longlong(number) if size == "ll" else ctypes.c_int(number & 0xFFFFFFFF)
    libc.snprintf(buffer, 2000, form.encode(), there)
    assert fill(form, given_here) == buffer.value.decode()
