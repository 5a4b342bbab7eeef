"""The first set (`workloads.cu`): what it showed the model to lack was then measured, so it guided the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hopsim.kernels.measured.workloads.case import Array, Case, Shape, floats, i32, integers


def _square(kernel: str, n: int, block: Shape, tile: tuple[int, int], inputs: int) -> Case:
    """A kernel of n x n floats out of `inputs` arrays of so many."""
    return Case(
        kernel, f"{n} x {n}", (n // tile[0], n // tile[1]), block, [((n, n), np.float32)],
        lambda: [*(floats(n, n, seed=i) for i in range(inputs)), i32(n)],
    )  # fmt: skip


def _half_product(n: int) -> Case:
    return Case(
        "gemm_wmma", f"{n} x {n}", (n // 32, n // 32), (128,), [((n, n), np.float32)],
        lambda: [floats(n, n, seed=i).astype(np.float16) for i in range(2)] + [i32(n)],
    )  # fmt: skip


def _chase(hops: int, words: int) -> Case:
    def cycle() -> Sequence[Array | np.generic]:
        order = np.random.default_rng(3).permutation(words)
        following = np.empty(words, np.uint32)
        following[order] = np.roll(order, -1)
        return [following, i32(hops)]

    return Case("chase", f"{hops} hops in {words} words", (1,), (32,), [((32,), np.uint32)], cycle)


def _sparse(kernel: str, rows: int, in_row: int, rows_of_a_block: int) -> Case:
    def matrix() -> Sequence[Array | np.generic]:
        rng = np.random.default_rng(4)
        lengths = rng.integers(1, 2 * in_row, rows)
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        count = int(starts[-1])
        columns = rng.integers(0, rows, count).astype(np.int32)
        return [starts, columns, floats(count), floats(rows, seed=5), i32(rows)]

    return Case(
        kernel, f"{rows} rows of {in_row}", (rows // rows_of_a_block,), (128,), [((rows,), np.float32)], matrix
    )  # fmt: skip


def cases() -> list[Case]:
    """Return all launches, those of a kernel together."""
    found: list[Case] = []
    for n in (256, 1024):
        found.append(_square("transpose_naive", n, (32, 8), (32, 32), 1))
        found.append(_square("transpose_tiled", n, (32, 8), (32, 32), 1))
        found.append(_square("stencil", n, (32, 8), (32, 8), 1))
    for n in (128, 256):
        found.append(_square("gemm_naive", n, (16, 16), (16, 16), 2))
        found.append(_square("gemm_tiled", n, (32, 32), (32, 32), 2))
    for n in (256, 512):
        found.append(_square("gemm_registers", n, (256,), (64, 64), 2))
        found.append(_half_product(n))
    for n in (1 << 15, 1 << 18):
        words = [((n,), np.float32)]
        found += [
            Case(
                "gather", f"{n}", (n // 256,), (256,), words,
                lambda n=n: [floats(n), integers(n, n), i32(n)],
            ),
            Case(
                "convolve", f"{n}", (n // 256,), (256,), words,
                lambda n=n: [floats(n + 16), i32(n)],
            ),
            Case(
                "staged_copies", f"{n}", (64,), (256,), words, lambda n=n: [floats(n), i32(n)]
            ),
            Case(
                "block_sums", f"{n}", (64,), (256,), [((64,), np.float32)],
                lambda n=n: [floats(n), i32(n)],
            ),
            Case(
                "cluster_sums", f"{n}", (64,), (256,), [((16,), np.float32)],
                lambda n=n: [floats(n), i32(n)],
            ),
            Case(
                "scan_blocks", f"{n}", (n // 512,), (512,), [((n,), np.uint32)],
                lambda n=n: [integers(100, n, dtype=np.uint32)],
            ),
            Case(
                "histogram_shared", f"{n}", (64,), (256,), [((256,), np.uint32)],
                lambda n=n: [integers(256, n, dtype=np.uint8), i32(n)],
            ),
            Case(
                "histogram_global", f"{n}", (n // 256,), (256,), [((256,), np.uint32)],
                lambda n=n: [integers(256, n, dtype=np.uint8), i32(n)],
            ),
            Case(
                "one_counter", f"{n}", (n // 256,), (256,), [((1,), np.uint32), ((n,), np.uint32)],
                list,
            ),
            Case(
                "transcendental", f"{n}", (n // 256,), (256,), words,
                lambda n=n: [floats(n), i32(n)],
            ),
            Case(
                "sort_lists", f"{n}", (n // 1024,), (64,), [((n,), np.int32)],
                lambda n=n: [integers(1000, n)],
            ),
        ]  # fmt: skip
    for rows in (64, 264):
        found += [
            Case(
                "softmax_rows", f"{rows} rows of 2048", (rows,), (256,), [((rows, 2048), np.float32)],
                lambda rows=rows: [floats(rows, 2048), i32(2048)],
            ),
            Case(
                "layer_norm", f"{4 * rows} rows of 1024", (rows,), (32, 4), [((4 * rows, 1024), np.float16)],
                lambda rows=rows: [
                    floats(4 * rows, 1024).astype(np.float16), floats(1024, seed=6).astype(np.float16), i32(1024),
                ],
            ),
        ]  # fmt: skip
    for n in (1024, 4096):
        found.append(
            Case(
                "bodies", f"{n}", (n // 128,), (128,), [((n, 4), np.float32)],
                lambda n=n: [floats(n, 4), i32(n)],
            )
        )  # fmt: skip
    for n, limit in ((128, 256), (512, 64)):
        found.append(
            Case(
                "mandelbrot", f"{n} x {n}, {limit}", (n // 16, n // 16), (16, 16), [((n, n), np.int32)],
                lambda n=n, limit=limit: [i32(n), i32(limit)],
            )
        )  # fmt: skip
    for blocks, steps in ((132, 64), (1056, 64)):
        found += [
            Case(
                "random_walk", f"{blocks} x {steps}", (blocks,), (256,), [((256 * blocks,), np.uint32)],
                lambda steps=steps: [i32(steps)],
            ),
            Case(
                "doubles", f"{blocks} x {steps // 4}", (blocks,), (128,), [((128 * blocks,), np.float64)],
                lambda blocks=blocks, steps=steps: [
                    np.random.default_rng(7).uniform(-1, 1, 128 * blocks), i32(steps // 4),
                ],
            ),
        ]  # fmt: skip
    for rows in (4096, 16384):
        found.append(_sparse("spmv_rows", rows, 16, 128))
        found.append(_sparse("spmv_warps", rows, 64, 4))
    found += [_chase(200, 1 << 10), _chase(200, 1 << 20)]
    return found
