"""One SM as the timed schedule sees it: its units and what is resident."""

from __future__ import annotations

from hopsim.config import HardwareConfig
from hopsim.hw.timing.global_access import L1Cache
from hopsim.hw.timing.issue import IssuePorts
from hopsim.hw.timing.shared_memory import SharedPipe
from hopsim.hw.timing.tensor_core import MmaPipe, TensorCore
from hopsim.hw.timing.tma_engine import TmaEngine


class Sm:
    """The units of one SM.

    Args:
        config: of the chip.
        number: of the SM.
        gpc: it belongs to.
        shared_bytes: shared memory of the CTAs it holds; the rest of the store is L1.
    """

    __slots__ = (
        "active_cycles", "active_since", "ctas", "gpc", "issue", "l1", "mma", "name", "number", "pipe", "return_busy",
        "return_free", "tensor", "tma", "used",
    )  # fmt: skip

    def __init__(self, config: HardwareConfig, number: int, gpc: int, shared_bytes: int) -> None:
        self.number = number
        self.name = f"sm {number}"
        self.gpc = gpc
        self.issue = IssuePorts(config.device.subpartitions)
        self.pipe = SharedPipe(config.smem)
        self.tensor = TensorCore(config.tensor)
        self.mma = MmaPipe(config.mma_sync)
        self.tma = TmaEngine(config.tma)
        self.l1 = L1Cache(config.l1, shared_bytes, config.l2.line_bytes)
        # The port through which L2 answers.
        self.return_free = 0.0
        self.return_busy = 0.0
        self.ctas = 0
        self.used = False
        self.active_since = 0.0
        self.active_cycles = 0.0

    def receive(self, time: float, cycles: float) -> float:
        """Take `cycles` of the return port from `time` on; return when the last byte is through."""
        begin = self.return_free if self.return_free > time else time
        self.return_free = begin + cycles
        self.return_busy += cycles
        return self.return_free

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
