"""Probes of wgmma: every type combination, operands from shared memory and registers, layouts, chains, scales.

The same matrices are laid out in several ways, so that what is only a matter of layout shows as equal results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hopsim.isa.values import Array
from hopsim.isa.wgmma import DENSE_K, Major
from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.probes.tensor import CORNERS, TYPES, Case, Types, case, decisive
from hopsim.kernels.ptx.text import Param, PtxEntry, Reg, address, module_text, vector
from hopsim.layout.descriptor import MatrixDescriptor, operand_addresses
from hopsim.layout.fragments import (
    a_to_registers,
    accumulator_to_registers,
    packed_accumulator_to_registers,
)
from hopsim.layout.swizzle import Swizzle

M = 64
STEP_BYTES = 32
"""Bytes of K in one instruction, whatever the type."""
THREADS = 128
SYMBOL = "shared_memory"
SWIZZLES = (Swizzle.NONE, Swizzle.B32, Swizzle.B64, Swizzle.B128)


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to issue a product.

    Args:
        name: for labels.
        n: columns.
        steps: instructions along K.
        from_registers: whether A comes from registers.
        swizzle: of both operands in shared memory.
        a_major, b_major: `K` or `MN`.
        groups: `each` waits after every instruction, `one` commits all together, `two` commits two halves and waits
            once.
        ignore_c: scale-d = 0 in the first instruction.
        negate_a, negate_b: imm-scale = -1.
        distributions: of the matrices; empty takes those of the type.
        seeds: one set of cases for each.
        vectors: whether the cases are the decisive vectors instead.
    """

    name: str
    n: int = 8
    steps: int = 1
    from_registers: bool = False
    swizzle: Swizzle = Swizzle.NONE
    a_major: Major = "K"
    b_major: Major = "K"
    groups: str = "each"
    ignore_c: bool = False
    negate_a: bool = False
    negate_b: bool = False
    distributions: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (100,)
    vectors: bool = False


def variants(types: Types) -> list[Variant]:
    """Return the variants that are probed for a type combination."""
    chain = Variant("chain", steps=4)
    found = [
        Variant("single", seeds=(100, 200)),
        Variant("registers", from_registers=True, seeds=(100, 200)),
        chain,
        replace(chain, name="chain_one_group", groups="one"),
        replace(chain, name="chain_two_groups", groups="two"),
        replace(chain, name="chain_registers", from_registers=True, groups="one"),
        Variant("ignore_c", ignore_c=True, distributions=("special", "raw", "subnormal")),
        Variant(
            "wide64", n=64, steps=4, swizzle=Swizzle.B128, groups="one", distributions=("normal",)
        ),
    ]
    pair = Variant("", n=16, steps=2, distributions=("normal", "special"))
    found += [replace(pair, name=f"swizzle_{one.name}", swizzle=one) for one in SWIZZLES]
    if types.is_integer:
        found = [replace(one, distributions=()) if one.distributions else one for one in found]
    else:
        found.append(Variant("decisive", vectors=True))
        for a, b in ((True, False), (False, True), (True, True)):
            name = "negate_" + "a" * a + "b" * b
            found.append(Variant(name, negate_a=a, negate_b=b, distributions=CORNERS))
            if types.element_bits == 16 and a and not b:
                found.append(replace(found[-1], name=name + "_registers", from_registers=True))
    if types.name in (
        "f32_bf16_bf16",
        "f16_f16_f16",
        "f32_e4m3_e4m3",
        "f32_tf32_tf32",
        "s32_s8_s8",
    ):
        wide = Variant("", steps=2, swizzle=Swizzle.B128, groups="one", distributions=("normal",))
        if types.is_integer:
            wide = replace(wide, distributions=("raw",))
        found += [replace(wide, name=f"wide{n}", n=n) for n in (24, 128, 256)]
    if types.element_bits == 16:
        found += _transposed()
    return found


def _transposed() -> list[Variant]:
    base = Variant("major_K_K", n=64, steps=2, distributions=("normal",))
    found = [base]
    for swizzle in SWIZZLES:
        for a, b in (("MN", "K"), ("K", "MN"), ("MN", "MN")):
            found.append(
                replace(
                    base,
                    name=f"major_{a}_{b}_{swizzle.name}",
                    swizzle=swizzle,
                    a_major=a,
                    b_major=b,
                )
            )
    found.append(
        replace(
            base, name="major_registers_MN", from_registers=True, b_major="MN", swizzle=Swizzle.B128
        )
    )
    return found


# --- operands in shared memory --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Region:
    """Where the steps of one operand lie.

    Args:
        starts: byte offset of each step.
        descriptor: the descriptor of an operand at offset 0.
        size: bytes in all, a multiple of 1024.
    """

    starts: tuple[int, ...]
    descriptor: MatrixDescriptor
    size: int


