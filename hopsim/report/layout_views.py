"""The pages of `hopsim layout`: fragments, tiled copies, shared-memory tiles, matrix descriptors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopsim.config.groups import Smem
from hopsim.hw.timing.shared_memory import Banks
from hopsim.layout.operand_tile import OperandTile
from hopsim.layout.swizzle import Swizzle, swizzle_addresses
from hopsim.layout.tiled import Operand, TiledCopy, TiledMma
from hopsim.layout.tiled_access import CopyAccess, Order, access, better
from hopsim.layout.tiled_notation import show
from hopsim.report.layout_page import Grid, Page, Table

_CHUNK_BYTES = 16
_WARP = 32
_OPERAND_AXES: dict[Operand, tuple[str, str]] = {"A": ("m", "k"), "B": ("n", "k"), "C": ("m", "n")}


def mma_page(tiled: TiledMma, operand: Operand) -> Page:
    """Return which thread holds which value of one operand of a tiled product."""
    one = tiled.atom
    facts = [
        ("MMA_Atom", one.name),
        ("ThrID", f"{one.threads}:1"),
        ("Shape_MNK", show(one.shape_mnk)),
        *((f"Layout{name}_TV", str(one.layout(name))) for name in ("A", "B", "C")),
        ("ThrLayoutVMNK", str(tiled.thr_layout_vmnk)),
        ("Tile_MNK", show(tiled.tile_mnk)),
        *((f"TiledLayout{name}_TV", str(tiled.layout_tv(name))) for name in ("A", "B", "C")),
    ]
    notes: list[str] = []
    if one.threads == 128 and operand == "A":
        notes.append("A is held so when it comes from registers; from shared memory see descriptor")
    if one.threads == 128 and operand == "B":
        notes.append("B of wgmma always lies in shared memory: all threads name the whole block")
    row, col = tiled.places(operand)
    rows, columns = tiled.extents(operand)
    names, groups = _holders(row, col, rows, columns)
    down, along = _OPERAND_AXES[operand]
    grid = Grid(
        f"{operand} ({rows} x {columns}): thread and value of each element",
        [f"{down}{r}" for r in range(rows)],
        [f"{along}{c}" for c in range(columns)],
        names,
        groups,
    )
    return Page(f"TiledMMA, operand {operand}", facts, notes, grids=(grid,))


def _holders(
    row: NDArray[np.int64], col: NDArray[np.int64], rows: int, columns: int
) -> tuple[list[list[str]], list[list[int]]]:
    """Return text and colour of each element; of several holders the lowest thread is named."""
    threads, values = row.shape
    holder = np.full((rows, columns), -1, np.int64)
    flat = np.arange(threads * values, dtype=np.int64).reshape(threads, values)
    holder[row[::-1].ravel(), col[::-1].ravel()] = flat[::-1].ravel()
    cells = [[f"T{h // values}V{h % values}" for h in line] for line in holder.tolist()]
    groups = [[h // values for h in line] for line in holder.tolist()]
    return cells, groups


def copy_page(copy: TiledCopy, extents: tuple[int, int], order: Order, element_bytes: int) -> Page:
    """Return the map of a tiled copy and what it costs on a tensor."""
    found = access(copy, extents, order, element_bytes)
    turned = better(copy, extents, order, element_bytes)
    facts = [
        ("Tiler_MN", show(copy.tiler_mn)),
        ("TiledLayout_TV", str(copy.layout_tv)),
        ("tensor", f"{extents[0]} x {extents[1]}, {order}-major, {element_bytes} bytes an element"),
    ]
    rows = [_access_row("this copy", found)]
    notes: list[str] = []
    if turned is not None:
        threads, values, then = turned
        rows.append(_access_row("turned", then))
        notes.append(
            f"better: --thr '{threads}' --val '{values}' runs along the contiguous dimension"
        )
    table = Table(
        "accesses of one tile",
        ("copy", "widest access", "accesses a thread", "sectors (needed)", "lines (needed)"),
        rows,
    )
    row, col = copy.places()
    cells, groups = _holders(row, col, *copy.tiler_mn)
    grid = Grid(
        "tile: thread and value of each element",
        [f"m{r}" for r in range(copy.tiler_mn[0])],
        [f"n{c}" for c in range(copy.tiler_mn[1])],
        cells,
        groups,
    )
    return Page("TiledCopy", facts, notes, (table,), (grid,))


def _access_row(name: str, found: CopyAccess) -> tuple[str, ...]:
    return (
        name,
        f"{found.vector_bytes} bytes",
        str(found.instructions),
        f"{found.sectors} ({found.needed_sectors})",
        f"{found.lines} ({found.needed_lines})",
    )


def smem_page(rows: int, columns: int, element_bytes: int, swizzle: Swizzle, smem: Smem) -> Page:
    """Return where the chunks of a tile lie, which banks they use, and what accesses cost.

    Args:
        columns: elements of a row; at most one swizzle width, or any multiple of 16 bytes without.
        smem: banks and their width.
    """
    pitch = columns * element_bytes if swizzle is Swizzle.NONE else swizzle.width_bytes
    chunks = columns * element_bytes // _CHUNK_BYTES
    linear = np.arange(rows)[:, None] * pitch + np.arange(chunks) * _CHUNK_BYTES
    placed = swizzle_addresses(linear.astype(np.int64), swizzle)
    per_row = smem.banks * smem.bank_width_bytes
    bank = placed % per_row // smem.bank_width_bytes
    cells = [
        [f"{at:#06x} b{first:02d}" for at, first in zip(line, banks, strict=True)]
        for line, banks in zip(placed.tolist(), bank.tolist(), strict=True)
    ]
    groups = (bank * smem.bank_width_bytes // _CHUNK_BYTES).tolist()
    grid = Grid(
        "byte offset and first bank of each 16-byte chunk",
        [f"row {r}" for r in range(rows)],
        [f"chunk {c}" for c in range(chunks)],
        cells,
        groups,
    )
    table = Table(
        "wavefronts of one warp (without conflicts)",
        ("access", f"swizzle {_mode(swizzle)}", "no swizzle"),
        _conflicts(rows, columns * element_bytes, element_bytes, swizzle, pitch, Banks(smem)),
    )
    facts = [
        ("tile", f"{rows} rows of {columns} elements, {element_bytes} bytes each"),
        ("swizzle", f"{_mode(swizzle)}: Swizzle<{swizzle.value},4,3> on byte addresses"),
        ("pitch", f"{pitch} bytes"),
        ("banks", f"{smem.banks} of {smem.bank_width_bytes} bytes"),
    ]
    return Page("shared-memory tile", facts, tables=(table,), grids=(grid,))


def _conflicts(
    rows: int, row_bytes: int, element_bytes: int, swizzle: Swizzle, pitch: int, banks: Banks
) -> list[tuple[str, str, str]]:
    lane = np.arange(_WARP)
    chunks = row_bytes // _CHUNK_BYTES
    patterns: list[tuple[str, NDArray[np.int64], NDArray[np.int64], int]] = [
        ("a row after the other, 16 bytes a lane", lane // chunks, lane % chunks * 16, 16),
        ("ldmatrix.x4: 16 rows by 32 bytes", lane % 16, lane // 16 * 16 % row_bytes, 16),
        ("a column of chunks, 16 bytes a lane", lane, lane * 0, 16),
        ("a column of elements", lane, lane * 0, max(element_bytes, 4)),
        ("accumulator pairs, 8 rows by 4 lanes", lane // 4, lane % 4 * 8 % row_bytes, 8),
    ]
    found: list[tuple[str, str, str]] = []
    for name, row, within, width in patterns:
        if int(row.max()) >= rows:
            continue
        shown: list[str] = []
        for mode, step in ((swizzle, pitch), (Swizzle.NONE, row_bytes)):
            linear = (row * step + within).astype(np.int64)
            at = swizzle_addresses(linear - linear % _CHUNK_BYTES, mode) + linear % _CHUNK_BYTES
            waves, ideal = banks.wavefronts(at.astype(np.uint32), width, _WARP)
            shown.append(f"{waves} ({ideal})")
        found.append((name, shown[0], shown[1]))
    return found


def _mode(swizzle: Swizzle) -> str:
    return "none" if swizzle is Swizzle.NONE else f"{swizzle.width_bytes}B"


def descriptor_page(tile: OperandTile, start_addr: int) -> Page:
    """Return the canonical layout of an operand tile, its descriptor and where its chunks lie."""
    first = tile.descriptor(start_addr)
    unused = "" if tile.uses_leading_offset else " (not used)"
    chunk = _CHUNK_BYTES // tile.element_bytes
    facts = [
        ("operand", f"{tile.rows} x {tile.k}, {tile.element_bytes} bytes each, {tile.major}-major"),
        ("canonical layout", f"{tile.cute}    T = {chunk}"),
        ("swizzle", _mode(tile.swizzle)),
        ("LBO", f"{tile.leading_byte_offset} bytes{unused}"),
        ("SBO", f"{tile.stride_byte_offset} bytes"),
        (
            "TMA",
            f"{tile.boxes} {'box' if tile.boxes == 1 else 'boxes'} of {tile.box[0]} x {tile.box[1]}, "
            f"{tile.total_bytes} bytes",
        ),
        ("start", f"{start_addr:#x}"),
        ("descriptor", f"{first.encode():#018x}"),
    ]
    steps = Table(
        "one wgmma after the other along K",
        ("step", "start address", "descriptor"),
        [
            (
                str(i),
                f"{start_addr + off:#x}",
                f"{tile.descriptor(start_addr + off).encode():#018x}",
            )
            for i, off in enumerate(tile.step_offsets)
        ],
    )
    return Page("matrix descriptor", facts, tables=(steps,), grids=(_operand_grid(tile),))


def _operand_grid(tile: OperandTile) -> Grid:
    """Return the byte offset of every chunk of the tile."""
    line_count = tile.rows if tile.major == "K" else tile.k
    inner = tile.k if tile.major == "K" else tile.rows
    per_box = tile.box[0] * tile.element_bytes // _CHUNK_BYTES
    chunks = inner * tile.element_bytes // _CHUNK_BYTES
    line = np.arange(line_count)[:, None]
    at = np.arange(chunks)[None, :]
    box_bytes = tile.total_bytes // tile.boxes
    linear = at // per_box * box_bytes + line * tile.swizzle.width_bytes + at % per_box * 16
    placed = swizzle_addresses(linear.astype(np.int64), tile.swizzle)
    name, along = ("row", "k") if tile.major == "K" else ("k", "row")
    elements = _CHUNK_BYTES // tile.element_bytes
    return Grid(
        f"byte offset of each 16-byte chunk ({elements} elements along {tile.major})",
        [f"{name} {i}" for i in range(line_count)],
        [f"{along} {i * elements}" for i in range(chunks)],
        [[f"{offset:#06x}" for offset in row] for row in placed.tolist()],
        (placed % 128 // _CHUNK_BYTES).tolist(),
    )
