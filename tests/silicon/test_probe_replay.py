"""Replay every recorded probe on the simulator, without a GPU, and compare bits."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import hopsim as hs
from hopsim.errors import HopsimError
from hopsim.kernels.measured.captured import COLLECTIONS
from hopsim.kernels.probes import recording as probes

FOLDER = Path(__file__).parent
INDEX = {row["file"]: row for row in probes.read_index(FOLDER / "index.toml")}
ON_AN_H200 = (
    "mma_double", "mma_narrow", "mma_sparse", "wmma_double", "wgmma_sparse", "im2col", "convolutions",
    "factors",
)  # fmt: skip
"""Groups that no H100 has recorded yet; the two have the same SMs."""


def folder_of(group: str) -> Path:
    return FOLDER / "h200" if group in ON_AN_H200 else FOLDER


@pytest.mark.parametrize("group", probes.GROUPS)
def test_every_recorded_bit(group: str) -> None:
    found = probes.replay(hs.Gpu(), folder_of(group), group)
    assert not found, "\n".join(map(str, found[:20]))


def test_the_index_lists_exactly_the_recordings() -> None:
    files = {str(p.relative_to(FOLDER)) for p in FOLDER.rglob("*") if p.suffix in (".npz", ".json")}
    others = (
        "layout/",
        "judging/triton/",
        "h200/",
        "workloads/second_predicted.json",
    )  # programs, a folder with an index of its own, and what was predicted before it was recorded
    launched = {
        f"libraries/{name}/launches.json" for name in COLLECTIONS
    }  # what was asked, not what was answered
    assert launched < files
    assert {name for name in files - launched if not name.startswith(others)} == set(INDEX)
    for row in INDEX.values():
        assert row["device"].startswith("NVIDIA H100")
        assert row["driver"].count(".") == 2
        assert row["probes"] > 0


@pytest.mark.parametrize("group", probes.GROUPS)
def test_every_probe_of_a_group_is_recorded(group: str) -> None:
    folder = folder_of(group)
    recorded = probes.load(folder / "probes" / f"{group}.npz").entries
    assert list(recorded) == [probe.name for probe in probes.probes_of(group)]
    rows = {row["file"]: row for row in probes.read_index(folder / "index.toml")}
    assert len(recorded) == rows[f"probes/{group}.npz"]["probes"]


def test_how_many_values_were_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    total = 0
    for group in probes.GROUPS:
        for entry in probes.load(folder_of(group) / "probes" / f"{group}.npz").entries.values():
            total += sum(int(np.prod(shape)) for _, shape, _ in entry["outputs"].values())
    with capsys.disabled():
        print(f"\nrecorded values that are replayed bit by bit: {total:,}")
    assert total > 1_000_000


def test_another_program_is_not_compared(tmp_path: Path) -> None:
    path = tmp_path / "probes"
    path.mkdir()
    (path / "collective.npz").write_bytes((FOLDER / "probes" / "matrices.npz").read_bytes())
    with pytest.raises(HopsimError, match="not the one that was recorded"):
        probes.replay(hs.Gpu(), tmp_path, "collective")


def test_a_wrong_bit_is_found() -> None:
    probe = probes.probes_of("matrices")[0]
    outputs = probe.run(hs.Gpu(), **probes.SIMULATED)
    name, values = next(iter(outputs.items()))
    spoilt = values.copy()
    spoilt.flat[3] ^= 1
    (difference,) = probes.compare(probe, {**outputs, name: spoilt}, outputs)
    assert (difference.wrong, difference.got ^ difference.expected) == (1, 1)
    assert json.dumps(dataclasses.asdict(difference))
