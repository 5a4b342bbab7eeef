"""What a launch is given: every wrong kind of it is refused in words, and nothing is silently read as something else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hopsim as hs
from hopsim.events import Observer
from hopsim.launch.arguments import pack
from hopsim.layout.tensormap_types import Interleave, L2Promotion, OobFill

F32 = np.float32
SCALE = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry scale(.param .u64 x, .param .{type} factor) {
  .reg .b32 %t, %v, %by; .reg .b64 %a, %o;
  ld.param.u64 %a, [x]; ld.param.b32 %by, [factor]; mov.u32 %t, %tid.x;
  mul.wide.u32 %o, %t, 4; add.u64 %a, %a, %o;
  ld.global.b32 %v, [%a]; mul.f32 %v, %v, %by; st.global.b32 [%a], %v; ret; }"""
MAP = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry takes(.param .align 64 .b8 m[128]) { ret; }"""


def scale(kind: str = "f32") -> hs.Kernel:
    return hs.loads(SCALE.replace("{type}", kind))["scale"]


def ones(gpu: hs.Gpu) -> Any:
    return gpu.array(np.ones(64, F32))


def launch(gpu: hs.Gpu, **changed: Any) -> hs.LaunchResult:
    """Launch `scale` by two on 64 threads, in order, with something of it replaced."""
    given: dict[str, Any] = {
        "kernel": scale(), "grid": 1, "block": 64, "schedule": "in-order", "args": [ones(gpu), F32(2)],
    }  # fmt: skip
    return gpu.launch(**(given | changed))


# --- arrays of another GPU ------------------------------------------------------------------------


def test_an_array_of_another_gpu_is_refused_however_it_comes() -> None:
    one, other = hs.Gpu(), hs.Gpu()
    mine, foreign = ones(one), ones(other)
    assert mine.address == foreign.address
    with pytest.raises(hs.LaunchError) as refused:
        launch(one, args=[foreign, F32(2)])
    assert str(refused.value) == (
        "<ptx>: argument 0 of scale, parameter x: expected .u64, got an array of another GPU (float32[64])\n"
        "  try: make it on the GPU that is launched on: gpu.array(x)"
    )
    takes = hs.loads(MAP)["takes"]
    within = hs.TensorMap(foreign, box=(64,))
    for argument in (
        within,
        hs.ParamBytes(bytes(128), tensor_maps={0: within}),
        hs.ParamBytes(bytes(128), pointers={8: foreign}),
    ):
        with pytest.raises(hs.LaunchError, match="got an array of another GPU"):
            one.launch(takes, 1, 32, args=[argument], schedule="in-order")
    own = hs.TensorMap(mine, box=(64,))
    assert one.launch(takes, 1, 32, args=[own], schedule="in-order").verdict == "clean"
    with pytest.raises(hs.LaunchError, match="got an array of another GPU"):
        launch(one, args=[hs.Gpu().empty(0, F32), F32(2)])


# --- scalars --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "advice"),
    [
        ("f32", np.int32(2), "np.float32(x)"),
        ("f32", np.uint32(2), "np.float32(x)"),
        ("u32", F32(2), "np.int32(x)"),
        ("s32", F32(2), "np.int32(x)"),
        ("f64", np.int64(2), "np.float64(x)"),
        ("u64", np.float64(2), "np.int64(x)"),
        ("u16", ml_dtypes.bfloat16(2), "np.int16(x)"),
    ],
)
def test_a_number_of_the_other_kind_is_refused(kind: str, value: Any, advice: str) -> None:
    gpu = hs.Gpu()
    with pytest.raises(hs.LaunchError) as refused:
        launch(gpu, kernel=scale(kind), args=[ones(gpu), value])
    assert refused.value.what == (
        f"argument 1 of scale, parameter factor: expected .{kind}, got a {type(value).__name__} scalar,"
        " whose bits mean another number"
    )
    assert refused.value.hint == f"{advice}, or x.tobytes() for the bits as they are"


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        ("f32", "np.float32(x)"), ("f64", "np.float64(x)"), ("s32", "np.int32(n)"), ("u16", "np.uint16(n)"), ("b32", "np.uint32(n)"),
    ],
)  # fmt: skip
def test_nothing_in_the_place_of_a_number_says_which_number_goes_there(
    kind: str, advice: str
) -> None:
    with pytest.raises(hs.LaunchError, match=rf"expected \.{kind}, got None") as refused:
        launch(hs.Gpu(), kernel=scale(kind), args=[None, None])
    assert refused.value.hint == f"pass a numpy scalar such as {advice}"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("f32", F32(2)), ("f32", F32(2).tobytes()), ("b32", F32(2)), ("b32", np.uint32(0x40000000)),
        ("u32", np.int32(0x40000000)), ("s32", np.uint32(0x40000000)), ("f32", np.array(2, ">f4")[()]),
    ],
)  # fmt: skip
def test_the_bits_that_a_parameter_takes(kind: str, value: Any) -> None:
    gpu = hs.Gpu()
    x = ones(gpu)
    assert launch(gpu, kernel=scale(kind), args=[x, value]).verdict == "clean"
    assert (x.numpy() == 2).all()


# --- shapes and options ---------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [np.uint8(64), np.int64(64), [np.int32(64)], (64, 1), np.array([64, 1])])  # fmt: skip
def test_whole_numbers_of_numpy_are_whole_numbers(whole: Any) -> None:
    gpu = hs.Gpu()
    result = launch(
        gpu, block=whole, grid=np.int64(1), cluster=np.uint8(1), shared_bytes=np.int32(16)
    )
    assert (result.verdict, result.block, result.grid) == ("clean", (64, 1, 1), (1, 1, 1))
    empty = gpu.empty(np.int64(64), F32)
    assert empty.shape == (64,)
    numbers = hs.TensorMap(empty, box=[np.int64(4)], dims=(np.uint8(64),), offset=np.int64(16)).spec
    assert numbers == hs.TensorMap(empty, box=(4,), dims=(64,), offset=16).spec


NO_LIMIT = "max_cycles=1_000_000, or None for no limit"
OBSERVE = "observers=[Mine()], with class Mine(hopsim.events.Observer)"


@pytest.mark.parametrize(
    ("changed", "what", "hint"),
    [
        (
            {"block": "64"},
            "block '64': expected one to three positive whole numbers",
            "block=(8, 8) or block=64",
        ),
        (
            {"grid": "1"},
            "grid '1': expected one to three positive whole numbers",
            "grid=(8, 8) or grid=64",
        ),
        (
            {"grid": 1.5},
            "grid 1.5: expected one to three positive whole numbers",
            "grid=(8, 8) or grid=64",
        ),
        (
            {"grid": None},
            "grid None: expected one to three positive whole numbers",
            "grid=(8, 8) or grid=64",
        ),
        (
            {"shared_bytes": 1.5},
            "shared_bytes: expected a whole number, got 1.5",
            "shared_bytes=0 without dynamic shared memory",
        ),
        ({"seed": "a"}, "seed: expected a whole number, got 'a'", "seed=0"),
        ({"schedule": "seeded", "seed": -3}, "seed: expected 0 or more, got -3", "seed=0"),
        ({"max_cycles": "a"}, "max_cycles: expected a whole number, got 'a'", NO_LIMIT),
        ({"max_cycles": -1}, "max_cycles: expected 1 or more, got -1", NO_LIMIT),
        ({"max_cycles": 0}, "max_cycles: expected 1 or more, got 0", NO_LIMIT),
        (
            {"schedule": "timd"},
            "schedule 'timd': expected one of timed, in-order, seeded, adversarial",
            'schedule="timed"',
        ),
        ({"warm": 3}, "warm 3: expected one of nothing, code, memory", 'warm="nothing"'),
        (
            {"check": "yes"},
            "check: expected True, False or CheckOptions, got 'yes'",
            "check=True, or check=hs.CheckOptions(strict=True)",
        ),
        (
            {"check": None},
            "check: expected True, False or CheckOptions, got None",
            "check=True, or check=hs.CheckOptions(strict=True)",
        ),
        ({"observers": [1]}, "observers[0]: expected an observer, got a int", OBSERVE),
        (
            {"observers": [Observer()] * 2 + [Observer]},
            "observers[2]: expected an observer, got the class Observer",
            OBSERVE,
        ),
        (
            {"observers": Observer()},
            "observers: expected a list of observers, got a Observer",
            OBSERVE,
        ),
        (
            {"trace": True},
            "trace=True: a timeline needs time, and the schedule in-order knows none",
            'schedule="timed", and timing=True',
        ),
        (
            {"kernel": "scale"},
            "kernel: expected an entry of a module, got a str",
            'hs.load("FILE.ptx")["NAME"]',
        ),
        (
            {"kernel": hs.loads(MAP)},
            "kernel: expected an entry of a module, got a Module",
            'module["takes"]',
        ),
        (
            {"args": hs.Gpu().empty(4, F32)},
            "args: expected a list of one argument for each parameter, got a SimArray",
            "args=[x, np.int32(n)]",
        ),
    ],
)
def test_options_of_a_launch_that_are_refused(
    changed: dict[str, Any], what: str, hint: str
) -> None:
    with pytest.raises(hs.LaunchError) as refused:
        launch(hs.Gpu(), **changed)
    assert (refused.value.what, refused.value.hint) == (what, hint)
    if "kernel" not in changed:
        assert refused.value.where.startswith("<ptx>")


@pytest.mark.parametrize(
    "changed",
    [
        {"grid": "1"},
        {"block": 0},
        {"cluster": 1.5},
        {"shared_bytes": "1"},
        {"seed": -1},
        {"schedule": "no"},
    ],
)
def test_a_refused_launch_names_its_kernel(changed: dict[str, Any]) -> None:
    with pytest.raises(hs.LaunchError, match="^<ptx>: kernel scale: "):
        launch(hs.Gpu(), **changed)


# --- arrays, maps, text ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda gpu: gpu.empty(-4, F32), "shape: expected a whole number or several, none below 0, got -4"),
        (lambda gpu: gpu.empty("4", F32), "none below 0, got '4'"),
        (lambda gpu: gpu.empty((4, 1.5), F32), r"none below 0, got \(4, 1.5\)"),
        (lambda gpu: gpu.empty(1 << 40, "i4, 2f4"), r"out of memory: array of 12-byte records\[1099511627776\] takes"),
        (lambda gpu: gpu.empty((1 << 40, 1 << 40), F32), r"out of memory: array float32\[.*\] takes 4,835,.* bytes, 80,000,000,000 of"),
        (lambda gpu: (gpu.array([1.0] * 64), gpu.empty(80 * 10**9, "uint8")), "79,999,999,488 of 80,000,000,000 are left"),
        (lambda gpu: gpu.empty(4, "float33"), "dtype: expected an element type of numpy or ml_dtypes, got 'float33'"),
        (lambda gpu: gpu.empty(4, object), "dtype: expected numbers, got object"),
        (lambda gpu: gpu.array([object()]), "dtype: expected numbers, got object"),
        (lambda gpu: gpu.array(["a"]), "dtype: expected numbers, got <U1"),
        (lambda gpu: gpu.array([[1], [1, 2]]), "expected an array of numbers: .* inhomogeneous shape"),
        (lambda gpu: gpu.array(np.ones(4, ">f4")), "dtype: expected little-endian numbers, as a GPU reads them, got >f4"),
        (lambda gpu: ones(gpu).write([1.0] * 64), r"the array holds float32 \(64,\), got float64 \(64,\)"),
    ],
)  # fmt: skip
def test_arrays_that_are_refused(make: Callable[[hs.Gpu], object], words: str) -> None:
    with pytest.raises(hs.LaunchError, match=words):
        make(hs.Gpu())


def test_an_array_that_the_host_has_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def allocate(*_: object) -> None:
        raise MemoryError

    gpu = hs.Gpu()
    monkeypatch.setattr(gpu.memory, "allocate", allocate)
    with pytest.raises(
        hs.LaunchError, match=r"this computer has no room for array float32\[4\], 16 bytes"
    ):
        gpu.empty(4, F32)


def test_a_list_replaces_the_contents_where_its_type_is_the_arrays() -> None:
    x = hs.Gpu().array(np.zeros(3))
    x.write([1.0, 2.0, 3.0])  # type: ignore[arg-type]
    assert x.numpy().tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"array": np.zeros(64, F32)}, "a tensor map is over an array in device memory, got a ndarray"),
        ({"dtype": "bogus"}, "unknown TensorDataType 'bogus'"),
        ({"box": (64.0,)}, r"box: expected whole numbers, innermost dimension first, got \(64.0,\)"),
        ({"box": "64"}, "box: expected whole numbers, innermost dimension first, got '64'"),
        ({"strides": (0.5,)}, "strides: expected whole numbers"),
        ({"dims": (1.5,)}, "dims: expected whole numbers"),
        ({"element_strides": "1"}, "element_strides: expected whole numbers"),
        ({"offset": 0.5}, "offset: expected a whole number of bytes, got 0.5\n  try: offset=0"),
        ({"offset": [16]}, r"offset: expected a whole number of bytes, got \[16\]"),
        ({"dtype": np.float32}, 'dtype: expected the name of a type, got .*\n  try: dtype="float16"'),
        ({"swizzle": None}, 'swizzle None: expected one of none, 32B, 64B, 128B\n  try: swizzle="none"'),
        ({"swizzle": "256B"}, "swizzle '256B': expected one of none, 32B, 64B, 128B\n  try: swizzle=\"128B\""),
        ({"swizzle": [64]}, "swizzle .64.: expected one of none"),
        ({"oob_fill": OobFill.ZEROS}, 'oob_fill <.*>: expected one of zeros, nan\n  try: oob_fill="zeros"'),
        ({"oob_fill": None}, 'oob_fill None: expected one of zeros, nan\n  try: oob_fill="zeros"'),
        ({"interleave": Interleave.NONE}, 'expected one of none, 16B, 32B\n  try: interleave="none"'),
        ({"interleave": None}, 'interleave None: expected one of none, 16B, 32B\n  try: interleave="none"'),
        ({"l2_promotion": 128}, 'l2_promotion 128: expected one of .*\n  try: l2_promotion="128B"'),
        ({"l2_promotion": L2Promotion.B64}, 'l2_promotion <.*>: expected .*\n  try: l2_promotion="64B"'),
        ({"l2_promotion": "128X"}, "l2_promotion '128X': expected one of none, 64B, 128B, 256B"),
        (
            {"box": (16,), "dims": (64, 1, 1), "strides": (256, 256), "lower_corner": (0,), "upper_corner": (0,)},
            "box must have 2 entries for an im2col map, got 1",
        ),
    ],
)  # fmt: skip
def test_tensor_maps_that_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(hs.TensorMapError, match=words):
        hs.TensorMap(**({"array": ones(hs.Gpu()), "box": (64,)} | options))


def test_a_map_shows_its_type_by_name() -> None:
    shown = repr(hs.TensorMap(ones(hs.Gpu()), box=(16,)))
    assert shown == "TensorMap(float32, dims=(64,), box=(16,), swizzle='none')"


def test_a_map_takes_the_names_of_the_types_that_arrays_have() -> None:
    x = hs.Gpu().array(np.zeros(64, np.uint8))
    assert hs.TensorMap(x, box=(64,), dtype="float8_e4m3fn").spec == hs.TensorMap(x, box=(64,)).spec


def test_a_map_of_another_width_lies_over_the_bytes_of_the_array() -> None:
    gpu = hs.Gpu()
    x = gpu.array(np.zeros((8, 4, 32), np.uint8))
    wide = hs.TensorMap(x, box=(8, 4, 8), dtype="uint32").spec
    assert (wide.dims, wide.strides) == ((8, 4, 8), (32, 128))
    halves = hs.TensorMap(
        gpu.array(np.zeros((8, 32), np.uint32)), box=(64, 8), dtype="float16"
    ).spec
    assert (halves.dims, halves.strides) == ((64, 8), (128,))
    # Extents are elements of the map, so that dense rows are of these.
    given = hs.TensorMap(x, box=(16, 8), dims=(16, 16), dtype="uint32").spec
    assert given.strides == (64,)
    with pytest.raises(
        hs.TensorMapError, match=r"rows of whole elements of 8 bytes, got 12 bytes \(12 of uint8\)"
    ):
        hs.TensorMap(gpu.array(np.zeros((8, 12), np.uint8)), box=(1, 8), dtype="float64")


@pytest.mark.parametrize("text", [MAP.encode(), None])
def test_text_is_text(text: Any) -> None:
    with pytest.raises(hs.PtxError, match="expected PTX text, got "):
        hs.loads(text)


@pytest.mark.parametrize("path", [None, 3, b"k.ptx"])
def test_a_path_is_a_path(path: Any) -> None:
    with pytest.raises(
        hs.PtxError, match="expected the path of a file, got .*\n  try: hopsim.load"
    ):
        hs.load(path)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"data": "abc"}, "ParamBytes: expected the bytes of a structure, got a str"),
        ({"data": 24}, "ParamBytes: expected the bytes of a structure, got a int"),
        (
            {"pointers": {0: None}},
            r"dictionary of byte offset to array in device memory, got \{0: a NoneType\}",
        ),
        ({"pointers": [1]}, "expected pointers to be a dictionary of .* got a list"),
        ({"tensor_maps": {"0": None}}, r"expected tensor_maps to be .* got \{'0': a NoneType\}"),
    ],
)
def test_a_structure_is_bytes_with_arrays_and_maps_inside(
    given: dict[str, Any], words: str
) -> None:
    with pytest.raises(hs.LaunchError, match=words):
        hs.ParamBytes(**({"data": bytes(24)} | given))
    assert bytes(hs.ParamBytes(np.zeros(1, RECORD)).data) == bytes(24)  # type: ignore[arg-type]


def test_a_timeline_that_cannot_be_written(tmp_path: Path) -> None:
    result = launch(hs.Gpu(), schedule="timed", trace=True)
    with pytest.raises(hs.HopsimError, match=r"cannot write .*t\.json: No such file or directory"):
        result.save_trace(tmp_path / "none" / "t.json")


# --- limits ---------------------------------------------------------------------------------------


def bounded(directives: str) -> hs.Kernel:
    return hs.loads(
        SCALE.replace("{type}", "f32").replace("factor) {", f"factor) {directives} {{")
    )["scale"]


@pytest.mark.parametrize(
    ("changed", "what", "hint"),
    [
        ({"grid": (1, 70000)}, "grid.y is 70000, the limit is 65535", "grid.x has room"),
        ({"block": (1, 1, 65)}, "block.z is 65, the limit is 64", "a smaller block"),
        ({"block": (64, 32)}, "a block of 2048 threads; the limit is 1024", "a smaller block"),
        ({"grid": 32, "cluster": 32}, "a cluster of 32 CTAs; the limit is 16", "a smaller cluster"),
        (
            {"kernel": bounded(".maxclusterrank 2"), "grid": 4, "cluster": 4},
            "a cluster of 4 CTAs, but .maxclusterrank allows 2",
            "a smaller cluster",
        ),
        (
            {"kernel": bounded(".explicitcluster .reqnctapercluster 2"), "grid": 4, "cluster": 4},
            "cluster (4, 1, 1), but .reqnctapercluster says (2,)",
            "launch that cluster",
        ),
        (
            {"kernel": bounded(".maxntid 32")},
            "a block of 64 threads, but .maxntid allows 32",
            "__launch_bounds__",
        ),
    ],
)
def test_limits_of_a_launch_say_what_to_try(changed: dict[str, Any], what: str, hint: str) -> None:
    with pytest.raises(hs.LaunchError) as refused:
        launch(hs.Gpu(), **changed)
    assert refused.value.what == what
    assert hint in refused.value.hint


BY_VALUE = (
    ".version 8.7\n.target sm_90a\n.address_size 64\n"
    ".visible .entry k(.param .align 64 .b8 map[128], .param .align 8 .b8 record[24], .param .u64 x) { ret; }\n"
)


@pytest.mark.parametrize(
    ("at", "words"),
    [
        (0, r"hs\.TensorMap\(x, box=\(64, 128\)\) for a tensor map"),
        (1, r"hs\.ParamBytes\(bytes\(24\), pointers=\{0: x\}\)"),
    ],
)
def test_an_array_in_the_place_of_a_value_says_what_goes_there(at: int, words: str) -> None:
    gpu = hs.Gpu()
    x = gpu.array(np.zeros((128, 128), np.float32))
    args: list[object] = [hs.TensorMap(x, box=(32, 32)), bytes(24), x]
    args[at] = x
    with pytest.raises(hs.LaunchError, match=words):
        gpu.launch(hs.loads(BY_VALUE)["k"], grid=1, block=32, args=args)


RECORD = np.dtype([("n", "i4"), ("scale", "f4"), ("p", "u8"), ("m", "i8")], align=True)


@pytest.mark.parametrize("make", [lambda one: one, lambda one: one[0], lambda one: one.reshape(())])
def test_a_numpy_record_goes_by_value(make: Callable[[Any], Any]) -> None:
    record = np.zeros(1, RECORD)
    record["n"], record["m"] = 7, -2
    gpu = hs.Gpu()
    kernel = hs.loads(BY_VALUE)["k"]
    block = pack(kernel, [bytes(128), make(record), gpu.array(np.zeros(4))], gpu)
    assert bytes(block[128:152]) == record.tobytes()


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (
            np.zeros(1, [("n", "i4")]),
            "expected 24 bytes by value, got a numpy structure of 4 bytes",
        ),
        (np.zeros(2, RECORD), "got a numpy array of"),
        (np.zeros(3, "i8"), "got a numpy array of int64"),
    ],
)
def test_a_numpy_record_of_another_size_does_not(record: Any, words: str) -> None:
    gpu = hs.Gpu()
    args = [bytes(128), record, gpu.array(np.zeros(4))]
    with pytest.raises(hs.LaunchError, match=words):
        gpu.launch(hs.loads(BY_VALUE)["k"], grid=1, block=32, args=args)


def test_a_host_array_in_the_place_of_an_address_is_put_on_the_device_first() -> None:
    args = [bytes(128), bytes(24), np.zeros(4, np.float32)]
    with pytest.raises(
        hs.LaunchError, match=r"got a numpy array of float32\n  try: gpu\.array\(x\)"
    ):
        hs.Gpu().launch(hs.loads(BY_VALUE)["k"], grid=1, block=32, args=args)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"shared_bytes": -1}, "shared_bytes: expected 0 or more, got -1"),
        ({"values": "no"}, "values: expected True or False, got 'no'"),
        ({"timing": 0}, "timing: expected True or False, got 0"),
        ({"trace": "x.json"}, "trace: expected True or False, got 'x.json'"),
        ({"progress": 3}, "progress: expected a function of the share that is done, got 3"),
    ],
)
def test_options_that_would_be_taken_for_others(given: dict[str, object], words: str) -> None:
    kernel = hs.loads(BY_VALUE)["k"]
    with pytest.raises(hs.LaunchError, match=words):
        hs.Gpu().launch(kernel, grid=1, block=32, args=[bytes(128), bytes(24), None], **given)


def test_numpys_own_functions_take_an_array_of_a_device() -> None:
    x = hs.Gpu().array(np.arange(4, dtype=np.float32))
    assert np.asarray(x).dtype == np.float32
    np.testing.assert_array_equal(x, [0, 1, 2, 3])
    assert np.asarray(x, np.int32).tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="copied to the host"):
        np.array(x, copy=False)


def test_what_a_prompt_shows() -> None:
    module = hs.loads(BY_VALUE, "k.ptx")
    assert (repr(module), repr(module["k"])) == ("<Module k.ptx: k>", "<Kernel k of k.ptx>")
    assert repr(hs.Gpu()) == "<Gpu h100-sxm>"


DYNAMIC = """.version 8.7
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 dyn[];
.visible .entry k() { .reg .b32 %r1; mov.u32 %r1, 7; st.shared.u32 [dyn], %r1; ret; }"""


def test_forgotten_shared_memory_is_named_by_the_hint_of_a_plain_store() -> None:
    kernel = hs.loads(DYNAMIC)["k"]
    wanted = (
        "the kernel was launched with shared_bytes=0: give the bytes of dynamic shared memory that it was written for;"
        " or check the address arithmetic and the size of the buffer"
    )
    found = hs.Gpu().launch(kernel, 1, 32, schedule="in-order")
    assert [one.hint for one in found.hazards] == [wanted]
    with pytest.raises(hs.MachineFault) as fault:
        hs.Gpu().launch(kernel, 1, 32, schedule="in-order", check=False)
    assert fault.value.hint == wanted
    assert str(fault.value).endswith(f"  try: {wanted}")
    assert hs.Gpu().launch(kernel, 1, 32, shared_bytes=4).verdict == "clean"
