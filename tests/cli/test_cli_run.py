from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from typer.testing import CliRunner, Result

from hopsim.cli.app import app
from hopsim.cli.launch_arrays import ArraySpec
from hopsim.cli.launch_file import make_arguments, read_launch_file
from hopsim.errors import ConfigError
from hopsim.kernels.gemm.kernel import build
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.reference.gemm import gemm
from hopsim.runtime.gpu import Gpu
from tests.cli.golden import GOLDEN, assert_golden

DATA = Path(__file__).parent / "data"
QUICK = ("--run-schedule", "in-order", "--no-check")


def run(ptx: Path, toml: Path, *more: str) -> Result:
    return CliRunner().invoke(app, ["run", str(ptx), "--args", str(toml), *more])


def written(folder: Path, text: str) -> Path:
    path = folder / "args.toml"
    path.write_text(text)
    return path


def scale(folder: Path, old: str, new: str) -> Path:
    """The launch file of `scale.ptx` with one part replaced."""
    text = (DATA / "scale.toml").read_text()
    assert old in text
    return written(folder, text.replace(old, new))


def test_a_result_is_saved_and_compared(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(64, dtype=np.float32))
    np.save(tmp_path / "twice.npy", np.arange(64, dtype=np.float32) * 2)
    toml = written(
        tmp_path,
        (DATA / "scale.toml").read_text()
        .replace('dtype = "float32"\nshape = [64]\nrandom = "integers"', 'npy = "x.npy"')
        .replace("uninitialised = true", 'uninitialised = true\nsave = "y.npy"\ncompare = "twice.npy"'),
    )  # fmt: skip
    done = run(DATA / "scale.ptx", toml, *QUICK)
    assert done.exit_code == 0, done.stderr
    assert "bits          y has the bits of twice.npy: all 64 elements equal" in done.stdout
    assert f"saved         y to {tmp_path / 'y.npy'}" in done.stdout
    assert np.array_equal(np.load(tmp_path / "y.npy"), np.arange(64) * 2)


def test_two_arrays_are_not_saved_into_one_file(tmp_path: Path) -> None:
    text = (DATA / "scale.toml").read_text()
    for word in ('random = "integers"', "uninitialised = true"):
        text = text.replace(word, f'{word}\nsave = "y.npy"')
    done = run(DATA / "scale.ptx", written(tmp_path, text), *QUICK)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "arrays.y: save: " in done.stderr
    assert "arrays.x: save too, which would be lost\n  try: another file" in done.stderr


def test_a_mismatch_shows_the_first_element_and_exits_with_1(tmp_path: Path) -> None:
    np.save(tmp_path / "ones.npy", np.ones(64, np.float32))
    toml = scale(tmp_path, "uninitialised = true", 'fill = 7\ncompare = "ones.npy"')
    text = toml.read_text().replace('random = "integers"', "fill = 1.5")
    done = run(DATA / "scale.ptx", written(tmp_path, text), *QUICK, "--json", "-")
    content = json.loads(done.stdout)
    assert (done.exit_code, content["exit_code"]) == (1, 1)
    assert content["comparisons"][0]["different"] == 64
    assert content["comparisons"][0]["first"] == {
        "index": [0], "expected": "1.0", "expected_bits": "0x3f800000", "got": "3.0", "got_bits": "0x40400000",
    }  # fmt: skip


def test_a_file_to_compare_with_is_looked_at_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Gpu, "launch", None)
    toml = scale(tmp_path, "uninitialised = true", 'uninitialised = true\ncompare = "ones.npy"')
    done = run(DATA / "scale.ptx", toml)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"arrays.y: compare: cannot read {tmp_path / 'ones.npy'}" in done.stderr
    np.save(tmp_path / "ones.npy", np.ones((8, 8), np.float32))
    done = run(DATA / "scale.ptx", toml)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "compare: expected the shape of y, [64], got [8, 8] from" in done.stderr
    with (tmp_path / "ones.npy").open("wb") as file:
        np.savez(file, y=np.ones(64, np.float32))
    done = run(DATA / "scale.ptx", toml)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "ones.npy is no .npy file of numbers" in done.stderr


