"""What an attention kernel computes, and its shape.

O = softmax(scale Q K^T) V for each batch and head, all of shape (heads, length, head_dim).

Shared memory, from the (1024-byte aligned) symbol on:

    Q (then O) | K stage 0, 1, ... | V stage 0, 1, ... | q_full k_full[] k_empty[] v_full[] v_empty[] | sums[]

Every tile lies in slabs of 128 bytes (64 elements of the head) with the 128-byte swizzle: K-major
for Q and K, whose products run along the head, MN-major for V, whose products run along its rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hopsim.errors import LaunchError
from hopsim.kernels.ptx.limits import SHARED_LIMIT_BYTES
from hopsim.layout.operand_tile import OperandTile, canonical
from hopsim.layout.swizzle import Swizzle

WARPGROUPS = 2
WARPGROUP_ROWS = 64
BLOCK_Q = WARPGROUPS * WARPGROUP_ROWS
THREADS = 128 * (1 + WARPGROUPS)
SLAB = 64
"""Elements of the head in one slab: 128 bytes of a 16-bit type."""

WARPS = 4
"""Of a warpgroup."""
SUMS_BYTES = 8

ENTRY_REGISTERS, PRODUCER_REGISTERS, CONSUMER_REGISTERS = 168, 24, 240
"""Registers at launch, and what the roles keep and take.
Source: FlashAttention-3 (arXiv 2407.08608), hopper/flash_fwd_kernel.h, two consumer warpgroups."""

HEAD_DIMS = (64, 128)
DTYPES = {"bf16": "bf16", "fp16": "f16"}
_ITEM = 2


@dataclass(frozen=True, slots=True)
class AttentionProblem:
    """One batch of attention heads.

    Args:
        heads: batch times heads.
        seq_q, seq_kv: rows of Q, and of K and V.
        head_dim: columns: 64 or 128.
        causal: row i of Q sees columns up to i + seq_kv - seq_q.
        dtype: bf16 or fp16.

    Raises: LaunchError: a size or type is not offered.
    """

    heads: int
    seq_q: int
    seq_kv: int
    head_dim: int = 128
    causal: bool = False
    dtype: str = "bf16"

    def __post_init__(self) -> None:
        for name, size, most in (
            ("heads", self.heads, 65535),
            ("seq_q", self.seq_q, 1 << 24),
            ("seq_kv", self.seq_kv, 1 << 24),
        ):
            if not 1 <= size <= most:
                raise _refuse(f"{name} must be from 1 to {most}, got {size}")
        if self.head_dim not in HEAD_DIMS:
            raise _refuse(f"head_dim must be 64 or 128, got {self.head_dim}")
        if self.dtype not in DTYPES:
            raise _refuse(f"dtype must be bf16 or fp16, got {self.dtype!r}")

    @property
    def scale_log2(self) -> float:
        """What scores are multiplied with: log2(e) / sqrt(head_dim)."""
        return math.log2(math.e) / math.sqrt(self.head_dim)

    @property
    def flops(self) -> int:
        """Multiplications and additions of both products, over the visible part if causal."""
        seen = self.seq_q * self.seq_kv
        if self.causal:
            first = self.seq_kv - self.seq_q + 1
            seen = sum(min(max(first + row, 0), self.seq_kv) for row in range(self.seq_q))
        return 4 * self.heads * seen * self.head_dim


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """A checked kernel configuration; it serves every number of heads and every length.

    Args:
        head_dim, causal, dtype: see `AttentionProblem`.
        block_kv: rows of K and V in a stage.
        stages: slots of each of the two rings.

    Raises: LaunchError: the hardware cannot run it.
    """

    head_dim: int
    causal: bool
    dtype: str
    block_kv: int = 128
    stages: int = 2

    def __post_init__(self) -> None:
        if not 16 <= self.block_kv <= 192 or self.block_kv % 16:
            raise _refuse(f"block_kv must be a multiple of 16 from 16 to 192, got {self.block_kv}")
        if self.stages < 1:
            raise _refuse(f"stages must be at least 1, got {self.stages}")
        if self.shared_bytes > SHARED_LIMIT_BYTES:
            raise _refuse(
                f"{self.stages} stages of {self.block_kv} rows need {self.shared_bytes} bytes of "
                f"shared memory, expected at most {SHARED_LIMIT_BYTES}",
                hint="fewer stages or rows",
            )

    @property
    def slabs(self) -> int:
        """Slabs of a tile: TMA boxes of one load."""
        return self.head_dim // SLAB

    @property
    def q(self) -> OperandTile:
        """Q of both warpgroups."""
        return canonical("K", Swizzle.B128, BLOCK_Q, self.head_dim, _ITEM)

    @property
    def k(self) -> OperandTile:
        """K of one stage: N is its rows."""
        return canonical("K", Swizzle.B128, self.block_kv, self.head_dim, _ITEM)

    @property
    def v(self) -> OperandTile:
        """V of one stage: N is the head."""
        return canonical("MN", Swizzle.B128, self.head_dim, self.block_kv, _ITEM)

    @property
    def slab_bytes(self) -> int:
        """Bytes of one slab of K or V."""
        return self.block_kv * 128

    @property
    def q_slab_bytes(self) -> int:
        """Bytes of one slab of Q."""
        return BLOCK_Q * 128

    @property
    def stage_bytes(self) -> int:
        """Bytes of one stage of K, or of V."""
        return self.slabs * self.slab_bytes

    @property
    def k_offset(self) -> int:
        """Byte offset of the ring of K."""
        return self.slabs * self.q_slab_bytes

    @property
    def v_offset(self) -> int:
        """Byte offset of the ring of V."""
        return self.k_offset + self.stages * self.stage_bytes

    @property
    def q_full(self) -> int:
        """Byte offset of the mbarrier of Q."""
        return self.v_offset + self.stages * self.stage_bytes

    def ring_barrier(self, number: int) -> int:
        """Return the byte offset of ring barriers: 0 k_full, 1 k_empty, 2 v_full, 3 v_empty."""
        return self.q_full + 8 + 8 * self.stages * number

    @property
    def sums_offset(self) -> int:
        """Byte offset of two sums of each consumer warp, which nobody reads (see `softmax.emit_done`)."""
        return self.ring_barrier(4)

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory to launch with."""
        return self.sums_offset + SUMS_BYTES * WARPGROUPS * WARPS


def _refuse(what: str, hint: str = "") -> LaunchError:
    return LaunchError(what, where="attention", hint=hint)
