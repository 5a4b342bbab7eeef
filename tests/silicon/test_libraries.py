"""Kernels of libraries as their own host code launches them: the bits of silicon, what is wrong in them, and their cycles."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest

import hopsim as hs
from hopsim.kernels.measured import captured
from hopsim.kernels.measured.captured import COLLECTIONS, CYCLES, Captured

FOLDER = Path(__file__).parent
H200 = FOLDER / "h200"
SMALLEST: Final[Mapping[str, tuple[str, ...]]] = {
    "cutlass": ("256x384x512", "256x384x512 beta 0.5"),
    "flash_attention": ("300x412x2x1",),
    "deep_gemm": ("200",),
}
"""The launches whose values are computed here."""
LARGER: Final[Mapping[str, tuple[str, ...]]] = {
    "cutlass": ("512x512x512",),
    "flash_attention": ("512x512x16x16",),
    "deep_gemm": (),
}
ORDERS: Final[tuple[dict[str, Any], ...]] = (
    {"schedule": "in-order"},
    {"schedule": "seeded", "seed": 3},
    {"schedule": "adversarial"},
)
RACE: Final = {"HS513", "HS500", "HS501"}
"""The barrier of FlashInfer's epilogue on which the same threads arrive and wait; whether it matters depends on the order."""
HABITS: Final[Mapping[str, set[str]]] = {
    # No fence.proxy.async between cp.async and the wgmma that reads what it brought.
    "cp_async_bf16_128x128x64": {"HS103"},
    # Nor between stmatrix, which transposes V, and wgmma; nor between ldmatrix of V and the copy that brings the next one.
    "e4m3_128": {"HS102", "HS104"},
}
WITHIN: Final = 0.1
FURTHER: Final[Mapping[str, float]] = {
    "bf16_64_causal": 0.11,
    "cooperative_bf16_no_smem_128x128x64_2x1": 0.25,
    "cp_async_bf16_128x128x64": 0.32,
    "pingpong_f16_bias_relu_128x128x64": 0.16,
    "pingpong_f16_sums_f16_64x128x64_1x2": 0.16,
    "stream_k_bf16_128x128x64": 0.2,
}
"""Programs that are further off: D-CUTLASS, D-ATTENTION."""
DELAYED: Final[Mapping[str, str]] = {
    "f16_128": "72fbf41e2cce3518",
    "bf16_128_causal": "d2b54fe0fe0ac7f3",
    "bf16_256": "9d27210c4e6ee476",
}
"""How the SHA-256 of O begins that an H200 gave where the first of two warpgroups comes late (2026-11-28)."""
RACY: Final = (*DELAYED, "f16_64", "bf16_64_causal")
"""With three warpgroups, in the latter, it hangs on time which of the other two sees what."""
SLEEP: Final = (
    "{ .reg .pred %late; .reg .b32 %me; mov.u32 %me, %tid.x; setp.lt.u32 %late, %me, 256; "
    "@%late nanosleep.u32 20000; }"
)


def cases(collection: str, names: Mapping[str, tuple[str, ...]]) -> list[Captured]:
    """Return launches with what a device did: an H100 where it has recorded them, else an H200."""
    found = {one.name: one for one in captured.load(H200, collection)}
    found |= {one.name: one for one in captured.load(FOLDER, collection) if one.recorded}
    return [one for one in found.values() if one.row["name"] in names[collection]]


def gpu_of(collection: str) -> hs.Gpu:
    """Return the device on which a collection was recorded."""
    return hs.Gpu("h100-sxm" if (FOLDER / captured.file_of(collection)).exists() else "h200-sxm")


def listed(names: Mapping[str, tuple[str, ...]]) -> list[Any]:
    return [
        pytest.param(collection, case, id=case.name)
        for collection in COLLECTIONS
        for case in cases(collection, names)
    ]


def rules(result: hs.LaunchResult) -> set[str]:
    return {one.rule for one in result.hazards if one.level == "hazard"}


