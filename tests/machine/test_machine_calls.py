"""Functions that are called: values, divergence, structures by value, hazards and faults inside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.machine.programs import ORDERS, build, expect, fault_of, launch, line_of

LANES = np.arange(32)

TRIPLE = """
.func (.param .b32 r) triple(.param .b32 a)
{ .reg .b32 x; ld.param.b32 x, [a]; mul.lo.u32 x, x, 3; st.param.b32 [r], x; ret; }
"""


def test_arguments_and_results_in_param_variables() -> None:
    body = """
    { .param .b32 param0; st.param.b32 [param0+0], %t;
      .param .b32 retval0; call.uni (retval0), triple, (param0);
      ld.param.b32 %r1, [retval0+0]; }
    st.global.u32 [%mine], %r1;
    """
    expect(body, LANES * 3, module=TRIPLE)


def test_arguments_and_results_in_registers() -> None:
    body = "call (%r1), triple, (%t); call (%r2), triple, (7); add.u32 %r1, %r1, %r2; st.global.u32 [%mine], %r1;"
    expect(body, LANES * 3 + 21, module=TRIPLE)


def test_parameters_in_registers() -> None:
    module = """
    .func (.reg .u32 o) mix(.reg .u32 a, .reg .f32 b, .reg .u32 unused)
    { .reg .u32 y; cvt.rzi.u32.f32 y, b; mad.lo.u32 o, a, 10, y; ret; }
    """
    body = """
    .param .b32 q; .param .b32 c;
    st.param.b32 [c], %t;
    call (q), mix, (c, 0f40E00000, 1);
    ld.param.b32 %r1, [q];
    st.global.u32 [%mine], %r1;
    """
    expect(body, LANES * 10 + 7, module=module)


def test_a_result_in_the_variable_of_an_argument() -> None:
    module = """
    .func (.param .b32 r) twice(.param .b32 a)
    { .reg .b32 x; st.param.b32 [r], 0; ld.param.b32 x, [a]; add.u32 x, x, x; st.param.b32 [r], x; ret; }
    """
    body = """
    .param .b32 q;
    st.param.b32 [q], %t; call (q), twice, (q); call (q), twice, (q);
    ld.param.b32 %r1, [q]; st.global.u32 [%mine], %r1;
    """
    expect(body, LANES * 4, module=module)


def test_a_guarded_call_is_of_some_lanes() -> None:
    body = """
    mov.b32 %r1, 1000;
    setp.lt.u32 %p1, %t, 5;
    @%p1 call (%r1), triple, (%t);
    @!%p1 call (_), triple, (%t);
    st.global.u32 [%mine], %r1;
    """
    expect(body, np.where(LANES < 5, LANES * 3, 1000), module=TRIPLE)


def test_lanes_return_from_several_places_and_meet_again() -> None:
    module = """
    .func (.param .b32 r) steps(.param .b32 a)
    {
      .reg .pred p; .reg .b32 x, y;
      ld.param.b32 x, [a];
      st.param.b32 [r], 1;
      setp.lt.u32 p, x, 8;   @p ret;
      st.param.b32 [r], 2;
      setp.lt.u32 p, x, 16;  @p ret;
      mov.b32 y, 0;
      AGAIN: add.u32 y, y, x; sub.u32 x, x, 1; setp.gt.u32 p, x, 28; @p bra AGAIN;
      st.param.b32 [r], y;
      ret.uni;
    }
    """
    body = """
    call (%r1), steps, (%t);
    activemask.b32 %r2;
    shr.u32 %r2, %r2, 31;
    mad.lo.u32 %r1, %r2, 1000, %r1;
    st.global.u32 [%mine], %r1;
    """
    sums = np.array([sum(range(29, n + 1)) if n >= 29 else n for n in range(32)])
    expect(body, np.where(LANES < 8, 1, np.where(LANES < 16, 2, sums)) + 1000, module=module)


def test_a_call_in_a_loop_and_calls_in_calls() -> None:
    module = (
        TRIPLE
        + """
    .func (.param .b32 r) nine(.param .b32 a)
    { .reg .b32 x, y; ld.param.b32 x, [a]; call (y), triple, (x); call (y), triple, (y); st.param.b32 [r], y; ret; }
    """
    )
    body = """
    mov.b32 %r1, %t; mov.b32 %r2, 0;
    LOOP: call (%r1), nine, (%r1);
    add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 3; @%p1 bra LOOP;
    st.global.u32 [%mine], %r1;
    """
    expect(body, LANES * 729, module=module)


def test_a_chain_of_calls_as_long_as_a_program_may_be() -> None:
    functions = [".func (.reg .u32 r) f0(.reg .u32 a) { add.u32 r, a, 1; ret; }"]
    functions += [
        f".func (.reg .u32 r) f{n}(.reg .u32 a) {{ add.u32 a, a, 1; call (r), f{n - 1}, (a); ret; }}"
        for n in range(1, 1000)
    ]
    body = "call (%r1), f999, (%t); st.global.u32 [%mine], %r1;"
    expect(body, LANES + 1000, module="\n".join(functions), orders=ORDERS[:1])


def test_a_structure_by_value() -> None:
    module = """
    .func (.param .align 8 .b8 r[16]) swap(.param .align 8 .b8 s[16])
    {
      .reg .b16 c; .reg .b32 a, b; .reg .b64 p;
      ld.param.s8 a, [s]; ld.param.u16 c, [s+2]; ld.param.b32 b, [s+4]; ld.param.b64 p, [s+8];
      st.param.b64 [r], p; st.param.v2.b32 [r+8], {b, a};
    }
    """
    body = """
    .param .align 8 .b8 s[16]; .param .align 8 .b8 r[16];
    mul.wide.u32 %rd1, %t, %t;
    neg.s32 %r1, %t;
    st.param.b8 [s], %r1;
    st.param.b16 [s+2], 9;
    st.param.b32 [s+4], 100;
    st.param.b64 [s+8], %rd1;
    call.uni (r), swap, (s);
    ld.param.b64 %rd2, [r]; ld.param.v2.u32 {%r2, %r3}, [r+8];
    cvt.u32.u64 %r4, %rd2; add.s32 %r4, %r4, %r2; add.s32 %r4, %r4, %r3;
    st.global.u32 [%mine], %r4;
    """
    expect(body, (LANES * LANES + 100 - LANES).astype(np.uint32), module=module)


@pytest.mark.parametrize("read", ["ld.param.b32 x, [a];", "ld.local.b32 x, [a];"])
def test_the_address_of_an_argument(read: str) -> None:
    """An argument whose address is taken is a copy: to write it leaves the caller's variable as it was."""
    module = f"""
    .func (.param .b32 r) pick(.param .align 4 .b8 s[16], .param .b32 n)
    {{
      .reg .b32 x, k; .reg .b64 a, o;
      ld.param.b32 k, [n]; mul.wide.u32 o, k, 4;
      mov.b64 a, s; add.u64 a, a, o;
      {read}
      mov.b64 o, s; st.local.b32 [o], 77;
      st.param.b32 [r], x;
    }}
    """
    body = """
    .param .align 4 .b8 s[16];
    st.param.b32 [s], 10; st.param.b32 [s+4], 11; st.param.b32 [s+8], 12; st.param.b32 [s+12], %t;
    and.b32 %r1, %t, 3;
    call (%r2), pick, (s, %r1);
    call (%r3), pick, (s, 0);
    mad.lo.u32 %r2, %r3, 100, %r2;
    st.global.u32 [%mine], %r2;
    """
    expect(body, np.where(LANES & 3 == 3, LANES, 10 + (LANES & 3)) + 1000, module=module)


