"""Twins about the life of an mbarrier: initialised, seen, invalidated, and used from where it may be."""

from __future__ import annotations

from typing import Final

from hopsim.zoo.twin import Twin

BARRIER_LIFE: Final = (
    Twin(
        "multicast-before-ready",
        "HS204",
        "One CTA multicasts into both of a cluster. Bad: its peer may not have initialised its barrier yet.",
        "facebookexperimental/triton#1024",
        """
 setp.eq.u32 %p0, %c, 1;
-@%p0 bra WAITS;
+$init FULL
+$cluster
 mov.b16 %h0, 3;
-$init FULL
-$sync
 $expect FULL
+@%p0 bra WAITS;
 $multicast 0 FULL
-bra JOIN;
 WAITS:
-$init FULL
-$sync
-$expect FULL
-JOIN:
 $wait FULL 0
 $get 0
 $result %r1
 $cluster
""",
        ctas=2,
        cluster=2,
        strict=("HS217",),
    ),
    Twin(
        "init-not-visible",
        "HS209",
        "All threads wait on a barrier. Bad: nothing orders them after its initialisation.",
        "NVIDIA/cutlass#2030",
        """
 $init FULL
+$sync
 $expect FULL
 $load 0 FULL
 $wait FULL 0
 $get 0
 $result %r1
""",
    ),
    Twin(
        "relaxed-arrive-without-init-fence",
        "HS210",
        "A cluster starts with a relaxed arrive. Bad: without fence.mbarrier_init it publishes no initialisation.",
        "rule",
        """
 $init FULL
+@%leader fence.mbarrier_init.release.cluster;
 barrier.cluster.arrive.relaxed;
 barrier.cluster.wait;
 $expect FULL
 $load 0 FULL
 $wait FULL 0
 $get 0
 $result %r1
""",
    ),
    Twin(
        "use-before-init",
        "HS211",
        "An arrive. Bad: it comes before the barrier is initialised.",
        "triton-lang/triton, test_consan barrier_use_without_init",
        """
-$arrive FULL by=%leader
 $init FULL
 $sync
+$arrive FULL by=%leader
+$wait FULL 0
 $result %t
""",
    ),
    Twin(
        "reinit-without-inval",
        "HS212",
        "A barrier is initialised again with another count. Bad: it is still in use and was not invalidated.",
        "triton-lang/triton, test_consan barrier_reinit_requires_invalidate",
        """
 $init FULL 2
 $arrive FULL by=%leader
+$arrive FULL by=%leader
+@%leader mbarrier.inval.shared::cta.b64 [%s+8192];
 $init FULL 1
 $result %t
""",
    ),
    Twin(
        "barrier-storage-reused",
        "HS213",
        "Scratch data beside a barrier. Bad: it lies on top of it.",
        "triton-lang/triton#11244",
        """
 $init FULL
 $sync
 $expect FULL
-@%leader st.shared.b32 [%s+8192], %t;
+@%leader st.shared.b32 [%s+8200], %t;
 $load 0 FULL
 $wait FULL 0
 $get 0
 $result %r1
""",
    ),
    Twin(
        "inval-in-flight",
        "HS214",
        "A barrier is invalidated at the end. Bad: while a copy is still to signal it.",
        "triton-lang/triton, test_consan barrier_invalidate_requires_completion_wait",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
+$wait FULL 0
 $sync
 @%leader mbarrier.inval.shared::cta.b64 [%s+8192];
 $result %t
""",
    ),
    Twin(
        "local-arrive-on-remote-address",
        "HS218",
        "An arrive on a peer's barrier. Bad: the .shared::cta form with an address of mapa.",
        "apache/tvm#20074",
        """
 $init FULL
 $cluster
 $peer %r1 %s
-@%leader mbarrier.arrive.shared::cta.b64 _, [%r1+8192];
+@%leader mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1+8192];
+$wait FULL 0 scope=.acquire.cluster
 $result %t
 $cluster
""",
        ctas=2,
        cluster=2,
    ),
    Twin(
        "wait-on-remote-barrier",
        "HS219",
        "A wait. Bad: on the peer's barrier, where only arrives are allowed.",
        "rule",
        """
 $init FULL
 $cluster
 $arrive FULL by=%leader
-$peer %r1 %s
-LOOP:
-mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r1+8192], 0;
-@!%p0 bra LOOP;
+$wait FULL 0
 $result %t
 $cluster
""",
        ctas=2,
        cluster=2,
    ),
)
