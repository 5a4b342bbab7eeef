"""The hardware numbers a simulation reads, as frozen groups of plain ints and floats.

Every attribute is in one of a few units and says so at its end: `_cycles` (of the SM clock),
`_bytes`, `_bytes_per_clk`, `_flop_per_clk`, `_hz`; bare nouns are counts.  In the TOML file the
same key stands without that ending and the value carries the unit: `cfg.smem.latency_cycles` is
`smem.latency = { value = "29cycles", ... }`.  No number has a default here; numbers live in
`configs/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hopsim.units import Kind

CONFIG_VERSION: Final = 1
SECTORS_PER_LINE: Final = 4
"""L2 keeps what it holds of a line in a mask of so many bits."""


@dataclass(frozen=True)
class Unit:
    """What a field accepts in the file, and the ending of its attribute name.

    Args:
        kinds: the kinds of quantity that will do; a time or a bandwidth is converted with the
            device clock.
        ending: what the attribute name has and the key in the file has not.
        whole: the converted number is rounded to a whole one.
        many: `list` for a list of quantities, `table` for one quantity for each name, else one
            quantity.
        names: of the entries of a table.
    """

    kinds: tuple[Kind, ...]
    ending: str
    whole: bool = True
    many: str = ""
    names: tuple[str, ...] = ()


# The units of instruction forms (`hopsim.isa.forms`) that take an issue slot; a test holds the two
# lists together.
ISSUE_UNITS: Final = (
    "alu", "imad", "fp32", "fp16", "fp64", "mufu", "convert", "predicate", "move", "branch",
    "special", "shuffle", "lsu_shared", "lsu_global", "lsu_local", "lsu_const", "atomic",
    "barrier", "cluster_barrier", "mbarrier", "fence",
    "tensor", "tensor_sync", "mma", "matrix_copy", "tma", "tma_sync", "cp_async", "control", "none",
)  # fmt: skip
# Those that are slower while the tensor cores work.
CROWDED_UNITS: Final = ("alu", "imad", "convert", "predicate", "mufu", "fp32")
# PTX instructions that ptxas makes several of: the table of their lengths, and of those whose result is waited for.
SEQUENCES: Final = (
    "div_s32", "div_u32", "rem_s32", "rem_u32", "div_s32_again", "div_u32_again", "rem_s32_again", "rem_u32_again",
    "div_64", "div_f32", "rcp_f32", "sqrt_f32", "div_f64", "mbarrier_init", "prefetch_tensormap", "bulk_copy",
)  # fmt: skip
RESULTS: Final = SEQUENCES[:13]
# PTX's names of the multiplicand types of wgmma and mma.sync.
TENSOR_TYPES: Final = ("f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8")

_TIME: Final[tuple[Kind, ...]] = ("cycles", "seconds")
_RATE: Final[tuple[Kind, ...]] = ("bytes_per_clk", "bytes_per_second")

Count = Annotated[int, Unit(("count",), ""), Field(ge=1)]
Counts = Annotated[
    tuple[Annotated[int, Field(ge=1)], ...], Unit(("count",), "", many="list"), Field(min_length=1)
]
Share = Annotated[float, Unit(("fraction",), "", whole=False), Field(gt=0, le=1)]
Bytes = Annotated[int, Unit(("bytes",), "_bytes"), Field(ge=1)]
Hertz = Annotated[float, Unit(("hertz",), "_hz", whole=False), Field(gt=0)]
Cycles = Annotated[int, Unit(_TIME, "_cycles"), Field(ge=0)]
Interval = Annotated[float, Unit(_TIME, "_cycles", whole=False), Field(ge=0)]
Period = Annotated[float, Unit(_TIME, "_cycles", whole=False), Field(gt=0)]
Rate = Annotated[float, Unit(_RATE, "_bytes_per_clk", whole=False), Field(gt=0)]
Ratio = Annotated[float, Unit(("fraction",), "", whole=False), Field(gt=0)]
Ratios = Annotated[
    tuple[Annotated[float, Field(gt=0)], ...],
    Unit(("fraction",), "", whole=False, many="list"),
    Field(min_length=1),
]
CyclesList = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Unit(_TIME, "_cycles", many="list")]
CyclesTable = Annotated[
    dict[str, Annotated[int, Field(ge=0)]],
    Unit(_TIME, "_cycles", many="table", names=ISSUE_UNITS),
]
IntervalTable = Annotated[
    dict[str, Annotated[float, Field(ge=0)]],
    Unit(_TIME, "_cycles", whole=False, many="table", names=ISSUE_UNITS),
]
CrowdedTable = Annotated[
    dict[str, Annotated[float, Field(ge=0)]],
    Unit(_TIME, "_cycles", whole=False, many="table", names=CROWDED_UNITS),
]
SequenceTable = Annotated[
    dict[str, Annotated[int, Field(ge=1)]], Unit(("count",), "", many="table", names=SEQUENCES)
]
ResultTable = Annotated[
    dict[str, Annotated[int, Field(ge=0)]],
    Unit(_TIME, "_cycles", many="table", names=RESULTS),
]
FlopTable = Annotated[
    dict[str, Annotated[float, Field(gt=0)]],
    Unit(("flop_per_clk",), "_flop_per_clk", whole=False, many="table", names=TENSOR_TYPES),
]


class Group(BaseModel):
    """One table of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Device(Group):
    """The chip and what one SM holds."""

    name: str
    sm_count: Count
    clock_hz: Hertz
    """The SM clock, which turns cycles into microseconds; the maximum, not what power allows."""
    gpc_sm_counts: Counts
    """SMs of each GPC; a cluster must fit in one.  Their TPCs are numbered in rows: the first of each GPC, the second, ...
    A TPC that clusters larger than itself do not use counts as a GPC of its own, after the others."""
    sms_per_tpc: Count
    registers_per_sm: Count
    registers_per_thread_max: Count
    register_allocation_unit: Count
    """Registers are given to a warp in multiples of this."""
    threads_per_cta_max: Count
    max_warps_per_sm: Count
    max_ctas_per_sm: Count
    shared_per_sm_bytes: Bytes
    shared_per_cta_max_bytes: Bytes
    reserved_shared_per_cta_bytes: Bytes
    shared_allocation_unit_bytes: Bytes
    subpartitions: Count
    cluster_size_portable: Count
    cluster_size_max: Count

    @model_validator(mode="after")
    def _sums_agree(self) -> Self:
        if sum(self.gpc_sm_counts) != self.sm_count:
            got = f"{'+'.join(map(str, self.gpc_sm_counts))} = {sum(self.gpc_sm_counts)}"
            raise ValueError(f"gpc_sm_counts must add up to sm_count {self.sm_count}, got {got}")
        most = self.shared_per_sm_bytes - self.reserved_shared_per_cta_bytes
        if self.shared_per_cta_max_bytes > most:
            raise ValueError(
                f"shared_per_cta_max must be at most {most} B,"
                f" got {self.shared_per_cta_max_bytes} B"
            )
        return self


