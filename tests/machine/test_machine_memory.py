"""Loads, stores and addresses in every state space; what goes wrong is told exactly."""

from __future__ import annotations

import numpy as np
import pytest

from hopsim.errors import LaunchError
from hopsim.runtime.gpu import Gpu
from tests.machine.programs import (
    IN_ORDER,
    TIMED,
    UNTIMED,
    build,
    expect,
    fault_of,
    gpu,
    launch,
)

LANES = np.arange(32)
ONE = (IN_ORDER,)

# --- kinds of accesses -----------------------------------------------------------------------------


def test_registers_of_devices_and_uniform_loads_are_accesses_like_others() -> None:
    body = """
    mov.v4.u32 {%r1, %r2, %r3, %r4}, %ntid;
    mad.lo.u32 %r1, %r1, %r2, %t;
    st.mmio.relaxed.sys.global.u32 [%mine], %r1;
    ld.mmio.relaxed.sys.u32 %r2, [%mine];
    bar.sync 0;
    ldu.global.v2.u32 {%r3, %r4}, [%out+8];
    add.u32 %r2, %r2, %r3;
    mad.lo.u32 %r2, %r4, 1000, %r2;
    bar.sync 0;
    st.global.u32 [%mine], %r2;
    """
    expected = 64 + np.arange(64) + (64 + 2) + (64 + 3) * 1000
    for order in (*UNTIMED[:3], TIMED):
        expect(body, expected, block=64, orders=[order], check=True)


# --- addresses -------------------------------------------------------------------------------------


def test_what_shared_memory_is_too_small_for_is_cut_off_an_address() -> None:
    # DeepGEMM hands generic addresses of 64 bits to st.shared.
    body = """
    .shared .align 16 .b8 box[256];
    mov.u64 %rd5, box;
    mul.wide.u32 %rd2, %t, 4;
    add.u64 %rd6, %rd5, %rd2;
    cvta.shared.u64 %rd7, %rd6;
    st.shared.u32 [%rd7+64], %t;
    ld.shared.u32 %r5, [%rd6+64];
    atom.shared.add.u32 %r6, [%rd7+64], 5;
    ld.shared::cta.u32 %r7, [%rd7+64];
    mad.lo.u32 %r8, %r5, 1000, %r7;
    st.global.u32 [%mine], %r8;
    """
    expect(body, LANES * 1000 + LANES + 5)


# --- widths, vectors, extension -------------------------------------------------------------------


@pytest.mark.parametrize("space", ["global", "shared", "generic"])
@pytest.mark.parametrize(
    ("kind", "size", "signed"),
    [
        ("u8", 1, False), ("s8", 1, True), ("b8", 1, False), ("u16", 2, False), ("s16", 2, True), ("b16", 2, False),
        ("u32", 4, False), ("s32", 4, True), ("f32", 4, False), ("u64", 8, False), ("s64", 8, True), ("f64", 8, False),
    ],
)  # fmt: skip
def test_every_width_extends_into_wider_registers(
    space: str, kind: str, size: int, signed: bool
) -> None:
    rng = np.random.default_rng(size)
    data = rng.integers(0, 256, 32 * 8, dtype=np.uint8)
    wide = "%rd10" if size == 8 or kind[0] not in "f" else "%f1"
    wide = "%f1" if kind == "f32" else wide
    loaded = "mov.b32 %r9, %f1; cvt.u64.u32 %rd10, %r9;" if kind == "f32" else ""
    if kind == "f64":
        wide = "%fd"
        loaded = "mov.b64 %rd10, %fd;"
    prefix = "" if space == "generic" else f".{space}"
    body = f"""
    .reg .f64 %fd;
    .shared .align 16 .b8 box[256];
    ld.param.u64 %rd1, [p0];
    mul.wide.u32 %rd2, %t, 8;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.u64 %rd4, [%rd3];
    mov.u64 %rd5, box;
    add.u64 %rd6, %rd5, %rd2;
    st.shared.u64 [%rd6], %rd4;
    cvta.shared.u64 %rd7, %rd6;
    {"mov.u64 %rd8, %rd3;" if space == "global" else ""}
    {"mov.u64 %rd8, %rd6;" if space == "shared" else ""}
    {"mov.u64 %rd8, %rd7;" if space == "generic" else ""}
    ld{prefix}.{kind} {wide}, [%rd8];
    {loaded}
    add.u64 %rd12, %out, %rd2;
    st.global.u64 [%rd12], %rd10;
    """
    words = data.view(np.uint64).reshape(32)
    low = words & np.uint64((1 << 8 * size) - 1)
    if signed:
        low = low.astype(f"u{size}").view(f"i{size}").astype(np.int64).view(np.uint64)
    expect(body, low, dtype=np.uint64, inputs=[data], orders=UNTIMED[:2])


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        (kind, count)
        for kind in ("b8", "b16", "b32", "b64")
        for count in (2, 4)
        if (kind, count) != ("b64", 4)
    ],
)
def test_vectors_store_and_load(kind: str, count: int) -> None:
    size = int(kind[1:]) // 8
    register = {1: "%h", 2: "%h", 4: "%r", 8: "%rd"}[size]
    names = [f"{register}{20 + k}" for k in range(count)]
    fill = "".join(
        f"add.u32 %r50, %t, {k * 50}; cvt.u{max(size, 2) * 8}.u32 {name}, %r50;"
        for k, name in enumerate(names)
    )
    if size == 4:
        fill = "".join(f"add.u32 {name}, %t, {k * 50};" for k, name in enumerate(names))
    bytes_each = size * count
    body = f"""
    {fill}
    mul.wide.u32 %rd1, %t, {bytes_each};
    add.u64 %rd2, %out, %rd1;
    .shared .align 16 .b8 box[{32 * bytes_each}];
    mov.u64 %rd3, box;
    add.u64 %rd3, %rd3, %rd1;
    st.shared.v{count}.{kind} [%rd3], {{{", ".join(reversed(names))}}};
    ld.shared.v{count}.{kind} {{{", ".join(names)}}}, [%rd3];
    st.global.v{count}.{kind} [%rd2], {{{", ".join(names)}}};
    """
    k = np.arange(count)[::-1]
    expected = (LANES[:, None] + k * 50).astype(f"u{size}")
    expect(body, expected.reshape(-1), dtype=expected.dtype, orders=UNTIMED[:2])


