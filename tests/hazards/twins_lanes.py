"""Twins whose lanes hand each other what one of them has acquired: see `programs`."""

from __future__ import annotations

from hopsim.hazards.facts import CheckOptions
from tests.hazards.programs import FULL, Twin, expect, init, load, put, wait

# Warp 0 writes 32 words and sets a flag, warp 1 waits for it by its first lane, and all its lanes read a word of another.
MEETING = "bar.warp.sync -1;\n"
HANDED = "LOOK:\n@!%p2 ld.acquire.cta.shared.b32 %r2, [%s+8192];\nVALUE\nsetp.eq.u32 %p3, %r3, 0;\n@%p3 bra LOOK;\n"
ALONE = "@%p2 bra OVER;\nLOOK:\nld.acquire.cta.shared.b32 %r2, [%s+8192];\nsetp.eq.u32 %p3, %r2, 0;\n@%p3 bra LOOK;\nOVER:\n"
SHUFFLE = "shfl.sync.idx.b32 %r3, %r2, 0, 31, -1;"


def warp_to_warp(before: str, wait: str) -> str:
    """Return a program with what stands between the words and the flag, and how the flag is waited for."""
    return (
        "@%leader st.shared.b32 [%s+8192], 0;\nbar.sync 0;\nsetp.ne.u32 %p0, %w, 0;\n@%p0 bra TAKE;\n"
        "mad.lo.u32 %r0, %l, 4, %s;\nst.shared.b32 [%r0], %t; //a\n" + before
        + "@%leader st.release.cta.shared.b32 [%s+8192], 1;\nbra END;\n"
        "TAKE:\nmov.b32 %r2, 0;\nsetp.ne.u32 %p2, %l, 0;\nxor.b32 %r5, %l, 7;\nmad.lo.u32 %r0, %r5, 4, %s;\n" + wait
        + "ld.shared.b32 %r4, [%r0]; //b\nEND:\n"
    )  # fmt: skip


def marked(mark: str, text: str) -> str:
    """Put lines into one twin."""
    return "".join(mark + line + "\n" for line in text.splitlines())


# The first lane waits for a load, and a shuffle tells the others.
TOLD_OF_A_LOAD = Twin(
    "the lanes of a warp go on when a shuffle tells them that a load has come",
    init() + expect() + load(name="a") + "LOOK:\nmov.b32 %r2, 0;\n@!%leader bra OVER;\n"
    f"mbarrier.try_wait.parity.shared::cta.b64 %p1, [%s+{FULL}], 0;\nselp.b32 %r2, 1, 0, %p1;\nOVER:\n{SHUFFLE}\n"
    "setp.eq.u32 %p2, %r3, 0;\n@%p2 bra LOOK;\n",
    (),
    threads=32,
)

# As the epilogues of CUTLASS: a whole warp executes the store, which is one.
TOGETHER = (
    put("a") + "{fence}bar.warp.sync -1;\n"
    "cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 512; //b\ncp.async.bulk.commit_group;\n"
)