class Clock(Group):
    """The SM clock under load, as power allows."""

    loaded_hz: Hertz
    """As soon as tensor cores work."""
    knee: Share
    """Share of the tensor cores' time above which the clock falls further."""
    drop_hz: Hertz
    """How far it falls in the end for each whole share above the knee."""
    settling_cycles: Period
    """In which all but 37 % of a fall happen."""
    sustained_drop_hz: Hertz
    """The same after many launches on end."""


class Issue(Group):
    """Warp instructions: slots and dependences of one SM sub-partition."""

    issue_rate: Count
    """Warp instructions a cycle."""
    fetch_interval_cycles: Interval
    """Added to each instruction that an SM executes for the first time in a launch."""
    jump_latency_cycles: Cycles
    """Added to a jump to such code."""
    constant_latency_cycles: Cycles
    """Added to the first read of a line of parameters by an SM in a launch."""
    constant_line_bytes: Bytes
    crowded_gap_cycles: Interval
    """From one instruction of a warp to its next while the tensor cores work."""
    crowded_mixed_cycles: Interval
    """Of the way to the registers: an fp32 instruction among those of slower pipes; these take alu's interval."""
    latency_cycles: CyclesTable
    """By unit: from issue to the issue of an instruction that reads the result."""
    interval_cycles: IntervalTable
    """By unit: from one issue to the next of this unit in the sub-partition."""
    crowded_interval_cycles: CrowdedTable
    """The same while the tensor cores work, whose sums take a part of the ways to the registers; others keep theirs."""
    sequence: SequenceTable
    """Machine instructions of a PTX instruction that ptxas makes several of."""
    sequence_latency_cycles: ResultTable
    """From the issue of its first one to the issue of an instruction that reads the result."""

    @model_validator(mode="after")
    def _units_complete(self) -> Self:
        for name in ("latency", "interval"):
            _complete(f"issue.{name}", getattr(self, f"{name}_cycles"), ISSUE_UNITS)
        _complete("issue.crowded_interval", self.crowded_interval_cycles, CROWDED_UNITS)
        _complete("issue.sequence", self.sequence, SEQUENCES)
        _complete("issue.sequence_latency", self.sequence_latency_cycles, RESULTS)
        return self