def test_stores_of_a_register_of_128_bits_write_its_low_bits() -> None:
    body = """
    .reg .b128 %q;
    mov.b64 %rd1, 0x1122334455667788;
    mov.b64 %rd2, 9;
    mov.b128 %q, {%rd1, %rd2};
    st.global.b64 [%out], %q;
    st.global.v2.b32 [%out+8], {%q, 5};
    st.global.b8 [%out+16], %q;
    """
    expect(body, [0x55667788, 0x11223344, 0x55667788, 5, 0x88], block=1, orders=ONE)


def test_sub_word_stores_keep_their_neighbours() -> None:
    body = """
    add.u64 %rd1, %out, 1;
    cvt.u64.u32 %rd2, %t;
    mad.lo.u64 %rd1, %rd2, 4, %rd1;
    cvt.u16.u32 %h1, %t;
    st.global.u8 [%rd1], %h1;
    mov.b32 %r1, 0x12345678;
    st.global.u8 [%rd1+1], %r1;
    """
    expect(body, 0xFF0000FF | LANES << 8 | 0x78 << 16, fill=0xFFFFFFFF)


# --- addresses ------------------------------------------------------------------------------------


def test_static_shared_memory_begins_at_0x400_and_dynamic_at_an_aligned_address() -> None:
    # Recorded on an H100: 24 static bytes, then `.extern .shared .align 1024`.
    module = ".extern .shared .align 1024 .b8 dynamic[];"
    body = """
    .shared .align 8 .b8 static[24];
    mov.u32 %r1, static;
    mov.u32 %r2, dynamic;
    mov.u32 %r3, %dynamic_smem_size;
    mov.u32 %r4, %total_smem_size;
    mov.u32 %r5, %cluster_ctarank;
    setp.eq.u32 %p1, %t, 0; @%p1 st.global.u32 [%mine], %r1;
    setp.eq.u32 %p1, %t, 1; @%p1 st.global.u32 [%mine], %r2;
    setp.eq.u32 %p1, %t, 2; @%p1 st.global.u32 [%mine], %r3;
    setp.eq.u32 %p1, %t, 3; @%p1 st.global.u32 [%mine], %r4;
    setp.eq.u32 %p1, %t, 4; @%p1 st.global.u32 [%mine], %r5;
    """
    first = [0x400, 0x800, 4096, 0x1400, 0]
    # In a cluster the rank of the CTA stands in bits 24 and up.
    second = [0x01000400, 0x01000800, 4096, 0x1400, 1]
    expect(
        body, [*first, 0, 0, 0, *second, 0, 0, 0], grid=2, block=8, cluster=2, shared_bytes=4096, module=module,
        orders=UNTIMED[:2],
    )  # fmt: skip


def test_reserved_shared_memory_as_recorded() -> None:
    body = """
    mov.u32 %r1, %reserved_smem_offset_begin;
    mov.u32 %r2, %reserved_smem_offset_end;
    mov.u32 %r3, %reserved_smem_offset_cap;
    st.global.u32 [%out], %r1;
    st.global.u32 [%out+4], %r2;
    st.global.u32 [%out+8], %r3;
    """
    expect(body, [0, 0x120, 0x400], block=1, orders=ONE)


