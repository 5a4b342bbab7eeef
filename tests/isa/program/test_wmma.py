"""wmma: what it becomes, what is wrong with it, and that races on fragments are found.  Its bits: tests/silicon, wmma.npz."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

import hopsim as hs
from hopsim.errors import PtxError
from hopsim.isa.program.wmma import is_lowered
from hopsim.isa.support import support_matrix
from hopsim.layout.fragments import a_map, b_map, mma_c_map
from hopsim.layout.wmma import SHAPES, fragment

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
REGISTERS = ".reg .b32 %a<8>, %b<8>, %r<8>; .reg .f32 %f<8>; .reg .b64 %rd<8>; .reg .pred %p;"
A, B, D = (f"{{{', '.join(f'%{r}{i}' for i in range(8))}}}" for r in "abf")
LOAD_A = f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {A}, [%rd1], 16;"
PRODUCT = f"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {D}, {A}, {B}, {D};"


def kernel(body: str, module: str = "") -> hs.Kernel:
    params = ".param .u64 a, .param .u64 b, .param .u64 d"
    load = "".join(f"ld.param.u64 %rd{i}, [{name}];" for i, name in enumerate("abd", 1))
    text = f"{HEAD}{module}.visible .entry k({params})\n{{ {REGISTERS} {load}\n{body}\nret; }}\n"
    return hs.loads(text, "wmma.ptx")["k"]


def opcodes(body: str) -> list[str]:
    return [one.mnemonic for one in kernel(body).body.instructions[3:-1]]


# --- fragments ------------------------------------------------------------------------------------


def places(which: str, shape: str, kind: str) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows and columns (registers, lanes) of the first element of each register."""
    part = fragment(which, shape, kind)
    lanes = np.arange(32)
    outer = np.array([o for o, _ in part.registers])[:, None] + lanes // 4
    inner = np.array([i for _, i in part.registers])[:, None] + part.step * (lanes % 4)
    return (outer, inner) if part.outer_is_row else (inner, outer)


@pytest.mark.parametrize(("kind", "bits", "k"), [("bf16", 16, 16), ("s8", 8, 16), ("tf32", 32, 8)])
def test_fragments_are_those_of_mma_sync(kind: str, bits: int, k: int) -> None:
    shape = f"m16n16k{k}"
    rows, columns = places("a", shape, kind)
    wanted = a_map(16, k, bits)
    assert (rows == wanted.rows[:, :, 0]).all()
    assert (columns == wanted.cols[:, :, 0]).all()
    rows, columns = places("b", shape, kind)
    half = b_map(k, bits)
    assert (rows == np.tile(half.rows[:, :, 0], (2, 1))).all()
    assert (columns == np.concatenate([half.cols[:, :, 0], half.cols[:, :, 0] + 8])).all()
    rows, columns = places("c", shape, "f32")
    block = mma_c_map(16)
    assert (rows == np.tile(block.rows[:, :, 0], (2, 1))).all()
    assert (columns == np.concatenate([block.cols[:, :, 0], block.cols[:, :, 0] + 8])).all()


def test_fragments_of_f64_are_those_of_mma_sync() -> None:
    wanted = {"a": a_map(8, 4, 64), "b": b_map(4, 64), "c": mma_c_map(8, 64)}
    for which, map_ in wanted.items():
        rows, columns = places(which, "m8n8k4", "f64")
        assert (rows == map_.rows[:, :, 0]).all()
        assert (columns == map_.cols[:, :, 0]).all()


@pytest.mark.parametrize(("shape", "which"), list(product(SHAPES, "abc")))
def test_each_element_is_in_a_fragment(shape: str, which: str) -> None:
    of_shape = {"m16n16k8": ["f32" if which == "c" else "tf32"], "m8n8k4": ["f64"]}
    for kind in of_shape.get(shape, ["f16", "f32" if which == "c" else "s8"]):
        part = fragment(which, shape, kind)
        rows, columns = places(which, shape, kind)
        for _ in range(part.elements - 1):
            more = (0, 1) if part.outer_is_row else (1, 0)
            rows, columns = (
                np.concatenate([one, one + step]) for one, step in zip((rows, columns), more, strict=True)
            )  # fmt: skip
        held = set(zip(rows.ravel().tolist(), columns.ravel().tolist(), strict=True))
        assert held >= set(product(range(part.rows), range(part.columns))), (shape, which, kind)


# --- what it becomes ------------------------------------------------------------------------------


def test_a_load_along_memory_is_one_load_a_register_and_copies() -> None:
    found = opcodes(LOAD_A)
    assert found[-8:] == ["ld.global.b32"] * 4 + ["mov.b32"] * 4
    assert "movmatrix.sync.aligned.m8n8.trans.b16" not in found


