"""What CUDA's device runtime does for the threads that call it: printf, assert, malloc and free.

Source: CUDA C++ Programming Guide 13.0 "Formatted Output", "Assertion", "Dynamic Global Memory Allocation and Operations".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from hopsim.errors import NotModelled
from hopsim.events import SyncEvent
from hopsim.hw.machine.formatting import BAD_STRING, FormatFault, Template, parse_format
from hopsim.hw.machine.heap import HeapFault
from hopsim.hw.machine.memory import RegionFault
from hopsim.hw.machine.tma import TmaOps
from hopsim.isa.values import Value, collapse, lanes

LONGEST_STRING: Final = 1 << 16
"""A string without an end is given up after so many bytes."""


class DeviceRuntime(TmaOps):
    """Calls of the device runtime."""

    # -- bytes of memory ---------------------------------------------------------------------------

    def _read(self, address: int, count: int, tid: int, align: int = 1) -> int:
        """Return `count` bytes at a generic address of one thread, as a number.

        The runtime reads them: no access of the program, so no event tells of it.
        """
        space, inside = self.resolve("", address)
        assert isinstance(inside, int)
        if space == "local":
            if inside + count > self.machine.local_bytes:
                raise self.fault(f"bytes {inside:#x}.. leave the thread's local memory")
            inside += tid * self.machine.local_bytes
        region = self.region(space, inside)
        try:
            offset = region.check(inside, count, align)
        except RegionFault as fault:
            raise self.fault(
                f"an argument of the device runtime: {fault.what}", kind=fault.kind
            ) from None
        assert isinstance(offset, int)
        return int.from_bytes(region.data[offset : offset + count].tobytes(), "little")

    def _string(self, address: int, tid: int) -> bytes:
        """Return the bytes from a generic address to a zero.

        Raises: MachineFault: it lies outside of all allocations, or has no end.
        """
        space, inside = self.resolve("", address)
        assert isinstance(inside, int)
        if space == "local":
            data = bytearray()
            while (byte := self._read(address + len(data), 1, tid)) != 0:
                data.append(byte)
            return bytes(data)
        region = self.region(space, inside)
        start = inside - region.base
        data = region.data[start : min(region.size, start + LONGEST_STRING)]
        end = np.flatnonzero(data == 0)
        if len(end) == 0:
            raise self.fault(
                f"a string in {region.name} has no end",
                "end it with a zero byte",
            )
        return data[: int(end[0])].tobytes()

    def _threads_of(self, *values: Value) -> Iterator[tuple[int, ...]]:
        """Yield (thread, value of the thread, ...) in order of threads."""
        columns = [lanes(value, self.lanes, 64).tolist() for value in values]
        yield from zip(self.tids.tolist(), *columns, strict=True)

    def _thread(self, tid: int) -> str:
        """Return `block: [x,y,z], thread: [x,y,z]` as CUDA's messages have it."""
        x, y, _ = self.machine.block
        thread = (tid % x, tid // x % y, tid // (x * y))
        block, inside = (",".join(map(str, one)) for one in (self.cta.id, thread))
        return f"block: [{block}], thread: [{inside}]"

    # -- printf ------------------------------------------------------------------------------------

    def print_formatted(self, template: Value, arguments: Value) -> Value:
        """vprintf: print what each thread asks for, in order of threads; return how many arguments each gave.

        A NULL format gives -1.  In a run without values nothing is printed.
        """
        counts: list[int] = []
        parsed: dict[int, Template] = {}
        for tid, where, packed in self._threads_of(template, arguments):
            if where == 0:
                counts.append(0xFFFF_FFFF)
                continue
            if where not in parsed:
                parsed[where] = parse_format(self._string(where, tid))
            form = parsed[where]
            counts.append(form.arguments)
            if self.machine.values:
                self.machine.printed.append(self._filled(form, packed, tid))
        return collapse(np.array(counts, np.uint32))

    def _filled(self, form: Template, packed: int, tid: int) -> str:
        def word(offset: int, count: int) -> int:
            return self._read(packed + offset, count, tid)

        def string(address: int) -> bytes:
            return self._string(address, tid) if address else BAD_STRING

        try:
            return form.fill(word, string)
        except FormatFault as fault:
            raise self.fault(f"printf: {fault}") from None

    # -- assert ------------------------------------------------------------------------------------

    def fail_assertion(self, message: Value, file: Value, line: Value, function: Value) -> None:
        """__assertfail: end the launch with CUDA's message; those of further threads are printed before.

        Raises: MachineFault.
        """
        texts: list[str] = []
        for tid, *values in self._threads_of(message, file, line, function):
            said, path, caller = (
                self._string(one, tid).decode(errors="replace")
                for one in (values[0], values[1], values[3])
            )
            texts.append(
                f"{path}:{values[2]}: {caller}: {self._thread(tid)} Assertion `{said}` failed."
            )
        self.machine.printed += [f"{text}\n" for text in texts]
        more = f" ({len(texts) - 1} more threads of this warp failed)" if len(texts) > 1 else ""
        raise self.fault(
            f"{texts[0]}{more}",
            "find out why the condition of the assert is false",
            kind="assertion",
        )

    # -- the heap ----------------------------------------------------------------------------------

    def heap_allocate(self, size: Value) -> Value:
        """malloc: the address of each thread's new bytes, 0 where the heap has no room."""
        heap = self.machine.memory.heap
        self.machine.version += 1
        found: list[int] = []
        for tid, count in self._threads_of(size):
            name = f"{count} bytes that malloc gave {self.cta.id_text} thread {tid}, line {int(self.line)}"
            address = heap.allocate(count, name)
            found.append(address)
            if address:
                for listen in self.machine.probe.sync:
                    listen(SyncEvent(self.agent, self.line, "malloc", (address, count, name)))
        return collapse(np.array(found, np.uint64))

    def heap_free(self, address: Value) -> None:
        """free: each thread gives bytes back; NULL is none.

        Raises: MachineFault: it is no address that malloc gave, or was freed before.
        """
        heap = self.machine.memory.heap
        self.machine.version += 1
        for tid, one in self._threads_of(address):
            try:
                heap.free(one, f"{self.cta.id_text} thread {tid}, line {int(self.line)}")
            except HeapFault as fault:
                raise self.fault(f"free: {fault}", "free once what malloc returned") from None

    # -- calls through registers -------------------------------------------------------------------

    def call_nowhere(self, address: Value) -> None:
        """A call through a register whose address is that of no function it can be of.

        Raises: MachineFault.
        """
        one = address if isinstance(address, int) else int(address[0])
        raise self.fault(
            f"call through a register: {one:#x} is the address of no function that this call can be of",
            "the address of a function with these parameters; a function pointer is valid in its own file only",
        )

    def call_again(self) -> None:
        """A call through a register that would be recursion.

        Raises: NotModelled.
        """
        raise NotModelled(
            "recursion through a register is not modelled",
            where=self.where(),
            hint="write a loop instead",
        )
