"""Twin programs by rule: see `programs`."""

from __future__ import annotations

from tests.hazards.programs import (
    COMMIT_MMA,
    COMMIT_STORE,
    EMPTY,
    FENCE_REGS,
    FULL,
    MINE,
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
from tests.hazards.twins_advice import ADVICE_TWINS
from tests.hazards.twins_causes import CAUSES
from tests.hazards.twins_company import COMPANY
from tests.hazards.twins_ends import FAULTS, HANGS, MAPS, NOTES
from tests.hazards.twins_lanes import LANES
from tests.hazards.twins_objects import NON_COHERENT, OBJECTS
from tests.hazards.twins_stale import STALE

SYNC = "bar.sync 0;\n"
CLUSTER = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
FENCE = "fence.proxy.async;\n"
LOADED = init() + SYNC + expect() + load() + wait()
# The leader asks for a tile, and all arrive.
ASKED = (
    f"@%leader mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%s+{FULL}], 2048;\n"
    + load(name="NAME")
    + f"mbarrier.arrive.shared::cta.b64 _, [%s+{FULL}];\n"
)
WORDS_OF_THREADS = "mad.lo.u32 %r0, %t, 4, %s;\nst.shared.b32 [%r0], %t; //a\n"
NEIGHBOUR = "xor.b32 %r5, %t, 127;\nmad.lo.u32 %r0, %r5, 16, %s;\n"
# The first CTA sets a flag behind a word of data that the second one reads; fences stand for RELEASE and ACQUIRE.
FLAG = (
    "mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra READER;\n@%leader st.global.b32 [%out+64], 7; //a\n"
    "RELEASE\n@%leader st.relaxed.gpu.global.b32 [%out], 1;\nbra END;\nREADER:\n"
    "ld.relaxed.gpu.global.b32 %r2, [%out];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra READER;\nACQUIRE\n"
    "ld.global.b32 %r3, [%out+64]; //b\nEND:\n"
)
LDMATRIX = "ldmatrix.sync.aligned.m8n8."
READ_NEIGHBOUR = NEIGHBOUR + "ld.shared.b32 %r1, [%r0];"
# CTA 0 sends a word to CTA 1, which goes on.
REMOTE = (
    "setp.ne.u32 %p0, %c, 0;\n@%p0 bra TAKE;\nmapa.shared::cluster.u32 %r2, %s, 1;\nadd.u32 %r3, %r2, 8192;\n"
    "@%leader st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r2], 7, [%r3]; //NAME\nbra END;\nTAKE:\n"
)


WAITING = [
    Twin(
        "tma-read-unwaited",
        init() + SYNC + expect() + load(name="a") + wait(mark="+") + get("b"),
        (("HS001", "a", "b"),),
    ),
    Twin(
        "tma-read-unwaited by wgmma",
        init()
        + SYNC
        + expect()
        + load(name="a")
        + wait(mark="+")
        + FENCE_REGS
        + mma("b")
        + COMMIT_MMA
        + wait_mma(),
        (("HS001", "a", "b"),),
    ),
    Twin(
        "tma-read-unwaited, stored on",
        init()
        + SYNC
        + expect()
        + load(name="a")
        + wait(mark="+")
        + store(name="b")
        + COMMIT_STORE
        + WAIT_STORE,
        (("HS001", "a", "b"),),
    ),
    Twin(
        "tma-wait-late",
        init() + SYNC + expect() + load(name="a") + wait(mark="+") + get("b") + wait(mark="-"),
        (("HS002", "a", "b"),),
    ),
    Twin(
        "tma-read-unwaited by the lanes that do not wait",
        init()
        + SYNC
        + expect()
        + load(name="a")
        + "setp.ne.u32 %p1, %l, 0;\n@%p1 bra REST;\n"
        + wait()
        + "REST:\n+bar.warp.sync -1;\n"
        + get("b"),
        (("HS001", "a", "b"),),
    ),
    Twin(
        "tma-wait-late for st.async over what threads wrote",
        init()
        + expect(count_bytes=4)
        + "@%leader st.shared.b32 [%s], 0;\n"
        + CLUSTER
        + REMOTE.replace("NAME", "a")
        + wait(FULL, 0, "+", ".acquire.cluster")
        + "ld.shared.b32 %r1, [%s]; //b\n"
        + wait(FULL, 0, "-", ".acquire.cluster")
        + "END:\n"
        + CLUSTER,
        (("HS002", "a", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        # In order the refill comes before the other warps read: they have waited for what was there.
        "slot-overwrite by a warp that goes ahead",
        init(count=128)
        + SYNC
        + ASKED.replace("NAME", "")
        + wait()
        + get("a")
        + FENCE
        + "+"
        + SYNC
        + ASKED.replace("NAME", "b")
        + wait(parity=1)
        + get(),
        (("HS006", "a", "b"),),
    ),
    Twin(
        "slot-overwrite by st.async",
        init()
        + expect(count_bytes=4)
        + "@%leader st.shared.b32 [%s], 0;\n"
        + CLUSTER
        + "ld.shared.b32 %r1, [%s]; //a\n+"
        + CLUSTER.replace("\n", "\n+", 1)
        + REMOTE.replace("NAME", "b")
        + wait(scope=".acquire.cluster")
        + "ld.shared.b32 %r1, [%s];\nEND:\n"
        + CLUSTER,
        (("HS006", "a", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "wait-wrong-barrier",
        init()
        + init(OTHER)
        + SYNC
        + expect()
        + load(0)
        + expect(OTHER)
        + load(2048, OTHER, "a")
        + wait(FULL, 0, "-")
        + wait(OTHER, 0, "+")
        + get("b", 2048)
        + wait(FULL)
        + SYNC
        + wait(OTHER),
        (("HS003", "a", "b"),),
    ),
    Twin(
        "wait-wrong-parity",
        init()
        + SYNC
        + expect()
        + load(name="a")
        + wait(FULL, 1, "-")
        + wait(FULL, 0, "+")
        + get("b"),
        (("HS004", "a", "b"),),
    ),
    Twin(
        "parity-aliasing",
        init()
        + SYNC
        + expect()
        + load()
        + wait(name="a")
        + get()
        + "+bar.sync 0;\n"
        + "@%leader mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+8192], 2048; //b\n"
        + load(2048)
        + wait(FULL, 1),
        (("HS005", "a", "b"),),
    ),
    Twin(
        "parity-aliasing where bytes alone hold the phase back",
        init()
        + init(EMPTY, 128)
        + SYNC
        + "setp.ge.u32 %p0, %w, 4;\n@%p0 bra PRODUCER;\n"
        + wait(name="a")
        + get()
        + f"mbarrier.arrive.shared::cta.b64 _, [%s+{EMPTY}];\n"
        + wait(FULL, 1)
        + "bra END;\nPRODUCER:\nsetp.ne.u32 %p1, %t, 128;\n@%p1 bra END;\n"
        + "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+8192], 2048;\n"
        + load(guard="")
        + wait()
        + "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+8192], 4096; //b\n"
        + load(2048, guard="")
        + wait(EMPTY, mark="+")
        + load(4096, guard="")
        + "END:\n",
        (("HS005", "a", "b"),),
        threads=160,
    ),
    Twin(
        "parity-aliasing, fewer bytes expected than come unasked",
        init()
        + init(EMPTY, 128)
        + SYNC
        + "setp.ge.u32 %p0, %w, 4;\n@%p0 bra PRODUCER;\n"
        + wait(name="a")
        + get()
        + f"mbarrier.arrive.shared::cta.b64 _, [%s+{EMPTY}];\n"
        + wait(FULL, 1)
        + "bra END;\nPRODUCER:\nsetp.ne.u32 %p1, %t, 128;\n@%p1 bra END;\n"
        + "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+8192], 2048;\n"
        + load(guard="")
        + wait()
        + "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%s+8192], 2048;\n"
        + load(2048, guard="")
        + "+mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%s+8192], 2048;\n"
        + "mbarrier.arrive.shared::cta.b64 _, [%s+8192]; //b\n"
        + wait(EMPTY)
        + "+"
        + load(4096, guard="")
        + "END:\n",
        (("HS005", "a", "b"),),
        threads=160,
    ),
    Twin(
        "parity-aliasing, st.async sent before all have answered",
        init()
        + "-"
        + init(EMPTY)
        + "+"
        + init(EMPTY, 128)
        + "@%leader mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+8192], 4;\n"
        + CLUSTER
        + "setp.ne.u32 %p0, %c, 0;\n@%p0 bra RECEIVER;\n@!%leader bra END;\n"
        + "mapa.shared::cluster.u32 %r2, %s, 1;\n"
        + "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r2], 7, [%r2+8192];\n"
        + wait(EMPTY, scope=".acquire.cluster")
        + "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r2+64], 8, [%r2+8192];\n"
        + "bra END;\nRECEIVER:\n"
        + wait(scope=".acquire.cluster", name="a")
        + "@%leader mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+8192], 4; //b\n"
        + "ld.shared.b32 %r1, [%s];\nmapa.shared::cluster.u32 %r3, %s, 0;\n"
        + f"-@%leader mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3+{EMPTY}];\n"
        + f"+mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3+{EMPTY}];\n"
        + wait(FULL, 1, scope=".acquire.cluster")
        + "ld.shared.b32 %r1, [%s+64];\nEND:\n"
        + CLUSTER,
        (("HS005", "a", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "parity-aliasing, cp.async that follows an answer of one",
        init(FULL, 32)
        + "-"
        + init(EMPTY)
        + "+"
        + init(EMPTY, 128)
        + SYNC
        + "setp.ge.u32 %p0, %w, 4;\n@%p0 bra PRODUCER;\n"
        + wait(name="a")
        + f"-@%leader mbarrier.arrive.shared::cta.b64 _, [%s+{EMPTY}];\n"
        + f"+mbarrier.arrive.shared::cta.b64 _, [%s+{EMPTY}];\n"
        + wait(FULL, 1)
        + "bra END;\nPRODUCER:\nmul.wide.u32 %rd0, %l, 16;\nadd.u64 %rd0, %rd0, %in;\nmad.lo.u32 %r0, %l, 16, %s;\n"
        + "cp.async.cg.shared.global [%r0], [%rd0], 16;\n"
        + "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%s+8192];\n"
        + wait(EMPTY)
        + "cp.async.cg.shared.global [%r0+2048], [%rd0], 16;\n"
        + "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%s+8192]; //b\ncp.async.wait_all;\nEND:\n",
        (("HS005", "a", "b"),),
        threads=160,
    ),
    Twin(
        "slot-overwrite",
        LOADED
        + init(OTHER)
        + get("a")
        + FENCE
        + "+bar.sync 0;\n"
        + expect(OTHER)
        + load(0, OTHER, "b")
        + SYNC
        + wait(OTHER),
        (("HS006", "a", "b"),),
    ),
    Twin(
        "slot shared by two warpgroups",
        LOADED
        + init(OTHER)
        + SYNC
        + FENCE_REGS
        + mma("a")
        + COMMIT_MMA
        + wait_mma()
        + "+bar.sync 0;\n"
        + expect(OTHER)
        + load(0, OTHER, "b")
        + wait(OTHER),
        (("HS006", "a", "b"),),
        threads=256,
    ),
    Twin(
        "release-before-wgmma-done",
        init()
        + init(OTHER)
        + init(EMPTY, 128)
        + SYNC
        + "setp.ge.u32 %p0, %w, 4;\n@%p0 bra PRODUCER;\n"
        + expect()
        + load()
        + wait()
        + FENCE_REGS
        + mma("a")
        + COMMIT_MMA
        + wait_mma(0, "+")
        + f"mbarrier.arrive.shared::cta.b64 _, [%s+{EMPTY}];\n"
        + wait_mma(0, "-")
        + wait(OTHER)
        + "bra END;\n"
        + "PRODUCER:\nsetp.ne.u32 %p1, %t, 128;\n@%p1 bra END;\n"
        + wait(EMPTY)
        + f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+{OTHER}], 2048;\n"
        + load(0, OTHER, "b", guard="")
        + "END:\n",
        (("HS008", "a", "b"),),
        threads=256,
    ),
    Twin(
        "wgmma-wait-off-by-one",
        LOADED
        + FENCE_REGS
        + mma("a")
        + COMMIT_MMA
        + wait_mma(1, "-")
        + wait_mma(0, "+")
        + "add.f32 %f10, %f0, %f1; //b\n"
        + wait_mma(),
        (("HS009", "a", "b"),),
    ),
    Twin(
        "wgmma-commit-missing",
        LOADED
        + FENCE_REGS
        + mma("a")
        + "+"
        + COMMIT_MMA
        + wait_mma()
        + "add.f32 %f10, %f0, %f1; //b\n"
        + COMMIT_MMA
        + wait_mma(),
        (("HS010", "a", "b"),),
    ),
    Twin(
        "accumulator-read-early",
        LOADED
        + FENCE_REGS
        + mma("a")
        + COMMIT_MMA
        + wait_mma(0, "+")
        + "add.f32 %f10, %f0, %f1; //b\n"
        + wait_mma(),
        (("HS011", "a", "b"),),
    ),
    Twin(
        "wgmma-fence-missing at first",
        LOADED + "+" + FENCE_REGS + mma("b") + COMMIT_MMA + wait_mma(),
        (("HS012", "", "b"),),
    ),
    Twin(
        "wgmma-fence-missing after a write",
        LOADED
        + FENCE_REGS
        + "mov.f32 %f0, 0f00000000; //a\n"
        + "+"
        + FENCE_REGS
        + mma("b")
        + COMMIT_MMA
        + wait_mma(),
        (("HS012", "a", "b"),),
    ),
    Twin(
        "wgmma-a-register-overwrite",
        LOADED
        + "mov.b32 %r10, 0;\nmov.b32 %r11, 0;\nmov.b32 %r12, 0;\nmov.b32 %r13, 0;\n"
        + FENCE_REGS
        + "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, {%r10, %r11, %r12, %r13}, %da, "
        + "0, 1, 1, 0; //a\n"
        + COMMIT_MMA
        + wait_mma(0, "+")
        + "mov.b32 %r10, 1; //b\n"
        + wait_mma(),
        (("HS013", "a", "b"),),
    ),
    Twin(
        "tma-overlap-unordered",
        init()
        + init(OTHER)
        + SYNC
        + expect()
        + load(0, FULL, "a")
        + wait(mark="+")
        + "+bar.sync 0;\n"
        + expect(OTHER)
        + load(0, OTHER, "b")
        + wait(OTHER)
        + wait(),
        (("HS016", "a", "b"),),
    ),
    Twin(
        "tma-overlap-unordered of one thread in a loop",
        init()
        + SYNC
        + "mov.b32 %r1, 0;\n"
        + only("-", expect(count_bytes=4096))
        + "AGAIN:\n"
        + only("+", expect())
        + load(name="a")
        + "+and.b32 %r2, %r1, 1;\n"
        + wait(FULL, "%r2", "+")
        + "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p0, %r1, 2;\n@%p0 bra AGAIN;\n-mov.b32 %r2, 0;\n"
        + wait(FULL, "%r2", "-"),
        (("HS016", "a", "a"),),
        threads=1,
    ),
    Twin(
        "cp-async-unwaited",
        MINE
        + "mul.wide.u32 %rd0, %t, 16;\nadd.u64 %rd0, %rd0, %in;\ncp.async.cg.shared.global [%r0], [%rd0], 16; //a\n"
        + "cp.async.commit_group;\n+cp.async.wait_group 0;\n"
        + get("b")
        + "cp.async.wait_group 0;\n",
        (("HS017", "a", "b"),),
    ),
    Twin(
        "cp-async-unwaited, wrong N",
        MINE
        + "mul.wide.u32 %rd0, %t, 16;\nadd.u64 %rd0, %rd0, %in;\ncp.async.cg.shared.global [%r0], [%rd0], 16; //a\n"
        + "cp.async.commit_group;\n-cp.async.wait_group 1; //wait\n+cp.async.wait_group 0;\n"
        + get("b")
        + "cp.async.wait_all;\n",
        (("HS017", "a", "b"),),
    ),
    Twin(
        "cp-async-unwaited, more groups left pending than there are",
        MINE
        + "mul.wide.u32 %rd0, %t, 16;\nadd.u64 %rd0, %rd0, %in;\n"
        + "cp.async.cg.shared.global [%r0], [%rd0], 16; //a\ncp.async.commit_group;\n"
        + "cp.async.commit_group;\ncp.async.commit_group;\n"
        + "-cp.async.wait_group 4;\n+cp.async.wait_group 2;\nld.shared.b32 %r1, [%r0]; //b\ncp.async.wait_group 0;\n",
        (("HS017", "a", "b"),),
    ),
    Twin(
        "cp-async-wait-not-published",
        MINE
        + "mul.wide.u32 %rd0, %t, 16;\nadd.u64 %rd0, %rd0, %in;\ncp.async.cg.shared.global [%r0], [%rd0], 16; //a\n"
        + "cp.async.commit_group;\ncp.async.wait_group 0;\n+bar.sync 0;\n"
        + READ_NEIGHBOUR
        + " //b\n",
        (("HS018", "a", "b"),),
    ),
    Twin(
        "async-unobserved-at-exit",
        init() + SYNC + expect() + load(name="a") + wait(mark="+"),
        (("HS019", "a", ""),),
    ),
    Twin(
        "store source unread at exit",
        put() + FENCE + SYNC + store(name="a") + COMMIT_STORE + "+" + WAIT_READ,
        (("HS019", "a", ""),),
    ),
]

STORED = COMMIT_STORE + WAIT_READ
PROXIES = [
    Twin(
        "gen-write-to-tma-store",
        put("a") + "+" + FENCE + SYNC + store(name="b") + STORED,
        (("HS101 HS112", "a", "b"),),
    ),
    Twin(
        "gen-write-to-tma-store by its issuer",
        "@%leader st.shared.v4.b32 [%s], {%t, %t, %t, %t}; //a\n+@%leader fence.proxy.async;\n"
        + store(name="b", count_bytes=16)
        + STORED,
        (("HS101", "a", "b"),),
    ),
    Twin(
        "gen-write-to-tma-store, half of it fenced and the other half read",
        put("a")
        + "setp.ge.u32 %p1, %t, 64;\n@%p1 ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r0];\n"
        + "-@!%p1 fence.proxy.async;\n+fence.proxy.async;\n"
        + SYNC
        + store(name="b")
        + STORED,
        (("HS101 HS105", "a", "b"),),
    ),
    Twin(
        "gen-write-to-wgmma",
        put("a")
        + "+fence.proxy.async.shared::cta;\n"
        + SYNC
        + FENCE_REGS
        + mma("b")
        + COMMIT_MMA
        + wait_mma(),
        (("HS102 HS112", "a", "b"),),
    ),
    Twin(
        "cp-async-to-wgmma",
        MINE
        + "mul.wide.u32 %rd0, %t, 16;\nadd.u64 %rd0, %rd0, %in;\ncp.async.cg.shared.global [%r0], [%rd0], 16; //a\n"
        + "cp.async.wait_all;\n+fence.proxy.async;\n"
        + SYNC
        + FENCE_REGS
        + mma("b")
        + COMMIT_MMA
        + wait_mma(),
        (("HS103 HS112", "a", "b"),),
    ),
    Twin(
        # What follows cp.async tells that the copies are there; the mainloops of CUTLASS that load so have no fence either.
        "cp-async-to-wgmma, told by an mbarrier",
        MINE
        + init(count=128)
        + SYNC
        + "mul.wide.u32 %rd0, %t, 16;\nadd.u64 %rd0, %rd0, %in;\ncp.async.cg.shared.global [%r0], [%rd0], 16; //a\n"
        + "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%s+8192];\n"
        + wait()
        + "+fence.proxy.async;\n"
        + FENCE_REGS
        + mma("b")
        + COMMIT_MMA
        + wait_mma(),
        (("HS103", "a", "b"),),
    ),
    Twin(
        "gen-read-to-tma-load",
        LOADED
        + init(OTHER)
        + get("a")
        + "+"
        + FENCE
        + SYNC
        + expect(OTHER)
        + load(0, OTHER, "b")
        + wait(OTHER),
        (("HS104 HS112", "a", "b"),),
    ),
    Twin(
        "gen-write-under-tma-load",
        init() + put("a") + "+" + FENCE + SYNC + expect() + load(0, FULL, "b") + wait(),
        (("HS100 HS112", "a", "b"),),
    ),
    Twin(
        "proxy-fence-wrong-thread: before the write",
        "-" + FENCE + put("a") + "+" + FENCE + SYNC + store(name="b") + STORED,
        (("HS101 HS105", "a", "b"),),
    ),
    Twin(
        "proxy-fence-wrong-thread: a thread that learned nothing",
        put("a") + "-@%leader fence.proxy.async;\n+" + FENCE + SYNC + store(name="b") + STORED,
        (("HS101 HS105", "a", "b"),),
    ),
    Twin(
        "proxy-fence-wrong-space",
        put("a")
        + "-fence.proxy.async.global;\n+fence.proxy.async.shared::cta;\n"
        + SYNC
        + store(name="b")
        + STORED,
        (("HS101 HS106", "a", "b"),),
    ),
    Twin(
        "gen-global-write-to-tma-load",
        init()
        + "mul.wide.u32 %rd0, %t, 16;\nadd.u64 %rd0, %rd0, %in;\nst.global.b32 [%rd0], %t; //a\n"
        + "+fence.proxy.async.global;\n"
        + SYNC
        + expect()
        + load(name="b")
        + wait(),
        (("HS108 HS112", "a", "b"),),
    ),
    Twin(
        "st-async-to-async-read",
        init()
        + SYNC
        + expect(count_bytes=16)
        + "mapa.shared::cluster.u32 %r1, %s, 0;\nadd.u32 %r2, %r1, 8192;\n"
        + "@%leader st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
        + "[%r1], {%t, %t, %t, %t}, [%r2]; //a\n"
        + wait()
        + "+"
        + FENCE
        + store(name="b", count_bytes=16)
        + STORED,
        (("HS109", "a", "b"),),
    ),
    Twin(
        "cta-fence-for-cluster",
        CLUSTER
        + "xor.b32 %r1, %c, 1;\nmapa.shared::cluster.u32 %r2, %s, %r1;\n"
        + "mad.lo.u32 %r2, %t, 16, %r2;\nst.shared::cluster.v4.b32 [%r2], {%t, %t, %t, %t}; //a\n"
        + "-fence.proxy.async.shared::cta;\n+fence.proxy.async.shared::cluster;\n"
        + CLUSTER
        + "mul.wide.u32 %rd0, %c, 4096;\nadd.u64 %out, %out, %rd0;\n"
        + store(name="b")
        + STORED,
        (("HS101 HS110", "a", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "mixed-proxy-atomics",
        put()
        + "fence.proxy.async.shared::cta;\n"
        + "@%leader atom.global.add.u32 %r1, [%out], 1; //a\n+@%leader fence.proxy.async.global;\n"
        + SYNC
        + "@%leader cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%s], 16; //b\n"
        + STORED,
        (("HS111", "a", "b"),),
    ),
    Twin(
        "bridge missing behind an mbarrier",
        init(FULL, 128)
        + SYNC
        + put("a")
        + "+"
        + FENCE
        + f"mbarrier.arrive.shared::cta.b64 _, [%s+{FULL}];\n"
        + wait()
        + store(name="b")
        + STORED,
        (("HS101 HS112", "a", "b"),),
    ),
]

MBARRIERS = [
    Twin(
        "tx-underexpected",
        init(name="a")
        + SYNC
        + only("-", expect(count_bytes=1024))
        + only("+", expect())
        + load()
        + wait(name="b"),
        (("HS201", "a", "b"),),
        verdict="deadlock",
    ),
    Twin(
        "tx-underexpected of the second of two loads",
        init()
        + SYNC
        + only("-", expect())
        + only("+", expect(count_bytes=4096))
        + load()
        + load(2048, name="a")
        + wait()
        + get()
        + get("b", at=2048),
        (("HS201", "a", "b"),),
        verdict="hazard",
    ),
    Twin(
        "tx-underexpected of st.async",
        init()
        + only("-", expect(count_bytes=128))
        + only("+", expect(count_bytes=256))
        + CLUSTER
        + "setp.ge.u32 %p0, %t, 32;\n@%p0 bra END;\nmad.lo.u32 %r1, %c, 128, %s;\nmad.lo.u32 %r1, %t, 4, %r1;\n"
        "mapa.shared::cluster.u32 %r1, %r1, 0;\nmapa.shared::cluster.u32 %r2, %s, 0;\n"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %t, [%r2+8192]; //a\n"
        "setp.ne.u32 %p1, %c, 0;\n@%p1 bra END;\n"
        + wait()
        + "mad.lo.u32 %r3, %t, 8, %s;\nld.shared.b32 %r3, [%r3]; //b\nEND:\n"
        + CLUSTER,
        (("HS201", "a", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "tx-overexpected",
        init(name="a")
        + SYNC
        + expect(count_bytes=4096)
        + load()
        + "+"
        + load(2048)
        + wait(name="b"),
        (("HS202", "a", "b"),),
        verdict="deadlock",
    ),
    Twin(
        "expect-without-arrive behind the arrive",
        init()
        + SYNC
        + "-@%leader mbarrier.arrive.shared::cta.b64 _, [%s+8192];\n"
        + "@%leader mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%s+8192], 2048;\n"
        + "+@%leader mbarrier.arrive.shared::cta.b64 _, [%s+8192];\n"
        + load(name="a")
        + wait()
        + get("b"),
        (("HS203", "a", "b"),),
    ),
    Twin(
        "expect-without-arrive",
        init(name="a")
        + SYNC
        + "-@%leader mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%s+8192], 16;\n"
        + "+"
        + expect()
        + "+"
        + load()
        + wait(name="b"),
        (("HS203", "a", "b"),),
        verdict="deadlock",
    ),
    Twin(
        "missing-arriver",
        "-@%leader mbarrier.init.shared::cta.b64 [%s+8192], 2; //a\n+"
        + init()
        + SYNC
        + "@%leader mbarrier.arrive.shared::cta.b64 _, [%s+8192];\n"
        + wait(name="b"),
        (("HS205", "a", "b"),),
        verdict="deadlock",
    ),
    Twin(
        "over-arrive",
        init()
        + SYNC
        + "-mbarrier.arrive.shared::cta.b64 _, [%s+8192]; //b\n"
        + "+@%leader mbarrier.arrive.shared::cta.b64 _, [%s+8192];\n"
        + wait(),
        (("HS206", "", "b"),),
    ),
    Twin(
        "over-arrive, the producer does not wait for an empty slot",
        init()
        + init(EMPTY, 128)
        + SYNC
        + "mov.b32 %r20, 0;\nsetp.ge.u32 %p0, %w, 4;\n@%p0 bra PRODUCER;\nCONSUMER:\nand.b32 %r21, %r20, 1;\n"
        + wait(FULL, "%r21")
        + get()
        + FENCE
        + f"mbarrier.arrive.shared::cta.b64 _, [%s+{EMPTY}];\n"
        + "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p1, %r20, 3;\n@%p1 bra CONSUMER;\nbra END;\n"
        + "PRODUCER:\nsetp.ne.u32 %p2, %t, 128;\n@%p2 bra END;\nFILL:\nnot.b32 %r21, %r20;\nand.b32 %r21, %r21, 1;\n"
        + wait(EMPTY, "%r21", "+")
        + f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+{FULL}], 2048; //b\n"
        + load(guard="")
        + "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p1, %r20, 3;\n@%p1 bra FILL;\nEND:\n",
        (("HS206", "", "b"),),
        threads=160,
    ),
    Twin(
        "elected-arrive-without-syncwarp",
        init()
        + SYNC
        + "setp.ne.u32 %p0, %w, 0;\n@%p0 bra OTHERS;\n"
        + put("a")
        + "+bar.warp.sync -1;\n"
        + "@%leader mbarrier.arrive.shared::cta.b64 _, [%s+8192];\nbra END;\nOTHERS:\n"
        + wait()
        + "and.b32 %r5, %t, 31;\nmad.lo.u32 %r0, %r5, 16, %s;\nld.shared.b32 %r1, [%r0]; //b\nEND:\n",
        (("HS208", "a", "b"),),
        threads=64,
    ),
    Twin(
        "elected-arrive-without-syncwarp of lanes that have left",
        init()
        + SYNC
        + "setp.ne.u32 %p0, %w, 0;\n@%p0 bra OTHERS;\n"
        + put("a")
        + "+bar.warp.sync -1;\n@!%leader ret;\n"
        + "mbarrier.arrive.shared::cta.b64 _, [%s+8192];\nbra END;\nOTHERS:\n"
        + wait()
        + "and.b32 %r5, %t, 31;\nmad.lo.u32 %r0, %r5, 16, %s;\nld.shared.b32 %r1, [%r0]; //b\nEND:\n",
        (("HS208", "a", "b"),),
        threads=64,
    ),
    Twin(
        "lanes that leave before bar.sync",
        "setp.lt.u32 %p0, %t, 16;\n"
        + put("a")
        + "+bar.warp.sync -1;\n@%p0 ret;\nbar.sync 0;\n"
        + "xor.b32 %r5, %t, 48;\nmad.lo.u32 %r0, %r5, 16, %s;\nld.shared.b32 %r1, [%r0]; //b\n",
        (("HS208", "a", "b"),),
        threads=64,
    ),
    Twin(
        "lanes that leave before a proxy fence",
        "setp.ne.u32 %p0, %t, 0;\n"
        + put("a")
        + "-@%p0 ret;\n"
        + FENCE
        + "bar.warp.sync -1;\n+@%p0 ret;\n"
        + store(name="b", count_bytes=512)
        + COMMIT_STORE
        + WAIT_STORE,
        (("HS502", "a", "b"),),
        threads=32,
    ),
    Twin(
        "init-not-visible",
        init(name="a") + "+bar.sync 0;\n" + expect() + load() + wait(name="b"),
        (("HS209", "a", "b"),),
    ),
    Twin(
        "relaxed-arrive-without-init-fence",
        init(name="a")
        + "+@%leader fence.mbarrier_init.release.cluster;\n"
        + "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n"
        + expect()
        + load()
        + wait(name="b"),
        (("HS210", "a", "b"),),
    ),
    Twin(
        "relaxed-arrive-without-init-fence of the lane itself",
        init(name="a")
        + "setp.eq.u32 %p0, %t, 1;\n-@%p0 fence.mbarrier_init.release.cluster;\n"
        + "+@%leader fence.mbarrier_init.release.cluster;\n"
        + "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n"
        + expect()
        + load()
        + wait(name="b"),
        (("HS210", "a", "b"),),
    ),
    Twin(
        "use-before-init",
        "-"
        + "@%leader mbarrier.arrive.shared::cta.b64 _, [%s+8192]; //b\n"
        + init()
        + SYNC
        + "+@%leader mbarrier.arrive.shared::cta.b64 _, [%s+8192];\n"
        + wait(mark="+"),
        (("HS211", "", "b"),),
    ),
    Twin(
        "reinit-without-inval",
        init(FULL, 2, "a")
        + "@%leader mbarrier.arrive.shared::cta.b64 _, [%s+8192];\n"
        + "+@%leader mbarrier.arrive.shared::cta.b64 _, [%s+8192];\n+@%leader mbarrier.inval.shared::cta.b64 [%s+8192];\n"
        + init(FULL, 1, "b"),
        (("HS212", "a", "b"),),
    ),
    Twin(
        "barrier-storage-reused",
        init(name="a")
        + SYNC
        + expect()
        + "-@%leader st.shared.b32 [%s+8192], %t; //b\n"
        + "+@%leader st.shared.b32 [%s+8200], %t;\n"
        + load()
        + wait(),
        (("HS213", "a", "b"),),
    ),
    Twin(
        "inval-in-flight",
        init()
        + SYNC
        + expect()
        + load(name="a")
        + wait(mark="+")
        + SYNC
        + "@%leader mbarrier.inval.shared::cta.b64 [%s+8192]; //b\n",
        (("HS214", "a", "b"),),
    ),
    Twin(
        "inval-after-one-lane-of-a-warp",
        # As libcu++'s pipeline ends: one lane of each warp counts down, the last one of all invalidates.
        init()
        + "@%leader st.shared.b32 [%s+8200], 0;\n"
        + SYNC
        + expect()
        + load()
        + wait(name="a")
        + "+bar.warp.sync 0xffffffff;\n"
        + "and.b32 %r1, %t, 31; setp.eq.u32 %p1, %r1, 0;\n"
        + "@%p1 atom.acq_rel.cta.shared::cta.add.u32 %r2, [%s+8200], 1;\n"
        + "setp.eq.and.u32 %p2, %r2, 3, %p1;\n"
        + "@%p2 mbarrier.inval.shared::cta.b64 [%s+8192]; //b\n",
        (("HS214", "a", "b"),),
        verdict="clean",
        level="note",
    ),
    Twin(
        "phase-unconsumed",
        init()
        + SYNC
        + "@%leader mbarrier.arrive.shared::cta.b64 _, [%s+8192];\n"
        + wait(mark="+")
        + "+bar.sync 0;\n"
        + "@%leader mbarrier.arrive.shared::cta.b64 _, [%s+8192]; //b\n",
        (("HS215", "", "b"),),
    ),
    Twin(
        "relaxed-arrive-or-wait",
        init()
        + SYNC
        + "@%leader st.shared.b32 [%s], %t; //a\n"
        + "-@%leader mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%s+8192];\n"
        + "+@%leader mbarrier.arrive.release.cta.shared::cta.b64 _, [%s+8192];\n"
        + wait()
        + "ld.shared.b32 %r1, [%s]; //b\n",
        (("HS216", "a", "b"),),
    ),
    Twin(
        "relaxed wait",
        init()
        + SYNC
        + "@%leader st.shared.b32 [%s], %t; //a\n@%leader mbarrier.arrive.shared::cta.b64 _, [%s+8192];\n"
        + wait(scope=".relaxed.cta")
        + "+fence.acq_rel.cta;\n"
        + "ld.shared.b32 %r1, [%s]; //b\n",
        (("HS216", "a", "b"),),
    ),
    Twin(
        "cta-scope-across-ctas",
        init()
        + CLUSTER
        + "setp.eq.u32 %p1, %c, 0;\n@%p1 bra READER;\n"
        + "mapa.shared::cluster.u32 %r1, %s, 0;\n@%leader st.shared::cluster.b32 [%r1], %t; //a\n"
        + "-@%leader mbarrier.arrive.release.cta.shared::cluster.b64 _, [%r1+8192];\n"
        + "+@%leader mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1+8192];\nbra END;\nREADER:\n"
        + wait(scope=".acquire.cluster")
        + "ld.shared.b32 %r2, [%s]; //b\nEND:\n"
        + CLUSTER,
        (("HS217", "a", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "fence of .cta scope before a relaxed arrive on a peer's barrier",
        init()
        + CLUSTER
        + "setp.eq.u32 %p1, %c, 0;\n@%p1 bra READER;\n"
        + "mapa.shared::cluster.u32 %r1, %s, 0;\n@%leader st.shared::cluster.b32 [%r1], %t; //a\n"
        + "-@%leader fence.acq_rel.cta;\n+@%leader fence.acq_rel.cluster;\n"
        + "@%leader mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r1+8192];\nbra END;\nREADER:\n"
        + wait(scope=".acquire.cluster")
        + "ld.shared.b32 %r2, [%s]; //b\nEND:\n"
        + CLUSTER,
        (("HS217", "a", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "fence of .cta scope after a relaxed wait for a peer",
        init()
        + CLUSTER
        + "setp.eq.u32 %p1, %c, 0;\n@%p1 bra READER;\n"
        + "mapa.shared::cluster.u32 %r1, %s, 0;\n@%leader st.shared::cluster.b32 [%r1], %t; //a\n"
        + "@%leader mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1+8192];\nbra END;\nREADER:\n"
        + wait(scope=".relaxed.cluster")
        + "-fence.acq_rel.cta;\n+fence.acq_rel.cluster;\nld.shared.b32 %r2, [%s]; //b\nEND:\n"
        + CLUSTER,
        (("HS217", "a", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "relaxed wait of .cta scope for a peer, though its fence is wide",
        init()
        + CLUSTER
        + "setp.eq.u32 %p1, %c, 0;\n@%p1 bra READER;\n"
        + "mapa.shared::cluster.u32 %r1, %s, 0;\n@%leader st.shared::cluster.b32 [%r1], %t; //a\n"
        + "@%leader mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1+8192];\nbra END;\nREADER:\n"
        + wait(scope=".relaxed.cta", mark="-")
        + wait(scope=".relaxed.cluster", mark="+")
        + "fence.acq_rel.cluster;\nld.shared.b32 %r2, [%s]; //b\nEND:\n"
        + CLUSTER,
        (("HS217", "a", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "init-not-visible to a test that says no",
        init(name="a")
        + "+"
        + SYNC
        + "mbarrier.test_wait.parity.shared::cta.b64 %p3, [%s+8192], 0; //b\nselp.b32 %r1, 1, 0, %p3;\n",
        (("HS209", "a", "b"),),
    ),
    Twin(
        # Its predicate is read, but not behind it.
        "try-wait-not-looped, though its predicate is used",
        init()
        + SYNC
        + "setp.eq.u32 %p3, %t, 999;\n@%p3 bra SKIP;\nSKIP:\n"
        + expect()
        + load()
        + "-mbarrier.try_wait.parity.shared::cta.b64 %p3, [%s+8192], 0; //b\n"
        + wait(mark="+")
        + get(),
        (("HS222", "", "b"),),
    ),
    Twin(
        # Behind it something else is in the register, and a comment reads nothing.
        "try-wait-not-looped, though its predicate is used again",
        init()
        + SYNC
        + expect()
        + load()
        + "-mbarrier.try_wait.parity.shared::cta.b64 %p3, [%s+8192], 0; //b\n"
        + wait(mark="+")
        + get()
        + "mov.b32 %r5, 0; /* %p3 */\nsetp.eq.u32 %p3, %t, 999;\n@%p3 bra SKIP;\nSKIP:\n",
        (("HS222", "", "b"),),
    ),
    Twin(
        "try-wait-not-looped",
        init()
        + SYNC
        + expect()
        + load()
        + "-mbarrier.try_wait.parity.shared::cta.b64 %p3, [%s+8192], 0; //b\n"
        + wait(mark="+")
        + get(),
        (("HS222", "", "b"),),
    ),
    Twin(
        "tma-wait-taken-for-issuer",
        init()
        + SYNC
        + "@%leader st.shared.b32 [%s+4096], %t; //a\n"
        + "setp.eq.u32 %p1, %t, 32;\n@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+8192], 2048;\n"
        + load()
        + wait()
        + "+bar.sync 0;\n"
        + "ld.shared.b32 %r1, [%s+4096]; //b\n",
        (("HS223", "a", "b"),),
    ),
    Twin(
        "write-after-arrive",
        init()
        + SYNC
        + "+@%leader st.shared.b32 [%s], %t;\n@%leader mbarrier.arrive.shared::cta.b64 _, [%s+8192];\n"
        + "-@%leader st.shared.b32 [%s], %t; //a\n"
        + wait()
        + "ld.shared.b32 %r1, [%s]; //b\n",
        (("HS224", "a", "b"),),
    ),
]

BULK = [
    Twin(
        "store-source-reuse",
        put()
        + FENCE
        + SYNC
        + store(name="a")
        + COMMIT_STORE
        + "+"
        + WAIT_READ
        + "+bar.sync 0;\n"
        + put("b")
        + WAIT_STORE,
        (("HS301", "a", "b"),),
    ),
    Twin(
        "store-source-reuse behind hundreds of groups",
        put()
        + put(at=2048)
        + FENCE
        + SYNC
        + store(name="a")
        + COMMIT_STORE
        + "mov.b32 %r30, 0;\nLOOP:\nadd.u64 %out, %out, 16;\n"
        + store(2048, count_bytes=16, to=2048)
        + COMMIT_STORE
        + "add.u32 %r30, %r30, 1;\nsetp.lt.u32 %p15, %r30, 300;\n@%p15 bra LOOP;\n+"
        + WAIT_READ
        + "+bar.sync 0;\n"
        + put("b")
        + WAIT_STORE,
        (("HS301", "a", "b"),),
    ),
    Twin(
        "store-source-reuse by a load of the same thread",
        init()
        + put()
        + FENCE
        + SYNC
        + store(name="a")
        + COMMIT_STORE
        + "+"
        + WAIT_READ
        + expect()
        + load(name="b")
        + wait()
        + WAIT_STORE,
        (("HS301", "a", "b"),),
    ),
    Twin(
        "store-source-reuse of a copy to another CTA",
        init()
        + put()
        + FENCE
        + expect()
        + CLUSTER
        + "setp.ne.u32 %p0, %c, 0;\n@%p0 bra PEER;\nmapa.shared::cluster.u32 %r5, %s, 1;\nadd.u32 %r6, %r5, 8192;\n"
        "add.u32 %r7, %r5, 2048;\n@%leader cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
        "[%r7], [%s], 2048, [%r6]; //a\n"
        "-@%leader cp.async.bulk.wait_group.read 0;\n-bar.sync 0;\n"
        + only("-", put("b"))
        + "bra END;\nPEER:\n"
        + wait()
        + "END:\n"
        + CLUSTER
        + only("+", put()),
        (("HS301", "a", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "bulk-race of two CTAs that store the same bytes",
        put()
        + FENCE
        + SYNC
        + "+mov.u32 %r1, %ctaid.x;\n+mul.wide.u32 %rd0, %r1, 4096;\n+add.u64 %out, %out, %rd0;\n"
        + store(name="a")
        + COMMIT_STORE
        + WAIT_STORE,
        (("HS300", "a", "a"),),
        ctas=2,
    ),
    Twin(
        "read-wait-for-global before a flag, with the full wait behind it",
        "mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra READER;\n"
        + put()
        + FENCE
        + SYNC
        + store(name="a", to=4096)
        + COMMIT_STORE
        + "-"
        + WAIT_READ
        + "+"
        + WAIT_STORE
        + "@%leader st.release.gpu.global.b32 [%out], 1;\n"
        + WAIT_STORE
        + "bra END;\nREADER:\nld.acquire.gpu.global.b32 %r2, [%out];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra READER;\n"
        "ld.global.b32 %r3, [%out+4096]; //b\nEND:\n",
        (("HS303", "a", "b"),),
        ctas=2,
    ),
    Twin(
        "bulk-wait-off-by-one",
        put()
        + put("", 2048)
        + FENCE
        + SYNC
        + store(0)
        + COMMIT_STORE
        + store(2048, "a", to=2048)
        + COMMIT_STORE
        + "-@%leader cp.async.bulk.wait_group.read 1;\n+"
        + WAIT_READ
        + SYNC
        + put("b", 2048)
        + WAIT_STORE,
        (("HS302", "a", "b"),),
    ),
    Twin(
        "read-wait-for-global",
        put()
        + FENCE
        + SYNC
        + store(name="a")
        + COMMIT_STORE
        + "-"
        + WAIT_READ
        + "+"
        + WAIT_STORE
        + SYNC
        + "ld.global.b32 %r1, [%out]; //b\n"
        + WAIT_STORE,
        (("HS303", "a", "b"),),
    ),
    Twin(
        "bulk-wait-by-other-thread",
        put()
        + FENCE
        + SYNC
        + store(name="a")
        + COMMIT_STORE
        + "setp.eq.u32 %p1, %t, 32;\n"
        + "-@%p1 cp.async.bulk.wait_group.read 0;\n+"
        + WAIT_READ
        + SYNC
        + put("b")
        + WAIT_STORE,
        (("HS304", "a", "b"),),
    ),
    Twin(
        "wait-without-rejoin before the wait of the next round",
        "mov.b32 %r5, 0;\nmov.b32 %r6, 0;\nLOOP:\n"
        + MINE
        + "add.u32 %r0, %r0, %r6;\nadd.u32 %r7, %s, %r6;\nmul.wide.u32 %rd0, %r5, 2048;\nadd.u64 %rd0, %rd0, %out;\n"
        "@%leader cp.async.bulk.wait_group.read 1;\n"
        + "+bar.sync 0;\nst.shared.v4.b32 [%r0], {%t, %t, %t, %t}; //b\n"
        + FENCE
        + SYNC
        + "@%leader cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r7], 2048; //a\n"
        + COMMIT_STORE
        + "xor.b32 %r6, %r6, 2048;\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p0, %r5, 4;\n@%p0 bra LOOP;\n"
        + WAIT_STORE,
        (("HS306", "a", "b"),),
    ),
    Twin(
        "bulk-commit-missing",
        put()
        + FENCE
        + SYNC
        + store(name="a")
        + "+"
        + COMMIT_STORE
        + WAIT_READ
        + SYNC
        + put("b")
        + COMMIT_STORE
        + WAIT_STORE,
        (("HS305", "a", "b"),),
    ),
    Twin(
        "wait-without-rejoin",
        put()
        + FENCE
        + SYNC
        + store(name="a")
        + COMMIT_STORE
        + WAIT_READ
        + "+bar.sync 0;\n"
        + put("b")
        + WAIT_STORE,
        (("HS306", "a", "b"),),
    ),
    Twin(
        "global data of a store read unwaited",
        put()
        + FENCE
        + SYNC
        + store(name="a")
        + COMMIT_STORE
        + "+"
        + WAIT_STORE
        + "+bar.sync 0;\n"
        + "ld.global.b32 %r1, [%out]; //b\n"
        + WAIT_STORE,
        (("HS300", "a", "b"),),
    ),
]

PEER = "xor.b32 %r1, %c, 1;\nmapa.shared::cluster.u32 %r2, %s, %r1;\nmad.lo.u32 %r2, %t, 16, %r2;\n"
MULTICAST = (
    "mov.b16 %h0, 3;\nsetp.eq.u32 %p2, %c, 0;\nand.pred %p2, %p2, %leader;\n"
    "@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
    "[%s], [%in], 2048, [%s+BARRIER], %h0; //NAME\n"
)
POLL = "LOOP:\nld.acquire.cta.shared.b32 %r1, [%s]; //a\nsetp.SAYS.u32 %p0, %r1, WANTED;\n@!%p0 bra LOOP;\n"
WORDS = [
    Twin(
        "phase-word-overrun",
        f"@%leader st.shared.b32 [%s], 0;\n{SYNC}@%leader st.release.cta.shared.b32 [%s], 1;\n"
        + POLL.replace("SAYS", "eq").replace("WANTED", "1")
        + f"+{SYNC}@%leader st.release.cta.shared.b32 [%s], 2; //b\n{SYNC}",
        (("HS406", "a", "b"),),
        threads=64,
    ),
    Twin(
        "phase-word-overrun by a flag that is set back",
        f"@%leader st.shared.b32 [%s], 0;\n{SYNC}@%leader st.release.cta.shared.b32 [%s], 1;\n"
        + POLL.replace("SAYS", "ne").replace("WANTED", "0")
        + f"+{SYNC}@%leader st.relaxed.cta.shared.b32 [%s], 0; //b\n{SYNC}",
        (("HS406", "a", "b"),),
        threads=64,
    ),
    Twin(
        "phase-word-overrun by an atomic",
        f"@%leader st.shared.b32 [%s], 0;\n{SYNC}@%leader atom.release.cta.shared.xor.b32 %r2, [%s], 1;\n"
        + POLL.replace("SAYS", "eq").replace("WANTED", "1")
        + f"+{SYNC}@%leader atom.release.cta.shared.xor.b32 %r2, [%s], 1; //b\n{SYNC}",
        (("HS406", "a", "b"),),
        threads=64,
    ),
    Twin(
        "phase-word-overrun of a parity",
        init()
        + f"@%leader st.shared.b32 [%s], 0;\n{SYNC}@%leader mbarrier.arrive.shared::cta.b64 _, [%s+{FULL}];\n"
        + "ld.shared.b32 %r1, [%s]; //a\n"
        + wait(FULL, "%r1")
        + f"+{SYNC}xor.b32 %r2, %r1, 1;\n@%leader st.shared.b32 [%s], %r2; //b\n{SYNC}",
        (("HS406", "a", "b"),),
        threads=64,
    ),
]
CLUSTERS = [
    Twin(
        "dsmem-late-entry",
        "+"
        + "barrier.cluster.arrive;\n+barrier.cluster.wait;\n"
        + PEER
        + "st.shared::cluster.b32 [%r2], %t; //b\n"
        + CLUSTER,
        (("HS401", "", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "dsmem-early-exit",
        CLUSTER
        + PEER
        + "st.shared::cluster.b32 [%r2], %t; //a\n"
        + "+barrier.cluster.arrive;\n+barrier.cluster.wait;\n",
        (("HS402", "a", ""),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "dsmem-early-exit after a relaxed arrive that nobody waits for",
        init()
        + CLUSTER
        + "setp.eq.u32 %p0, %c, 0;\n@%p0 bra OWNER;\nmapa.shared::cluster.u32 %r1, %s, 0;\n"
        "@%leader mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r1+8192]; //a\nbra END;\nOWNER:\n"
        + wait(scope=".relaxed.cluster", mark="+")
        + "END:\n",
        (("HS402", "a", ""),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "dsmem-early-exit before an st.async is issued",
        init()
        + expect(count_bytes=4)
        + CLUSTER
        + "setp.eq.u32 %p0, %c, 0;\n@%p0 bra OWNER;\nmapa.shared::cluster.u32 %r2, %s, 0;\nadd.u32 %r3, %r2, 8192;\n"
        "nanosleep.u32 1000;\n"
        "@%leader st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r2], 7, [%r3]; //a\nbra END;\nOWNER:\n"
        + wait(mark="+", scope=".acquire.cluster")
        + "END:\n",
        (("HS402", "a", ""),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        # The phase tells of the arrive, not of the store before it.
        "dsmem-early-exit of a store before a relaxed arrive",
        init()
        + CLUSTER
        + "setp.eq.u32 %p0, %c, 0;\n@%p0 bra OWNER;\nmapa.shared::cluster.u32 %r1, %s, 0;\n"
        "@%leader st.shared::cluster.b32 [%r1], %t; //a\n+@%leader fence.acq_rel.cluster;\n"
        "@%leader mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r1+8192];\nbra END;\nOWNER:\n"
        + wait(scope=".acquire.cluster")
        + "END:\n",
        (("HS402", "a", ""),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "relaxed-cluster-arrive-data",
        CLUSTER
        + PEER
        + "st.shared::cluster.b32 [%r2], %t; //a\n"
        + "-barrier.cluster.arrive.relaxed;\n+barrier.cluster.arrive.release;\nbarrier.cluster.wait;\n"
        + MINE
        + "ld.shared.b32 %r3, [%r0]; //b\n",
        (("HS403", "a", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "relaxed cluster arrive, its fence behind",
        CLUSTER
        + PEER
        + "st.shared::cluster.b32 [%r2], %t; //a\n"
        + "+fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed;\n-fence.acq_rel.cluster;\nbarrier.cluster.wait;\n"
        + MINE
        + "ld.shared.b32 %r3, [%r0]; //b\n",
        (("HS403", "a", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "relaxed cluster arrive behind a fence of .cta scope",
        CLUSTER
        + PEER
        + "st.shared::cluster.b32 [%r2], %t; //a\n"
        + "-fence.acq_rel.cta;\n+fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n"
        + MINE
        + "ld.shared.b32 %r3, [%r0]; //b\n",
        (("HS217", "a", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "multicast-release-incomplete",
        ".reg .b16 %h0;\n"
        + init()
        + init(OTHER)
        + CLUSTER
        + expect()
        + MULTICAST.replace("BARRIER", "8192").replace("NAME", "x")
        + wait()
        + FENCE_REGS
        + mma("a")
        + COMMIT_MMA
        + wait_mma()
        + "-bar.sync 0;\n+barrier.cluster.arrive;\n"
        + "+barrier.cluster.wait;\n"
        + expect(OTHER)
        + MULTICAST.replace("BARRIER", "8200").replace("NAME", "b")
        + wait(OTHER)
        + CLUSTER,
        (("HS405", "a", "b"),),
        ctas=2,
        cluster=2,
    ),
]

# Each thread of a block writes a word; the block that is told to be the last reads those of the other.
WORDS_OF_BLOCKS = (
    "mov.u32 %r9, %ctaid.x;\nmad.lo.u32 %r8, %r9, 64, %t;\nmul.wide.u32 %rd0, %r8, 4;\nadd.u64 %rd0, %rd0, %out;\n"
    "xor.b32 %r8, %r8, 64;\nmul.wide.u32 %rd1, %r8, 4;\nadd.u64 %rd1, %rd1, %out;\nst.global.b32 [%rd0+64], 7; //a\n"
)
WORDS_OF_OTHERS = (
    "WAIT:\nbar.sync 0;\nld.shared.b32 %r2, [%s];\nsetp.ne.u32 %p0, %r2, 1;\n@%p0 bra END;\n{fence}"
    "ld.global.b32 %r3, [%rd1+64]; //b\nEND:\n"
)


def last_block(before: str, behind: str, barrier: str = "bar.sync 0;\n") -> str:
    """Return a program whose last block, told by a ticket that one thread draws, reads what all threads wrote."""
    return (
        WORDS_OF_BLOCKS
        + before
        + barrier
        + "@!%leader bra WAIT;\natom.global.inc.u32 %r1, [%out], 1;\nst.shared.b32 [%s], %r1;\n"
        + WORDS_OF_OTHERS.format(fence=behind)
    )


THREADS = [
    Twin(
        "thread-race",
        put("a") + "+bar.sync 0;\n" + READ_NEIGHBOUR + " //b\n",
        (("HS500", "a", "b"),),
    ),
    Twin(
        # Lanes of the upper half point into global memory, the others into shared memory.
        "thread-race through generic addresses of two state spaces",
        "cvt.u64.u32 %rd1, %s;\ncvta.shared.u64 %rd1, %rd1;\nsetp.lt.u32 %p1, %l, 16;\nselp.b64 %rd1, %rd1, %out, %p1;\n"
        "mul.wide.u32 %rd2, %l, 4;\nadd.u64 %rd1, %rd1, %rd2;\nsetp.eq.u32 %p0, %w, 0;\n"
        "@%p0 st.b32 [%rd1], %t; //a\n+bar.sync 0;\nld.b32 %r1, [%rd1]; //b\n",
        (("HS500", "a", "b"),),
        threads=64,
    ),
    Twin(
        "warps that write one word by one instruction",
        "-st.shared.b32 [%s], %w; //a\n+@%leader st.shared.b32 [%s], %w;\n",
        (("HS500", "a", "a"),),
        threads=64,
    ),
    Twin(
        "warps whose rows overlap",
        "mad.lo.u32 %r1, %l, 16, %s;\n-mad.lo.u32 %r1, %w, 500, %r1;\n-and.b32 %r1, %r1, 0xfffffff0;\n"
        "+mad.lo.u32 %r1, %w, 512, %r1;\nst.shared.v4.b32 [%r1], {%t, %t, %t, %t}; //a\n",
        (("HS500", "a", "a"),),
    ),
    Twin(
        "racing words of two CTAs",
        "mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra READER;\n@%leader st.global.b32 [%out+64], 7; //a\n"
        "+@%leader st.release.gpu.global.b32 [%out], 1;\nbra END;\nREADER:\n+LOOK:\n"
        "+ld.acquire.gpu.global.b32 %r2, [%out];\n+setp.eq.u32 %p1, %r2, 0;\n+@%p1 bra LOOK;\n"
        "ld.global.b32 %r3, [%out+64]; //b\nEND:\n",
        (("HS500", "a", "b"),),
        ctas=2,
    ),
    Twin(
        "smem-scratch-reuse",
        put() + SYNC + READ_NEIGHBOUR + " //a\n" + "+bar.sync 0;\n" + put("b"),
        (("HS501", "a", "b"),),
    ),
    Twin(
        "smem-scratch-reuse between warps with roles",
        "setp.ne.u32 %p0, %w, 0;\n@%p0 bra READER;\nmad.lo.u32 %r0, %l, 4, %s;\nst.shared.b32 [%r0], %t;\n"
        "barrier.arrive 1, 64;\nbarrier.sync 2, 64;\nst.shared.b32 [%r0], %z; //b\nbra END;\n"
        "READER:\nxor.b32 %r5, %l, 1;\nmad.lo.u32 %r0, %r5, 4, %s;\nbarrier.sync 1, 64;\n-barrier.arrive 2, 64;\n"
        "ld.shared.b32 %r1, [%r0]; //a\n+barrier.arrive 2, 64;\nEND:\n",
        (("HS501", "a", "b"),),
        threads=64,
    ),
    Twin(
        "thread-race of words written between the arrive and the wait of a cluster barrier",
        MINE + "+st.shared.v4.b32 [%r0], {%t, %t, %t, %t};\nbarrier.cluster.arrive;\n"
        "-st.shared.v4.b32 [%r0], {%t, %t, %t, %t}; //a\nbarrier.cluster.wait;\n"
        "xor.b32 %r8, %c, 1;\nmapa.shared::cluster.u32 %r1, %s, %r8;\nmad.lo.u32 %r1, %t, 16, %r1;\n"
        "ld.shared::cluster.b32 %r2, [%r1]; //b\n" + CLUSTER,
        (("HS500", "a", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "thread-race of words pushed into a peer before a barrier of its own CTA alone",
        CLUSTER
        + "xor.b32 %r8, %c, 1;\nmapa.shared::cluster.u32 %r1, %s, %r8;\nmad.lo.u32 %r1, %t, 4, %r1;\n"
        "st.shared::cluster.b32 [%r1], %t; //a\n-bar.sync 0;\n"
        + only("+", CLUSTER)
        + "xor.b32 %r5, %t, 33;\nmad.lo.u32 %r0, %r5, 4, %s;\nld.shared.b32 %r2, [%r0]; //b\n"
        + CLUSTER,
        (("HS500", "a", "b"),),
        threads=64,
        ctas=2,
        cluster=2,
    ),
    Twin(
        "missing-syncwarp",
        put("a")
        + "+bar.warp.sync -1;\nxor.b32 %r5, %t, 1;\nmad.lo.u32 %r0, %r5, 16, %s;\nld.shared.b32 %r1, [%r0]; //b\n",
        (("HS502", "a", "b"),),
        threads=32,
    ),
    # The sum of a warp before sm_70: volatile accesses do not race, but find what is there.
    Twin(
        "missing-syncwarp between volatile accesses",
        "mad.lo.u32 %r0, %t, 4, %s;\nst.volatile.shared.b32 [%r0+64], %z;\nst.volatile.shared.b32 [%r0], %t; //a\n"
        "+bar.warp.sync -1;\nld.volatile.shared.b32 %r1, [%r0+64]; //b\n",
        (("HS502", "a", "b"),),
        threads=32,
    ),
    Twin(
        "missing-syncwarp between two places",
        put("a")
        + "setp.lt.u32 %p0, %l, 16;\n@%p0 bra LOW;\n+bar.warp.sync -1;\nbra MEET;\nLOW:\n+bar.warp.sync -1;\nMEET:\n"
        + "xor.b32 %r5, %t, 16;\nmad.lo.u32 %r0, %r5, 16, %s;\nld.shared.b32 %r1, [%r0]; //b\n",
        (("HS502", "a", "b"),),
        threads=32,
    ),
    Twin(
        "missing-syncwarp behind one of half the lanes",
        put("a")
        + "+bar.warp.sync -1;\nsetp.lt.u32 %p0, %l, 16;\n@!%p0 bra END;\n-bar.warp.sync 0xffff;\n"
        + "xor.b32 %r5, %t, 16;\nmad.lo.u32 %r0, %r5, 16, %s;\nld.shared.b32 %r1, [%r0]; //b\nEND:\n",
        (("HS502", "a", "b"),),
        threads=64,
    ),
    Twin(
        "thread-race over the lanes of the writing warp too",
        "@%leader st.shared.b32 [%s], 5; //a\n-bar.warp.sync -1;\n+bar.sync 0;\nld.shared.b32 %r1, [%s]; //b\n",
        (("HS500", "a", "b"),),
    ),
    Twin(
        "thread-race with no barrier of the warp either",
        "@%leader st.shared.b32 [%s], 5; //a\n+bar.sync 0;\nred.shared.add.u32 [%s], 1; //b\n",
        (("HS500", "a", "b"),),
    ),
    Twin(
        "missing-syncwarp before ldmatrix",
        put("a")
        + "+bar.warp.sync -1;\n"
        + LDMATRIX
        + "x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r0]; //b\n",
        (("HS502", "a", "b"),),
        threads=32,
    ),
    Twin(
        "missing-syncwarp before ldmatrix of 16 rows, transposed",
        put("a")
        + "+bar.warp.sync -1;\n"
        + LDMATRIX
        + "x2.trans.shared.b16 {%r1, %r2}, [%r0]; //b\n",
        (("HS502", "a", "b"),),
        threads=32,
    ),
    # Each lane writes the words that it has read, as epilogues do whose source and result share a place; or other ones.
    Twin(
        "missing-syncwarp between ldmatrix and stmatrix of other parts",
        put()
        + "bar.warp.sync -1;\n"
        + LDMATRIX
        + "x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r0]; //a\n"
        + "-stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r0], {%r1, %r2, %r3, %r4}; //b\n"
        + "+stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r0], {%r1, %r2, %r3, %r4};\n",
        (("HS502", "a", "b"),),
        threads=32,
    ),
    Twin(
        "missing-syncwarp between stmatrix and ldmatrix, both transposed, of other rows",
        MINE
        + "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r0], {%t, %t, %t, %t}; //a\n"
        + "-xor.b32 %r5, %t, 2;\n-mad.lo.u32 %r0, %r5, 16, %s;\n"
        + LDMATRIX
        + "x4.trans.shared.b16 {%r1, %r2, %r3, %r4}, [%r0]; //b\n",
        (("HS502", "a", "b"),),
        threads=32,
    ),
    Twin(
        "cp-async-wait-not-published before ldmatrix",
        MINE
        + "mul.wide.u32 %rd0, %t, 16;\nadd.u64 %rd0, %rd0, %in;\ncp.async.cg.shared.global [%r0], [%rd0], 16; //a\n"
        + "cp.async.wait_all;\n+bar.sync 0;\n"
        + LDMATRIX
        + "x1.shared.b16 {%r1}, [%r0]; //b\n",
        (("HS018", "a", "b"),),
    ),
    Twin(
        "smem-scratch-reuse after stmatrix",
        MINE
        + "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r0], {%t, %t}; //a\n+bar.sync 0;\n"
        + "xor.b32 %r5, %t, 32;\nmad.lo.u32 %r0, %r5, 16, %s;\nst.shared.v4.b32 [%r0], {%t, %t, %t, %t}; //b\n",
        (("HS500", "a", "b"),),
    ),
    # Some bytes are met by the threads that wrote them alone: others of the same access are judged all the same.
    Twin(
        "thread-race over bytes that some have read already",
        WORDS_OF_THREADS
        + "setp.ge.u32 %p1, %t, 32;\n@%p1 ld.shared.b32 %r1, [%r0];\n+bar.sync 0;\n"
        + "xor.b32 %r2, %t, 96;\nselp.b32 %r2, %r2, %t, %p1;\nmad.lo.u32 %r3, %r2, 4, %s;\nld.shared.b32 %r4, [%r3]; //b\n",
        (("HS500", "a", "b"),),
        threads=96,
    ),
    Twin(
        "missing-syncwarp over words that lanes have read already",
        WORDS_OF_THREADS
        + "setp.ge.u32 %p1, %t, 16;\n@%p1 ld.shared.b32 %r1, [%r0];\n+bar.warp.sync -1;\n"
        + "xor.b32 %r2, %t, 1;\nselp.b32 %r2, %r2, %t, %p1;\nmad.lo.u32 %r3, %r2, 4, %s;\nld.shared.b32 %r4, [%r3]; //b\n",
        (("HS502", "a", "b"),),
        threads=32,
    ),
    Twin(
        "aligned-barrier-divergent",
        "setp.lt.u32 %p0, %l, 16;\n-@%p0 bar.sync 0; //b\n+bar.sync 0;\n",
        (("HS506", "", "b"),),
        threads=32,
    ),
    Twin(
        "missing barrier beside a TMA store",
        put("a") + FENCE + "+bar.sync 0;\n" + store(name="b") + STORED,
        (("HS500", "a", "b"),),
    ),
    # A strong access hides no weak one before it from other strong accesses.
    Twin(
        "thread-race of a counter that one zeroes and adds to first",
        "@%leader st.shared.b32 [%s], 0; //a\nbar.warp.sync -1;\n+bar.sync 0;\nsetp.lt.u32 %p1, %t, 32;\n"
        "@%p1 red.shared.add.u32 [%s], 1;\n@!%p1 red.shared.add.u32 [%s], 1; //b\n",
        (("HS500", "a", "b"),),
        threads=64,
    ),
    # The block that draws the last ticket has observed all others; one that draws another, or looks at none, has not.
    Twin(
        "thread-race of a counter that not the last block sets back",
        "@!%leader bra END;\natom.global.add.u32 %r1, [%out], 1; //a\n-setp.ne.u32 %p0, %r1, 1;\n"
        "+setp.ne.u32 %p0, %r1, 2;\n@%p0 bra END;\nst.global.b32 [%out], 0; //b\nEND:\n",
        (("HS500", "b", "a"),),
        threads=32,
        ctas=3,
    ),
    Twin(
        "thread-race of a counter whose tickets nobody looks at",
        "@!%leader bra END;\nmov.u32 %r9, %ctaid.x;\nsetp.ne.u32 %p0, %r9, 1;\n"
        "atom.global.add.u32 %r1, [%out], 1; //a\n@%p0 bra END;\n+L:\n+ld.relaxed.gpu.global.b32 %r2, [%out];\n"
        "+setp.ne.u32 %p1, %r2, 2;\n+@%p1 bra L;\nst.global.b32 [%out], 0; //b\nEND:\n",
        (("HS500", "a", "b"),),
        threads=32,
        ctas=2,
    ),
    # What came before the atomic is not observed with it.
    Twin(
        "relaxed ticket before the words of other blocks",
        "@!%leader bra END;\nmov.u32 %r9, %ctaid.x;\nmul.wide.u32 %rd0, %r9, 4;\nadd.u64 %rd0, %rd0, %out;\n"
        "st.global.b32 [%rd0+64], 7; //a\nmembar.gl;\natom.global.inc.u32 %r1, [%out], 2;\nsetp.ne.u32 %p0, %r1, 1;\n"
        "@%p0 bra END;\n+membar.gl;\nld.global.v2.b32 {%r2, %r3}, [%out+64]; //b\nst.global.b32 [%out], 0;\nEND:\n",
        (("HS216", "a", "b"),),
        threads=32,
        ctas=2,
    ),
    # fence.sc of all threads, a barrier, and a ticket of one: fences of another kind, too narrow or missing order nothing.
    *(
        Twin(
            f"words of all threads before a ticket of one, with {what}",
            last_block(*parts),
            ((rule, "a", "b"),),
            threads=64,
            ctas=2,
        )
        for what, parts, rule in (
            (
                "no fence.sc before it",
                ("-fence.acq_rel.gpu;\n+fence.sc.gpu;\n", "fence.sc.gpu;\n"),
                "HS500",
            ),
            (
                "no fence.sc behind it",
                ("membar.gl;\n", "-fence.acq_rel.gpu;\n+membar.gl;\n"),
                "HS500",
            ),
            ("no fence behind it", ("membar.gl;\n", "+membar.gl;\n"), "HS216"),
            (
                "a narrow fence.sc before it",
                ("-membar.cta;\n+membar.gl;\n", "membar.gl;\n"),
                "HS217",
            ),
            (
                "a narrow fence.sc behind it",
                ("membar.gl;\n", "-membar.cta;\n+membar.sys;\n"),
                "HS217",
            ),
            ("no barrier before it", ("membar.gl;\n", "membar.gl;\n", "+bar.sync 0;\n"), "HS500"),
        )
    ),
    Twin(
        "words of all threads before a ticket that nobody looks at",
        WORDS_OF_BLOCKS
        + "membar.gl;\nbar.sync 0;\n@!%leader bra WAIT;\natom.global.inc.u32 %r1, [%out], 1;\n"
        "+st.shared.b32 [%s], %r1;\n-st.shared.b32 [%s], %r9;\n"
        + WORDS_OF_OTHERS.format(fence="membar.gl;\n"),
        (("HS500", "a", "b"),),
        threads=64,
        ctas=2,
    ),
    Twin(
        "thread-race of a plain read with a compare-and-swap of other lanes, warps and blocks",
        "-ld.global.b32 %r1, [%out]; //a\n+ld.relaxed.gpu.global.b32 %r1, [%out];\n"
        "L:\nadd.u32 %r2, %r1, 1;\natom.global.cas.b32 %r3, [%out], %r1, %r2; //b\n"
        "setp.ne.u32 %p0, %r3, %r1;\nmov.u32 %r1, %r3;\n@%p0 bra L;\n",
        (("HS500", "a", "b"),),
        threads=32,
        ctas=2,
    ),
    # No barrier is missing within a warp either, but strength: `HS502` would name one, and a lock would never be given back.
    Twin(
        "thread-race of a plain read with a compare-and-swap of other lanes alone",
        "-ld.global.b32 %r1, [%out]; //a\n+ld.relaxed.gpu.global.b32 %r1, [%out];\n"
        "L:\nadd.u32 %r2, %r1, 1;\natom.global.cas.b32 %r3, [%out], %r1, %r2; //b\n"
        "setp.ne.u32 %p0, %r3, %r1;\nmov.u32 %r1, %r3;\n@%p0 bra L;\n",
        (("HS500", "a", "b"),),
        threads=32,
    ),
    Twin(
        "thread-race of a lock of lanes that a plain write gives back",
        "L:\natom.acquire.gpu.global.cas.b32 %r1, [%out], 0, 1; //a\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra L;\n"
        "-st.global.b32 [%out], 0; //b\n+st.release.gpu.global.b32 [%out], 0;\n",
        (("HS500", "a", "b"),),
        threads=32,
    ),
    Twin(
        "missing-syncwarp between a plain write and a compare-and-swap of other lanes",
        "@%leader st.shared.b32 [%s], 0; //a\n+bar.warp.sync -1;\natom.shared.cas.b32 %r1, [%s], 0, 1; //b\n",
        (("HS502", "a", "b"),),
        threads=32,
    ),
    Twin(
        "thread-race of a word that one reads and adds to first",
        "@!%leader bra END;\nmov.u32 %r9, %ctaid.x;\nsetp.eq.u32 %p0, %r9, 0;\n"
        "-@%p0 ld.global.b32 %r1, [%out]; //a\n+@%p0 ld.relaxed.gpu.global.b32 %r1, [%out];\n"
        "atom.global.add.u32 %r2, [%out], 1; //b\nEND:\n",
        (("HS500", "a", "b"),),
        threads=32,
        ctas=2,
    ),
    Twin(
        "thread-race of a strong read behind a strong write",
        "@!%leader bra END;\nmov.u32 %r9, %ctaid.x;\nsetp.eq.u32 %p0, %r9, 0;\n@%p0 bra A;\nsetp.eq.u32 %p0, %r9, 1;\n"
        "@%p0 bra B;\nL:\nld.acquire.gpu.global.b32 %r2, [%out+256];\nsetp.ne.u32 %p1, %r2, 2;\n@%p1 bra L;\n"
        "st.global.b32 [%out], 9; //b\nbra END;\nA:\nld.relaxed.gpu.global.b32 %r1, [%out]; //a\n"
        "-red.relaxed.gpu.global.add.u32 [%out+256], 1;\n+red.release.gpu.global.add.u32 [%out+256], 1;\nbra END;\n"
        "B:\nst.relaxed.gpu.global.b32 [%out], 1;\nred.release.gpu.global.add.u32 [%out+256], 1;\nEND:\n",
        (("HS216", "a", "b"),),
        threads=32,
        ctas=3,
    ),
    Twin(
        "scope-too-narrow before an access that is wide enough",
        "@!%leader bra END;\nmov.u32 %r9, %ctaid.x;\nsetp.eq.u32 %p0, %r9, 0;\n"
        "-@%p0 red.relaxed.cta.global.add.u32 [%out], 1; //a\n+@%p0 red.relaxed.gpu.global.add.u32 [%out], 1;\n"
        "red.relaxed.gpu.global.add.u32 [%out], 1; //b\nEND:\n",
        (("HS510", "a", "b"),),
        threads=32,
        ctas=2,
    ),
    Twin(
        "scope-too-narrow",
        "mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra READER;\n"
        "-@%leader st.release.cta.global.b32 [%out], 1; //a\n+@%leader st.release.gpu.global.b32 [%out], 1;\nbra END;\n"
        "READER:\n-ld.acquire.cta.global.b32 %r2, [%out]; //b\n+ld.acquire.gpu.global.b32 %r2, [%out];\n"
        "setp.eq.u32 %p1, %r2, 0;\n@%p1 bra READER;\nEND:\n",
        (("HS510", "a", "b"),),
        ctas=2,
    ),
    # Dekker's lock: acq_rel lets both miss the other's flag, though one of them sees it in each run.
    Twin(
        "both-may-miss",
        "@!%leader bra END;\nmov.u32 %r9, %ctaid.x;\nxor.b32 %r8, %r9, 1;\nmul.wide.u32 %rd0, %r9, 4;\n"
        "add.u64 %rd0, %rd0, %out;\nmul.wide.u32 %rd1, %r8, 4;\nadd.u64 %rd1, %rd1, %out;\n"
        "st.relaxed.gpu.global.b32 [%rd0], 1;\n-fence.acq_rel.gpu;\n+fence.sc.gpu;\n"
        "ld.relaxed.gpu.global.b32 %r1, [%rd1]; //a\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra END;\n"
        "st.global.b32 [%out+64], %r9;\nEND:\n",
        (("HS516", "a", "a"),),
        threads=32,
        ctas=2,
        verdict="clean",
        level="note",
    ),
    Twin(
        "both-may-miss with a fence.sc of one of them, and one that is too narrow",
        "@!%leader bra END;\nmov.u32 %r9, %ctaid.x;\nsetp.ne.u32 %p0, %r9, 0;\n@%p0 bra OTHER;\n"
        "st.relaxed.gpu.global.b32 [%out], 1;\nfence.sc.gpu;\nld.relaxed.gpu.global.b32 %r1, [%out+128]; //a\n"
        "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra END;\nst.global.b32 [%out+64], %r9;\nbra END;\n"
        "OTHER:\nst.relaxed.gpu.global.b32 [%out+128], 1;\n-fence.sc.cta;\n+fence.sc.gpu;\n"
        "ld.relaxed.gpu.global.b32 %r1, [%out]; //b\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra END;\n"
        "st.global.b32 [%out+64], %r9;\nEND:\n",
        (("HS516", "a", "b"),),
        threads=32,
        ctas=2,
        verdict="clean",
        level="note",
    ),
    Twin(
        # Peterson's lock: in order CTA 1 comes when CTA 0 is done, and finds the word as it was before CTA 0 wrote it.
        "both-may-miss in a loop that looks at two words",
        "@!%leader bra END;\nmov.u32 %r9, %ctaid.x;\nxor.b32 %r8, %r9, 1;\nmul.wide.u32 %rd0, %r9, 4;\n"
        "add.u64 %rd0, %rd0, %out;\nmul.wide.u32 %rd1, %r8, 4;\nadd.u64 %rd1, %rd1, %out;\n"
        "st.relaxed.gpu.global.b32 [%rd0], 1;\nst.relaxed.gpu.global.b32 [%out+128], %r8;\n"
        "-fence.acq_rel.gpu;\n+fence.sc.gpu;\n"
        "LOOK:\nld.acquire.gpu.global.b32 %r1, [%rd1]; //a\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra ENTER;\n"
        "ld.acquire.gpu.global.b32 %r2, [%out+128];\nsetp.eq.u32 %p1, %r2, %r8;\n@%p1 bra LOOK;\n"
        "ENTER:\nst.global.b32 [%out+64], %r9;\nst.release.gpu.global.b32 [%rd0], 0;\nEND:\n",
        (("HS516", "a", "a"),),
        threads=32,
        ctas=2,
        verdict="clean",
        level="note",
    ),
    Twin(
        "mixed-size-strong",
        "-@%leader st.relaxed.gpu.global.b64 [%out], 1; //a\n+@%leader st.relaxed.gpu.global.b32 [%out], 1;\n"
        "setp.eq.u32 %p0, %t, 32;\n@%p0 ld.relaxed.gpu.global.b32 %r2, [%out]; //b\n",
        (("HS512", "a", "b"),),
    ),
    Twin(
        "flag without release",
        "mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra READER;\n"
        "@%leader st.global.b32 [%out+64], 7; //a\n-@%leader st.relaxed.gpu.global.b32 [%out], 1;\n"
        "+@%leader st.release.gpu.global.b32 [%out], 1;\nbra END;\n"
        "READER:\nld.acquire.gpu.global.b32 %r2, [%out];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra READER;\n"
        "ld.global.b32 %r3, [%out+64]; //b\nEND:\n",
        (("HS216", "a", "b"),),
        ctas=2,
    ),
    Twin(
        "flag whose release is overwritten by its thread",
        FLAG.replace(
            "RELEASE",
            "-@%leader st.relaxed.gpu.global.b32 [%out], 1;\n+@%leader st.release.gpu.global.b32 [%out], 1;",
        )
        .replace("[%out], 1;\nbra END", "[%out], 2;\nbra END")
        .replace("ACQUIRE", "fence.acq_rel.gpu;"),
        (("HS216", "a", "b"),),
        ctas=2,
    ),
    Twin(
        "flag without acquire",
        "mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra READER;\n"
        "@%leader st.global.b32 [%out+64], 7; //a\n@%leader st.release.gpu.global.b32 [%out], 1;\nbra END;\n"
        "READER:\nld.relaxed.gpu.global.b32 %r2, [%out];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra READER;\n"
        "+fence.acq_rel.gpu;\nld.global.b32 %r3, [%out+64]; //b\nEND:\n",
        (("HS216", "a", "b"),),
        ctas=2,
    ),
    Twin(
        "fences of .cta scope on both sides of a flag",
        FLAG.replace(
            "RELEASE", "-@%leader fence.acq_rel.cta;\n+@%leader fence.acq_rel.gpu;"
        ).replace("ACQUIRE", "-fence.acq_rel.cta;\n+fence.acq_rel.gpu;"),
        (("HS217", "a", "b"),),
        ctas=2,
    ),
    Twin(
        "fence of .cluster scope before a flag of another cluster",
        FLAG.replace("RELEASE", "-fence.acq_rel.cluster;\n+fence.acq_rel.gpu;").replace(
            "ACQUIRE", "fence.acq_rel.gpu;"
        ),
        (("HS217", "a", "b"),),
        ctas=2,
    ),
    Twin(
        "fence of .cluster scope after a flag of another cluster",
        FLAG.replace("RELEASE", "membar.gl;").replace(
            "ACQUIRE", "-fence.acq_rel.cluster;\n+membar.gl;"
        ),
        (("HS217", "a", "b"),),
        ctas=2,
    ),
    Twin(
        "lock with fences of .cta scope between CTAs",
        "setp.ne.u32 %p0, %l, 0;\n@%p0 bra END;\nLOCK:\natom.global.cas.b32 %r1, [%out+128], 0, 1;\n"
        "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra LOCK;\n-membar.cta;\n+membar.gl;\nld.global.b32 %r2, [%out+256]; //b\n"
        "add.u32 %r2, %r2, 1;\nst.global.b32 [%out+256], %r2; //a\n-membar.cta;\n+membar.gl;\n"
        "atom.global.exch.b32 %r3, [%out+128], 0;\nEND:\n",
        (("HS217", "a", "b"),),
        ctas=2,
    ),
]

# Of the 16 bytes that every thread has in a tile those of some threads are written, which differ between the twins.
SOME = MINE + "PICK@%p0 st.shared.v4.b32 [%r0], {%t, %t, %t, %t};\n" + FENCE + SYNC
LESS = SOME.replace("PICK", "-setp.lt.u32 %p0, %t, 127;\n+setp.lt.u32 %p0, %t, 128;\n")
TO_TENSOR = "@%leader cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {X, Y}], [%s]; //b\n"
ADD_TO_TENSOR = "@%leader cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%map, {X, Y}], [%s]; //b\n"


def to_tensor(instruction: str, x: int, y: int) -> str:
    """A box of 32 words and 16 rows goes to a place in a tensor of 32 words and 512 rows."""
    coordinates = f"mov.u32 %r5, {x};\nmov.u32 %r6, {y};\n"
    return coordinates + instruction.replace("X", "%r5").replace("Y", "%r6")


MEMORY = [
    Twin(
        "uninitialised-shared-read",
        "+" + "st.shared.b32 [%s], %t;\n+bar.sync 0;\nld.shared.b32 %r1, [%s]; //b\n",
        (("HS701", "", "b"),),
        threads=1,
    ),
    Twin(
        "uninitialised-shared-read by a reduction",
        "+@%leader st.shared.b32 [%s], 0;\n+bar.sync 0;\nred.shared.add.u32 [%s], 1; //b\n",
        (("HS701", "", "b"),),
    ),
    Twin(
        "uninitialised-shared-read by an atomic whose value is read",
        "-atom.shared.exch.b32 %r1, [%s], %t; //b\n+atom.shared.exch.b32 %r2, [%s], %t;\n+mov.u32 %r1, 0;\n"
        "st.global.b32 [%out], %r1;\n",
        (("HS701", "", "b"),),
        threads=1,
    ),
    Twin(
        "uninitialised-shared-read of a lock",
        "+@%leader atom.shared.exch.b32 _, [%s], 0;\n+bar.sync 0;\nLOCK:\natom.shared.cas.b32 %r1, [%s], %z, %z; //b\n"
        "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra LOCK;\n",
        (("HS701", "", "b"),),
        threads=32,
    ),
    Twin(
        "uninitialised-shared-read of a peer by an atomic",
        CLUSTER
        + "+@%leader st.shared.b32 [%s], 0;\n"
        + only("+", CLUSTER)
        + "xor.b32 %r8, %c, 1;\nmapa.shared::cluster.u32 %r2, %s, %r8;\nred.shared::cluster.add.u32 [%r2], 1; //b\n"
        + CLUSTER,
        (("HS701", "", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "uninitialised-shared-read by a bulk store",
        LESS + store(name="b") + COMMIT_STORE + WAIT_STORE,
        (("HS701", "", "b"),),
    ),
    Twin(
        "uninitialised-shared-read by a bulk reduction",
        LESS
        + "@%leader cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%s], 2048; //b\n"
        + COMMIT_STORE
        + WAIT_STORE,
        (("HS701", "", "b"),),
    ),
    Twin(
        "uninitialised-shared-read by a copy to another CTA",
        init()
        + LESS
        + expect()
        + CLUSTER
        + "setp.ne.u32 %p0, %c, 0;\n@%p0 bra PEER;\nmapa.shared::cluster.u32 %r5, %s, 1;\nadd.u32 %r6, %r5, 8192;\n"
        "add.u32 %r7, %r5, 2048;\n@%leader cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
        "[%r7], [%s], 2048, [%r6]; //b\nbra END;\nPEER:\n" + wait() + "END:\n" + CLUSTER,
        (("HS701", "", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "uninitialised-shared-read by a tensor store",
        LESS + to_tensor(TO_TENSOR, 0, 0) + COMMIT_STORE + WAIT_STORE,
        (("HS701", "", "b"),),
    ),
    Twin(
        "uninitialised-shared-read by a tensor reduction",
        LESS + to_tensor(ADD_TO_TENSOR, 0, 0) + COMMIT_STORE + WAIT_STORE,
        (("HS701", "", "b"),),
    ),
    Twin(
        "uninitialised-shared-read by a tensor store over the last row",
        SOME.replace("PICK", "-setp.lt.u32 %p0, %t, 63;\n+setp.lt.u32 %p0, %t, 64;\n")
        + to_tensor(TO_TENSOR, 0, 504)
        + COMMIT_STORE
        + WAIT_STORE,
        (("HS701", "", "b"),),
    ),
    Twin(
        "uninitialised-shared-read by a tensor store over the last column",
        SOME.replace(
            "PICK", "and.b32 %r1, %t, 7;\n-setp.lt.u32 %p0, %r1, 3;\n+setp.lt.u32 %p0, %r1, 4;\n"
        )
        + to_tensor(TO_TENSOR, 16, 0)
        + COMMIT_STORE
        + WAIT_STORE,
        (("HS701", "", "b"),),
    ),
    Twin(
        "uninitialised-global-read",
        "ld.param.u64 %rd0, [unwritten];\n+st.global.b32 [%rd0], %t;\n"
        "ld.global.b32 %r1, [%rd0]; //b\n",
        (("HS702", "", "b"),),
        threads=1,
    ),
    Twin(
        "uninitialised-global-read by a reduction",
        "ld.param.u64 %rd0, [unwritten];\n+st.global.b32 [%rd0], 0;\nred.global.add.u32 [%rd0], 1; //b\n"
        "atom.global.exch.b32 %r1, [%rd0+64], 1;\n",
        (("HS702", "", "b"),),
        threads=1,
    ),
    Twin(
        "uninitialised-global-read by a bulk reduction",
        LESS.replace("127", "128") + "ld.param.u64 %rd0, [unwritten];\n"
        "-mov.u64 %rd1, %rd0;\n+mov.u64 %rd1, %out;\n"
        "@%leader cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%s], 2048; //b\n"
        + COMMIT_STORE
        + WAIT_STORE,
        (("HS702", "", "b"),),
    ),
    Twin(
        "uninitialised-global-read by a copy of part",
        "ld.param.u64 %rd0, [unwritten];\n+st.global.b32 [%rd0], 7;\nmov.b32 %r5, 4;\n"
        "cp.async.ca.shared.global [%s], [%rd0], 16, %r5; //b\ncp.async.wait_all;\n",
        (("HS702", "", "b"),),
        threads=1,
    ),
    Twin(
        "out-of-bounds",
        "-ld.global.b32 %r1, [%in+65536]; //b\n+ld.global.b32 %r1, [%in+65532];\n",
        (("HS703", "", "b"),),
    ),
    Twin(
        "out-of-bounds of shared memory",
        "mad.lo.u32 %r1, %t, 128, %s;\n-st.shared.b32 [%r1+16000], %t; //b\n+st.shared.b32 [%r1], %t;\n",
        (("HS703", "", "b"),),
    ),
    Twin(
        "out-of-bounds of a peer's shared memory",
        CLUSTER
        + "xor.b32 %r8, %c, 1;\nmapa.shared::cluster.u32 %r2, %s, %r8;\nmad.lo.u32 %r2, %t, 4, %r2;\n"
        "-st.shared::cluster.b32 [%r2+16256], %t; //b\n+st.shared::cluster.b32 [%r2], %t;\n"
        + CLUSTER,
        (("HS703", "", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "misaligned-access",
        "-ld.global.b32 %r1, [%in+2]; //b\n+ld.global.b32 %r1, [%in+4];\n",
        (("HS704", "", "b"),),
    ),
]

TWINS = [
    *WAITING,
    *PROXIES,
    *MBARRIERS,
    *BULK,
    *WORDS,
    *CLUSTERS,
    *THREADS,
    *LANES,
    *STALE,
    *ADVICE_TWINS,
    *CAUSES,
    *COMPANY,
    *MEMORY,
    *HANGS,
    *FAULTS,
    *MAPS,
    *NOTES,
    *OBJECTS,
    *NON_COHERENT,
]