def test_generic_addresses_go_both_ways() -> None:
    body = """
    .shared .align 16 .b32 box[32];
    .local .align 8 .b32 own[4];
    mov.u64 %rd1, box;
    cvta.shared.u64 %rd2, %rd1;
    cvta.to.shared.u64 %rd3, %rd2;
    sub.u64 %rd4, %rd3, %rd1;
    mul.wide.u32 %rd5, %t, 4;
    add.u64 %rd2, %rd2, %rd5;
    st.u32 [%rd2], %t;
    mov.u64 %rd6, own;
    cvta.local.u64 %rd7, %rd6;
    add.u32 %r1, %t, 100;
    st.u32 [%rd7+8], %r1;
    ld.local.u32 %r2, [own+8];
    cvta.to.local.u64 %rd8, %rd7;
    ld.local.u32 %r3, [%rd8+8];
    ld.shared.u32 %r4, [%rd3];
    ld.u32 %r5, [%rd2];
    isspacep.shared %p1, %rd2;
    isspacep.local %p2, %rd7;
    isspacep.global %p3, %out;
    isspacep.shared %p4, %out;
    isspacep.global %p5, %rd2;
    selp.u32 %r6, 1000, 0, %p1;
    selp.u32 %r7, 2000, 0, %p2;
    selp.u32 %r8, 4000, 0, %p3;
    selp.u32 %r9, 80000, 0, %p4;
    selp.u32 %r10, 160000, 0, %p5;
    add.u32 %r2, %r2, %r3;
    add.u32 %r2, %r2, %r4;
    add.u32 %r2, %r2, %r5;
    add.u32 %r2, %r2, %r6;
    add.u32 %r2, %r2, %r7;
    add.u32 %r2, %r2, %r8;
    add.u32 %r2, %r2, %r9;
    add.u32 %r2, %r2, %r10;
    cvt.u32.u64 %r11, %rd4;
    add.u32 %r2, %r2, %r11;
    st.u32 [%mine], %r2;
    """
    expect(body, 2 * (LANES + 100) + LANES + 7000, orders=(*UNTIMED[:2], UNTIMED[-1]))


def test_local_arrays_belong_to_each_thread() -> None:
    body = """
    .local .align 16 .b8 own[64];
    mov.u32 %r1, 0;
    mov.u64 %rd1, own;
    FILL:
    mad.lo.u32 %r2, %r1, 1000, %t;
    cvt.u64.u32 %rd2, %r1;
    mad.lo.u64 %rd3, %rd2, 4, %rd1;
    st.local.u32 [%rd3], %r2;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 16;
    @%p1 bra FILL;
    and.b32 %r3, %t, 15;
    mul.wide.u32 %rd4, %r3, 4;
    add.u64 %rd4, %rd1, %rd4;
    ld.local.u32 %r4, [%rd4];
    st.global.u32 [%mine], %r4;
    """
    tid = np.arange(96)
    expect(body, (tid & 15) * 1000 + tid, block=96)


def test_local_memory_of_another_thread_is_out_of_reach() -> None:
    text = fault_of(
        """
        .local .align 16 .b8 own[64];
        mov.u64 %rd1, own;
        st.local.u32 [%rd1+64], %t;
        """
    )
    assert text == (
        "cta (0,0,0) warp 0: store to local: bytes 0x40..0x43 leave the thread's local memory (64 bytes)\n"
        "  try: check the address arithmetic and the size of the buffer"
    )


def test_module_variables_and_their_initialisers() -> None:
    module = """
    .global .align 4 .f32 floats[3] = {1.5, 0f40200000, -0.1};
    .global .align 8 .f64 doubles[2] = {0.1, 0f40000000};
    .global .align 2 .b16 halves[2] = {0x3e00, 0xc000};
    .global .align 4 .u32 words[4] = {1, 0xffffffff, -3};
    .const .align 4 .s32 table[2] = {-7, 9};
    .global .align 8 .u64 plain = words;
    .global .align 8 .u64 generic_address = generic(words)+4;
    .global .align 4 .u32 only_by_address = 60;
    .global .align 8 .u64 chained = only_by_address;
    .global .align 1 .b8 text[3] = {72, 105, 33};
    .global .align 4 .u32 zero;
    """
    body = """
    ld.global.u32 %r1, [floats];      st.global.u32 [%out], %r1;
    ld.global.u32 %r1, [floats+4];    st.global.u32 [%out+4], %r1;
    ld.global.u32 %r1, [floats+8];    st.global.u32 [%out+8], %r1;
    ld.global.v2.u32 {%r1, %r2}, [doubles]; st.global.u32 [%out+12], %r1; st.global.u32 [%out+16], %r2;
    ld.global.u32 %r1, [halves];      st.global.u32 [%out+20], %r1;
    ld.global.u32 %r1, [words+8];     st.global.u32 [%out+24], %r1;
    ld.const.u32 %r1, [table];        st.global.u32 [%out+28], %r1;
    ld.global.u64 %rd1, [plain];      ld.global.u32 %r1, [%rd1];  st.global.u32 [%out+32], %r1;
    ld.global.u64 %rd1, [generic_address]; ld.u32 %r1, [%rd1];    st.global.u32 [%out+36], %r1;
    ld.global.u8 %r1, [text+1];       st.global.u32 [%out+40], %r1;
    ld.global.u32 %r1, [zero];        st.global.u32 [%out+44], %r1;
    mov.u64 %rd2, table; cvta.const.u64 %rd2, %rd2; ld.u32 %r1, [%rd2+4]; st.global.u32 [%out+48], %r1;
    ld.global.u64 %rd1, [chained];    ld.u32 %r1, [%rd1];         st.global.u32 [%out+52], %r1;
    """
    double = np.array([0.1]).view(np.uint32)
    expected = [
        *np.array([1.5, 2.5, -0.1], np.float32).view(np.uint32), *double,
        *np.array([1.5, -2.0], np.float16).view(np.uint32), 0xFFFFFFFD, 0xFFFFFFF9, 1, 0xFFFFFFFF, 105, 0, 9, 60,
    ]  # fmt: skip
    expect(body, np.array(expected, np.uint32), block=1, module=module, orders=UNTIMED[:2])


