"""The shape of a GEMM kernel: tile, ring, cluster, and every number that follows from them.

All emitters read their constants here, so a byte offset is computed in one place only.

Shared memory, from the (1024-byte aligned) symbol on:

    stage 0: A slabs, B slabs | stage 1 | ... | C staging of each warpgroup | full[] | empty[]

`OperandTile` says how the slabs of an operand lie.
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.errors import LaunchError
from hopsim.kernels.gemm.order import ORDERS
from hopsim.kernels.gemm.problem import ElementType
from hopsim.kernels.gemm.tile import ATOM_M, Tile, check_tile
from hopsim.kernels.ptx.limits import REGISTER_FILE, SHARED_LIMIT_BYTES
from hopsim.layout.descriptor import Major
from hopsim.layout.operand_tile import ATOM_K_BYTES, OperandTile, widest_swizzle
from hopsim.layout.swizzle import Swizzle

WARPGROUP_THREADS = 128

_PRODUCER_REGISTERS = (40, 24)
"""What a producer thread keeps: CUTLASS's two choices, the second for the largest consumers."""

_CONSUMER_WORKING_REGISTERS = 64
"""For addresses, descriptors and epilogue temporaries beside the accumulators.
A choice, not a limit: ptxas 13.0 spills nothing with it, and more only costs occupancy."""
_WGMMA_WORKING_REGISTERS = 28
"""What ptxas wants at entry beside one wgmma's fragment.
Source: ptxas 13.0, message C7602: n/2 + 26 for n = 128, 192 and 256."""
_MAX_CONSUMER_REGISTERS = 240
_MAX_ACCUMULATORS = 192

CLUSTERS = ((1, 1), (2, 1), (1, 2), (2, 2))
REDUCTIONS = ("tma", "atomic", "dsmem")
"""How the CTAs of a split tile add up: TMA reductions or atomics in global memory, or shared memory of a cluster."""


