"""A microbenchmark: a small kernel that reads the SM clock around what it measures.

rows = measure(gpu, benchmark)     # label -> cycles; gpu: hopsim.Gpu or hopsim.CudaGpu
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopsim.kernels.micro.sweep import sweeper
from hopsim.kernels.probes.probe import load_module
from hopsim.kernels.ptx.text import Operand, Param, PtxEntry, Reg, address, module_text, vector
from hopsim.launch.device import Device
from hopsim.runtime.gpu import Gpu

SYMBOL = "shared_memory"
SMS = 132
"""Of an H100 SXM, on which the recordings are made."""
NEVER = 0x7FFFFFED
"""A value that no measured register has: the store that it guards keeps a result alive and never happens."""


Table = NDArray[np.uint64]
Summary = Callable[[Table, Sequence[str]], dict[str, float]]


def _no_arguments(gpu: Any) -> list[Any]:
    del gpu
    return []


def zeros(size: int) -> Callable[[Any], list[Any]]:
    """Return what makes one array of so many bytes."""
    return lambda gpu: [gpu.array(np.zeros(size, np.uint8))]


def zero_word(gpu: Any) -> list[Any]:
    """Return a word of zero, whose value ptxas cannot know."""
    del gpu
    return [np.uint32(0)]


def _largest(table: Table, labels: Sequence[str]) -> dict[str, float]:
    return dict(zip(labels, (int(value) for value in table.max(axis=0)), strict=True))


def median_of_rows(table: Table, labels: Sequence[str]) -> dict[str, float]:
    """Return the median over all CTAs."""
    medians = np.median(table.astype(np.float64), axis=0)
    return dict(zip(labels, (float(value) for value in medians), strict=True))


def mean_of_rows(table: Table, labels: Sequence[str]) -> dict[str, float]:
    """Return the mean over all CTAs: what rates of many that run at once are made of."""
    means = table.astype(np.float64).mean(axis=0)
    return dict(zip(labels, (round(float(value), 2) for value in means), strict=True))


def means_and_latest(table: Table, labels: Sequence[str]) -> dict[str, float]:
    """Return the mean over all CTAs of each figure, and the last one of the CTA that has it latest."""
    return {**mean_of_rows(table, labels), f"{labels[-1]}, latest SM": float(table[:, -1].max())}


@dataclass(frozen=True)
class Benchmark:
    """One kernel whose thread 0 stores clock differences.

    Args:
        name: unique.  what: one sentence.
        ptx, entry: the program; its parameters are `arguments`, then the address of the differences.
        labels: what each difference is.
        block, grid, cluster, shared_bytes: how to launch it.
        arguments: makes the leading arguments on a device.
        rows: how many CTAs store a row of differences each; None: one CTA does.
        summary: makes named figures of the table (rows, labels); by default each label's largest value.
        amounts: bytes that a label stands for, over all CTAs: its rate is told too.
        is_map: whether the whole table is worth keeping.
        is_first: whether the first launch is what is measured, not what later ones settle to.
        is_cold: whether L2 holds nothing of use at each launch, and nothing that has to be written back.
        mean_of: launches of which the mean is kept, where what disturbs them is measured; 0: of the usual number the least.
    """

    name: str
    what: str
    ptx: str
    entry: str
    labels: tuple[str, ...]
    block: int = 32
    grid: int = 1
    cluster: int = 1
    shared_bytes: int = 0
    arguments: Callable[[Any], list[Any]] = _no_arguments
    rows: int | None = None
    summary: Summary = _largest
    amounts: Mapping[str, float] = field(default_factory=dict[str, float])
    is_map: bool = False
    is_first: bool = False
    is_cold: bool = False
    mean_of: int = 0


class Clocked:
    """A kernel under construction that measures one thing after another.

    Args:
        name: of the entry.
        params: before the address of the results.
        directives: of the entry.
    """

    def __init__(
        self, name: str, params: Sequence[Param] = (), directives: Sequence[str] = ()
    ) -> None:
        self.k = PtxEntry(name, [*params, Param("results", ".u64")], directives)
        self.labels: list[str] = []
        self.thread = self.k.let(".b32", "thread", "mov.u32", "%tid.x")
        self.shared = self.k.let(".b32", "shared", "mov.u32", SYMBOL)
        self.first = self.k.let(".pred", "first", "setp.eq.u32", self.thread, 0)
        self.results = self.k.let(".b64", "results", "ld.param.u64", "[results]")

    def address_of(self, param: str, name: str) -> Reg:
        """Return a register with the generic address of a parameter, as a tensor map is given to instructions.

        Args:
            name: of the register.
        """
        place = self.k.let(".b64", name, "mov.b64", param)
        self.k.emit("cvta.param.u64", place, place)
        return place

    def own_row(self, columns: int) -> None:
        """Let each CTA store its own row of so many differences."""
        cta = self.k.let(".b32", "cta", "mov.u32", "%ctaid.x")
        self.k.emit("mad.wide.u32", self.results, cta, 8 * columns, self.results)

    def keep(self, value: Reg) -> None:
        """Make what follows wait for a 32-bit register, and keep what computes it."""
        never = self.k.let(".pred", "never", "setp.eq.u32", value, NEVER)
        self.k.emit("st.volatile.global.b32", address(self.results), value, guard=never)

    def keep_all(self, values: Sequence[Reg], clock: Reg) -> None:
        """Keep what computes 32-bit registers.

        A reading of the clock decides over it, so that their values need not be known.
        """
        never = self.k.let(".pred", "never", "setp.eq.u64", clock, 0)
        for value in values:
            self.k.emit("st.volatile.global.b32", address(self.results), value, guard=never)

    def clock(self) -> Reg:
        """Return a register with the SM clock of now.

        (A register called `%clock` would hide the special register from some compilers, and not from others.)
        """
        return self.k.let(".b64", "ticks", "mov.u64", "%clock64")

    def matrices(self, place: str) -> list[Reg]:
        """Load four matrices of 16-bit values; return a thread's registers."""
        registers = self.k.regs(".b32", "fragment", 4)
        self.k.emit("ldmatrix.sync.aligned.m8n8.x4.shared.b16", vector(registers), place)
        return registers

    def store(self, label: str, value: Reg) -> None:
        """Let thread 0 store a 64-bit value as the result of that name."""
        place = address(self.results, 8 * len(self.labels))
        self.k.emit("st.global.u64", place, value, guard=self.first)
        self.labels.append(label)

    def measure(self, label: str, body: Callable[[], Reg | None], whole_cta: bool = False) -> None:
        """Write `body` between two readings of the clock; a register that it returns is waited for.

        Args:
            whole_cta: whether all threads of the CTA begin and end together.
        """
        self.k.comment(label)
        self._meet(whole_cta)
        before = self.clock()
        result = body()
        if result is not None:
            self.keep(result)
        if whole_cta:
            self._meet(whole_cta)
        after = self.clock()
        self.k.emit("sub.u64", after, after, before)
        self.store(label, after)

    def measure_one(self, label: str, body: Callable[[], Any]) -> None:
        """Write `body`, which a single thread executes, between two readings of the clock."""
        self.k.comment(label)
        before = self.clock()
        body()
        after = self.clock()
        self.k.emit("sub.u64", after, after, before)
        self.store(label, after)

    def store_since(self, before: Reg, labels: Sequence[str], clocks: Sequence[Reg]) -> None:
        """Store what passed from one reading of the clock to each of others; those are overwritten."""
        for label, clock in zip(labels, clocks, strict=True):
            self.k.emit("sub.u64", clock, clock, before)
            self.store(label, clock)

    def store_laps(self, labels: Sequence[str], clocks: Sequence[Reg]) -> None:
        """Store what passed from each reading of the clock to the next; the readings are overwritten."""
        for label, before, after in reversed(list(zip(labels, clocks, clocks[1:], strict=False))):
            self.k.emit("sub.u64", after, after, before)
            place = address(self.results, 8 * (len(self.labels) + labels.index(label)))
            self.k.emit("st.global.u64", place, after, guard=self.first)
        self.labels += labels

    def label_and_leave_but_first(self) -> str:
        """Let all threads but the first jump to a label that is placed later; return it."""
        done = self.k.label("$done")
        self.k.emit("bra", done, unless=self.first)
        return done

    def init_barriers(self, barriers: Sequence[str]) -> None:
        """Let the first thread make mbarriers of one arrival each, and show them to the async proxy."""
        for barrier in barriers:
            self.k.emit("mbarrier.init.shared::cta.b64", barrier, 1, guard=self.first)
        self.k.emit("fence.mbarrier_init.release.cluster", guard=self.first)

    def wait_parity(self, barrier: str, parity: Reg, scope: str = "") -> None:
        """Wait for a phase of an mbarrier.

        Args:
            scope: `.acquire.cluster`, to acquire what other CTAs released.
        """
        done = self.k.reg(".pred", "done")
        again = self.k.label("$again")
        self.k.place(again)
        self.k.emit(f"mbarrier.try_wait.parity{scope}.shared::cta.b64", done, barrier, parity)
        self.k.emit("bra", again, unless=done)

    def wait_until(self, start: Reg, cycles: int) -> None:
        """Let a thread wait until so many cycles have passed since a reading of the clock."""
        until = self.k.let(".b64", "until", "add.u64", start, cycles)
        loop, early = self.k.label("$wait"), self.k.reg(".pred", "early")
        now = self.k.reg(".b64", "now")
        self.k.place(loop)
        self.k.emit("mov.u64", now, "%clock64")
        self.k.emit("setp.lt.u64", early, now, until)
        self.k.emit("bra", loop, guard=early)

    def walk_ring(
        self,
        barriers: Sequence[str],
        parity: Reg,
        rounds: int,
        issue: Callable[[int], None],
        left: Reg,
        more: Reg,
    ) -> None:
        """Fill the slots of a ring, each again as soon as it is full, and wait for the last ones.

        Args:
            barriers: of the slots.  parity: of their phases.
            rounds: how often each slot is filled.
            issue: writes what fills a slot.
            left, more: registers of the loop.
        """
        slots = range(len(barriers))
        self.k.emit("mov.u32", left, rounds - 1)
        for slot in slots:
            issue(slot)
        with self.k.loop(left, more, "$walk"):
            for slot in slots:
                self.wait_parity(barriers[slot], parity)
                issue(slot)
            self.k.emit("xor.b32", parity, parity, 1)
        for slot in slots:
            self.wait_parity(barriers[slot], parity)
        self.k.emit("xor.b32", parity, parity, 1)

    def _meet(self, whole_cta: bool) -> None:
        if whole_cta:
            self.k.emit("bar.sync", 0)
        else:
            self.k.emit("bar.warp.sync", -1)

    def chain(
        self, label: str, lengths: Sequence[int], start: Reg, step: Callable[[Reg], Reg]
    ) -> Reg:
        """Measure dependent chains of several lengths, each named `label xN`; return the last result."""
        last = start
        for length in lengths:

            def run(length: int = length) -> Reg:
                nonlocal last
                for _ in range(length):
                    last = step(last)
                return last

            self.measure(f"{label} x{length}", run)
        return last

    def repeat(self, label: str, lengths: Sequence[int], body: Callable[[], Any]) -> None:
        """Measure `body` written several times in a row."""
        for length in lengths:

            def run(length: int = length) -> None:
                for _ in range(length):
                    body()

            self.measure(f"{label} x{length}", run)

    def repeat_kept(
        self, label: str, lengths: Sequence[int], body: Callable[[], Any], kept: Sequence[Reg]
    ) -> None:
        """Measure `body`, written several times, for the whole CTA, and wait for what it leaves in registers."""
        for length in lengths:

            def run(length: int = length) -> None:
                for _ in range(length):
                    body()
                for one in kept:
                    self.keep(one)

            self.measure(f"{label} x{length}", run, whole_cta=True)

    def benchmark(self, what: str, **launch: Any) -> Benchmark:
        """Return the finished benchmark."""
        self.k.emit("ret")
        return Benchmark(
            self.k.name,
            what,
            module_text(self.k, SYMBOL),
            self.k.name,
            tuple(self.labels),
            **launch,
        )

    def load(self, name: str, kind: str = ".b32", opcode: str = "ld.param.b32") -> Reg:
        """Return a register with a parameter."""
        return self.k.let(kind, name, opcode, f"[{name}]")

    def fill_shared(self, words: int, value: Operand) -> None:
        """Write a 32-bit value into the first words of dynamic shared memory; one warp does it."""
        place = self.k.let(".b32", "fill", "mad.lo.u32", self.thread, 4, self.shared)
        for offset in range(0, 4 * words, 128):
            self.k.emit("st.shared.b32", address(place, offset), value)
        self.k.emit("bar.sync", 0)