def test_without_values_no_array_is_filled_compared_or_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ArraySpec, "values", None)
    files = 'uninitialised = true\nsave = "y.npy"\ncompare = "none.npy"'
    toml = scale(tmp_path, "uninitialised = true", files)
    done = run(DATA / "scale.ptx", toml, "--no-values")
    assert done.exit_code == 0, done.output
    assert "bits          y not compared: without values there are none" in done.stdout
    assert "saved         nothing of y: without values there are none" in done.stdout
    assert not (tmp_path / "y.npy").exists()


def test_a_deadlock_tells_its_story_and_exits_with_3(tmp_path: Path) -> None:
    done = run(DATA / "hang.ptx", written(tmp_path, "grid = 1\nblock = 64\n"), *QUICK)
    assert done.exit_code == 3
    assert_golden(done.stdout, GOLDEN / "run_hang.txt")


def test_what_is_not_modelled_is_listed_before_anything_else(tmp_path: Path) -> None:
    done = run(
        DATA / "textures.ptx", written(tmp_path, "grid = 1\nblock = 32\n"), "--entry", "sample"
    )
    assert (done.exit_code, done.stdout) == (4, "")
    assert "13: tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%x, %y}];" in done.stderr


def test_a_gemm_with_tensor_maps(tmp_path: Path) -> None:
    """The launch that `hopsim gemm` makes, written by hand."""
    problem = GemmProblem(64, 64, 128, "bf16")
    kernel = build("pipelined", problem, (64, 64, 64), stages=2)
    (tmp_path / "gemm.ptx").write_text(kernel.ptx)
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((64, 128)).astype(ml_dtypes.bfloat16) for _ in range(2))
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b.view(np.uint16))
    np.save(tmp_path / "c.npy", gemm(a, b, out_dtype=ml_dtypes.bfloat16))
    maps = "".join(
        f'[[args]]\nkind = "tensor_map"\narray = "{name}"\nbox = {list(spec.box)}\nswizzle = "{spec.swizzle}"\n'
        for name, spec in zip("abc", kernel.maps, strict=True)
    )
    sizes = "".join(
        f'[[args]]\nkind = "scalar"\ndtype = "uint32"\nvalue = {size}\n' for size in kernel.scalars
    )
    toml = written(
        tmp_path,
        f"""
        grid = {list(kernel.grid)}
        block = {kernel.block}
        shared_bytes = {kernel.shared_bytes}
        [arrays]
        a = {{ dtype = "bfloat16", npy = "a.npy" }}
        b = {{ dtype = "bfloat16", npy = "b.npy" }}
        c = {{ dtype = "bfloat16", shape = [64, 64], uninitialised = true, compare = "c.npy" }}
        """
        + maps + sizes,
    )  # fmt: skip
    done = run(tmp_path / "gemm.ptx", toml, *QUICK)
    assert done.exit_code == 0, done.stderr
    assert "c has the bits of c.npy: all 4,096 elements equal" in done.stdout


def test_a_struct_carries_pointers_scalars_and_maps(tmp_path: Path) -> None:
    ptx = tmp_path / "s.ptx"
    ptx.write_text(
        """
        .version 8.7
        .target sm_90a
        .address_size 64
        .visible .entry add(.param .align 64 .b8 s[192], .param .u64 unused)
        {
            .reg .b32 %a;
            .reg .b64 %p;
            ld.param.u64 %p, [s+8];
            ld.param.u32 %a, [s+16];
            st.global.u32 [%p], %a;
            ret;
        }
        """
    )
    np.save(tmp_path / "want.npy", np.asarray([77], np.uint32))
    toml = written(
        tmp_path,
        """
        grid = 1
        block = 1
        [arrays.out]
        dtype = "uint32"
        shape = [1]
        fill = 0
        compare = "want.npy"
        [arrays.t]
        dtype = "float16"
        shape = [8, 8]
        random = "uniform"
        [[args]]
        kind = "struct"
        size_bytes = 192
        [[args.parts]]
        offset = 8
        kind = "array"
        array = "out"
        [[args.parts]]
        offset = 16
        kind = "scalar"
        dtype = "uint32"
        value = 77
        [[args.parts]]
        offset = 64
        kind = "tensor_map"
        array = "t"
        box = [8, 8]
        [[args]]
        kind = "null"
        """,
    )
    done = run(ptx, toml, *QUICK)
    assert done.exit_code == 0, done.stderr
    assert "out has the bits of want.npy: its one element equal" in done.stdout