def test_pairs_across_memory_are_turned_round_as_by_ptxas() -> None:
    found = opcodes(LOAD_A.replace("row", "col"))
    assert found.count("ld.global.b32") == found.count("movmatrix.sync.aligned.m8n8.trans.b16") == 4


def test_a_product_is_mma_sync_for_each_half() -> None:
    found = opcodes(PRODUCT)
    assert found[:2] == ["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"] * 2
    assert found[2:] == ["mov.b32"] * 8


def test_branches_still_lead_where_they_did() -> None:
    one = kernel(
        f"mov.u32 %r0, 2;\nLOOP: {LOAD_A} {PRODUCT}\nsub.u32 %r0, %r0, 1;\nsetp.ne.u32 %p, %r0, 0;\n@%p bra LOOP;"
    )
    at = one.body.labels["LOOP"]
    assert one.body.instructions[at].mnemonic == "mov.u32"
    assert one.body.instructions[at - 1].span.line == one.body.instructions[at].span.line - 1
    branch = next(i for i in one.body.instructions if i.mnemonic == "bra")
    assert branch.operands[0].target == at  # type: ignore[union-attr]


def test_a_guarded_call_still_leads_behind_its_function() -> None:
    one = kernel(f"{LOAD_A} @%p call f;\nadd.u32 %r0, %r0, 1;", ".func f() { membar.cta; }\n")
    call = next(i for i in one.body.instructions if i.mnemonic == "call")
    behind = one.body.instructions[call.operands[0].target]  # type: ignore[union-attr]
    assert behind.mnemonic == "add.u32"


@pytest.mark.parametrize("stride", ["", ", 16", ", %r1"])
@pytest.mark.parametrize("layouts", list(product(("row", "col"), repeat=3)))
def test_a_matrix_product(stride: str, layouts: tuple[str, str, str]) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-8, 9, (16, 16)).astype(np.float16) for _ in "ab")
    a_layout, b_layout, d_layout = layouts
    body = f"""
    mov.u32 %r1, 16;
    wmma.load.a.sync.aligned.{a_layout}.m16n16k16.global.f16 {A}, [%rd1]{stride};
    wmma.load.b.sync.aligned.{b_layout}.m16n16k16.f16 {B}, [%rd2]{stride};
    {" ".join(f"mov.f32 %f{i}, 0f3F800000;" for i in range(8))}
    wmma.mma.sync.aligned.{a_layout}.{b_layout}.m16n16k16.f32.f32 {D}, {A}, {B}, {D};
    wmma.store.d.sync.aligned.{d_layout}.m16n16k16.global.f32 [%rd3], {D}{stride};
    """
    gpu = hs.Gpu()
    given = [
        np.ascontiguousarray(one if layout == "row" else one.T)
        for one, layout in ((a, a_layout), (b, b_layout))
    ]
    d = gpu.array(np.zeros((16, 16), np.float32))
    result = gpu.launch(kernel(body), 1, 32, args=[*map(gpu.array, given), d])
    assert result.verdict == "clean"
    found = d.numpy() if d_layout == "row" else d.numpy().T
    assert (found == a.astype(np.float32) @ b.astype(np.float32) + 1).all()


def test_d_may_be_the_registers_of_a() -> None:
    """All operands are read before D is written."""
    a = np.arange(256, dtype=np.float16).reshape(16, 16) / 16
    body = f"""
    {LOAD_A} wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {B}, [%rd2], 16;
    wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 {{%a0, %a1, %a2, %a3}}, {A}, {B}, {{%r0, %r1, %r2, %r3}};
    wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%rd3], {{%a0, %a1, %a2, %a3}}, 16;
    """
    clear = " ".join(f"mov.b32 %r{i}, 0;" for i in range(4))
    gpu = hs.Gpu()
    d = gpu.array(np.zeros((16, 16), np.float16))
    eye = np.eye(16, dtype=np.float16)
    gpu.launch(kernel(clear + body), 1, 32, args=[gpu.array(a), gpu.array(eye), d])
    assert (d.numpy() == a).all()


@pytest.mark.parametrize("layout", ["row", "col"])
def test_the_stride_may_be_one_of_the_registers_that_are_loaded(layout: str) -> None:
    values = np.arange(256, dtype=np.float32).reshape(16, 16)
    body = f"""
    mov.b32 %f3, 16;
    wmma.load.c.sync.aligned.{layout}.m16n16k16.global.f32 {D}, [%rd1], %f3;
    wmma.store.d.sync.aligned.{layout}.m16n16k16.global.f32 [%rd3], {D}, 16;
    """.replace("%f3", "%r3").replace("%f", "%r")
    gpu = hs.Gpu()
    d = gpu.array(np.zeros((16, 16), np.float32))
    gpu.launch(kernel(body), 1, 32, args=[gpu.array(values), d, d])
    assert (d.numpy() == values).all()


