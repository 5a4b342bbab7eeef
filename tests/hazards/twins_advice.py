"""Twins whose advice depends on what else the program has: see `programs`."""

from __future__ import annotations

from tests.hazards.programs import (
    COMMIT_MMA,
    COMMIT_STORE,
    EMPTY,
    FENCE_REGS,
    FULL,
    OTHER,
    WAIT_READ,
    WAIT_STORE,
    Twin,
    expect,
    get,
    init,
    load,
    mma,
    only,
    put,
    store,
    wait,
    wait_mma,
)

SYNC = "bar.sync 0;\n"
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [%s+{}];\n"
PROXY_FENCE = "fence.proxy.async;\n"

# Lanes of two CTAs take a lock in turn and add to a plain word.
LOCK = (
    "TAKE:\natom.global.cas.b32 %r1, [%out], 0, 1;\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra TAKE;\nmembar.gl;\n"
    "ld.global.b32 %r2, [%out+64]; //b\nadd.u32 %r2, %r2, 1;\nst.global.b32 [%out+64], %r2; //a\n"
    "+membar.gl;\natom.global.exch.b32 %r3, [%out], 0;\n"
)

ADVICE_TWINS = [
    Twin("lock given back with no fence", LOCK, (("HS216", "a", "b"), ("HS216", "a", "a")), threads=1, ctas=2),
    Twin(
        "thread-race of words behind a flag for which one thread waits",
        "mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %rd0, %t, 4;\nadd.u64 %rd0, %rd0, %out;\nsetp.eq.u32 %p0, %r1, 0;\n"
        "@%p0 bra READER;\nst.global.b32 [%rd0+64], %t; //a\nbar.sync 0;\n@%leader st.release.gpu.global.b32 [%out], 1;\n"
        "bra END;\nREADER:\n@!%leader bra OVER;\nLOOK:\nld.acquire.gpu.global.b32 %r2, [%out];\nsetp.eq.u32 %p1, %r2, 0;\n"
        "@%p1 bra LOOK;\nOVER:\n+bar.sync 0;\nld.global.b32 %r3, [%rd0+64]; //b\nEND:\n",
        (("HS500", "b", "a"),),
        threads=64,
        ctas=2,
    ),
    Twin(
        "cp-async-unwaited by others, told by a plain arrive",
        init(count=32) + SYNC + "setp.ne.u32 %p0, %w, 0;\n@%p0 bra READER;\nmad.lo.u32 %r0, %l, 16, %s;\n"
        "cp.async.cg.shared.global [%r0], [%in], 16; //a\n" + only("-", ARRIVE.format(FULL))
        + f"+cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%s+{FULL}];\nREADER:\n" + wait()
        + "@!%p0 bra END;\nmad.lo.u32 %r0, %l, 16, %s;\nld.shared.b32 %r1, [%r0]; //b\nEND:\n+cp.async.wait_all;\n",
        (("HS017", "a", "b"),),
        threads=64,
    ),
    # Warp 0 loads, warp 1 writes; the barrier on which warp 2 waits hears of the load only.
    Twin(
        "thread-race of words that come beside a load",
        "-" + init() + "+" + init(count=33) + SYNC + "setp.eq.u32 %p0, %w, 1;\nsetp.eq.u32 %p1, %w, 2;\n@%p0 bra WORDS;\n"
        "@%p1 bra READER;\n" + expect() + load() + "bra END;\nWORDS:\nmad.lo.u32 %r0, %l, 4, %s;\n"
        "st.shared.b32 [%r0+4096], %t; //a\n" + only("+", ARRIVE.format(FULL)) + "bra END;\nREADER:\n" + wait()
        + "mad.lo.u32 %r0, %l, 4, %s;\nld.shared.b32 %r1, [%r0+4096]; //b\nEND:\n" + SYNC + wait(),
        (("HS500", "a", "b"),),
        threads=96,
    ),
    Twin(
        "phase-unconsumed of arrivals that belong to one phase",
        "-" + init(count=32) + "+" + init(count=64) + SYNC + "setp.eq.u32 %p0, %w, 2;\n@%p0 bra LATER;\nsetp.eq.u32 %p0, %w, 0;\n"
        "@%p0 bra GO;\nmov.b32 %r1, 0;\n-barrier.sync 1, 64;\nGO:\n" + ARRIVE.format(FULL).replace(";", "; //a")
        + "-@%p0 barrier.sync 1, 64;\nLATER:\n-bar.sync 0;\n" + wait(mark="+"),
        (("HS215", "", "a"),),
        threads=96,
    ),
    Twin(
        "named-id-collision of counts that do not agree",
        "setp.ge.u32 %p0, %w, 2;\n@%p0 bra TAKE;\n-bar.arrive 1, 64; //a\n+bar.arrive 1, 96;\nbar.sync 2, 64;\nbra END;\n"
        "TAKE:\nbar.sync 1, 96; //b\nEND:\n",
        (("HS504", "a", "b"),),
        threads=96,
        verdict="deadlock",
    ),
    Twin(
        "named-id-collision of more warps than the count",
        "setp.lt.u32 %p0, %w, 2;\n@%p0 bra ARRIVE;\n-bar.sync 1, 96; //a\n+bar.sync 1, 128;\nbra END;\n"
        "ARRIVE:\n-bar.arrive 1, 96;\n+bar.arrive 1, 128;\nEND:\n",
        (("HS504", "a", "a"),),
        verdict="deadlock",
    ),
    # What was read before, and waited for, is read once more; the write should have waited for that.
    Twin(
        "store-source-reuse of a source that is read twice",
        put() + PROXY_FENCE + SYNC + store() + COMMIT_STORE + WAIT_READ + SYNC + store(name="a", to=2048) + COMMIT_STORE
        + "+" + WAIT_READ + SYNC + put("b") + WAIT_STORE,
        (("HS301", "a", "b"),),
    ),
    Twin(
        "wgmma-wait-off-by-one of operands that are read twice",
        init() + SYNC + expect() + load() + wait() + FENCE_REGS + mma() + COMMIT_MMA + wait_mma() + SYNC + FENCE_REGS
        + mma("a", d=4) + COMMIT_MMA + wait_mma(1, "-") + wait_mma(0, "+") + SYNC + put("b") + wait_mma(),
        (("HS009", "a", "b"),),
    ),
    Twin(
        "st-async-to-async-read of what red.async adds",
        init() + "@%leader st.shared.v4.b32 [%s], {%z, %z, %z, %z};\n" + PROXY_FENCE + SYNC + expect(count_bytes=4) + "mapa.shared::cluster.u32 %r1, %s, 0;\n"
        "add.u32 %r2, %r1, 8192;\n@%leader red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32"
        " [%r1], 1, [%r2]; //a\n" + wait() + "+" + PROXY_FENCE
        + "@%leader " + store(name="b", count_bytes=16, guard="") + COMMIT_STORE + WAIT_STORE,
        (("HS109", "a", "b"),),
    ),
    Twin(
        "misaligned-access by ldmatrix",
        "st.shared.v4.b32 [%s], {%t, %t, %t, %t};\nbar.warp.sync -1;\n"
        "-add.u32 %r0, %s, 8;\n+mov.u32 %r0, %s;\n"
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r0]; //b\n",
        (("HS704", "", "b"),),
        threads=32,
    ),
    # The issuer arrives behind a wait that leaves the last group pending.
    Twin(
        "wait-without-rejoin whose wait leaves the group pending",
        init(EMPTY) + SYNC + put() + PROXY_FENCE + SYNC + store(name="a") + COMMIT_STORE
        + "-@%leader cp.async.bulk.wait_group.read 1;\n" + only("+", WAIT_READ)
        + "@%leader " + ARRIVE.format(EMPTY) + only("-", WAIT_READ) + wait(EMPTY) + put("b") ,
        (("HS302", "a", "b"), ("HS306", "a", "b")),
    ),
    # The issuer waits, and sets a flag that does not release.
    Twin(
        "bulk store waited for before a flag with no release",
        put() + PROXY_FENCE + "mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p0, %r1, 0;\nbar.sync 0;\n@%p0 bra READER;\n"
        + store(name="a", to=4096) + COMMIT_STORE + WAIT_STORE + "+fence.acq_rel.gpu;\n"
        + "@%leader st.relaxed.gpu.global.b32 [%out], 1;\nbra END;\nREADER:\nld.acquire.gpu.global.b32 %r2, [%out];\n"
        + "setp.eq.u32 %p1, %r2, 0;\n@%p1 bra READER;\nld.global.b32 %r3, [%out+4096]; //b\nEND:\n",
        (("HS216", "a", "b"),),
        ctas=2,
    ),
    # Two slots of 2 KiB that lie 1 KiB apart: the first is filled again when its readers are done, not those of the second.
    Twin(
        "slot-overwrite by the load of a slot that lies over it",
        init() + init(OTHER) + init(EMPTY, 128) + SYNC + "setp.eq.u32 %p0, %w, 4;\n@%p0 bra FILL;\n" + wait() + get("c")
        + PROXY_FENCE + ARRIVE.format(EMPTY) + wait(OTHER) + only("-", get("a", 1024)) + only("+", get(at=2048))
        + wait(FULL, 1) + "bra END;\nFILL:\nsetp.ne.u32 %p2, %l, 0;\n@%p2 bra END;\n"
        + f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+{FULL}], 2048;\n" + load(guard="")
        + f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+{OTHER}], 2048;\n"
        + only("-", load(1024, OTHER, "d", guard="")) + only("+", load(2048, OTHER, guard=""))
        + wait(EMPTY) + f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+{FULL}], 2048;\n" + load(guard="", name="b")
        + "END:\n",
        (("HS006", "c", "d"), ("HS006", "a", "b")),
        threads=160,
    ),
    # One warp hands back the slot that two have read.
    Twin(
        "slot-overwrite that another warp hands back",
        init() + init(EMPTY, 32) + SYNC + "setp.eq.u32 %p0, %w, 4;\n@%p0 bra FILL;\n" + wait(name="c") + get("a") + PROXY_FENCE
        + "+bar.sync 1, 128;\nsetp.ne.u32 %p1, %w, 0;\n@%p1 bra NEXT;\n" + ARRIVE.format(EMPTY) + "NEXT:\n" + wait(FULL, 1)
        + "bra END;\nFILL:\nsetp.ne.u32 %p2, %l, 0;\n@%p2 bra END;\n"
        + f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+{FULL}], 2048;\n" + load(guard="")
        + wait(EMPTY) + f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+{FULL}], 2048; //e\n" + load(guard="", name="b")
        + "END:\n",
        (("HS006", "a", "b"), ("HS005", "c", "e")),
        threads=160,
    ),
]  # fmt: skip
"""Bad and good twins."""
