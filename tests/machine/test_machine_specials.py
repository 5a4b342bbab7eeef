"""Every special register either has a value on the machine or is told when a kernel is loaded."""

from __future__ import annotations

import numpy as np
import pytest

import hopsim as hs
from hopsim.isa.ptx.special import SPECIAL_REGISTERS, has_components, is_modelled

NUMBERED = ("%envreg1", "%envreg2", "%envreg0", "%reserved_smem_offset_1")
WIDE = {"%clock64", "%globaltimer", "%current_graph_exec", *(f"%pm{i}_64" for i in range(8))}
NAMES = sorted(
    f"{name}{part}"
    for name in (*SPECIAL_REGISTERS, *NUMBERED)
    for part in ((".x", ".y", ".z", ".w") if has_components(name) else ("",))
)


def reading(name: str) -> hs.Kernel:
    bits = 64 if name in WIDE else 32
    read = f"mov.u{bits} %value, {name};"
    if name == "%is_explicit_cluster":
        read = f"mov.pred %flag, {name}; selp.u32 %value, 1, 0, %flag;"
    return hs.loads(f"""
    .version 8.7
    .target sm_90a
    .address_size 64
    .visible .entry read(.param .u64 out)
    {{
        .reg .b64 %out;
        .reg .b{bits} %value;
        .reg .pred %flag;
        ld.param.u64 %out, [out];
        {read}
        st.global.b{bits} [%out], %value;
        ret;
    }}
    """)["read"]


@pytest.mark.parametrize("name", [name for name in NAMES if is_modelled(name.split(".")[0])])
def test_it_has_a_value(name: str) -> None:
    gpu = hs.Gpu()
    out = gpu.array(np.full(2, 0xDEADBEEF, np.uint32))
    result = gpu.launch(reading(name), grid=1, block=1, args=[out], schedule="in-order")
    assert result.verdict == "clean"
    assert out.numpy()[0] != 0xDEADBEEF
    if name.endswith(".w"):
        assert out.numpy()[0] == 0


@pytest.mark.parametrize("name", [name for name in NAMES if not is_modelled(name.split(".")[0])])
def test_it_is_told_when_loaded(name: str) -> None:
    kernel = reading(name)
    ((line, text, why),) = kernel.unsupported
    assert (line, why) == (11, f"special register {name} is not modelled")
    assert name in text
    with pytest.raises(hs.NotModelled, match="special register"):
        hs.Gpu().launch(kernel, grid=1, block=1, args=[None])


def test_a_vector_needs_a_component() -> None:
    with pytest.raises(hs.PtxError, match=r"%tid needs a component: %tid\.x"):
        assert reading("%tid").unsupported