def test_a_fragment_in_shared_memory_that_is_still_being_written_is_a_race() -> None:
    shared = ".shared .align 32 .b8 tile[512];\n"
    body = f"""
    mov.u32 %r0, tile; mov.u32 %r1, %tid.x; mad.lo.u32 %r2, %r1, 8, %r0;
    mov.b64 %rd4, 0; st.shared.b64 [%r2], %rd4; BARRIER
    wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {A}, [%r0], 16;
    """
    arguments = [np.zeros(64, np.uint32)] * 3
    found: dict[str, list[str]] = {}
    for barrier in ("bar.sync 0;", ""):
        one = kernel(body.replace("BARRIER", barrier), shared)
        gpu = hs.Gpu()
        result = gpu.launch(one, 1, 64, args=[gpu.array(x) for x in arguments])
        found[barrier] = [h.rule for h in result.hazards]
    assert found == {"bar.sync 0;": [], "": ["HS500"]}


# --- what is wrong, and what is not modelled ------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (LOAD_A.replace("%a0, ", ""), "A of m16n16k16 .f16 is a list of 8 registers of 32 bits, got 7 operands"),
        (LOAD_A.replace(A, "%a0"), "A of m16n16k16 .f16 is a list of 8 registers of 32 bits, got no list"),
        (LOAD_A.replace("%a0", "%rd4"), "A of m16n16k16 .f16 is a list of 8 registers of 32 bits, got one of 64 bits"),
        (LOAD_A.replace("[%rd1]", "%rd1"), "a fragment is at an address, with a stride behind it or none"),
        (LOAD_A.replace("16;", "[%rd2];"), "the stride of a fragment is a register or a number of elements"),
        (PRODUCT.replace(f", {D};", ";"), "has D, A, B and C, got 3 operands"),
        (PRODUCT.replace("f32.f32", "f16.f32"), "D of m16n16k16 .f16 is a list of 4 registers of 32 bits, got 8 operands"),
    ],
)  # fmt: skip
def test_wrong_operands(wrong: str, message: str) -> None:
    with pytest.raises(PtxError, match=r"wmma\.ptx:6") as error:
        _ = kernel(wrong).body
    assert message in error.value.what


@pytest.mark.parametrize(
    "mnemonic",
    [
        "wmma.load.a.sync.aligned.row.m16n16k16.global.f64",
        "wmma.load.a.sync.aligned.row.m8n8k32.global.s4",
        "wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32",
        "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32.satfinite",
        "wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32",
        "wmma.mma.sync.aligned.row.col.m16n16k8.f32.bf16.bf16.f32",
        "wmma.load.a.sync.aligned.row.m16n16k8.global.f32",
        "wmma.load.c.sync.aligned.row.m16n16k8.global.tf32",
        "wmma.load.a.sync.aligned.row.m16n16k16.local.f16",
        "wmma.store.d.sync.aligned.row.m16n16k16.global.bf16",
    ],
)
def test_others_are_told_as_not_modelled(mnemonic: str) -> None:
    (row,) = kernel(f"{mnemonic} {{%r0, %r1}}, [%rd1];").unsupported
    assert row[0] == 6
    assert mnemonic in row[2]


def test_the_support_matrix_counts_the_spellings() -> None:
    shapes, layouts = tuple(SHAPES), ("row", "col")
    kinds = ("f16", "bf16", "tf32", "s8", "u8", "f32", "s32", "f64")
    accesses = [
        f"{what}.sync.aligned.{layout}.{shape}{space}.{kind}"
        for what in ("load.a", "load.b", "load.c", "store.d")
        for layout, shape, kind in product(layouts, shapes, kinds)
        for space in ("", ".global", ".shared", ".shared::cta")
    ]
    products = [
        f"mma.sync.aligned.{a}.{b}.{shape}.{d}{inner}.{c}{sat}"
        for a, b, shape, d, c in product(layouts, layouts, shapes, kinds, kinds)
        for inner in ("", *(f".{kind}.{kind}" for kind in kinds if kind != "f16"))
        for sat in ("", ".satfinite", *(f".{word}" for word in ("rn", "rz", "rm", "rp")))
    ]
    lowered = [one for one in (*accesses, *products) if is_lowered(("wmma", *one.split(".")))]
    counts = Counter(f"wmma.{one.partition('.')[0]}" for one in lowered)
    assert {row.name: row.spellings for row in support_matrix("wmma")} == counts
