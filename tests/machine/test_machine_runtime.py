"""Calls through registers and of CUDA's device runtime, in texts of nvcc (tests/data/nvcc) and in small ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hopsim as hs
from hopsim.hw.machine.heap import HEAP_BYTES
from tests.machine.programs import IN_ORDER, ORDERS, build, expect, fault_of, launch, line_of

NVCC = Path(__file__).parents[1] / "data" / "nvcc"
LANES = np.arange(32)

FUNCTIONS = """
.func (.param .b32 r) twice(.param .b32 a)
{ .reg .b32 x; ld.param.b32 x, [a]; add.u32 x, x, x; st.param.b32 [r], x; }
.func (.param .b32 r) square(.param .b32 a)
{ .reg .b32 x; ld.param.b32 x, [a]; mul.lo.u32 x, x, x; st.param.b32 [r], x; }
.func (.param .b32 r) other(.param .b64 a) { st.param.b32 [r], 9; }
.global .align 8 .u64 table[2] = {twice, square};
"""
LOOK = """
and.b32 %r1, %t, 1; mul.wide.u32 %rd1, %r1, 8;
mov.u64 %rd2, table; add.u64 %rd1, %rd1, %rd2; ld.global.u64 %rd3, [%rd1];
"""
BOTH = np.where(LANES & 1, LANES * LANES, LANES * 2)


def run(name: str, *args: Any, block: int = 32, gpu: hs.Gpu | None = None, **options: Any) -> Any:
    """Launch a kernel of runtime.cu; arrays come back."""
    gpu = gpu or hs.Gpu()
    given = [gpu.array(one) if isinstance(one, np.ndarray) else one for one in args]
    kernel = hs.load(NVCC / "runtime.ptx")[name]
    result = gpu.launch(kernel, grid=1, block=block, args=given, **options)
    return result, [one.numpy() for one in given if hasattr(one, "numpy")]


# --- through registers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "targets", [".callprototype (.param .b32 _) _ (.param .b32 _);", ".calltargets twice, square;"]
)
def test_lanes_call_different_functions(targets: str) -> None:
    body = f"{LOOK} P: {targets} call (%r2), %rd3, (%t), P; st.global.u32 [%mine], %r2;"
    expect(body, BOTH, module=FUNCTIONS)


def test_a_guarded_call_through_a_register() -> None:
    body = f"""{LOOK} mov.b32 %r2, 5; setp.lt.u32 %p1, %t, 16;
    P: .callprototype (.param .b32 _) _ (.param .b32 _); @!%p1 call (%r2), %rd3, (%t), P;
    st.global.u32 [%mine], %r2;"""
    expect(body, np.where(LANES < 16, 5, BOTH), module=FUNCTIONS)


def test_an_address_from_mov_in_another_kernel_of_the_file() -> None:
    module = (
        FUNCTIONS.replace("{twice, square}", "{0, 0}")
        + """
    .entry sets(.param .u64 p) { .reg .b64 a, p1; ld.param.u64 p1, [p]; mov.u64 a, square; st.global.u64 [p1], a; }
    """
    )
    kernel = build("""
        ld.param.u64 %rd1, [p0]; ld.global.u64 %rd2, [%rd1];
        P: .callprototype (.param .b32 _) _ (.param .b32 _); call (%r2), %rd2, (%t), P;
        st.global.u32 [%mine], %r2;""", 1, module)  # fmt: skip
    gpu = hs.Gpu()
    pointer, out = gpu.array(np.zeros(1, np.uint64)), gpu.array(np.zeros(32, np.uint32))
    gpu.launch(kernel.module["sets"], grid=1, block=1, args=[pointer])
    assert gpu.launch(kernel, grid=1, block=32, args=[out, pointer]).verdict == "clean"
    assert (out.numpy() == LANES * LANES).all()


def test_an_alias_is_the_function() -> None:
    module = FUNCTIONS + ".func (.param .b32 r) again(.param .b32 a);\n.alias again, square;\n"
    body = """
    P: .callprototype (.param .b32 _) _ (.param .b32 _);
    mov.u64 %rd1, again; call (%r1), %rd1, (%t), P; call (%r2), again, (%t);
    add.u32 %r1, %r1, %r2; st.global.u32 [%mine], %r1;
    """
    expect(body, LANES * LANES * 2, module=module)


def test_an_address_of_no_function_is_a_fault() -> None:
    body = "P: .callprototype (.param .b32 _) _ (.param .b32 _);\ncall (%r2), %rd1, (%t), P;"
    assert fault_of("mov.u64 %rd1, 66; " + body, module=FUNCTIONS) == (
        "cta (0,0,0) warp 0: call through a register: 0x42 is the address of no function that this call can be of\n"
        "  try: the address of a function with these parameters; a function pointer is valid in its own file only"
    )
    # One of other parameters is none either.
    assert "0x10000200" in fault_of("mov.u64 %rd1, other; " + body, module=FUNCTIONS)


def test_recursion_through_a_register_is_not_modelled_where_it_happens() -> None:
    module = """
    .func down(.param .b32 a);
    .global .align 8 .u64 self[1] = {down};
    .func down(.param .b32 a)
    {
      .reg .b32 x; .reg .b64 p, f; .reg .pred q;
      ld.param.b32 x, [a]; setp.eq.u32 q, x, 0; @q ret;
      mov.u64 p, self; ld.global.u64 f, [p]; sub.u32 x, x, 1;
      P: .callprototype _ (.param .b32 _);
      call f, (x), P;
    }
    """
    body = "mov.u64 %rd1, down; P: .callprototype _ (.param .b32 _); call %rd1, ({}), P; st.global.u32 [%mine], 1;"
    expect(body.format(0), np.ones(32, int), module=module)
    with pytest.raises(hs.NotModelled, match="recursion through a register is not modelled"):
        launch(body.format(1), module=module)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("call (%r1), %rd1, (%t);",
         "a call through a register ends with the label of a .callprototype or .calltargets"),
        ("P: .callprototype _ (); call (%r1), %rd1, (), P;", "call of '%rd1': expected 0 return values, got 1"),
        ("P: .callprototype _ (.param .b64 _); call %rd1, (%t), P;",
         "call of '%rd1': the argument has 4 bytes, but the parameter has 8"),
        ("P: .calltargets twice, k; call (%r1), %rd1, (%t), P;", "'k' in .calltargets is no function with a body"),
        ("P: .calltargets twice, other; call (%r1), %rd1, (%t), P;",
         "call of 'other': the argument has 4 bytes, but parameter 'a' has 8"),
        ("P: .callprototype _ (); call %f1, (), P;", "%f1 is .f32, expected the address of a function in .b64"),
        ("P: .callprototype _ (); mov.u64 %rd1, P;", "mov.u64: operand a is P, the label of a prototype"),
        ("P: .callprototype x (); call %rd1, (), P;", "expected '_' in the place of a name, got 'x'"),
        ("P: .callprototype _ _ (); call %rd1, (), P;", "expected ';' after a prototype, got '_'"),
    ],
)  # fmt: skip
def test_wrong_calls_through_registers(call: str, what: str) -> None:
    assert [error.what for error in build(call, 0, FUNCTIONS).errors] == [what]


def test_a_table_of_functions_as_nvcc_writes_it() -> None:
    which = np.random.default_rng(1).integers(0, 8, 32).astype(np.int32)
    x = np.arange(32, dtype=np.int32)
    result, (_, got) = run("pointers", which, x)
    one, two = np.array([2, 3, 5, 7])[which & 3], np.where(which & 4, 2, 7)
    assert result.verdict == "clean"
    assert (got == x * one + one + x * two + two).all()


# --- what nvcc does not inline --------------------------------------------------------------------

ITEM = np.dtype({"names": ["key", "weight", "tag", "rest"], "formats": ["i4", "f8", "3i1", "i2"], "offsets": [0, 8, 16, 20],
                 "itemsize": 24})  # fmt: skip


def test_structures_by_value_and_by_pointer() -> None:
    items = np.zeros(32, ITEM)
    items["key"], items["weight"], items["rest"] = LANES, LANES + 0.5, -7
    items["tag"] = np.arange(96).reshape(32, 3) - 40
    result, (got, tags) = run("items", items.view(np.uint8), np.zeros(32, np.int32))
    expected = items.copy()
    expected["weight"] *= np.where(LANES & 1, 2.5, -1.0)
    expected["key"] += expected["tag"][:, 1]
    for t in range(0, 32, 4):
        expected[[t, t + 1]] = expected[[t + 1, t]]
    assert result.verdict == "clean"
    found = got.view(ITEM)
    assert all((found[name] == expected[name]).all() for name in ITEM.names or ())
    assert (tags == expected["tag"][LANES, LANES % 3]).all()


def test_sines_of_large_doubles_take_the_slow_path() -> None:
    x = np.array(
        [
            0.1,
            1,
            3,
            1e5,
            1e6,
            3e9,
            1e22,
            -1e300,
            1e10,
            2**31 + 0.5,
            -7e15,
            np.inf,
            -0.0,
            1e-300,
            2.3e5,
            -1e5,
        ]
        * 2
    )
    result, (_, sines, cosines) = run("sines", x, np.zeros(32), np.zeros(32))
    assert result.verdict == "clean"
    with np.errstate(invalid="ignore"):
        for got, expected in ((sines, np.sin(x)), (cosines, np.cos(x))):
            assert (np.isnan(got) == np.isnan(expected)).all()
            finite = ~np.isnan(expected)
            apart = got[finite].view(np.int64) - expected[finite].view(np.int64)
            assert np.abs(apart).max() <= 1


def test_everything_at_once() -> None:
    """A table of functions, a structure by value, a switch, printf and assert in one kernel."""
    gpu = hs.Gpu()
    kernel = hs.load(NVCC / "calls.ptx")["calls"]
    assert kernel.unsupported == []
    keys = np.arange(32, dtype=np.int32) % 11
    out, cell = gpu.array(np.zeros(32, np.float32)), gpu.array(np.array([5], np.int32))
    pair = np.zeros(1, np.dtype([("a", "i4"), ("b", "f4"), ("p", "u8")]))
    pair["a"], pair["b"] = 3, 4.75
    args = [out, gpu.array(keys), np.int32(20), hs.ParamBytes(pair.tobytes(), pointers={8: cell})]
    result = gpu.launch(kernel, grid=1, block=32, args=args)
    # pairs[1].p points behind `cell`, and is read: a mistake of this program.
    assert [hazard.rule for hazard in result.hazards] == ["HS703"]
    assert "leave variable cell" in result.hazards[0].message


# --- printf ---------------------------------------------------------------------------------------


def test_printf_as_nvcc_calls_it() -> None:
    words = np.frombuffer(b"words\0", np.uint8)
    result, _ = run("printing", words, np.float64(-3.25), block=64)
    assert result.verdict == "clean"
    assert result.printed == (
        "-3|    3|12c   |0XBEF2|3|d|text|-003.250|-3.250000e+00|-3.25|-0x1.ap+1\n"
        "-5000000000 18000000000000000000 4464   007      3 -3.25 % 0x1234 wo|     words|words|%z\n"
        "n 11\n"
        "-35|   35|dac   |0XBF12|43|j|text|-003.250|-3.250000e+00|-3.25|-0x1.ap+1\n"
        "-5000000000 18000000000000000000 4464   007     35 -3.25 % 0x1234 wo|     words|words|%z\n"
        "n 11\n"
    )
    assert '"printed": "-3|' in result.json()


PRINTS = """
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.global .align 1 .b8 form[4] = {37, 117, 10, 0};
"""
PRINT = """
.local .align 8 .b8 packed[8]; st.local.u32 [packed], %t;
mov.b64 %rd1, packed; cvta.local.u64 %rd1, %rd1; mov.b64 %rd2, form;
"""


def test_each_lane_prints_and_gets_the_number_of_arguments() -> None:
    body = (
        PRINT
        + "setp.lt.u32 %p1, %t, 3; mov.b32 %r1, 77; @%p1 call (%r1), vprintf, (%rd2, %rd1); st.global.u32 [%mine], %r1;"
    )
    for order in ORDERS:
        result, got, _ = launch(body, order, module=PRINTS)
        assert result.printed == "0\n1\n2\n"
        assert (got == np.where(LANES < 3, 1, 77)).all()


def test_a_null_format_prints_nothing_and_gives_minus_one() -> None:
    result, got, _ = launch(
        "call (%r1), vprintf, (0, 0); st.global.u32 [%mine], %r1;", module=PRINTS
    )
    assert result.printed == ""
    assert (got == 0xFFFFFFFF).all()


def test_nothing_is_printed_without_values() -> None:
    result, _, _ = launch(
        PRINT + "call (_), vprintf, (%rd2, %rd1);",
        {"schedule": "timed"},
        module=PRINTS,
        values=False,
    )
    assert result.printed == ""
    assert result.cycles is not None


def test_a_format_without_an_end_or_outside_is_a_fault() -> None:
    module = PRINTS.replace("10, 0}", "10, 10}")
    text = fault_of(PRINT + "call (_), vprintf, (%rd2, %rd1);", module=module)
    assert "a string in variable form has no end\n  try: end it with a zero byte" in text
    text = fault_of(PRINT + "call (_), vprintf, (4, %rd1);", module=PRINTS)
    assert "global access: address 0x4 is in no allocation" in text


def test_a_function_of_the_runtime_that_is_declared_otherwise_is_wrong() -> None:
    kernel = build(
        "call (%r1), vprintf, (%rd1);", 0, ".extern .func (.param .b32 r) vprintf(.param .b64 a);"
    )
    assert [error.what for error in kernel.errors] == [
        "'vprintf' of CUDA's device runtime returns and takes (4) and (8, 8) bytes, here (4) and (8)"
    ]


# --- assert ---------------------------------------------------------------------------------------


def test_an_assertion_that_fails() -> None:
    x = np.arange(32, dtype=np.int32)
    result, _ = run("asserting", x, np.int32(32))
    assert (result.verdict, result.printed) == ("clean", "")
    result, _ = run("asserting", x, np.int32(30))
    lines = [
        "runtime.cu:42: void asserting(const int *, int): block: [0,0,0], thread: "
        f'[{t},0,0] Assertion `x[threadIdx.x] < n && "too large"` failed.'
        for t in (30, 31)
    ]
    assert result.printed == "".join(f"{line}\n" for line in lines)
    (hazard,) = result.hazards
    assert (result.verdict, result.exit_code, hazard.rule) == ("hazard", 1, "HS700")
    assert hazard.message.startswith(f"{lines[0]} (1 more threads of this warp failed)\n")
    assert hazard.hint == "find out why the condition of the assert is false"
    with pytest.raises(hs.MachineFault, match="Assertion") as caught:
        run("asserting", x, np.int32(30), check=False)
    assert caught.value.printed == result.printed


# --- the heap -------------------------------------------------------------------------------------


def test_lists_on_the_heap() -> None:
    for order in ORDERS:
        result, (sums,) = run("lists", np.zeros(64, np.int32), np.int32(10), block=64, **order)
        assert result.verdict == "clean"
        assert sums.tolist() == [sum(i * 10 + t for i in range(t % 5 + 1)) for t in range(64)]


@pytest.mark.parametrize(
    ("count_bytes", "found"),
    [(0, 32), (1 << 18, 32), (1 << 20, 8), (HEAP_BYTES, 1), (HEAP_BYTES + 1, 0)],
)
def test_malloc_gives_null_when_the_heap_is_exhausted(count_bytes: int, found: int) -> None:
    gpu = hs.Gpu()
    # What was freed can be had again by the next launch.
    for _ in range(2):
        result, (got,) = run("exhausting", np.zeros(32, np.uint64), np.uint64(count_bytes), gpu=gpu)
        assert result.verdict == "clean"
        assert got.sum() == found
    assert gpu.memory.heap.free_bytes == HEAP_BYTES


HEAP = """
.extern .func (.param .b64 r) malloc(.param .b64 a);
.extern .func free(.param .b64 a);
"""


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("call free, (%rd1); call free, (%rd1);", "was freed already, by (0,0,0) thread 0, line"),
        ("add.u64 %rd1, %rd1, 4; call free, (%rd1);", "is no address that malloc returned"),
        ("st.global.u32 [%rd1], 1; call free, (%rd1); ld.global.u32 %r1, [%rd1];", "is in no allocation"),
        ("st.global.u32 [%rd1+16], 1;", "16 bytes that malloc gave (0,0,0) thread 0"),
        ("ld.global.u32 %r1, [%rd1];", "were never written"),
    ],
)  # fmt: skip
def test_misuse_of_the_heap_is_a_fault(body: str, what: str) -> None:
    kernel = build(f"call (%rd1), malloc, (16);\n{body} // here\n", 0, HEAP)
    with pytest.raises(hs.MachineFault) as caught:
        launch(kernel, IN_ORDER, block=1, device=hs.Gpu())
    assert what in str(caught.value)
    assert f"test.ptx:{line_of(kernel, '// here')}: " in str(caught.value)


@pytest.mark.parametrize(("meet", "rules"), [("", ["HS500"]), ("bar.sync 0;", [])])
def test_a_race_in_memory_of_the_heap_is_found(meet: str, rules: list[str]) -> None:
    body = f"""
    .shared .b64 box; setp.eq.u32 %p1, %t, 0; mov.b64 %rd1, 0;
    @%p1 call (%rd1), malloc, (64); @%p1 st.shared.u64 [box], %rd1;
    bar.sync 0; ld.shared.u64 %rd1, [box];
    setp.eq.u32 %p2, %t, 40; @%p2 st.global.u32 [%rd1], %t;
    {meet}
    @%p1 ld.global.u32 %r1, [%rd1];
    """
    for order in ORDERS:
        device = hs.Gpu()
        result, _, _ = launch(body, order, module=HEAP, block=64, out=64, check=True, device=device)
        found = [hazard.rule for hazard in result.hazards]
        # Read first, the word is one that nobody wrote.
        assert found == rules or (rules and found[-1:] == ["HS702"])


def test_the_heap_outlives_a_launch() -> None:
    gpu = hs.Gpu()
    keeps = "call (%rd1), malloc, (4); st.u32 [%rd1], 7; ld.param.u64 %rd2, [p0]; st.global.u64 [%rd2], %rd1;"
    reads = "ld.param.u64 %rd2, [p0]; ld.global.u64 %rd1, [%rd2]; ld.u32 %r1, [%rd1]; st.global.u32 [%mine], %r1; call free, (%rd1);"
    place, out = gpu.array(np.zeros(1, np.uint64)), gpu.array(np.zeros(1, np.uint32))
    for body in (keeps, reads):
        assert (
            gpu.launch(build(body, 1, HEAP), grid=1, block=1, args=[out, place]).verdict == "clean"
        )
    assert out.numpy() == [7]
    assert hs.Gpu().memory.heap.free_bytes == gpu.memory.heap.free_bytes == HEAP_BYTES


def test_free_of_null_is_nothing() -> None:
    expect("call free, (0); st.global.u32 [%mine], 1;", np.ones(32, int), module=HEAP)
