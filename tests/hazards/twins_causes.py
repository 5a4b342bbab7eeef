"""Twins of which a finding must name the cause and leave out what follows from it: see `programs`, and `test_causes`."""

from __future__ import annotations

from tests.hazards.programs import (
    COMMIT_STORE,
    EMPTY,
    FULL,
    OTHER,
    WAIT_READ,
    WAIT_STORE,
    Twin,
    expect,
    get,
    init,
    load,
    only,
    put,
    store,
    wait,
)

SYNC = "bar.sync 0;\n"
COPY_WORD = (
    "mad.lo.u32 %r0, %t, 4, %s;\nmul.wide.u32 %rd0, %t, 4;\nadd.u64 %rd0, %rd0, %in;\n"
    "cp.async.ca.shared.global [%r0], [%rd0], 4;\n"
)

FENCE = "fence.proxy.async.shared::cta;\n"
CLUSTER = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"


def _multicast(barrier: int, name: str) -> str:
    """CTA 0 loads a tile into both CTAs of a cluster."""
    return (
        "@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        f" [%s], [%in], 2048, [%s+{barrier}], %h0; //{name}\n"
    )


# Both CTAs read a tile that one of them loads, and then loads again.
REFILL = (
    ".reg .b16 %h0;\nmov.b16 %h0, 3;\nsetp.eq.u32 %p2, %c, 0;\nand.pred %p2, %p2, %leader;\n" + init() + init(OTHER)
    + CLUSTER + expect() + _multicast(FULL, "x") + wait() + get("a") + "FENCE" + CLUSTER + expect(OTHER)
    + _multicast(OTHER, "b") + wait(OTHER) + CLUSTER
)  # fmt: skip

# Each thread copies its word for the next round while it uses the one of this round: two slots.
PIPELINE = (
    "mad.lo.u32 %r0, %t, 4, %s;\nmov.b32 %r20, 0;\ncp.async.ca.shared.global [%r0], [%in], 4; //first\n"
    "cp.async.commit_group;\nAGAIN:\nand.b32 %r21, %r20, 1;\nmad.lo.u32 %r1, %r21, 512, %r0;\nxor.b32 %r21, %r21, 1;\n"
    "mad.lo.u32 %r2, %r21, 512, %r0;\ncp.async.ca.shared.global [%r2], [%in], 4; //next\nCOMMIT"
    "cp.async.wait_group WAIT; //wait\nld.shared.b32 %r3, [%r1]; //read\nadd.u32 %r20, %r20, 1;\n"
    "setp.lt.u32 %p0, %r20, 4;\n@%p0 bra AGAIN;\ncp.async.wait_all;\n"
)
COMMIT_COPY = "cp.async.commit_group;\n"

# A ring of one slot: warp 1 fills it, the lanes of warp 0 read it and hand it back.
RING = (
    "mov.b32 %r20, 0;\nsetp.eq.u32 %p0, %w, 1;\nsetp.eq.u32 %p2, %l, 0;\n@%p0 bra PRODUCER;\nCONSUMER:\nand.b32 %r21, %r20, 1;\n"
    + wait(FULL, "%r21", name="read") + f"mbarrier.arrive.shared::cta.b64 _, [%s+{EMPTY}];\nadd.u32 %r20, %r20, 1;\n"
    "setp.lt.u32 %p1, %r20, 4;\n@%p1 bra CONSUMER;\nbra END;\nPRODUCER:\n@!%p2 bra END;\nFILL:\nnot.b32 %r21, %r20;\n"
    "and.b32 %r21, %r21, 1;\n" + wait(EMPTY, "%r21", name="fill") + "BRING"
    "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p1, %r20, 4;\n@%p1 bra FILL;\nEND:\n"
)  # fmt: skip
EXPECT = f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+{FULL}], 2048; //expect\n"
EMPTIED = init(EMPTY, 32, "empty")
# CTA 0 loads a tile into both CTAs, round by round, when one thread of each has handed the slot back to it.
MULTICAST_RING = (
    ".reg .b16 %h0;\nmov.b16 %h0, 3;\nsetp.eq.u32 %p2, %c, 0;\nand.pred %p2, %p2, %leader;\n" + init() + init(EMPTY, 2, "a")
    + CLUSTER + f"add.u32 %r0, %s, {EMPTY};\nmapa.shared::cluster.u32 %r10, %r0, 0;\nmov.b32 %r20, 0;\nAGAIN:\n"
    "and.b32 %r21, %r20, 1;\nxor.b32 %r22, %r21, 1;\n" + expect() + "@!%p2 bra READ;\n"
    + wait(EMPTY, "%r22", scope=".acquire.cluster", name="b") + _multicast(FULL, "copy") + "READ:\n" + wait(FULL, "%r21")
    + get() + "fence.proxy.async.shared::cluster;\n" + SYNC
    + "+@%leader mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10];\nadd.u32 %r20, %r20, 1;\n"
    "setp.lt.u32 %p0, %r20, 3;\n@%p0 bra AGAIN;\n" + CLUSTER
)  # fmt: skip

