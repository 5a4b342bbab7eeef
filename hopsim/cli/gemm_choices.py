"""What may be chosen of a GEMM on the command line, listed here so that `--help` imports no kernels."""

from __future__ import annotations

from enum import StrEnum


class Dtype(StrEnum):
    """Element type of A and B."""

    BF16 = "bf16"
    FP16 = "fp16"
    E4M3 = "e4m3"
    TF32 = "tf32"
    INT8 = "int8"


class OutDtype(StrEnum):
    """Element type of C."""

    BF16 = "bf16"
    FP16 = "fp16"
    F32 = "f32"
    S32 = "s32"


class KernelSchedule(StrEnum):
    """How the kernel overlaps copies and products."""

    CHOSEN = "chosen"
    MMA_SIMPLE = "mma-simple"
    MMA_MULTISTAGE = "mma-multistage"
    WGMMA_SIMPLE = "wgmma-simple"
    PIPELINED = "pipelined"
    WARP_SPECIALIZED = "warp-specialized"
    COOPERATIVE = "cooperative"
    PINGPONG = "pingpong"
    SPLIT_K = "split-k"
    STREAM_K = "stream-k"


class Order(StrEnum):
    """How tiles are walked."""

    ROW = "row"
    COLUMN = "column"
    GROUPED = "grouped"
    BLOCKS_M = "blocks-m"
    BLOCKS_N = "blocks-n"


class Reduction(StrEnum):
    """How the parts of a split tile add up."""

    TMA = "tma"
    ATOMIC = "atomic"
    DSMEM = "dsmem"


class MajorMode(StrEnum):
    """Contiguous mode of an operand."""

    K = "K"
    MN = "MN"


class SwizzleMode(StrEnum):
    """Swizzle of A and B in shared memory."""

    NONE = "none"
    B32 = "32B"
    B64 = "64B"
    B128 = "128B"
