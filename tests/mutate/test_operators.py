"""Operators of mutation: which lines they find, and what they leave there."""

from __future__ import annotations

import pytest

from hopsim.isa.program.kernel import loads
from hopsim.mutate.operators import Mutant, mutants

HEAD = """.version 8.7
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 smem[];
.visible .entry k()
{
.reg .pred %p, %q;
.reg .b32 %s, %par;
mov.u32 %s, smem;
mov.b32 %par, 0;
"""


def of(body: str) -> list[Mutant]:
    return mutants(loads(HEAD + body + "\nret;\n}\n")["k"])


def changes(body: str) -> list[tuple[str, str]]:
    return [(mutant.operator, mutant.after) for mutant in of(body)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("bar.sync 0;", [("removed", "")]),
        ("bar.sync 1, 64;", [("removed", ""), ("count changed", "bar.sync 1, 96")]),
        ("fence.proxy.async;", [("removed", ""), ("fence space changed", "fence.proxy.async.global")]),
        (
            "fence.acq_rel.gpu;",
            [("removed", ""), ("semantics weakened", "fence.acq_rel.cta")],
        ),
        (
            "wgmma.wait_group.sync.aligned 1;",
            [("removed", ""), ("group count plus one", "wgmma.wait_group.sync.aligned 2")],
        ),
        (
            "mbarrier.init.shared::cta.b64 [%s], 1;",
            [("removed", ""), ("count changed", "mbarrier.init.shared::cta.b64 [%s], 2")],
        ),
        (
            "@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s], 32;",
            [
                ("removed", ""),
                ("expect_tx removed", "mbarrier.arrive.shared::cta.b64 _, [%s]"),
                ("bytes changed", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s], 48"),
                ("bytes changed", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s], 16"),
            ],
        ),
        (
            "mbarrier.try_wait.parity.shared::cta.b64 %q, [%s], 0;",
            [
                ("wait removed", "setp.eq.u32 %q, 0, 0"),
                ("parity flipped", "mbarrier.try_wait.parity.shared::cta.b64 %q, [%s], 1"),
            ],
        ),
        ("mov.b32 %par, 1;  // bar.sync 0;", []),
    ],
)  # fmt: skip
def test_a_line_gives_its_mutants(line: str, expected: list[tuple[str, str]]) -> None:
    assert changes(line) == expected


def test_a_parity_in_a_register_is_flipped_on_the_same_line() -> None:
    body = "WAIT:\n@%p mbarrier.try_wait.parity.shared::cta.b64 %q, [%s], %par;\n@!%q bra WAIT;"
    removed, flipped = of(body)
    assert removed.after == "setp.eq.u32 %q, 0, 0"
    (line,) = [text for text in flipped.ptx.splitlines() if "mutant" in text]
    assert line.count("@%p") == 1
    kernel = loads(flipped.ptx)["k"]
    assert [i.mnemonic for i in kernel.body.instructions][2:5] == [
        "xor.b32", "mbarrier.try_wait.parity.shared::cta.b64", "bra",
    ]  # fmt: skip
    assert kernel.instructions


def test_an_arrive_moves_before_the_wait_above_it() -> None:
    body = "wgmma.wait_group.sync.aligned 0;\nmbarrier.arrive.shared::cta.b64 _, [%s];"
    (moved,) = [mutant for mutant in of(body) if mutant.operator == "arrive before the wait"]
    names = [i.mnemonic for i in loads(moved.ptx)["k"].body.instructions][2:4]
    assert names == ["mbarrier.arrive.shared::cta.b64", "wgmma.wait_group.sync.aligned"]
    between = (
        "wgmma.wait_group.sync.aligned 0;\nL:\nmbarrier.arrive.shared::cta.b64 _, [%s];\n@%p bra L;"
    )
    assert "arrive before the wait" not in [mutant.operator for mutant in of(between)]


def test_lines_stay_where_they_are() -> None:
    body = "bar.sync 0;\nbar.sync 1, 64;\nmbarrier.init.shared::cta.b64 [%s], 3;"
    count = len((HEAD + body + "\nret;\n}\n").splitlines())
    found = of(body)
    assert [mutant.line for mutant in found] == sorted(mutant.line for mutant in found)
    assert {len(mutant.ptx.splitlines()) for mutant in found} == {count}
    assert str(found[1]) == "removed at :12    bar.sync 1, 64"
