"""The schedules of a GEMM: what each is, what it can do, and who writes its PTX."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from hopsim.errors import LaunchError
from hopsim.kernels.gemm.cooperative import emit_cooperative
from hopsim.kernels.gemm.mma_multistage import emit_mma_multistage, shared_bytes
from hopsim.kernels.gemm.mma_simple import emit_mma_simple
from hopsim.kernels.gemm.pingpong import emit_pingpong
from hopsim.kernels.gemm.pipelined import emit_pipelined
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.split_k import emit_split_k
from hopsim.kernels.gemm.stream_k import emit_stream_k
from hopsim.kernels.gemm.tile import Tile, nearest_multiple
from hopsim.kernels.gemm.warp_specialized import emit_warp_specialized
from hopsim.kernels.gemm.wgmma_simple import emit_wgmma_simple
from hopsim.kernels.ptx.text import PtxEntry
from hopsim.layout.swizzle import Swizzle


def _plan_bytes(plan: GemmPlan) -> int:
    return plan.shared_bytes


def _none(_: GemmPlan) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Schedule:
    """One way to overlap the copies, products and stores of a GEMM.

    Args:
        name: as `build` takes it.
        words: what it is, in a line.
        emit: writes the entry of a plan.
        has_producer: one more warpgroup feeds the ring.
        warpgroups: how many may compute.
        stages: least and most slots of the ring.
        fixed: options of the plan that the schedule sets itself.
        options: further options of `build` that it takes.
        has_maps: its operands come as tensor maps, not as pointers.
        has_workspace: CTAs exchange sums through global memory.
        most_k_bytes: bytes along K of a stage that suit it.
        tile_n: what the columns of a tile must be a multiple of.
        shared_bytes: dynamic shared memory of a plan.
    """

    name: str
    words: str
    emit: Callable[[str, GemmPlan], PtxEntry]
    has_producer: bool = False
    warpgroups: tuple[int, ...] = (1, 2)
    stages: tuple[int, int] = (2, 64)
    fixed: dict[str, Any] = field(default_factory=dict[str, Any])
    options: frozenset[str] = frozenset()
    has_maps: bool = True
    has_workspace: bool = False
    most_k_bytes: int = 128
    tile_n: int = 1
    shared_bytes: Callable[[GemmPlan], int] = _plan_bytes

    def settle(self, tile: Tile, stages: int, given: dict[str, Any]) -> dict[str, Any]:
        """Return the plan's options: those given and those fixed.

        What no tile could mend is told first.

        Args:
            given: options that differ from their defaults.

        Raises: LaunchError: the schedule cannot do what is given.
        """
        for name, value in given.items():
            self._check_option(name, value)
        _check_company(given)
        least, most = self.stages
        if not least <= stages <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            why = " to overlap copy and product" if least == 2 else ""
            raise LaunchError(
                f"stages must be {wanted}{why} in schedule {self.name}, got {stages}",
                where="gemm",
                hint=_others(one.name for one in SCHEDULES.values() if _is_in(stages, one.stages))
                or f"{max(least, min(stages, most, _USUAL_STAGES))} stages",
            )
        settled = {"warpgroups": self.warpgroups[0], **given}
        if settled["warpgroups"] not in self.warpgroups:
            wanted = " or ".join(str(count) for count in self.warpgroups)
            raise LaunchError(
                f"warpgroups must be {wanted} in schedule {self.name}, got {settled['warpgroups']}",
                where="gemm",
                hint=_others(
                    one.name
                    for one in SCHEDULES.values()
                    if settled["warpgroups"] in one.warpgroups
                )
                or f"{wanted} warpgroups",
            )
        if tile.n % self.tile_n:
            raise LaunchError(
                f"tile n must be a multiple of {self.tile_n} in schedule {self.name}, got {tile.n}",
                where="gemm",
                hint=f"tile {replace(tile, n=nearest_multiple(tile.n, self.tile_n, 256))}",
            )
        return settled | self.fixed

    def _check_option(self, name: str, value: Any) -> None:
        """Refuse an option that the schedule does not take, or sets itself to another value.

        Raises: LaunchError.
        """
        word = _OPTION_WORDS.get(name, name)
        if name in self.fixed:
            if value != self.fixed[name]:
                raise LaunchError(
                    f"schedule {self.name} sets {word} to {_told(self.fixed[name])} itself,"
                    f" got {_told(value)}",
                    where="gemm",
                    hint=_others(one.name for one in SCHEDULES.values() if name in one.options),
                )
        elif name not in self.options | _ALWAYS:
            raise LaunchError(
                f"schedule {self.name} does not take {word}, got {_told(value)}",
                where="gemm",
                hint=_others(_takers(name)),
            )


_USUAL_STAGES: Final = 4
_ALWAYS: Final = frozenset({"warpgroups", "order", "group_m", "store_buffers"})
_FEW_ROWS: Final = frozenset({"a_rows"})
"""Of schedules that can load a part of A's rows: then they do where M has fewer than the tile."""
_MAJORS: Final = _FEW_ROWS | {"a_major", "b_major", "swizzle_mode"}
_CLUSTERS: Final = frozenset({"cluster", "release_scope"})

