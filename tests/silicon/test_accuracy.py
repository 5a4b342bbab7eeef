"""How far predictions are from an H100's cycles for small problems: what is reached is kept. docs/accuracy.md has all sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hopsim.kernels.measured.predict import predict
from hopsim.kernels.measured.sets import load_sets

CUBE, RAGGED = (512, 512, 512), (1000, 1416, 528)
PRESENT_LEVEL = {
    ("calibration", CUBE): (9, 0.0425, 0.0905),
    ("judging", CUBE): (27, 0.0235, 0.076),
    ("judging", RAGGED): (17, 0.036, 0.145),
}
"""Cases; mean and largest share that predictions are off: more is a step back."""


@pytest.mark.slow
@pytest.mark.parametrize(("role", "size"), PRESENT_LEVEL)
def test_predictions_are_as_near_as_they_were(role: str, size: tuple[int, int, int]) -> None:
    count, mean, largest = PRESENT_LEVEL[role, size]
    cases = [
        case
        for case in load_sets(Path(__file__).parent)
        if case.role == role and case.size == size and case.cycles
    ]
    assert len(cases) == count
    off: dict[str, float] = {}
    for case in cases:
        predicted = predict(case, "h100-sxm", {}).cycles
        assert predicted is not None, case.program.name
        assert case.cycles is not None
        off[case.program.name] = predicted / case.cycles - 1
    shares = np.abs(list(off.values()))
    assert shares.mean() <= mean, off
    assert shares.max() <= largest, off