# A body, what stands before it in the module, and the words that it stores.
VARIABLES_OF_BODIES = {
    "one": (".global .u32 a = 7; ld.global.u32 %r1, [a]; mov.u32 %r2, 0;", "", (7, 0)),
    "constants": (".const .u32 a[2] = {1, 2}; ld.const.v2.u32 {%r1, %r2}, [a];", "", (1, 2)),
    "two scopes": (
        """
        { .global .u32 a = 7; .global .u64 at = a; ld.global.u64 %rd1, [at]; ld.global.u32 %r1, [%rd1]; }
        { .global .u32 a = 8; .global .u64 at = a; ld.global.u64 %rd1, [at]; ld.global.u32 %r2, [%rd1]; }
        """, "", (7, 8),
    ),
    "hides one of the module": (
        """
        ld.global.u32 %r1, [a];
        { .const .u32 a = 8; .const .u64 at = generic(a); ld.const.u64 %rd1, [at]; ld.u32 %r2, [%rd1]; }
        """, ".global .u32 a = 7;", (7, 8),
    ),
    "hides shared memory": (
        """
        st.shared.u32 [a], 7;
        { .shared .u32 a; st.shared.u32 [a], 8; ld.shared.u32 %r2, [a]; }
        ld.shared.u32 %r1, [a];
        """, ".shared .u32 a;", (7, 8),
    ),
    "address of one of the module": (
        ".global .u64 at[2] = {a, a+4}; ld.global.u64 %rd1, [at+8]; ld.global.u32 %r1, [%rd1]; mov.u32 %r2, 0;",
        ".global .u32 a[2] = {3, 4};", (4, 0),
    ),
    "of a function": (
        "call (%r1), count; call (%r1), count; ld.global.u32 %r2, [kept];",
        """
        .global .u32 kept = 1;
        .func (.reg .u32 r) count() { .global .u32 kept = 7; ld.global.u32 r, [kept]; add.u32 r, r, 1; st.global.u32 [kept], r; }
        """, (9, 1),
    ),
    "pointer to a function": (
        """
        .global .u64 at = five;
        P: .callprototype (.reg .u32 _) _ ();
        ld.global.u64 %rd1, [at];
        call (%r1), %rd1, (), P;
        mov.u32 %r2, 0;
        """, ".func (.reg .u32 r) five() { mov.u32 r, 5; }", (5, 0),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("body", "module", "words"), VARIABLES_OF_BODIES.values(), ids=VARIABLES_OF_BODIES
)
def test_variables_that_a_body_declares(body: str, module: str, words: tuple[int, int]) -> None:
    body += "st.global.v2.u32 [%out], {%r1, %r2};"
    for order in (*UNTIMED[:2], TIMED):
        expect(body, words, block=1, module=module, orders=[order], device=Gpu(), check=True)


def test_what_a_launch_leaves_in_the_variable_of_a_body_the_next_finds() -> None:
    body = ".global .u32 turns = 4; atom.global.add.u32 %r1, [turns], 1; st.global.u32 [%out], %r1;"
    device = Gpu()
    for turn in (4, 5):
        expect(body, [turn], block=1, orders=UNTIMED[:1], device=device)


def test_elements_of_arrays() -> None:
    """An index counts elements, a vector's numbers each; of mov it is an address.  Source: ptxas 13.0."""
    module = """
    .global .align 8 .u32 words[4] = {10, 11, 12, 13};
    .global .u16 halves[3] = {20, 21, 22};
    .const .u32 table[2] = {30, 31};
    .shared .align 8 .u32 tile[8];
    """
    body = """
    .local .u64 kept[2];
    st.shared.v2.u32 tile[4], {40, 41};
    st.local.u64 kept[1], 50;
    ld.global.u32 %r1, words[3-1];
    ldu.global.v2.u32 {%r2, %r3}, words[2];
    ld.global.u16 %r4, halves[2];
    ld.const.u32 %r5, table[0x1];
    mov.u32 %r6, tile[5];
    ld.shared.u32 %r6, [%r6];
    ld.local.u32 %r7, kept[1];
    mov.u64 %rd1, words[1];
    ld.global.u32 %r8, [%rd1];
    st.global.v4.u32 [%out], {%r1, %r2, %r3, %r4};
    st.global.v4.u32 [%out+16], {%r5, %r6, %r7, %r8};
    """
    expect(body, [12, 12, 13, 22, 31, 41, 50, 11], block=1, module=module, orders=UNTIMED[:2])


def test_floats_of_another_width_as_initial_values() -> None:
    """As an H100 gave them: doubles are converted, `0f` literals keep their bits."""
    module = """
    .global .align 4 .f32 x = 0d3FF8000000000000;
    .global .align 4 .b32 y[2] = {1.5, 7};
    .global .align 8 .b64 z = 1.5;
    .global .align 8 .f64 w = 0f3FC00000;
    """
    body = """
    ld.global.u32 %r1, [x];   st.global.u32 [%out], %r1;
    ld.global.u32 %r1, [y];   st.global.u32 [%out+4], %r1;
    ld.global.u32 %r1, [y+4]; st.global.u32 [%out+8], %r1;
    ld.global.u32 %r1, [z+4]; st.global.u32 [%out+12], %r1;
    ld.global.u32 %r1, [w];   st.global.u32 [%out+16], %r1;
    ld.global.u32 %r1, [w+4]; st.global.u32 [%out+20], %r1;
    """
    expected = [0x3FC00000, 0x3FC00000, 7, 0x3FF80000, 0x3FC00000, 0]
    expect(body, np.array(expected, np.uint32), block=1, module=module, orders=UNTIMED[:2])


def test_parameters_through_registers_vectors_and_generic_addresses() -> None:
    kernel = build(
        """
        mov.b64 %rd1, s;
        ld.param.u32 %r1, [%rd1+8];
        ld.param.v2.u32 {%r2, %r3}, [s];
        cvta.param.u64 %rd2, %rd1;
        ld.u8 %r4, [%rd2+12];
        ld.param.s8 %r5, [s+13];
        ld.param.u16 %r6, [n];
        add.u32 %r1, %r1, %r2;
        add.u32 %r1, %r1, %r3;
        add.u32 %r1, %r1, %r4;
        add.u32 %r1, %r1, %r5;
        add.u32 %r1, %r1, %r6;
        st.global.u32 [%mine], %r1;
        """,
        extra=".param .align 8 .b8 s[16], .param .u16 n",
    )
    raw = np.array([100, 200, 300, 0], np.uint32).view(np.uint8)
    raw[12], raw[13] = 7, 0xFF
    for order in UNTIMED[:2]:
        _, got, _ = launch(kernel, order, args=[raw.tobytes(), np.uint16(4000)])
        assert got.tolist() == [100 + 200 + 300 + 7 - 1 + 4000] * 32


# --- faults ---------------------------------------------------------------------------------------


def test_parameters_are_read_only() -> None:
    text = fault_of("mov.b64 %rd1, out; cvta.param.u64 %rd2, %rd1;\nst.u32 [%rd2], %t;")
    assert text == (
        "cta (0,0,0) warp 0: store to param: the kernel parameters: read-only\n"
        "  try: write to global memory instead"
    )


def test_constants_are_read_only() -> None:
    module = ".const .align 4 .u32 table[2] = {1, 2};"
    text = fault_of(
        "mov.u64 %rd1, table; cvta.const.u64 %rd1, %rd1;\nst.global.u32 [%rd1], 1;", module=module
    )
    assert "store to global: variable table: read-only" in text


@pytest.mark.parametrize(
    ("access", "what"),
    [
        ("st.global.u32 [%out+128], 1;", "store to global: bytes {end:#x}..{last:#x} leave array uint32[32] ({base:#x}..{stop:#x}, 128 bytes)"),
        ("ld.global.v4.u32 {{%r1,%r2,%r3,%r4}}, [%out+24];", "load from global: address {v:#x} is not aligned to 16 bytes"),
        ("ld.global.u32 %r1, [%out+2];", "load from global: address {two:#x} is not aligned to 4 bytes"),
        ("atom.global.add.u32 %r1, [%out+130], 1;", "atomic on global: bytes {a:#x}..{b:#x} leave array uint32[32] ({base:#x}..{stop:#x}, 128 bytes)"),
    ],
)  # fmt: skip
def test_global_accesses_outside_or_misaligned(access: str, what: str) -> None:
    device = gpu()
    kernel = build("setp.eq.u32 %p1, %t, 7;\n@%p1 " + access.replace("{{", "{").replace("}}", "}"))
    # Each launch has its own array; all are made alike, so that only the base differs.
    text = fault_of(kernel, orders=ONE)
    base = device.memory._regions[-1].base
    shown = what.format(
        base=base, stop=base + 127, end=base + 128, last=base + 131, v=base + 24, two=base + 2, a=base + 130, b=base + 133,
    )  # fmt: skip
    if "aligned" in what:
        hint = "align the address to the access size"
    else:
        hint = "check the address arithmetic and the size of the buffer"
    assert text == f"cta (0,0,0) warp 0 lane 7: {shown}\n  try: {hint}"


def test_global_addresses_in_no_allocation() -> None:
    text = fault_of("mov.u64 %rd1, 4096;\nld.global.u32 %r1, [%rd1];")
    assert text == (
        "cta (0,0,0) warp 0: global access: address 0x1000 is in no allocation\n"
        "  try: pass an array that gpu.array or gpu.empty made"
    )


def test_shared_accesses_outside_or_misaligned() -> None:
    body = """
    .shared .align 16 .b8 box[48];
    mov.u32 %r1, box;
    mad.lo.u32 %r1, %t, 4, %r1;
    st.shared.u32 [%r1], %t;
    """
    assert fault_of(body) == (
        "cta (0,0,0) warp 0 lane 12: store to shared: bytes 0x430..0x433 leave shared memory of cta (0,0,0) (0x0..0x42f, "
        "1072 bytes)\n  try: check the address arithmetic and the size of the buffer"
    )
    body = ".shared .align 16 .b8 box[48];\nld.shared.u64 %rd1, [box+4];"
    assert fault_of(body) == (
        "cta (0,0,0) warp 0: load from shared: address 0x404 is not aligned to 8 bytes\n"
        "  try: align the address to the access size"
    )


def test_shared_addresses_of_another_cta_need_the_cluster_form() -> None:
    body = """
    .shared .align 4 .b32 box;
    mov.u32 %r1, box;
    mapa.shared::cluster.u32 %r2, %r1, 1;
    mov.u32 %r3, %cluster_ctarank;
    setp.ne.u32 %p1, %r3, 0;
    @%p1 bra DONE;
    st.shared::cta.u32 [%r2], 1;
    DONE:
    """
    assert fault_of(body, grid=2, cluster=2) == (
        "cta (0,0,0) warp 0: shared::cta access to address 0x1000400 of CTA rank 1 from rank 0\n"
        "  try: use the .shared::cluster form for an address from mapa"
    )


def test_a_line_that_was_discarded_is_written_before_it_is_read() -> None:
    body = """
    setp.eq.u32 %p1, %t, 0;
    @%p1 discard.global.L2 [%out], 128;
    bar.sync 0;
    st.global.u32 [%mine], %t;
    ld.global.u32 %r1, [%mine];
    add.u32 %r1, %r1, 1;
    st.global.u32 [%mine], %r1;
    """
    for order in (*UNTIMED[:2], TIMED):
        expect(body, np.arange(1, 65), block=64, fill=9, orders=[order], check=True, device=Gpu())
    early = body.replace("st.global.u32 [%mine], %t;", "")
    result, _, _ = launch(early, out=64, block=64, check=True, device=Gpu())
    (found,) = result.hazards
    assert (found.rule, "never written since a discard" in found.message) == ("HS702", True)
    unordered, _, _ = launch(
        body.replace("bar.sync 0;", ""), out=64, block=64, check=True, device=Gpu()
    )
    assert {one.rule for one in unordered.hazards} == {"HS502"}


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("%out+256", "leave array uint32[64]"),
        ("%out+4", "is not aligned to 128 bytes"),
        ("tile", "discard of what is not global memory"),
    ],
)
def test_discards_of_what_cannot_be_thrown_away(address: str, what: str) -> None:
    body = f".shared .align 128 .b8 tile[128]; mov.u64 %rd1, {address}; cvta.shared.u64 %rd1, %rd1; discard.L2 [%rd1], 128;"
    if address != "tile":
        body = f"discard.global.L2 [{address}], 128;"
    text = fault_of(body, orders=ONE, out=64, device=Gpu())
    assert "discard" in text
    assert what in text


