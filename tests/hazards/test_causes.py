"""The hints of twins that want the cause named: what to change, at which line."""

from __future__ import annotations

import pytest

from tests.hazards.programs import Twin, launch, line_of, text_of
from tests.hazards.twins import TWINS

COMMIT = "after :{a}, in the same thread:  cp.async.bulk.commit_group;"
COMMIT_COPY = (
    "after :{next}, before the wait at :{wait}:  cp.async.commit_group;"
    "  (the wait counts committed groups only)"
)
BRIDGE = "after :{a}, in every reading thread, before it releases the slot:  fence.proxy.async."
# By twin: what the hint of its first finding says; {name} is the line of that name.
HINTS = {
    "duplicate-issue of an arrive that expects": "let one thread alone execute :{b}, and issue the copies",
    "duplicate-issue of an arrive that expects too much": "let one thread alone execute :{b}, and issue",
    "phase-unconsumed of an mbarrier that counts half of the readers": "at :{count}:  mbarrier.init with a count of at least 128",
    "order-barrier-not-primed of a ring": "arrive once on barrier 2, as at :{back}",
    "named-count-mismatch of a ring that is not handed back": (
        "let those who wait at :{c} arrive on barrier 2 once for each of its uses, or give it"
    ),
    "tx-underexpected of every round": (
        "at :{arrive}, in the place of a plain arrive:  mbarrier.arrive.expect_tx  with the bytes of"
    ),
    "tx-underexpected of half of every round": (
        "raise expect_tx of this phase (:{arrive}) by the bytes of :{copy}"
    ),
    "wait-wrong-parity of every round": "is for the parity of an older phase",
    "tx-overexpected": "lower expect_tx by 2048 bytes, or copy the rest",
    "tx-overexpected by what another mbarrier got": "at :{stray}, name this mbarrier: the 2048 bytes",
    "tx-overexpected by what another mbarrier got too early": (
        "at :{stray}, name this mbarrier: the 512 bytes"
    ),
    "missing-arriver of the first phase of a ring": (
        "at :{full}, lower the count of mbarrier.init by 1, or let 1 more arrive"
    ),
    "missing-arriver of a multicast ring": "nobody has arrived on it: let 2 do so (mbarrier.arrive,",
    "missing-arriver of one CTA of a ring that both fill": "nobody has arrived on it: let 2 do so (mbarrier.arrive,",
    "tma-overlap-unordered of a ring that fills one slot only": "at :{a}, a slot for each mbarrier (",
    "thread-race of what two warps write and a thread tells of": "before :{flag}, in every thread of its CTA:  bar.sync 0;",
    "tx-overexpected in one round of a ring": "at :{expect}, lower expect_tx by 2048 bytes",
    "cp-async-unwaited for want of a commit in the loop": COMMIT_COPY,
    "cp-async-unwaited of copies that no wait counts": COMMIT_COPY,
    # All is committed, and the wait is at fault.
    "cp-async-unwaited for want of a wait in the loop": "before :{read}:  cp.async.wait_group 0;  (or N, if the N",
    "cp-async-unwaited for a wait in the loop that leaves too much": "at :{wait}:  cp.async.wait_group 1;  (it leaves",
    "cp-async-unwaited, wrong N": "at :{wait}:  cp.async.wait_group 0;  (it leaves the group of :{a}",
    "store source unread at exit": "before ret:  cp.async.bulk.wait_group.read 0 in the issuing",
    "bulk-wait-by-other-thread of a store that every warp issues": "let one warp alone issue :{a}, commit it",
    "bulk-commit-missing": COMMIT,
    "bulk-commit-missing before the wait at the end": COMMIT,
    "bulk-commit-missing in a loop": COMMIT,
    "store neither committed nor waited for": (
        "in the issuing thread, before ret:  cp.async.bulk.commit_group;  cp.async.bulk.wait_group.read 0"
    ),
    "gen-read-to-tma-load": BRIDGE + "shared::cta;",
    "gen-read-to-tma-load by multicast": BRIDGE + "shared::cluster;",
    "gen-read-to-tma-load by multicast, with a fence for one CTA": BRIDGE + "shared::cluster;",
    "missing-arriver for want of .noinc": "at :{noinc}:  cp.async.mbarrier.arrive.noinc  (",
    "missing-arriver beside cp.async.mbarrier.arrive": (
        "at :{a}, lower the count of mbarrier.init by 32, or let 32 more arrive"
    ),
}


class _Lines(dict[str, int]):
    """The lines of a text by their names."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def __missing__(self, name: str) -> int:
        return line_of(self.text, name)


@pytest.mark.parametrize(
    "twin", [twin for twin in TWINS if twin.name in HINTS], ids=lambda twin: twin.name
)
def test_hint(twin: Twin) -> None:
    text = text_of(twin.body, False, twin.threads, twin.version, twin.bound)
    first = launch(twin, good=False).hazards[0]
    assert HINTS[twin.name].format_map(_Lines(text)) in first.hint
