"""What rows cost that do not begin at lines: recorded on an H100, requests that TMA loads of such rows make."""

from __future__ import annotations

import pytest

from hopsim.layout.box import load_plan
from hopsim.layout.tensormap import TensorMapSpec
from hopsim.layout.tensormap_types import TensorDataType

ROWS = 128


@pytest.mark.parametrize(
    ("pitch_bytes", "requests", "uneven"),
    [(1024, 1.0, 0.0), (1152, 1.0, 0.0), (1056, 1.75, 0.0), (1040, 2.625, 1.0)],
)
def test_requests_of_a_row(pitch_bytes: int, requests: float, uneven: float) -> None:
    """Nsight Compute counts 1.00, 1.00, 1.75 and 2.62 requests for each row of 128 bytes."""
    shape = (pitch_bytes // 2, ROWS)
    spec = TensorMapSpec(TensorDataType.UINT16, 0, shape, (pitch_bytes,), (64, ROWS))
    more, parts, lines = load_plan(spec, (0, 0), smem_addr=0).splits()
    assert 1 + (more + parts) / ROWS == requests
    assert lines / ROWS == uneven


def test_a_narrow_row_within_a_line_has_no_splits() -> None:
    spec = TensorMapSpec(TensorDataType.UINT16, 0, (512, 8), (1024,), (16, 8))
    assert load_plan(spec, (16, 0), smem_addr=0).splits() == (0, 0, 0)


def test_a_box_outside_the_tensor_has_none() -> None:
    spec = TensorMapSpec(TensorDataType.UINT16, 0, (512, 8), (1024,), (16, 8))
    assert load_plan(spec, (0, 8), smem_addr=0).splits() == (0, 0, 0)