def test_memory_that_was_never_written_is_found() -> None:
    body = ".shared .align 4 .b32 box[8];\nld.shared.u32 %r1, [box+4];"
    kernel = build(body)
    device = gpu()
    target = device.empty(32, np.uint32)
    text = fault_of(
        build("ld.param.u64 %rd1, [p0];\nld.global.u32 %r1, [%rd1+8];", 1), args=[target]
    )
    assert text == (
        f"cta (0,0,0) warp 0: load from global: bytes {target.address + 8:#x}.. of array uint32[32] were never written\n"
        "  try: write it first, or wait for the copy that fills it"
    )
    with pytest.raises(LaunchError):
        device.launch(kernel, grid=1, block=32, args=[target, target], check=False)


def test_a_cluster_is_no_larger_than_its_kernel_allows() -> None:
    kernel = build("st.global.u32 [%mine], 1;", directives=".maxclusterrank 2")
    launch(kernel, grid=4, cluster=2, out=128)
    with pytest.raises(LaunchError, match="a cluster of 4 CTAs, but .maxclusterrank allows 2"):
        launch(kernel, grid=4, cluster=4, out=128)


# Lanes 0 to 3 point into shared memory, 4 to 7 into their own local memory, lane 8 alone at `p0`, the others at `%mine`.
SPACES = """
.shared .align 8 .b32 box[4];
.local .align 8 .b32 own[2];
.reg .b64 %where;
ld.param.u64 %rd1, [p0];
mul.wide.u32 %rd2, %t, 4;
mov.u64 %rd3, box;
add.u64 %rd3, %rd3, %rd2;
cvta.shared.u64 %rd3, %rd3;
mov.u64 %rd4, own;
cvta.local.u64 %rd4, %rd4;
setp.lt.u32 %p1, %t, 4;
setp.lt.u32 %p2, %t, 8;
setp.eq.u32 %p3, %t, 8;
selp.b64 %where, %rd1, %mine, %p3;
selp.b64 %where, %rd4, %where, %p2;
selp.b64 %where, %rd3, %where, %p1;
"""