class Smem(Group):
    """Shared memory of one SM."""

    latency_cycles: Cycles
    """Load, no conflict, one warp."""
    replay_latency_cycles: Cycles
    """What each further wavefront of an access adds to its latency, besides the cycle of the data pipe."""
    bandwidth_bytes_per_clk: Rate
    banks: Count
    bank_width_bytes: Bytes
    ldmatrix_latency_cycles: Cycles
    stmatrix_latency_cycles: Cycles
    atomic_latency_cycles: Cycles


class Tensor(Group):
    """wgmma on one SM.

    One operation takes max(2 M N K / flop_per_clk, shared bytes read / operand_bandwidth) cycles; a
    group of one m64nN that nothing delays can be waited for in `latency_base + N/2` cycles.
    """

    flop_per_clk: FlopTable
    """Dense rate of the SM by multiplicand type (the key in the file is `flop_per_clk`)."""
    issue_ss_cycles: Interval
    issue_rs_cycles: Interval
    latency_base_cycles: Cycles
    """Wait for one group of one m64nN: this plus N/2."""
    op_overhead_cycles: Interval
    """Added to every operation that follows another without a gap."""
    queue_depth: Count
    """Operations that may be outstanding before issue itself waits; the warpgroups at work share them."""
    operand_bandwidth_bytes_per_clk: Rate
    fence_cycles: Interval
    commit_cycles: Interval
    wait_cycles: Interval
    """A `wait_group` whose groups are already complete."""

    @model_validator(mode="after")
    def _types_complete(self) -> Self:
        _complete("tensor.flop_per_clk", self.flop_per_clk, TENSOR_TYPES)
        return self


class MmaSync(Group):
    """mma.sync on one SM."""

    flop_per_clk: FlopTable
    """Dense rate of the SM by multiplicand type."""
    latency_cycles: Cycles
    """m16n8k16, from issue to a dependent one."""
    fp8_instructions: Count
    """Machine instructions of an m16n8k32 of e4m3 or e5m2: products of f16 values, conversions, additions."""
    fp8_interval_cycles: Interval
    """From one of these to the next of the same warp, whose products, conversions and additions wait for each other."""

    @model_validator(mode="after")
    def _types_complete(self) -> Self:
        _complete("mma_sync.flop_per_clk", self.flop_per_clk, TENSOR_TYPES)
        return self


