"""What Nsight Compute exports, in the forms that its options and locales give it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopsim.kernels.measured.ncu_export import in_base_units, is_named, read_csv

DETAILS = """==PROF== Connected to process 1
block 0 sum 3
"ID","Kernel Name","Grid Size","Section Name","Metric Name","Metric Unit","Metric Value"
"0","copy","(4, 2, 1)","Speed Of Light","Elapsed Cycles","cycle","5,000"
"0","copy","(4, 2, 1)","Command line profiler metrics","gpc__cycles_elapsed.max","cycle","5,000"
"0","copy","(4, 2, 1)","Command line profiler metrics","dram__bytes_read.sum","Mbyte","1.05"
"1","copy","(4, 2, 1)","Command line profiler metrics","gpc__cycles_elapsed.max","cycle","n/a"
"""


def test_the_details_page_has_a_row_a_metric(tmp_path: Path) -> None:
    path = tmp_path / "ncu.csv"
    path.write_text(DETAILS)
    assert [(one.kernel, one.grid, dict(one.metrics)) for one in read_csv(path)] == [
        ("copy", 8, {"gpc__cycles_elapsed.max": 5000.0, "dram__bytes_read.sum": 1.05e6}),
        ("copy", 8, {}),
    ]


def test_the_raw_page_is_in_base_units_whatever_units_it_has(tmp_path: Path) -> None:
    path = tmp_path / "ncu.csv"
    path.write_text(
        '\ufeff"ID","Kernel Name","dram__bytes_read.sum","lts__t_sector_hit_rate.pct"\n'
        '"","","Kbyte","%"\n"0","copy","1,048.58","75,95"\n'
    )
    (one,) = read_csv(path)
    assert one.grid is None
    assert one.metrics == {"dram__bytes_read.sum": 1048580.0, "lts__t_sector_hit_rate.pct": 75.95}


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("1,234,567", "byte", 1234567.0),
        ("1.5", "Gbyte/second", 1.5e9),
        ("2.5", "usecond", 2.5e-6),
        ("0,125", "%", 0.125),
        ("1.234,5", "inst", 1234.5),
        ("32", "register/thread", 32.0),
        ("", "byte", None),
    ],
)
def test_numbers(text: str, unit: str, value: float | None) -> None:
    assert in_base_units(text, unit) == pytest.approx(value)


@pytest.mark.parametrize(
    ("entry", "told", "same"),
    [
        ("saxpy", "saxpy(float, const float *, float *, int)", True),
        ("saxpy", "saxpy", True),
        ("saxpy", "saxpy2(float)", False),
        ("_Z6reduceIfLi128EEvPKT_PS0_i", "void reduce<float, (int)128>(const T1 *, T1 *)", True),
        ("_Z6reduceIfLi128EEvPKT_PS0_i", "_Z6reduceIfLi128EEvPKT_PS0_i", True),
        ("_Z6reduceIfLi128EEvPKT_PS0_i", "_Z6reduceIiLi128EEvPKT_PS0_i", False),
        ("_ZN2ns5outer4workEi", "ns::outer::work(int)", True),
        ("_ZN2ns5outer4workEi", "ns::outer::walk(int)", False),
        ("_ZN12_GLOBAL__N_14workEi", "(anonymous namespace)::work(int)", True),
        ("_ZL4worki", "work(int)", True),
        ("_ZN3lib6kernelILi4EEEvi", "void lib::kernel<(int)4>(int)", True),
    ],
)
def test_a_kernel_under_its_names(entry: str, told: str, same: bool) -> None:
    assert is_named(entry, told) is same
