"""Probe of the special registers: a grid of clusters of two-dimensional CTAs, every thread its own row."""

from __future__ import annotations

import numpy as np

from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.ptx.text import Param, PtxEntry, address, module_text

GRID, BLOCK, CLUSTER = (4, 2, 3), (6, 4, 2), (2, 1, 1)
_TRIPLES = (
    "tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid",
)  # fmt: skip
REGISTERS = (
    *(f"%{name}.{axis}" for name in _TRIPLES for axis in "xyz"),
    "%laneid", "%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge", "%lanemask_gt", "%cluster_ctarank",
    "%cluster_nctarank", "%nsmid", "%nwarpid", "%dynamic_smem_size", "%total_smem_size", "%aggr_smem_size",
    "%reserved_smem_offset_begin", "%reserved_smem_offset_end", "%reserved_smem_offset_cap",
)  # fmt: skip
ELSEWHERE = ("%warpid", "%smid", "%gridid")
"""Where a CTA happened to run: notes."""


def probes() -> list[Probe]:
    """Return the probe of special registers."""
    k = PtxEntry("special", [Param("values", ".u64"), Param("elsewhere", ".u64")], [])
    tid = [k.let(".b32", f"tid{axis}", "mov.u32", f"%tid.{axis}") for axis in "xyz"]
    cta = [k.let(".b32", f"cta{axis}", "mov.u32", f"%ctaid.{axis}") for axis in "xyz"]
    thread = k.let(".b32", "thread", "mad.lo.u32", tid[2], BLOCK[1], tid[1])
    k.emit("mad.lo.u32", thread, thread, BLOCK[0], tid[0])
    number = k.let(".b32", "number", "mad.lo.u32", cta[2], GRID[1], cta[1])
    k.emit("mad.lo.u32", number, number, GRID[0], cta[0])
    threads = int(np.prod(BLOCK))
    k.emit("mad.lo.u32", thread, number, threads, thread)
    total = threads * int(np.prod(GRID))
    for name, registers in (("values", REGISTERS), ("elsewhere", ELSEWHERE)):
        place = k.let(".b64", name, "ld.param.u64", f"[{name}]")
        k.emit("mad.wide.u32", place, thread, 4, place)
        for row, register in enumerate(registers):
            if register == "%gridid":
                wide = k.let(".b64", "wide", "mov.u64", register)
                value = k.let(".b32", "value", "cvt.u32.u64", wide)
            else:
                value = k.let(".b32", "value", "mov.u32", register)
            k.emit("st.global.b32", address(place, row * total * 4), value)
    explicit = k.let(".pred", "explicit", "mov.pred", "%is_explicit_cluster")
    flag = k.let(".b32", "flag", "selp.b32", 1, 0, explicit)
    values = k.let(".b64", "values", "ld.param.u64", "[values]")
    k.emit("mad.wide.u32", values, thread, 4, values)
    k.emit("st.global.b32", address(values, len(REGISTERS) * total * 4), flag)
    k.emit("ret")
    return [
        Probe(
            "special.registers",
            module_text(k, "shared_memory"),
            "special",
            grid=GRID,
            block=BLOCK,
            cluster=CLUSTER,
            inputs={},
            outputs={
                "values": ((len(REGISTERS) + 1, total), np.uint32),
                "elsewhere": ((len(ELSEWHERE), total), np.uint32),
            },
            shared_bytes=2048,
            labels={"values": (*REGISTERS, "%is_explicit_cluster"), "elsewhere": ELSEWHERE},
            notes=frozenset({"elsewhere"}),
        )
    ]
