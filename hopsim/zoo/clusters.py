"""Twins about clusters: memory of a peer, multicast, cluster barriers."""

from __future__ import annotations

from typing import Final

from hopsim.zoo.twin import Twin

CLUSTERS: Final = (
    Twin(
        "dsmem-late-entry",
        "HS401",
        "Each CTA writes into its peer. Bad: the peer may not have started.",
        "facebookexperimental/triton#2292",
        """
+$cluster
 $peer %r2
 st.shared::cluster.b32 [%r2], %t;
 $cluster
 ld.shared.b32 %r1, [%own];
 $result %r1
""",
        ctas=2,
        cluster=2,
    ),
    Twin(
        "dsmem-early-exit",
        "HS402",
        "Each CTA reads from its peer. Bad: the peer may have exited.",
        "triton-lang/triton#11730",
        """
 st.shared.b32 [%own], %t;
 $cluster
 $peer %r2
 ld.shared::cluster.b32 %r1, [%r2];
 $result %r1
+$cluster
""",
        ctas=2,
        cluster=2,
    ),
    Twin(
        "relaxed-cluster-arrive-data",
        "HS403",
        "Each CTA writes into its peer. Bad: a relaxed arrive does not publish the writes.",
        "review of sgl-project/sglang#38829",
        """
 $cluster
 $peer %r2
 st.shared::cluster.b32 [%r2], %t;
-barrier.cluster.arrive.relaxed;
+barrier.cluster.arrive.release;
 barrier.cluster.wait;
 ld.shared.b32 %r3, [%own];
 $result %r3
""",
        ctas=2,
        cluster=2,
    ),
    Twin(
        "cluster-barrier-divergent",
        "HS404",
        "A cluster barrier counts all threads. Bad: one warp of each CTA first waits for what only comes behind it.",
        "triton-lang/triton, test_consan deadlock_user_cluster_barrier_inside_warp_specialize",
        """
 $init FULL
 $cluster
 setp.eq.u32 %p0, %w, 1;
-@%p0 bra ELSEWHERE;
 $cluster
 $arrive FULL by=%leader
-ELSEWHERE:
 $wait FULL 0
 $result %t
""",
        threads=64,
        ctas=2,
        cluster=2,
        verdict="deadlock",
    ),
    Twin(
        "multicast-release-incomplete",
        "HS405",
        "One CTA multicasts into the slots of both, twice. Bad: before the second it waits for its own readers only.",
        "inclusionAI/humming#56",
        """
 $init FULL
 $init OTHER
 $cluster
 mov.b16 %h0, 3;
 setp.eq.u32 %p2, %c, 0;
 and.pred %p2, %p2, %leader;
 $expect FULL
 $multicast 0 FULL by=%p2
 $wait FULL 0
 $mmafence
 $mma 0
 $mmacommit
 $mmawait 0
 $result %f0
-$sync
+$cluster
 $expect OTHER
 $multicast 0 OTHER by=%p2 at=4096
 $wait OTHER 0
 $cluster
""",
        strict=("HS217", "HS400"),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "phase-word-overrun",
        "HS406",
        "A hand-made barrier flips a word; warp 1 is slow. Bad: thread 0 flips it again before warp 1 has seen the first.",
        "triton-lang/triton#11334",
        """
 @%leader st.shared.b32 [%s], 0;
 $sync
 @%leader st.release.cta.shared.b32 [%s], 1;
 setp.eq.u32 %p1, %w, 1;
 @%p1 nanosleep.u32 100000;
 LOOP:
 ld.acquire.cta.shared.b32 %r1, [%s];
 setp.eq.u32 %p0, %r1, 1;
 @!%p0 bra LOOP;
+$sync
 @%leader st.release.cta.shared.b32 [%s], 2;
 $sync
 $result %t
""",
        threads=64,
    ),
    Twin(
        "parity-word-overrun",
        "HS406",
        "The parity of a barrier is kept in shared memory; warp 1 is slow. Bad: thread 0 flips it before warp 1 reads it.",
        "triton-lang/triton#11334",
        """
 $init FULL
 @%leader st.shared.b32 [%s], 0;
 $sync
 $arrive FULL by=%leader
 setp.eq.u32 %p1, %w, 1;
 @%p1 nanosleep.u32 100000;
 ld.shared.b32 %r1, [%s];
 $wait FULL %r1
+$sync
 xor.b32 %r2, %r1, 1;
 @%leader st.shared.b32 [%s], %r2;
 $sync
 ld.shared.b32 %r3, [%s];
 $result %r3
""",
        threads=64,
    ),
)
