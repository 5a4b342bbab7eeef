"""Twins about tensor maps that a kernel changes."""

from __future__ import annotations

from typing import Final

from hopsim.zoo.twin import Twin

MAPS: Final = (
    Twin(
        "tensormap-update-in-flight",
        "HS307",
        "A tensor map is changed for the next tile. Bad: a copy that uses it is still in flight.",
        "deepseek-ai/DeepGEMM#343",
        """
 $init FULL
 $copymap
 @%p18 fence.proxy.tensormap::generic.release.gpu;
 $sync
 @%leader fence.proxy.tensormap::generic.acquire.gpu [%sink], 128;
 $expect FULL
 $tensor %sink
+$wait FULL 0
 @%leader tensormap.replace.tile.global_dim.global.b1024.b32 [%sink], 1, 512;
 $wait FULL 0
 ld.shared.b32 %r1, [%own];
 $result %r1
""",
    ),
    Twin(
        "tensormap-not-acquired",
        "HS308",
        "A tensor map is changed, and used by the same thread. Bad: it is not acquired in the proxy of tensor maps.",
        "rule",
        """
 $init FULL
 $copymap
 $sync
 @%leader tensormap.replace.tile.global_dim.global.b1024.b32 [%sink], 1, 512;
 @%leader fence.proxy.tensormap::generic.release.gpu;
 $sync
+@%leader fence.proxy.tensormap::generic.acquire.gpu [%sink], 128;
 $expect FULL
 $tensor %sink
 $wait FULL 0
 ld.shared.b32 %r1, [%own];
 $result %r1
""",
    ),
    Twin(
        "tensormap-not-released",
        "HS308",
        "A tensor map is changed by one thread and used by another. Bad: a barrier alone does not publish it.",
        "rule",
        """
 $init FULL
 $copymap
 $sync
 @%leader tensormap.replace.tile.global_dim.global.b1024.b32 [%sink], 1, 512;
+@%leader fence.proxy.tensormap::generic.release.gpu;
 $sync
 setp.eq.u32 %p3, %t, 32;
 @%p3 fence.proxy.tensormap::generic.acquire.gpu [%sink], 128;
 $expect FULL by=%p3
 $tensor %sink by=%p3
 $wait FULL 0
 ld.shared.b32 %r1, [%own];
 $result %r1
""",
    ),
)
