"""`hopsim layout mma|copy|smem|descriptor`: who holds what, and what it costs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from hopsim.cli.command import Command, Group
from hopsim.cli.options import GpuOption, JsonOption, extents
from hopsim.errors import ConfigError, MachineFault

if TYPE_CHECKING:
    from hopsim.cli.output import Output
    from hopsim.layout.swizzle import Swizzle
    from hopsim.report.layout_page import Page

app = typer.Typer(
    cls=Group,
    help="Show layouts: fragments, tiled copies, shared-memory tiles, matrix descriptors.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_ELEMENT_BYTES = {
    "fp16": 2, "bf16": 2, "tf32": 4, "f32": 4, "e4m3": 1, "e5m2": 1, "int8": 1, "f64": 8,
}  # fmt: skip


MMA_TYPES = tuple(name for name in _ELEMENT_BYTES if name != "f32")
"""Those of which there is a matrix instruction."""


class OperandName(StrEnum):
    """An operand of a matrix product."""

    A = "A"
    B = "B"
    C = "C"


class OrderName(StrEnum):
    """What is contiguous in a tensor."""

    ROW = "row"
    COL = "col"


class SwizzleName(StrEnum):
    """A swizzle of shared memory."""

    NONE = "none"
    B32 = "32B"
    B64 = "64B"
    B128 = "128B"


class MajorName(StrEnum):
    """Along what an operand's 16-byte chunks run."""

    K = "K"
    MN = "MN"


SvgOption = Annotated[
    str | None, typer.Option("--svg", metavar="FILE", help="Save the first grid as an image.")
]
HtmlOption = Annotated[
    str | None, typer.Option("--html", metavar="FILE", help="Save the whole page.")
]
RowsShown = Annotated[
    int, typer.Option("--rows", metavar="N", min=1, help="Rows of a grid shown as text.")
]
ColumnsShown = Annotated[
    int, typer.Option("--columns", metavar="N", min=1, help="Columns of a grid shown as text.")
]
DtypeOption = Annotated[
    str,
    typer.Option(
        "--dtype", metavar="TYPE", help="Element type: " + ", ".join(_ELEMENT_BYTES) + "."
    ),
]
SwizzleOption = Annotated[SwizzleName, typer.Option("--swizzle", help="Swizzle of the tile.")]


@app.command("mma", cls=Command)
def mma(
    shape: Annotated[
        str, typer.Argument(metavar="SHAPE", help="m16n8k16 (mma.sync), m64n128k16 (wgmma), ...")
    ],
    dtype: Annotated[
        str, typer.Option("--dtype", metavar="TYPE", help=f"Element type: {', '.join(MMA_TYPES)}.")
    ] = "bf16",
    operand: Annotated[OperandName, typer.Option("--operand", help="Which matrix.")] = (
        OperandName.C
    ),
    atoms: Annotated[
        str, typer.Option("--atoms", metavar="MxN", help="Atoms side by side on other threads.")
    ] = "1x1",
    values: Annotated[
        str, typer.Option("--values", metavar="MxN", help="Atoms that the same threads repeat.")
    ] = "1x1",
    along_n: Annotated[
        bool, typer.Option("--along-n/--along-m", help="Where the next atom's threads lie.")
    ] = False,
    rows: RowsShown = 32,
    columns: ColumnsShown = 16,
    svg: SvgOption = None,
    html: HtmlOption = None,
    json_file: JsonOption = None,
) -> None:
    """Show which thread holds which value of an mma.sync or wgmma fragment, tiled as CuTe tiles it."""
    from hopsim.layout.tiled import atom, tiled_mma
    from hopsim.report.layout_views import mma_page

    output = _output(svg, html, json_file)
    tiled = tiled_mma(
        atom(shape, dtype), _pair(atoms, "--atoms"), _pair(values, "--values"), along_n
    )
    page = mma_page(tiled, operand.value)
    _finish("mma", page, rows, columns, svg, html, output)


@app.command("copy", cls=Command)
def copy(
    thr: Annotated[
        str, typer.Option("--thr", metavar="LAYOUT", help="Threads, e.g. (16,8):(8,1).")
    ],
    val: Annotated[str, typer.Option("--val", metavar="LAYOUT", help="Values, e.g. (1,8).")],
    tensor: Annotated[
        str, typer.Option("--tensor", metavar="MxN", help="Extents of the tensor.")
    ] = "4096x4096",
    order: Annotated[OrderName, typer.Option("--order", help="row: rows are contiguous.")] = (
        OrderName.ROW
    ),
    dtype: DtypeOption = "bf16",
    rows: RowsShown = 32,
    columns: ColumnsShown = 16,
    svg: SvgOption = None,
    html: HtmlOption = None,
    json_file: JsonOption = None,
) -> None:
    """Show a TiledCopy: its map, how far it vectorises, the sectors and lines it touches."""
    from hopsim.layout.tiled import tiled_copy
    from hopsim.layout.tiled_notation import parse_layout
    from hopsim.report.layout_views import copy_page

    output = _output(svg, html, json_file)
    tiled = tiled_copy(parse_layout(thr), parse_layout(val))
    page = copy_page(tiled, _pair(tensor, "--tensor"), order.value, _element_bytes(dtype))
    _finish("copy", page, rows, columns, svg, html, output)


