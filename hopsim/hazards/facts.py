"""What the checker is told of a launch, as plain facts, and how its contested rules are set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args, get_type_hints

from hopsim.errors import ConfigError
from hopsim.findings import Dim, SourceLocation


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Contested judgments (`docs/hazards.md`, "Contested rules"); the defaults keep correct CUTLASS and Triton silent.

    Args:
        strict: turns every switch below to its strict reading.
        proxy_fence: where `fence.proxy.async` may stand: anywhere on the causality `path`, or in the `cta` of the
            asynchronous access.
        init_fence: whether TMA needs a proxy fence after `mbarrier.init` (PTX before 9.3).
        mbarrier_scope: `.cta` semantics between CTAs: `data` (a hazard when data is read through it, else a note), or
            `always` a hazard.
        tma_acquire_scope: whether bytes that another CTA's TMA wrote need a wait of `.cluster` scope.
        cross_cta_async: asynchronous accesses of two CTAs to the same bytes, ordered by completion (every multicast
            ring makes them): `off`, `note` or `hazard`.
        exit_drain: whether every tracked operation must be observed before exit.
        st_async_proxy: whether what stands before st.async and red.async must be bridged as for the async proxy.
        grid_dependency: access to global memory before `griddepcontrol.wait`: `note` or `hazard`.
        lane_values: what lanes learn by `shfl.sync`, `vote.sync`, `match.sync` and `redux.sync`: what others of them have
            `acquired`, and that these came so far, as CUDA's own libraries take it; or `nothing`, as PTX has it.
        aligned_barrier: `bar.sync` of one instance at several instructions: `note` or `hazard`.
        unacquired_reads: a strong load of what a thread stored before it set a flag that was seen, but not acquired (no data
            race): `note` or `hazard`.  Where the flag does not release either, it is a hazard.
    Raises: ConfigError: a switch has a position that it does not have.
    """

    strict: bool = False
    proxy_fence: Literal["path", "cta"] = "path"
    init_fence: bool = False
    mbarrier_scope: Literal["data", "always"] = "data"
    tma_acquire_scope: bool = False
    cross_cta_async: Literal["off", "note", "hazard"] = "off"
    exit_drain: bool = False
    aligned_barrier: Literal["note", "hazard"] = "note"
    st_async_proxy: bool = False
    grid_dependency: Literal["note", "hazard"] = "note"
    lane_values: Literal["acquired", "nothing"] = "acquired"
    unacquired_reads: Literal["note", "hazard"] = "note"

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(CheckOptions).items():
            positions = (False, True) if kind is bool else get_args(kind)
            value: object = getattr(self, name)
            # (`1` is equal to `True` and was not meant to be.)
            if not any(
                value is one or (value == one and isinstance(one, str)) for one in positions
            ):
                raise ConfigError(
                    f"expected {' or '.join(map(repr, positions))}, got {value!r}",
                    where=f"CheckOptions: {name}",
                    hint=f"{name}={positions[-1]!r} is the strict reading",
                )

    def resolved(self) -> CheckOptions:
        """Return the options with `strict` spelled out."""
        if not self.strict:
            return self
        return CheckOptions(
            strict=True, proxy_fence="cta", init_fence=True, mbarrier_scope="always", tma_acquire_scope=True,
            cross_cta_async="hazard", exit_drain=True, aligned_barrier="hazard", st_async_proxy=True,
            grid_dependency="hazard", lane_values="nothing", unacquired_reads="hazard",
        )  # fmt: skip


@dataclass(frozen=True)
class LaunchFacts:
    """The program and the shape of a launch.  Instructions that share a PTX line are told apart by their `Place`s.

    Args:
        path: of the PTX text.  lines: its lines.
        mnemonics: PTX lines of the instructions of the kernel, to their opcodes.
        texts: PTX lines of the instructions that do not have one line to themselves, to what is written.
        sources: PTX line to source line, as `.loc` tells.
        version: of the module.
        grid: CTAs.  block: threads.  cluster: CTAs.
        regions: (device address, bytes, name) of every global allocation.
        shared_bytes: of a CTA, the reserved first KiB included.
        register_names: of virtual registers, by number.
        unchecked: what the program uses and no rule covers: (PTX line, text, why).
        moves_registers: whether ptxas knows the registers at entry, so that setmaxnreg counts.
        serialised_lines: PTX lines of wgmma that ptxas will wait for one by one.
        poll_lines: PTX lines of loads that a loop repeats until their value ends it.
        choice_lines: PTX lines of other strong loads whose value decides the branch that follows.
        parity_lines: PTX lines of loads whose value becomes the parity of a wait.
        guess_lines: PTX lines of plain loads whose value becomes what a compare-and-swap compares.
        unread_answers: PTX lines of waits on mbarriers whose answer nothing reads.
        unread_looks: PTX lines of atomics and strong loads whose value nothing reads.
        lines_after: the PTX lines that may execute after a line.
        shared_name: what lies at an address of shared memory.
    """

    path: str
    lines: Sequence[str]
    mnemonics: Mapping[int, str]
    texts: Mapping[int, str]
    sources: Mapping[int, SourceLocation]
    version: tuple[int, int]
    grid: Dim
    block: Dim
    cluster: Dim
    regions: Sequence[tuple[int, int, str]]
    shared_bytes: int
    register_names: Sequence[str] = ()
    unchecked: Sequence[tuple[int, str, str]] = ()
    moves_registers: bool = True
    serialised_lines: Sequence[int] = ()
    poll_lines: frozenset[int] = frozenset()
    choice_lines: frozenset[int] = frozenset()
    parity_lines: frozenset[int] = frozenset()
    guess_lines: frozenset[int] = frozenset()
    unread_answers: frozenset[int] = frozenset()
    unread_looks: frozenset[int] = frozenset()
    lines_after: Callable[[int], frozenset[int]] = lambda line: frozenset()
    shared_name: Callable[[int], str] = lambda address: ""
    _texts: dict[int, str] = field(default_factory=dict[int, str], repr=False, compare=False)

    @cached_property
    def kernel_lines(self) -> Sequence[int]:
        """PTX lines of the instructions of the kernel, sorted."""
        return sorted(self.mnemonics)

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def cluster_size(self) -> int:
        """CTAs of a cluster."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    @cached_property
    def cluster_grid(self) -> Dim:
        """Clusters of the grid."""
        return (
            self.grid[0] // self.cluster[0],
            self.grid[1] // self.cluster[1],
            self.grid[2] // self.cluster[2],
        )

    def text(self, line: int) -> str:
        """Return the instruction at a PTX line, without comment."""
        known = self.texts.get(line) or self._texts.get(line)
        if known is None:
            raw = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
            known = self._texts[line] = " ".join(raw.split("//")[0].split())
        return known

    def mnemonic(self, line: int) -> str:
        """Return the opcode at a PTX line, with its modifiers."""
        return self.mnemonics.get(line, "")

    def coordinates(self, cta: int) -> Dim:
        """Return the coordinates of a CTA in the grid."""
        x, y, _ = self.grid
        return (cta % x, cta // x % y, cta // (x * y))

    def index_of(self, coordinates: Dim) -> int:
        """Return the number of a CTA in the grid."""
        x, y, z = coordinates
        return x + self.grid[0] * (y + self.grid[1] * z)

    def cluster_of(self, cta: int) -> int:
        """Return the number of the cluster of a CTA."""
        (x, y, z), (cx, cy, cz) = self.coordinates(cta), self.cluster
        gx, gy, _ = self.cluster_grid
        return x // cx + gx * (y // cy + gy * (z // cz))