def test_random_arrays_follow_the_seed(tmp_path: Path) -> None:
    def y(seed: int) -> bytes:
        toml = scale(tmp_path, "uninitialised = true", 'fill = 0\nsave = "y.npy"')
        assert run(DATA / "scale.ptx", toml, *QUICK, "--seed", str(seed)).exit_code == 0
        return (tmp_path / "y.npy").read_bytes()

    assert y(1) == y(1) != y(2)


@pytest.mark.parametrize(
    ("random", "values"),
    [
        ('random = "uniform"\nlow = -2\nhigh = 2', {-2, -1, 0, 1, 2}),
        ('random = "normal"\nmean = 5\nstd = 1', {3, 4, 5, 6, 7}),
    ],
)
def test_integers_are_drawn_whole_where_bounds_say_which(
    random: str, values: set[int], tmp_path: Path
) -> None:
    toml = scale(
        tmp_path,
        'dtype = "float32"\nshape = [64]\nrandom = "integers"',
        f'dtype = "int32"\nshape = [64]\n{random}',
    )
    drawn = read_launch_file(toml).arrays["x"].values(0, 0)
    assert drawn is not None
    assert values <= set(drawn.tolist())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("grid = 1", "", "args.toml: grid is missing\n  try: grid = [8, 8]   (CTAs)"),
        ("grid = 1", "grid = 1.5", "grid: expected a whole number or a list of them, got 1.5\n  try: grid = [64, 32], or grid = 64"),
        ("grid = 1", 'grid = "a"', "args.toml: grid: expected a whole number or a list of them, got 'a'\n  try: grid = ["),
        (
            "grid = 1",
            "grid = [1, 2, 3, 4]",
            "args.toml: grid: expected one to three positive whole numbers, got [1, 2, 3, 4]\n"
            "  try: grid = [8, 8], or grid = 64",
        ),
        ("grid = 1", "grid = 1\ncluster = 0", "args.toml: cluster: expected one to three positive whole numbers, got 0"),
        ("grid = 1", "grid = 1\nshared_bytes = 'a'", "shared_bytes: expected a whole number, got 'a'\n  try: shared_bytes = 1"),
        ("grid = 1", "grid = 1\nwarps = 4", "unknown entry 'warps'"),
        ("grid = 1", "grid =", "args.toml:1:7: expected a value, got the end of the line"),
        ("block = 64", "block = 5000", "block.x is 5000, the limit is 1024"),
        ('random = "integers"', 'random = "normals"', "did you mean \"normal\"?"),
        ('random = "integers"', "", "arrays.x: expected one of npy, random, fill, uninitialised; got none"),
        ('random = "integers"', 'random = "normal"\nfill = 0', "got random and fill"),
        ('random = "integers"', 'random = "integers"\nlow = 1.5', "expected whole low and high, got 1.5 and 8"),
        ('random = "integers"', 'random = "uniform"\nlow = 3', "low = 3 is above high = 1"),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "int32"\nshape = [64]\nrandom = "uniform"',
            'uniform numbers from 0 to 1 are fractions, which int32 does not hold\n'
            '  try: random = "integers", low = -8 and high = 8; or whole low and high',
        ),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "int32"\nshape = [64]\nrandom = "uniform"\nlow = -0.5\nhigh = 9',
            'uniform numbers from -0.5 to 9 are fractions, which int32 does not hold',
        ),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "uint8"\nshape = [64]\nrandom = "normal"\nmean = 99',
            'normal numbers of std 1 are fractions, which uint8 does not hold\n'
            '  try: random = "integers", low = 0 and high = 8; or a std of 1 or more: they are rounded',
        ),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "int8"\nshape = [64]\nrandom = "normal"\nstd = 0.1',
            'normal numbers of std 0.1 are fractions, which int8 does not hold',
        ),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "uint8"\nshape = [64]\nrandom = "integers"\nlow = 0\nhigh = 1000',
            "arrays.x: integers from 0 to 1000 do not fit uint8 (0 to 255)",
        ),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "int8"\nshape = [64]\nrandom = "integers"\nlow = -129',
            "arrays.x: integers from -129 to 8 do not fit int8 (-128 to 127)",
        ),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "uint8"\nshape = [64]\nrandom = "integers"',
            "arrays.x: integers from -8 to 8 do not fit uint8 (0 to 255)\n  try: low = 0",
        ),
        ('random = "integers"', 'random = "integers"\nhigh = 1e30', "expected those of int64 (-9223372036854775808 to"),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "int8"\nshape = [64]\nrandom = "uniform"\nlow = 1000\nhigh = 2000',
            'arrays.x: uniform numbers from 1000 to 2000 do not fit int8 (-128 to 127)',
        ),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "float16"\nshape = [64]\nrandom = "uniform"\nhigh = 1e6',
            'arrays.x: uniform numbers from 0 to 1e+06 do not fit float16 (-65504 to 65504)',
        ),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "float64"\nshape = [64]\nrandom = "uniform"\nlow = -1e308\nhigh = 1e308',
            'are not drawn: high - low is more than a double holds',
        ),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "int8"\nshape = [64]\nrandom = "normal"\nstd = 1000',
            'normal numbers of mean 0 and std 1000 do not fit int8 (-128 to 127): ',
        ),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "uint8"\nshape = [64]\nrandom = "normal"\nstd = 9',
            'normal numbers of mean 0 and std 9 do not fit uint8 (0 to 255): -',
        ),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "float16"\nshape = [64]\nrandom = "normal"\nstd = 1e6',
            'normal numbers of mean 0 and std 1e+06 do not fit float16 (-65504 to 65504): ',
        ),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "float32"\nshape = [64]\nrandom = "normal"\nstd = inf',
            'arrays.x: std: expected a finite number, got inf',
        ),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "float32"\nshape = [64]\nrandom = "uniform"\nlow = nan',
            'arrays.x: low: expected a finite number, got nan',
        ),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "float32"\nshape = [64]\nrandom = "integers"\nhigh = inf',
            'arrays.x: high: expected a finite number, got inf',
        ),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "float32"\nshape = [64]\nrandom = "integers"\nhigh = 1e19',
            'integers from -8 to 1e+19 are not drawn: expected those of int64 (-9223372036854775808 to',
        ),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "float8_e4m3fn"\nshape = [64]\nrandom = "integers"\nhigh = 500',
            'integers from -8 to 500 do not fit float8_e4m3fn (-448 to 448)',
        ),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "float32"\nshape = [64]\nfill = 1e39',
            'arrays.x: fill: 1e+39 does not fit float32 (up to 3.40282e+38)',
        ),
        (
            'dtype = "float32"\nshape = [64]\nrandom = "integers"',
            'dtype = "float8_e4m3fn"\nshape = [64]\nfill = inf',
            'arrays.x: fill: inf does not fit float8_e4m3fn (up to 448)',
        ),
        ("value = 2", "value = 1e400", "args 2: value: 1e400 does not fit float32 (up to 3.40282e+38)\n  try: value = inf"),
        ('random = "integers"', "fill = -1e999", "arrays.x: fill: -1e999 does not fit float32"),
        ("value = 2", "value = 1e300", "args 2: value: 1e+300 does not fit float32 (up to 3.40282e+38)"),
        ('random = "integers"', 'random = "normal"\nstd = -1', "std: expected 0 or more"),
        ('random = "integers"', 'random = "normal"\nsdt = 1', "unknown entry 'sdt'\n  try: did you mean 'std'?"),
        ('random = "integers"', 'npy = "no.npy"', "no.npy: No such file or directory\n  try: np.save writes one"),
        ('random = "integers"', 'fill = "x"', "fill: expected a number, got 'x'"),
        ("shape = [64]\nrandom", "shape = [0]\nrandom", "shape: expected positive extents, outermost first, got [0]"),
        ("shape = [64]\nrandom", "shape = [-64]\nrandom", "outermost first, got [-64]\n  try: shape = [128, 64]"),
        ("shape = [64]\nrandom", 'shape = "64"\nrandom', "shape: expected a whole number or a list of them, got '64'\n  try: shape = ["),
        ("shape = [64]\nrandom", "random", "arrays.x: shape is missing: expected positive extents"),
        ("shape = [64]\nrandom", "shape = [640000000000]\nrandom", "is more than a GPU holds"),
        ('dtype = "float32"\nshape = [64]\nrandom', 'shape = [64]\nrandom', "arrays.x: dtype is missing"),
        ('dtype = "float32"\nshape = [64]\nrandom', 'dtype = "float33"\nrandom', 'did you mean "float32"?'),
        ('array = "x"', 'array = "z"', "args 0: there is no array 'z'; there are: x, y"),
        ('kind = "scalar"', 'kind = "scaler"', 'args 2: kind: expected one of array, tensor_map, scalar, null, struct'),
        ("value = 2", "value = true", "value: expected a number for float32, got True"),
        ("value = 2", "", "args 2: value is missing"),
        ('dtype = "float32"\nvalue = 2', 'dtype = "int8"\nvalue = 300', "value: 300 does not fit int8 (-128 to 127)"),
        ('dtype = "float32"\nvalue = 2', 'dtype = "float64"\nvalue = 2', "factor: expected .f32, got a float64"),
        ('dtype = "float32"\nvalue = 2', 'dtype = "int32"\nvalue = 2', "factor: expected .f32, got a int32 scalar, whose bits mean another number\n  try: { float32 = 1 }\n"),
        ('kind = "array"\narray = "x"', 'kind = "tensor_map"\narray = "x"', "args 0: box is missing"),
        ('kind = "array"\narray = "x"', 'kind = "tensor_map"\narray = "x"\nbox = 512', "args 0"),
        ('kind = "array"\narray = "x"', 'kind = "struct"', "a struct needs either size_bytes or hex"),
        ('kind = "array"\narray = "x"', 'kind = "struct"\nhex = "0"', "args 0: hex: "),
        ('kind = "array"\narray = "x"', "kind = 3", "kind: expected text, got 3"),
        ("uninitialised = true", 'uninitialised = true\nsave = ""', "arrays.y: save: expected a file, got ''"),
        ("uninitialised = true", 'uninitialised = true\ncompare = ""', "arrays.y: compare: expected a file, got ''"),
        ("uninitialised = true", 'uninitialised = true\nsave = "args.toml"', "args.toml is the file of the launch file too"),
        ('random = "integers"', 'random = "integers"\nsave = "y.npy"\ncompare = "y.npy"', "arrays.x: compare too"),
        ("grid = ", 'entry = ""\ngrid = ', "entry: expected the name of a kernel, got ''"),
    ],
)  # fmt: skip
def test_mistakes_in_the_launch_file(tmp_path: Path, old: str, new: str, message: str) -> None:
    done = run(DATA / "scale.ptx", scale(tmp_path, old, new), *QUICK)
    assert (done.exit_code, done.stdout) == (2, ""), done.stdout
    assert message in done.stderr