@pytest.mark.parametrize(("collection", "case"), listed(SMALLEST))
def test_it_gives_the_bits_of_silicon_and_what_is_found_is_there(
    collection: str, case: Captured
) -> None:
    assert case.recorded is not None
    result, digests = captured.run(gpu_of(collection), case)
    assert digests == case.recorded["sha256"]
    if case.program in RACY:
        assert {"HS513"} <= rules(result) <= RACE
    else:
        assert rules(result) == HABITS.get(case.program, set())
    assert result.cycles == pytest.approx(
        median(case.measured[CYCLES]), rel=FURTHER.get(case.program, WITHIN)
    )
    alone, _ = captured.run(gpu_of(collection), case, values=False, check=False)
    assert alone.cycles == result.cycles


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS, ids=lambda one: one["schedule"])
@pytest.mark.parametrize(
    ("collection", "case"), [one for one in listed(SMALLEST) if one.values[1].program not in RACY]
)  # fmt: skip
def test_it_does_so_in_any_order(collection: str, case: Captured, order: dict[str, Any]) -> None:
    assert case.recorded is not None
    result, digests = captured.run(gpu_of(collection), case, **order)
    assert digests == case.recorded["sha256"]
    assert rules(result) == HABITS.get(case.program, set())


@pytest.mark.parametrize(("collection", "case"), listed(LARGER))
def test_it_takes_the_time_of_silicon(collection: str, case: Captured) -> None:
    result, _ = captured.run(gpu_of(collection), case, values=False, check=False)
    within = FURTHER.get(case.program, WITHIN)
    assert result.cycles == pytest.approx(median(case.measured[CYCLES]), rel=within)


def test_kept_predictions_are_of_these_launches() -> None:
    file = FOLDER.parents[1] / "docs" / "libraries.json"
    held = json.loads(file.read_text(encoding="utf-8"))
    names = {case.name for one in COLLECTIONS for case in captured.load(FOLDER, one)}
    for one in held.values():
        assert set(one) <= names


# --- the race in FlashInfer's epilogue ---------------------------------------------------------------------------------


def epilogue(ptx: str) -> tuple[list[str], int, int]:
    """Return the lines, that of the barrier before O is stored to shared memory, and that of the arrival after it."""
    lines = ptx.splitlines()
    operands = {
        number: re.findall(r"%r\d+", line)
        for number, line in enumerate(lines)
        if re.match(r"\s*bar\.(sync|arrive) %r", line)
    }
    waits = [number for number in operands if "bar.sync" in lines[number]]
    (arrival,) = (
        number
        for number in operands
        if number not in waits
        and any(wait > number and operands[wait] == operands[number] for wait in waits)
    )
    return lines, max(wait for wait in waits if wait < arrival), arrival


def late(case: Captured, *, mended: bool = False) -> Captured:
    """Let the first warpgroup come late to the epilogue; mended: without the arrival of threads that wait for it too."""
    lines, before, arrival = epilogue(case.ptx)
    rest = lines[arrival + 1 if mended else arrival :]
    kept = [*lines[: before + 1], SLEEP, *lines[before + 1 : arrival], *rest]
    return replace(case, ptx="\n".join(kept) + "\n")


RACING = [
    pytest.param(case, id=case.program)
    for case in cases("flash_attention", SMALLEST)
    if case.program in RACY
]


@pytest.mark.parametrize("case", RACING)
def test_o_is_wrong_where_a_warpgroup_comes_late_as_on_an_h200(case: Captured) -> None:
    assert case.recorded is not None
    result, digests = captured.run(hs.Gpu("h200-sxm"), late(case))
    assert digests["o"] != case.recorded["sha256"]["o"]
    assert digests["o"].startswith(DELAYED.get(case.program, ""))
    assert rules(result) == RACE
    result, digests = captured.run(hs.Gpu("h200-sxm"), late(case, mended=True))
    assert digests == case.recorded["sha256"]
    assert not rules(result)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS, ids=lambda one: one["schedule"])
@pytest.mark.parametrize("case", RACING)
def test_without_the_arrival_it_is_right_in_any_order(
    case: Captured, order: dict[str, Any]
) -> None:
    assert case.recorded is not None
    lines, _, arrival = epilogue(case.ptx)
    mended = replace(case, ptx="\n".join(lines[:arrival] + lines[arrival + 1 :]) + "\n")
    result, digests = captured.run(hs.Gpu("h200-sxm"), mended, **order)
    assert digests == case.recorded["sha256"]
    assert not rules(result)


@pytest.mark.gpu
@pytest.mark.parametrize("case", RACING)
def test_a_device_gives_wrong_bits_too(case: Captured) -> None:
    assert case.recorded is not None
    with hs.CudaGpu(0) as gpu:
        _, digests = captured.run(gpu, late(case), timing=False)
        assert digests["o"] != case.recorded["sha256"]["o"]
        _, digests = captured.run(gpu, late(case, mended=True), timing=False)
        assert digests == case.recorded["sha256"]
