"""Twin programs that hang or that the machine itself stops at: see `programs`."""

from __future__ import annotations

from hopsim.hazards.facts import CheckOptions
from tests.hazards.programs import (
    COMMIT_MMA,
    EMPTY,
    FENCE_REGS,
    FULL,
    OTHER,
    Twin,
    expect,
    init,
    load,
    mma,
    only,
    put,
    wait,
    wait_mma,
)

SYNC = "bar.sync 0;\n"
CLUSTER = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
LOADED = init() + SYNC + expect() + load() + wait()
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [%s+8192];"
MULTICAST = (
    "mov.b16 %h0, 3;\nsetp.eq.u32 %p2, %c, 0;\nand.pred %p2, %p2, %leader;\n"
    "@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
    "[%s], [%in], 2048, [%s+8192], %h0; //b\n"
)

HANGS = [
    Twin(
        "empty-initial-parity",
        init(FULL)
        + init(OTHER, name="a")
        + SYNC
        + "setp.eq.u32 %p0, %w, 0;\n@!%p0 bra CONSUMER;\n"
        + wait(OTHER, 0, "-", name="b")
        + wait(OTHER, 1, "+")
        + expect()
        + load()
        + "bra END;\nCONSUMER:\n"
        + wait()
        + "END:\n"
        + SYNC
        + wait(FULL, 0, "+"),
        (("HS007", "a", "b"),),
        threads=64,
        verdict="deadlock",
    ),
    Twin(
        "wait-wrong-parity that never passes",
        init(name="a")
        + SYNC
        + f"@%leader {ARRIVE}\n"
        + SYNC
        + wait(FULL, 1, "-", name="b")
        + wait(FULL, 0, "+"),
        (("HS004", "a", "b"),),
        verdict="deadlock",
    ),
    Twin(
        "named-count-mismatch",
        "-bar.sync 1, 160; //b\n+bar.sync 1, 128;\n",
        (("HS503", "", "b"),),
        verdict="deadlock",
    ),
    Twin(
        "named-count-mismatch beside the barrier of all",
        "setp.ge.u32 %p0, %w, 2;\n@%p0 bra REST;\n-bar.sync 1, 128; //b\n+bar.sync 1, 64;\nREST:\nbar.sync 0;\n",
        (("HS503", "", "b"),),
        verdict="deadlock",
    ),
    Twin(
        "order-barrier-not-primed",
        "setp.ge.u32 %p0, %w, 2;\n@%p0 bra SECOND;\n"
        "bar.sync 1, 128; //b\nbar.arrive 2, 128;\nbra END;\n"
        "SECOND:\n+bar.arrive 1, 128;\nbar.sync 2, 128; //c\n-bar.arrive 1, 128;\nEND:\n",
        (("HS505", "", "b"), ("HS505", "", "c")),
        verdict="deadlock",
    ),
    Twin(
        "early-return-warp",
        "setp.eq.u32 %p0, %w, 3;\n-@%p0 ret; //a\nbar.sync 1, 128; //b\n",
        (("HS509", "a", "b"),),
        verdict="deadlock",
    ),
    Twin(
        "barrier-under-elect",
        "elect.sync _|%p0, -1;\n-@%p0 barrier.sync 1, 32; //b\n+barrier.sync 1, 32;\nbar.warp.sync -1;\n",
        (("HS507", "", "b"),),
        threads=32,
        verdict="deadlock",
    ),
    Twin(
        "cluster-barrier-divergent",
        "setp.eq.u32 %p0, %w, 0;\n-@%p0 bra SKIP;\nbarrier.cluster.arrive;\nbarrier.cluster.wait; //b\nSKIP:\n"
        + "bar.sync 0; //a\n",
        (("HS404", "a", "b"),),
        ctas=2,
        cluster=2,
        verdict="deadlock",
    ),
    Twin(
        "cluster-barrier-divergent, before what it brings",
        init()
        + CLUSTER
        + "setp.eq.u32 %p0, %w, 1;\n-@%p0 bra SKIP;\nbarrier.cluster.arrive;\nbarrier.cluster.wait; //b\n"
        + f"@%leader {ARRIVE}\nSKIP:\n"
        + wait(name="a"),
        (("HS404", "a", "b"),),
        threads=64,
        ctas=2,
        cluster=2,
        verdict="deadlock",
    ),
    Twin(
        "missing-arriver, while others wait for the end of the cluster",
        init(name="a")
        + CLUSTER
        + "setp.eq.u32 %p0, %w, 1;\n@!%p0 bra END;\n"
        + "setp.eq.u32 %p1, %t, 32;\n"
        + f"+@%p1 {ARRIVE}\n"
        + wait(name="b")
        + "END:\n"
        + CLUSTER,
        (("HS205", "a", "b"),),
        threads=64,
        ctas=2,
        cluster=2,
        verdict="deadlock",
    ),
    Twin(
        # The phases that the producer would bring lack arrivals too; that follows.
        "missing-arriver in a ring",
        init(FULL)
        + f"@%leader mbarrier.init.shared::cta.b64 [%s+{EMPTY}], 32; //a\n"
        + SYNC
        + "mov.b32 %r20, 0;\nsetp.eq.u32 %p0, %w, 1;\n@%p0 bra PRODUCER;\n"
        + "CONSUMER:\nand.b32 %r21, %r20, 1;\n"
        + wait(FULL, "%r21")
        + f"+mbarrier.arrive.shared::cta.b64 _, [%s+{EMPTY}];\n"
        + "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p1, %r20, 3;\n@%p1 bra CONSUMER;\nbra END;\n"
        + "PRODUCER:\nsetp.ne.u32 %p2, %t, 32;\n@%p2 bra END;\n"
        + "FILL:\nnot.b32 %r21, %r20;\nand.b32 %r21, %r21, 1;\n"
        + wait(EMPTY, "%r21", name="b")
        + f"mbarrier.arrive.shared::cta.b64 _, [%s+{FULL}];\n"
        + "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p1, %r20, 3;\n@%p1 bra FILL;\nEND:\n",
        (("HS205", "a", "b"),),
        threads=64,
        verdict="deadlock",
    ),
    Twin(
        "setmaxnreg-oversubscribed",
        "setp.ge.u32 %p0, %w, 4;\n@%p0 bra SECOND;\n"
        "-setmaxnreg.inc.sync.aligned.u32 240; //b\n+setmaxnreg.inc.sync.aligned.u32 200;\nbra END;\n"
        "SECOND:\nsetp.ge.u32 %p0, %w, 8;\n@%p0 bra THIRD;\nsetmaxnreg.inc.sync.aligned.u32 200;\nbra END;\n"
        "THIRD:\nsetmaxnreg.dec.sync.aligned.u32 104;\nEND:\n",
        (("HS601", "", "b"),),
        threads=384,
        verdict="deadlock",
    ),
]