# Each CTA loads half of a tile into both, when one thread of each has handed the slot back to it.
HALVES_RING = (
    ".reg .b16 %h0;\nmov.b16 %h0, 3;\n" + init() + init(EMPTY, 2, "a") + CLUSTER
    + f"add.u32 %r0, %s, {EMPTY};\nmapa.shared::cluster.u32 %r10, %r0, 0;\nmapa.shared::cluster.u32 %r11, %r0, 1;\n"
    "mad.lo.u32 %r12, %c, 1024, %s;\nmov.b32 %r20, 0;\nAGAIN:\nand.b32 %r21, %r20, 1;\nxor.b32 %r22, %r21, 1;\n"
    "@!%leader bra READ;\n" + wait(EMPTY, "%r22", scope=".acquire.cluster", name="b") + expect()
    + "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
    f" [%r12], [%in], 1024, [%s+{FULL}], %h0;\nREAD:\n" + wait(FULL, "%r21") + get() + "fence.proxy.async.shared::cluster;\n"
    + SYNC + "+@%leader mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10];\n"
    "@%leader mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11];\nadd.u32 %r20, %r20, 1;\n"
    "setp.lt.u32 %p0, %r20, 3;\n@%p0 bra AGAIN;\n" + CLUSTER
)  # fmt: skip

# A ring of two slots and their mbarriers: warp 1 fills them, the lanes of warp 0 read them and hand them back.
TWO_SLOTS = (
    init() + init(OTHER) + init(EMPTY, 32) + init(EMPTY + 8, 32) + SYNC
    + "setp.eq.u32 %p0, %w, 1;\nsetp.eq.u32 %p2, %l, 0;\nmov.b32 %r20, 0;\nAGAIN:\nand.b32 %r21, %r20, 1;\n"
    "shr.u32 %r22, %r20, 1;\nand.b32 %r22, %r22, 1;\nxor.b32 %r23, %r22, 1;\nmad.lo.u32 %r24, %r21, 8, %s;\n"
    "mad.lo.u32 %r25, %r21, 2048, %s;\n@!%p0 bra READ;\n@!%p2 bra NEXT;\nEMPTIED:\n"
    f"mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r24+{EMPTY}], %r23;\n@!%p3 bra EMPTIED;\n"
    f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r24+{FULL}], 2048;\n-mov.b32 %r25, %s;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    f" [%r25], [%in], 2048, [%r24+{FULL}]; //a\nbra NEXT;\nREAD:\n"
    f"mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r24+{FULL}], %r22;\n@!%p3 bra READ;\n"
    "mad.lo.u32 %r0, %l, 16, %r25;\nld.shared.b32 %r1, [%r0];\n" + FENCE
    + f"mbarrier.arrive.shared::cta.b64 _, [%r24+{EMPTY}];\nNEXT:\nadd.u32 %r20, %r20, 1;\nsetp.lt.u32 %p1, %r20, 6;\n"
    "@%p1 bra AGAIN;\n"
)  # fmt: skip

