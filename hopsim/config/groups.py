"""The hardware numbers a simulation reads, as frozen groups of plain ints and floats.

Every attribute is in one of a few units and says so at its end: `_cycles` (of the SM clock),
`_bytes`, `_bytes_per_clk`, `_flop_per_clk`, `_hz`; bare nouns are counts.  In the TOML file the
same key stands without that ending and the value carries the unit: `cfg.smem.latency_cycles` is
`smem.latency = { value = "29cycles", ... }`.  No number has a default here; numbers live in
`configs/`.
"""

from __future__ import annotations

from typing import Final, Self

from pydantic import model_validator

from hopsim.config.quantities import (
    CROWDED_UNITS,
    EMULATED_PRODUCTS,
    ISSUE_UNITS,
    PRODUCTS,
    RESULTS,
    SEQUENCES,
    SLOWING,
    TENSOR_TYPES,
    Bytes,
    Count,
    Counts,
    CrowdedTable,
    Cycles,
    CyclesList,
    CyclesTable,
    EmulatedTable,
    FlopTable,
    Group,
    Hertz,
    Interval,
    IntervalTable,
    LengthTable,
    LossTable,
    Period,
    ProductTable,
    Rate,
    Ratio,
    ResultTable,
    SequenceTable,
    Share,
    complete,
)

CONFIG_VERSION: Final = 1


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
    cpcs_per_gpc: Count
    """Groups of TPCs, which share a way to L2."""
    registers_per_sm: Count
    registers_per_thread_max: Count
    register_allocation_unit: Count
    """Registers are given to a warp in multiples of this."""
    max_warps_per_sm: Count
    max_ctas_per_sm: Count
    shared_per_sm_bytes: Bytes
    shared_per_cta_max_bytes: Bytes
    reserved_shared_per_cta_bytes: Bytes
    shared_allocation_unit_bytes: Bytes
    subpartitions: Count
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
    knee: Ratio
    """Load above which the clock falls further: the share of the tensor cores' time, and what L2 gives."""
    traffic_bytes_per_clk: Rate
    """So much out of L2 is as much load as tensor cores that are always busy."""
    drop_hz: Hertz
    """How far it falls in the end for each whole load above the knee."""
    settling_cycles: Period
    """In which all but 37 % of a fall happen."""
    sustained_drop_hz: Hertz
    """The same after many launches on end."""
    change_cycles: Period
    """What a fall and a rise take beyond the clocks they lead to, at the highest clock."""
    gpc_spread: Share
    """By how much the fastest GPC's clock is above that of the last to end, while tensor cores work."""