LANES = [
    Twin(
        "a store that a whole warp issues, without the fence of its lanes",
        TOGETHER.replace("{fence}", "+fence.proxy.async.shared::cta;\n") + "cp.async.bulk.wait_group 0;\n",
        (("HS101", "a", "b"),),
        threads=32,
    ),
    Twin(
        "a store that a whole warp issues, and a fence of half of the lanes",
        "setp.ge.u32 %p5, %l, 16;\n"
        + TOGETHER.replace("{fence}", "-@%p5 fence.proxy.async.shared::cta;\n+fence.proxy.async.shared::cta;\n")
        + "cp.async.bulk.wait_group 0;\n",
        (("HS101 HS105", "a", "b"),),
        threads=32,
    ),
    Twin(
        "a store that a whole warp issues, whose source is used again too early",
        TOGETHER.replace("{fence}", "fence.proxy.async.shared::cta;\n")
        + "-cp.async.bulk.wait_group.read 1;\n+cp.async.bulk.wait_group.read 0;\n"
        + put("c") + "cp.async.bulk.wait_group 0;\n",
        (("HS302", "b", "c"),),
        threads=32,
    ),
    *(
        Twin(
            f"thread-race of lanes that hand each other what one acquired, by {value.split('.')[0]}",
            warp_to_warp(MEETING, marked("-", ALONE) + marked("+", HANDED.replace("VALUE", value))),
            (("HS500", "a", "b"),),
            threads=64,
        )
        for value in (
            SHUFFLE,
            "setp.ne.u32 %p4, %r2, 0;\nvote.sync.ballot.b32 %r3, %p4, -1;",
            "redux.sync.max.u32 %r3, %r2, -1;",
            "match.any.sync.b32 %r3, %r2, -1;\nsub.u32 %r3, %r3, -1;",
        )
    ),
    Twin(
        "thread-race of lanes outside the mask of a shuffle",
        # Lanes 16 to 31 hand each other values too, and none of them has acquired anything.
        warp_to_warp(
            MEETING,
            "mov.b32 %r6, 0xffff;\nsetp.lt.u32 %p5, %l, 16;\n@!%p5 mov.b32 %r6, 0xffff0000;\n"
            "+mov.b32 %r6, -1;\n" + HANDED.replace("VALUE", "shfl.sync.idx.b32 %r3, %r2, 0, 31, %r6;").replace(
                "@%p3 bra", "-@!%p5 bra OVER;\n@%p3 bra") + "OVER:\n",
        ),
        (("HS500", "a", "b"),),
        threads=64,
    ),
    Twin(
        "elected flag behind a fence of all lanes, without a warp barrier",
        warp_to_warp("+bar.warp.sync -1;\nfence.acq_rel.cta;\n", HANDED.replace("VALUE", SHUFFLE)).replace(
            "st.release.cta", "st.relaxed.cta"
        ),
        (("HS208", "a", "b"),),
        threads=64,
    ),
    Twin(
        "elected flag behind a fence.sc of all lanes, without a warp barrier",
        warp_to_warp("membar.cta;\n+bar.warp.sync -1;\n", ALONE + MEETING + "membar.cta;\n").replace(
            "st.release.cta", "st.volatile"
        ),
        (("HS208", "a", "b"),),
        threads=64,
    ),
    Twin(
        "lanes tell each other that a load has come, strictly",
        TOLD_OF_A_LOAD.body + "+bar.warp.sync -1;\nxor.b32 %r5, %t, 1;\nmad.lo.u32 %r0, %r5, 16, %s;\n"
        "ld.shared.b32 %r1, [%r0]; //b\n",
        (("HS001", "a", "b"),),
        threads=32,
        options=CheckOptions(lane_values="nothing"),
    ),
    Twin(
        "elected release without a warp barrier, behind a shuffle",
        warp_to_warp(
            "shfl.sync.idx.b32 %r3, %t, 0, 31, -1;\n+bar.warp.sync -1;\n", HANDED.replace("VALUE", SHUFFLE)
        ),
        (("HS208", "a", "b"),),
        threads=64,
    ),
    Twin(
        # As the end of a cuda::pipeline, whose lanes meet by `match.sync`.
        "inval-in-flight of lanes that meet where nothing orders memory",
        f"{init()}bar.sync 0;\n@%leader mbarrier.arrive.shared::cta.b64 _, [%s+8192];\n@%leader bra OWN;\n"
        + wait(name="a")
        + "OWN:\n"
        + wait()
        + "+match.any.sync.b32 %r1, %s, -1;\n@%leader mbarrier.inval.shared::cta.b64 [%s+8192]; //b\n",
        (("HS214", "a", "b"),),
        threads=32,
    ),
    Twin(
        "lanes hand each other what one acquired, strictly",
        warp_to_warp(
            MEETING, HANDED.replace("VALUE", SHUFFLE) + "+bar.warp.sync -1;\n"
        ),
        (("HS500", "a", "b"),),
        threads=64,
        options=CheckOptions(lane_values="nothing"),
    ),
    *(
        Twin(
            f"missing-syncwarp between halves of a warp that each name their own mask, {name}",
            put("a") + "setp.lt.u32 %p5, %l, 16;\nselp.b32 %r6, 0xffff, 0xffff0000, %p5;\n"
            + places + "xor.b32 %r5, %t, 31;\n+xor.b32 %r5, %t, 15;\nmad.lo.u32 %r0, %r5, 16, %s;\n"
            "ld.shared.b32 %r1, [%r0]; //b\n",
            (("HS502", "a", "b"),),
            threads=32,
        )
        for name, places in (
            ("at one place", "bar.warp.sync %r6;\n"),
            (
                "at two",
                "@%p5 bra LOW;\nbar.warp.sync 0xffff0000;\nbra MEET;\nLOW:\nbar.warp.sync 0xffff;\nMEET:\n",
            ),
        )
    ),
    Twin(
        "elected flag behind a warp barrier of the leader's half alone",
        warp_to_warp(
            "setp.lt.u32 %p5, %l, 16;\nselp.b32 %r6, 0xffff, 0xffff0000, %p5;\n+mov.b32 %r6, -1;\nbar.warp.sync %r6;\n",
            HANDED.replace("VALUE", SHUFFLE),
        ),
        (("HS208", "a", "b"),),
        threads=64,
    ),
    Twin(
        "missing-syncwarp behind a word that is read twice",
        "mad.lo.u32 %r0, %t, 4, %s;\nxor.b32 %r5, %r0, 4;\nst.shared.b32 [%r0], %t;\nbar.warp.sync -1;\n"
        "ld.shared.b32 %r1, [%r5];\nbar.warp.sync -1;\nld.shared.b32 %r2, [%r5]; //a\n+bar.warp.sync -1;\n"
        "st.shared.b32 [%r0], %r2; //b\n",
        (("HS502", "a", "b"),),
        threads=32,
    ),
]  # fmt: skip
"""Bad and good twins of exchanges between lanes."""
