"""Quantities: what is read, what is written, what is refused."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopsim import units
from hopsim.errors import ConfigError
from hopsim.units import Kind, Quantity, format_quantity, parse, to_bytes_per_clk, to_cycles


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("132", 132, "count"),
        ("92%", 0.92, "fraction"),
        ("228KiB", 233472, "bytes"),
        ("232_448 B", 232448, "bytes"),
        ("80GB", 80_000_000_000, "bytes"),
        ("15ns", 15e-9, "seconds"),
        ("33cycles", 33, "cycles"),
        ("1cycle", 1, "cycles"),
        ("4.06clk", 4.06, "cycles"),
        ("1.98GHz", 1_980_000_000, "hertz"),
        ("3.35TB/s", 3_350_000_000_000, "bytes_per_second"),
        ("64B/clk", 64, "bytes_per_clk"),
        ("4096FLOP/clk", 4096, "flop_per_clk"),
        (".5us", 5e-7, "seconds"),
        ("-2e3B", -2000, "bytes"),
        (7, 7, "count"),
    ],
)
def test_reads(text: str | int, value: float, kind: Kind) -> None:
    quantity = parse(text)
    assert (quantity.value, quantity.kind) == (value, kind)
    assert type(quantity.value) is type(value)


def test_bare_number_is_a_fraction_where_only_that_fits() -> None:
    assert parse(0.92, "fraction") == Quantity(0.92, "fraction")
    assert parse("0.5", "count", "fraction") == Quantity(0.5, "count")


@pytest.mark.parametrize(
    ("text", "expected", "message"),
    [
        (
            "15ns",
            ("bytes_per_second",),
            "dram.bandwidth: expected a bandwidth such as \"3.35TB/s\", got '15ns' (a time)\n"
            "  try: a number with one of the units B/s, KB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s",
        ),
        (
            "5",
            ("cycles", "seconds"),
            'dram.bandwidth: expected a number of clock cycles such as "33cycles"'
            " or a time such as \"15ns\", got '5' (no unit)\n"
            "  try: a number with one of the units cycles, cycle, clk, s, ms, us, ns, ps",
        ),
        (
            "many",
            ("count",),
            "dram.bandwidth: expected a count such as \"132\", got 'many'\n"
            "  try: a number without a unit",
        ),
        (
            "3GBq",
            ("hertz",),
            "dram.bandwidth: expected a frequency such as \"1.98GHz\", got '3GBq': unknown unit 'GBq'\n"
            "  try: a number with one of the units Hz, KHz, MHz, GHz, THz, kHz",
        ),
        (
            "",
            ("hertz",),
            "dram.bandwidth: expected a frequency such as \"1.98GHz\", got ''\n"
            "  try: a number with one of the units Hz, KHz, MHz, GHz, THz, kHz",
        ),
    ],
)
def test_refuses(text: str, expected: tuple[Kind, ...], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, *expected, where="dram.bandwidth")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "shortest"),
    [
        ("3350GB/s", "3.35TB/s"),
        ("233472B", "228KiB"),
        ("0.000000015s", "15ns"),
        ("1980MHz", "1.98GHz"),
        ("4.060cycles", "4.06cycles"),
        ("0.92%", "0.92%"),
        ("0B", "0B"),
        ("-3cycles", "-3cycles"),
    ],
)
def test_writes_shortest(text: str, shortest: str) -> None:
    assert format_quantity(parse(text)) == shortest


_KINDS: tuple[Kind, ...] = (
    "count", "fraction", "bytes", "seconds", "cycles", "hertz", "bytes_per_second", "bytes_per_clk", "flop_per_clk",
)  # fmt: skip


@given(
    kind=st.sampled_from(_KINDS),
    value=st.one_of(st.integers(-(10**15), 10**15), st.floats(1e-15, 1e15, allow_nan=False)),
)
def test_round_trip_is_exact(kind: Kind, value: float) -> None:
    text = format_quantity(Quantity(value, kind))
    assert parse(text, kind) == Quantity(value, kind)


def test_conversions_with_a_clock() -> None:
    assert to_cycles(parse("100ns"), 1.5e9) == 150.0
    assert to_cycles(parse("33cycles"), 1.5e9) == 33
    assert to_bytes_per_clk(parse("3TB/s"), 1.5e9) == 2000.0
    assert to_bytes_per_clk(parse("64B/clk"), 1.5e9) == 64


def test_examples_in_the_docstrings() -> None:
    result = doctest.testmod(units)
    assert (result.failed, result.attempted) == (0, 3)
