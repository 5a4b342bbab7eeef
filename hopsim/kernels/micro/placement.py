"""Where and when CTAs start: which SMs share a cluster, how soon one CTA follows another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

import numpy as np

from hopsim.kernels.micro.clocked import SMS, Benchmark, Clocked, Summary, Table
from hopsim.kernels.ptx.text import Reg

FACTS = ("smid", "start clock", "end clock", "start ns", "end ns")
SHARED_MAX = 227 * 1024
SMALL_WAVES = 4
MOST_CTAS, MOST_THREADS = 32, 2048
"""Of an SM."""


def _unspread(table: Table) -> list[list[Table]]:
    """Return the rows of each SM, in order of their start."""
    order = table[np.argsort(table[:, 1], kind="stable")]
    return [[row for row in order if row[0] == sm] for sm in np.unique(table[:, 0])]


def _gaps(rows: Sequence[Table]) -> list[int]:
    """Return the cycles from the end of each CTA of an SM to the start of the next."""
    return [int(later[1]) - int(sooner[2]) for sooner, later in pairwise(rows)]


def by_sm(table: Table, labels: Sequence[str]) -> dict[str, float]:
    """Return how soon CTAs followed each other on each SM: cycles, in the median."""
    del labels
    return {f"SM {int(rows[0][0])}": float(median(_gaps(rows))) for rows in _unspread(table)}


def times(table: Table, labels: Sequence[str]) -> dict[str, float]:
    """Return how CTAs followed each other: cycles on one SM, nanoseconds over all SMs."""
    del labels
    gaps = [gap for rows in _unspread(table) for gap in _gaps(rows)]
    starts = np.sort(table[:, 3].astype(np.int64))
    figures: dict[str, float] = {
        "SMs": float(len(np.unique(table[:, 0]))),
        "ns from first start to last": float(starts[-1] - starts[0]),
        "ns from first start to last end": float(int(table[:, 4].max()) - int(starts[0])),
    }
    if gaps:
        for name, part in (("least", 0), ("median", 50), ("p90", 90)):
            figures[f"cycles from end to next start, {name}"] = float(np.percentile(gaps, part))
    return figures


def waves_of_sms(table: Table, labels: Sequence[str]) -> dict[str, float]:
    """Return what waves of small CTAs take an SM: from the first start to the last, and to the last end, in the mean."""
    del labels
    spans = [
        (int(rows[-1][1]) - int(rows[0][1]), max(int(row[2]) for row in rows) - int(rows[0][1]))
        for rows in _unspread(table)
    ]
    mean = np.mean(spans, axis=0)
    sizes = [len(rows) for rows in _unspread(table)]
    return {
        "CTAs of an SM, least": float(min(sizes)),
        "CTAs of an SM, most": float(max(sizes)),
        "cycles from first start to last": round(float(mean[0]), 1),
        "cycles from first start to last end": round(float(mean[1]), 1),
    }


def stamps(
    name: str,
    ctas: int,
    block: int,
    shared_bytes: int,
    cluster: int = 1,
    spin: int = 0,
    summary: Summary = times,
) -> Benchmark:
    """Every CTA says where it ran, when it started and when it ended.

    Args:
        spin: cycles that each CTA lasts at least.
        summary: as `Benchmark` takes it.
    """
    c = Clocked(f"cta_{name}", directives=[f".reqntid {block}"])
    c.own_row(len(FACTS))
    start, start_ns = c.clock(), _nanoseconds(c)
    if spin:
        c.wait_until(start, spin)
    sm = c.k.let(".b32", "sm", "mov.u32", "%smid")
    c.store("smid", c.k.let(".b64", "wide", "cvt.u64.u32", sm))
    c.store("start clock", start)
    end, end_ns = c.clock(), _nanoseconds(c)
    c.store("end clock", end)
    c.store("start ns", start_ns)
    c.store("end ns", end_ns)
    return c.benchmark(
        f"{ctas} CTAs of {block} threads, {shared_bytes} bytes of shared memory, clusters of {cluster}, "
        f"each at least {spin} cycles",
        grid=ctas, block=block, cluster=cluster, shared_bytes=shared_bytes, rows=ctas, summary=summary,
        is_map=cluster > 1 or ctas <= SMS,
    )  # fmt: skip


def _nanoseconds(c: Clocked) -> Reg:
    return c.k.let(".b64", "ns", "mov.u64", "%globaltimer")


def benchmarks() -> list[Benchmark]:
    """Return all placement benchmarks."""
    found = [
        stamps("one_wave", 132, 128, SHARED_MAX, spin=20000),
        stamps("small", 1056, 128, 1024, spin=2000),
        stamps("eight_waves", 1056, 128, SHARED_MAX, spin=2000),
        stamps("eight_waves_384", 1056, 384, SHARED_MAX, spin=2000),
        stamps("two_an_sm", 1056, 128, 100 * 1024, spin=2000),
    ]
    for block in (32, 128, 256, 512, 1024):
        for spin in (0, 500, 1500):
            waves = SMALL_WAVES * min(MOST_CTAS, MOST_THREADS // block)
            name = f"small_waves_{block}_{spin}"
            found.append(stamps(name, waves * SMS, block, 1024, spin=spin, summary=waves_of_sms))
    for size in (2, 4, 8):
        ctas = {2: 132, 4: 128, 8: 128}[size]
        found.append(stamps(f"cluster_{size}", ctas, 128, SHARED_MAX, size, spin=20000))
    found.append(stamps("cluster_2_waves", 1056, 384, SHARED_MAX, 2, spin=2000))
    found.append(stamps("cluster_16", 64, 128, SHARED_MAX, 16, spin=20000))
    found.append(stamps("waves_by_sm", 33 * SMS, 128, SHARED_MAX, spin=2000, summary=by_sm))
    return found