def region(rows: int, steps: int, major: Major, swizzle: Swizzle) -> Region:
    """Lay an operand out, one canonical layout a major and swizzle."""
    width = swizzle.width_bytes
    if swizzle is Swizzle.NONE:
        across = 128 if major == "K" else 128 * (rows // 8)
        down = 256 if major == "K" else 128
        per_step, inside = rows * STEP_BYTES, 1
    elif major == "K":
        across, down = 16, 8 * width
        per_step, inside = rows * width, width // STEP_BYTES
    else:
        across, down = 16 * width, 8 * width
        per_step, inside = rows * STEP_BYTES, 1
    per_step = -(-per_step // 1024) * 1024
    starts = tuple(step // inside * per_step + step % inside * STEP_BYTES for step in range(steps))
    return Region(
        starts, MatrixDescriptor(0, across, down, 0, swizzle), -(-steps // inside) * per_step
    )


def place(matrix: Array, where: Region, major: Major) -> NDArray[np.uint8]:
    """Return the bytes of an operand (rows, K of all steps) in its region."""
    size = matrix.dtype.itemsize
    k = STEP_BYTES // size
    image = np.zeros(where.size, np.uint8)
    raw = np.ascontiguousarray(matrix).view(np.uint8).reshape(*matrix.shape, size)
    for step, start in enumerate(where.starts):
        bits = replace(where.descriptor, start_addr=start).encode()
        addresses = operand_addresses(bits, matrix.shape[0], k, size, major)
        for byte in range(size):
            image[addresses + byte] = raw[:, step * k : (step + 1) * k, byte]
    return image


# --- the kernel -----------------------------------------------------------------------------------


def opcode(types: Types, n: int) -> str:
    """Return the mnemonic."""
    sat = ".satfinite" if types.saturate else ""
    return f"wgmma.mma_async.sync.aligned.m64n{n}k{DENSE_K[types.a]}{sat}.{types.d}.{types.a}.{types.b}"


def scales(
    types: Types, a_major: Major | None, b_major: Major, negate_a: bool, negate_b: bool = False
) -> list[int]:
    """Return imm-scale and imm-trans of an instruction, as its types have them.

    Args:
        a_major: None where A comes from registers.
    """
    if types.is_integer:
        return []
    found = [-1 if negate_a else 1, -1 if negate_b else 1]
    if types.element_bits == 16:
        found += [int(major == "MN") for major in (a_major, b_major) if major is not None]
    return found


def _kernel(
    types: Types, variant: Variant, a: Region | None, b: Region, registers: int
) -> PtxEntry:
    """Return the kernel: the image to shared memory, C to registers, the product, D to memory."""
    image_bytes = (a.size if a else 0) + b.size
    names = ["image", "c", *(["a"] if a is None else []), "d"]
    k = PtxEntry(
        f"{types.name}_{variant.name}", [Param(one, ".u64") for one in names], [".reqntid 128"]
    )
    thread = k.let(".b32", "thread", "mov.u32", "%tid.x")
    number = k.let(".b32", "case", "mov.u32", "%ctaid.x")
    shared = k.let(".b32", "shared", "mov.u32", SYMBOL)
    copy_image(k, thread, number, shared, image_bytes)
    d = k.regs(".b32", "d", registers)
    c = row_of(k, "c", thread, number, registers)
    for index, one in enumerate(d):
        k.emit("ld.global.b32", one, address(c, index * THREADS * 4))
    a_registers: list[Reg] = []
    if a is None:
        a_registers = k.regs(".b32", "a", 4 * variant.steps)
        held = row_of(k, "a", thread, number, 4 * variant.steps)
        for index, one in enumerate(a_registers):
            k.emit("ld.global.b32", one, address(held, index * THREADS * 4))
    k.comment("descriptors: the address in 16-byte units is added to each")
    units = k.let(".b32", "units", "shr.u32", shared, 4)
    wide = k.let(".b64", "base", "cvt.u64.u32", units)
    yes = k.let(".pred", "add_c", "setp.eq.u32", shared, shared)
    no = k.let(".pred", "no_c", "setp.ne.u32", shared, shared)

    def descriptor(where: Region, step: int, offset: int) -> Reg:
        bits = replace(where.descriptor, start_addr=where.starts[step] + offset).encode()
        return k.let(".b64", "desc", "add.u64", wide, f"{bits:#x}")

    a_major = None if variant.from_registers else variant.a_major
    immediates = scales(types, a_major, variant.b_major, variant.negate_a, variant.negate_b)
    k.emit("bar.sync", 0)
    k.emit("wgmma.fence.sync.aligned")
    for step in range(variant.steps):
        left = vector(a_registers[4 * step : 4 * step + 4]) if a is None else descriptor(a, step, 0)
        right = descriptor(b, step, a.size if a else 0)
        predicate = no if step == 0 and variant.ignore_c else yes
        k.emit(opcode(types, variant.n), vector(d), left, right, predicate, *immediates)
        last = step == variant.steps - 1
        half = variant.groups == "two" and step == variant.steps // 2 - 1
        if last or half or variant.groups == "each":
            k.emit("wgmma.commit_group.sync.aligned")
        if last or variant.groups == "each":
            k.emit("wgmma.wait_group.sync.aligned", 0)
            if not last:
                k.emit("wgmma.fence.sync.aligned")
    out = row_of(k, "d", thread, number, registers)
    for index, one in enumerate(d):
        k.emit("st.global.b32", address(out, index * THREADS * 4), one)
    k.emit("ret")
    return k


def row_of(k: PtxEntry, name: str, thread: Reg, number: Reg, registers: int) -> Reg:
    """Return the address of this thread's first register of an array (cases, registers, threads)."""
    place_ = k.let(".b64", name, "ld.param.u64", f"[{name}]")
    k.emit("mad.wide.u32", place_, number, registers * THREADS * 4, place_)
    k.emit("mad.wide.u32", place_, thread, 4, place_)
    return place_


def copy_image(k: PtxEntry, thread: Reg, number: Reg, shared: Reg, image_bytes: int) -> None:
    """Write the copy of this case's image to shared memory, and the fence for wgmma."""
    k.comment("copy this case's image to shared memory, 16 bytes a thread at a time")
    source = k.let(".b64", "image", "ld.param.u64", "[image]")
    k.emit("mad.wide.u32", source, number, image_bytes, source)
    k.emit("mad.wide.u32", source, thread, 16, source)
    target = k.let(".b32", "target", "mad.lo.u32", thread, 16, shared)
    left = k.let(".b32", "offset", "mul.lo.u32", thread, 16)
    more = k.reg(".pred", "more")
    words = k.regs(".b32", "word", 4)
    loop, done = k.label("$copy"), k.label("$copied")
    k.place(loop)
    k.emit("setp.lt.u32", more, left, image_bytes)
    k.emit("bra", done, unless=more)
    k.emit("ld.global.v4.b32", vector(words), address(source))
    k.emit("st.shared.v4.b32", address(target), vector(words))
    k.emit("add.u64", source, source, THREADS * 16)
    k.emit("add.u32", target, target, THREADS * 16)
    k.emit("add.u32", left, left, THREADS * 16)
    k.emit("bra", loop)
    k.place(done)
    k.emit("fence.proxy.async.shared::cta")


# --- probes ---------------------------------------------------------------------------------------


def cases_of(types: Types, variant: Variant) -> tuple[list[Case], list[str]]:
    """Return the matrices of a variant, and what each is."""
    k = DENSE_K[types.a] * variant.steps
    if variant.vectors:
        vectors = decisive(types, M, variant.n, k)
        return vectors, ["decisive"] * len(vectors)
    cases: list[Case] = []
    labels: list[str] = []
    known = types.distributions
    for seed in variant.seeds:
        for distribution in variant.distributions or known:
            chosen = seed + 1000 * known.index(distribution)
            cases.append(case(types, distribution, M, variant.n, k, chosen))
            labels.append(f"{distribution} {seed}")
    return cases, labels


def accumulator(types: Types, c: Array) -> Array:
    """Return the registers of an accumulator."""
    return packed_accumulator_to_registers(c) if types.d == "f16" else accumulator_to_registers(c)


def _probe(types: Types, variant: Variant) -> tuple[Probe, PtxEntry]:
    cases, labels = cases_of(types, variant)
    a = (
        None
        if variant.from_registers
        else region(M, variant.steps, variant.a_major, variant.swizzle)
    )
    b = region(variant.n, variant.steps, variant.b_major, variant.swizzle)
    images: list[NDArray[np.uint8]] = []
    for left, right, _ in cases:
        parts = [place(left, a, variant.a_major)] if a else []
        images.append(np.concatenate([*parts, place(right, b, variant.b_major)]))
    c = np.stack([accumulator(types, one[2]) for one in cases])
    inputs: dict[str, Array] = {"image": np.stack(images), "c": c}
    if a is None:
        inputs["a"] = np.stack([_a_registers(one[0], variant.steps) for one in cases])
    registers = c.shape[1]
    entry = _kernel(types, variant, a, b, registers)
    probe = Probe(
        f"wgmma.{types.name}.{variant.name}",
        "",
        entry.name,
        grid=len(cases),
        block=THREADS,
        inputs=inputs,
        outputs={"d": (c.shape, np.uint32)},
        shared_bytes=(a.size if a else 0) + b.size,
        labels={"d": tuple(labels)},
    )
    return probe, entry


def _a_registers(matrix: Array, steps: int) -> Array:
    return np.concatenate([a_to_registers(part) for part in np.split(matrix, steps, axis=1)])


def module_of(types: Types, chosen: Sequence[Variant]) -> list[Probe]:
    """Return the probes of a type combination, all kernels in one module."""
    made = [_probe(types, variant) for variant in chosen]
    text = "\n".join([module_text(made[0][1], SYMBOL), *(entry.text() for _, entry in made[1:])])
    return [replace(probe, ptx=text) for probe, _ in made]


def probes() -> list[Probe]:
    """Return all wgmma probes."""
    return [probe for types in TYPES for probe in module_of(types, variants(types))]
