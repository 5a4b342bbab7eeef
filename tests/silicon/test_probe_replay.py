"""Replay every recorded probe on the simulator, without a GPU, and compare bits."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import hopsim as hs
from hopsim.errors import HopsimError
from hopsim.kernels.probes import recording as probes

FOLDER = Path(__file__).parent
INDEX = {row["file"]: row for row in probes.read_index(FOLDER / "index.toml")}
EXACT = tuple(group for group in probes.GROUPS if group != "approximate")
TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}

# D-APPROX. Largest distance of the recorded values from hopsim's: units in the last place, absolute, or relative.
ULPS = {
    "ex2.approx.f16": 1, "tanh.approx.f16": 1, "ex2.approx.ftz.bf16": 1, "tanh.approx.bf16": 1, "rcp.approx.f32": 1,
    "rcp.approx.ftz.f32": 1, "sqrt.approx.f32": 1, "sqrt.approx.ftz.f32": 1, "rsqrt.approx.f32": 1,
    "rsqrt.approx.ftz.f32": 1, "ex2.approx.f32": 2, "ex2.approx.ftz.f32": 2, "div.approx.f32": 2,
    "div.approx.ftz.f32": 2, "div.full.f32": 2, "div.full.ftz.f32": 2,
}  # fmt: skip
RELATIVE = {
    "tanh.approx.f32": 2**-16.5,
    "rcp.approx.ftz.f64": 2**-19.5,
    "rsqrt.approx.ftz.f64": 2**-19.9,
}
ABSOLUTE = {  # with the inputs for which it holds
    "lg2.approx.f32": (2**-21.5, 0.5, 2.0), "lg2.approx.ftz.f32": (2**-21.5, 0.5, 2.0),
    "sin.approx.f32": (2**-20.4, -6.28, 6.28), "sin.approx.ftz.f32": (2**-20.4, -6.28, 6.28),
    "cos.approx.f32": (2**-20.4, -6.28, 6.28), "cos.approx.ftz.f32": (2**-20.4, -6.28, 6.28),
}  # fmt: skip


@pytest.mark.parametrize("group", EXACT)
def test_every_recorded_bit(group: str) -> None:
    found = probes.replay(hs.Gpu(), FOLDER, group)
    assert not found, "\n".join(map(str, found[:20]))


def floats(bits: NDArray[np.generic], kind: str) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):  # NaNs are among them
        return bits.view(TYPES[kind]).astype(np.float64)


def test_approximate_functions_are_within_their_bounds() -> None:
    recording = probes.load(FOLDER / "probes" / "approximate.npz")
    seen: list[str] = []
    for probe in probes.probes_of("approximate"):
        got = probe.run(hs.Gpu(), **probes.SIMULATED)["out"]
        want = recording.outputs(probe.name)["out"]
        assert recording.entries[probe.name]["fingerprint"] == probe.fingerprint
        for row, label in enumerate(probe.labels["out"]):
            kind = label.rpartition(".")[2]
            x = floats(probe.inputs["x0"], kind)
            mine, real = floats(got[row], kind), floats(want[row], kind)
            finite = np.isfinite(mine) & np.isfinite(real)
            if kind != "f64":  # whose overflow differs in the last kept bits
                assert np.array_equal(got[row][~finite], want[row][~finite]), label
            with np.errstate(invalid="ignore", over="ignore"):
                distance = np.abs(mine - real)
            if label in ULPS:
                apart = np.abs(got[row].astype(np.int64) - want[row].astype(np.int64))
                assert apart[finite].max() <= ULPS[label], label
            elif label in RELATIVE:
                known = finite & (real != 0)
                assert (distance[known] <= RELATIVE[label] * np.abs(real[known])).all(), label
            else:
                bound, low, high = ABSOLUTE[label]
                inside = finite & (x >= low) & (x <= high)
                assert inside.sum() > 1000
                assert distance[inside].max() <= bound, label
            seen.append(label)
    assert sorted(seen) == sorted({*ULPS, *RELATIVE, *ABSOLUTE})


def test_the_index_lists_exactly_the_recordings() -> None:
    files = {str(p.relative_to(FOLDER)) for p in FOLDER.rglob("*") if p.suffix in (".npz", ".json")}
    programs = ("layout/", "judging/triton/")
    assert {name for name in files if not name.startswith(programs)} == set(INDEX)
    for row in INDEX.values():
        assert row["device"].startswith("NVIDIA H100")
        assert row["driver"].count(".") == 2
        assert row["probes"] > 0


@pytest.mark.parametrize("group", probes.GROUPS)
def test_every_probe_of_a_group_is_recorded(group: str) -> None:
    recorded = probes.load(FOLDER / "probes" / f"{group}.npz").entries
    assert list(recorded) == [probe.name for probe in probes.probes_of(group)]
    assert len(recorded) == INDEX[f"probes/{group}.npz"]["probes"]


def test_how_many_values_were_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    total = 0
    for group in EXACT:
        for entry in probes.load(FOLDER / "probes" / f"{group}.npz").entries.values():
            total += sum(int(np.prod(shape)) for _, shape, _ in entry["outputs"].values())
    with capsys.disabled():
        print(f"\nrecorded values that are replayed bit by bit: {total:,}")
    assert total > 400_000


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
