"""One SM as the timed schedule sees it: its units and what is resident."""

from __future__ import annotations

from hopsim.config import HardwareConfig
from hopsim.hw.timing.global_access import L1Cache
from hopsim.hw.timing.issue import IssuePorts
from hopsim.hw.timing.shared_memory import SharedPipe
from hopsim.hw.timing.tensor_core import MmaPipe, TensorCore
from hopsim.hw.timing.tma_engine import TmaEngine


class Port:
    """The port through which L2 answers the SMs of a TPC."""

    __slots__ = ("busy_cycles", "free")

    def __init__(self) -> None:
        self.free = 0.0
        self.busy_cycles = 0.0

    def receive(self, time: float, cycles: float) -> float:
        """Take `cycles` of the port from `time` on; return when the last byte is through."""
        begin = self.free if self.free > time else time
        self.free = begin + cycles
        self.busy_cycles += cycles
        return self.free


class Sm:
    """The units of one SM.

    Args:
        config: of the chip.
        number: of the SM.
        gpc: it belongs to.
        port: of its TPC to L2.
        shared_bytes: shared memory of the CTAs it holds; the rest of the store is L1.
    """

    __slots__ = (
        "active_cycles", "active_since", "ctas", "gpc", "issue", "l1", "mma", "name", "number", "pipe", "receive",
        "tensor", "tma", "used",
    )  # fmt: skip

    def __init__(
        self, config: HardwareConfig, number: int, gpc: int, port: Port, shared_bytes: int
    ) -> None:
        self.number = number
        self.name = f"sm {number}"
        self.gpc = gpc
        self.issue = IssuePorts(config.device.subpartitions)
        self.pipe = SharedPipe(config.smem)
        self.tensor = TensorCore(config.tensor)
        self.mma = MmaPipe(config.mma_sync)
        self.tma = TmaEngine(config.tma)
        self.l1 = L1Cache(config.l1, shared_bytes, config.l2.line_bytes)
        self.receive = port.receive
        self.ctas = 0
        self.used = False
        self.active_since = 0.0
        self.active_cycles = 0.0

    def enter(self, time: float) -> None:
        """A CTA becomes resident."""
        if self.ctas == 0:
            self.active_since = time
        self.ctas += 1
        self.used = True

    def leave(self, time: float) -> None:
        """A CTA is gone."""
        self.ctas -= 1
        if self.ctas == 0:
            self.active_cycles += time - self.active_since
