from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hopsim.cli.app import app
from hopsim.cli.layout import MMA_TYPES
from hopsim.layout.tiled import DTYPES
from tests.cli.golden import assert_page

PAGE = Path(__file__).parents[2] / "docs" / "layouts.md"


def hopsim(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_the_page_of_layouts_shows_what_the_commands_print() -> None:
    assert_page(PAGE, hopsim, 6)


@pytest.mark.parametrize(
    "arguments",
    [
        ("mma", "m64n64k16"),
        ("mma", "m16n8k8", "--dtype", "tf32", "--operand", "A"),
        ("copy", "--thr", "(16,8):(8,1)", "--val", "(1,8)"),
        ("smem", "--tile", "64x32", "--swizzle", "64B"),
        ("descriptor", "--major", "MN"),
    ],
)
def test_images_and_pages_show_every_cell(arguments: tuple[str, ...], tmp_path: Path) -> None:
    svg, html, data = (tmp_path / name for name in ("a.svg", "a.html", "a.json"))
    done = hopsim("layout", *arguments, "--svg", str(svg), "--html", str(html), "--json", str(data))
    assert done.exit_code == 0, done.output
    content = json.loads(data.read_text())
    cells = [cell for row in content["grids"][0]["cells"] for cell in row]
    root = ET.fromstring(svg.read_text())
    drawn = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    # One rectangle is the ground.
    assert len(root.findall("{http://www.w3.org/2000/svg}rect")) == len(cells) + 1
    assert root.get("aria-label") == drawn[0]
    assert set(cells) <= set(drawn)
    assert svg.read_text() in html.read_text()
    assert all(name in html.read_text() for name in content["facts"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("mma", "m16n8k16", "--dtype", "int4"), "dtype must be one of"),
        (("mma", "m16n8k16", "--atoms", "2"), "expected 2 positive numbers joined by x"),
        (("copy", "--thr", "(16,8):(8,2)", "--val", "(1,8)"), "must number its 128 elements"),
        (
            ("copy", "--thr", "(16,8)", "--val", "(1,8)", "--tensor", "8x8"),
            "larger than the tensor",
        ),
        (("smem", "--tile", "8x128"), "at most 128, got 128 x 2 = 256"),
        (("descriptor", "--major", "MN", "--dtype", "e4m3"), "need a 16-bit type"),
        (("descriptor", "--tile", "60x64"), "rows in eights"),
        (("descriptor", "--start", "5", "--swizzle", "none"), "must be a multiple of 16"),
        (
            ("descriptor", "--start", "0x480"),
            "--start: expected a multiple of 1024, after which the 128B swizzle repeats, got 0x480\n  try: --start 0x400",
        ),
        (("descriptor", "--start", "5"), "--start: expected a multiple of 1024"),
        (
            ("descriptor", "--start", "0x3G"),
            "--start: expected an address, decimal or hexadecimal, got '0x3G'",
        ),
        (
            ("descriptor", "--start", "-16"),
            "expected an address, decimal or hexadecimal, got '-16'",
        ),
        (("mma", "m16n8k16", "--dtype", "f32"), "dtype must be one of fp16, bf16, tf32,"),
    ],
)
def test_mistakes_are_told(arguments: tuple[str, ...], said: str) -> None:
    done = hopsim("layout", *arguments)
    assert done.exit_code == 2
    assert said in done.stderr


def test_an_address_is_hexadecimal_or_decimal() -> None:
    hexadecimal = hopsim("layout", "descriptor", "--start", "0x400").stdout
    assert hexadecimal == hopsim("layout", "descriptor", "--start", "1024").stdout
    assert "start             0x400\n" in hexadecimal


def test_the_types_of_a_command_are_those_that_it_takes() -> None:
    assert MMA_TYPES == DTYPES
    assert f"Element type: {', '.join(DTYPES)}." in " ".join(
        hopsim("layout", "mma", "--help").stdout.split()
    )


def test_without_the_library_the_user_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from hopsim.layout.tiled import library

    library.cache_clear()
    monkeypatch.setitem(sys.modules, "tensor_layouts", None)
    done = hopsim("layout", "mma", "m16n8k16")
    monkeypatch.undo()
    library.cache_clear()
    assert done.exit_code == 2
    assert "pip install 'hopsim[layout]'" in done.stderr
