"""Walks over sets about as large as L2: what device memory gives of them, counted by Nsight Compute.

Every SM walks over all of a set, so that both halves of L2 hold it, or over a part of its own.  A walk begins at the start
again, or goes back the way that it came.  Between the first walk and the others some other memory may be written.

`python -m hopsim.kernels.measured.l2_walks NOTHING` launches each once; Nsight Compute flushes the caches before each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from hopsim.errors import DeviceError
from hopsim.isa.program.kernel import loads
from hopsim.kernels.measured.ncu import profile
from hopsim.kernels.micro.clocked import NEVER, SMS
from hopsim.kernels.ptx.text import Param, PtxEntry, address, module_text, vector

THREADS: Final = 1024
CHUNK_BYTES: Final = 16 * THREADS
"""What a CTA reads or writes at once."""
WALKS: Final = 4
ENTRY: Final = "l2_walk"
READ: Final = "dram__bytes_read.sum"
NCU_LIMIT_S: Final = 240.0


@dataclass(frozen=True, slots=True)
class Walk:
    """One launch.

    Args:
        chunks: of `CHUNK_BYTES` that a CTA walks over.
        is_own: whether each CTA has a part of its own.
        is_back: whether every second walk goes back.
        written: chunks that each CTA writes after its first walk, of its own.
    """

    chunks: int
    is_own: bool
    is_back: bool
    written: int = 0

    @property
    def set_bytes(self) -> int:
        """Bytes of the set."""
        return self.chunks * CHUNK_BYTES * (SMS if self.is_own else 1)

    @property
    def written_bytes(self) -> int:
        """Bytes that all CTAs write."""
        return self.written * CHUNK_BYTES * SMS

    def missed(self, read_bytes: float) -> float:
        """Return which share of the walks after the first came from device memory, of which all walks read so much."""
        return (read_bytes / self.set_bytes - 1.0) / (WALKS - 1)


def all_walks() -> list[Walk]:
    """Return those that are recorded."""
    each = (1 << 20) // CHUNK_BYTES
    found = [
        Walk(mib * each, is_own=False, is_back=is_back)
        for is_back in (True, False)
        for mib in (20, 22, 23, 24, 25, 26, 27, 28, 29, 30, 32, 36)
    ]
    found += [
        Walk(mib * each, is_own=False, is_back=True, written=written)
        for written in (1, 2, 4)
        for mib in (18, 20, 22, 24, 26, 28)
    ]
    found += [
        Walk(chunks, is_own=True, is_back=is_back)
        for is_back in (True, False)
        for chunks in (10, 12, 14, 16, 17, 18, 19, 20, 21, 22, 24, 26)
    ]
    return found


def module() -> str:
    """Write the program: `WALKS` walks of 16 bytes a thread and step."""
    names = ("data", "own", "chunks", "back", "other", "written")
    kinds = (".u64", ".u32", ".u32", ".u32", ".u64", ".u32")
    k = PtxEntry(
        ENTRY,
        [Param(*one) for one in zip(names, kinds, strict=True)],
        [f".reqntid {THREADS}"],
    )
    data, other = (k.let(".b64", one, "ld.param.u64", f"[{one}]") for one in ("data", "other"))
    own, chunks, back, written = (
        k.let(".b32", one, "ld.param.u32", f"[{one}]")
        for one in ("own", "chunks", "back", "written")
    )
    thread = k.let(".b32", "thread", "mov.u32", "%tid.x")
    cta = k.let(".b32", "cta", "mov.u32", "%ctaid.x")
    k.emit("mad.wide.u32", data, thread, 16, data)
    k.emit("mad.wide.u32", other, thread, 16, other)
    k.emit("mad.wide.u32", data, k.let(".b32", "part", "mul.lo.u32", cta, own), 1, data)
    to_write = k.let(".b32", "to_write", "mul.lo.u32", written, CHUNK_BYTES)
    k.emit("mad.wide.u32", other, k.let(".b32", "place", "mul.lo.u32", cta, to_write), 1, other)
    at = k.let(".b64", "at", "mov.b64", data)
    step = k.let(".b64", "step", "mov.b64", CHUNK_BYTES)
    total = k.let(".b32", "total", "mov.u32", 0)
    left, more = k.reg(".b32", "left"), k.reg(".pred", "more")
    turns = k.let(".pred", "turns", "setp.ne.u32", back, 0)
    four = k.regs(".b32", "word", 4)

    for number in range(WALKS):
        k.emit("mov.u32", left, chunks)
        with k.loop(left, more, "$walk"):
            k.emit("ld.global.cg.v4.b32", vector(four), address(at))
            k.emit("add.u32", total, total, four[0])
            k.emit("add.u64", at, at, step)
        k.emit("mov.b64", at, data, unless=turns)
        k.emit("neg.s64", step, step, guard=turns)
        k.emit("add.u64", at, at, step, guard=turns)
        if number == 0:
            done = k.label("$written")
            k.emit("setp.eq.u32", more, written, 0)
            k.emit("bra", done, guard=more)
            k.emit("mov.u32", left, written)
            with k.loop(left, more, "$write"):
                k.emit("st.global.v4.b32", address(other), vector(four))
                k.emit("add.u64", other, other, CHUNK_BYTES)
            k.place(done)
    never = k.let(".pred", "never", "setp.eq.u32", total, NEVER)
    k.emit("st.global.u32", address(data), total, guard=never)
    k.emit("ret")
    return module_text(k, "shared_memory")


def launch_all() -> None:
    """Launch each walk once; what Nsight Compute looks at."""
    from hopsim.cuda.gpu import CudaGpu

    gpu = CudaGpu(0, isolate=False)
    kernel = loads(module())[ENTRY]
    walks = all_walks()
    data = gpu.array(np.zeros(max(one.set_bytes for one in walks), np.uint8))
    other = gpu.array(np.zeros(max(one.written_bytes for one in walks), np.uint8))
    for one in walks:
        own = one.chunks * CHUNK_BYTES if one.is_own else 0
        given = [data, np.uint32(own), np.uint32(one.chunks), np.uint32(one.is_back), other]
        gpu.launch(kernel, SMS, THREADS, 1, [*given, np.uint32(one.written)], 0, timing=False)


def record(log: Path, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Count what device memory gives of each walk.

    Args:
        log: where Nsight Compute writes.
    Raises: DeviceError.
    """
    walks = all_walks()
    counted = profile(__name__, "all", (READ,), log, NCU_LIMIT_S, say, f"^{ENTRY}")
    if len(counted) != len(walks):
        raise DeviceError(f"ncu gave {len(counted)} launches of {len(walks)}", where=str(log))
    return [
        {
            "set_bytes": one.set_bytes,
            "by_each_sm": "a part" if one.is_own else "all",
            "order": "there and back" if one.is_back else "around",
            "written_bytes": one.written_bytes,
            "dram_read_bytes": found.metrics[READ],
            "missed": round(one.missed(found.metrics[READ]), 3),
        }
        for one, found in zip(walks, counted, strict=True)
    ]


if __name__ == "__main__":
    launch_all()