WIDTHS = {1: "b8", 2: "b16", 4: "b32", 8: "b64"}
PIECES = st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=6)


def offsets(sizes: list[int]) -> list[int]:
    """Natural places of elements one after the other, in 16 bytes; those that do not fit are left out."""
    found, at = [], 0
    for size in sizes:
        at = -(-at // size) * size
        if at + size <= 16:
            found.append(at)
        at += size
    return found


@settings(max_examples=25, deadline=None)
@given(written=PIECES, read=PIECES)
def test_any_elements_written_are_read_as_any_elements(written: list[int], read: list[int]) -> None:
    data = np.random.default_rng(7).integers(0, 256, 16, np.uint8)
    stores = [
        f"st.param.b64 [s], {int(data[:8].view(np.uint64)[0])};",
        f"st.param.b64 [s+8], {int(data[8:].view(np.uint64)[0])};",
    ]
    for at, size in zip(offsets(written), written, strict=False):
        value = int(data[at : at + size].view(f"u{size}")[0])
        stores.append(f"st.param.{WIDTHS[size]} [s+{at}], {value};")
    loads, expected = [], 0
    for at, size in zip(offsets(read), read, strict=False):
        loads.append(
            f"mov.b64 y, 0; ld.param.{WIDTHS[size].replace('b', 'u')} y, [s+{at}]; mad.lo.u64 x, x, 31, y;"
        )
        expected = (expected * 31 + int(data[at : at + size].view(f"u{size}")[0])) % 2**64
    module = f"""
    .func (.param .b64 r) hash(.param .align 16 .b8 s[16])
    {{ .reg .b64 x, y; mov.b64 x, 0; {" ".join(loads)} st.param.b64 [r], x; }}
    """
    body = f"""
    .param .align 16 .b8 s[16]; {" ".join(stores)}
    call (%rd1), hash, (s);
    cvt.u32.u64 %r1, %rd1; shr.u64 %rd1, %rd1, 32; cvt.u32.u64 %r2, %rd1; xor.b32 %r1, %r1, %r2;
    st.global.u32 [%mine], %r1;
    """
    result, got, _ = launch(body, module=module, block=1, out=1)
    assert result.deadlock is None
    assert got[0] == (expected ^ expected >> 32) & 0xFFFFFFFF


def test_variables_of_a_function_and_of_the_module() -> None:
    module = """
    .global .align 4 .u32 table[4] = {5, 6, 7, 8};
    .func (.param .b32 r) look(.param .b32 a)
    {
      .shared .align 4 .b8 box[128]; .local .align 4 .b32 mine[2];
      .reg .b32 x, y, s; .reg .b64 g, o;
      ld.param.b32 x, [a];
      mov.u32 s, box; mad.lo.u32 s, x, 4, s; st.shared.u32 [s], x;
      st.local.u32 [mine+4], x;
      bar.sync 0;
      xor.b32 x, x, 1; mov.u32 s, box; mad.lo.u32 s, x, 4, s; ld.shared.u32 y, [s];
      ld.local.u32 x, [mine+4]; mad.lo.u32 y, y, 100, x;
      and.b32 x, x, 3; mul.wide.u32 o, x, 4; mov.u64 g, table; add.u64 g, g, o; ld.global.u32 x, [g];
      mad.lo.u32 y, x, 10000, y;
      st.param.b32 [r], y;
      bar.sync 0;
    }
    """
    body = "call (%r1), look, (%t); call (%r2), look, (%t); add.u32 %r1, %r1, %r2; st.global.u32 [%mine], %r1;"
    one = (LANES ^ 1) * 100 + LANES + (5 + (LANES & 3)) * 10000
    expect(body, one * 2, module=module)


def test_exit_in_a_function_ends_the_thread() -> None:
    module = ".func leave(.param .b32 a){ .reg .pred p; .reg .b32 x; ld.param.b32 x, [a]; setp.lt.u32 p, x, 4; @p exit; }\n"
    expect("call leave, (%t); st.global.u32 [%mine], 1;", (LANES >= 4) * 1, module=module)


def test_a_fault_names_the_line_of_the_function() -> None:
    module = ".func bad(.param .b64 a){\n.reg .b64 x; ld.param.b64 x, [a];\nst.global.u32 [x], 1; // here\n}\n"
    kernel = build("call bad, (0);", 0, module)
    assert fault_of(kernel) == (
        "cta (0,0,0) warp 0: global access: address 0x0 is in no allocation\n"
        "  try: pass an array that gpu.array or gpu.empty made"
    )
    result, _, _ = launch(kernel, check=True)
    (hazard,) = result.hazards
    assert hazard.second is not None
    assert hazard.second.line == line_of(kernel, "// here")


def test_a_race_in_a_function_is_found_at_its_line() -> None:
    module = """
    .shared .align 4 .b8 box[256];
    .func swap(.param .b32 a, .param .b32 n)
    {
      .reg .b32 s, x; ld.param.b32 s, [a]; st.shared.u32 [s], 1;
      ld.param.b32 s, [n];
      MEET
      ld.shared.u32 x, [s]; // reads
    }
    """
    body = """
    mov.u32 %r1, box; mad.lo.u32 %r1, %t, 4, %r1;
    xor.b32 %r2, %t, 32; mov.u32 %r3, box; mad.lo.u32 %r3, %r2, 4, %r3;
    call swap, (%r1, %r3);
    """
    for meet, rules in (("bar.sync 0;", []), ("", ["HS500"])):
        kernel = build(body, 0, module.replace("MEET", meet))
        result, _, _ = launch(kernel, check=True, block=64)
        assert [hazard.rule for hazard in result.hazards] == rules
        for hazard in result.hazards:
            assert hazard.second is not None
            assert hazard.second.line == line_of(kernel, "// reads")


def test_time_without_values() -> None:
    body = "call (%r1), triple, (%t); setp.lt.u32 %p1, %r1, 9; @%p1 st.global.u32 [%mine], %r1;"
    result, _, _ = launch(body, {"schedule": "timed"}, module=TRIPLE, values=False)
    assert result.cycles is not None