@app.command("smem", cls=Command)
def smem(
    tile: Annotated[
        str, typer.Option("--tile", metavar="RxC", help="Rows and elements of a row.")
    ] = "32x64",
    dtype: DtypeOption = "bf16",
    swizzle: SwizzleOption = SwizzleName.B128,
    gpu: GpuOption = "h100-sxm",
    rows: RowsShown = 16,
    columns: ColumnsShown = 8,
    svg: SvgOption = None,
    html: HtmlOption = None,
    json_file: JsonOption = None,
) -> None:
    """Show a shared-memory tile, swizzled: addresses, banks, conflicts of usual accesses."""
    from hopsim.config import load
    from hopsim.report.layout_views import smem_page

    output = _output(svg, html, json_file)
    mode = _swizzle(swizzle)
    item = _element_bytes(dtype)
    down, along = _pair(tile, "--tile")
    row_bytes = along * item
    if row_bytes % 16 or (mode and row_bytes > mode.width_bytes):
        most = f" and at most {mode.width_bytes}" if mode else ""
        raise ConfigError(
            f"a row must be a multiple of 16 bytes{most}, got {along} x {item} = {row_bytes}",
            where="--tile",
            hint="wider tiles are several slabs of one swizzle width",
        )
    page = smem_page(down, along, item, mode, load(gpu).smem)
    _finish("smem", page, rows, columns, svg, html, output)


@app.command("descriptor", cls=Command)
def descriptor(
    tile: Annotated[
        str, typer.Option("--tile", metavar="RxK", help="Rows (M or N) and K, in elements.")
    ] = "64x64",
    major: Annotated[MajorName, typer.Option("--major", help="What is contiguous.")] = MajorName.K,
    dtype: DtypeOption = "bf16",
    swizzle: SwizzleOption = SwizzleName.B128,
    start: Annotated[
        str, typer.Option("--start", metavar="N", help="Shared address of the tile: 1024 or 0x400.")
    ] = "0",
    rows: RowsShown = 16,
    columns: ColumnsShown = 8,
    svg: SvgOption = None,
    html: HtmlOption = None,
    json_file: JsonOption = None,
) -> None:
    """Show the canonical layout of a wgmma operand: LBO, SBO, descriptor, steps along K."""
    from hopsim.layout.operand_tile import canonical
    from hopsim.report.layout_views import descriptor_page

    output = _output(svg, html, json_file)
    down, along = _pair(tile, "--tile")
    mode, address = _swizzle(swizzle), _address(start)
    found = canonical(major.value, mode, down, along, _element_bytes(dtype))
    if mode and address % mode.period_bytes:
        raise ConfigError(
            f"expected a multiple of {mode.period_bytes}, after which the {swizzle.value} swizzle repeats, got {start}",
            where="--start",
            hint=f"--start {address // mode.period_bytes * mode.period_bytes:#x}",
        )
    try:
        page = descriptor_page(found, address)
    except MachineFault as fault:
        # A kernel would fault; here it is what was asked for.
        raise ConfigError(fault.what, where="--start", hint=fault.hint) from None
    _finish("descriptor", page, rows, columns, svg, html, output)


def _finish(
    name: str,
    page: Page,
    rows: int,
    columns: int,
    svg: str | None,
    html: str | None,
    output: Output,
) -> None:
    from hopsim.cli.output import write_file
    from hopsim.report import layout_draw

    output.show(layout_draw.Drawing(page, rows, columns))
    if svg is not None:
        with output.saving():
            write_file(svg, layout_draw.svg(page.grids[0]), "--svg")
    if html is not None:
        with output.saving():
            write_file(html, layout_draw.html(page), "--html")
    output.finish({"command": f"layout {name}", **page.content()}, 0)


def _output(svg: str | None, html: str | None, json_file: str | None) -> Output:
    """Return where a command writes.

    Raises: ConfigError: a file cannot be written.
    """
    from hopsim.cli.output import Output, check_suffix, check_targets

    check_targets((svg, "--svg"), (html, "--html"))
    if svg is not None:
        check_suffix(svg, "--svg", (".svg",))
    if html is not None:
        check_suffix(html, "--html", (".html", ".htm"))
    return Output(json_file)


def _pair(text: str, option: str) -> tuple[int, int]:
    first, second = extents(text, 2, option, "64x32")
    return first, second


def _address(text: str) -> int:
    """Return a shared address, decimal or hexadecimal.

    Raises: ConfigError: it is neither.
    """
    try:
        address = int(text, 16 if text[:2].lower() == "0x" else 10)
    except ValueError:
        address = -1
    if address < 0:
        raise ConfigError(
            f"expected an address, decimal or hexadecimal, got {text!r}",
            where="--start",
            hint="--start 0x400",
        )
    return address


def _swizzle(name: SwizzleName) -> Swizzle:
    from hopsim.layout.swizzle import Swizzle

    return Swizzle(list(SwizzleName).index(name))


def _element_bytes(dtype: str) -> int:
    if dtype not in _ELEMENT_BYTES:
        raise ConfigError(
            f"dtype must be one of {', '.join(_ELEMENT_BYTES)}, got {dtype!r}", where="--dtype"
        )
    return _ELEMENT_BYTES[dtype]
