"""Whether ptxas serialises wgmma is predicted from the PTX: twenty Triton kernels and variants of one, with ptxas as judge."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import hopsim as hs

FOLDER = Path(__file__).parents[2] / "data" / "triton_bf16"
SERIALISED = {
    "mm_tma_bf16_128x128x64_s2_w8_al",
    "mm_tma_bf16_128x128x64_s4_w8_al",
    "mm_tma_bf16_128x256x64_s3_w8_al",
    "mm_tma_bf16_128x256x64_s4_w8_al",
    "mm_tma_bf16_256x128x64_s3_w8_al",
    "mm_tma_e4m3_128x128x128_s4_w8",
    "mm_tma_e4m3_128x256x128_s3_w8",
    "mm_tma_fp16_128x128x64_s4_w8",
    "mm_tma_fp16_128x256x64_s3_w8",
}
JUDGING = Path(__file__).parents[2] / "silicon" / "judging" / "triton"
NAMES = sorted(path.stem for folder in (FOLDER, JUDGING) for path in folder.glob("*.ptx"))
VARIED = "mm_tma_bf16_128x128x64_s4_w8_al"


def text_of(name: str) -> str:
    folder = FOLDER if (FOLDER / f"{name}.ptx").exists() else JUDGING
    return (folder / f"{name}.ptx").read_text(encoding="utf-8")


def is_predicted(text: str) -> bool:
    module = hs.loads(text)
    (name,) = module
    return bool(module[name].serialised_wgmma)


def blocks(text: str) -> tuple[str, str, str, str]:
    """Cut the varied kernel into: before the loop's preparation, loop, zero-trip path, rest."""
    second = text.index("$L__BB0_2:")
    first = text.index("$L__BB0_1:")
    fourth = text.index("$L__BB0_4:")
    return text[:second], text[second:first], text[first:fourth], text[fourth:]


def variants() -> dict[str, tuple[str, bool]]:
    text = text_of(VARIED)
    head, loop, zero_trip, rest = blocks(text)
    bare = re.sub(r"\tmov\.b32 \t%r(1[4-9]\d|20\d), [^\n]*\n", "", zero_trip)
    assert bare != zero_trip
    return {
        "zero-trip path before the loop": (
            head + zero_trip + "\tbra.uni $L__BB0_4;\n" + loop + rest,
            True,
        ),
        "zero-trip path defines no accumulator": (head + loop + bare + rest, False),
        "loop waits for all groups": (
            text.replace("wait_group.sync.aligned 1", "wait_group.sync.aligned 0"),
            False,
        ),
    }


@pytest.mark.parametrize("name", NAMES)
def test_prediction_for_triton_kernels(name: str) -> None:
    assert is_predicted(text_of(name)) == (name in SERIALISED)


def test_the_lines_are_those_of_the_zero_trip_path() -> None:
    text = text_of(VARIED)
    lines = text.splitlines()
    found = hs.loads(text)["mm_tma"].serialised_wgmma
    assert len(found) == 64
    assert all(
        re.match(r"\tmov\.b32 \t%r\d+, (0f00000000|%r142);", lines[bound.line - 1])
        for bound in found
    )


@pytest.mark.parametrize("case", list(variants()))
def test_prediction_for_variants(case: str) -> None:
    text, wanted = variants()[case]
    assert is_predicted(text) is wanted


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not on PATH")
@pytest.mark.parametrize("case", [*NAMES, *variants()])
def test_ptxas_says_the_same(case: str, tmp_path: Path) -> None:
    text = variants()[case][0] if case in variants() else text_of(case)
    path = tmp_path / "kernel.ptx"
    path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["ptxas", "-arch=sm_90a", "-v", "-o", str(tmp_path / "out"), str(path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ("C7515" in done.stderr + done.stdout) == is_predicted(text)