@pytest.mark.parametrize(
    ("dtype", "source", "least", "most"),
    [
        ("int8", 'random = "uniform"\nlow = -128\nhigh = 127', -128, 127),
        ("int8", 'random = "normal"\nstd = 20', -100, 100),
        ("uint8", 'random = "normal"\nmean = 100\nstd = 9', 50, 150),
        ("float16", 'random = "uniform"\nlow = -65504\nhigh = 65504', -65504, 65504),
        ("float32", "fill = 3e38", 3e38, 3.1e38),
        ("float32", "fill = inf", np.inf, np.inf),
        ("float32", "fill = +inf", np.inf, np.inf),
        ("float8_e5m2", "fill = inf", np.inf, np.inf),
    ],
)
def test_numbers_that_fit_are_taken(
    dtype: str, source: str, least: float, most: float, tmp_path: Path
) -> None:
    text = f'grid = 1\nblock = 1\n[arrays.x]\ndtype = "{dtype}"\nshape = [64]\n{source}\n'
    spec = read_launch_file(written(tmp_path, text)).arrays["x"]
    found = spec.values(0, 0)
    assert found is not None
    assert least <= found.astype(np.float64).min() <= found.astype(np.float64).max() <= most


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([(0, "array"), (4, "scalar")], "parts 1: bytes 4 to 7 are those of part 0 too"),
        ([(4, "scalar"), (0, "array")], "parts 1: bytes 0 to 7 are those of part 0 too"),
        ([(0, "array"), (8, "scalar"), (12, "scalar")], ""),
    ],
)
def test_parts_of_a_struct_do_not_overlap(
    parts: list[tuple[int, str]], message: str, tmp_path: Path
) -> None:
    text = {
        "array": 'kind = "array"\narray = "x"',
        "scalar": 'kind = "scalar"\ndtype = "int32"\nvalue = 1',
    }
    toml = 'grid = 1\nblock = 1\n[arrays.x]\ndtype = "int8"\nshape = 4\nfill = 0\n'
    toml += '[[args]]\nkind = "struct"\nsize_bytes = 16\n'
    toml += "".join(f"[[args.parts]]\noffset = {at}\n{text[kind]}\n" for at, kind in parts)
    described = read_launch_file(written(tmp_path, toml))
    if not message:
        (argument,) = make_arguments(described, Gpu(), 0)[0]
        assert argument.data[8:] == b"\x01\0\0\0" * 2
        return
    with pytest.raises(ConfigError, match=message):
        make_arguments(described, Gpu(), 0)


