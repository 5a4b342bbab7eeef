"""Twins about threads: plain races, named barriers, warps, scopes, flags."""

from __future__ import annotations

from typing import Final

from hopsim.zoo.twin import Twin

THREADS: Final = (
    Twin(
        "thread-race",
        "HS500",
        "A thread reads what another one wrote. Bad: with no barrier between.",
        "rule",
        """
 $put 0
+$sync
 $next 0
 $result %r1
""",
    ),
    Twin(
        "barrier-missing-beside-tma-store",
        "HS500",
        "All threads write a tile and fence it, thread 0 stores it. Bad: a fence is no barrier.",
        "MoonshotAI/FlashKDA#25",
        """
 $put 0
 $fence
+$sync
 $store 0
 $drain
""",
    ),
    Twin(
        "smem-scratch-reuse",
        "HS501",
        "Scratch memory is written, read, and written again. Bad: no barrier between the read and the next write.",
        "NVIDIA/cutlass#3597",
        """
 $put 0
 $sync
 $next 0
 $result %r1
+$sync
 $put 0 value=%r39
""",
    ),
    Twin(
        "missing-syncwarp",
        "HS502",
        "Lanes exchange words through shared memory. Bad: a warp is no lockstep, bar.warp.sync is missing.",
        "JustVugg/colibri#1099",
        """
 $put 0
+bar.warp.sync -1;
 $next 0 flip=1
 $result %r1
""",
        threads=32,
    ),
    Twin(
        "named-count-mismatch",
        "HS503",
        "A named barrier for two warps. Bad: it is told to count three.",
        "deepseek-ai/FlashMLA#57",
        """
-bar.sync 1, 96;
+bar.sync 1, 64;
 $result %t
""",
        threads=64,
        verdict="deadlock",
    ),
    Twin(
        "named-id-collision",
        "HS504",
        "Two pairs of warps meet at barriers of their own. Bad: both pairs use number 1, with different counts.",
        "flashinfer-ai/flashinfer#4533",
        """
 setp.ge.u32 %p0, %w, 2;
 @%p0 bra SECOND;
 barrier.sync 1, 64;
 bra END;
 SECOND:
-barrier.sync 1, 96;
+barrier.sync 2, 64;
 END:
 $result %t
""",
        verdict="deadlock",
    ),
    Twin(
        "order-barrier-not-primed",
        "HS505",
        "Two warps take turns by named barriers. Bad: nobody gives the first turn.",
        "explained in Dao-AILab/flash-attention#1371",
        """
 setp.eq.u32 %p0, %w, 1;
 @%p0 bra SECOND;
 barrier.sync 1, 64;
 barrier.arrive 2, 64;
 bra END;
 SECOND:
+barrier.arrive 1, 64;
 barrier.sync 2, 64;
-barrier.arrive 1, 64;
 END:
 $result %t
""",
        threads=64,
        verdict="deadlock",
    ),
    Twin(
        "aligned-barrier-divergent",
        "HS506",
        "bar.sync is aligned: all threads of a warp execute it together. Bad: half of a warp does not.",
        "mlc-ai/TIRx-kernels#21",
        """
 setp.lt.u32 %p0, %l, 16;
-@%p0 bar.sync 0;
+bar.sync 0;
 $result %t
""",
        threads=32,
    ),
    Twin(
        "barrier-under-elect",
        "HS507",
        "One thread is elected to issue a copy. Bad: a barrier for the whole CTA stands inside its branch.",
        "rule",
        """
 $init FULL
 setp.ne.u32 %p0, %t, 0;
+$sync
 @%p0 bra OTHERS;
-$sync
 $expect FULL by=all
 $load 0 FULL by=all
 OTHERS:
 $wait FULL 0
 $get 0
 $result %r1
""",
    ),
    Twin(
        "elect-divergent",
        "HS508",
        "elect.sync names all lanes. Bad: half of them are not there, they wait for the elected one.",
        "NVIDIA/cutlass CHANGELOG",
        """
 $init FULL
 $sync
 setp.lt.u32 %p0, %l, 16;
-@%p0 bra SKIP;
 elect.sync _|%p1, -1;
 $arrive FULL by=%p1
-SKIP:
 $wait FULL 0
 $result %t
""",
        threads=32,
        verdict="deadlock",
    ),
    Twin(
        "early-return-warp",
        "HS509",
        "A barrier for all threads. Bad: one warp has left the loop and waits for something else.",
        "NVIDIA/cutlass CHANGELOG",
        """
 setp.eq.u32 %p0, %w, 1;
-@%p0 bra END;
 barrier.sync 1, 64;
 END:
 $result %t
""",
        threads=64,
        verdict="deadlock",
    ),
    Twin(
        "scope-too-narrow",
        "HS510",
        "A flag between two CTAs. Bad: with .cta scope.",
        "ScoRD and iGUARD papers; triton-lang/triton, GSan cross_sm",
        """
 setp.ne.u32 %p0, %cta, 0;
 @%p0 bra READER;
-@%leader st.release.cta.global.b32 [%sink], 1;
+@%leader st.release.gpu.global.b32 [%sink], 1;
 bra END;
 READER:
 sub.u64 %sink, %sink, 4096;
 LOOP:
-ld.acquire.cta.global.b32 %r2, [%sink];
+ld.acquire.gpu.global.b32 %r2, [%sink];
 setp.eq.u32 %p1, %r2, 0;
 @%p1 bra LOOP;
 END:
 $result %t
""",
        ctas=2,
    ),
    Twin(
        "flag-without-release",
        "HS216",
        "Data and a flag between two CTAs. Bad: the flag is written relaxed and does not publish the data.",
        "rule",
        """
 setp.ne.u32 %p0, %cta, 0;
 @%p0 bra READER;
 @%leader st.global.b32 [%sink+64], 7;
-@%leader st.relaxed.gpu.global.b32 [%sink], 1;
+@%leader st.release.gpu.global.b32 [%sink], 1;
 bra END;
 READER:
 sub.u64 %sink, %sink, 4096;
 LOOP:
 ld.acquire.gpu.global.b32 %r2, [%sink];
 setp.eq.u32 %p1, %r2, 0;
 @%p1 bra LOOP;
 ld.global.b32 %r3, [%sink+64];
 $result %r3
 END:
""",
        ctas=2,
    ),
    Twin(
        "flag-without-acquire",
        "HS216",
        "Data and a flag between two CTAs. Bad: the flag is read relaxed and no fence follows.",
        "rule",
        """
 setp.ne.u32 %p0, %cta, 0;
 @%p0 bra READER;
 @%leader st.global.b32 [%sink+64], 7;
 @%leader st.release.gpu.global.b32 [%sink], 1;
 bra END;
 READER:
 sub.u64 %sink, %sink, 4096;
 LOOP:
 ld.relaxed.gpu.global.b32 %r2, [%sink];
 setp.eq.u32 %p1, %r2, 0;
 @%p1 bra LOOP;
+fence.acq_rel.gpu;
 ld.global.b32 %r3, [%sink+64];
 $result %r3
 END:
""",
        ctas=2,
    ),
    Twin(
        "sums-not-acquired",
        "HS216",
        "Two CTAs leave sums, fence and draw tickets; the last one adds them up. Bad: with no fence behind the ticket.",
        "pytorch/pytorch#128455",
        """
 mul.wide.u32 %rd0, %cta, 4096;
 sub.u64 %rd0, %sink, %rd0;
 mul.wide.u32 %rd1, %cta, 4;
 add.u64 %rd1, %rd1, %rd0;
 @!%leader bra END;
 st.global.b32 [%rd1+16384], 7;
 membar.gl;
 atom.global.inc.u32 %r1, [%rd0+20480], 1;
 setp.ne.u32 %p0, %r1, 1;
 @%p0 bra END;
+membar.gl;
 ld.global.b32 %r2, [%rd0+16384];
 ld.global.b32 %r3, [%rd0+16388];
 add.u32 %r2, %r2, %r3;
 st.global.b32 [%rd0], %r2;
 END:
""",
        ctas=2,
    ),
    Twin(
        "volatile-sums-unfenced",
        "HS216",
        "The same with volatile sums, as in CUDA's guide. Bad: with no fence between a sum and its ticket.",
        "CUDA C++ Programming Guide, Memory Fence Functions",
        """
 mul.wide.u32 %rd0, %cta, 4096;
 sub.u64 %rd0, %sink, %rd0;
 mul.wide.u32 %rd1, %cta, 4;
 add.u64 %rd1, %rd1, %rd0;
 @!%leader bra END;
 st.volatile.global.b32 [%rd1+16384], 7;
+membar.gl;
 atom.global.inc.u32 %r1, [%rd0+20480], 1;
 setp.ne.u32 %p0, %r1, 1;
 @%p0 bra END;
 membar.gl;
 ld.volatile.global.b32 %r2, [%rd0+16384];
 ld.volatile.global.b32 %r3, [%rd0+16388];
 add.u32 %r2, %r2, %r3;
 st.global.b32 [%rd0], %r2;
 END:
""",
        ctas=2,
    ),
    Twin(
        "fences-of-other-lanes",
        "HS208",
        "Lanes of a warp write and fence, one sets a flag. Bad: fences are each lane's own, no bar.warp.sync joins them.",
        "rule",
        """
 setp.ne.u32 %p0, %cta, 0;
 @%p0 bra READER;
 mul.wide.u32 %rd0, %t, 4;
 add.u64 %rd0, %rd0, %sink;
 st.global.b32 [%rd0+64], %t;
+bar.warp.sync -1;
 membar.gl;
 @%leader st.relaxed.gpu.global.b32 [%sink], 1;
 bra END;
 READER:
 sub.u64 %sink, %sink, 4096;
 LOOP:
 ld.relaxed.gpu.global.b32 %r2, [%sink];
 setp.eq.u32 %p1, %r2, 0;
 @%p1 bra LOOP;
 membar.gl;
 mul.wide.u32 %rd0, %t, 4;
 add.u64 %rd0, %rd0, %sink;
 ld.global.b32 %r3, [%rd0+64];
 add.u64 %sink, %sink, 4096;
 $result %r3
 END:
""",
        threads=32,
        ctas=2,
    ),
    Twin(
        "red-as-acquire",
        "HS511",
        "Data and a flag between two CTAs; the reader counts itself in. Bad: red reads nothing back and never acquires.",
        "rule",
        """
 setp.ne.u32 %p0, %cta, 0;
 @%p0 bra READER;
 @%leader st.global.b32 [%sink+64], 7;
 @%leader st.release.gpu.global.b32 [%sink], 1;
 bra END;
 READER:
 sub.u64 %sink, %sink, 4096;
 LOOP:
 ld.relaxed.gpu.global.b32 %r2, [%sink];
 setp.eq.u32 %p1, %r2, 0;
 @%p1 bra LOOP;
-red.release.gpu.global.add.u32 [%sink], 1;
+atom.acq_rel.gpu.global.add.u32 %r2, [%sink], 1;
 ld.global.b32 %r3, [%sink+64];
 $result %r3
 END:
""",
        ctas=2,
    ),
    Twin(
        "mixed-size-strong",
        "HS512",
        "A counter of eight bytes. Bad: it is read as four, and strong accesses of different size race.",
        "rule",
        """
-@%leader st.relaxed.gpu.global.b64 [%sink], 1;
+@%leader st.relaxed.gpu.global.b32 [%sink], 1;
 setp.eq.u32 %p0, %t, 32;
 @%p0 ld.relaxed.gpu.global.b32 %r2, [%sink];
 $result %t
""",
    ),
    Twin(
        "named-barrier-run-ahead",
        "HS513",
        "A producer arrives, a consumer waits. Bad: it arrives twice before the barrier was used up.",
        "flashinfer-ai/flashinfer#4732",
        """
 setp.eq.u32 %p0, %w, 1;
 @%p0 bra CONSUMER;
 barrier.arrive 1, 64;
+barrier.sync 2, 64;
 barrier.arrive 1, 64;
 bra END;
 CONSUMER:
 barrier.sync 1, 64;
+barrier.arrive 2, 64;
 barrier.sync 1, 64;
 END:
 $result %t
""",
        threads=64,
        verdict="deadlock",
    ),
)