# Two warps of a CTA write words, one thread of them tells another CTA, which loads them.
WRITTEN_BY_ALL = (
    "mov.u32 %r5, %ctaid.x;\nsetp.ne.u32 %p0, %r5, 0;\n" + init() + SYNC
    + "@%p0 bra TAKE;\nmul.wide.u32 %rd0, %t, 4;\nadd.u64 %rd0, %rd0, %out;\nst.global.b32 [%rd0], %t; //a\n"
    "fence.proxy.async.global;\n+bar.sync 0;\n@%leader fence.acq_rel.gpu;\n"
    "@%leader st.relaxed.gpu.global.b32 [%out+4096], 1; //flag\nbra END;\nTAKE:\n@!%leader bra READ;\nLOOK:\n"
    "ld.acquire.gpu.global.b32 %r6, [%out+4096];\nsetp.eq.u32 %p1, %r6, 0;\n@%p1 bra LOOK;\nfence.proxy.async.global;\n"
    + expect(count_bytes=256) + load(name="b", count_bytes=256).replace("%in", "%out") + "READ:\n" + wait() + "END:\n"
)  # fmt: skip

# A tile comes in two halves and is read, three times over.
ROUNDS = (
    init() + SYNC + "mov.b32 %r20, 0;\nAGAIN:\nand.b32 %r21, %r20, 1;\nxor.b32 %r22, %r21, 1;\nEXPECT"
    + load(0, FULL, "first", 1024) + load(1024, FULL, "copy", 1024) + wait(FULL, "%r21") + get("read") + FENCE + SYNC
    + "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p0, %r20, 3;\n@%p0 bra AGAIN;\n"
)  # fmt: skip

# Warp 1 writes words that warp 0 reads, round by round; two named barriers take turns.
NAMED_RING = (
    "mad.lo.u32 %r0, %l, 4, %s;\nmov.b32 %r20, 0;\nsetp.eq.u32 %p0, %w, 0;\n@%p0 bra READER;\nWRITE:\nbar.sync 2, 64; //b\n"
    "st.shared.b32 [%r0], %t;\nbar.arrive 1, 64;\nadd.u32 %r20, %r20, 1;\nsetp.lt.u32 %p1, %r20, 3;\n@%p1 bra WRITE;\nbra END;\n"
    "READER:\nPRIMEREAD:\nbar.sync 1, 64; //c\nld.shared.b32 %r1, [%r0];\nadd.u32 %r20, %r20, 1;\nsetp.ge.u32 %p1, %r20, 3;\n"
    "@%p1 bra END;\nRELEASEbra READ;\nEND:\n"
)  # fmt: skip
GIVE_BACK = "bar.arrive 2, 64;\n"

# Each warp that executes a store has a copy of its own in flight; the lanes of one warp share one.
BY_ALL = (
    put() + FENCE + SYNC + "setp.eq.u32 %p2, %w, 0;\n-" + store(name="a", guard="") + "+" + store(guard="@%p2 ")
    + "cp.async.bulk.commit_group;\n" + WAIT_READ
)  # fmt: skip

