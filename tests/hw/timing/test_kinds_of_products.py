"""Products of f64, of narrow integers and with a sparse A take as long as an H200 took for them."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from hopsim.kernels.micro.clocked import slopes
from tests.hw.timing.recorded import SILICON, simulated

ROWS: Final[dict[str, dict[str, Any]]] = {
    row["name"]: row
    for row in json.loads((SILICON.parent / "h200" / "micro.json").read_text(encoding="utf-8"))
}
IN_CHAINS: Final = {
    "m16n8k4_f64_w1": (0.1, 0.25),
    "m16n8k16_f64_w4": (0.05, 0.1),
    "m16n8k16_f64_w8": (0.3, 0.02),
    "m16n8k64_u4_w4": (0.05, 0.05),
    "m16n8k256_b1_and_w8": (0.15, 0.02),
    "m16n8k256_b1_xor_w8": (0.03, 0.07),
    "sparse_m16n8k32_bf16_w1": (0.15, 0.06),
    "sparse_m16n8k32_bf16_w8": (0.15, 0.02),
    "sparse_m16n8k64_s8_w8": (0.15, 0.02),
}
"""Products, with the bounds of one chain and of four."""


@pytest.mark.parametrize("name", IN_CHAINS)
def test_chains_of_products(name: str) -> None:
    name, bounds = f"mma_kind_{name}", IN_CHAINS[name]
    found, recorded = slopes(simulated(name, "kinds")), ROWS[name]["slopes"]
    for label, within in zip(("1 chains", "4 chains"), bounds, strict=True):
        assert found[label] == pytest.approx(recorded[label], rel=within)


@pytest.mark.parametrize(
    "name", ["bf16_n8_SS_w1", "bf16_n64_SS_w2", "bf16_n256_SS_w1", "e4m3_n256_SS_w1"]
)
def test_sparse_wgmma(name: str) -> None:
    """A and all of B come out of shared memory, which takes longer than the products."""
    found = slopes(simulated(f"wgmma_sp_{name}", "kinds"))["wgmma"]
    assert found == pytest.approx(ROWS[f"wgmma_sp_{name}"]["slopes"]["wgmma"], rel=0.04)
