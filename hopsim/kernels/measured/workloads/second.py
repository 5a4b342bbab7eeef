"""The second set (`second.cu`): held out, nothing of it was looked at before it was recorded and predicted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hopsim.kernels.measured.workloads.case import Array, Case, bfloats, floats, i32, integers

F32, F16, BF16 = np.float32, np.float16, np.uint16
I32, U32 = np.int32, np.uint32


def cases() -> list[Case]:
    """Return all launches, those of a kernel together."""
    return [
        *_language_model(),
        *_few_bits(),
        *_best_of_a_row(),
        *_images_and_grids(),
        *_sorted_and_counted(),
        *_tables_and_graphs(),
        *_step_by_step(),
        *_others(),
    ]


def _language_model() -> list[Case]:
    return [
        *(
            Case(
                "rms_norm", f"{rows} rows of 2048", (rows,), (256,), [((rows, 2048), BF16)],
                lambda rows=rows: [bfloats(rows, 2048), bfloats(2048, seed=2)],
            )
            for rows in (32, 132)
        ),
        *(
            Case(
                "rotary", f"{positions} of 16 heads", (positions,), (64, 4), [((positions, 16, 128), BF16)],
                lambda positions=positions: [bfloats(positions, 16, 128), _turns(positions), i32(16)],
            )
            for positions in (64, 256)
        ),
        *(
            Case(
                "bias_gelu", f"{rows} rows of 1024", (2 * rows,), (256,), [((rows, 1024), BF16)],
                lambda rows=rows: [bfloats(rows, 1024), bfloats(1024, seed=2), i32(512)],
            )
            for rows in (64, 200)
        ),
        *(
            Case(
                "embed", f"{tokens} rows of 1024", (tokens,), (128,), [((tokens, 1024), BF16)],
                lambda tokens=tokens: [
                    bfloats(2000, 1024), integers(2000, tokens), i32(128),
                ],
            )
            for tokens in (128, 1024)
        ),
        *(
            Case(
                "decode_gemv", f"{batch} x {rows} x {columns}", (rows // 4, batch), (32, 4), [((batch, rows), F32)],
                lambda batch=batch, rows=rows, columns=columns: [
                    floats(batch, rows, columns).astype(F16), floats(batch, columns, seed=2).astype(F16), i32(columns),
                ],
            )
            for batch, rows, columns in ((2, 256, 1024), (8, 256, 512))
        ),
        *(
            Case(
                "cross_entropy", f"{rows} rows of {columns}", (rows,), (256,), [((rows,), F32)],
                lambda rows=rows, columns=columns: [
                    bfloats(rows, columns), integers(columns, rows), i32(columns),
                ],
            )
            for rows, columns in ((32, 4096), (132, 8192))
        ),
        *(
            Case(
                "online_softmax", f"{rows} rows of 1024", (rows // 4,), (32, 4), [((rows, 1024), F32)],
                lambda rows=rows: [floats(rows, 1024), i32(256)],
            )
            for rows in (64, 528)
        ),
        *(
            Case(
                "attention_mma", f"{heads} heads of {n}", (n // 64, heads), (128,), [((heads, n, 64), F16)],
                lambda heads=heads, n=n: [
                    *(floats(heads, n, 64, seed=seed).astype(F16) for seed in range(3)), i32(n),
                ],
            )
            for heads, n in ((2, 128), (16, 64))
        ),
    ]  # fmt: skip


def _turns(positions: int) -> Array:
    """Return cosine and sine of the angle of each pair of a head of 128 at each position."""
    angles = np.arange(positions)[:, None] * 10000.0 ** (-np.arange(64) / 64)
    return np.stack([np.cos(angles), np.sin(angles)], -1).astype(F32)


def _few_bits() -> list[Case]:
    return [
        *(
            Case(
                "quantise_rows", f"{rows} rows of 1024", (rows,), (256,), [((rows, 1024), np.int8), ((rows,), F32)],
                lambda rows=rows: [floats(rows, 1024)],
            )
            for rows in (64, 264)
        ),
        *(
            Case(
                "dequantise_int4", f"{8 * words}", (words // 256,), (256,), [((8 * words,), F16)],
                lambda words=words: [
                    integers(1 << 32, words, dtype=U32), floats(words // 16).astype(F16),
                ],
            )
            for words in (1 << 14, 1 << 17)
        ),
        *(
            Case(
                "int8_product", f"{n} x {n}", (n // 32, n // 32), (32, 8), [((n, n), I32)],
                lambda n=n: [integers(256, n, n, dtype=np.uint8, seed=seed) for seed in range(2)] + [i32(n)],
            )
            for n in (128, 192)
        ),
    ]  # fmt: skip


def _best_of_a_row() -> list[Case]:
    return [
        *(
            Case(
                "argmax_rows", f"{rows} rows of 2048", (rows,), (256,), [((rows,), I32)],
                lambda rows=rows: [floats(rows, 2048), i32(2048)],
            )
            for rows in (32, 132)
        ),
        *(
            Case(
                "top_eight", f"{rows} rows of 1024", (rows // 4,), (32, 4), [((rows, 8), U32)],
                lambda rows=rows: [integers(1 << 32, rows, 1024, dtype=U32)],
            )
            for rows in (32, 264)
        ),
    ]  # fmt: skip


def _images_and_grids() -> list[Case]:
    return [
        *(
            Case(
                "depthwise_3x3", f"{planes} of {n} x {n}", (n // 32, n // 8, planes), (32, 8),
                [((planes, n, n), F32)],
                lambda planes=planes, n=n: [floats(planes, n, n), floats(planes, 9, seed=2), i32(n)],
            )
            for planes, n in ((4, 64), (32, 64))
        ),
        *(
            Case(
                "convolve_3x3", f"8 of {n} x {n}", (n // 16, n // 16), (16, 16), [((8, n, n), F32)],
                lambda n=n: [floats(8, n, n), floats(8, 8, 9, seed=2), i32(n)],
            )
            for n in (32, 64)
        ),
        *(
            Case(
                "jacobi_strips", f"{n} x {n}", (n // 128, n // 32), (128,), [((n, n), F32)],
                lambda n=n: [floats(n + 2, n + 8), i32(n)],
            )
            for n in (128, 512)
        ),
        *(
            Case(
                "cluster_halo", f"{blocks} x {steps}", (blocks,), (256,), [((256 * blocks,), F32)],
                lambda blocks=blocks, steps=steps: [floats(256 * blocks), i32(steps)],
            )
            for blocks, steps in ((16, 16), (64, 16))
        ),
        Case(
            "cluster_edges", "16 x 16", (16,), (256,), [((256 * 16,), F32)],
            lambda: [floats(256 * 16), i32(16)],
        ),
    ]  # fmt: skip


def _sorted_and_counted() -> list[Case]:
    return [
        *(
            Case(
                "bitonic_sort", f"{n}", (n // 1024,), (512,), [((n,), U32)],
                lambda n=n: [integers(1 << 32, n, dtype=U32)],
            )
            for n in (1 << 11, 1 << 12)
        ),
        *(
            Case(
                "radix_counts", f"{n}", (32,), (256,), [((4, 256), U32)],
                lambda n=n: [integers(1 << 32, n, dtype=U32), i32(n)],
            )
            for n in (1 << 13, 1 << 15)
        ),
        *(
            Case(
                "scan_lookback", f"{1024 * tiles}", (tiles,), (256,), [((1024 * tiles,), U32)],
                lambda tiles=tiles: [
                    integers(100, 1024 * tiles, dtype=U32), np.zeros(1, U32), np.zeros(tiles, U32),
                ],
            )
            for tiles in (32, 200)
        ),
    ]  # fmt: skip


def _tables_and_graphs() -> list[Case]:
    return [
        *(
            Case(
                "hash_insert", f"{n}", (n // 256,), (256,), [((1,), U32), ((n,), U32)],
                lambda n=n: [
                    np.zeros(2 * n, U32), integers(n, n, dtype=U32) + U32(1), U32(2 * n - 1),
                ],
            )
            for n in (1 << 12, 1 << 14)
        ),
        *(
            Case(
                "frontier_step", f"{count} of {vertices}", (count // 128,), (128,), [((vertices,), I32), ((1,), I32)],
                lambda vertices=vertices, count=count: _frontier(vertices, count),
            )
            for vertices, count in ((1 << 13, 1024), (1 << 14, 4096))
        ),
    ]  # fmt: skip


def _frontier(vertices: int, count: int) -> Sequence[Array | np.generic]:
    """Return a graph of 1 to 15 edges a vertex, `count` vertices of it, and what a step from them takes as scratch."""
    rng = np.random.default_rng(4)
    starts = np.concatenate([[0], np.cumsum(rng.integers(1, 16, vertices))]).astype(I32)
    edges = rng.integers(0, vertices, int(starts[-1])).astype(I32)
    frontier = rng.permutation(vertices)[:count].astype(I32)
    visited = np.zeros(vertices, I32)
    visited[frontier] = 1
    return [starts, edges, frontier, i32(count), visited, np.zeros(vertices, I32)]


def _step_by_step() -> list[Case]:
    return [
        *(
            Case(
                "tridiagonal", f"{systems} of {n}", (systems // 64,), (64,), [((n, systems), F32)],
                lambda systems=systems, n=n: [
                    floats(n, systems), floats(n, systems, seed=2) + F32(8), floats(n, systems, seed=3),
                    floats(n, systems, seed=4), np.zeros((n, systems), F32), i32(n),
                ],
            )
            for systems, n in ((512, 64), (8448, 32))
        ),
        *(
            Case(
                "recurrence", f"{channels} over {length}", (channels // 128,), (128,), [((length, channels), F32)],
                lambda channels=channels, length=length: [
                    floats(length, channels), floats(length, channels, seed=2), i32(length),
                ],
            )
            for channels, length in ((1024, 64), (16896, 32))
        ),
        *(
            Case(
                "edit_distance", f"{words} pairs of 128", (words,), (128,), [((words,), I32)],
                lambda words=words: [
                    integers(4, words, 128, dtype=np.uint8, seed=seed) for seed in range(2)
                ],
            )
            for words in (16, 132)
        ),
        *(
            Case(
                "cholesky_small", f"{matrices} of 16 x 16", (matrices // 4,), (32, 4), [((matrices, 16, 16), F32)],
                lambda matrices=matrices: [_positive(matrices)],
            )
            for matrices in (64, 1056)
        ),
    ]  # fmt: skip


def _positive(matrices: int) -> Array:
    """Return symmetric positive definite matrices of 16 x 16; summed in order, as BLAS does it hangs on the host."""
    root = floats(matrices, 16, 16).astype(np.float64)
    total = np.zeros((matrices, 16, 16), F32)
    for k in range(16):
        total = (total + root[:, :, k, None] * root[:, None, :, k]).astype(F32)
    return (total + 4 * np.eye(16)).astype(F32)


def _others() -> list[Case]:
    return [
        *(
            Case(
                "fft_256", f"{transforms}", (transforms // 4,), (64, 4), [((transforms, 256, 2), F32)],
                lambda transforms=transforms: [floats(transforms, 256, 2)],
            )
            for transforms in (32, 132)
        ),
        *(
            Case(
                "chacha_blocks", f"{128 * blocks}", (blocks,), (128,), [((128 * blocks, 16), U32)],
                lambda: [integers(1 << 32, 8, dtype=U32)],
            )
            for blocks in (32, 264)
        ),
        *(
            Case(
                "option_paths", f"{128 * blocks} x 8", (blocks,), (128,), [((blocks,), F32)],
                lambda: [i32(8)],
            )
            for blocks in (32, 264)
        ),
        *(
            Case(
                "nearest_centre", f"{points} to 64", (points // 128,), (128,), [((points,), I32)],
                lambda points=points: [floats(points, 4), floats(64, 4, seed=2), i32(64)],
            )
            for points in (1 << 12, 1 << 15)
        ),
        *(
            Case(
                "bulk_ring", f"{blocks} x {tiles}", (blocks,), (128,), [((1024 * blocks * tiles,), F32)],
                lambda blocks=blocks, tiles=tiles: [floats(1024 * blocks * tiles), i32(tiles)],
            )
            for blocks, tiles in ((16, 8), (64, 8))
        ),
    ]  # fmt: skip
