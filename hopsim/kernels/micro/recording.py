"""Run microbenchmarks on a device and describe what they gave, as plain data for a JSON file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from statistics import fmean
from typing import Any, Final

from hopsim.errors import HopsimError
from hopsim.kernels.micro.clocked import Benchmark, measure, rates, slopes
from hopsim.launch.device import Device

REPEATS: Final = 5
GROUPS: Final = {
    "latencies": "latency of instructions, memory, barriers and fences, one warp",
    "patterns": "broadcasts of wide words out of shared memory, atomics and stores on few or scattered words",
    "meetings": "atomics of all SMs on few words until the last SM is through",
    "swaps": "atomics on shared memory, most of which are loops of compare and swap",
    "local_arrays": "loads and stores of local memory: chains by how many lines lanes touch, rates by footprint",
    "loops": "what a turn of a loop takes, by what it is left by",
    "pipes": "integer arithmetic that several pipes can do: how it is shared between them",
    "lists": "elements by an index that is loaded itself, and lines that are still on their way",
    "issue": "rates of one SM: arithmetic, shared memory, mma.sync, cp.async",
    "tensor": "latency and rate of wgmma",
    "kinds": "products of f64, of integers of 4 bits and 1, and with a sparse A: latency and rate",
    "copies": "latency of TMA loads and stores",
    "remote": "mbarriers and shared memory between CTAs of a cluster",
    "matches": "match by how many values the lanes of a warp have",
    "wakes": "from an arrival on an mbarrier until whoever waits for it goes on, by how long it has waited",
    "acquires": "waits for an mbarrier that acquire what other CTAs released, beside those that do not",
    "chases": "latency of L2 by line, SM and working set",
    "placement": "where and when CTAs start",
    "streams": "rates of L2 and device memory, many SMs at once",
    "both_ways": "L2 read by some SMs while others write it",
    "boxes": "TMA loads of strided, shared and unaligned boxes",
    "pitches": "cold TMA boxes by how far apart their rows lie, and how far SMs drift apart",
    "held": "hits in L2 by one SM while others load out of device memory",
    "slices": "hits in L2 behind a miss of a line of the same KiB: which lines share a slice",
    "sharing": "TMA boxes out of L2 that some SMs read together, walk after walk",
    "cpcs": "how long each SM takes while all load out of L2: which have a way to it of their own",
    "gathers": "loads and reductions of a warp that touch several lines",
    "hot": "rows that many SMs, or many lanes of one, read at once",
    "code": "straight code that is not in the instruction caches",
    "start": "what an SM does for the first time: parameters, fences, cluster barriers",
    "jumps": "jumps to code that nobody has executed, by how far, in what order, and whether L2 has it",
    "first_maps": "the first TMA loads through tensor maps, with and without prefetch.tensormap",
    "columns": "columns of an im2col map, and tiled boxes of the same bytes",
    "cold": "TMA boxes out of device memory, some at once or one after the other",
    "sectors": "what device memory brings besides the sectors that are asked for",
    "tiles": "TMA boxes out of device memory as CTAs of a matrix product share them",
    "tile_walks": "tiles of a matrix product out of L2 along K, shared by CTAs: TMA boxes and cp.async",
    "tile_landings": "when each of their first stages lands, by one SM alone and by all that begin together",
    "steady_walks": "such walks without an end, by one to three CTAs an SM: what each SM gets while all load",
    "steady_copies": "stages of cp.async out of L2, walk after walk, by one SM alone and by all",
    "paced": "TMA boxes and rows by cp.async at a fixed pace: what SMs, or CTAs of one, share by how late they ask",
    "pair_walks": "tiles along K by clusters of two CTAs that share B: by multicast, or each for itself",
    "promotions": "the same by the L2 promotion of the tensor maps",
    "product_walks": "tiles along K that are worked at by wgmma, mma.sync and arithmetic, one or two CTAs on an SM",
    "turns": "warps of an SM that all have work for the same unit: whose turn it is",
    "cold_walks": "tiles of a matrix product out of device memory along K, each worked at for some time",
    "entry": "the first instructions of a CTA, by how many SMs begin together",
    "sequences": "instructions of which ptxas makes several: divisions, square roots, integers of 64 bits, fields of bits",
    "locks": "a lock that the lanes of a warp take in turn",
    "issued": "bulk copies that a whole warp executes: how many are made of them",
    "fragments": "accumulators that threads store to a matrix, or add one from it, without shared memory between",
    "in_order": "a chain of loads by one warp while others of its SM load and store",
    "l1_copies": "tiles that threads copy through L1 and past it, with much and little of it left beside shared memory",
    "bursts": "stores in a row: how many are taken before they hold a warp",
    "barriers": "bar.sync between other instructions, and what copies cost a warp that does not issue them",
    "staging": "what warps do to store sums by TMA: conversion, stmatrix, fence, barrier, an elected thread's store",
    "queue": "how many wgmma are issued before one ends",
    "few_rows": "rows that A does not have, while B comes out of device memory: TMA boxes and cp.async",
    "products": "mma.sync with operands out of shared memory, and what fp8 ones are made of",
    "beside": "arithmetic of a warpgroup while another one keeps the tensor cores busy",
    "slowed": "wgmma of a warpgroup while others do arithmetic",
    "load": "memory, and the SM clock itself, while the tensor cores work",
}
"""Name of the group, which is the module that has its `benchmarks()`, and what it holds."""


def benchmarks(group: str | None = None) -> list[Benchmark]:
    """Return the microbenchmarks of a group, or all.

    Raises: HopsimError: there is no such group.
    """
    if group is not None and group not in GROUPS:
        known = ", ".join(GROUPS)
        raise HopsimError(f"there is no group {group!r} of microbenchmarks", hint=f"one of {known}")
    return [one for name in (GROUPS if group is None else (group,)) for one in _made(name)]


@cache
def _made(group: str) -> tuple[Benchmark, ...]:
    """Write the programs of a group, which takes seconds for all, once."""
    return tuple(import_module(f"hopsim.kernels.micro.{group}").benchmarks())


def run(gpu: Device, one: Benchmark, repeats: int = REPEATS, **options: Any) -> dict[str, Any]:
    """Run one microbenchmark.

    It is launched `repeats` times after a first launch that is not counted; of each figure the least is kept, which is
    what undisturbed hardware takes.  (Where the first launch is what is measured, there is no other.  Where the mean is
    wanted, there are as many launches as the benchmark says.)

    Args:
        options: of `gpu.launch`.
    Returns: its name, what it is, the hash of its PTX, `cycles` by label, `slopes` by name, bytes a clock by label.
    """
    tables: list[list[list[int]]] = []
    if one.is_first:
        repeats = 0
    elif repeats:
        repeats = one.mean_of or repeats
    runs = measure(gpu, one, repeats + 1, tables=tables, **options)[min(repeats, 1) :]
    cycles = {label: _kept([found[label] for found in runs], one.mean_of) for label in runs[0]}
    row: dict[str, Any] = {
        "name": one.name, "what": one.what, "ptx_sha256": hashlib.sha256(one.ptx.encode()).hexdigest(),
        "cycles": cycles,
    }  # fmt: skip
    if slopes(cycles):
        row["slopes"] = slopes(cycles)
    if one.amounts:
        row["bytes_per_clk"] = rates(cycles, one.amounts)
    if one.is_map:
        row["table"] = tables[-1]
    return row


def _kept(values: Sequence[float], mean_of: int) -> float:
    return round(fmean(values), 2) if mean_of else min(values)


def record(
    gpu: Device,
    chosen: Sequence[Benchmark] | None = None,
    repeats: int = REPEATS,
    progress: Callable[[str], None] = lambda text: None,
    **options: Any,
) -> list[dict[str, Any]]:
    """Run microbenchmarks one after the other; see `run`.  One that fails is told with its `error`."""
    found: list[dict[str, Any]] = []
    for one in benchmarks() if chosen is None else chosen:
        try:
            row = run(gpu, one, repeats, **options)
        except HopsimError as error:
            row = {"name": one.name, "what": one.what, "error": error.what}
        found.append(row)
        progress(f"{one.name}: {figures(row)}")
    return found


def figures(row: dict[str, Any]) -> dict[str, float] | str:
    """Return the figures of a row that say most: bytes a clock, else slopes, else cycles."""
    for name in ("bytes_per_clk", "slopes", "cycles"):
        if row.get(name):
            return row[name]
    return str(row["error"])
