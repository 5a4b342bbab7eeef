"""A microbenchmark: a small kernel that reads the SM clock around what it measures.

rows = measure(gpu, benchmark)     # label -> cycles; gpu: hopsim.Gpu or hopsim.CudaGpu
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopsim.kernels.probes.probe import Device, load_module
from hopsim.kernels.ptx.text import Operand, Param, PtxEntry, Reg, address, module_text

SYMBOL = "shared_memory"
NEVER = 0x7FFFFFED
"""A value that no measured register has: the store that it guards keeps a result alive and never happens."""


def _no_arguments(gpu: Any) -> list[Any]:
    del gpu
    return []


@dataclass(frozen=True)
class Benchmark:
    """One kernel whose thread 0 stores clock differences.

    Args:
        name: unique.  what: one sentence.
        ptx, entry: the program; its parameters are `arguments`, then the address of the differences.
        labels: what each difference is.
        block, grid, cluster, shared_bytes: how to launch it.
        arguments: makes the leading arguments on a device.
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
        self._results = self.k.let(".b64", "results", "ld.param.u64", "[results]")

    def keep(self, value: Reg) -> None:
        """Make what follows wait for a 32-bit register, and keep what computes it."""
        never = self.k.let(".pred", "never", "setp.eq.u32", value, NEVER)
        self.k.emit("st.volatile.global.b32", address(self._results), value, guard=never)

    def measure(self, label: str, body: Callable[[], Reg | None]) -> None:
        """Write `body` between two readings of the clock; a register that it returns is waited for."""
        self.k.comment(label)
        self.k.emit("bar.warp.sync", -1)
        before = self.k.let(".b64", "before", "mov.u64", "%clock64")
        result = body()
        if result is not None:
            self.keep(result)
        after = self.k.let(".b64", "after", "mov.u64", "%clock64")
        self.k.emit("sub.u64", after, after, before)
        self.k.emit(
            "st.global.u64", address(self._results, 8 * len(self.labels)), after, guard=self.first
        )
        self.labels.append(label)

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


def measure(gpu: Device, one: Benchmark, launches: int = 1, **options: Any) -> list[dict[str, int]]:
    """Launch a benchmark some times on the same arguments and return the cycles of each launch by label.

    Args:
        options: of `gpu.launch`.
    """
    results = gpu.array(np.zeros(len(one.labels), np.uint64))
    arguments = [*one.arguments(gpu), results]
    kernel = load_module(one.ptx)[one.entry]
    found: list[dict[str, int]] = []
    for _ in range(launches):
        gpu.launch(kernel, one.grid, one.block, one.cluster, arguments, one.shared_bytes, **options)
        values: list[int] = results.numpy().tolist()
        found.append(dict(zip(one.labels, values, strict=True)))
    return found


def slopes(rows: Mapping[str, int]) -> dict[str, float]:
    """Return cycles of one step from chains of two lengths: (t(b) - t(a)) / (b - a), by the label without its length.

    >>> slopes({"add x64": 280, "add x192": 792})
    {'add': 4.0}
    """
    found: dict[str, list[tuple[int, int]]] = {}
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
