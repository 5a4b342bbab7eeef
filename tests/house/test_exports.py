"""What `import hopsim` offers: every name once, each leading somewhere."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import hopsim as hs

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", [*hs.__all__, "kernels", "reference"])
def test_each_name_leads_somewhere(name: str) -> None:
    assert getattr(hs, name).__doc__
    assert name in dir(hs)


def test_the_public_names() -> None:
    assert hs.__all__ == [
        "CheckOptions", "ConfigError", "CudaGpu", "DeviceError", "Gpu", "HopsimError", "Kernel", "LaunchError",
        "LaunchResult", "MachineFault", "Module", "NotModelled", "ParamBytes", "ProfilingGpu", "PtxError", "TensorMap",
        "TensorMapError", "ValuesNeeded", "load", "loads", "summary",
    ]  # fmt: skip
    assert callable(hs.kernels.choose)
    assert callable(hs.reference.gemm)


def test_a_name_that_is_not_there_is_told() -> None:
    with pytest.raises(AttributeError, match="no attribute 'gemm'"):
        _ = hs.gemm


def test_the_version_is_the_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert hs.__version__ == project["version"]
