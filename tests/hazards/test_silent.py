"""Habits that are right and that other tools have called wrong: no finding, not even a note, under any order."""

from __future__ import annotations

from dataclasses import replace

import pytest

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
    launch,
    load,
    mma,
    put,
    store,
    wait,
    wait_mma,
)
from tests.hazards.twins import FLAG
from tests.hazards.twins_lanes import TOLD_OF_A_LOAD
from tests.hazards.twins_stale import HINTS

SYNC = "bar.sync 0;\n"
CLUSTER = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
FENCE = "fence.proxy.async;\n"
RING = (
    init(FULL)
    + init(EMPTY, 128)
    + SYNC
    + "mov.b32 %r20, 0;\nsetp.ge.u32 %p0, %w, 4;\n@%p0 bra PRODUCER;\n"
    + "CONSUMER:\nand.b32 %r21, %r20, 1;\n"
    + wait(FULL, "%r21")
    + "BODY"
    + f"mbarrier.arrive.shared::cta.b64 _, [%s+{EMPTY}];\n"
    + "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p1, %r20, 4;\n@%p1 bra CONSUMER;\nbra END;\n"
    + "PRODUCER:\nsetp.ne.u32 %p2, %t, 128;\n@%p2 bra END;\n"
    + "FILL:\nnot.b32 %r21, %r20;\nand.b32 %r21, %r21, 1;\n"
    + wait(EMPTY, "%r21")
    + f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+{FULL}], 2048;\n"
    + load(guard="")
    + "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p1, %r20, 4;\n@%p1 bra FILL;\nEND:\n"
)
FIRST_LANE = "setp.ne.u32 %p0, %l, 0;\n@%p0 bra END;\n"
# What ends a loop is taken away only by those who know that all have looked, or who looked themselves.
WORDS = [
    Twin(
        "a sequence lock: the reader waits for an even number, the writer for nobody",
        "mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p0, %r1, 0;\n@%p0 bra READER;\nmov.b32 %r2, 0;\nAGAIN:\nadd.u32 %r2, %r2, 1;\n"
        "st.relaxed.gpu.global.b32 [%out], %r2;\nfence.acq_rel.gpu;\nst.relaxed.gpu.global.b32 [%out+64], %r2;\n"
        "add.u32 %r2, %r2, 1;\nst.release.gpu.global.b32 [%out], %r2;\nsetp.lt.u32 %p1, %r2, 8;\n@%p1 bra AGAIN;\nbra END;\n"
        "READER:\nld.acquire.gpu.global.b32 %r3, [%out];\nand.b32 %r4, %r3, 1;\nsetp.ne.u32 %p2, %r4, 0;\n@%p2 bra READER;\n"
        "ld.relaxed.gpu.global.b32 %r5, [%out+64];\nfence.acq_rel.gpu;\nld.relaxed.gpu.global.b32 %r6, [%out];\n"
        "setp.ne.u32 %p3, %r6, %r3;\n@%p3 bra READER;\nsetp.lt.u32 %p3, %r6, 8;\n@%p3 bra READER;\n"
        "st.global.b32 [%out+128], %r5;\nEND:\n",
        (),
        threads=1,
        ctas=2,
    ),
    Twin(
        "a grid barrier whose top bit flips, three rounds",
        "mov.b32 %r20, 0;\nmov.u32 %r21, %ctaid.x;\nsetp.eq.u32 %p1, %r21, 0;\nselp.b32 %r22, 0x7fffffff, 1, %p1;\n"
        "ROUND:\nbar.sync 0;\n@!%leader bra OVER;\nfence.acq_rel.gpu;\n"
        "atom.relaxed.gpu.global.add.u32 %r1, [%out], %r22;\n"
        "LOOK:\nld.acquire.gpu.global.b32 %r2, [%out];\nxor.b32 %r3, %r1, %r2;\nsetp.ge.s32 %p2, %r3, 0;\n@%p2 bra LOOK;\n"
        "OVER:\nbar.sync 0;\nadd.u32 %r20, %r20, 1;\nsetp.lt.u32 %p3, %r20, 3;\n@%p3 bra ROUND;\n",
        (),
        threads=64,
        ctas=2,
    ),
    Twin(
        "a lock that is looked at before it is taken",
        FIRST_LANE
        + "AGAIN:\nld.relaxed.gpu.global.b32 %r1, [%out];\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra AGAIN;\n"
        "atom.acquire.gpu.global.cas.b32 %r1, [%out], 0, 1;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra AGAIN;\n"
        "ld.global.b32 %r2, [%out+64];\nadd.u32 %r2, %r2, 1;\nst.global.b32 [%out+64], %r2;\n"
        "st.release.gpu.global.b32 [%out], 0;\nEND:\n",
        (),
        ctas=2,
    ),
    Twin(
        "a mailbox that its reader empties",
        "@%leader st.shared.b32 [%s], 0;\n"
        + SYNC
        + FIRST_LANE
        + "mov.b32 %r20, 0;\nsetp.eq.u32 %p1, %w, 0;\n@%p1 bra READER;\n"
        "EMPTY:\nld.acquire.cta.shared.b32 %r1, [%s];\nsetp.ne.u32 %p2, %r1, 0;\n@%p2 bra EMPTY;\n"
        "st.shared.b32 [%s+64], %r20;\nst.release.cta.shared.b32 [%s], 1;\n"
        "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p3, %r20, 3;\n@%p3 bra EMPTY;\nbra END;\n"
        "READER:\nld.acquire.cta.shared.b32 %r1, [%s];\nsetp.eq.u32 %p2, %r1, 1;\n@%p2 bra TAKE;\nnanosleep.u32 20;\n"
        "bra READER;\nTAKE:\nld.shared.b32 %r2, [%s+64];\nst.release.cta.shared.b32 [%s], 0;\n"
        "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p3, %r20, 3;\n@%p3 bra READER;\nEND:\n",
        (),
        threads=64,
    ),
    Twin(
        "a counter that only grows",
        "@%leader st.shared.b32 [%s], 0;\n" + SYNC + FIRST_LANE + "mov.b32 %r20, 0;\n"
        "ROUND:\nadd.u32 %r20, %r20, 4;\nred.release.cta.shared.add.u32 [%s], 1;\n"
        "LOOK:\nld.acquire.cta.shared.b32 %r1, [%s];\nsetp.lt.u32 %p1, %r1, %r20;\n@%p1 bra LOOK;\n"
        "setp.lt.u32 %p2, %r20, 12;\n@%p2 bra ROUND;\nEND:\n",
        (),
    ),
]
MULTIPLY = FENCE_REGS + mma() + COMMIT_MMA + wait_mma()
PROGRAMS = [
    *WORDS,
    *HINTS,
    replace(TOLD_OF_A_LOAD, body=TOLD_OF_A_LOAD.body + get()),
    # TMA load, wait, generic read, a fence before the release, refill: four rounds of a ring of one slot.
    Twin("ring read by threads", RING.replace("BODY", get() + FENCE), (), threads=160),
    # TMA load, wait, wgmma, wait_group, arrive, refill: no proxy fence anywhere.
    Twin("ring read by wgmma", RING.replace("BODY", MULTIPLY), (), threads=160),
    # An operation is not its issuer: another warp stores on what a load brought, round after round.
    Twin(
        "ring stored on by its reader",
        RING.replace(
            "BODY",
            "setp.ne.u32 %p3, %t, 0;\n@%p3 bra SKIP;\n"
            + store(guard="")
            + "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\nSKIP:\nadd.u64 %out, %out, 2048;\n",
        )
        + "@%leader cp.async.bulk.wait_group 0;\n",
        (),
        threads=160,
    ),
    Twin(
        "generic and async read of the same bytes",
        put() + FENCE + SYNC + store() + COMMIT_STORE + get() + WAIT_STORE,
        (),
    ),
    Twin(
        "two loads on one barrier under one expect_tx",
        init()
        + SYNC
        + expect(count_bytes=4096)
        + load()
        + load(2048)
        + wait()
        + get()
        + get(at=2048),
        (),
    ),
    Twin(
        "complete_tx before expect_tx",
        init() + SYNC + load() + expect() + wait() + get(),
        (),
    ),
    Twin(
        "an elected lane waits, the others join",
        init()
        + SYNC
        + expect()
        + load()
        + "elect.sync _|%p5, -1;\n@!%p5 bra JOIN;\n"
        + wait()
        + "JOIN:\nbar.warp.sync -1;\n"
        + get()
        + SYNC,
        (),
    ),
    Twin(
        "order through two barriers",
        "setp.ne.u32 %p0, %w, 0;\n@%p0 bra SECOND;\n@%leader st.shared.b32 [%s], 1;\nbarrier.sync 1, 64;\nbra END;\n"
        "SECOND:\nsetp.ne.u32 %p0, %w, 1;\n@%p0 bra THIRD;\nbarrier.sync 1, 64;\nbarrier.sync 2, 64;\nbra END;\n"
        "THIRD:\nbarrier.sync 2, 64;\nld.shared.b32 %r1, [%s];\nEND:\n",
        (),
        threads=96,
    ),
    Twin(
        "accumulators of one shape follow each other",
        init()
        + SYNC
        + expect()
        + load()
        + wait()
        + FENCE_REGS
        + mma()
        + mma()
        + COMMIT_MMA
        + mma()
        + COMMIT_MMA
        + wait_mma(),
        (),
    ),
    Twin(
        ".read is enough where only the source is used again",
        put() + FENCE + SYNC + store() + COMMIT_STORE + WAIT_READ + SYNC + put(),
        (),
    ),
    Twin(
        "a fence of shared::cluster for shared::cta",
        put() + "fence.proxy.async.shared::cluster;\n" + SYNC + store() + COMMIT_STORE + WAIT_READ,
        (),
    ),
    Twin(
        "a fence on the issuer's side, after the barrier",
        put() + SYNC + FENCE + store() + COMMIT_STORE + WAIT_READ,
        (),
    ),
    Twin(
        "a peek that says no, then a loop",
        init()
        + SYNC
        + "mbarrier.test_wait.parity.shared::cta.b64 %p4, [%s+8192], 0;\n@%p4 bra AFTER;\n"
        + expect()
        + load()
        + "AFTER:\n"
        + wait()
        + get(),
        (),
    ),
    Twin(
        "barrier invalidated, then its storage used",
        init()
        + SYNC
        + expect()
        + load()
        + wait()
        + SYNC
        + f"@%leader mbarrier.inval.shared::cta.b64 [%s+{FULL}];\n"
        + SYNC
        + f"@%leader st.shared.b64 [%s+{FULL}], %rd1;\n",
        (),
    ),
    Twin(
        "relaxed cluster arrive after fenced inits",
        init()
        + "fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n"
        + expect()
        + load()
        + wait()
        + get()
        + CLUSTER,
        (),
        ctas=2,
        cluster=2,
    ),
    Twin(
        # As PTX ISA "barrier.cluster" writes it; the threads that wrote are fenced, the others need not be.
        "relaxed cluster arrives after fences",
        CLUSTER
        + "mapa.shared::cluster.u32 %r1, %s, 0;\nmul.lo.u32 %r2, %c, 4;\nadd.u32 %r1, %r1, %r2;\n"
        "@%leader st.shared::cluster.b32 [%r1], %t;\n@%leader fence.acq_rel.cluster;\n"
        "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n"
        "setp.ne.u32 %p0, %c, 0;\n@!%p0 ld.shared.b64 %rd0, [%s];\n",
        (),
        ctas=2,
        cluster=2,
        threads=32,
    ),
    Twin(
        # The owner's own wait says that all has come; nobody needs the peers to say so again.
        "st.async into a CTA that exits once it has seen all bytes",
        init()
        + expect(count_bytes=256)
        + CLUSTER
        + "setp.ge.u32 %p0, %t, 32;\n@%p0 bra END;\nmad.lo.u32 %r1, %c, 128, %s;\nmad.lo.u32 %r1, %t, 4, %r1;\n"
        "mapa.shared::cluster.u32 %r1, %r1, 0;\nmapa.shared::cluster.u32 %r2, %s, 0;\n"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %t, [%r2+8192];\n"
        "setp.ne.u32 %p1, %c, 0;\n@%p1 bra END;\n"
        + wait()
        + "ld.shared.b32 %r3, [%s+128];\nEND:\n",
        (),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "a relaxed arrive on a CTA that exits once it has seen the phase",
        init()
        + CLUSTER
        + "setp.eq.u32 %p0, %c, 0;\n@%p0 bra OWNER;\nmapa.shared::cluster.u32 %r1, %s, 0;\n"
        "@%leader mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r1+8192];\nbra END;\nOWNER:\n"
        + wait(scope=".acquire.cluster")
        + "END:\n",
        (),
        ctas=2,
        cluster=2,
    ),
    Twin(
        # The sender never arrives: that its bytes came says that it has seen the slot empty.
        "ring filled by st.async, armed by its reader",
        init()
        + init(EMPTY, 128)
        + "@%leader mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+8192], 4;\n"
        + CLUSTER
        + "mov.b32 %r20, 0;\nsetp.ne.u32 %p0, %c, 0;\n@%p0 bra RECEIVER;\n@!%leader bra END;\n"
        "mapa.shared::cluster.u32 %r2, %s, 1;\n"
        "SEND:\nst.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r2], %r20, [%r2+8192];\n"
        "and.b32 %r21, %r20, 1;\n"
        + wait(EMPTY, "%r21", scope=".acquire.cluster")
        + "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p1, %r20, 4;\n@%p1 bra SEND;\nbra END;\n"
        "RECEIVER:\nand.b32 %r21, %r20, 1;\n"
        + wait(FULL, "%r21", scope=".acquire.cluster")
        + "setp.lt.u32 %p2, %r20, 3;\nand.pred %p2, %p2, %leader;\n"
        "@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+8192], 4;\n"
        "ld.shared.b32 %r1, [%s];\nmapa.shared::cluster.u32 %r3, %s, 0;\n"
        f"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3+{EMPTY}];\n"
        "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p1, %r20, 4;\n@%p1 bra RECEIVER;\nEND:\n" + CLUSTER,
        (),
        ctas=2,
        cluster=2,
    ),
    Twin(
        # An arrive that follows cp.async publishes the copies only, but it comes after the wait for the empty slot.
        "ring filled by cp.async",
        init(FULL, 32)
        + init(EMPTY, 128)
        + SYNC
        + "mov.b32 %r20, 0;\nsetp.ge.u32 %p0, %w, 4;\n@%p0 bra PRODUCER;\nCONSUMER:\nand.b32 %r21, %r20, 1;\n"
        + wait(FULL, "%r21")
        + get()
        + f"mbarrier.arrive.shared::cta.b64 _, [%s+{EMPTY}];\n"
        + "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p1, %r20, 4;\n@%p1 bra CONSUMER;\nbra END;\n"
        + "PRODUCER:\nmul.wide.u32 %rd0, %l, 64;\nadd.u64 %rd0, %rd0, %in;\nmad.lo.u32 %r0, %l, 64, %s;\n"
        + "FILL:\nnot.b32 %r21, %r20;\nand.b32 %r21, %r21, 1;\n"
        + wait(EMPTY, "%r21")
        + "".join(
            f"cp.async.cg.shared.global [%r0+{at}], [%rd0+{at}], 16;\n" for at in range(0, 64, 16)
        )
        + "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%s+8192];\n"
        + "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p1, %r20, 4;\n@%p1 bra FILL;\ncp.async.wait_all;\nEND:\n",
        (),
        threads=160,
    ),
    Twin(
        "totals of arrivals that differ",
        init(OTHER, 2)
        + init()
        + SYNC
        + f"@%leader mbarrier.arrive.shared::cta.b64 _, [%s+{OTHER}];\n"
        + SYNC,
        (),
    ),
    Twin(
        "a fence of .cta scope behind a wider one",
        FLAG.replace("RELEASE", "fence.acq_rel.gpu;\nfence.acq_rel.cta;").replace(
            "ACQUIRE", "fence.acq_rel.cta;\nfence.acq_rel.gpu;"
        ),
        (),
        ctas=2,
    ),
    Twin(
        "a lock of each CTA with fences of .cta scope",
        "mov.u32 %r4, %ctaid.x;\nmul.wide.u32 %rd0, %r4, 512;\nadd.u64 %rd0, %out, %rd0;\n"
        "setp.ne.u32 %p0, %l, 0;\n@%p0 bra END;\nLOCK:\natom.relaxed.cta.global.cas.b32 %r1, [%rd0], 0, 1;\n"
        "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra LOCK;\nmembar.cta;\nld.global.b32 %r2, [%rd0+256];\n"
        "add.u32 %r2, %r2, 1;\nst.global.b32 [%rd0+256], %r2;\nmembar.cta;\n"
        "atom.relaxed.cta.global.exch.b32 %r3, [%rd0], 0;\nEND:\n",
        (),
        ctas=2,
    ),
    Twin(
        "more groups left pending than there are, then a wait for all",
        put()
        + FENCE
        + SYNC
        + store()
        + COMMIT_STORE
        + store(to=2048)
        + COMMIT_STORE
        + store(to=4096)
        + COMMIT_STORE
        + "@%leader cp.async.bulk.wait_group 4;\n"
        + WAIT_STORE
        + SYNC
        + put(),
        (),
    ),
    Twin(
        "hundreds of groups whose sources are free, then a wait for all",
        put()
        + FENCE
        + SYNC
        + "mov.b32 %r30, 0;\nLOOP:\n"
        + store(count_bytes=64)
        + COMMIT_STORE
        + WAIT_READ
        + "add.u64 %out, %out, 64;\nadd.u32 %r30, %r30, 1;\n"
        + "setp.lt.u32 %p15, %r30, 300;\n@%p15 bra LOOP;\n"
        + WAIT_STORE
        + SYNC
        + "ld.global.b32 %r1, [%out+-19200];\n",
        (),
    ),
    Twin(
        # As CUDA's threadFenceReduction: words by volatile accesses, the counter set back by any thread behind a barrier.
        "the last block sets the counter back",
        "mov.u32 %r9, %ctaid.x;\nmul.wide.u32 %rd0, %r9, 4;\nadd.u64 %rd0, %rd0, %out;\n@!%leader bra WAIT;\n"
        "st.volatile.global.b32 [%rd0+64], 7;\nmembar.gl;\natom.global.inc.u32 %r1, [%out], 3;\n"
        "st.shared.b32 [%s], %r1;\nWAIT:\nbar.sync 0;\nld.shared.b32 %r2, [%s];\nsetp.ne.u32 %p0, %r2, 2;\n@%p0 bra END;\n"
        "membar.gl;\nld.volatile.global.b32 %r3, [%out+68];\nsetp.eq.u32 %p1, %t, 40;\n@%p1 st.global.b32 [%out], 0;\nEND:\n",
        (),
        threads=64,
        ctas=3,
    ),
    Twin(
        "a word taken back by who looked at it first for nothing, then to go on",
        "@!%leader bra END;\nmov.u32 %r9, %ctaid.x;\nsetp.ne.u32 %p0, %r9, 0;\n@%p0 bra LOOK;\n"
        "st.relaxed.gpu.global.b32 [%out], 1;\nbra END;\n"
        "LOOK:\nld.relaxed.gpu.global.b32 %r1, [%out];\nld.relaxed.gpu.global.b32 %r2, [%out];\n"
        "setp.eq.u32 %p1, %r2, 0;\n@%p1 bra LOOK;\nst.global.b32 [%out], 0;\nEND:\n",
        (),
        ctas=2,
    ),
    Twin(
        # As PyTorch's and CUDA's sums over blocks: all threads fence, one draws, all of the last block fence and read.
        "the last of three blocks reads what all threads of the others wrote plainly",
        "mov.u32 %r9, %ctaid.x;\nmad.lo.u32 %r8, %r9, 64, %t;\nmul.wide.u32 %rd0, %r8, 4;\nadd.u64 %rd0, %rd0, %out;\n"
        "mul.wide.u32 %rd1, %t, 4;\nadd.u64 %rd1, %rd1, %out;\nst.global.b32 [%rd0+64], 7;\nmembar.gl;\nbar.sync 0;\n"
        "@!%leader bra WAIT;\natom.global.add.u32 %r1, [%out], 1;\nst.shared.b32 [%s], %r1;\nWAIT:\nbar.sync 0;\n"
        "ld.shared.b32 %r2, [%s];\nsetp.ne.u32 %p0, %r2, 2;\n@%p0 bra END;\nmembar.gl;\nld.global.b32 %r3, [%rd1+64];\n"
        "ld.global.b32 %r4, [%rd1+320];\nld.global.b32 %r5, [%rd1+576];\nld.global.b32 %r6, [%out+200];\nEND:\n",
        (),
        threads=64,
        ctas=3,
    ),
    Twin(
        "atomics of one scope",
        "atom.relaxed.gpu.global.add.u32 %r1, [%out], 1;\nred.relaxed.gpu.global.add.u32 [%out], 1;\n",
        (),
        ctas=2,
    ),
]


@pytest.mark.parametrize("order", [("in-order", 0), ("seeded", 5), ("adversarial", 0)], ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_nothing_is_found(program: Twin, order: tuple[str, int]) -> None:
    result = launch(program, good=True, schedule=order[0], seed=order[1])
    assert list(result.hazards) == []
    assert result.verdict == "clean"
