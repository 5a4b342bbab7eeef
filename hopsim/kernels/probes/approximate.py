"""Probes of the approximate functions: all inputs of the 16-bit types, a sample of f32 over every exponent.

What was recorded judges the tables of `hopsim.isa.numerics.mufu` and the rules around them.
"""

from __future__ import annotations

import numpy as np

from hopsim.isa.values import Array
from hopsim.kernels.probes.bits import edges, operands, words
from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.ptx.text import Param, PtxEntry, Reg, address, module_text

THREADS = 512
HALF_FORMS = ("ex2.approx.f16", "tanh.approx.f16", "ex2.approx.ftz.bf16", "tanh.approx.bf16")
_NAMES = ("rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos")
F32_FORMS = (
    *(f"{name}.approx{ftz}.f32" for name in _NAMES for ftz in ("", ".ftz")),
    "tanh.approx.f32",
)
DIVISIONS = ("div.approx.f32", "div.approx.ftz.f32", "div.full.f32", "div.full.ftz.f32")
F64_FORMS = ("rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64", "rsqrt.approx.f64")


def f32_sample() -> Array:
    """Return inputs: 12 of each exponent and sign, 1,024 in [1, 4) and [0, 1) each, and all telling values."""
    exponents = np.arange(512, dtype=np.uint64)[:, None] << np.uint64(23)
    fractions = words(11, 512 * 12).reshape(512, 12) & np.uint64(0x7FFFFF)
    spread = (exponents | fractions).ravel()
    unit = np.arange(1024, dtype=np.float32) / np.float32(1024)
    telling = np.array(edges("f32"), np.uint64)
    near_one = np.uint64(0x3F800000) + words(12, 1024) % np.uint64(1 << 24)
    parts = (spread, near_one, unit.view(np.uint32).astype(np.uint64), telling)
    sample = np.concatenate(parts).astype(np.uint32)
    short = -sample.size % THREADS
    return np.concatenate([sample, np.full(short, 0x3F800000, np.uint32)])


def elementwise(name: str, bits: int, forms: tuple[str, ...], inputs: tuple[Array, ...]) -> Probe:
    """Return the probe that applies functions to every element of its inputs."""
    count = inputs[0].size
    size = bits // 8
    names = [f"x{i}" for i in range(len(inputs))]
    k = PtxEntry("approximate", [Param(name, ".u64") for name in (*names, "out")], [])
    thread = k.let(".b32", "thread", "mov.u32", "%tid.x")
    block = k.let(".b32", "block", "mov.u32", "%ctaid.x")
    k.emit("mad.lo.u32", thread, block, THREADS, thread)
    loaded: list[Reg] = []
    for one in names:
        place = k.let(".b64", one, "ld.param.u64", f"[{one}]")
        k.emit("mad.wide.u32", place, thread, size, place)
        loaded.append(k.let(f".b{bits}", "x", f"ld.global.b{bits}", address(place)))
    out = k.let(".b64", "out", "ld.param.u64", "[out]")
    k.emit("mad.wide.u32", out, thread, size, out)
    for row, form in enumerate(forms):
        result = k.let(f".b{bits}", "y", form, *loaded)
        k.emit(f"st.global.b{bits}", address(out, row * count * size), result)
    k.emit("ret")
    dtype = inputs[0].dtype
    return Probe(
        f"approximate.{name}",
        module_text(k, "shared_memory"),
        "approximate",
        grid=count // THREADS,
        block=THREADS,
        inputs=dict(zip(names, inputs, strict=True)),
        outputs={"out": ((len(forms), count), dtype)},
        labels={"out": forms},
    )


def probes() -> list[Probe]:
    """Return all probes of approximate functions."""
    every = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    pairs = tuple(operands("f32", position, 2048).astype(np.uint32) for position in (0, 1))
    doubles = operands("f64", None, 2048)
    return [
        elementwise("half", 16, HALF_FORMS, (every,)),
        elementwise("f32", 32, F32_FORMS, (f32_sample(),)),
        elementwise("divide", 32, DIVISIONS, pairs),
        elementwise("f64", 64, F64_FORMS, (doubles,)),
    ]
