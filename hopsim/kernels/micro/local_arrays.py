"""Arrays of threads in local memory: an element of all lanes of a warp is a line; lanes at different ones touch more lines.

Source: CUDA C++ Programming Guide 12, "Local Memory" (consecutive 32-bit words are those of consecutive threads).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, mean_of_rows
from hopsim.kernels.ptx.text import Reg, address

RING: Final = 32
"""Elements, each of which holds the address of the next one; as many others lie behind them."""
CHASES: Final = (8, 40)
SPREADS: Final = (1, 2, 4, 8, 16, 32)
"""Different elements at which the lanes of a warp are."""
SIZES: Final = (16, 64)
ROUNDS: Final = (1, 3)


def _array(c: Clocked, elements: int) -> Reg:
    """Declare an array of words; return its address."""
    c.k.emit(".local", f".align 16 .b8 array[{4 * elements}]")
    return c.k.let(".b32", "array", "mov.u32", "array")


def chases(warps: int) -> Benchmark:
    """Dependent loads; such loads, each followed by a store elsewhere; stores that are read back at once.

    Args:
        warps: that do so at once.
    """
    c = Clocked(f"local_chases_w{warps}", directives=[f".reqntid {32 * warps}"])
    array = _array(c, 2 * RING)
    for element in range(RING):
        following = c.k.let(".b32", "held", "add.u32", array, 4 * ((element + 1) % RING))
        c.k.emit("st.local.b32", address(array, 4 * element), following)
        c.k.emit("st.local.b32", address(array, 4 * (RING + element)), following)
    for spread in SPREADS:
        lane = c.k.let(".b32", "lane", "and.b32", c.thread, spread - 1)
        start = c.k.let(".b32", "start", "mad.lo.u32", lane, 4, array)
        # The same address again, so that ptxas does not know it.
        before = c.k.let(".b32", "before", "add.u32", lane, RING - 1)
        c.k.emit("and.b32", before, before, RING - 1)
        c.k.emit("mad.lo.u32", before, before, 4, array)
        again = c.k.let(".b32", "again", "ld.local.b32", address(before))

        def load(value: Reg) -> Reg:
            return c.k.let(".b32", "next", "ld.local.b32", address(value))

        def move(value: Reg) -> Reg:
            following = c.k.let(".b32", "next", "ld.local.b32", address(value))
            c.k.emit("st.local.b32", address(following, 4 * RING), value)
            return following

        def read_back(value: Reg, start: Reg = start, again: Reg = again) -> Reg:
            c.k.emit("st.local.b32", address(start, 4 * RING), value)
            return c.k.let(".b32", "next", "ld.local.b32", address(again, 4 * RING))

        steps: dict[str, Callable[[Reg], Reg]] = {
            "ld": load, "ld, st elsewhere": move, "st, ld": read_back,
        }  # fmt: skip
        for label, step in steps.items():
            for length in CHASES:

                def run(
                    length: int = length, step: Callable[[Reg], Reg] = step, start: Reg = start
                ) -> Reg:
                    at = start
                    for _ in range(length):
                        at = step(at)
                    return at

                c.measure(f"{label}, {spread} elements x{length}", run, whole_cta=True)
    # A load that could read them all keeps the stores.
    anywhere = c.k.let(".b32", "anywhere", "ld.local.b32", address(array))
    c.keep(c.k.let(".b32", "last", "ld.local.b32", address(anywhere, 4 * RING)))
    return c.benchmark(
        f"dependent loads and stores of local memory, {warps} warps", block=32 * warps
    )


def rates(elements: int, warps: int, ctas: int) -> Benchmark:
    """Stores and loads of all elements by all lanes at once; a slope is cycles for all of them.

    Args:
        elements: words of each thread.
        warps: of a CTA, one on each SM.
        ctas: that do so at once.
    """
    c = Clocked(f"local_rates_{elements}_w{warps}_{ctas}", directives=[f".reqntid {32 * warps}"])
    c.own_row(1 + 3 * len(ROUNDS))
    array = _array(c, elements + 4)
    # Each round has its own address of the same place: ptxas, which does not know that, can neither join what lies side by
    # side nor leave out what is stored or loaded again.
    places: list[Reg] = []
    for zero in ("%ctaid.y", "%ctaid.z", "%clusterid.y"):
        offset = c.k.let(".b32", "offset", "mov.u32", zero)
        places.append(c.k.let(".b32", "at", "mad.lo.u32", offset, 4, array))
    total = c.k.let(".b32", "total", "mov.u32", 0)

    def store(rounds: int) -> None:
        for at in places[:rounds]:
            for element in range(elements):
                c.k.emit("st.local.b32", address(at, 4 * element), c.thread)

    def load(rounds: int) -> Reg:
        for at in places[:rounds]:
            for first in range(0, elements, 8):
                held = c.k.regs(".b32", "v", 8)
                for index, one in enumerate(held):
                    c.k.emit("ld.local.b32", one, address(at, 4 * (first + index)))
                for one in held:
                    c.k.emit("xor.b32", total, total, one)
        return total

    def both(rounds: int) -> Reg:
        for at in places[:rounds]:
            for element in range(elements):
                place = address(at, 4 * element)
                one = c.k.let(".b32", "one", "ld.local.b32", place)
                c.k.emit("xor.b32", total, total, one)
                c.k.emit("st.local.b32", place, total)
        return total

    c.measure("first st", lambda: store(1), whole_cta=True)
    for label, body in (("st", store), ("ld", load), ("ld and st", both)):
        for rounds in ROUNDS:
            c.measure(
                f"{label} x{rounds}",
                lambda rounds=rounds, body=body: body(rounds),
                whole_cta=True,
            )
    return c.benchmark(
        f"loads and stores of {elements} words of local memory a thread, {warps} warps, {ctas} CTAs", grid=ctas,
        block=32 * warps, rows=ctas, summary=mean_of_rows,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all benchmarks of this group."""
    return [
        *(chases(warps) for warps in (1, 8)),
        *(
            rates(elements, warps, ctas)
            for elements in SIZES for warps in (1, 8, 32) for ctas in (1, SMS)
        ),
    ]  # fmt: skip