class Issue(Group):
    """Warp instructions: slots and dependences of one SM sub-partition."""

    issue_rate: Count
    """Warp instructions a cycle."""
    fetch_interval_cycles: Interval
    """Between two instructions that an SM executes for the first time in a launch, beyond the issue of one."""
    fetch_interval_all_cycles: Interval
    """The same while all SMs do so."""
    jump_latency_cycles: Cycles
    """Added to a jump to such code, at most."""
    jump_latency_all_cycles: Cycles
    """The same while all SMs do so."""
    jump_interval_cycles: Interval
    """Of it for each instruction that is jumped over."""
    launched_code_bytes: Bytes
    """So much code is near the SMs when a launch begins, from its first instruction on."""
    code_chunk_bytes: Bytes
    """What comes of other code at once."""
    code_chunk_latency_cycles: Cycles
    """Added to the first jump of an SM into such a chunk; what is run through in order comes in time."""
    constant_latency_cycles: Cycles
    """Added to the first read of a line of parameters by an SM in a launch."""
    constant_line_bytes: Bytes
    match_latency_cycles: Cycles
    """Of `match` besides what each value takes."""
    match_value_cycles: Cycles
    """And for each value that the lanes of a warp have."""
    match_interval_cycles: Cycles
    """Of a sub-partition, for each of them."""
    branch_test_cycles: Cycles
    """From the issue of what computes a predicate to that of a branch by it."""
    crowded_gap_cycles: Interval
    """From one instruction of a warp to its next while the tensor cores work."""
    crowded_half_cycles: Interval
    """Of one of the two instructions of a 64-bit operation."""
    crowded_after_cycles: Interval
    """From an fp32 instruction that follows one of a slower pipe to the next of the warp."""
    crowded_mufu_cycles: Interval
    """From one of the mufu to the next of the warp."""
    crowded_mixed_cycles: Interval
    """Of the way to the registers: an fp32 instruction among those of slower pipes; these take alu's interval."""
    latency_cycles: CyclesTable
    """By unit: from issue to the issue of an instruction that reads the result."""
    interval_cycles: IntervalTable
    """By unit: from one issue to the next of this unit in the sub-partition."""
    crowded_interval_cycles: CrowdedTable
    """The same while the tensor cores work, whose sums take a part of the ways to the registers; others keep theirs."""
    products_lost_cycles: LossTable
    """Of an instruction of one warp of each sub-partition: what the tensor cores lose."""
    sequence: SequenceTable
    """Machine instructions of a PTX instruction that ptxas makes several of."""
    sequence_latency_cycles: ResultTable
    """From the issue of its first one to the issue of an instruction that reads the result."""

    @model_validator(mode="after")
    def _units_complete(self) -> Self:
        for name in ("latency", "interval"):
            complete(f"issue.{name}", getattr(self, f"{name}_cycles"), ISSUE_UNITS)
        complete("issue.crowded_interval", self.crowded_interval_cycles, CROWDED_UNITS)
        complete("issue.products_lost", self.products_lost_cycles, SLOWING)
        complete("issue.sequence", self.sequence, SEQUENCES)
        complete("issue.sequence_latency", self.sequence_latency_cycles, RESULTS)
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
    swap_cycles: Cycles
    """A turn of the loop that adds to a word of 32 bits: load, compute, swap if it is still the same."""
    swap_64_cycles: Cycles
    """The same with 64 bits."""
    swap_gap_cycles: Cycles
    """From one success at a word to the next, of several warps."""
    swap_look_cycles: Cycles
    """Until it is known where an address in the window of a cluster, or a generic one, points."""


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
    queue_depth: Count
    """Operations that may be outstanding before issue itself waits; the warpgroups at work share them."""
    operand_bandwidth_bytes_per_clk: Rate
    fence_cycles: Interval
    sparse_cycles: Interval
    """How much longer an operation with a sparse A occupies the unit than its products and operands do."""
    commit_cycles: Interval
    wait_cycles: Interval
    """A `wait_group` whose groups are already complete."""

    @model_validator(mode="after")
    def _types_complete(self) -> Self:
        complete("tensor.flop_per_clk", self.flop_per_clk, TENSOR_TYPES)
        return self