def test_lanes_of_one_generic_access_may_point_into_different_spaces() -> None:
    body = f"""{SPACES}
    mul.lo.u32 %r1, %t, 3;
    st.u32 [%where], %r1;
    st.shared.u32 [box], %t;
    ld.u32 %r2, [%where];
    add.u32 %r2, %r2, 100;
    st.global.u32 [%mine], %r2;
    """
    wanted = LANES * 3 + 100
    wanted[0] = 131  # The last lane wins, as on any store of all lanes to one word.
    for order in UNTIMED:
        _, got, (one,) = launch(body, order, inputs=[np.zeros(1, np.uint32)])
        assert np.array_equal(got, wanted)
        assert one == [24]


def test_lanes_of_one_generic_vector_access_may_point_into_different_spaces() -> None:
    body = """
    .shared .align 8 .b32 box[64];
    mul.wide.u32 %rd2, %t, 8;
    mov.u64 %rd3, box;
    add.u64 %rd3, %rd3, %rd2;
    cvta.shared.u64 %rd6, %rd3;
    add.u64 %rd4, %out, %rd2;
    and.b32 %r1, %t, 1;
    setp.eq.u32 %p1, %r1, 0;
    selp.b64 %rd5, %rd6, %rd4, %p1;
    mul.lo.u32 %r2, %t, %t;
    @%p1 st.shared.v2.u32 [%rd3], {%t, %r2};
    @!%p1 st.global.v2.u32 [%rd4], {%t, %r2};
    ld.v2.u32 {%r3, %r4}, [%rd5];
    st.global.v2.u32 [%rd4], {%r4, %r3};
    """
    wanted = np.stack([LANES * LANES, LANES], 1).ravel()
    expect(body, wanted, orders=UNTIMED[:2], out=64)


