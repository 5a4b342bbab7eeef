"""What microbenchmarks alone decide of a configuration: each number from one recording, by one line of arithmetic.

Numbers that only whole kernels decide (queues, merging, DRAM under contention) are not here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hopsim.json_kinds import NUMBERS, SIGNED, TEXT, WHOLE, each, rows, table_of, with_besides

RECORDING: Final = "tests/silicon/micro.json"
EMPTY: Final = "tests/silicon/judging/empty_kernel.json"
_FIGURES: Final = each(SIGNED)
MICRO: Final = rows(
    with_besides(table_of(name=TEXT), cycles=_FIGURES, slopes=_FIGURES, bytes_per_clk=_FIGURES)
)
"""What `micro.json` holds."""
EMPTIES: Final = rows(
    table_of(grid=WHOLE, block=WHOLE, cluster=WHOLE, shared_bytes=WHOLE, counters=NUMBERS)
)
"""What `empty_kernel.json` holds."""


class Recordings:
    """The recordings by name.

    Args:
        micro: rows of `micro.json`.  empty: rows of `empty_kernel.json`.
    """

    def __init__(
        self, micro: Sequence[Mapping[str, Any]], empty: Sequence[Mapping[str, Any]]
    ) -> None:
        self._micro = {row["name"]: row for row in micro}
        self._empty = empty

    def slope(self, name: str, label: str) -> float:
        """Return cycles of one step."""
        return self._micro[name]["slopes"][label]

    def cycles(self, name: str, label: str) -> float:
        """Return cycles."""
        return self._micro[name]["cycles"][label]

    def rate(self, name: str, label: str) -> float:
        """Return bytes a clock."""
        return self._micro[name]["bytes_per_clk"][label]

    def empty(self, grid: int, block: int) -> float:
        """Return GPC cycles of an empty kernel without shared memory or clusters."""
        for row in self._empty:
            shape = (row["grid"], row["block"], row["cluster"], row["shared_bytes"])
            if shape == (grid, block, 1, 0):
                return row["counters"]["gpc__cycles_elapsed.max"]
        raise KeyError((grid, block))


@dataclass(frozen=True, slots=True)
class Derivation:
    """How one number follows from recordings.

    Args:
        key: of the configuration.
        unit: that it is written with.
        words: the recording and the arithmetic, for the source.
        value: the arithmetic.
        recording: the file.
        digits: kept after the point.
    """

    key: str
    unit: str
    words: str
    value: Callable[[Recordings], float]
    recording: str = RECORDING
    digits: int = 0

    def text(self, recordings: Recordings) -> str:
        """Return the number as a configuration writes it."""
        value = round(self.value(recordings), self.digits)
        return f"{value:.{self.digits}f}{self.unit}"

    @property
    def source(self) -> str:
        """The source as a configuration writes it."""
        return f"hopsim calibrate, {self.recording}: {self.words}"


def _latency(key: str, name: str, label: str, also: float = 0.0, why: str = "") -> Derivation:
    words = f"{name}, {label}" + (f", less {also:g} {why}" if also else "")
    return Derivation(key, "cycles", words, lambda r: r.slope(name, label) - also)


def _box(rows: int) -> Callable[[Recordings], float]:
    return lambda r: min(r.cycles(f"tma_load_{rows}", f"again {number}") for number in range(3))


def _store(r: Recordings, rows: int) -> float:
    return r.cycles(f"tma_store_{rows}", "read 2")


def _copies(r: Recordings, count: int) -> float:
    return r.cycles("cp_async_w8", f"L2 hit, {count} copies a thread")


ISSUE_CYCLES: Final = 1.0
DERIVATIONS: Final[tuple[Derivation, ...]] = (
    _latency("issue.latency.imad", "arithmetic_0", "mad.lo.s32"),
    _latency("issue.latency.fp32", "arithmetic_2", "fma.rn.f32"),
    _latency("issue.latency.fp16", "arithmetic_2", "fma.rn.bf16x2"),
    _latency("issue.latency.mufu", "arithmetic_3", "ex2.approx.ftz.f32"),
    _latency("issue.latency.convert", "arithmetic_3", "cvt.rn.f16x2.f32"),
    _latency("smem.latency", "shared_memory_latency", "ld.shared.b32"),
    _latency("smem.ldmatrix_latency", "shared_memory_latency", "ldmatrix.x1"),
    _latency("smem.atomic_latency", "atomics", "atom.shared.add, one lane a word"),
    _latency("l2.atomic_latency", "atomics", "atom.global.add, one lane a word"),
    _latency("fence.cta", "mbarrier_latency", "fence.acq_rel.cta", ISSUE_CYCLES, "to issue"),
    _latency("fence.cluster", "mbarrier_latency", "fence.acq_rel.cluster", ISSUE_CYCLES, "to issue"),
    _latency("fence.gpu", "mbarrier_latency", "fence.acq_rel.gpu", ISSUE_CYCLES, "to issue"),
    _latency("fence.proxy_async", "mbarrier_latency", "fence.proxy.async", ISSUE_CYCLES, "to issue"),
    Derivation(
        "fence.proxy_async_shared", "cycles", "staging_w4, fence.proxy.async.shared::cta before bar.sync, less 1 to issue",
        lambda r: r.slope("staging_w4", "fence, barrier") - r.slope("staging_w4", "barrier") - ISSUE_CYCLES,
    ),
    _latency(
        "fence.mbarrier_init", "mbarrier_latency", "fence.mbarrier_init.release.cluster", ISSUE_CYCLES, "to issue"
    ),
    Derivation(
        "barrier.setmaxnreg", "cycles", "setmaxnreg, half of a dec and an inc",
        lambda r: r.slope("setmaxnreg", "setmaxnreg.dec and .inc") / 2,
    ),
    Derivation(
        "dsmem.latency", "cycles", "cluster_2, ld.shared::cluster and two more, less two ALU results of 4 cycles",
        lambda r: r.slope("cluster_2", "ld.shared::cluster and two more") - 8,
    ),
    Derivation(
        "dsmem.bandwidth_per_sm", "B/clk", "dsmem_bulk_c2_2_32768B, half of both CTAs' copies",
        lambda r: r.rate("dsmem_bulk_c2_2_32768B", "copies") / 2, digits=1,
    ),
    Derivation(
        "tma.bandwidth", "B/clk", "tma_load_128 and tma_load_256, 16 KiB more of L2 hits by one SM",
        lambda r: 128 * 128 / (_box(256)(r) - _box(128)(r)), digits=1,
    ),
    Derivation(
        "tma.store_bandwidth", "B/clk", "tma_store_64 and tma_store_256, 24 KiB more",
        lambda r: 192 * 128 / (_store(r, 256) - _store(r, 64)), digits=1,
    ),
    Derivation(
        "tma.reduce_bandwidth", "B/clk", "tma_reduce_l2_1x64K_8192B_d8, one SM",
        lambda r: r.rate("tma_reduce_l2_1x64K_8192B_d8", "walk"),
    ),
    Derivation(
        "tma.issue_interval", "cycles", "tma_load_8, L2 hits, 8 boxes of 1 KiB less 4, a quarter",
        lambda r: (r.cycles("tma_load_8", "L2 hit, 8 boxes") - r.cycles("tma_load_8", "L2 hit, 4 boxes")) / 4,
    ),
    Derivation(
        "cp_async.bandwidth_per_sm", "B/clk", "cp_async_w8, L2 hits, 8 copies a thread more, 32 KiB",
        lambda r: 256 * 8 * 16 / (_copies(r, 12) - _copies(r, 4)), digits=1,
    ),
    Derivation(
        "barrier.bar_sync_latency", "cycles", "bar_sync_32, less 2 for its warp",
        lambda r: r.slope("bar_sync_32", "bar.sync") - 2,
    ),
    Derivation(
        "launch.kernel_overhead", "cycles", "132 CTAs of 128 threads, gpc__cycles_elapsed.max",
        lambda r: r.empty(132, 128), EMPTY,
    ),
)  # fmt: skip


def derive(recordings: Recordings) -> dict[str, tuple[str, str]]:
    """Return value and source by key, as a configuration writes them.

    Raises: KeyError: a recording is missing.
    """
    return {one.key: (one.text(recordings), one.source) for one in DERIVATIONS}