def test_a_list_of_arguments_is_one(tmp_path: Path) -> None:
    done = run(DATA / "scale.ptx", written(tmp_path, "grid = 1\nblock = 64\nargs = 3\n"), *QUICK)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "args.toml: args: expected a list, got 3\n  try: args = [{ int32 = 1 }]" in done.stderr


class Several:
    """Stands for what np.savez writes: several arrays in one file."""


@pytest.mark.parametrize(
    ("dtype", "content", "message"),
    [
        ("", np.zeros(4, ml_dtypes.bfloat16), 'say what it is\n  try: dtype = "bfloat16"'),
        ('dtype = "int32"', np.zeros(4, np.float32), "holds float32, expected int32"),
        (
            "shape = [5]",
            np.zeros(4, np.float32),
            "shape: expected [5], got [4] from the file\n  try: shape = [4], or leave it out",
        ),
        ("", b"PK\x03\x04 no zip", "is no .npy file"),
        ("", Several(), "x.npy is no .npy file of numbers, or ends too early\n  try: np.save"),
        ("", b"not numpy", "is no .npy file"),
    ],
)
def test_files_that_do_not_fit(tmp_path: Path, dtype: str, content: object, message: str) -> None:
    path = tmp_path / "x.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, Several):
        with path.open("wb") as file:
            np.savez(file, a=np.zeros(64, np.float32))
    else:
        np.save(path, content)  # type: ignore[arg-type]
    toml = scale(
        tmp_path, 'dtype = "float32"\nshape = [64]\nrandom = "integers"', f'npy = "x.npy"\n{dtype}'
    )
    done = run(DATA / "scale.ptx", toml, *QUICK)
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    ("directive", "line"),
    [
        ("", "block = 128  # threads"),
        (".maxntid 64, 2", "block = [64, 2]  # .maxntid allows no more"),
        (".reqntid 96", "block = 96  # as .reqntid says"),
    ],
)
def test_a_template_has_a_block_that_the_kernel_takes(
    directive: str, line: str, tmp_path: Path
) -> None:
    head = ".version 8.7\n.target sm_90a\n.address_size 64\n"
    (tmp_path / "k.ptx").write_text(f"{head}.visible .entry k()\n{directive}\n{{ ret; }}\n")
    words = ["run", str(tmp_path / "k.ptx"), "--template"]
    printed = CliRunner().invoke(app, words).stdout
    assert printed.splitlines()[2] == line
    (tmp_path / "l.toml").write_text(printed)
    assert run(tmp_path / "k.ptx", tmp_path / "l.toml").exit_code == 0


