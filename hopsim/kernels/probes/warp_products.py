"""What the probes of mma.sync share: registers of matrices, and the kernel that multiplies them, one case and warp a CTA."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hopsim.isa.values import Array
from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.probes.tensor import Case
from hopsim.kernels.ptx.text import Param, PtxEntry, Reg, address, module_text, vector
from hopsim.layout.fragments import mma_a_to_registers, mma_b_to_registers, mma_c_to_registers

LANES = 32


def product_kernel(
    name: str,
    mnemonic: str,
    counts: Sequence[int],
    *,
    register_bits: int = 32,
    selector: int | None = None,
) -> PtxEntry:
    """Return the kernel that loads A, B and C as registers, multiplies, and stores D.

    Args:
        counts: registers of A, B and C; of a sparse product also that of the metadata.
        register_bits: 32 or 64.
        selector: the sparsity selector of a sparse product.
    """
    size = register_bits // 8
    kind = f".b{register_bits}" if register_bits == 32 else f".f{register_bits}"
    given = "abc" if selector is None else "abce"
    k = PtxEntry(name, [Param(one, ".u64") for one in (*given, "d")], [".reqntid 32"])
    lane = k.let(".b32", "lane", "mov.u32", "%tid.x")
    number = k.let(".b32", "case", "mov.u32", "%ctaid.x")
    places = [k.let(".b64", one, "ld.param.u64", f"[{one}]") for one in (*given, "d")]
    registers: list[list[Reg]] = []
    for letter, place, count in zip((*given, "d"), places, (*counts, counts[2]), strict=True):
        k.emit("mad.wide.u32", place, number, count * LANES * size, place)
        k.emit("mad.wide.u32", place, lane, size, place)
        registers.append(k.regs(kind, f"r{letter}", count))
    for place, held in zip(places[:-1], registers[:-1], strict=True):
        for index, one in enumerate(held):
            k.emit(f"ld.global{kind}", one, address(place, LANES * size * index))
    a, b, c, *metadata, d = registers
    sparse = [] if selector is None else [metadata[0][0], selector]
    k.emit(mnemonic, *(vector(held) for held in (d, a, b, c)), *sparse)
    for index, one in enumerate(d):
        k.emit(f"st.global{kind}", address(places[-1], LANES * size * index), one)
    k.emit("ret")
    return k


def registers_of(cases: Sequence[Case]) -> dict[str, Array]:
    """Return A, B and C of several cases as registers: (cases, registers, lanes) each."""
    converters: dict[str, Callable[[Array], Array]] = {
        "a": mma_a_to_registers, "b": mma_b_to_registers, "c": mma_c_to_registers,
    }  # fmt: skip
    return {
        name: np.stack([convert(one[index]) for one in cases])
        for index, (name, convert) in enumerate(converters.items())
    }


def product_probe(
    group: str,
    name: str,
    mnemonic: str,
    inputs: dict[str, Array],
    labels: Sequence[str],
    *,
    register_bits: int = 32,
    selector: int | None = None,
) -> Probe:
    """Return the probe of one instruction.

    Args:
        inputs: `registers_of` the cases; of a sparse product also `e`, the metadata.
        labels: of the cases.
        register_bits, selector: as `product_kernel` takes them.
    """
    counts = [value.shape[1] for value in inputs.values()]
    kernel = product_kernel(name, mnemonic, counts, register_bits=register_bits, selector=selector)
    word = np.uint64 if register_bits == 64 else np.uint32
    return Probe(
        f"{group}.{name}",
        module_text(kernel, "shared_memory"),
        name,
        grid=len(labels),
        block=LANES,
        inputs=inputs,
        outputs={"d": ((len(labels), counts[2], LANES), word)},
        labels={"d": tuple(labels)},
    )
