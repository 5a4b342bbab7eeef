"""Twins about registers and plain memory."""

from __future__ import annotations

from typing import Final

from hopsim.zoo.twin import Twin

RESOURCES: Final = (
    Twin(
        "setmaxnreg-oversubscribed",
        "HS601",
        "Three warpgroups share the registers of a launch. Bad: together they ask for more than there are.",
        "tile-ai/tilelang#2406",
        """
 setp.lt.u32 %p0, %w, 4;
 @%p0 bra PRODUCER;
-setmaxnreg.inc.sync.aligned.u32 248;
+setmaxnreg.inc.sync.aligned.u32 232;
 bra END;
 PRODUCER:
-setmaxnreg.dec.sync.aligned.u32 152;
+setmaxnreg.dec.sync.aligned.u32 40;
 END:
 $result %t
""",
        threads=384,
        registers=168,
        verdict="deadlock",
    ),
    Twin(
        "setmaxnreg-ignored",
        "HS602",
        "A kernel that does not tell its threads. Bad: without a bound of registers ptxas ignores setmaxnreg (C7508).",
        "NVIDIA/cutlass#3406",
        """
-setmaxnreg.dec.sync.aligned.u32 40;
 $result %t
""",
        level="note",
        verdict="clean",
        is_bounded=False,
    ),
    Twin(
        "pdl-read-before-wait",
        "HS605",
        "A kernel may start before the one in front of it is done. Bad: it reads global memory before it waits for that.",
        "NVIDIA/cccl#3131",
        """
-ld.global.b32 %r1, [%in];
 griddepcontrol.wait;
+ld.global.b32 %r1, [%in];
 $result %r1
""",
        level="note",
        verdict="clean",
    ),
    Twin(
        "uninitialised-shared-read",
        "HS701",
        "A word of shared memory is read. Bad: nobody wrote it.",
        "rule",
        """
+@%leader st.shared.b32 [%s], 7;
+$sync
 ld.shared.b32 %r1, [%s];
 $result %r1
""",
        threads=32,
    ),
    Twin(
        "uninitialised-global-read",
        "HS702",
        "A word of global memory is read. Bad: neither host nor kernel wrote it.",
        "rule",
        """
 ld.param.u64 %rd0, [unwritten];
+@%leader st.global.b32 [%rd0], 7;
+$sync
 ld.global.b32 %r1, [%rd0];
 $result %r1
""",
        threads=32,
    ),
    Twin(
        "out-of-bounds",
        "HS703",
        "The last word of an array is read. Bad: one too far.",
        "rule",
        """
-ld.global.b32 %r1, [%out+65536];
+ld.global.b32 %r1, [%out+65532];
 $result %r1
""",
    ),
    Twin(
        "misaligned-access",
        "HS704",
        "A word is read. Bad: its address is not a multiple of four.",
        "rule",
        """
-ld.global.b32 %r1, [%in+2];
+ld.global.b32 %r1, [%in+4];
 $result %r1
""",
    ),
)