class Tma(Group):
    """The TMA engine of one SM."""

    issue_interval_cycles: Interval
    """One bulk operation to the next."""
    latency_cycles: Cycles
    """What the engine adds to the memory system's own latency (L2 hit, L2 miss, SM to SM)."""
    descriptor_fetch_latency_cycles: Cycles
    """First use of a tensor map by an SM that has not prefetched it."""
    bandwidth_bytes_per_clk: Rate
    """Data read for one SM."""
    store_bandwidth_bytes_per_clk: Rate
    """Data written by one SM."""
    request_bytes: Bytes
    split_cycles: Interval
    """Each line asked for beyond those that the bytes would fill."""
    """What one request to L2 fetches."""
    max_inflight_requests: Count
    multicast_extra_cycles: Cycles
    multicast_fetch_cycles: Interval
    """Each line of a multicast box that device memory brings."""
    rank_extra_cycles: CyclesList
    """Latency added by a tensor map of rank 1, 2, 3, 4, 5 against a plain bulk copy."""
    store_latency_cycles: Cycles
    """From the last byte read in shared memory until the write is complete in L2."""
    store_read_latency_cycles: Cycles
    """From issue until the first byte is read in shared memory."""

    @model_validator(mode="after")
    def _five_ranks(self) -> Self:
        if len(self.rank_extra_cycles) != 5:
            raise ValueError(
                "rank_extra must have 5 values, one for each rank,"
                f" got {len(self.rank_extra_cycles)}"
            )
        return self


class Mbarrier(Group):
    """mbarrier objects."""

    init_interval_cycles: Interval
    """Time that an `mbarrier.init` takes of each warp that executes it."""
    arrive_latency_cycles: Cycles
    """From issue until the arrival counts."""
    try_wait_latency_cycles: Cycles
    """A `try_wait` on a phase that is already complete."""
    wakeup_latency_cycles: Cycles
    """From the completion of the phase until a suspended warp issues again."""
    remote_arrive_latency_cycles: Cycles
    """From issue until an arrival counts in another CTA of the cluster."""
    suspend_limit_cycles: Cycles
    """After this a `try_wait` without time hint returns false."""


class Barrier(Group):
    """Named barriers, cluster barriers, and the small synchronising instructions."""

    bar_sync_latency_cycles: Cycles
    """From the last arrival until the warps issue again, besides `bar_sync_warp` for each warp."""
    bar_sync_warp_cycles: Interval
    cluster_barrier_latency_cycles: Cycles
    """From the last arrival until the warps issue again; an arrival with release is a fence of the cluster besides."""
    setmaxnreg_cycles: Cycles
    elect_cycles: Cycles


class Fence(Group):
    """What the fences cost the warp that executes them."""

    proxy_async_cycles: Cycles
    """For all spaces, or global memory."""
    proxy_async_shared_cycles: Cycles
    """For shared memory only."""
    proxy_tensormap_cycles: Cycles
    mbarrier_init_cycles: Cycles
    cta_cycles: Cycles
    cluster_cycles: Cycles
    gpu_cycles: Cycles
    first_cycles: Cycles
    """Added to the first fence beyond the CTA of an SM in a launch."""
    warps: Count
    """So many warps of a CTA share a fence that all of them execute."""
    again_cycles: Cycles
    """Until those that come later can begin theirs."""


class L1(Group):
    """The L1 data cache of one SM."""

    latency_cycles: Cycles
    bandwidth_bytes_per_clk: Rate
    capacity_bytes: Bytes
    """Shared memory and L1 together."""
    atomic_interval_cycles: Interval
    """A sector that a warp adds to, besides the pass of its line."""