def test_a_float_atomic_adds_in_each_space_as_it_does_there() -> None:
    # A subnormal: global memory flushes it, shared memory keeps it (tests/silicon/probes).
    body = """
    .shared .align 4 .b32 box;
    mov.u64 %rd1, box;
    st.shared.u32 [%rd1], 0;
    cvta.shared.u64 %rd1, %rd1;
    setp.eq.u32 %p1, %t, 4;
    selp.b64 %rd2, %rd1, %mine, %p1;
    bar.warp.sync -1;
    mov.b32 %f1, 1;
    atom.add.f32 %f2, [%rd2], %f1;
    bar.warp.sync -1;
    ld.u32 %r1, [%rd2];
    st.global.u32 [%mine], %r1;
    """
    expect(body, (LANES == 4).astype(np.uint32), orders=UNTIMED[:2])


def test_isspacep_answers_lane_by_lane() -> None:
    body = f"""{SPACES}
    isspacep.shared %p4, %where;
    isspacep.local %p5, %where;
    isspacep.global %p6, %where;
    selp.u32 %r1, 1, 0, %p4;
    selp.u32 %r2, 2, 0, %p5;
    selp.u32 %r3, 4, 0, %p6;
    add.u32 %r1, %r1, %r2;
    add.u32 %r1, %r1, %r3;
    st.global.u32 [%mine], %r1;
    """
    wanted = np.select([LANES < 4, LANES < 8], [1, 2], 4)
    expect(body, wanted, orders=UNTIMED[:1], inputs=[np.zeros(1, np.uint32)])


def test_the_bounds_of_each_space_hold_for_the_lanes_that_point_into_it() -> None:
    body = SPACES.replace("ld.param.u64 %rd1, [p0];", "mov.u64 %rd1, 64;") + "st.u32 [%where], 1;"
    assert fault_of(body).startswith(
        "cta (0,0,0) warp 0 lane 8: global access: address 0x40 is in no allocation"
    )


def test_a_matrix_whose_rows_lie_in_different_spaces_is_refused() -> None:
    body = f"{SPACES}\nldmatrix.sync.aligned.m8n8.x1.b16 {{%r1}}, [%where];"
    wanted = "lanes point into different state spaces, where this instruction takes one"
    assert wanted in fault_of(body, inputs=[np.zeros(1, np.uint32)])
    # Lanes whose addresses it does not take may point anywhere.
    own = "mov.u64 %rd3, box;\ncvta.shared.u64 %rd3, %rd3;\nselp.b64 %where, %rd3, %mine, %p2;\n"
    expect(
        f"{SPACES}\nst.shared.u32 [box], %t;\nst.shared.v2.u32 [box+8], {{%t, %t}};\nst.shared.u32 [box+4], %t;\n"
        f"{own}bar.warp.sync -1;\nldmatrix.sync.aligned.m8n8.x1.b16 {{%r1}}, [%where];\nst.global.u32 [%mine], %r1;",
        np.full(32, 31), orders=UNTIMED[:1], inputs=[np.zeros(1, np.uint32)],
    )  # fmt: skip


def test_lanes_may_access_different_allocations_at_once() -> None:
    one, other = np.arange(32, dtype=np.uint32), np.arange(100, 132, dtype=np.uint32)
    body = """
    ld.param.u64 %rd1, [p0];
    ld.param.u64 %rd2, [p1];
    setp.lt.u32 %p1, %t, 11;
    selp.b64 %rd3, %rd1, %rd2, %p1;
    mul.wide.u32 %rd4, %t, 4;
    add.u64 %rd3, %rd3, %rd4;
    ld.global.u32 %r1, [%rd3];
    add.u32 %r2, %r1, 1;
    st.global.u32 [%rd3], %r2;
    st.global.u32 [%mine], %r1;
    """
    for order in UNTIMED[:2]:
        _, got, after = launch(body, order, inputs=[one, other])
        assert np.array_equal(got, np.where(LANES < 11, one, other))
        assert np.array_equal(after[0], one + (LANES < 11))
        assert np.array_equal(after[1], other + (LANES >= 11))


# --- atomics --------------------------------------------------------------------------------------

