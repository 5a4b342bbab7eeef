"""Twins about mbarriers at work: arrivals, bytes, phases, what an arrive publishes."""

from __future__ import annotations

from typing import Final

from hopsim.zoo.twin import Twin

MBARRIERS: Final = (
    Twin(
        "tx-underexpected",
        "HS201",
        "Bytes are expected, more are delivered. Bad: the phase completes too early, or its count never comes back to zero.",
        "mirage-project/mirage#705",
        """
 $init FULL
 $sync
-$expect FULL 1024
+$expect FULL 2048
 $load 0 FULL
 $wait FULL 0
 $get 0
 $result %r1
""",
        verdict="deadlock",
    ),
    Twin(
        "tx-overexpected",
        "HS202",
        "Bytes of two tiles are expected. Bad: only one is copied.",
        "triton-lang/triton, test_consan async_tma_expect_bytes_mismatch",
        """
 $init FULL
 $sync
 $expect FULL 4096
 $load 0 FULL
+$load 1 FULL
 $wait FULL 0
 $get 0
 $result %r1
""",
        verdict="deadlock",
    ),
    Twin(
        "expect-without-arrive",
        "HS203",
        "Bytes are expected. Bad: with expect_tx alone nobody arrives, and the phase stays open.",
        "tile-ai/tilelang#2566",
        """
 $init FULL
 $sync
-@%leader mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%s+8192], 2048;
+$expect FULL
 $load 0 FULL
 $wait FULL 0
 $get 0
 $result %r1
""",
        verdict="deadlock",
    ),
    Twin(
        "missing-arriver",
        "HS205",
        "One thread arrives. Bad: the barrier was initialised for two.",
        "triton-lang/triton, test_consan deadlock_underarrival",
        """
-$init FULL 2
+$init FULL 1
 $sync
 $arrive FULL by=%leader
 $wait FULL 0
 $result %t
""",
        verdict="deadlock",
    ),
    Twin(
        "over-arrive",
        "HS206",
        "The barrier counts one arrival. Bad: all threads arrive.",
        "triton-lang/triton, test_consan deadlock_overarrival",
        """
 $init FULL
 $sync
-$arrive FULL
+$arrive FULL by=%leader
 $wait FULL 0
 $result %t
""",
    ),
    Twin(
        "duplicate-issue",
        "HS207",
        "A copy for the CTA. Bad: each lane of warp 0 issues it, so 32 times the bytes arrive.",
        "facebookexperimental/triton#1538",
        """
 $init FULL
 $sync
 $expect FULL
 setp.eq.u32 %p0, %w, 0;
-$load 0 FULL by=%p0
+$load 0 FULL
 $wait FULL 0
 $get 0
 $result %r1
""",
        found=(
            "HS201",
            "HS207",
        ),
    ),
    Twin(
        "elected-arrive-without-syncwarp",
        "HS208",
        "A warp writes, one lane arrives for it. Bad: without bar.warp.sync the other lanes' writes are not released.",
        "NVIDIA/cudnn-frontend#426",
        """
 $init FULL
 $sync
 setp.ne.u32 %p0, %w, 0;
 @%p0 bra OTHERS;
 $put 0
+bar.warp.sync -1;
 $arrive FULL by=%leader
 bra END;
 OTHERS:
 $wait FULL 0
 mad.lo.u32 %r5, %l, 16, %s;
 ld.shared.b32 %r1, [%r5];
 $result %r1
 END:
""",
        threads=64,
    ),
    Twin(
        "phase-unconsumed",
        "HS215",
        "Two phases of a barrier. Bad: the second is entered although no wait saw the first.",
        "rule",
        """
 $init FULL
 $sync
 $arrive FULL by=%leader
+$wait FULL 0
+$sync
 $arrive FULL by=%leader
 $result %t
""",
    ),
    Twin(
        "relaxed-arrive",
        "HS216",
        "A flag for data. Bad: a relaxed arrive publishes nothing.",
        "rule",
        """
 $init FULL
 $sync
 @%leader st.shared.b32 [%s], 7;
-@%leader mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%s+8192];
+@%leader mbarrier.arrive.release.cta.shared::cta.b64 _, [%s+8192];
 $wait FULL 0
 ld.shared.b32 %r1, [%s];
 $result %r1
""",
    ),
    Twin(
        "relaxed-wait",
        "HS216",
        "A flag for data. Bad: a relaxed wait acquires nothing, and no fence follows.",
        "rule",
        """
 $init FULL
 $sync
 @%leader st.shared.b32 [%s], 7;
 $arrive FULL by=%leader
 $wait FULL 0 scope=.relaxed.cta
+fence.acq_rel.cta;
 ld.shared.b32 %r1, [%s];
 $result %r1
""",
    ),
    Twin(
        "cta-scope-across-ctas",
        "HS217",
        "A word for the peer CTA and an arrive on its barrier. Bad: .cta scope does not include the peer.",
        "NVIDIA/cutlass#3643",
        """
 $init FULL
 $cluster
 setp.eq.u32 %p1, %c, 0;
 @%p1 bra READER;
 mapa.shared::cluster.u32 %r1, %s, 0;
 @%leader st.shared::cluster.b32 [%r1], 7;
-@%leader mbarrier.arrive.release.cta.shared::cluster.b64 _, [%r1+8192];
+@%leader mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1+8192];
 bra END;
 READER:
 $wait FULL 0 scope=.acquire.cluster
 ld.shared.b32 %r2, [%s];
 $result %r2
 END:
 $cluster
""",
        ctas=2,
        cluster=2,
    ),
    Twin(
        "drop-to-zero",
        "HS220",
        "A thread leaves a barrier for good. Bad: it is the only one, so later phases expect nobody.",
        "rule",
        """
-$init FULL 1
+$init FULL 2
 $sync
 @%leader mbarrier.arrive_drop.shared::cta.b64 _, [%s+8192];
 setp.eq.u32 %p0, %t, 32;
+$arrive FULL by=%p0
 $wait FULL 0
 $sync
 $arrive FULL by=%p0
 $wait FULL 1
 $result %t
""",
    ),
    Twin(
        "tx-out-of-range",
        "HS221",
        "Bytes are expected. Bad: more than a tx-count can hold.",
        "rule",
        """
 $init FULL
 $sync
-@%leader mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+8192], 1048576;
+$expect FULL
 $load 0 FULL
+$wait FULL 0
 $result %t
""",
    ),
    Twin(
        "try-wait-not-looped",
        "HS222",
        "A tile is waited for. Bad: try_wait may give up, and its answer is not looked at.",
        "rule",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
-mbarrier.try_wait.parity.shared::cta.b64 %p3, [%s+8192], 0;
+$wait FULL 0
 $get 0
 $result %r1
""",
    ),
    Twin(
        "tma-wait-taken-for-issuer",
        "HS223",
        "Thread 32 arrives, thread 0 writes a word and loads a tile. Bad: a wait for the tile is none for the word.",
        "triton-lang/triton#10926",
        """
 $init FULL
 $sync
 setp.eq.u32 %p0, %t, 32;
 $expect FULL by=%p0
 @%leader st.shared.b32 [%s+4096], 7;
 $load 0 FULL
 $wait FULL 0
+$sync
 ld.shared.b32 %r1, [%s+4096];
 $result %r1
""",
    ),
    Twin(
        "write-after-arrive",
        "HS224",
        "A word and its flag. Bad: the word is written after the arrive that should publish it.",
        "triton-lang/triton, GSan mbarrier_wait_does_not_acquire_post_arrival_writes",
        """
 $init FULL
 $sync
+@%leader st.shared.b32 [%s], 7;
 $arrive FULL by=%leader
-@%leader st.shared.b32 [%s], 7;
 $wait FULL 0
 ld.shared.b32 %r1, [%s];
 $result %r1
""",
    ),
)