CAUSES = [
    Twin(
        "missing-arriver for want of .noinc",
        init(count=128, name="a") + SYNC + COPY_WORD
        + f"-cp.async.mbarrier.arrive.shared::cta.b64 [%s+{FULL}]; //noinc\n"
        + f"+cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%s+{FULL}];\n" + wait(name="b"),
        (("HS205", "a", "b"),),
        verdict="deadlock",
    ),
    # Those that came have arrived besides, as they should: some of them are missing, and no .noinc mends that.
    Twin(
        "missing-arriver beside cp.async.mbarrier.arrive",
        init(count=128, name="a") + SYNC + COPY_WORD + f"cp.async.mbarrier.arrive.shared::cta.b64 [%s+{FULL}];\n"
        + f"setp.lt.u32 %p0, %t, 96;\n-@%p0 mbarrier.arrive.shared::cta.b64 _, [%s+{FULL}];\n"
        + f"+mbarrier.arrive.shared::cta.b64 _, [%s+{FULL}];\n" + wait(name="b"),
        (("HS205", "a", "b"),),
        verdict="deadlock",
    ),
    # The readers of both CTAs run one line, so that the fence there must do for the other CTA's copy.
    Twin(
        "gen-read-to-tma-load by multicast",
        REFILL.replace("FENCE", "+fence.proxy.async.shared::cluster;\n"),
        (("HS104 HS112", "a", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "gen-read-to-tma-load by multicast, with a fence for one CTA",
        REFILL.replace("FENCE", "-fence.proxy.async.shared::cta;\n+fence.proxy.async.shared::cluster;\n"),
        (("HS104 HS110", "a", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "bulk-commit-missing before the wait at the end",
        put() + FENCE + SYNC + store(name="a") + "+" + COMMIT_STORE + WAIT_READ.replace("\n", " //b\n"),
        (("HS305", "a", "b"),),
    ),
    # The last store of the loop is not waited for either: that is the same commit.
    Twin(
        "bulk-commit-missing in a loop",
        "mov.b32 %r20, 0;\nAGAIN:\n" + WAIT_READ + SYNC + put("b") + FENCE + SYNC + store(name="a") + "+" + COMMIT_STORE
        + "add.u64 %out, %out, 2048;\nadd.u32 %r20, %r20, 1;\nsetp.lt.u32 %p0, %r20, 3;\n@%p0 bra AGAIN;\n" + WAIT_STORE,
        (("HS305", "a", "b"),),
    ),
    Twin(
        "store neither committed nor waited for",
        put() + FENCE + SYNC + store(name="a") + "+" + COMMIT_STORE + "+" + WAIT_READ,
        (("HS019", "a", ""),),
    ),
    # Copies of two places, and who reads or refills what either brings: one commit.
    Twin(
        "cp-async-unwaited for want of a commit in the loop",
        PIPELINE.replace("COMMIT", "+" + COMMIT_COPY).replace("WAIT", "1"),
        (("HS017", "first", "read"),),
    ),
    # Likewise one wait, for the copy before the loop and those in it, and for reads and refills of what they bring.
    Twin(
        "cp-async-unwaited for want of a wait in the loop",
        PIPELINE.replace("COMMIT", COMMIT_COPY).replace("cp.async.wait_group WAIT; //wait", "+cp.async.wait_group 1;"),
        (("HS017", "first", "read"),),
    ),
    Twin(
        "cp-async-unwaited for a wait in the loop that leaves too much",
        PIPELINE.replace("COMMIT", COMMIT_COPY).replace(
            "cp.async.wait_group WAIT; //wait", "-cp.async.wait_group 2; //wait\n+cp.async.wait_group 1;"
        ),
        (("HS017", "first", "read"),),
    ),
    Twin(
        "cp-async-unwaited of copies that no wait counts",
        PIPELINE.replace("COMMIT", "+" + COMMIT_COPY).replace("WAIT", "0"),
        (("HS017", "next", "read"),),
    ),
    # The slot would be handed back by those who wait for it to be full.
    Twin(
        "missing-arriver of the first phase of a ring",
        "-" + init(count=2, name="full") + "+" + init() + EMPTIED + SYNC + RING.replace("BRING", EXPECT + load(guard="")),
        (("HS205", "full", "read"),),
        threads=64,
        verdict="deadlock",
    ),
    # Both CTAs expect what the copy would bring, which waits for the slot.
    Twin(
        "missing-arriver of a multicast ring",
        MULTICAST_RING,
        (("HS205", "a", "b"),),
        ctas=2,
        cluster=2,
        verdict="deadlock",
    ),
    # The copy of the third round is left out: who would copy next waits behind the next expect_tx for that one.
    Twin(
        "tx-overexpected in one round of a ring",
        init(name="full") + EMPTIED + SYNC
        + RING.replace("BRING", EXPECT + "setp.ne.u32 %p3, %r20, 2;\n-" + load(guard="@%p3 ") + "+" + load(guard="")),
        (("HS202", "full", "read"),),
        threads=64,
        verdict="deadlock",
    ),
    # Two tiles with an mbarrier each: the second copy tells that of the first one.
    Twin(
        "tx-overexpected by what another mbarrier got",
        init() + init(OTHER, name="other") + SYNC + expect() + expect(OTHER) + load() + wait() + SYNC
        + only("-", load(2048, FULL, "stray")) + only("+", load(2048, OTHER)) + wait(OTHER, name="b"),
        (("HS202", "other", "b"),),
        verdict="deadlock",
    ),
    # Both are stuck, and it is one copy: a quarter of a tile came to the first one before the rest of that.
    Twin(
        "tx-overexpected by what another mbarrier got too early",
        init() + init(OTHER, name="other") + SYNC + expect() + expect(OTHER, 512)
        + only("-", load(2048, FULL, "stray", 512)) + only("+", load(2048, OTHER, "", 512)) + load()
        + "setp.eq.u32 %p0, %w, 0;\n@%p0 bra FIRST;\n" + wait(OTHER, name="b") + "bra END;\nFIRST:\n" + wait() + "END:\n"
        + SYNC + wait(OTHER),
        (("HS202", "other", "b"),),
        verdict="deadlock",
    ),
    # A plain arrive completes the phase before the copies are issued, round after round.
    Twin(
        "tx-underexpected of every round",
        ROUNDS.replace("EXPECT", f"-@%leader mbarrier.arrive.shared::cta.b64 _, [%s+{FULL}]; //arrive\n+" + expect()),
        (("HS201", "first", "read"),),
    ),
    # What the first phase did not expect comes in the later ones: these and their copies are out of step.
    Twin(
        "tx-underexpected of half of every round",
        ROUNDS.replace("EXPECT", "-" + expect(count_bytes=1024).replace("\n", " //arrive\n") + "+" + expect()),
        (("HS201", "copy", "read"),),
    ),
    # All bytes are expected, and the readers are a phase behind.
    Twin(
        "wait-wrong-parity of every round",
        ROUNDS.replace("EXPECT", "-mov.b32 %r21, %r22;\n" + expect().replace("\n", " //arrive\n")),
        (("HS004", "first", "read"), ("HS206", "", "arrive")),
    ),
    # To let the readers go first would let them read what nobody has written.
    Twin(
        "order-barrier-not-primed of a ring",
        NAMED_RING.replace("PRIME", "+" + GIVE_BACK).replace("RELEASE", GIVE_BACK.replace("\n", " //back\n")),
        (("HS505", "", "b"),),
        threads=64,
        verdict="deadlock",
    ),
    # The writers would come to the readers' barrier, and nobody comes to theirs.
    Twin(
        "named-count-mismatch of a ring that is not handed back",
        NAMED_RING.replace("PRIME", GIVE_BACK).replace("RELEASE", "+" + GIVE_BACK),
        (("HS503", "", "b"),),
        threads=64,
        verdict="deadlock",
    ),
    Twin(
        "bulk-wait-by-other-thread of a store that every warp issues",
        BY_ALL + SYNC + put("b") + "cp.async.bulk.wait_group 0;\n",
        (("HS207", "a", "a"), ("HS304", "a", "b")),
    ),
    Twin(
        "a store that every warp issues, unread at exit but for one",
        BY_ALL,
        (("HS207", "a", "a"), ("HS019", "a", "")),
    ),
    # The other CTA's copies go on for a while: what they bring nobody expects, and what they expect nobody brings.
    Twin(
        "missing-arriver of one CTA of a ring that both fill",
        HALVES_RING,
        (("HS205", "a", "b"),),
        ctas=2,
        cluster=2,
        verdict="deadlock",
    ),
    # The readers wait for the right mbarriers, and find what another round has brought.
    Twin(
        "tma-overlap-unordered of a ring that fills one slot only", TWO_SLOTS, (("HS016", "a", "a"),), threads=64
    ),
    # The other lanes of the thread that tells are not ordered either: what orders the other warp orders them too.
    Twin(
        "thread-race of what two warps write and a thread tells of", WRITTEN_BY_ALL, (("HS500", "a", "b"),), threads=64, ctas=2
    ),
]  # fmt: skip