def test_a_template_takes_no_launch_file(tmp_path: Path) -> None:
    done = run(DATA / "scale.ptx", DATA / "scale.toml", "--template")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--args: --template writes a launch file, and one is given" in done.stderr


def test_the_entry_must_be_told_where_there_are_several(tmp_path: Path) -> None:
    toml = written(tmp_path, "grid = 1\nblock = 32\n")
    done = run(DATA / "textures.ptx", toml)
    assert "has 2 entries: sample, fine\n  try: --entry sample" in done.stderr
    assert run(DATA / "textures.ptx", toml, "--entry", "none").exit_code == 2
    assert (
        run(
            DATA / "textures.ptx",
            written(tmp_path, 'entry = "fine"\ngrid = 1\nblock = 32\n'),
            *QUICK,
        ).exit_code
        == 0
    )


def test_missing_files(tmp_path: Path) -> None:
    done = run(tmp_path / "no.ptx", DATA / "scale.toml")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 2)
    assert (
        "cannot read it: No such file or directory"
        in run(DATA / "scale.ptx", tmp_path / "no.toml").stderr
    )


def test_a_fault_while_running_exits_with_1(tmp_path: Path) -> None:
    toml = scale(tmp_path, "block = 64", "block = 96")
    done = run(DATA / "scale.ptx", toml, *QUICK)
    assert done.exit_code == 1
    assert "scale.ptx:" in done.stderr


