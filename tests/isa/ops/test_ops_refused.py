"""What PTX has and hopsim has not is told apart from what is wrong."""

from __future__ import annotations

import pytest

import hopsim as hs
from hopsim.errors import PtxError

HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .b16 %h<3>; .reg .b32 %r<3>; .reg .b64 %a; .reg .b128 %q<3>;
ld.param.u64 %a, [p];
"""


def kernel(line: str) -> hs.Kernel:
    return hs.loads(f"{HEAD}{line}\nret;\n}}\n")["k"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("atom.global.exch.b128 %q1, [%a], %q2;", "128-bit atomics"),
        ("atom.global.max.noftz.v2.f16 {%h1, %h2}, [%a], {%h1, %h2};", "minima and maxima"),
        ("createpolicy.fractional.L2::evict_first.b64 %a, 1.0;", "createpolicy"),
    ],
)
def test_not_modelled(line: str, why: str) -> None:
    ((number, text, reason),) = kernel(line).unsupported
    assert (number, text) == (8, line)
    assert why in reason


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("atom.global.max.noftz.f16x2 %r1, [%a], %r2;", "max.f16x2 needs .v2, .v4 or .v8"),
        ("atom.global.and.f32 %r1, [%a], %r2;", "and does not take .f32; expected .b32, .b64"),
    ],
)
def test_wrong(line: str, why: str) -> None:
    with pytest.raises(PtxError, match=why):
        assert kernel(line).unsupported
