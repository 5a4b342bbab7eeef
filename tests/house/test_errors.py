"""Errors go from one process to another: a pool hands them on as pickles, and waits for ever for one that it cannot read."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

import hopsim as hs
from hopsim import errors
from hopsim.errors import FaultPlace, HopsimError, MachineFault, PtxError
from hopsim.events import Place

PUBLIC = sorted(
    (
        found
        for _, found in inspect.getmembers(errors, inspect.isclass)
        if issubclass(found, HopsimError)
    ),
    key=lambda one: one.__name__,
)
AT = FaultPlace("k.ptx:7: cta (1,0,0) warp 2 lane 3", 7, (1, 0, 0), 2, 8)
SHARED = FaultPlace("k.ptx:7:52: cta (0,0,0) warp 0", Place(7, 52), (0, 0, 0), 0)
STORE = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry store(.param .u64 x)
{
    .reg .b64 %p;
    ld.param.u64 %p, [x];
    st.global.u32 [%p], 1;
    ret;
}
"""


def returned(error: HopsimError) -> HopsimError:
    """Check that an error comes back as it was, and return it."""
    for back in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))
        assert back.place == error.place
    return pickle.loads(pickle.dumps(error))


@pytest.mark.parametrize("kind", PUBLIC)
def test_every_error_comes_back_with_its_fields(kind: type[HopsimError]) -> None:
    returned(kind("4 stages, got 5", where="gemm", hint="fewer", source="PTX ISA 8.7"))


def test_what_some_errors_have_besides_comes_back() -> None:
    returned(PtxError("no such name", where="k.ptx", line=3, column=5, text="mov.u32 %r1, x;"))
    fault = MachineFault("misaligned", where=AT, hint="align it", kind="misaligned")
    fault.printed = "before\n"
    fault.add_source_text([""] * 6 + ["ld.global.v4.u32 {%r1}, [%p];"])
    fault.add_hint("shared_bytes=1024")
    back = returned(fault)
    assert isinstance(back, MachineFault)
    assert back.printed == "before\n"
    place = back.where
    assert isinstance(place, FaultPlace)
    assert (place.line, place.cta, place.warp, place.lanes) == (7, (1, 0, 0), 2, 8)


def test_a_place_on_a_line_that_instructions_share_comes_back() -> None:
    place = returned(MachineFault("misaligned", where=SHARED)).where
    assert isinstance(place, FaultPlace)
    assert (str(place.line), place.line) == ("7:52", Place(7, 52))


def test_a_fault_of_a_launch_comes_back() -> None:
    with pytest.raises(MachineFault, match="is in no allocation") as caught:
        hs.Gpu().launch(hs.loads(STORE)["store"], 1, 1, args=[None], check=False)
    returned(caught.value)


def test_a_kernel_can_be_pickled_before_a_launch_and_after() -> None:
    module = hs.loads(STORE, "store.ptx")
    kernel = module["store"]
    words: list[int] = []
    for _ in range(3):
        gpu = hs.Gpu()
        x = gpu.array(np.zeros(1, np.uint32))
        gpu.launch(kernel, 1, 1, args=[x], schedule="in-order")
        words.append(int(x.numpy()[0]))
        assert len(kernel.module.lines) == len(STORE.splitlines())
        kernel = pickle.loads(pickle.dumps(kernel))
        assert (kernel.name, kernel.module.path) == ("store", "store.ptx")
        assert kernel.module[kernel.name] is kernel
    assert words == [1, 1, 1]
    assert list(pickle.loads(pickle.dumps(module))) == ["store"]
    assert copy.deepcopy(module).hash == module.hash
