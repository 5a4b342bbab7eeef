"""What the command line offers is what there is: it lists names itself, so that `--help` imports no kernels."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from hopsim.cli.app import app
from hopsim.cli.gemm_choices import (
    Dtype,
    KernelSchedule,
    Order,
    OutDtype,
    Reduction,
    SwizzleMode,
)
from hopsim.kernels.gemm.launch import NUMPY_TYPES
from hopsim.kernels.gemm.order import ORDERS
from hopsim.kernels.gemm.schedules import SCHEDULES
from hopsim.layout.swizzle import Swizzle


def test_the_names_are_those_of_the_kernels() -> None:
    assert [one.value for one in KernelSchedule] == ["chosen", *SCHEDULES]
    assert {one.value for one in Order} == set(ORDERS)
    assert {one.value for one in Dtype} | {one.value for one in OutDtype} == set(NUMPY_TYPES)
    assert {one.name for one in SwizzleMode} == {one.name for one in Swizzle}
    assert [one.value for one in Reduction] == ["tma", "atomic", "dsmem"]


@pytest.mark.parametrize(
    "words", [["--tile", "64x64x64"], ["--stages", "2"], ["--cluster", "2x1"], ["--swizzle", "64B"]]
)
def test_what_the_rules_choose_cannot_be_given(words: list[str]) -> None:
    sizes = ["--m", "64", "--n", "64", "--k", "64"]
    done = CliRunner().invoke(app, ["gemm", *sizes, "--schedule", "chosen", *words])
    assert done.exit_code == 2
    assert f"--schedule chosen decides {words[0]} itself" in done.output
