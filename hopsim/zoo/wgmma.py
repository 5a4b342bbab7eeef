"""Twins about wgmma: groups, fences, registers in flight."""

from __future__ import annotations

from typing import Final

from hopsim.zoo.twin import Twin

WGMMA: Final = (
    Twin(
        "wgmma-wait-off-by-one",
        "HS009",
        "Accumulators are read. Bad: wait_group 1 leaves the newest group, the one that matters, pending.",
        "NVIDIA/Fuser#3573",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
 $wait FULL 0
 $mmafence
 $mma 0
 $mmacommit
-$mmawait 1
+$mmawait 0
 add.f32 %f10, %f0, %f1;
 $mmawait 0
 $result %f10
""",
    ),
    Twin(
        "wgmma-commit-missing",
        "HS010",
        "Products are issued and waited for. Bad: they were never committed, so the wait waits for nothing.",
        "NVIDIA/Fuser#3561",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
 $wait FULL 0
 $mmafence
 $mma 0
+$mmacommit
 $mmawait 0
 add.f32 %f10, %f0, %f1;
 $mmacommit
 $mmawait 0
 $result %f10
""",
    ),
    Twin(
        "accumulator-read-early",
        "HS011",
        "Accumulators are added up. Bad: while wgmma still writes them.",
        "HazyResearch/ThunderKittens#33",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
 $wait FULL 0
 $mmafence
 $mma 0
 $mmacommit
+$mmawait 0
 add.f32 %f10, %f0, %f1;
 $mmawait 0
 $result %f10
""",
    ),
    Twin(
        "wgmma-fence-missing",
        "HS012",
        "Accumulators are set to zero before the first product. Bad: no wgmma.fence between the writes and the product.",
        "NVIDIA/Fuser#3680",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
 $wait FULL 0
 $mmafence
 mov.f32 %f0, 0f00000000;
+$mmafence
 $mma 0
 $mmacommit
 $mmawait 0
 $result %f0
""",
    ),
    Twin(
        "wgmma-first-fence-missing",
        "HS012",
        "The first product of a kernel. Bad: no wgmma.fence at all.",
        "HPMLL/NVIDIA-Hopper-Benchmark#1",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
 $wait FULL 0
+$mmafence
 $mma 0
 $mmacommit
 $mmawait 0
 $result %f0
""",
    ),
    Twin(
        "wgmma-a-register-overwrite",
        "HS013",
        "A comes from registers. Bad: they are rewritten while the product is in flight.",
        "triton-lang/triton#8964",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
 $wait FULL 0
 mov.b32 %r10, 0x3f803f80;
 mov.b32 %r11, 0x3f803f80;
 mov.b32 %r12, 0x3f803f80;
 mov.b32 %r13, 0x3f803f80;
 $mmafence
 wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, {%r10, %r11, %r12, %r13}, %da, 0, 1, 1, 0;
 $mmacommit
+$mmawait 0
 mov.b32 %r10, %t;
 $mmawait 0
 $result %f0
 $result %r10 at=8192
""",
    ),
    Twin(
        "wgmma-nonuniform",
        "HS015",
        "A product needs four warps. Bad: one of them goes another way.",
        "NVIDIA Compute Sanitizer, synccheck",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
 $wait FULL 0
-setp.eq.u32 %p0, %w, 3;
-@%p0 bra END;
 $mmafence
 $mma 0
 $mmacommit
 $mmawait 0
 $result %f0
 END:
""",
        verdict="deadlock",
    ),
    Twin(
        "descriptor-address-unshifted",
        "HS604",
        "A product by a matrix descriptor. Bad: its address is in bytes, not in units of 16, and leaves shared memory.",
        "rchardx/hopper-gemm#2",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
 $wait FULL 0
-and.b32 %r10, %s, 0x3fff;
-cvt.u64.u32 %da, %r10;
-or.b64 %da, %da, 0x1000080000;
 $mmafence
 $mma 0
 $mmacommit
 $mmawait 0
 $result %f0
""",
    ),
    Twin(
        "wgmma-serialised",
        "HS014",
        "Accumulators are set to zero beside a pipeline. Bad: ptxas then waits for every product by itself (C7515).",
        "NVIDIA/TensorRT-LLM#2116",
        """
 $init FULL
 $sync
 $expect FULL
 $load 0 FULL
 $wait FULL 0
 setp.eq.u32 %p0, %t, 999;
 @%p0 bra ZERO;
 $mmafence
 $mma 0
 $mmacommit
 bra JOIN;
 ZERO:
-mov.f32 %f0, 0f00000000;
 JOIN:
 $mmawait 0
 $result %f0
""",
        level="note",
        verdict="clean",
    ),
)