@dataclass(frozen=True, slots=True)
class GemmPlan:
    """A checked kernel configuration; it does not depend on M, N, K.

    Args:
        dtype, out_dtype: element types of A and B, and of C.
        tile: tile of one CTA.
        stages: slots of the ring.
        warpgroups: warpgroups that compute; they split the tile's rows.
        cluster: CTAs of a cluster along M and along N.
        persistent: a CTA walks over several tiles.
        group_m: cluster tiles that are walked together in the order "grouped".
        order: how tiles are walked, see `hopsim.kernels.gemm.order`.
        has_producer: one more warpgroup, in front, feeds the ring.
        store_buffers: C boxes that a warpgroup stages at a time; 0 takes as many as fit.
        release_scope: scope of the arrivals that release a slot to the other CTAs of a cluster.
            "cta" is what CUTLASS writes: only completed asynchronous reads stand before the
            arrival, but PTX promises no order across CTAs.  "cluster" has that promise, and
            ptxas makes a GPU-wide memory barrier of it in every k-block.
        a_major, b_major: contiguous mode of A and B, "K" or "MN".
        swizzle_mode: swizzle of A and B; None takes the widest that fits each of them.
        a_in_registers: A is read into registers first, and wgmma takes it from there.
        takes_turns: each computing warpgroup has a tile of its own, and they take turns.
        splits: CTAs that share a tile's K.
        reduction: how they add up, one of `REDUCTIONS`.
        promotes: the sums of a stage are added to others in registers, which doubles them.
        a_rows: rows of A that are loaded for a tile, where M has no more; 0: all.  The others are zeros, written once.

    Raises: LaunchError: the hardware cannot run it.
    """

    dtype: ElementType
    out_dtype: ElementType
    tile: Tile
    stages: int
    warpgroups: int
    cluster: tuple[int, int] = (1, 1)
    persistent: bool = False
    group_m: int = 8
    has_producer: bool = False
    store_buffers: int = 0
    release_scope: str = "cta"
    order: str = "grouped"
    a_major: Major = "K"
    b_major: Major = "K"
    swizzle_mode: Swizzle | None = None
    a_in_registers: bool = False
    takes_turns: bool = False
    splits: int = 1
    reduction: str = "tma"
    promotes: bool = False
    a_rows: int = 0

    def __post_init__(self) -> None:
        if self.cluster not in CLUSTERS:
            raise _refuse(
                f"cluster must be (1,1), (2,1), (1,2) or (2,2), got ({self.cluster[0]},{self.cluster[1]})",
                hint="a cluster of (2,1), 2x1 on the command line; or leave it out",
            )
        check_tile(self.tile, self.dtype, self.warpgroups, self.takes_turns)
        self._check_shares()
        if self.order not in ORDERS:
            raise _refuse(
                f"order must be one of {', '.join(ORDERS)}, got {self.order!r}", hint="grouped"
            )
        if self.group_m < 1:
            raise _refuse(f"group_m must be at least 1, got {self.group_m}", hint="8")
        if self.release_scope not in ("cta", "cluster"):
            raise _refuse(f"release_scope must be cta or cluster, got {self.release_scope!r}")
        if self.stages < 1:
            raise _refuse(f"stages must be at least 1, got {self.stages}", hint="4 stages")
        self._check_splits()
        self._check_registers()
        self._choose_store_buffers()

    # -- operands -------------------------------------------------------------------------------

    @property
    def a(self) -> OperandTile:
        """A of one stage."""
        return self._operand(self.a_major, self.tile.m, self.cluster[1], self.a_rows)

    @property
    def b(self) -> OperandTile:
        """B of one stage."""
        return self._operand(self.b_major, self.tile.n, self.cluster[0])

    def _operand(self, major: Major, rows: int, parts: int, loaded: int = 0) -> OperandTile:
        contiguous = self.tile.k if major == "K" else rows
        mode = self.swizzle_mode
        if mode is None:
            mode = widest_swizzle(contiguous * self.dtype.size)
        return OperandTile(self.dtype.size, major, mode, rows, self.tile.k, parts, loaded)

    @property
    def swizzle(self) -> Swizzle:
        """Swizzle of A."""
        return self.a.swizzle

    @property
    def a_box(self) -> tuple[int, int]:
        """TMA box of A, innermost first; with multicast a CTA brings its share of the tile."""
        return self.a.box

    @property
    def b_box(self) -> tuple[int, int]:
        """TMA box of B, innermost first."""
        return self.b.box

    # -- work -----------------------------------------------------------------------------------

    @property
    def k_steps(self) -> int:
        """wgmma steps along K in one stage."""
        return self.tile.k * self.dtype.size // ATOM_K_BYTES

    @property
    def warpgroup_m(self) -> int:
        """Rows of a tile that one warpgroup computes."""
        return self.tile.m if self.takes_turns else self.tile.m // self.warpgroups

    @property
    def m_atoms(self) -> int:
        """wgmma along M for each step of one warpgroup."""
        return self.warpgroup_m // ATOM_M

    @property
    def accumulators(self) -> int:
        """Accumulator registers of one thread."""
        return self.m_atoms * self.tile.n // 2

    @property
    def sums(self) -> int:
        """Registers of one thread that hold sums: the accumulators, and what they are added to."""
        return self.accumulators * (1 + self.promotes)

    @property
    def cluster_size(self) -> int:
        """CTAs of a cluster that share loads."""
        return self.cluster[0] * self.cluster[1]

    @property
    def launch_cluster(self) -> int:
        """CTAs of a cluster at launch: those that share loads, or those that add up one tile."""
        if self.splits > 1 and not self.adds_to_c:
            return self.splits
        return self.cluster_size

    @property
    def sum_register(self) -> str:
        """Type of the registers that hold sums."""
        return ".f32" if self.dtype.sum_ptx == "f32" else ".b32"

    @property
    def adds_to_c(self) -> bool:
        """Whether CTAs add to C in global memory."""
        return self.splits > 1 and self.reduction != "dsmem"

    @property
    def slot_warps(self) -> int:
        """Warps of a CTA that read a slot."""
        return 4 if self.takes_turns else 4 * self.warpgroups

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return WARPGROUP_THREADS * (self.warpgroups + self.has_producer)

    # -- registers of the warp-specialized schedule -----------------------------------------------

    @property
    def consumer_registers(self) -> int:
        """Registers a consumer thread asks for with setmaxnreg."""
        wanted = self.sums + _CONSUMER_WORKING_REGISTERS
        return min(_round_up(wanted, 8), _MAX_CONSUMER_REGISTERS)

    @property
    def producer_registers(self) -> int:
        """Registers a producer thread keeps with setmaxnreg."""
        consumers = self.warpgroups * self.consumer_registers
        file_share = REGISTER_FILE // WARPGROUP_THREADS - consumers
        ample, least = _PRODUCER_REGISTERS
        return ample if ample <= file_share else least

    @property
    def entry_registers(self) -> int:
        """Registers a thread at launch: what the roles later share out, and one wgmma compiles."""
        pool = self.producer_registers + self.warpgroups * self.consumer_registers
        share = -(-pool // (1 + self.warpgroups))
        return _round_up(max(share, self.tile.n // 2 + _WGMMA_WORKING_REGISTERS), 8)

    # -- C --------------------------------------------------------------------------------------

    @property
    def c_columns(self) -> int:
        """Columns of the tile that one CTA stores: all, or its part of a sum over a cluster."""
        return self.tile.n * self.cluster_size // self.launch_cluster

    @property
    def c_swizzle(self) -> Swizzle:
        """Swizzle of the C staging: the widest whose row divides the tile's.

        None is left for an odd number of 16-byte chunks, which needs none: eight rows of such a
        pitch lie in different banks.
        """
        return widest_swizzle(self.c_columns * self.out_dtype.size)

    @property
    def c_box(self) -> tuple[int, int]:
        """TMA box of C, innermost first: the rows of one wgmma fragment."""
        if self.c_swizzle is Swizzle.NONE:
            return (self.c_columns, ATOM_M)
        return (self.c_swizzle.width_bytes // self.out_dtype.size, ATOM_M)

    @property
    def c_boxes(self) -> int:
        """Boxes that one warpgroup stores for a tile."""
        return self.m_atoms * self.c_columns // self.c_box[0]

    @property
    def c_box_bytes(self) -> int:
        """Shared bytes of one box of C."""
        return self.c_box[0] * self.c_box[1] * self.out_dtype.size

    # -- shared memory --------------------------------------------------------------------------

    @property
    def stage_bytes(self) -> int:
        """Bytes of one stage."""
        return self.a.total_bytes + self.b.total_bytes

    @property
    def loaded_bytes(self) -> int:
        """Bytes that TMA brings for one stage."""
        return self.a.loaded_bytes + self.b.loaded_bytes

    @property
    def b_offset(self) -> int:
        """Byte offset of B inside a stage."""
        return self.a.total_bytes

    @property
    def staging_offset(self) -> int:
        """Byte offset of the C staging."""
        return _round_up(self.stages * self.stage_bytes, 1024)

    @property
    def staging_bytes(self) -> int:
        """C staging of one warpgroup."""
        return self.store_buffers * self.c_box_bytes

    @property
    def full_offset(self) -> int:
        """Byte offset of the mbarriers that say a slot is full."""
        return self.staging_offset + self.warpgroups * self.staging_bytes

    @property
    def empty_offset(self) -> int:
        """Byte offset of the mbarriers that say a slot is empty (none without a producer)."""
        return self.full_offset + 8 * self.stages

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory to launch with."""
        return self.full_offset + 8 * self.stages * (1 + self.has_producer)

    # -- checks ---------------------------------------------------------------------------------

    def _check_shares(self) -> None:
        along_m, along_n = self.cluster
        for name, rows, parts in (("m", self.tile.m, along_n), ("n", self.tile.n, along_m)):
            if rows % (8 * parts):
                raise _refuse(
                    f"tile {name} = {rows} cannot be split into {parts} multicast shares of whole "
                    "swizzle periods (8 rows)",
                    hint=f"make {name} a multiple of {8 * parts}",
                )
        for name, operand in (("A", self.a), ("B", self.b)):
            what = operand.problem()
            if what:
                raise _refuse(f"{name} of tile {self.tile}: {what}")

    def _check_splits(self) -> None:
        if self.splits < 1:
            raise _refuse(f"splits must be at least 1, got {self.splits}", hint="2 splits")
        if self.reduction not in REDUCTIONS:
            raise _refuse(
                f"reduction must be one of {', '.join(REDUCTIONS)}, got {self.reduction!r}"
            )
        if self.splits == 1:
            return
        if self.cluster_size > 1:
            raise _refuse("a tile whose K is split takes clusters of one CTA for its loads")
        if self.reduction != "dsmem":
            if self.out_dtype.name != "f32":
                raise _refuse(
                    f"sums in global memory need f32 for C, got {self.out_dtype.name}",
                    hint='out_dtype "f32", or reduction "dsmem"',
                )
            return
        if self.splits not in (2, 4, 8) or self.tile.n % (16 * self.splits):
            raise _refuse(
                f"a cluster adds up 2, 4 or 8 parts, each storing a multiple of 16 columns; "
                f"got {self.splits} parts of {self.tile.n} columns",
            )
        partial_bytes = self.tile.m * self.tile.n * 4
        if partial_bytes > self.stages * self.stage_bytes:
            raise _refuse(
                f"the sums of tile {self.tile} ({partial_bytes} bytes) must fit where its "
                f"{self.stages} stages were ({self.stages * self.stage_bytes} bytes)",
                hint="more stages, or a smaller tile",
            )

    def _check_registers(self) -> None:
        if self.sums > _MAX_ACCUMULATORS:
            raise _refuse(
                f"tile {self.tile} on {self.warpgroups} warpgroup(s) needs {self.sums} "
                f"accumulators a thread, expected at most {_MAX_ACCUMULATORS} of 255 registers",
                hint="a smaller tile"
                if self.warpgroups > 1
                else "two warpgroups, or a smaller tile",
            )
        if self.has_producer:
            pool = self.entry_registers * self.threads
            assert pool <= REGISTER_FILE, (pool, self)

    def _choose_store_buffers(self) -> None:
        least = min(2, self.c_boxes)
        room = SHARED_LIMIT_BYTES - self.staging_offset - 8 * self.stages * (1 + self.has_producer)
        fitting = room // (self.warpgroups * self.c_box_bytes)
        buffers = self.store_buffers or max(least, min(self.c_boxes, fitting))
        if not least <= buffers <= self.c_boxes:
            raise _refuse(
                f"store_buffers must be {least} to {self.c_boxes} for tile {self.tile}, "
                f"got {buffers}"
            )
        object.__setattr__(self, "store_buffers", buffers)
        if self.shared_bytes > SHARED_LIMIT_BYTES:
            raise _refuse(
                f"tile {self.tile} with {self.stages} stages and {buffers} C buffers needs "
                f"{self.shared_bytes} bytes of shared memory, expected at most "
                f"{SHARED_LIMIT_BYTES}",
                hint="fewer stages or a smaller tile",
                source="CUDA Hopper tuning guide 13.0",
            )


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _refuse(what: str, *, hint: str = "", source: str = "") -> LaunchError:
    return LaunchError(what, where="gemm", hint=hint, source=source)
