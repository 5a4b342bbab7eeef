from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hopsim.errors import LaunchError
from hopsim.kernels.gemm.frame import SHARED_SYMBOL
from hopsim.kernels.gemm.kernel import build
from hopsim.kernels.gemm.launch import NUMPY_TYPES
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.ptx.text import module_text
from hopsim.kernels.surroundings import end_to_end
from hopsim.kernels.surroundings.dependent import emit_dependent, run_pair
from hopsim.kernels.surroundings.end_to_end import run_maps
from hopsim.kernels.surroundings.maps import WAYS, emit_copy_map, emit_gemm
from hopsim.reference.gemm import gemm
from hopsim.runtime.gpu import Gpu

PTXAS = shutil.which("ptxas")
BF16 = NUMPY_TYPES["bf16"]
SIZES = (150, 136, 208)
TILE: dict[str, Any] = {"tile": (64, 64, 64), "stages": 3, "warpgroups": 1}


def numbers(*shapes: tuple[int, int]) -> list[NDArray[Any]]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(BF16) for shape in shapes]


def maps(way: str, **options: Any) -> end_to_end.Sequence:
    m, n, k = SIZES
    a, b = numbers((m, k), (n, k))
    done = run_maps(Gpu(), GemmProblem(m, n, k), a, b, way, **TILE, **options)
    assert np.array_equal(done.c.view(np.uint16), gemm(a, b, out_dtype=BF16).view(np.uint16))
    return done


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "options",
    [{"schedule": "in-order"}, {"schedule": "adversarial"}, {"schedule": "seeded", "seed": 4}],
    ids=str,
)
def test_maps_from_anywhere_give_the_same_bits(way: str, options: dict[str, Any]) -> None:
    assert maps(way, **options).verdict == "clean"


def test_end_to_end_time_shows_what_maps_cost() -> None:
    found = {way: maps(way) for way in WAYS}
    cycles = {way: done.cycles for way, done in found.items()}
    assert all(count is not None for count in cycles.values())
    by_value, copied, edited = (cycles[way] or 0 for way in WAYS)
    assert [one.name for one in found["copied"].launches].count("copy_map") == 3
    # three launches more cost more than editing, which costs more than nothing
    assert by_value < edited < copied
    assert copied - by_value > 3 * 4000


@pytest.mark.parametrize("way", WAYS)
def test_fetching_maps_ahead_saves_time(way: str) -> None:
    fetched, late = (maps(way, prefetches=ahead).cycles for ahead in (True, False))
    assert fetched is not None
    assert late is not None
    assert fetched < late


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (r"@\S+ fence\.proxy\.tensormap::generic\.acquire\.gpu [^;]+;", ""),
        (r"bar\.sync +0;", ""),
        (r"bar\.warp\.sync +-1; +// one lane edits", "// one lane edits"),
    ],
)
def test_an_edited_map_without_its_edges_is_found(
    pattern: str, replacement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any) -> str:
        text, found = re.subn(pattern, replacement, module_text(*arguments))
        assert found
        return text

    monkeypatch.setattr(end_to_end, "module_text", broken)
    m, n, k = SIZES
    a, b = numbers((m, k), (n, k))
    done = run_maps(Gpu(), GemmProblem(m, n, k), a, b, "edited", **TILE, schedule="in-order")
    assert done.verdict == "hazard"


def test_a_way_that_does_not_exist_is_refused() -> None:
    a, b = numbers((64, 64), (64, 64))
    with pytest.raises(LaunchError, match="way must be one of value, copied, edited, got 'host'"):
        run_maps(Gpu(), GemmProblem(64, 64, 64), a, b, "host")


@pytest.mark.parametrize("dependent", [False, True])
@pytest.mark.parametrize("schedule", ["in-order", "adversarial"])
def test_a_chain_of_two_products_has_the_reference_s_bits(dependent: bool, schedule: str) -> None:
    a, b, d = numbers((100, 72), (136, 72), (80, 136))
    pair = run_pair(
        Gpu(), a, b, d, dependent=dependent, tile=(64, 64, 64), schedule=schedule
    )  # fmt: skip
    x = gemm(a, b, out_dtype=BF16)
    assert np.array_equal(pair.x.view(np.uint16), x.view(np.uint16))
    assert np.array_equal(pair.y.view(np.uint16), gemm(x, d, out_dtype=BF16).view(np.uint16))
    assert [one.result.verdict for one in pair.launches] == ["clean", "clean"]
    assert pair.cycles is None


def test_a_dependent_launch_hides_its_launch_and_where_it_fits_its_prologue() -> None:
    a, b, d = numbers((128, 64), (128, 64), (128, 128))
    plain = run_pair(Gpu(), a, b, d, dependent=False, tile=(64, 64, 64))
    small = run_pair(Gpu(), a, b, d, tile=(64, 64, 64))
    large = run_pair(Gpu(), a, b, d, tile=(128, 128, 64), stages=5)
    assert (plain.hidden_cycles, small.fits_beside, large.fits_beside) == (0, True, False)
    assert small.hidden_cycles is not None
    assert large.hidden_cycles is not None
    assert small.hidden_cycles > large.hidden_cycles > 0
    assert plain.cycles is not None
    assert small.cycles is not None
    assert small.cycles < plain.cycles


def test_products_that_do_not_chain_are_refused() -> None:
    with pytest.raises(LaunchError, match="D must have 64 columns, as B has rows, got 32"):
        run_pair(Gpu(), *numbers((64, 64), (64, 64), (64, 32)))


@pytest.mark.skipif(PTXAS is None, reason="ptxas is not on PATH: the kernel was not assembled")
@pytest.mark.parametrize("what", [*WAYS, "copy", "dependent"])
def test_ptxas_takes_it(what: str, tmp_path: Path) -> None:
    plan = build("warp-specialized", GemmProblem(512, 512, 512), (128, 128, 64), 4).plan
    if what == "copy":
        entry = emit_copy_map("k")
    elif what == "dependent":
        entry = emit_dependent("k", plan, signals=True, waits=True)
    else:
        entry = emit_gemm("k", plan, what)
    source = tmp_path / "kernel.ptx"
    source.write_text(module_text(entry, SHARED_SYMBOL))
    assert PTXAS is not None
    command = [PTXAS, "-arch=sm_90a", "-v", str(source), "-o", str(tmp_path / "kernel.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = done.stdout + done.stderr
    assert done.returncode == 0, report
    assert "0 bytes spill stores, 0 bytes spill loads" in report
    assert "(C7" not in report