SCHEDULES: Final[dict[str, Schedule]] = {
    schedule.name: schedule
    for schedule in (
        Schedule(
            "mma-simple", "global memory to registers, mma.sync, and back", emit_mma_simple,
            warpgroups=(1,), stages=(1, 1), has_maps=False, most_k_bytes=32, tile_n=32,
            shared_bytes=_none,
        ),
        Schedule(
            "mma-multistage", "a ring of cp.async stages, ldmatrix, mma.sync", emit_mma_multistage,
            warpgroups=(1,), stages=(3, 64), options=_FEW_ROWS, has_maps=False, most_k_bytes=64,
            tile_n=32, shared_bytes=shared_bytes,
        ),
        Schedule(
            "wgmma-simple", "one stage of TMA, wgmma, wait for all", emit_wgmma_simple,
            stages=(1, 1), options=_MAJORS | {"a_in_registers"},
        ),
        Schedule(
            "pipelined", "a ring of stages in one role, products of two stages in flight",
            emit_pipelined, options=_MAJORS,
        ),
        Schedule(
            "warp-specialized", "a producer warp feeds the consumer warpgroups",
            emit_warp_specialized, has_producer=True,
            options=_MAJORS | _CLUSTERS | {"persistent"},
        ),
        Schedule(
            "cooperative", "persistent; two consumer warpgroups share each tile",
            emit_cooperative, has_producer=True, warpgroups=(2,), fixed={"persistent": True},
            options=_MAJORS | _CLUSTERS,
        ),
        Schedule(
            "pingpong", "persistent; two consumer warpgroups take turns, epilogue under products",
            emit_pingpong, has_producer=True, warpgroups=(2,),
            fixed={"persistent": True, "takes_turns": True}, options=_MAJORS | _CLUSTERS,
        ),
        Schedule(
            "split-k", "several CTAs share the K of a tile and add up their sums", emit_split_k,
            has_producer=True, options=_MAJORS | {"splits", "reduction"},
        ),
        Schedule(
            "stream-k", "persistent; CTAs share all k-blocks evenly, and fix tiles up",
            emit_stream_k, has_producer=True, fixed={"persistent": True}, options=_MAJORS,
            has_workspace=True,
        ),
    )
}  # fmt: skip
"""In the order of the ladder."""


def _check_company(given: dict[str, Any]) -> None:
    """Refuse an option that says nothing without another one.

    Raises: LaunchError.
    """
    if "reduction" in given and "splits" not in given:
        raise LaunchError(
            f"reduction {given['reduction']} says how several CTAs add up a tile, and splits is 1",
            where="gemm",
            hint="leave reduction out, or 2 splits or more",
        )
    if "group_m" in given and given.get("order", "grouped") != "grouped":
        raise LaunchError(
            f"group_m is of the order grouped, and the order is {given['order']}",
            where="gemm",
            hint="leave group_m or order out",
        )


_OPTION_WORDS: Final = {"swizzle_mode": "swizzle"}
"""Options of a plan that `build` calls otherwise."""


def _takers(option: str) -> list[str]:
    """Return the schedules that take an option."""
    return [one.name for one in SCHEDULES.values() if option in one.options | frozenset(one.fixed)]


def _is_in(count: int, limits: tuple[int, int]) -> bool:
    return limits[0] <= count <= limits[1]


def _others(names: Iterable[str]) -> str:
    """Return what to try where a schedule does not take what is given; nothing where none does."""
    takers = list(names)
    return f"leave it out, or a schedule that takes it: {', '.join(takers)}" if takers else ""


def _told(value: Any) -> str:
    """Return the value of an option as one writes it on a command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "x".join(map(str, cast("tuple[int, ...]", value)))
    if isinstance(value, Swizzle):
        return "none" if value is Swizzle.NONE else f"{value.width_bytes}B"
    return str(value)


def schedule_named(name: str) -> Schedule:
    """Return the schedule called `name`.

    Raises: LaunchError: there is none.
    """
    found = SCHEDULES.get(name)
    if found is None:
        raise LaunchError(
            f"schedule must be one of {', '.join(SCHEDULES)}, got {name!r}", where="gemm"
        )
    return found