class MmaSync(Group):
    """mma.sync on one SM."""

    latency_cycles: Cycles
    """m16n8k16, from issue to a dependent one."""
    register_cycles: Interval
    """By so much it comes sooner for each register of A that a shape has less than four."""
    drain_cycles: Cycles
    """Of f64, from when the pipe is through with a product until its sums are there."""
    emulated_latency_cycles: Cycles
    """What the last product of several machine instructions takes more before the warp comes to a branch or a barrier."""
    flop_per_clk: ProductTable
    """Rate of the SM by the type of A, 16 rows at least; of a sparse A what is stored counts."""
    instructions: LengthTable
    """Machine instructions of the largest shape of what the assembler makes several of."""
    warp_rate_flop_per_clk: EmulatedTable
    """What one warp does of these, whose products, conversions and additions wait for each other."""

    @model_validator(mode="after")
    def _types_complete(self) -> Self:
        complete("mma_sync.flop_per_clk", self.flop_per_clk, PRODUCTS)
        complete("mma_sync.instructions", self.instructions, EMULATED_PRODUCTS)
        complete("mma_sync.warp_rate", self.warp_rate_flop_per_clk, EMULATED_PRODUCTS)
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
    reduce_bandwidth_bytes_per_clk: Rate
    """Data added by one SM."""
    guarded_commit_cycles: Cycles
    """What a commit by a predicate takes all warps that come to it: they branch around it, and meet again."""
    request_bytes: Bytes
    """What one request to L2 fetches."""
    request_interval_cycles: Interval
    """From one to the next; what they bring comes at `bandwidth`."""
    mixing_most_cycles: Cycles
    """How long a box waits at most for lines of boxes that the engine asks for after it."""
    split_cycles: Interval
    """Each line asked for beyond those that the bytes would fill."""
    max_inflight_requests: Count
    multicast_fetch_cycles: Interval
    """Each line of a multicast box that device memory brings, where another one is asked for soon before or after."""
    multicast_soon_cycles: Cycles
    multicast_apart_cycles: Cycles
    """From one multicast box of an SM to the next: up to the one all of `multicast_fetch`, from the other on nothing."""
    multicast_beginning_cycles: Cycles
    """For so long after the first multicast box of an SM they come late at all."""
    rank_extra_cycles: CyclesList
    """Latency added by a tensor map of rank 1, 2, 3, 4, 5 against a plain bulk copy."""
    store_latency_cycles: Cycles
    """From the last byte read in shared memory until the write is complete in L2."""
    store_read_latency_cycles: Cycles
    """From issue until the first byte is read in shared memory."""
    store_sector_cycles: Interval
    """How much longer each sector makes it that a store touches beyond those which its bytes fill."""

    @model_validator(mode="after")
    def _shapes_agree(self) -> Self:
        if len(self.rank_extra_cycles) != 5:
            raise ValueError(
                "rank_extra must have 5 values, one for each rank,"
                f" got {len(self.rank_extra_cycles)}"
            )
        if self.multicast_apart_cycles <= self.multicast_soon_cycles:
            raise ValueError(
                f"multicast_apart must be more than multicast_soon {self.multicast_soon_cycles} cycles,"
                f" got {self.multicast_apart_cycles} cycles"
            )
        return self


class Mbarrier(Group):
    """mbarrier objects."""

    init_interval_cycles: Interval
    """Time that an `mbarrier.init` takes of each warp that executes it."""
    arrive_latency_cycles: Cycles
    """From issue until the arrival counts."""
    copies_arrive_latency_cycles: Cycles
    """From the last of a thread's `cp.async` until the arrival counts that follows them."""
    state_latency_cycles: Cycles
    """From issue until the state that an arrival returns can be read."""
    try_wait_latency_cycles: Cycles
    """A `try_wait` of a warp on a phase that is already complete."""
    try_wait_warp_cycles: Interval
    """How much later each further warp that tests at once makes it."""
    wakeup_latency_cycles: Cycles
    """From the completion of the phase until a suspended warp issues again."""
    apart_first_cycles: Cycles
    """From a `try_wait` in vain of some lanes, while others of their warp wait for them, until they can go on."""
    apart_interval_cycles: Interval
    """The same from one look to the next."""
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
    staged_cycles: Cycles
    """From when the pipe is done with what a warp has stored to shared memory until such a fence can begin."""
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


class Launch(Group):
    """Kernel, CTA and cluster launch."""

    kernel_overhead_cycles: Cycles
    """An empty kernel of one CTA an SM, launch to end."""
    cta_retire_interval_cycles: Interval
    """An SM lets one CTA go each, however many warps it has."""
    gpc_launch_interval_cycles: Interval
    """A GPC starts the first CTAs of its SMs so far apart."""
    gpc_visit_interval_cycles: Period
    """A GPC is given CTAs for places that have become free once each."""
    cta_launch_cycles: CyclesList
    """From the decision to place a CTA until its first instruction issues, of each GPC; beginning again where these end."""
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
    """At which what it brings from L2 goes to shared memory past L1 (`.cg`)."""
    bandwidth_through_l1_bytes_per_clk: Rate
    """The same by way of L1 (`.ca`)."""
