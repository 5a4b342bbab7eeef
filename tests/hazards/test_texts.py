"""The exact text of findings, as people read them; HOPSIM_UPDATE_GOLDEN=1 writes the files anew, for review."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hopsim.cli.output import plain_text
from hopsim.report.hazards import hazard_findings
from tests.cli.golden import assert_golden
from tests.hazards.programs import Twin, launch
from tests.hazards.twins import TWINS

GOLDEN = Path(__file__).parent / "golden"
NAMES = (
    "tma-read-unwaited",
    "tma-read-unwaited by the lanes that do not wait",
    "slot-overwrite",
    "slot-overwrite by st.async",
    "accumulator-read-early",
    "cp-async-to-wgmma",
    "gen-write-to-tma-store",
    "proxy-fence-wrong-space",
    "bridge missing behind an mbarrier",
    "elected-arrive-without-syncwarp",
    "elected-arrive-without-syncwarp of lanes that have left",
    "init-not-visible",
    "cta-scope-across-ctas",
    "missing-arriver",
    "store-source-reuse",
    "store-source-reuse by a load of the same thread",
    "store-source-reuse of a copy to another CTA",
    "bulk-race of two CTAs that store the same bytes",
    "tensormap-fence-missing: no acquire",
    "tensormap-fence-missing: release of .cta scope for another CTA",
    "multicast-release-incomplete",
    "dsmem-early-exit",
    "smem-scratch-reuse",
    "early-return-warp",
    "setmaxnreg-oversubscribed",
    "flag without release",
    "fences of .cta scope on both sides of a flag",
    "out-of-bounds",
    "phase-word-overrun",
    "phase-word-overrun of a parity",
    "cluster-barrier-divergent, before what it brings",
    "missing-arriver in a ring",
    "tx-underexpected of st.async",
    "racing words of two CTAs",
    "words of all threads before a ticket of one, with no fence.sc before it",
    "words of all threads before a ticket of one, with no fence.sc behind it",
    "words of all threads before a ticket of one, with no barrier before it",
    "words of all threads before a ticket that nobody looks at",
    "smem-scratch-reuse between warps with roles",
    "thread-race of words pushed into a peer before a barrier of its own CTA alone",
    "thread-race of words written between the arrive and the wait of a cluster barrier",
    "missing-syncwarp between volatile accesses",
    "cp-async-unwaited, more groups left pending than there are",
    "thread-race of a counter that one zeroes and adds to first",
    "thread-race of a plain read with a compare-and-swap of other lanes alone",
    "thread-race of a lock of lanes that a plain write gives back",
    "lock given back with no fence",
    "thread-race of words behind a flag for which one thread waits",
    "cp-async-unwaited by others, told by a plain arrive",
    "thread-race of words that come beside a load",
    "phase-unconsumed of arrivals that belong to one phase",
    "named-id-collision of counts that do not agree",
    "wait-without-rejoin whose wait leaves the group pending",
    "slot-overwrite that another warp hands back",
    "bulk store waited for before a flag with no release",
    "slot-overwrite by the load of a slot that lies over it",
    "volatile sums before a ticket with no fence",
    "tensormap-fence-missing: no release",
    "flag without acquire",
    "words of all threads before a ticket of one, with no fence behind it",
    "relaxed wait",
    "wgmma-fence-missing at first",
    "scope-too-narrow",
    "bulk-size-or-alignment",
    "misaligned-access by ldmatrix",
    "st-async-to-async-read of what red.async adds",
    "phase-unconsumed by one of two who arrive",
    "named-id-collision of more warps than the count",
    "elected flag behind a fence of all lanes, without a warp barrier",
)
CHOSEN = [next(twin for twin in TWINS if twin.name == name) for name in NAMES]


@pytest.mark.parametrize("twin", CHOSEN, ids=lambda twin: twin.name)
def test_text(twin: Twin) -> None:
    text = plain_text(hazard_findings(launch(twin, good=False).hazards, "k.ptx"), width=1000)
    name = re.sub(r"\W+", "_", twin.name)
    lines = [line.rstrip() for line in text.splitlines()]
    assert_golden("\n".join(lines) + "\n", GOLDEN / f"{name}.txt")
