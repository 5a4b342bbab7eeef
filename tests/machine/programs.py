"""Small PTX programs for the machine: a body in, one launch under every schedule, arrays out.

A body finds these registers ready: `%t` (thread of the CTA), `%out` (address of the output array), `%mine` (address of
this thread's 32-bit word of it: word ctaid.x * ntid.x + tid.x).  Further parameters are `.param .u64 p0`, `p1`, ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hopsim.errors import MachineFault
from hopsim.isa.program.kernel import Kernel, loads
from hopsim.results import LaunchResult
from hopsim.runtime.gpu import Gpu

SEEDS = (1, 2, 3, 4)
Order = dict[str, Any]
IN_ORDER: Order = {"schedule": "in-order"}
ADVERSARIAL: Order = {"schedule": "adversarial"}
TIMED: Order = {"schedule": "timed"}
SEEDED: tuple[Order, ...] = tuple({"schedule": "seeded", "seed": seed} for seed in SEEDS)
UNTIMED: tuple[Order, ...] = (IN_ORDER, *SEEDED, ADVERSARIAL)
ORDERS: tuple[Order, ...] = UNTIMED

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
REGISTERS = """
.reg .pred %p<40>;
.reg .b16 %h<40>;
.reg .b32 %r<120>;
.reg .b64 %rd<60>;
.reg .f32 %f<20>;
.reg .b32 %t, %word;
.reg .b64 %out, %mine;
"""
PROLOGUE = """
ld.param.u64 %out, [out];
mov.u32 %t, %tid.x;
mov.u32 %word, %ctaid.x;
mov.u32 %r119, %ntid.x;
mad.lo.u32 %word, %word, %r119, %t;
mul.wide.u32 %mine, %word, 4;
add.u64 %mine, %mine, %out;
"""


@lru_cache(512)
def build(
    body: str, params: int = 0, module: str = "", directives: str = "", extra: str = ""
) -> Kernel:
    """Return the kernel `k` with a body; `extra` is text of further parameters."""
    declared = [".param .u64 out", *(f".param .u64 p{n}" for n in range(params))]
    if extra:
        declared.append(extra)
    text = (
        f"{HEAD}{module}\n.visible .entry k({', '.join(declared)})\n{directives}\n"
        f"{{{REGISTERS}{PROLOGUE}{body}\nret;\n}}\n"
    )
    return loads(text, "test.ptx")["k"]


def line_of(kernel: Kernel, fragment: str) -> int:
    """Return the 1-based line of the only line of the text that holds `fragment`."""
    (found,) = [number for number, line in enumerate(kernel.module.lines, 1) if fragment in line]
    return found


@lru_cache(1)
def gpu() -> Gpu:
    """One device for tests that look at nothing but their own arrays."""
    return Gpu()


def launch(
    body: str | Kernel,
    order: Order = IN_ORDER,
    *,
    inputs: Sequence[NDArray[Any]] = (),
    out: Any = 32,
    fill: Any = 0,
    dtype: Any = np.uint32,
    grid: Any = 1,
    block: Any = 32,
    cluster: Any = None,
    shared_bytes: int = 0,
    args: Sequence[Any] | None = None,
    device: Gpu | None = None,
    module: str = "",
    directives: str = "",
    check: bool = False,
    **options: Any,
) -> tuple[LaunchResult, NDArray[Any], list[NDArray[Any]]]:
    """Launch once; return the result, the output array and the input arrays as they are afterwards."""
    device = device or gpu()
    kernel = build(body, len(inputs), module, directives) if isinstance(body, str) else body
    target = device.array(np.full(out, fill, dtype))
    arrays = [device.array(x) for x in inputs]
    given = [target, *arrays] if args is None else [target, *args]
    result = device.launch(
        kernel, grid=grid, block=block, cluster=cluster, args=given, shared_bytes=shared_bytes,
        check=check, **{"timing": order["schedule"] == "timed", **order, **options},
    )  # fmt: skip
    return result, target.numpy(), [array.numpy() for array in arrays]


def expect(
    body: str | Kernel,
    expected: Any,
    *,
    orders: Sequence[Order] = ORDERS,
    **options: Any,
) -> None:
    """Run under every schedule: the launch ends, and the output array is exactly `expected`."""
    expected = np.asarray(expected)
    options.setdefault("out", expected.shape)
    if expected.dtype.kind in "ui":
        options.setdefault("dtype", np.uint32)
        expected = expected.astype(options["dtype"])
    for order in orders:
        result, got, _ = launch(body, order, **options)
        assert result.deadlock is None, (order, str(result.deadlock))
        assert not [note for note in result.not_modelled if "limit" in note.why], order
        assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
        assert np.array_equal(got, expected), (order, differences(got, expected))


def differences(got: NDArray[Any], expected: NDArray[Any]) -> list[tuple[Any, ...]]:
    """Return (index, got, expected) of the first places where two arrays differ."""
    where = np.argwhere(got != expected)[:8]
    return [(tuple(i.tolist()), got[tuple(i)], expected[tuple(i)]) for i in where]


def each_order(orders: Sequence[Order] = ORDERS) -> Iterator[tuple[str, Order]]:
    """Yield a name and the launch options of each schedule."""
    for order in orders:
        yield f"{order['schedule']}-{order.get('seed', 0)}", order


def fault_of(body: str | Kernel, *, orders: Sequence[Order] = UNTIMED, **options: Any) -> str:
    """Run a body that faults; return the message without `test.ptx:LINE: `, the same under every schedule.

    The line is checked: the message shows the text of that line.
    """
    texts: dict[str, str] = {}
    kernel = build(body, len(options.get("inputs", ())), options.pop("module", ""), options.pop("directives", "")) \
        if isinstance(body, str) else body  # fmt: skip
    for name, order in each_order(orders):
        with pytest.raises(MachineFault) as caught:
            launch(kernel, order, **options)
        path, line, text = str(caught.value).split(":", 2)
        assert path == "test.ptx"
        shown = kernel.module.lines[int(line) - 1].strip()
        assert f"\n    {shown}" in text, (shown, text)
        texts[name] = text.replace(f"\n    {shown}", "").strip()
    (text,) = set(texts.values())
    return text
