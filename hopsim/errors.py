"""The exceptions of hopsim: one small tree, one shape of message.

Every message reads *where / what / expected against got / try*.  Hazards and deadlocks are results of
a launch, not exceptions (see `hopsim.results`).  Imports nothing of hopsim.
"""

from __future__ import annotations

from collections.abc import Sequence


class HopsimError(Exception):
    """Base of all errors a user can cause.

    Args:
        what: one sentence that says what is wrong, with expected against got.
        where: `file:line:column`, or `ctaid/warp/lane/pc`, or a configuration key; empty when unknown.
        hint: what to try; empty when there is nothing to say.
        source: the document that states the rule, for example `PTX ISA 8.7, "wgmma.mma_async"`.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "", source: str = "") -> None:
        self.what = what
        self.where = where
        self.hint = hint
        self.source = source
        super().__init__(self._render())

    @property
    def place(self) -> str:
        """Where, as the message has it."""
        return self.where

    def _render(self) -> str:
        lines = [f"{self.place}: {self.what}" if self.place else self.what]
        if self.hint:
            lines.append(f"  try: {self.hint}")
        if self.source:
            lines.append(f"  ({self.source})")
        return "\n".join(lines)


class PtxError(HopsimError):
    """The PTX text is wrong: syntax, names, types, or a form that PTX does not have.

    Args:
        line: 1-based line in the text, 0 when unknown.
        column: 1-based column, 0 when unknown.
        text: the source line itself, shown with a caret below `column`.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        line: int = 0,
        column: int = 0,
        text: str = "",
        hint: str = "",
        source: str = "",
    ) -> None:
        self.line = line
        self.column = column
        self.text = text
        super().__init__(what, where=where, hint=hint, source=source)

    @property
    def place(self) -> str:
        """Where, with line and column as far as they are known."""
        if not self.line:
            return self.where
        return f"{self.where or '<ptx>'}:{self.line}" + (f":{self.column}" if self.column else "")

    def _render(self) -> str:
        lines = [f"{self.place}: {self.what}" if self.place else self.what]
        if self.text:
            shown = self.text.expandtabs(1).rstrip()
            lines.append(f"    {shown}")
            if self.column:
                lines.append("    " + " " * (self.column - 1) + "^")
        if self.hint:
            lines.append(f"  try: {self.hint}")
        if self.source:
            lines.append(f"  ({self.source})")
        return "\n".join(lines)


class NotModelled(HopsimError):
    """The program is legal PTX, but hopsim does not model this form (yet)."""


class LaunchError(HopsimError):
    """A launch is impossible: grid, block, cluster, shared memory or an argument does not fit."""


class TensorMapError(LaunchError):
    """A tensor map breaks a rule of `cuTensorMapEncodeTiled`."""


class ConfigError(HopsimError):
    """A configuration file, an override or a command-line setting is wrong."""


class FaultPlace(str):
    """Where threads faulted: `path:line: cta (x,y,z) warp w lanes a-b`, and its parts.

    Args:
        line: of PTX; an `events.Place` where instructions share it.
        cta: its coordinates in the grid.  warp: the first.
        lanes: bit mask of the lanes that faulted; 0 where it is the whole warp, or several.
    """

    line: int
    cta: tuple[int, int, int]
    warp: int
    lanes: int

    def __new__(
        cls, text: str, line: int, cta: tuple[int, int, int], warp: int, lanes: int = 0
    ) -> FaultPlace:
        """Return the place that a text names."""
        place = super().__new__(cls, text)
        place.line, place.cta, place.warp, place.lanes = line, cta, warp, lanes
        return place

    def __reduce__(self) -> tuple[object, ...]:
        """Return how to make it again, so that a fault comes back from another process."""
        return FaultPlace, (str(self), self.line, self.cta, self.warp, self.lanes)


class MachineFault(HopsimError):
    """The program did something at run time for which the hardware would trap or that PTX leaves undefined.

    The message names the CTA, warp, lanes and PTX line; a `FaultPlace` has them one by one.  `printed` is what threads
    had printed before.

    Args:
        kind: what went wrong, where the message holds names of the program: `assertion`, `outside`, `misaligned`,
            `unwritten` or `read-only`; empty where its words tell.
    """

    printed: str = ""

    def __init__(
        self, what: str, *, where: str = "", hint: str = "", source: str = "", kind: str = ""
    ) -> None:
        self.kind = kind
        super().__init__(what, where=where, hint=hint, source=source)

    def add_source_text(self, lines: Sequence[str]) -> None:
        """Show the PTX line of the place, once the text is at hand."""
        number = int(self.where.line) if isinstance(self.where, FaultPlace) else 0
        if 0 < number <= len(lines):
            self.what = f"{self.what}\n    {lines[number - 1].strip()}"
            self.args = (self._render(),)

    def add_hint(self, hint: str) -> None:
        """Say what to try before what the place of the fault says, which knows less of the launch."""
        self.hint = f"{hint}; or {self.hint}" if self.hint else hint
        self.args = (self._render(),)


class ValuesNeeded(HopsimError):
    """A `values=False` run met control flow, an address or a barrier operand that depends on data it did not compute."""


class DeviceError(HopsimError):
    """The CUDA backend is missing, or the driver or device reported an error."""
