"""The groups of the memory system: L1, L2, device memory, and shared memory of other SMs; as `hopsim.config.groups`."""

from __future__ import annotations

from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from hopsim.config.quantities import (
    Bytes,
    Count,
    Cycles,
    Group,
    Interval,
    Rate,
    Ratio,
    Ratios,
    Share,
)

SECTORS_PER_LINE: Final = 4
"""L2 keeps what it holds of a line in a mask of so many bits."""


class L1(Group):
    """The L1 data cache of one SM."""

    latency_cycles: Cycles
    local_latency_cycles: Cycles
    """Of a load from local memory."""
    store_queue_cycles: Cycles
    """For which what is stored waits in front of the way out of a busy SM; loads wait behind it, those that L1 has too."""
    store_queue_per_warp_cycles: Cycles
    """The same before L1, for each warp that stores; what goes to shared memory waits there too."""
    local_store_bandwidth_bytes_per_clk: Rate
    """Sectors that are stored to local memory, out of L1."""
    bandwidth_bytes_per_clk: Rate
    capacity_bytes: Bytes
    """Shared memory and L1 together."""
    warp_interval_cycles: Interval
    """A line of a load of several lines, for the warp itself; the data pipe of the SM takes less."""
    atomic_interval_cycles: Interval
    """A sector that a warp adds to, besides the pass of its line."""


class L2(Group):
    """The L2 cache of the chip, in partitions."""

    capacity_bytes: Bytes
    partitions: Count
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
    outside_places: Count
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
    """What all SMs together can write by TMA."""
    threads_write_bandwidth_bytes_per_clk: Rate
    """What threads of all SMs together can store."""
    write_beside_reads: Share
    """Of the time of a write, in which slices serve no read; for the rest of it both go on."""
    reduce_bandwidth_bytes_per_clk: Rate
    """What all SMs together add by TMA."""
    reduce_buffer_bytes: Bytes
    """What it takes of them before the sums are made."""
    write_buffer_bytes: Bytes
    """What it takes of TMA stores at once, into lines that it does not hold written already."""
    bandwidth_per_sm_bytes_per_clk: Rate
    """What an SM's threads receive; the TMA engine has a rate of its own."""
    store_bandwidth_per_sm_bytes_per_clk: Rate
    """What an SM's threads store, with the bytes that requests take."""
    store_request_bytes: Bytes
    """What a line of a warp takes beside its sectors."""
    store_masked_request_bytes: Bytes
    """The same of one that leaves bytes of its sectors as they are."""
    store_halved_request_bytes: Bytes
    """The same of one that writes parts of words."""
    store_queue_per_sm_bytes: Bytes
    """What they have stored and L2 has not taken; a store beyond that holds its warp."""
    on_way_per_cpc_bytes: Bytes
    """What the SMs of a CPC may have asked for and not been given, in even parts."""
    bandwidth_per_gpc_bytes_per_clk: Rate
    """What the SMs of a GPC receive of different lines."""
    handing: Share
    """What handing a line to an SM takes of the time to bring it there."""
    delivery_per_gpc_bytes_per_clk: Rate
    """What the SMs of a GPC receive when neighbours ask for the same lines."""
    gathering_cycles: Cycles
    """So much has to be asked for, in cycles at full rate, until slices and these two ways do most of that (`Stream`)."""
    mixing: Share
    """Of what is asked for later, what comes before the last line of a request."""
    mixing_most_cycles: Cycles
    """How long that lasts at most."""
    delivery_split: Share
    """What the second line of a row of a box costs of that, in lines."""
    sms_per_request: Count
    """SMs of a GPC that one request serves at most, while it is on its way."""
    joining_cycles: Cycles
    """So late an SM finds half of the lines of a request on their way."""
    joining_spread_cycles: Cycles
    """So much earlier it finds all of them, so much later none."""
    joining_held_after_cycles: Cycles
    """Lines that wait longer than that for slices and the port are on their way for as much longer."""
    joining_held_cycles: Cycles
    """How much longer at most."""
    parts_disorder: Share
    """How much earlier that is for boxes with parts of sectors: a share of the time beyond twice that of a line."""
    joined_again: Share
    """Of the sectors that are joined, those that come through the port again where the rows of a box have two lines."""
    sectors_per_look_up: Count
    """Sectors that a slice gives in the time of a look-up: less of a line takes as long."""
    stored_sectors_per_request: Ratio
    """Sectors that L2 takes from threads in the time that a line of a warp takes beside them."""
    stored_sectors_per_masked_request: Ratio
    """The same of a line that leaves bytes of its sectors as they are."""
    stored_sectors_per_masked_sector: Ratio
    """The same of each of its sectors."""
    sectors_per_part: Ratio
    """The same of a part of a sector, which is asked for alone."""
    sectors_per_part_of_pairs: Ratio
    """The same with an L2 promotion of 256 bytes."""
    atomic_latency_cycles: Cycles
    atomic_interval_cycles: Interval
    """All slices together: a line that an instruction of a warp adds to."""
    atomic_miss_interval_cycles: Interval
    """And for each sector of it that L2 does not hold."""
    atomic_request_cycles: Interval
    """Of that unit: a line of a warp, at least."""
    atomic_sector_cycles: Interval
    """A sector of it."""
    atomic_whole_sector_cycles: Interval
    """One all of whose words are added to."""
    atomic_compare_cycles: Interval
    """One where words are compared, and swapped."""
    atomic_again_cycles: Interval
    """A further lane on the same word."""
    atomic_float_cycles: Interval
    """A lane that adds a float to a word, until the next one can."""

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
    contention_spread: Share
    """So much of it more or less, evenly spread."""
    bandwidth_bytes_per_clk: Rate
    """Peak of the interface, at the SM clock."""
    efficiency: Share
    """The share of the peak that a stream reaches."""
    channels: Count


class Dsmem(Group):
    """Distributed shared memory: the network between the SMs of a cluster."""

    latency_cycles: Cycles
    """Load from another SM of the cluster, there and back."""
    swap_cycles: Cycles
    """A turn of a loop that loads a word of another SM, computes, and swaps it if it is still the same."""
    bandwidth_per_sm_bytes_per_clk: Rate
    """One way, each SM."""
