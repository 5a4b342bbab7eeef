"""The sparsity selector of mma.sp and wgmma.mma_async.sp: which lanes of four hold the metadata of A."""

from __future__ import annotations

from hopsim.isa.ptx.ast import Immediate
from hopsim.isa.ptx.flat import FlatOperand
from hopsim.layout.sparse import metadata_map


def selector_problem(kind: str, k: int, selector: FlatOperand) -> str:
    """Return what is wrong with a sparsity selector, or the empty string.

    Args:
        kind: PTX type of A.
        k: elements of a row of A, stored or not.

    Source: PTX ISA 8.7 "mma.sp", "wgmma.mma_async.sp", sparsity selector.
    """
    known = metadata_map(kind, k).selectors
    if isinstance(selector, Immediate) and not 0 <= selector.value < known:
        return f"the sparsity selector is {selector.value}, expected {' or '.join(map(str, range(known)))}"
    return ""
