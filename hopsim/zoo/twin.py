"""A twin: one small program of which the bad and the good copy each take some lines.

A line of a body that begins with `-` is in the bad twin only, with `+` in the good twin only, with a blank in both.  `$name`
stands for a few lines of PTX, see `steps`.  Everything else is PTX as ptxas takes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from hopsim.explore.case import Arguments, Device
from hopsim.isa.program.kernel import Kernel, loads
from hopsim.launch.arrays import TensorMap
from hopsim.zoo.steps import expand, head

ARRAY_WORDS = 16384
SHARED_BYTES = 16384
MAP_COLUMNS = 64
MAP_ROWS = 16


@dataclass(frozen=True, slots=True)
class Twin:
    """A pair of programs with one idea.

    Args:
        name: unique, in words joined by `-`.
        rule: the class it belongs to.
        story: what the program does and what the bad twin forgets, one or two sentences.
        incident: the public report it is modelled on, or `rule` where there is only the text of PTX.
        body: marked lines.
        found: rules of the findings that one run in order of the bad twin gives, sorted; None for just `rule`.
        verdict: of the bad twin.
        level: of the findings: `hazard`, or `note` for what only costs time, is contested, or ptxas says.
        missed: why hopsim does not report `rule` itself, where it does not.
        strict: rules of the hazards that the good twin gives in strict mode.
        threads, ctas, cluster: of the launch.
        version: of PTX.  registers: bound of a thread; 0 states none.  is_bounded: whether the entry tells its threads.
    """

    name: str
    rule: str
    story: str
    incident: str
    body: str
    found: tuple[str, ...] | None = None
    verdict: str = "hazard"
    level: str = "hazard"
    missed: str = ""
    strict: tuple[str, ...] = ()
    threads: int = 128
    ctas: int = 1
    cluster: int = 1
    version: str = "8.7"
    registers: int = 0
    is_bounded: bool = True

    @property
    def expected(self) -> tuple[str, ...]:
        """Rules of the hazards that the bad twin gives, sorted."""
        return (self.rule,) if self.found is None else self.found

    def ptx(self, is_good: bool) -> str:
        """Return the text of one twin."""
        return _text(self, is_good)

    def case(self, is_good: bool) -> TwinCase:
        """Return one twin as something to launch."""
        return TwinCase(self, self.ptx(is_good))


@lru_cache(1024)
def _text(twin: Twin, is_good: bool) -> str:
    first = head(twin.version, twin.threads if twin.is_bounded else 0, twin.registers)
    lines = expand(twin.body, is_good)
    return first + "".join(f"    {line}\n" for line in lines) + "    ret;\n}\n"


@dataclass(frozen=True, slots=True)
class TwinCase:
    """A text in the shape of a twin, with the twin's launch: lessons and mutants change the text.

    `path` is what messages call the text; the twin's name if it is empty.
    """

    twin: Twin
    text: str
    path: str = ""

    @property
    def grid(self) -> int:
        """CTAs."""
        return self.twin.ctas

    @property
    def block(self) -> int:
        """Threads of a CTA."""
        return self.twin.threads

    @property
    def cluster(self) -> int | None:
        """CTAs of a cluster."""
        return self.twin.cluster if self.twin.cluster > 1 else None

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory."""
        return SHARED_BYTES

    def kernel(self) -> Kernel:
        """Load the text.

        Raises: PtxError, NotModelled.
        """
        kernel = loads(self.text, self.path or f"{self.twin.name}.ptx")["k"]
        assert kernel.instructions is not None, "reading them raises what is not modelled"
        return kernel

    def arguments(self, gpu: Device) -> Arguments:
        """Put the arrays on a device; the same for every twin."""
        source = gpu.array(inputs())
        out = gpu.array(np.zeros(ARRAY_WORDS, np.uint32))
        unwritten = gpu.empty((1024,), np.uint32)
        matrix = gpu.array(inputs().view(ml_dtypes.bfloat16).reshape(-1, MAP_COLUMNS))
        tile = TensorMap(matrix, box=(MAP_COLUMNS, MAP_ROWS), swizzle="128B")
        return Arguments([source, out, unwritten, tile], {"out": out})


def inputs() -> NDArray[np.uint32]:
    """Return small whole numbers as pairs of bf16, one pair in a word; neighbouring words differ."""
    count = np.arange(2 * ARRAY_WORDS)
    numbers = (count * 7 % 31 - 15).astype(ml_dtypes.bfloat16)
    return numbers.view(np.uint32)