def test_nothing_is_compared_after_a_fault(tmp_path: Path) -> None:
    np.save(tmp_path / "ones.npy", np.ones(64, np.float32))
    toml = scale(tmp_path, "uninitialised = true", 'fill = 7\ncompare = "ones.npy"')
    toml.write_text(toml.read_text().replace("block = 64", "block = 96"))
    done = run(DATA / "scale.ptx", toml, "--run-schedule", "in-order")
    assert done.exit_code == 1
    assert "bits          not compared: the run stopped at a fault\n" in done.stdout
    assert "differs" not in done.stdout


@pytest.mark.parametrize(("n", "code"), [(9, 0), (2, 1)])
def test_what_threads_printed_stands_before_the_summary(n: int, code: int, tmp_path: Path) -> None:
    ptx = Path(__file__).parents[1] / "data" / "nvcc" / "runtime.ptx"
    np.save(tmp_path / "x.npy", np.array([0, 5, 1, 7], np.int32))
    toml = written(
        tmp_path,
        f"""
        entry = "asserting"
        grid = 1
        block = 4
        [arrays.x]
        npy = "x.npy"
        [[args]]
        kind = "array"
        array = "x"
        [[args]]
        kind = "scalar"
        dtype = "int32"
        value = {n}
        """,
    )
    done = run(ptx, toml, "--json", str(tmp_path / "out.json"))
    lines = [
        "runtime.cu:42: void asserting(const int *, int): block: [0,0,0], thread: "
        f'[{t},0,0] Assertion `x[threadIdx.x] < n && "too large"` failed.\n'
        for t in (1, 3)
        if code
    ]
    assert done.exit_code == code, done.stderr
    assert done.stdout.startswith("".join([*lines, "kernel        asserting\n"]))
    # Also where nobody checks, and the fault ends the command.
    assert run(ptx, toml, *QUICK).stdout.startswith("".join(lines))
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["printed"] == "".join(lines)


@pytest.mark.parametrize(("warm", "code"), [("code", 2), ("memory", 2), ("nothing", 0)])
def test_caches_are_warm_in_timed_runs_alone(warm: str, code: int) -> None:
    done = run(DATA / "scale.ptx", DATA / "scale.toml", *QUICK, "--warm", warm)
    assert done.exit_code == code
    says = "--warm: caches need time, and the schedule in-order knows none"
    assert (says in done.stderr) == (code == 2)