class L2(Group):
    """The L2 cache of the chip, in partitions."""

    capacity_bytes: Bytes
    partitions: Count
    slices: Count
    ways: Count
    """Lines of a set; which set a line goes to is a hash."""
    set_spread: Ratios
    """Lines are of so many kinds alike, of each L2 holds so much of its share of the capacity."""
    dirty_at_launch_bytes: Bytes
    """What was written before a launch and is not in memory yet; it goes when its sets are full."""
    line_bytes: Bytes
    sector_bytes: Bytes
    fetch_bytes: Bytes
    """Aligned pieces that come from device memory when a sector of them is missed."""
    latency_near_cycles: Cycles
    """A hit in the partition of the SM, from the SM and back; a load of a thread goes through L1 besides."""
    latency_far_cycles: Cycles
    """A hit in the other partition."""
    bandwidth_bytes_per_clk: Rate
    """All slices together, look-ups in both halves included."""
    outside_bandwidth_bytes_per_clk: Rate
    """Of the parts of boxes that lie outside their tensors: asked for all the same, from a few places."""
    outside_bandwidth_most_bytes_per_clk: Rate
    outside_lines: Count
    """Rows outside a tensor differ by their place along K alone: up to so many places come at the first of these rates."""
    outside_bandwidth_per_place_bytes_per_clk: Rate
    """What each further place adds."""
    outside_box_bandwidth_bytes_per_clk: Rate
    """Of boxes that lie wholly outside, whatever their place."""
    beside_outside_bandwidth_bytes_per_clk: Rate
    """What else is asked for meanwhile waits behind rows outside, whose slices have a part of it, and comes at this rate."""
    repeated_bandwidth_bytes_per_clk: Rate
    """What several SMs together receive of the same line when lanes of a cp.async ask for it again and again.

    What comes out of device memory is asked for behind them."""
    write_bandwidth_bytes_per_clk: Rate
    """What all SMs together can write."""
    bandwidth_per_sm_bytes_per_clk: Rate
    """What an SM's threads receive; the TMA engine has a rate of its own."""
    store_bandwidth_per_sm_bytes_per_clk: Rate
    """What an SM's threads store."""
    store_queue_per_sm_bytes: Bytes
    """What they have stored and L2 has not taken; a store beyond that holds its warp."""
    bandwidth_per_gpc_bytes_per_clk: Rate
    """What the SMs of a GPC receive of different lines."""
    delivery_per_gpc_bytes_per_clk: Rate
    """What the SMs of a GPC receive when neighbours ask for the same lines."""
    delivery_split: Share
    """What the second line of a row of a box costs of that, in lines."""
    sms_per_request: Count
    """SMs of a GPC that one request serves at most, while it is on its way."""
    joining_cycles: Cycles
    """So late an SM finds no line of a request on its way, on an idle L2."""
    joining_crowded_cycles: Cycles
    """How much later at most where slices are busy."""
    crowding: Ratio
    """Of what slices are asked for, in the queue that a request meets at one of them: they are not asked evenly."""
    joining_disorder_cycles: Cycles
    """Added to how late an SM is where slices or the port are busy."""
    parts_disorder: Share
    """The same of boxes with parts of sectors: a share of the time that they take beyond twice that of a line."""
    joined_again: Share
    """Of the sectors that are joined, those that come through the port again where the rows of a box have two lines."""
    sectors_per_look_up: Count
    """Sectors that a slice gives in the time of a look-up: less of a line takes as long."""
    sectors_per_part: Ratio
    """The same of a part of a sector, which is asked for alone."""
    sectors_per_part_of_pairs: Ratio
    """The same with an L2 promotion of 256 bytes."""
    atomic_latency_cycles: Cycles
    atomic_interval_cycles: Interval
    """All slices together: a line that an instruction of a warp adds to."""
    atomic_miss_interval_cycles: Interval
    """And for each sector of it that L2 does not hold."""

    @model_validator(mode="after")
    def _shapes_agree(self) -> Self:
        each = SECTORS_PER_LINE
        if self.line_bytes != each * self.sector_bytes or self.line_bytes.bit_count() != 1:
            raise ValueError(
                f"line must be {each} sectors and a power of two,"
                f" got line {self.line_bytes} B, sector {self.sector_bytes} B"
            )
        least = self.line_bytes * self.partitions * self.ways
        if self.capacity_bytes < least:
            raise ValueError(
                f"capacity must be at least {least} B, a set of each partition, got {self.capacity_bytes} B"
            )
        if self.fetch_bytes % self.sector_bytes or self.line_bytes % self.fetch_bytes:
            raise ValueError(
                f"fetch must be sectors that a line is made of, got {self.fetch_bytes} B of sectors of {self.sector_bytes} B"
                f" and lines of {self.line_bytes} B"
            )
        if each % self.sectors_per_look_up:
            got = f"{each} sectors of a line are no multiple of {self.sectors_per_look_up}"
            raise ValueError(f"a look-up must give an even part of a line: {got}")
        if self.latency_far_cycles < self.latency_near_cycles:
            got = f"{self.latency_far_cycles} < {self.latency_near_cycles} cycles"
            raise ValueError(f"latency_far must be at least latency_near, got {got}")
        return self


