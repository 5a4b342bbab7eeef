"""What memory takes, in SM clocks, while the tensor cores work: the SM clock falls, and what has a clock of its own gains.

One thread of each CTA, one CTA an SM, waits until the load has settled and measures; a warpgroup beside it does nothing but
products, of zeros or of random values, which take more power.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np

from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, mean_of_rows, median_of_rows
from hopsim.kernels.micro.tensor import A_BYTES, operands
from hopsim.kernels.ptx.text import Param, Reg, address, vector
from hopsim.launch.arrays import TensorMap

Load = Literal["none", "zeros", "random"]

THREADS: Final = 256
N: Final = 256
OPERAND_BYTES: Final = A_BYTES + N * 128
PRODUCTS: Final = 8
"""Of a turn of the warpgroup; each takes 128 cycles."""
TURN_CYCLES: Final = PRODUCTS * N // 2
TURNS_OF_A_SUM: Final = 16
SETTLE_CYCLES: Final[dict[Load, int]] = {"none": 0, "zeros": 20_000, "random": 300_000}
"""Power lowers the clock slowly."""
MEASURED_CYCLES: Final = 420_000
"""More than everything that is measured takes."""
BEGIN_NS: Final = 1 << 16
"""SMs begin to measure at a multiple of it, so that all do it together: the SM clocks of two GPCs do not agree."""
PART_NS: Final = 20 << 10
"""From one measurement to the next; none takes longer."""
POLL_NS: Final = 100

STEPS: Final = 32
"""Of a chain of loads."""
LINE, PAGE = 128, 4096
BOX_ROWS, BOX_K = 128, 64
BOX_BYTES: Final = BOX_ROWS * BOX_K * 2
BOXES: Final = 8
"""Of a CTA."""
SLOTS: Final = 4
SLOTS_AT: Final = OPERAND_BYTES
BARRIERS_AT: Final = SLOTS_AT + SLOTS * BOX_BYTES
FENCES: Final = 8

SAMPLES: Final = 24
SAMPLE_CYCLES: Final = 25_000
SHORT_SAMPLES: Final = 72
SHORT_SAMPLE_CYCLES: Final = 500
LOADED_FROM: Final = 10_000
LOADED_CYCLES: Final = 14_336


def _fill(c: Clocked, load: Load) -> None:
    """Write operands: zeros, or numbers of 1 to 2 in size with signs and fractions at random."""
    words, left = OPERAND_BYTES // 4 // 128, c.k.let(".b32", "left", "mov.u32", 0)
    place = c.k.let(".b32", "fill", "mad.lo.u32", c.thread, 4, c.shared)
    c.k.emit("sub.u32", place, place, 128 * 4)
    value = c.k.let(".b32", "value", "mov.u32", 0)
    state = c.k.let(".b32", "state", "mul.lo.u32", c.thread, 0x9E3779B1)
    loop, more = c.k.label("$fill"), c.k.reg(".pred", "more")
    c.k.place(loop)
    if load == "random":
        c.k.emit("mad.lo.u32", state, state, 1664525, 1013904223)
        c.k.emit("shr.u32", value, state, 8)
        c.k.emit("xor.b32", value, value, state)
        c.k.emit("and.b32", value, value, 0x807F807F)
        c.k.emit("or.b32", value, value, 0x3F803F80)
    c.k.emit("st.shared.b32", address(place), value)
    c.k.emit("add.u32", place, place, 512)
    c.k.emit("add.u32", left, left, 1)
    c.k.emit("setp.lt.u32", more, left, words)
    c.k.emit("bra", loop, guard=more)
    c.k.emit("fence.proxy.async.shared::cta")
    c.k.emit("bar.sync", 1, 128)


def _work(c: Clocked, load: Load, cycles: int, after: int = 0) -> None:
    """Write products that take about so many cycles, `after` cycles after the entry; the second warpgroup does them."""
    entry = c.clock() if after else None
    _fill(c, load)
    sums = c.k.regs(".b32", "acc", N // 2)
    for register in sums:
        c.k.emit("mov.b32", register, 0)
    a, b, yes = operands(c)
    if entry is not None:
        c.wait_until(entry, after)
    left, more = (
        c.k.let(".b32", "turns", "mov.u32", cycles // TURN_CYCLES),
        c.k.reg(".pred", "more"),
    )
    with c.k.loop(left, more, "$work"):
        # Sums that only grew would in the end swallow the products, and take less power.
        within = c.k.let(".b32", "within", "and.b32", left, TURNS_OF_A_SUM - 1)
        goes_on = c.k.let(".pred", "goes_on", "setp.ne.u32", within, 0)
        c.k.emit("wgmma.fence.sync.aligned")
        for number in range(PRODUCTS):
            c.k.emit(
                f"wgmma.mma_async.sync.aligned.m64n{N}k16.f32.bf16.bf16",
                vector(sums), a, b, yes if number else goes_on, 1, 1, 0, 0,
            )  # fmt: skip
        c.k.emit("wgmma.commit_group.sync.aligned")
        c.k.emit("wgmma.wait_group.sync.aligned", 0)
    for register in sums:
        c.keep(register)


class _Parts:
    """Measurements that all SMs begin together."""

    def __init__(self, c: Clocked) -> None:
        self._c = c
        self._begin = c.k.let(".b64", "begin", "or.b64", _nanoseconds(c), BEGIN_NS - 1)

    def measure(self, label: str, body: Callable[[], None]) -> None:
        """Write the next one."""
        c = self._c
        loop, early = c.k.label("$meet"), c.k.reg(".pred", "early")
        now = c.k.reg(".b64", "now")
        c.k.place(loop)
        c.k.emit("nanosleep.u32", POLL_NS)
        c.k.emit("mov.u64", now, "%globaltimer")
        c.k.emit("setp.le.u64", early, now, self._begin)
        c.k.emit("bra", loop, guard=early)
        c.k.emit("add.u64", self._begin, self._begin, PART_NS)
        c.measure_one(label, body)


def _under(load: Load, cycles: int, c: Clocked, body: Callable[[], None], after: int = 0) -> None:
    """Write `body` for the first thread, with the load beside it for so many cycles, from `after` cycles on."""
    done = c.k.label("$done")
    if load != "none":
        measures, second = c.k.label("$measure"), c.k.reg(".pred", "second")
        c.k.emit("setp.ge.u32", second, c.thread, 128)
        c.k.emit("bra", measures, unless=second)
        _work(c, load, cycles, after)
        c.k.emit("bra", done)
        c.k.place(measures)
    c.k.emit("bra", done, unless=c.first)
    body()
    c.k.place(done)


def _nanoseconds(c: Clocked) -> Reg:
    return c.k.let(".b64", "ns", "mov.u64", "%globaltimer")


def _chain(c: Clocked, start: Reg, step: int) -> None:
    """Write loads that wait for each other."""
    place = c.k.let(".b64", "place", "mov.b64", start)
    for _ in range(STEPS):
        value = c.k.let(".b64", "value", "ld.global.cg.b64", address(place))
        c.k.emit("add.u64", place, place, value)
        c.k.emit("add.u64", place, place, step)
    low = c.k.let(".b32", "low", "cvt.u32.u64", place)
    c.keep(low)


class _Boxes:
    """TMA loads of the CTA's own boxes."""

    def __init__(self, c: Clocked, place: Reg, row: Reg) -> None:
        self.c = c
        self.place = place
        self.row = row
        self.barriers = [address(c.shared, BARRIERS_AT + 8 * slot) for slot in range(SLOTS)]
        self.parity = c.k.let(".b32", "parity", "mov.u32", 0)
        for barrier in self.barriers:
            c.k.emit("mbarrier.init.shared::cta.b64", barrier, 1)
        c.k.emit("fence.mbarrier_init.release.cluster")

    def walk(self, depth: int, count: int) -> None:
        """Write loads of boxes, so many in flight."""
        assert count % (2 * depth) == 0, "all barriers end in the phase they began in"
        for number in range(count + depth):
            slot = number % depth
            if number >= depth:
                self.c.wait_parity(self.barriers[slot], self.parity)
                if slot == depth - 1:
                    self.c.k.emit("xor.b32", self.parity, self.parity, 1)
            if number < count:
                self._issue(number % BOXES, slot)

    def _issue(self, number: int, slot: int) -> None:
        k, barrier = self.c.k, self.barriers[slot]
        at = vector((BOX_K * number, self.row))
        k.emit("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barrier, BOX_BYTES)
        k.emit(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
            address(self.c.shared, SLOTS_AT + slot * BOX_BYTES), f"[{self.place}, {at}]", barrier,
        )  # fmt: skip


def _arguments(gpu: Any) -> list[Any]:
    boxes = gpu.array(np.zeros((SMS * BOX_ROWS, BOXES * BOX_K), np.float16))
    data = gpu.array(np.zeros(SMS * (STEPS + 1) * PAGE // 8, np.uint64))
    return [TensorMap(boxes, box=(BOX_K, BOX_ROWS), swizzle="128B"), data]


def memory(load: Load) -> Benchmark:
    """Latencies of L2, device memory and fences, and TMA loads out of L2, under a load."""
    c = Clocked(
        f"load_{load}_memory", [Param("map", ".b8", 128), Param("data", ".u64")], [f".reqntid {THREADS}"]
    )  # fmt: skip
    c.own_row(8)

    def body() -> None:
        start = c.clock()
        place = c.address_of("map", "map")
        c.k.emit("prefetch.tensormap", address(place))
        cta = c.k.let(".b32", "cta", "mov.u32", "%ctaid.x")
        row = c.k.let(".b32", "row", "mul.lo.u32", cta, BOX_ROWS)
        data = c.load("data", ".b64", "ld.param.u64")
        own = c.k.let(".b64", "own", "mad.wide.u32", cta, (STEPS + 1) * PAGE, data)
        boxes = _Boxes(c, place, row)
        boxes.walk(SLOTS, BOXES)
        _chain(c, own, LINE)
        c.wait_until(start, SETTLE_CYCLES[load])
        before_ns, before = _nanoseconds(c), c.clock()
        parts = _Parts(c)
        parts.measure("L2, dependent loads", lambda: _chain(c, own, LINE))
        far = c.k.let(".b64", "far", "add.u64", own, PAGE)
        parts.measure("device memory, dependent loads", lambda: _chain(c, far, PAGE))
        parts.measure("boxes out of L2, one in flight", lambda: boxes.walk(1, 2 * BOXES))
        parts.measure("boxes out of L2, four in flight", lambda: boxes.walk(SLOTS, 8 * BOXES))
        for fence in ("fence.proxy.async", "fence.acq_rel.gpu"):

            def several(fence: str = fence) -> None:
                for _ in range(FENCES):
                    c.k.emit(fence)

            parts.measure(fence, several)
        after_ns, after = _nanoseconds(c), c.clock()
        c.k.emit("sub.u64", after, after, before)
        c.store("all of it", after)
        c.k.emit("sub.u64", after_ns, after_ns, before_ns)
        c.store("all of it, ns", after_ns)

    cycles = SETTLE_CYCLES[load] + MEASURED_CYCLES
    _under(load, cycles, c, body)
    return c.benchmark(
        f"{STEPS} dependent loads, {2 * BOXES} and {8 * BOXES} boxes of 16 KiB and {FENCES} fences, {SMS} SMs, "
        + ("nothing beside" if load == "none" else f"products of {load} beside"),
        grid=SMS, rows=SMS, block=THREADS, shared_bytes=BARRIERS_AT + 64, arguments=_arguments,
        summary=median_of_rows, is_cold=True, mean_of=5,
        amounts={"boxes out of L2, four in flight": float(SMS * 8 * BOXES * BOX_BYTES)},
    )  # fmt: skip


def _sample(c: Clocked, count: int, cycles: int) -> None:
    """Write measurements of how many nanoseconds each so many cycles take."""
    start = c.clock()
    before = _nanoseconds(c)
    for number in range(count):
        c.wait_until(start, cycles * (number + 1))
        now = _nanoseconds(c)
        c.k.emit("sub.u64", before, now, before)
        c.store(f"cycles {cycles * number} to {cycles * (number + 1)}, ns", before)
        before = now


def course(load: Load) -> Benchmark:
    """Nanoseconds of each so many SM cycles from the beginning of a launch on."""
    c = Clocked(f"load_{load}_course", [], [f".reqntid {THREADS}"])
    c.own_row(SAMPLES)
    _under(load, SAMPLES * SAMPLE_CYCLES, c, lambda: _sample(c, SAMPLES, SAMPLE_CYCLES))
    return c.benchmark(
        f"nanoseconds that {SAMPLE_CYCLES} SM cycles take, from the beginning of a launch on, "
        + ("nothing beside" if load == "none" else f"products of {load} beside"),
        grid=SMS, rows=SMS, block=THREADS, shared_bytes=BARRIERS_AT + 64, summary=median_of_rows, mean_of=5,
    )  # fmt: skip


def around(load: Load, ctas: int) -> Benchmark:
    """Nanoseconds of each so many SM cycles of a launch that multiplies in the middle of it alone."""
    c = Clocked(f"load_{load}_around_{ctas}", [], [f".reqntid {THREADS}"])
    c.own_row(SHORT_SAMPLES)
    _under(
        load, LOADED_CYCLES, c, lambda: _sample(c, SHORT_SAMPLES, SHORT_SAMPLE_CYCLES), LOADED_FROM
    )
    return c.benchmark(
        f"nanoseconds that {SHORT_SAMPLE_CYCLES} SM cycles take, {ctas} SMs, products of {load} from cycle {LOADED_FROM} "
        f"on, for {LOADED_CYCLES}",
        grid=ctas, rows=ctas, block=THREADS, shared_bytes=BARRIERS_AT + 64, summary=mean_of_rows, mean_of=5,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    loads: tuple[Load, ...] = ("none", "zeros", "random")
    return [
        *(memory(load) for load in loads),
        *(course(load) for load in loads),
        *(around(load, ctas) for load in loads[1:] for ctas in (8, SMS)),
    ]
