"""Mutants that break nothing, each with the reason: a person has looked at every one of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from hopsim.mutate.operators import Mutant

AROUND: Final = 10


@dataclass(frozen=True, slots=True)
class Equivalent:
    """Mutants that are allowed to stay unreported.

    Args:
        subject, operator: patterns of the subject's name and of the mutant's operator.
        before, after: patterns of the instruction and of what stands there instead (empty: removed).
        why: the reason.
        near: pattern of a line within a few lines, where the instruction alone does not say which it is.
    """

    subject: str
    operator: str
    before: str
    why: str
    after: str = ""
    near: str = ""

    def covers(self, subject: str, mutant: Mutant, text: str) -> bool:
        """Whether it is about a mutant."""
        if not re.fullmatch(self.operator, mutant.operator) or not re.fullmatch(
            self.subject, subject
        ):
            return False
        if not re.fullmatch(self.before, mutant.before) or (
            self.after and not re.fullmatch(self.after, mutant.after)
        ):
            return False
        lines = text.splitlines()
        around = lines[max(0, mutant.line - 1 - AROUND) : mutant.line + AROUND]
        return not self.near or any(re.search(self.near, line) for line in around)


_GEMM = (
    "(wgmma-simple|pipelined|warp-specialized|cooperative|pingpong|split-k|stream-k|convolution).*"
)
_TRITON = "mm_tma_.*"

EQUIVALENTS: Final[tuple[Equivalent, ...]] = (
    Equivalent(
        _GEMM, "removed", r"wgmma\.fence\.sync\.aligned",
        "the accumulators pass from one product to the next of the same shape; the fence before the first is enough",
        near=r"%accumulate|%b_step",
    ),
    Equivalent(
        "warp-specialized(|, two consumers|, cluster along [MN])|split-k.*|convolution", "removed",
        r"mbarrier\.arrive\S*\s+_, \[%release_slot\]",
        "the last slots of a tile are handed back to a producer that has nothing more to load",
        near=r"wgmma\.wait_group\.sync\.aligned\s+0",
    ),
    Equivalent(
        "warp-specialized(|, two consumers|, cluster along [MN])|split-k.*|convolution", "arrive before the wait",
        r"mbarrier\.arrive\S*\s+_, \[%release_slot\]",
        "the last slots of a tile are handed back to a producer that has nothing more to load",
        near=r"wgmma\.wait_group\.sync\.aligned\s+0",
    ),
    Equivalent(
        "warp-specialized, cluster along [MN]",
        "semantics weakened",
        r"mbarrier\.arrive\S*\s+_, \[%release_slot\]",
        "the last slots of a tile are handed back to a producer that has nothing more to load",
        near=r"wgmma\.wait_group\.sync\.aligned\s+0",
    ),
    Equivalent(
        "pipelined|wgmma-simple", "removed", r"bar\.sync\s+0",
        "with one warpgroup the leader's own wait covers the products of all four warps, and to issue them all four had to"
        " see the phase",
        near=r"wgmma\.wait_group\.sync\.aligned",
    ),
    Equivalent(
        ".*cluster along [MN]", "removed", r"fence\.mbarrier_init\.release\.cluster",
        "the cluster barrier after it releases, so that it publishes the init by itself",
        near=r"barrier\.cluster\.arrive",
    ),
    Equivalent(
        ".*cluster along [MN]|split-k by dsmem", "semantics weakened", r"barrier\.cluster\.arrive",
        "the barrier keeps the memory of a CTA alive until its peers have arrived; it publishes no data",
        after=r"barrier\.cluster\.arrive\.relaxed",
    ),
    Equivalent(
        "fp8-scaled", "(removed|fence space changed)", r"fence\.proxy\.async",
        "the leader that initialised the mbarriers crosses the proxies again before each refill, its first copy included",
        near=r"mbarrier\.init",
    ),
    Equivalent(
        "attention", "wait removed", r"mbarrier\.try_wait\S* %k_empty_ready, .*",
        "the first load of K waits on a fresh barrier for parity 1, which passes at once",
    ),
    Equivalent(
        "attention", "removed", r"wgmma\.fence\.sync\.aligned",
        "the weights are written before the fence of the next scores; this one is for ptxas, which puts it in by itself"
        " past a branch (C7519)",
        near=r"past the branch of the wait",
    ),
    Equivalent(
        _TRITON, "removed", r"bar\.sync\s+0",
        "Triton puts a barrier after each init; the one after the last orders all of them",
        near=r"mbarrier\.init",
    ),
    Equivalent(
        _TRITON, "removed", r"bar\.sync\s+0",
        "Triton puts a barrier before each inval; all threads have seen the last phase before the first of them",
        near=r"mbarrier\.inval",
    ),
    Equivalent(
        _TRITON, "removed", r"bar\.sync\s+0",
        "Triton puts barriers before expect_tx, between it and the copies, and between these; one thread issues them all,"
        " and the barriers that are left order the refill after the products",
        near=r"mbarrier\.arrive\.expect_tx|cp\.async\.bulk\.tensor|elect\.sync",
    ),
    Equivalent(
        _TRITON, "removed", r"bar\.sync\s+0",
        "every thread waits for the mbarrier itself",
        near=r"mbarrier\.try_wait",
    ),
    Equivalent(
        _TRITON, "removed", r"bar\.sync\s+0", "nothing is shared after the last store", near=r"^\s*ret;",
    ),
    Equivalent(
        "wgmma_.*", "removed", r"(bar\.sync|bar\.warp\.sync|wgmma\.\S+)\s*\S*",
        "only the time is stored: nothing reads the accumulators, and nobody writes the operands",
    ),
    Equivalent(
        "wgmma_.*", "group count plus one", r"wgmma\.wait_group\S*\s+\d+",
        "only the time is stored: nothing reads the accumulators, and nobody writes the operands",
    ),
)  # fmt: skip
