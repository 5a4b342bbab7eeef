"""What Nsight Compute exports, in the forms that its options and locales give it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopsim.errors import ConfigError
from hopsim.kernels.measured.ncu_export import is_named, read_csv
from hopsim.kernels.measured.ncu_numbers import Mark, in_base_units

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
        ("copy", (4, 2, 1), {"gpc__cycles_elapsed.max": 5000.0, "dram__bytes_read.sum": 1.05e6}),
        ("copy", (4, 2, 1), {}),
    ]


def test_the_raw_page_is_in_base_units_whatever_units_it_has(tmp_path: Path) -> None:
    path = tmp_path / "ncu.csv"
    path.write_text(
        '\ufeff"ID","Kernel Name","dram__bytes_read.sum","lts__t_sector_hit_rate.pct"\n'
        '"","","Kbyte","%"\n"0","copy","1,048.58","75.95"\n'
    )
    (one,) = read_csv(path)
    assert one.grid is None
    assert one.metrics == {"dram__bytes_read.sum": 1048580.0, "lts__t_sector_hit_rate.pct": 75.95}


@pytest.mark.parametrize(
    ("text", "unit", "decimals", "value"),
    [
        ("1,234,567", "byte", ".", 1234567.0),
        ("1.5", "Gbyte/second", ".", 1.5e9),
        ("2.5", "usecond", ".", 2.5e-6),
        ("2.5", "us", ".", 2.5e-6),
        ("2560", "ns", ".", 2.56e-6),
        ("3", "ms", ".", 3e-3),
        ("3", "s", ".", 3.0),
        ("1.6", "cycle/nsecond", ".", 1.6e9),
        ("2.5", "Gbyte/s", ".", 2.5e9),
        ("1.6", "Ghz", ".", 1.6e9),
        ("7", "inst/cycle", ".", 7.0),
        ("0,125", "%", ",", 0.125),
        ("1.234,5", "inst", ",", 1234.5),
        ("1.234.567", "cycle", ",", 1234567.0),
        ("5.000", "cycle", ",", 5000.0),
        ("5,000", "cycle", ".", 5000.0),
        ("1\u202f234,5", "inst", ",", 1234.5),
        ("32", "register/thread", ".", 32.0),
        ("", "byte", ".", None),
    ],
)
def test_numbers(text: str, unit: str, decimals: Mark, value: float | None) -> None:
    assert in_base_units(text, unit, decimals) == pytest.approx(value)


def exported(tmp_path: Path, **cells: tuple[str, str]) -> Path:
    """Write a raw page of one launch; cells are (unit, number)."""
    names = {
        "cycles": "gpc__cycles_elapsed.max",
        "read": "dram__bytes_read.sum",
        "rate": "lts__t_sector_hit_rate.pct",
    }
    rows = (
        ["Kernel Name", *(names[name] for name in cells)],
        ["", *(unit for unit, _ in cells.values())],
        ["copy", *(number for _, number in cells.values())],
    )
    path = tmp_path / "ncu.csv"
    path.write_text("".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        # What can be read in one way decides for the whole file.
        ({"cycles": ("cycle", "5.000"), "read": ("Kbyte", "1,024"), "rate": ("%", "50,00")}, [5000, 1024, 50]),
        ({"cycles": ("cycle", "1.234.567"), "read": ("byte", "1.024")}, [1234567, 1024]),
        ({"cycles": ("cycle", "5,000"), "read": ("Mbyte", "1.02")}, [5000, 1.02e6]),
        ({"read": ("Kbyte", "1,024"), "rate": ("%", "50.00")}, [1024000, 50]),
        # A count has no decimals, so that its mark is that of thousands.
        ({"cycles": ("cycle", "5.000"), "read": ("Kbyte", "1,024")}, [5000, 1024]),
        ({"cycles": ("cycle", "5,000"), "read": ("Mbyte", "1.024")}, [5000, 1.024e6]),
        ({"cycles": ("cycle", "5000"), "rate": ("%", "n/a")}, [5000]),
    ],
)  # fmt: skip
def test_one_locale_for_a_file(
    cells: dict[str, tuple[str, str]], values: list[float], tmp_path: Path
) -> None:
    (one,) = read_csv(exported(tmp_path, **cells))
    assert list(one.metrics.values()) == pytest.approx(values)


def test_a_file_that_can_be_read_in_two_ways_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"bytes_read.sum is 1,024 Kbyte: nothing in the file says"
    ):
        read_csv(exported(tmp_path, cycles=("cycle", "5000"), read=("Kbyte", "1,024")))
    with pytest.raises(
        ConfigError, match=r"is 1\.5, with a point .* 50,00, with a comma"
    ) as caught:
        read_csv(exported(tmp_path, read=("Kbyte", "1.5"), rate=("%", "50,00")))
    assert str(caught.value).startswith(str(tmp_path / "ncu.csv"))


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
