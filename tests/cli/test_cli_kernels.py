"""`hopsim attention`, `hopsim convolution` and `hopsim fp8`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hopsim.cli.app import app
from tests.cli.golden import assert_page


def hopsim(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize("causal", ["--causal", "--no-causal"])
def test_attention_has_the_reference_s_bits(causal: str, tmp_path: Path) -> None:
    ptx, data = tmp_path / "a.ptx", tmp_path / "a.json"
    done = hopsim(
        "attention", "--seq-q", "96", "--seq-kv", "80", "--head-dim", "64", "--block-kv", "32",
        causal, "--ptx", str(ptx), "--json", str(data),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "O has the bits of the reference" in done.stdout
    content = json.loads(data.read_text())
    assert (content["verdict"], content["comparison"]["equal"]) == ("clean", True)
    assert content["attention"]["causal"] is (causal == "--causal")
    assert 0 < content["largest_error"] < 0.02
    assert ".visible .entry attention_bf16_d64_kv32" in ptx.read_text()


def test_attention_without_values_is_only_timed() -> None:
    done = hopsim("attention", "--seq-q", "256", "--no-values")
    assert done.exit_code == 0, done.output
    assert "TFLOP/s" in done.stdout
    assert "bits" not in done.stdout.split("not checked")[0]


def test_a_convolution_has_the_reference_s_bits(tmp_path: Path) -> None:
    ptx, data = tmp_path / "a.ptx", tmp_path / "a.json"
    done = hopsim(
        "convolution", "--height", "9", "--width", "7", "--filters", "16", "--extent", "3x2", "--stride", "2x1",
        "--padding", "1x0", "--tile", "64x16", "--ptx", str(ptx), "--json", str(data),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "1 image, 9 x 7 x 64 to 5 x 6 x 16, filter 3x2, bf16" in done.stdout
    assert "y has the bits of the reference: all 480 elements equal" in done.stdout
    content = json.loads(data.read_text())
    assert (content["verdict"], content["comparison"]["equal"]) == ("clean", True)
    assert content["convolution"]["stride"] == [2, 1]
    assert content["cycles"] > 0
    assert ".im2col." in ptx.read_text()


def test_a_convolution_without_values_is_only_timed() -> None:
    done = hopsim("convolution", "--no-values", "--persistent")
    assert done.exit_code == 0, done.output
    assert "TFLOP/s" in done.stdout
    assert "bits" not in done.stdout.split("not checked")[0]


def test_fp8_tells_both_errors(tmp_path: Path) -> None:
    data = tmp_path / "a.json"
    done = hopsim(
        "fp8", "--m", "64", "--n", "72", "--k", "512", "--tile-m", "64", "--tile-n", "24",
        "--json", str(data),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    fine, coarse = json.loads(data.read_text())["kernels"]
    assert (fine["schedule_of_kernel"], coarse["schedule_of_kernel"]) == ("fp8-scaled", "fp8")
    for one in (fine, coarse):
        assert (one["equal"], one["verdict"]) == (True, "clean")
    assert fine["error_of_sums"]["relative"] < coarse["error_of_sums"]["relative"]
    assert f"{fine['error_of_sums']['relative']:.2e}" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("attention", "--head-dim", "96"), "head_dim must be 64 or 128"),
        (("attention", "--stages", "9"), "bytes of shared memory"),
        (("attention", "--seq-kv", "0"), "seq_kv must be from 1 to 16777216, got 0"),
        (("convolution", "--channels", "12"), "channels must fill a multiple of 16 bytes, got 12"),
        (("convolution", "--padding", "1x-1"), "expected 2 whole numbers joined by x, got '1x-1'"),
        (("convolution", "--extent", "0x3"), "expected 2 positive numbers joined by x, got '0x3'"),
        (("fp8", "--tile-n", "20"), "tile n"),
        (("fp8", "--spread", "nan"), "fp8: spread must be from 0 to 48, got nan"),
        (("fp8", "--spread", "inf"), "fp8: spread must be from 0 to 48, got inf"),
        (("fp8", "--spread", "-5"), "fp8: spread must be from 0 to 48, got -5"),
    ],
)
def test_mistakes_are_told(arguments: tuple[str, ...], said: str) -> None:
    done = hopsim(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("arguments", "ways"),
    [
        (("maps", "--m", "64", "--n", "64", "--k", "64", "--tile", "64x64x64"), 3),
        (
            ("dependent", "--m", "64", "--n", "64", "--k", "64", "--l", "64", "--tile", "64x64x64"),
            2,
        ),
    ],
)
def test_surroundings_show_each_launch(
    arguments: tuple[str, ...], ways: int, tmp_path: Path
) -> None:
    data = tmp_path / "a.json"
    done = hopsim("surroundings", *arguments, "--json", str(data))
    assert done.exit_code == 0, done.output
    found = json.loads(data.read_text())["ways"]
    assert [(one["equal"], one["verdict"]) for one in found] == [(True, "clean")] * ways
    assert all(f"{one['cycles']:,}" in done.stdout for one in found)


PAGE = Path(__file__).parents[2] / "docs" / "kernels.md"


def test_the_page_of_kernels_shows_what_the_commands_print() -> None:
    """Cycles move with the timing model; the page shows what does not."""
    assert_page(PAGE, hopsim, 4)
