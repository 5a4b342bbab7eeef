"""A lock that the lanes of a warp take one after the other.

Whoever has it has left the loop in which the others ask: the warp must let that lane go on without them.
"""

from __future__ import annotations

from typing import Final

from hopsim.kernels.micro.clocked import Benchmark, Clocked, zeros
from hopsim.kernels.ptx.text import Param, address

LANES: Final = (2, 8, 32)


def locks() -> Benchmark:
    """A slope is a lane more: it takes the lock, adds to a word behind fences, and gives it back."""
    c = Clocked("lock_in_a_warp", [Param("words", ".u64")])
    words = c.k.let(".b64", "words", "ld.param.u64", "[words]")
    for lanes in LANES:

        def run(lanes: int = lanes) -> None:
            again, over = c.k.label("$again"), c.k.label("$over")
            taken, others = c.k.reg(".b32", "taken"), c.k.reg(".pred", "others")
            c.k.emit("setp.ge.u32", others, c.thread, lanes)
            c.k.emit("bra", over, guard=others)
            c.k.place(again)
            c.k.emit("atom.relaxed.gpu.global.cas.b32", taken, address(words), 0, 1)
            busy = c.k.let(".pred", "busy", "setp.ne.u32", taken, 0)
            c.k.emit("bra", again, guard=busy)
            c.k.emit("fence.acq_rel.gpu")
            value = c.k.let(".b32", "value", "ld.global.b32", address(words, 128))
            c.k.emit("add.u32", value, value, 1)
            c.k.emit("st.global.b32", address(words, 128), value)
            c.k.emit("fence.acq_rel.gpu")
            c.k.emit("st.relaxed.gpu.global.b32", address(words), 0)
            c.k.place(over)

        c.measure(f"lanes x{lanes}", run, whole_cta=True)
    return c.benchmark("lanes of a warp take a lock in turn", arguments=zeros(256))


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [locks()]
