"""Twins about proxies: what threads write and what TMA and wgmma see of it."""

from __future__ import annotations

from typing import Final

from hopsim.zoo.twin import Twin

PROXIES: Final = (
    Twin(
        "gen-write-to-tma-store",
        "HS101",
        "All threads write a tile, thread 0 stores it with TMA. Bad: a barrier, but no proxy fence.",
        "MoonshotAI/FlashKDA#24",
        """
 $put 0
+$fence
 $sync
 $store 0
 $drain
""",
    ),
    Twin(
        "gen-write-to-own-tma-store",
        "HS101",
        "One thread writes 16 bytes and stores them with TMA itself. Bad: program order does not reach across proxies.",
        "triton-lang/triton#9610",
        """
 @%leader st.shared.v4.b32 [%s], {%cta, %t, %cta, %t};
+$fence by=%leader
 $store 0 bytes=16
 $drain
""",
    ),
    Twin(
        "bridge-missing-behind-mbarrier",
        "HS101",
        "All threads arrive on an mbarrier, then the tile is stored. Bad: an mbarrier orders threads, not proxies.",
        "NVIDIA/Fuser#1967",
        """
 $init FULL 128
 $sync
 $put 0
+$fence
 $arrive FULL
 $wait FULL 0
 $store 0
 $drain
""",
    ),
    Twin(
        "gen-write-to-wgmma",
        "HS102",
        "Threads write an operand of wgmma. Bad: no proxy fence before the barrier.",
        "tile-ai/tilelang#2634",
        """
 $put 0 value=0x3f803f80
+$fence shared::cta
 $sync
 $mmafence
 $mma 0
 $mmacommit
 $mmawait 0
 $result %f0
""",
    ),
    Twin(
        "cp-async-to-wgmma",
        "HS103",
        "cp.async brings an operand of wgmma. Bad: cp.async writes in the generic proxy, and nothing bridges.",
        "pytorch/pytorch#181248",
        """
 $cpasync 0
 cp.async.wait_all;
+$fence
 $sync
 $mmafence
 $mma 0
 $mmacommit
 $mmawait 0
 $result %f0
""",
    ),
    Twin(
        "gen-read-to-tma-load",
        "HS104",
        "A slot is read with ld.shared, then refilled by TMA. Bad: write after read needs the fence too.",
        "deepseek-ai/DeepEP#642",
        """
 $init FULL
 $init OTHER
 $sync
 $expect FULL
 $load 0 FULL
 $wait FULL 0
 $get 0
 $result %r1
+$fence
 $sync
 $expect OTHER
 $load 0 OTHER at=4096
 $wait OTHER 0
""",
    ),
    Twin(
        "gen-write-under-tma-load",
        "HS100",
        "Threads clear a slot, then TMA fills it. Bad: write after write with no bridge.",
        "rule",
        """
 $init FULL
 $put 0
+$fence
 $sync
 $expect FULL
 $load 0 FULL
 $wait FULL 0
 $get 0
 $result %r1
""",
    ),
    Twin(
        "proxy-fence-before-the-write",
        "HS105",
        "There is a fence. Bad: it stands before the writes that it should cover.",
        "MoonshotAI/FlashKDA#24",
        """
-$fence
 $put 0
+$fence
 $sync
 $store 0
 $drain
""",
        found=("HS101",),
    ),
    Twin(
        "proxy-fence-wrong-thread",
        "HS105",
        "There is a fence. Bad: thread 0 executes it before it has learned of the other threads' writes.",
        "MoonshotAI/FlashKDA#24",
        """
 $put 0
-$fence by=%leader
+$fence
 $sync
 $store 0
 $drain
""",
        found=("HS101",),
    ),
    Twin(
        "proxy-fence-wrong-space",
        "HS106",
        "There is a fence. Bad: it covers global memory, the tile is in shared memory.",
        "NVIDIA/Fuser#4804",
        """
 $put 0
-$fence global
+$fence shared::cta
 $sync
 $store 0
 $drain
""",
        found=("HS101",),
    ),
    Twin(
        "proxy-fence-skipped-path",
        "HS107",
        "The fence sits in a loop over k-blocks. Bad: with no k-block the loop runs zero times, and so does the fence.",
        "MoonshotAI/FlashKDA#24",
        """
 $put 0
-mov.b32 %r10, 0;
+mov.b32 %r10, 1;
 LOOP:
 setp.eq.u32 %p0, %r10, 0;
 @%p0 bra DONE;
 $fence
 sub.u32 %r10, %r10, 1;
 bra LOOP;
 DONE:
 $sync
 $store 0
 $drain
""",
        found=("HS101",),
    ),
    Twin(
        "gen-global-write-to-tma-load",
        "HS108",
        "Threads write global memory, TMA reads it in the same grid. Bad: no bridge for global memory.",
        "deepseek-ai/DeepEP#621",
        """
 $init FULL
 mul.wide.u32 %rd0, %t, 16;
 add.u64 %rd0, %rd0, %in;
 st.global.b32 [%rd0], %t;
+$fence global
 $sync
 $expect FULL
 $load 0 FULL
 $wait FULL 0
 $get 0
 $result %r1
""",
    ),
    Twin(
        "st-async-to-async-read",
        "HS109",
        "st.async brings 16 bytes, TMA stores them. Bad: st.async writes in the generic proxy.",
        "triton-lang/triton, test_consan async_shared_store_proxy_handoff",
        """
 $init FULL
 $sync
 $expect FULL 16
 mapa.shared::cluster.u32 %r1, %s, 0;
 add.u32 %r2, %r1, 8192;
 @%leader st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r1], {7, 8, 9, 10}, [%r2];
 $wait FULL 0
+$fence
 $store 0 bytes=16
 $drain
""",
    ),
    Twin(
        "cta-fence-for-cluster",
        "HS110",
        "A tile is written into the peer CTA, which stores it. Bad: a .shared::cta fence does not cover a peer's memory.",
        "triton-lang/triton#10843",
        """
 $cluster
 $peer %r2
 st.shared::cluster.v4.b32 [%r2], {%t, %t, %t, %t};
-$fence shared::cta
+$fence shared::cluster
 $cluster
 $store 0
 $drain
""",
        found=("HS101",),
        strict=("HS101",),
        ctas=2,
        cluster=2,
    ),
    Twin(
        "mixed-proxy-atomics",
        "HS111",
        "A counter is raised by atom, then by a bulk reduction. Bad: the two proxies do not see each other.",
        "rule",
        """
 $put 0 value=1
 $fence
 @%leader atom.global.add.u32 %r1, [%sink], 1;
+$fence global by=%leader
 $sync
 @%leader cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%sink], [%s], 16;
 $drain
""",
    ),
    Twin(
        "barrier-as-proxy-fence",
        "HS112",
        "An epilogue stages a tile twice. Bad: the author takes the second barrier for a proxy bridge.",
        "tile-ai/tilelang#2634",
        """
 $put 0
 $fence
 $sync
 $store 0
 $commit
 $waitread 0
 $sync
 $put 0 value=%r39
+$fence
 $sync
 $store 0 to=%sink+2048
 $drain
""",
        found=("HS101",),
    ),
    Twin(
        "redundant-proxy-fence",
        "HS113",
        "A tile is written and stored. Bad: a second fence orders nothing new, and only costs time.",
        "NVIDIA/Fuser#3136",
        """
 $put 0
 $fence
-$fence
 $sync
 $store 0
 $drain
""",
        level="note",
        verdict="clean",
    ),
)
