"""Online softmax in registers: what one thread does with its part of a block of scores.

A thread of a warpgroup holds two rows of the accumulator, `group` and `group + 8` of its warp's 16,
and of each 8 columns a neighbouring pair; four lanes (a quad) hold a row together.  Register 4j + 2h
+ e is row half h, column 8j + 2 * (lane % 4) + e.

The order of every operation is fixed, and products and sums are written with `.rn` so that nobody
fuses them: `hopsim.reference.attention` does the same and gives the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.kernels.ptx.text import PtxEntry, Reg, vector

NOTHING_YET = "0fF1800000"
"""-2^100, the maximum before any score: finite, so that a row that sees nothing stays finite."""

_MINUS_INF = "0fFF800000"
_PACKED = {"bf16": "cvt.rn.bf16x2.f32", "fp16": "cvt.rn.f16x2.f32"}


@dataclass(frozen=True, slots=True)
class RowState:
    """Two rows of a thread: maximum, this thread's part of the sum, and the last rescaling."""

    maximum: list[Reg]
    total: list[Reg]
    alpha: list[Reg]
    scale: Reg
    minus_scale: Reg


def emit_rows(b: PtxEntry, scale: Reg) -> RowState:
    """Write the state of two rows that have seen nothing."""
    minus_scale = b.let(".f32", "minus_scale", "neg.f32", scale)
    maximum = [b.let(".f32", "row_max", "mov.f32", NOTHING_YET) for _ in range(2)]
    total = [b.let(".f32", "row_sum", "mov.f32", "0f00000000") for _ in range(2)]
    alpha = [b.reg(".f32", "alpha") for _ in range(2)]
    return RowState(maximum, total, alpha, scale, minus_scale)


def emit_mask(b: PtxEntry, scores: list[Reg], limits: list[Reg]) -> list[Reg]:
    """Write scores with -inf where a column is at or behind its row's limit.

    Args:
        limits: for both rows, the limit less the thread's first column of the block.
    """
    masked = b.regs(".f32", "masked", len(scores))
    sees = b.reg(".pred", "sees")
    for i, (source, target) in enumerate(zip(scores, masked, strict=True)):
        block, within = divmod(i, 4)
        half, element = divmod(within, 2)
        b.emit("setp.gt.s32", sees, limits[half], 8 * block + element)
        b.emit("selp.f32", target, source, _MINUS_INF, sees)
    return masked


def emit_exponentials(b: PtxEntry, rows: RowState, scores: list[Reg], weights: list[Reg]) -> None:
    """Write the step over one block: new maxima, rescaling, weights 2^(scale (s - max)), sums."""
    for half in range(2):
        mine = _of_row(scores, half)
        largest = b.let(".f32", "block_max", "max.f32", mine[0], mine[1])
        for score in mine[2:]:
            b.emit("max.f32", largest, largest, score)
        for lanes in (1, 2):
            other = b.let(".f32", "other_max", "shfl.sync.bfly.b32", largest, lanes, 31, -1)
            b.emit("max.f32", largest, largest, other)
        b.emit("max.f32", largest, rows.maximum[half], largest)
        fall = b.let(".f32", "fall", "sub.rn.f32", rows.maximum[half], largest)
        b.emit("mul.rn.f32", fall, fall, rows.scale)
        b.emit("ex2.approx.ftz.f32", rows.alpha[half], fall)
        b.emit("mov.f32", rows.maximum[half], largest)
    for half in range(2):
        shift = b.let(".f32", "shift", "mul.rn.f32", rows.maximum[half], rows.minus_scale)
        exponent = b.reg(".f32", "exponent")
        for score, weight in zip(_of_row(scores, half), _of_row(weights, half), strict=True):
            b.emit("fma.rn.f32", exponent, score, rows.scale, shift)
            b.emit("ex2.approx.ftz.f32", weight, exponent)
    for half in range(2):
        b.emit("mul.rn.f32", rows.total[half], rows.total[half], rows.alpha[half])
        for weight in _of_row(weights, half):
            b.emit("add.rn.f32", rows.total[half], rows.total[half], weight)


def emit_done(b: PtxEntry, rows: RowState, place: str, guard: Reg) -> None:
    """Write the sums of both rows to shared memory, for nobody.

    A store stays before the `wgmma.wait_group` that follows, and needs all exponentials.  Without it ptxas moves that wait
    up to the first row's maximum, and the exponentials behind the products that they should run under.
    """
    b.emit("st.shared.v2.f32", place, vector(rows.total), guard=guard)


def emit_packed(b: PtxEntry, dtype: str, weights: list[Reg], packed: list[Reg]) -> None:
    """Write the weights as 16-bit pairs: the accumulator's order is that of wgmma's A fragment."""
    for i, target in enumerate(packed):
        b.emit(_PACKED[dtype], target, weights[2 * i + 1], weights[2 * i])


def emit_rescale(b: PtxEntry, outputs: list[Reg], factors: list[Reg]) -> None:
    """Write the outputs of both rows times their factors."""
    for half in range(2):
        for output in _of_row(outputs, half):
            b.emit("mul.rn.f32", output, output, factors[half])


def emit_reciprocals(b: PtxEntry, rows: RowState) -> list[Reg]:
    """Write 1 / sum for both rows over the quad; 0 for a row that saw nothing."""
    found: list[Reg] = []
    for half in range(2):
        total = rows.total[half]
        for lanes in (1, 2):
            other = b.let(".f32", "other_sum", "shfl.sync.bfly.b32", total, lanes, 31, -1)
            total = b.let(".f32", "quad_sum", "add.rn.f32", total, other)
        empty = b.let(".pred", "sees_nothing", "setp.eq.f32", total, "0f00000000")
        inverse = b.let(".f32", "inverse", "rcp.rn.f32", total)
        found.append(b.let(".f32", "norm", "selp.f32", "0f00000000", inverse, empty))
    return found


def emit_packed_box(
    b: PtxEntry, dtype: str, outputs: list[Reg], write: Reg, offset: int, packed: list[Reg]
) -> None:
    """Write 16 columns of the outputs to shared memory, 16 bytes a lane."""
    emit_packed(b, dtype, outputs, packed)
    b.emit(
        "stmatrix.sync.aligned.m8n8.x4.shared.b16",
        f"[{write}+{offset}]" if offset else f"[{write}]", vector(packed),
    )  # fmt: skip


def _of_row(registers: list[Reg], half: int) -> list[Reg]:
    return [r for i, r in enumerate(registers) if i % 4 // 2 == half]
