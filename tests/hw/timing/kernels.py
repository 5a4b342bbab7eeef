"""Small PTX kernels for tests of the timed schedule."""

from __future__ import annotations

from typing import Any

import hopsim as hs

HEADER = ".version 8.3\n.target sm_90a\n.address_size 64\n"


def kernel(
    body: str, params: str = ".param .u64 out", declarations: str = "", directives: str = ""
) -> Any:
    registers = ".reg .pred %p<16>; .reg .b32 %r<64>; .reg .b64 %rd<32>; .reg .f32 %f<64>; .reg .f32 %acc<128>; .reg .f64 %fd<8>;"
    text = f"{HEADER}.visible .entry k({params}) {directives} {{ {registers} {declarations}\n{body}\n}}"
    return hs.loads(text)["k"]


def launch(
    body: str,
    *,
    gpu: Any = None,
    grid: Any = 1,
    block: Any = 32,
    args: Any = (None,),
    **options: Any,
) -> Any:
    """Run a kernel body; keyword arguments of `kernel` and of `launch` may be mixed."""
    made = {
        name: options.pop(name)
        for name in ("params", "declarations", "directives")
        if name in options
    }
    chip = gpu or hs.Gpu("h100-sxm", overrides=options.pop("overrides", None))
    return chip.launch(
        kernel(body, **made), grid=grid, block=block, args=list(args), check=False, **options
    )
