"""Between launches on a device: L2 forgets what it held, and keeps nothing that has to be written back.

A memset would leave L2 full of lines that the next launch writes back while it reads.  Nsight Compute leaves none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from hopsim.kernels.probes.probe import load_module
from hopsim.kernels.ptx.text import Param, PtxEntry, address, module_text
from hopsim.launch.device import Device

SWEEP_BYTES: Final = 128 << 20
"""More than twice an L2."""
CTAS, THREADS = 1024, 256
NEVER: Final = 0x7FFFFFED
"""What the sum of zeros is not."""


def sweeper(gpu: Device) -> Callable[[], None]:
    """Return what makes a device read so much that its L2 holds nothing else."""
    kernel = load_module(_text())["sweep"]
    data = gpu.array(np.zeros(SWEEP_BYTES, np.uint8))

    def sweep() -> None:
        gpu.launch(kernel, CTAS, THREADS, 1, [data], 0, timing=False)

    return sweep


def _text() -> str:
    part = SWEEP_BYTES // CTAS
    k = PtxEntry("sweep", [Param("data", ".u64")], [f".reqntid {THREADS}"])
    at = k.let(".b64", "at", "ld.param.u64", "[data]")
    cta = k.let(".b32", "cta", "mov.u32", "%ctaid.x")
    thread = k.let(".b32", "thread", "mov.u32", "%tid.x")
    k.emit("mad.wide.u32", at, cta, part, at)
    k.emit("mad.wide.u32", at, thread, 4, at)
    total = k.let(".b32", "total", "mov.u32", 0)
    word = k.reg(".b32", "word")
    left = k.let(".b32", "left", "mov.u32", part // 4 // THREADS)
    more = k.reg(".pred", "more")
    with k.loop(left, more, "$again"):
        k.emit("ld.global.cg.u32", word, address(at))
        k.emit("add.u32", total, total, word)
        k.emit("add.u64", at, at, 4 * THREADS)
    never = k.let(".pred", "never", "setp.eq.u32", total, NEVER)
    k.emit("st.global.u32", address(at, -4), total, guard=never)
    k.emit("ret")
    return module_text(k, "shared_memory")
