"""Twins about waiting: results of asynchronous copies used before they are there, slots reused before they are free."""

from __future__ import annotations

from typing import Final

from hopsim.zoo.twin import Twin

WAITING: Final = (
    Twin(
        "tma-read-unwaited",
        "HS001",
        "Thread 0 loads a tile; all threads read it. Bad: nobody waits for the mbarrier that tells of the bytes.",
        "facebookexperimental/CUTracer#106",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
+$wait FULL 0
 $get 0
 $result %r1
""",
    ),
    Twin(
        "tma-multiplied-unwaited",
        "HS001",
        "A tile is loaded and multiplied by wgmma. Bad: no thread ever waits for the load.",
        "triton-lang/triton, test_consan async_tma_kernel",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
+$wait FULL 0
 $mmafence
 $mma 0
 $mmacommit
 $mmawait 0
 $result %f0
""",
    ),
    Twin(
        "tma-stored-on-unwaited",
        "HS001",
        "A tile is copied through shared memory. Bad: the copy out does not wait for the copy in.",
        "rule",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
+$wait FULL 0
 $store 0
 $drain
""",
    ),
    Twin(
        "tma-wait-late",
        "HS002",
        "A tile is loaded and read by all. Bad: the wait stands after the read.",
        "facebookexperimental/CUTracer#106",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
+$wait FULL 0
 $get 0
-$wait FULL 0
 $result %r1
""",
    ),
    Twin(
        "wait-wrong-barrier",
        "HS003",
        "Two tiles with a barrier each. Bad: the second tile is read after waiting for the first one's barrier.",
        "triton-lang/triton, test_consan ws_two_loads_two_bars",
        """
 $init FULL
 $init OTHER
 $sync
 $expect FULL
 $load 0 FULL
 $expect OTHER
 $load 1 OTHER at=2048
-$wait FULL 0
+$wait OTHER 0
 $get 1
 $result %r1
 $wait FULL 0
 $sync
 $wait OTHER 0
""",
    ),
    Twin(
        "wait-wrong-parity",
        "HS004",
        "A consumer waits for the first phase. Bad: it asks for parity 1, which a fresh barrier passes at once.",
        "tile-ai/tilelang#2927",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
-$wait FULL 1
+$wait FULL 0
 $get 0
 $result %r1
""",
    ),
    Twin(
        "parity-not-flipped",
        "HS004",
        "One slot is filled twice. Bad: the second wait asks for the parity of the first round again.",
        "tile-ai/tilelang#2927",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
 $wait FULL 0
 $get 0
 mov.b32 %r10, %r1;
 $fence
 $sync
 $expect FULL
 $load 0 FULL at=4096
-$wait FULL 0
+$wait FULL 1
 $get 0
 add.u32 %r1, %r1, %r10;
 $result %r1
""",
        found=("HS004", "HS005"),
    ),
    Twin(
        "parity-aliasing",
        "HS005",
        "Two phases of one barrier. Bad: thread 0 opens the second before the others have seen the first; they may miss it.",
        "rule",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
 $wait FULL 0
 $get 0
+$sync
 $expect FULL
 $load 1 FULL at=4096
 $wait FULL 1
 $result %r1
""",
    ),
    Twin(
        "slot-overwrite",
        "HS006",
        "A slot is read by all, then refilled. Bad: no barrier between the last read and the refill.",
        "tile-ai/tilelang#2613",
        """
 $init FULL
 $init OTHER
 $sync
 $expect FULL
 $load 0 FULL
 $wait FULL 0
 $get 0
 $result %r1
 $fence
+$sync
 $expect OTHER
 $load 0 OTHER at=4096
 $sync
 $wait OTHER 0
""",
    ),
    Twin(
        "slot-of-two-warpgroups",
        "HS006",
        "Two warpgroups multiply one slot. Bad: the first refills it when its own products are done.",
        "tile-ai/tilelang#2613",
        """
 $init FULL
 $init OTHER
 $sync
 $expect FULL
 $load 0 FULL
 $wait FULL 0
 $mmafence
 $mma 0
 $mmacommit
 $mmawait 0
+$sync
 $expect OTHER
 $load 0 OTHER at=4096
 $wait OTHER 0
 $result %f0
""",
        threads=256,
    ),
    Twin(
        "empty-initial-parity",
        "HS007",
        "A producer acquires the empty slot before it loads. Bad: it starts with parity 0, and nobody will arrive.",
        "rule",
        """
 $init FULL
 $init EMPTY 32
 $sync
 setp.eq.u32 %p0, %w, 0;
 @!%p0 bra CONSUMER;
-$wait EMPTY 0
+$wait EMPTY 1
 $expect FULL
 $load 0 FULL
 bra END;
 CONSUMER:
 $wait FULL 0
 $get 0
 $result %r1
 $arrive EMPTY
 END:
""",
        verdict="deadlock",
        threads=64,
    ),
    Twin(
        "release-before-wgmma-done",
        "HS008",
        "Consumers hand a slot back to the producer. Bad: they arrive before the products that read it are waited for.",
        "NVIDIA/Fuser#3561",
        """
 $init FULL
 $init OTHER
 $init EMPTY 128
 $sync
 setp.ge.u32 %p0, %w, 4;
 @%p0 bra PRODUCER;
 $expect FULL
 $load 0 FULL
 $wait FULL 0
 $mmafence
 $mma 0
 $mmacommit
+$mmawait 0
 $arrive EMPTY
-$mmawait 0
 $wait OTHER 0
 $result %f0
 bra END;
 PRODUCER:
 setp.ne.u32 %p1, %t, 128;
 @%p1 bra END;
 $wait EMPTY 0
 $expect OTHER by=all
 $load 0 OTHER by=all at=4096
 END:
""",
        threads=256,
    ),
    Twin(
        "tma-overlap-unordered",
        "HS016",
        "Two loads into one slot. Bad: nothing orders the second after the first.",
        "triton-lang/triton#11162",
        """
 $init FULL
 $init OTHER
 $sync
 $expect FULL
 $load 0 FULL
+$wait FULL 0
+$sync
 $expect OTHER
 $load 0 OTHER at=4096
 $wait OTHER 0
 $wait FULL 0
 $get 0
 $result %r1
""",
    ),
    Twin(
        "cp-async-unwaited",
        "HS017",
        "cp.async brings 16 bytes for each thread. Bad: they are read before the group is waited for.",
        "NVIDIA/Fuser#2000",
        """
 $cpasync 0
 cp.async.commit_group;
+cp.async.wait_group 0;
 $get 0
 cp.async.wait_group 0;
 $result %r1
""",
    ),
    Twin(
        "cp-async-wait-off-by-one",
        "HS017",
        "cp.async brings 16 bytes for each thread. Bad: wait_group 1 leaves the only group pending.",
        "triton-lang/triton, test_consan async_copy",
        """
 $cpasync 0
 cp.async.commit_group;
-cp.async.wait_group 1;
+cp.async.wait_group 0;
 $get 0
 cp.async.wait_all;
 $result %r1
""",
    ),
    Twin(
        "cp-async-wait-not-published",
        "HS018",
        "A thread reads what another one copied. Bad: each waits for its own copies, and no barrier follows.",
        "triton-lang/triton, test_consan ws_async_copy_wait_visibility",
        """
 $cpasync 0
 cp.async.commit_group;
 cp.async.wait_group 0;
+$sync
 $next 0
 $result %r1
""",
    ),
    Twin(
        "async-unobserved-at-exit",
        "HS019",
        "A prefetch into shared memory. Bad: the CTA exits while it is still writing there.",
        "NVIDIA/cutlass#3647",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
+$wait FULL 0
 $result %t
""",
    ),
    Twin(
        "store-source-unread-at-exit",
        "HS019",
        "The last store of a CTA. Bad: the CTA exits before TMA has read the tile.",
        "NVIDIA/cutlass#2626",
        """
 $put 0
 $fence
 $sync
 $store 0
 $commit
+$waitread 0
""",
        strict=("HS019",),
    ),
)