class Dram(Group):
    """Device memory."""

    capacity_bytes: Bytes
    """What all arrays of a device have room in."""
    latency_cycles: Cycles
    """A miss in L2, from the SM and back, at its quickest."""
    latency_spread_cycles: Cycles
    """The slowest misses take so much longer; a request of n lines waits for the slowest of n."""
    refresh_cycles: Cycles
    """A channel that refreshes answers so much later."""
    refresh_interval_cycles: Annotated[Cycles, Field(ge=1)]
    """From one refresh of a channel to the next."""
    interleave_bytes: Bytes
    """Neighbouring addresses that one channel holds."""
    overtaking: Share
    """Of the requests that come while one waits, those served before its last line."""
    overtaking_most_cycles: Cycles
    """They delay it by no more than this."""
    contention_latency_cycles: Cycles
    """Added to a request for lines that lie apart, as the rows of a box in a wide matrix do, when channels are busy."""
    bandwidth_bytes_per_clk: Rate
    """Peak of the interface, at the SM clock."""
    efficiency: Share
    """The share of the peak that a stream reaches."""
    channels: Count


class Dsmem(Group):
    """Distributed shared memory: the network between the SMs of a cluster."""

    latency_cycles: Cycles
    """Load from another SM of the cluster, there and back."""
    bandwidth_per_sm_bytes_per_clk: Rate
    """One way, each SM."""


class Launch(Group):
    """Kernel, CTA and cluster launch."""

    kernel_overhead_cycles: Cycles
    """An empty kernel of one CTA an SM, launch to end."""
    cta_launch_interval_cycles: Interval
    """The chip starts one CTA each, and `warp_launch_interval` for each of its warps."""
    warp_launch_interval_cycles: Interval
    cta_launch_cycles: Cycles
    """From the decision to place a CTA until its first instruction issues, on average."""
    cta_launch_spread_cycles: Cycles
    """From the quickest to the slowest of those that follow others on their SMs."""
    cta_retire_cycles: Cycles
    """From the exit of its last warp until its resources are free."""
    cluster_launch_cycles: Cycles
    """Added when CTAs are placed as a cluster."""


class CpAsync(Group):
    """cp.async and its groups."""

    issue_interval_cycles: Interval
    commit_cycles: Cycles
    wait_cycles: Cycles
    bandwidth_per_sm_bytes_per_clk: Rate
    """At which what it brings from L2 goes to shared memory."""


def _complete(key: str, table: dict[str, int] | dict[str, float], names: tuple[str, ...]) -> None:
    missing = [name for name in names if name not in table]
    unknown = [name for name in table if name not in names]
    if missing:
        raise ValueError(f"{key} has no number for: {', '.join(missing)}")
    if unknown:
        raise ValueError(
            f"{key} has a number for unknown {', '.join(unknown)}; known are {', '.join(names)}"
        )
