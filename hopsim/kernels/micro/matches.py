"""`match` by how many values the lanes of a warp have, by one warp and by many."""

from __future__ import annotations

from typing import Final

from hopsim.kernels.micro.clocked import Benchmark, Clocked, zero_word
from hopsim.kernels.ptx.text import Param, Reg

VALUES: Final = (1, 2, 4, 8, 16, 32)
WARPS: Final = (1, 4, 16)
LENGTHS: Final = (4, 12)


def matches(mode: str, warps: int) -> Benchmark:
    """A slope is a `match` whose result the next one's value waits for, and two steps of arithmetic.

    Args:
        mode: `any` or `all`.
        warps: of the CTA, all of which do so.
    """
    c = Clocked(f"match_{mode}_w{warps}", [Param("zero", ".u32")])
    zero = c.load("zero")
    for values in VALUES:
        value = c.k.let(".b32", "value", "and.b32", c.thread, values - 1)
        for length in LENGTHS:

            def run(value: Reg = value, length: int = length) -> Reg:
                for _ in range(length):
                    mask = c.k.reg(".b32", "mask")
                    same = [mask] if mode == "any" else [f"{mask}|{c.k.reg('.pred', 'all')}"]
                    c.k.emit(f"match.{mode}.sync.b32", *same, value, -1)
                    nothing = c.k.let(".b32", "nothing", "and.b32", mask, zero)
                    value = c.k.let(".b32", "value", "add.u32", value, nothing)
                return value

            c.measure(f"{values} values x{length}", run, whole_cta=True)
    return c.benchmark(
        f"match.{mode}, and, add by how many values the lanes of a warp have, {warps} warps",
        block=32 * warps, arguments=zero_word,
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all of them."""
    return [matches(mode, warps) for mode in ("any", "all") for warps in WARPS]
