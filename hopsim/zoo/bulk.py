"""Twins about bulk groups and tensor maps: stores and what may follow them."""

from __future__ import annotations

from typing import Final

from hopsim.zoo.twin import Twin

BULK: Final = (
    Twin(
        "store-source-reuse",
        "HS301",
        "A tile is stored, then the slot is written again. Bad: TMA may not have read it yet.",
        "uccl-project/mKernel#18",
        """
 $put 0
 $fence
 $sync
 $store 0
 $commit
+$waitread 0
+$sync
 $put 0 value=%r39
 $waitstore 0
""",
    ),
    Twin(
        "bulk-wait-off-by-one",
        "HS302",
        "Two stores, the second slot is used again. Bad: wait_group.read 1 leaves the second one pending.",
        "deepseek-ai/DeepEP#657",
        """
 $put 0
 $put 1
 $fence
 $sync
 $store 0
 $commit
 $store 1 to=%sink+2048
 $commit
-$waitread 1
+$waitread 0
 $sync
 $put 1 value=%r39
 $waitstore 0
""",
    ),
    Twin(
        "read-wait-for-global",
        "HS303",
        "Stored data is read back from global memory. Bad: .read tells that the source was read, not that the data arrived.",
        "asked in HazyResearch/ThunderKittens#194",
        """
 $put 0
 $fence
 $sync
 $store 0
 $commit
-$waitread 0
+$waitstore 0
 $sync
 ld.global.b32 %r1, [%sink];
 $result %r1
 $waitstore 0
""",
    ),
    Twin(
        "bulk-wait-by-other-thread",
        "HS304",
        "A store is waited for before the slot is used again. Bad: by a thread that did not issue it.",
        "rule",
        """
 $put 0
 $fence
 $sync
 $store 0
 $commit
 setp.eq.u32 %p1, %t, 32;
-$waitread 0 by=%p1
+$waitread 0
 $sync
 $put 0 value=%r39
 $waitstore 0
""",
    ),
    Twin(
        "bulk-commit-missing",
        "HS305",
        "A store is waited for. Bad: it was never committed, and the wait returns at once.",
        "rule",
        """
 $put 0
 $fence
 $sync
 $store 0
+$commit
 $waitread 0
 $sync
 $put 0 value=%r39
 $drain
""",
    ),
    Twin(
        "wait-without-rejoin",
        "HS306",
        "The issuer waits for its store. Bad: the others write the slot without waiting for the issuer.",
        "rule",
        """
 $put 0
 $fence
 $sync
 $store 0
 $commit
 $waitread 0
+$sync
 $put 0 value=%r39
 $waitstore 0
""",
    ),
    Twin(
        "global-data-unwaited",
        "HS300",
        "Stored data is read back from global memory. Bad: with no wait at all.",
        "rule",
        """
 $put 0
 $fence
 $sync
 $store 0
 $commit
+$waitstore 0
+$sync
 ld.global.b32 %r1, [%sink];
 $result %r1
 $waitstore 0
""",
    ),
    Twin(
        "swizzle-base-misaligned",
        "HS603",
        "A 128-byte swizzled tile. Bad: its slot does not begin at a multiple of 1024 bytes.",
        "NVIDIA/Fuser#4096",
        """
 $init FULL
 $sync
 $expect FULL
-@%leader cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%s+128], [%map, {0, 0}], [%s+8192];
+@%leader cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%map, {0, 0}], [%s+8192];
 $wait FULL 0
-ld.shared.b32 %r1, [%s+128];
+ld.shared.b32 %r1, [%s];
 $result %r1
""",
    ),
    Twin(
        "bulk-misaligned",
        "HS606",
        "A bulk copy. Bad: its source is not aligned to 16 bytes.",
        "rule",
        """
 $init FULL
 $sync
 $expect FULL
-$load 0 FULL at=8
+$load 0 FULL at=16
 $wait FULL 0
 $get 0
 $result %r1
""",
    ),
    Twin(
        "smem-destination-outside-cta",
        "HS607",
        "A bulk load. Bad: its .shared::cta destination is an address of the peer.",
        "rule",
        """
 $init FULL
 $cluster
 $expect FULL
-$peer %r1 %s
+mov.b32 %r1, %s;
 @%leader cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%in], 2048, [%s+8192];
 $wait FULL 0
 $get 0
 $result %r1
 $cluster
""",
        ctas=2,
        cluster=2,
        version="8.6",
    ),
    Twin(
        "tensormap-wrong-space",
        "HS608",
        "A tensor load. Bad: its map was copied to shared memory.",
        "rule",
        """
 $init FULL
 $sync
 $expect FULL
-cvt.u64.u32 %map, %s;
-cvta.shared.u64 %map, %map;
 @%leader cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%map, {0, 0}], [%s+8192];
 $wait FULL 0
 ld.shared.b32 %r1, [%s];
 $result %r1
""",
    ),
)