FAULTS = [
    Twin(
        "multicast-before-ready",
        ".reg .b16 %h0;\n"
        + init(name="a")
        + "-"
        + SYNC
        + "+barrier.cluster.arrive;\n+barrier.cluster.wait;\n"
        + expect()
        + MULTICAST
        + wait(mark="+")
        + CLUSTER,
        (("HS204", "", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "duplicate-issue",
        init()
        + SYNC
        + expect()
        + "setp.eq.u32 %p0, %w, 0;\n"
        + only("-", load(name="b", guard="@%p0 "))
        + "+"
        + load()
        + wait(),
        (("HS207", "b", "b"),),
    ),
    Twin(
        "local-arrive-on-remote-address",
        init()
        + CLUSTER
        + "xor.b32 %r1, %c, 1;\nmapa.shared::cluster.u32 %r2, %s, %r1;\n"
        + "-@%leader mbarrier.arrive.shared::cta.b64 _, [%r2+8192]; //b\n"
        + "+@%leader mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2+8192];\n"
        + wait(scope=".acquire.cluster")
        + CLUSTER,
        (("HS218", "", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "wait-on-remote-barrier",
        init()
        + CLUSTER
        + "xor.b32 %r1, %c, 1;\nmapa.u64 %rd1, %base, %r1;\nmapa.shared::cluster.u32 %r2, %s, %r1;\n"
        + f"@%leader {ARRIVE}\n"
        + "W:\n-mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2+8192], 0; //b\n"
        + "+mbarrier.try_wait.parity.shared::cta.b64 %p1, [%s+8192], 0;\n@!%p1 bra W;\n"
        + CLUSTER,
        (("HS219", "", "b"),),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "drop-or-nocomplete-misuse",
        init()
        + SYNC
        + "-@%leader mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %rd1, [%s+8192], 1; //b\n"
        + f"+@%leader {ARRIVE}\n"
        + wait(),
        (("HS220", "", "b"),),
    ),
    Twin(
        "drop to zero",
        init()
        + SYNC
        + "-@%leader mbarrier.arrive_drop.shared::cta.b64 _, [%s+8192]; //a\n"
        + f"+@%leader {ARRIVE}\n"
        + wait()
        + SYNC
        + f"@%leader {ARRIVE} //b\n"
        + wait(FULL, 1),
        (("HS220", "", "b"),),
    ),
    Twin(
        "tx-out-of-range",
        init()
        + SYNC
        + "-@%leader mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%s+8192], 1048576; //b\n"
        + expect()
        + load()
        + wait(),
        (("HS221", "", "b"),),
    ),
    Twin(
        "named-id-collision",
        "setp.ge.u32 %p0, %w, 2;\n@%p0 bra SECOND;\nbar.sync 1, 64; //a\nbra END;\n"
        "SECOND:\n-bar.sync 1, 64; //b\n+bar.sync 2, 64;\nEND:\n",
        (("HS504", "a", "b"),),
    ),
    Twin(
        "named-id-collision with other counts",
        "setp.ge.u32 %p0, %w, 1;\n@%p0 bra SECOND;\nbarrier.sync 1, 128;\nbra END;\n"
        "SECOND:\n-barrier.sync 1, 96; //b\n+barrier.sync 1, 128;\nEND:\n",
        (("HS504", "", "b"),),
    ),
    Twin(
        "named-barrier-run-ahead",
        "setp.eq.u32 %p0, %w, 0;\n@!%p0 bra CONSUMER;\nbar.arrive 1, 64; //a\n+bar.sync 2, 64;\nbar.arrive 1, 64; //b\nbra END;\n"
        "CONSUMER:\nbar.sync 1, 64;\n+bar.arrive 2, 64;\nbar.sync 1, 64;\nEND:\n",
        (("HS513", "a", "b"),),
        threads=64,
        verdict="deadlock",
    ),
    Twin(
        "setmaxnreg by one warp of a warpgroup",
        "setp.ne.u32 %p0, %w, 1;\n-@%p0 bra END;\nsetmaxnreg.dec.sync.aligned.u32 40; //b\nEND:\n",
        (("HS700", "", "b"),),
    ),
    Twin(
        "setmaxnreg by half a warp",
        "setp.ge.u32 %p0, %l, 16;\n-@%p0 bra END;\nsetmaxnreg.dec.sync.aligned.u32 40; //b\nEND:\n",
        (("HS700", "", "b"),),
        threads=64,
    ),
    Twin(
        "setmaxnreg with other counts",
        "setp.ne.u32 %p0, %w, 0;\n@%p0 bra OTHERS;\nsetmaxnreg.dec.sync.aligned.u32 40;\nbarrier.sync 0;\nbra END;\n"
        "OTHERS:\nbarrier.sync 0;\n-setmaxnreg.dec.sync.aligned.u32 48; //b\n+setmaxnreg.dec.sync.aligned.u32 40;\nEND:\n",
        (("HS700", "", "b"),),
    ),
    Twin(
        "elect-divergent",
        "setp.eq.u32 %p0, %l, 0;\n-@%p0 elect.sync _|%p1, -1; //b\n+elect.sync _|%p1, -1;\nbar.warp.sync -1;\n",
        (("HS508", "", "b"),),
        threads=32,
        verdict="deadlock",
    ),
    Twin(
        "spin-in-vain, while others wait at a barrier",
        "+@%leader st.release.gpu.global.b32 [%out+128], 1;\nsetp.ne.u32 %p0, %w, 0;\n@%p0 bra J;\n"
        "L:\nld.acquire.gpu.global.b32 %r2, [%out+128]; //b\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra L;\n"
        "J:\nbar.sync 0;\n",
        (("HS514", "", "b"),),
        verdict="deadlock",
    ),
    Twin(
        "spin-in-vain for a lock that is never released",
        "@!%leader bra END;\nL:\natom.acquire.gpu.global.cas.b32 %r1, [%out+128], 0, 1; //b\nsetp.ne.u32 %p1, %r1, 0;\n"
        "@%p1 bra L;\n+atom.release.gpu.global.exch.b32 %r1, [%out+128], 0;\nEND:\n",
        (("HS514", "", "b"),),
        ctas=2,
        verdict="deadlock",
    ),
    Twin(
        "spin-in-vain, because the writer waits where too few come",
        "setp.ne.u32 %p0, %w, 0;\n@!%p0 bra L;\n-bar.sync 1, 128; //c\n+bar.sync 1, 96;\n"
        "st.release.gpu.global.b32 [%out+128], 1;\nbra END;\n"
        "L:\nld.acquire.gpu.global.b32 %r2, [%out+128]; //b\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra L;\nEND:\n",
        (("HS503", "", "c"), ("HS514", "", "b")),
        verdict="deadlock",
    ),
    Twin(
        "warp-collective-divergent",
        "setp.lt.u32 %p0, %l, 16;\n-@!%p0 bra OTHERS;\nshfl.sync.idx.b32 %r9, %t, 0, 31, -1; //b\n-OTHERS:\n"
        "bar.warp.sync -1; //a\n",
        (("HS515", "a", "b"),),
        verdict="deadlock",
    ),
    Twin(
        "missing-arriver, which a lane waits for before it meets its warp",
        init(name="a")
        + SYNC
        + f"@!%leader bra MEET;\n+{ARRIVE}\n"
        + wait(name="b")
        + "MEET:\nbar.warp.sync -1;\n",
        (("HS205", "a", "b"),),
        threads=32,
        verdict="deadlock",
    ),
    Twin(
        "wgmma-nonuniform",
        LOADED
        + FENCE_REGS
        + "setp.ne.u32 %p0, %w, 3;\n-@!%p0 bra SKIP;\n"
        + mma("b")
        + COMMIT_MMA
        + wait_mma()
        + "-SKIP:\n",
        (("HS015", "", "b"),),
        verdict="deadlock",
    ),
    Twin(
        "descriptor-wrong",
        LOADED
        + FENCE_REGS
        + "-or.b64 %da, %da, 0x8000000000000000;\n-or.b64 %da, %da, 0x4000000000000000;\n-add.s64 %da, %da, 16000;\n"
        + mma("b")
        + COMMIT_MMA
        + wait_mma(),
        (("HS604", "", "b"),),
    ),
    Twin(
        "bulk-size-or-alignment",
        init()
        + SYNC
        + expect()
        + "mov.u32 %r4, 2040;\n"
        + only("-", load(name="b").replace("2048", "%r4"))
        + only("+", load())
        + wait(),
        (("HS606", "", "b"),),
    ),
    Twin(
        "smem-destination-outside-cta",
        init()
        + CLUSTER
        + expect()
        + "xor.b32 %r1, %c, 1;\nmapa.shared::cluster.u32 %r2, %s, %r1;\n"
        + "-@%leader cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%in], 2048, [%s+8192]; //b\n"
        + "+@%leader cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%in], 2048, [%s+8192];\n"
        + wait()
        + CLUSTER,
        (("HS607", "", "b"),),
        ctas=2,
        cluster=2,
        version="8.7",
    ),
    Twin(
        "red-as-acquire",
        "mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra READER;\n"
        "@%leader st.global.b32 [%out+64], 7; //a\n@%leader st.release.gpu.global.b32 [%out], 1;\nbra END;\n"
        "READER:\nld.relaxed.gpu.global.b32 %r2, [%out];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra READER;\n"
        "-red.release.gpu.global.add.u32 [%out], 1;\n+atom.acq_rel.gpu.global.add.u32 %r2, [%out], 1;\n"
        "ld.global.b32 %r3, [%out+64]; //b\nEND:\n",
        (("HS511", "a", "b"),),
        ctas=2,
    ),
]


MAP_LOAD = (
    "@%leader cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
    "[%s], [%map, {%z, %z}], [%s+8192]; //NAME\n"
)
REPLACE = "@%leader tensormap.replace.tile.global_dim.global.b1024.b32 [%map], 1, 512; //NAME\n"
PUBLISH = "@%leader fence.proxy.tensormap::generic.release.gpu;\n"
TAKE = "@%leader fence.proxy.tensormap::generic.acquire.gpu [%map], 128;\n"


def map_of_peer(release: str, acquire: str) -> str:
    """The second CTA loads through a map that the first one has changed, behind a flag; both fences."""
    return (
        init()
        + SYNC
        + "mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra USER;\n"
        + REPLACE.replace("NAME", "a")
        + release
        + "@%leader st.release.gpu.global.b32 [%out], 1;\nbra END;\nUSER:\n@!%leader bra JOIN;\nLOOK:\n"
        + "ld.acquire.gpu.global.b32 %r2, [%out];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra LOOK;\n"
        + acquire
        + expect()
        + MAP_LOAD.replace("NAME", "b")
        + "JOIN:\n"
        + wait()
        + "END:\n"
    )


def either(fence: str, bad: str, good: str) -> str:
    """A fence of one scope in the bad twin and another in the good one."""
    return "-" + fence.replace("gpu", bad) + "+" + fence.replace("gpu", good)


PUBLISH_COPY = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%out], [%r2], 128; //a\n"
EDIT_COPY = (
    "@%leader tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%s+4096], %in; //b\n"
)
# As grouped products of CUTLASS: a warp copies a map to shared memory, changes it there, and copies it out together.
COPY_OUT = (
    "setp.lt.u32 %p2, %l, 16;\nmul.wide.u32 %rd1, %l, 8;\nadd.u64 %rd1, %rd1, %map;\nmad.lo.u32 %r1, %l, 8, %s;\n"
    "@%p2 ld.global.b64 %rd2, [%rd1];\n@%p2 st.shared.b64 [%r1+4096], %rd2;\nbar.warp.sync -1;\n"
    "@%leader tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%s+4096], %in;\nbar.warp.sync -1;\n"
    "add.u32 %r2, %s, 4096;\n" + PUBLISH_COPY
)

MAPS = [
    Twin(
        "tensormap-fence-missing behind a copy of a whole warp",
        init()
        + COPY_OUT
        + "+"
        + TAKE.replace("%map", "%out")
        + expect()
        + MAP_LOAD.replace("NAME", "b").replace("%map", "%out")
        + wait(),
        (("HS308", "a", "b"),),
        threads=32,
    ),
    Twin(
        "tensormap-fence-missing: no acquire",
        init()
        + REPLACE.replace("NAME", "a")
        + PUBLISH
        + SYNC
        + "+"
        + TAKE
        + expect()
        + MAP_LOAD.replace("NAME", "b")
        + wait(),
        (("HS308", "a", "b"),),
    ),
    Twin(
        "tensormap-fence-missing: no release",
        init()
        + REPLACE.replace("NAME", "a")
        + "+"
        + PUBLISH
        + SYNC
        + TAKE
        + expect()
        + MAP_LOAD.replace("NAME", "b")
        + wait(),
        (("HS308", "a", "b"),),
    ),
    Twin(
        "tensormap-fence-missing: no release, .cta scope",
        init()
        + REPLACE.replace("NAME", "a")
        + "+"
        + PUBLISH.replace("gpu", "cta")
        + SYNC
        + TAKE.replace("gpu", "cta")
        + expect()
        + MAP_LOAD.replace("NAME", "b")
        + wait(),
        (("HS308", "a", "b"),),
    ),
    Twin(
        "tensormap-fence-missing: release of .cta scope for another CTA",
        map_of_peer(either(PUBLISH, "cta", "gpu"), TAKE),
        (("HS308", "a", "b"),),
        ctas=2,
    ),
    Twin(
        "tensormap-fence-missing: acquire of .cluster scope for another cluster",
        map_of_peer(PUBLISH, either(TAKE, "cluster", "sys")),
        (("HS308", "a", "b"),),
        ctas=2,
    ),
    Twin(
        "tensormap-fence-missing: both of .cta scope within a cluster",
        map_of_peer(either(PUBLISH, "cta", "cluster"), either(TAKE, "cta", "cluster")),
        (("HS308", "a", "b"),),
        ctas=2,
        cluster=2,
    ),
    # CUTLASS's tma_desc_commit_group and tma_desc_wait_group: the map of a load may be changed after them, the data is not there yet.
    Twin(
        "tensormap-update-in-flight: no wait for the bulk group",
        init()
        + COPY_OUT.replace("//a", "//c")
        + TAKE.replace("%map", "%out")
        + expect()
        + MAP_LOAD.replace("NAME", "a").replace("%map", "%out")
        + EDIT_COPY.replace("//b", "")
        + "bar.warp.sync -1;\n"
        + "@%leader cp.async.bulk.commit_group;\n+@%leader cp.async.bulk.wait_group.read 0;\n"
        + PUBLISH_COPY.replace("//a", "//b")
        + wait(),
        (("HS307", "a", "b"),),
        threads=32,
    ),
    Twin(
        "tensormap-update-in-flight: the bulk group is committed before the load",
        init()
        + COPY_OUT.replace("//a", "//c")
        + TAKE.replace("%map", "%out")
        + expect()
        + "-@%leader cp.async.bulk.commit_group;\n"
        + MAP_LOAD.replace("NAME", "a").replace("%map", "%out")
        + "+@%leader cp.async.bulk.commit_group;\n"
        + "@%leader cp.async.bulk.wait_group.read 0;\n"
        + PUBLISH_COPY.replace("//a", "//b")
        + wait(),
        (("HS307", "a", "b"),),
        threads=32,
    ),
    Twin(
        "missing-syncwarp: a map that a warp has read, or copied out together, is changed by a lane",
        COPY_OUT.replace(
            PUBLISH_COPY, "-ld.shared.b32 %r3, [%r2]; //a\n+" + PUBLISH_COPY.replace("//a", "")
        )
        + EDIT_COPY,
        (("HS502", "a", "b"),),
        threads=32,
    ),
    Twin(
        "tensormap-update-in-flight",
        init()
        + SYNC
        + expect()
        + MAP_LOAD.replace("NAME", "a")
        + wait(mark="+")
        + REPLACE.replace("NAME", "b")
        + wait(mark="-"),
        (("HS307", "a", "b"),),
    ),
]

NOTES = [
    Twin(
        "pdl-read-before-wait",
        "-ld.global.b32 %r1, [%in]; //b\ngriddepcontrol.wait;\n+ld.global.b32 %r1, [%in];\n",
        (("HS605", "", "b"),),
        level="note",
        verdict="clean",
    ),
    Twin(
        "pdl-read-before-wait, strictly",
        "-ld.global.b32 %r1, [%in]; //b\n@%leader griddepcontrol.wait;\n+bar.sync 0;\n+ld.global.b32 %r1, [%in];\n",
        (("HS605", "", "b"),),
        options=CheckOptions(grid_dependency="hazard"),
    ),
    Twin(
        "setmaxnreg-ignored",
        "-setmaxnreg.dec.sync.aligned.u32 40; //b\n",
        (("HS602", "", "b"),),
        level="note",
        verdict="clean",
        bound=False,
    ),
    Twin(
        "redundant-proxy-fence",
        put() + "fence.proxy.async;\n-fence.proxy.async; //b\n" + SYNC,
        (("HS113", "", "b"),),
        level="note",
        verdict="clean",
    ),
    Twin(
        "wgmma-serialised",
        LOADED
        + "setp.eq.u32 %p0, %t, 999;\n@%p0 bra ZERO;\n"
        + FENCE_REGS
        + mma()
        + COMMIT_MMA
        + "bra JOIN;\nZERO:\n-mov.f32 %f0, 0f00000000; //b\nJOIN:\n"
        + wait_mma(),
        (("HS014", "", "b"),),
        level="note",
        verdict="clean",
    ),
    Twin(
        "proxy-fence-skipped-path",
        put("a")
        + "-setp.lt.u32 %p0, %t, 0;\n-@!%p0 bra DONE;\nfence.proxy.async;\nDONE:\n"
        + SYNC
        + "@%leader cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 2048; //b\n"
        + "@%leader cp.async.bulk.commit_group;\n@%leader cp.async.bulk.wait_group 0;\n",
        (("HS101 HS107", "a", "b"),),
    ),
]
