"""One SM as the timed schedule sees it: its units and what is resident."""

from __future__ import annotations

from enum import Enum, auto

from hopsim.config import HardwareConfig
from hopsim.hw.timing.global_access import L1Cache
from hopsim.hw.timing.gpc_port import GpcPort
from hopsim.hw.timing.issue import IssuePorts
from hopsim.hw.timing.load_gate import Cpc, LoadGate
from hopsim.hw.timing.match_pipe import MatchPipe
from hopsim.hw.timing.mma_pipe import MmaPipe
from hopsim.hw.timing.shared_memory import SharedPipe
from hopsim.hw.timing.stored import WayOut
from hopsim.hw.timing.tensor_core import TensorCore
from hopsim.hw.timing.tma_engine import TmaEngine


class Way(Enum):
    """Where what threads ask L2 for goes."""

    REGISTERS = auto()
    PAST_L1 = auto()
    """To shared memory, by `cp.async.cg`."""
    THROUGH_L1 = auto()
    """There too, by `cp.async.ca`."""


class Sm:
    """The units of one SM; times in cycles of the SM clock.

    Args:
        config: of the chip.
        number: of the SM.
        port: of its GPC, to L2.
        cpc: that it is part of.
        shared_bytes: shared memory of the CTAs it holds; the rest of the store is L1.
    """

    __slots__ = (
        "_asked", "_cpc", "_fill_rates", "_filled", "active_cycles",
        "active_since", "ctas", "gpc", "issue", "l1", "loads", "match", "mma", "name", "number", "pipe", "port", "stored",
        "tensor", "tma", "used", "way_out",
    )  # fmt: skip

    def __init__(
        self,
        config: HardwareConfig,
        number: int,
        port: GpcPort,
        cpc: Cpc,
        shared_bytes: int,
    ) -> None:
        self.number = number
        self.name = f"sm {number}"
        self.gpc = port.gpc
        self.issue = IssuePorts(config.device.subpartitions)
        self.pipe = SharedPipe(config.smem)
        self.tensor = TensorCore(config.tensor)
        self.mma = MmaPipe(config.mma_sync, config.device.subpartitions)
        self.match = MatchPipe(config.issue, config.device.subpartitions)
        self.tma = TmaEngine(config.tma)
        self.l1 = L1Cache(config.l1, shared_bytes, config.l2.line_bytes)
        self.port = port
        self._cpc = cpc
        self.loads = LoadGate(cpc, self.l1.capacity * config.l2.line_bytes)
        # Until when lines are asked for by `cp.async`.
        self._asked = 0.0
        # Until when the way into L1 is taken.
        self._filled = 0.0
        self._fill_rates = {
            Way.REGISTERS: config.l2.bandwidth_per_sm_bytes_per_clk,
            Way.PAST_L1: config.cp_async.bandwidth_per_sm_bytes_per_clk,
            Way.THROUGH_L1: config.cp_async.bandwidth_through_l1_bytes_per_clk,
        }
        self.way_out = WayOut(config)
        # When L2 has all that threads have stored.
        self.stored = 0.0
        self.ctas = 0
        self.used = False
        self.active_since = 0.0
        self.active_cycles = 0.0

    def fill(self, time: float, count_bytes: int, way: Way = Way.REGISTERS) -> float:
        """Take the way into L1 for bytes that threads asked for; return when the last one is through.

        Args:
            way: where they go.
        """
        rate = self._fill_rates[way]
        self._filled = (self._filled if self._filled > time else time) + count_bytes / rate
        return self._filled

    def ask(self, time: float, lines: int) -> float:
        """Ask for lines, one a cycle, as `cp.async` does; return when the last one is asked for."""
        self._asked = (self._asked if self._asked > time else time) + lines
        return self._asked

    def wait_for_fill(self, time: float) -> float:
        """Let the way into L1 be taken until some time at least; return until when it is."""
        self._filled = self._filled if self._filled > time else time
        return self._filled

    def enter(self, time: float) -> None:
        """A CTA becomes resident."""
        if self.ctas == 0:
            self.active_since = time
            self._cpc.note(1)
        self.ctas += 1
        self.used = True

    def leave(self, time: float) -> None:
        """A CTA is gone."""
        self.ctas -= 1
        if self.ctas == 0:
            self.active_cycles += time - self.active_since
            self._cpc.note(-1)
