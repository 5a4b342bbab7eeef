"""Twins whose one cause shows in several places, or as another rule: see `programs`, and `test_causes` for their hints."""

from __future__ import annotations

from tests.hazards.programs import EMPTY, FULL, Twin, expect, get, init, load, only, wait

SYNC = "bar.sync 0;\n"
CLUSTER = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
ELECTED = "setp.eq.u32 %p2, %w, 0;\nelect.sync _|%p1, -1;\nand.pred %p2, %p2, %p1;\n"


def _filled(count_bytes: int) -> str:
    """A tile is expected, and fetched, by whom %p2 names."""
    expect = f"@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+{FULL}], {count_bytes}; //b\n"
    fill = expect + load(guard="@%p2 ", count_bytes=count_bytes)
    return init() + SYNC + "-setp.ge.u32 %p2, %t, 0;\n" + only("+", ELECTED) + fill + wait()


# One thread of each CTA counts under a lock.
LOCK = (
    "@!%leader bra END;\nTAKE:\natom.acquire.gpu.global.cas.b32 %r1, [%out+4096], 0, 1; //b\nsetp.ne.u32 %p0, %r1, 0;\n"
    "@%p0 bra TAKE;\nld.global.b32 %r2, [%out];\nadd.u32 %r2, %r2, 1;\nst.global.b32 [%out], %r2;\nGIVE"
    "+st.release.gpu.global.b32 [%out+4096], 0;\nBEHINDEND:\n"
)
BESIDE = "mov.u32 %r9, %ctaid.x;\n-st.global.b32 [%out+8192], 1; //c\n+@%leader st.shared.b32 [%s], %r9;\n"
# One thread takes the lock for its CTA and gives it back: barriers lead from it to all, and back.
BLOCK_LOCK = (
    "mul.wide.u32 %rd0, %t, 4;\nadd.u64 %rd0, %rd0, %out;\n@!%leader bra TAKEN;\nTAKE:\n"
    "atom.acquire.gpu.global.cas.b32 %r1, [%out+4096], 0, 1; //b\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra TAKE;\nTAKEN:\n"
    + SYNC + "ld.global.b32 %r2, [%rd0];\nadd.u32 %r2, %r2, 1;\nst.global.b32 [%rd0], %r2;\n" + SYNC
    + "-@%leader st.global.b32 [%out+4096], 0; //a\n+@%leader st.release.gpu.global.b32 [%out+4096], 0;\n"
)  # fmt: skip
# Who draws the last ticket reads what the threads of both CTAs stored; both sides are fenced.
TICKET = (
    "mov.u32 %r9, %ctaid.x;\nmad.lo.u32 %r0, %r9, 64, %t;\nmul.wide.u32 %rd0, %r0, 4;\nadd.u64 %rd0, %rd0, %out;\n"
    "st.global.b32 [%rd0], %t;\nfence.sc.gpu;\n" + SYNC + "@!%leader bra DRAWN;\n"
    "-atom.relaxed.cta.global.add.u32 %r1, [%out+4096], 1; //a\n+atom.relaxed.gpu.global.add.u32 %r1, [%out+4096], 1;\n"
    "st.shared.b32 [%s], %r1;\nDRAWN:\n" + SYNC + "ld.shared.b32 %r1, [%s];\nsetp.ne.u32 %p0, %r1, 1;\n@%p0 bra END;\n"
    "fence.sc.gpu;\nmul.wide.u32 %rd0, %t, 4;\nadd.u64 %rd0, %rd0, %out;\nld.global.b32 %r2, [%rd0];\n"
    "ld.global.b32 %r3, [%rd0+256];\nEND:\n"
)  # fmt: skip
# Each thread reads the word of one of another warp, which a barrier of all four waits for.
SWAPPED = (
    "mad.lo.u32 %r0, %t, 4, %s;\nxor.b32 %r1, %r0, 256;\nst.shared.b32 [%r0], %t;\n-bar.sync 1, 64; //a\n+bar.sync 1, 128;\n"
    "ld.shared.b32 %r2, [%r1];\n"
)
# Each CTA brings half of a tile to both; all threads of both hand it back to both.
BOTH_RING = (
    ".reg .b16 %h0;\nmov.b16 %h0, 3;\n" + init() + only("-", init(EMPTY, 64, "count")) + only("+", init(EMPTY, 128)) + CLUSTER
    + f"add.u32 %r0, %s, {EMPTY};\nmapa.shared::cluster.u32 %r10, %r0, 0;\nmapa.shared::cluster.u32 %r11, %r0, 1;\n"
    "mad.lo.u32 %r12, %c, 1024, %s;\nmov.b32 %r20, 0;\nAGAIN:\nand.b32 %r21, %r20, 1;\nxor.b32 %r22, %r21, 1;\n"
    "@!%leader bra READ;\n" + wait(EMPTY, "%r22", scope=".acquire.cluster") + expect()
    + "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
    f" [%r12], [%in], 1024, [%s+{FULL}], %h0;\nREAD:\n" + wait(FULL, "%r21") + get() + get(at=1024)
    + "fence.proxy.async.shared::cluster;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10];\n"
    "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11]; //a\nadd.u32 %r20, %r20, 1;\n"
    "setp.lt.u32 %p0, %r20, 4;\n@%p0 bra AGAIN;\n" + CLUSTER
)  # fmt: skip

COMPANY = [
    # Whether the arrivals are too many or the bytes: one lane should do it.
    Twin("duplicate-issue of an arrive that expects", _filled(2048), (("HS207", "", "b"),)),
    Twin(
        "duplicate-issue of an arrive that expects too much", _filled(8192), (("HS207", "", "b"),)
    ),
    # What the lock guards needs nothing else.
    Twin(
        "scope-too-narrow of what gives a lock back",
        LOCK.replace("GIVE", "-st.release.cta.global.b32 [%out+4096], 0; //a\n").replace(
            "BEHIND", ""
        ),
        (("HS510", "a", "b"),),
        ctas=2,
    ),
    Twin(
        "thread-race of a plain store that gives a lock back",
        LOCK.replace("GIVE", "-st.global.b32 [%out+4096], 0; //a\n").replace("BEHIND", ""),
        (("HS500", "a", "b"),),
        ctas=3,
    ),
    Twin(
        "thread-race of a plain store that gives a lock of all threads back",
        BLOCK_LOCK,
        (("HS500", "a", "b"),),
        ctas=3,
    ),
    # A store behind the lock is not guarded.
    Twin(
        "thread-race beside a lock that a plain store gives back",
        LOCK.replace("GIVE", "-st.global.b32 [%out+4096], 0; //a\n").replace("BEHIND", BESIDE),
        (("HS500", "a", "b"), ("HS500", "c", "c")),
        ctas=2,
    ),
    # The fences are there.
    Twin(
        "scope-too-narrow of a ticket between fences",
        TICKET,
        (("HS510", "a", "a"),),
        threads=64,
        ctas=2,
    ),
    # With the right count nobody reads too early.
    Twin("named-id-collision of a count of half the threads", SWAPPED, (("HS504", "a", "a"),)),
    # The slot is filled again too early because half of its readers are not counted.
    Twin(
        "phase-unconsumed of an mbarrier that counts half of the readers",
        BOTH_RING,
        (("HS215", "a", "a"),),
        threads=64,
        ctas=2,
        cluster=2,
    ),
]