INITIAL = 40
ATOMS = {
    "add.u32": lambda old, b: old + b,
    "add.s32": lambda old, b: old + b,
    "min.u32": min,
    "max.s32": max,
    "inc.u32": lambda old, b: 0 if old >= b else old + 1,
    "dec.u32": lambda old, b: b if old == 0 or old > b else old - 1,
    "and.b32": lambda old, b: old & b,
    "or.b32": lambda old, b: old | b,
    "xor.b32": lambda old, b: old ^ b,
}


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("op", ATOMS)
def test_atomics_under_contention(space: str, op: str) -> None:
    body = f"""
    .shared .align 4 .b32 cell;
    setp.eq.u32 %p1, %t, 0;
    @%p1 st.shared.u32 [cell], {INITIAL};
    bar.sync 0;
    mov.u32 %r2, cell;
    add.u32 %r1, %t, 37;
    atom.{space}.{op} %r3, [{"%r2" if space == "shared" else "%out"}], %r1;
    red.{space}.{op} [{"%r2" if space == "shared" else "%out"}], %r1;
    bar.sync 0;
    {"ld.shared.u32 %r4, [cell]; st.global.u32 [%out], %r4;" if space == "shared" else ""}
    """
    # Lanes of a warp act in order, and every order of these operations by whole warps gives this result.
    value = INITIAL
    for _ in range(2):
        for tid in range(32):
            value = ATOMS[op](value, tid + 37)
    expect(body, [value & 0xFFFFFFFF], fill=INITIAL, block=32, orders=UNTIMED)


def test_atomics_count_every_thread_of_every_cta() -> None:
    body = """
    atom.global.add.u32 %r1, [%out], 1;
    red.global.max.u32 [%out+4], %r1;
    red.relaxed.gpu.global.add.u64 [%out+8], 3;
    atom.global.exch.b32 %r2, [%out+16], 9;
    red.global.xor.b32 [%out+20], %r1;
    """
    total = 6 * 96
    expected = [total, total - 1, 3 * total, 0, 9, int(np.bitwise_xor.reduce(np.arange(total)))]
    expect(body, expected, grid=6, block=96)


def test_atomics_return_each_old_value_once() -> None:
    body = """
    atom.global.add.u32 %r1, [%out], 1;
    mul.wide.u32 %rd1, %r1, 4;
    add.u64 %rd1, %rd1, %out;
    st.global.u32 [%rd1+4], 1;
    """
    expect(body, [128, *[1] * 128], grid=2, block=64)


def test_vector_and_float_atomics() -> None:
    body = """
    mov.f32 %f1, 0f3F800000;
    mov.f32 %f2, 0f40000000;
    red.global.add.f32 [%out], %f1;
    atom.global.v2.f32.add {%f3, %f4}, [%out+8], {%f1, %f2};
    atom.global.cas.b64 %rd1, [%out+16], 0, 77;
    """
    body = body.replace("v2.f32.add", "add.v2.f32")
    _, got, _ = launch(body, out=6)
    assert got.view(np.float32)[[0, 2, 3]].tolist() == [32.0, 32.0, 64.0]
    assert got[4:].tolist() == [77, 0]


def test_a_spin_lock_between_ctas_finishes_under_every_schedule() -> None:
    # out[0] is the lock, out[1] the total that only its holder may touch.
    body = """
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra DONE;
    TRY:
    atom.global.acquire.gpu.cas.b32 %r1, [%out], 0, 1;
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra TRY;
    ld.relaxed.gpu.global.u32 %r2, [%out+4];
    add.u32 %r2, %r2, 5;
    st.relaxed.gpu.global.u32 [%out+4], %r2;
    atom.global.release.gpu.exch.b32 %r3, [%out], 0;
    DONE:
    """
    expect(body, [0, 5 * 12], grid=12, block=32)


def test_flags_between_ctas_also_when_the_waiting_one_starts_first() -> None:
    # CTA 0 waits for a flag that the last CTA sets; out[1] is the data that goes with it.
    body = """
    mov.u32 %r9, %ctaid.x;
    setp.ne.u32 %p1, %r9, 0;
    @%p1 bra WRITER;
    SPIN:
    ld.acquire.gpu.global.u32 %r1, [%out];
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra SPIN;
    ld.global.u32 %r2, [%out+4];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%out+8], %r2;
    ret;
    WRITER:
    setp.ne.u32 %p3, %r9, 19;
    @%p3 ret;
    st.global.u32 [%out+4], 41;
    membar.gl;
    st.release.gpu.global.u32 [%out], 1;
    """
    expect(body, [1, 41, 42], grid=20, block=32)


@pytest.mark.parametrize("kept", [False, True])
def test_a_barrier_of_the_whole_grid_built_from_atomics(kept: bool) -> None:
    body = """
    .local .align 4 .b32 own;
    bar.sync 0;
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra WAITED;
    red.release.gpu.global.add.u32 [%out], 1;
    SPIN:
    ld.acquire.gpu.global.u32 %r1, [%out];
    KEEP
    setp.lt.u32 %p2, %r1, 9;
    @%p2 bra SPIN;
    WAITED:
    bar.sync 0;
    ld.global.u32 %r2, [%out];
    st.global.u32 [%mine+4], %r2;
    """
    # nvcc without optimization keeps what the loop looks at in local memory: that is no progress.
    body = body.replace(
        "KEEP", "st.local.u32 [own], %r1;\n    ld.local.u32 %r1, [own];" if kept else ""
    )
    expect(body, np.full(9 * 32 + 1, 9), grid=9, block=32)