def measure(
    gpu: Device,
    one: Benchmark,
    launches: int = 1,
    tables: list[list[list[int]]] | None = None,
    **options: Any,
) -> list[dict[str, float]]:
    """Launch a benchmark some times on the same arguments and return the figures of each launch by name.

    Args:
        tables: gets what the CTAs stored in each launch.
        options: of `gpu.launch`.
    """
    shape = (1 if one.rows is None else one.rows, len(one.labels))
    results = gpu.array(np.zeros(shape, np.uint64))
    arguments = [*one.arguments(gpu), results]
    kernel = load_module(one.ptx)[one.entry]
    if isinstance(gpu, Gpu):
        # A device has run a program before it measures, unless its first launch is what is measured.
        options.setdefault("warm", "nothing" if one.is_first else "code")
    sweep = sweeper(gpu) if one.is_cold and not isinstance(gpu, Gpu) else None
    found: list[dict[str, float]] = []
    for _ in range(launches):
        if sweep is not None:
            sweep()
            # Timing a launch would fill L2 with other bytes, which have to be written back.
            options["timing"] = False
        gpu.launch(kernel, one.grid, one.block, one.cluster, arguments, one.shared_bytes, **options)
        stored = results.numpy()
        found.append(one.summary(stored, one.labels))
        if tables is not None:
            tables.append(stored.tolist())
    return found


def rates(rows: Mapping[str, float], amounts: Mapping[str, float]) -> dict[str, float]:
    """Return bytes a clock of the labels that stand for bytes.

    >>> rates({"read": 200}, {"read": 12800})
    {'read': 64.0}
    """
    return {
        label: round(amount / rows[label], 3) for label, amount in amounts.items() if rows[label]
    }


def slopes(rows: Mapping[str, float]) -> dict[str, float]:
    """Return cycles of one step from chains of two lengths: (t(b) - t(a)) / (b - a), by the label without its length.

    >>> slopes({"add x64": 280, "add x192": 792})
    {'add': 4.0}
    """
    found: dict[str, list[tuple[int, float]]] = {}
    for label, value in rows.items():
        name, _, length = label.rpartition(" x")
        if name and length.isdigit():
            found.setdefault(name, []).append((int(length), value))
    result: dict[str, float] = {}
    for name, points in found.items():
        (short, low), (long, high) = min(points), max(points)
        if long > short:
            result[name] = round((high - low) / (long - short), 3)
    return result
