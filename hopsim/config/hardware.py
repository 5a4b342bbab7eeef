"""What a configuration holds: the groups of numbers, a fact for each, and which key of a file fills which attribute."""

from __future__ import annotations

import types
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ConfigDict, Field

from hopsim.config import groups, memory
from hopsim.config.quantities import Group, Unit


@dataclass(frozen=True, slots=True)
class Fact:
    """One value of a configuration and where it comes from.

    Args:
        key: as in the file, for example `dram.bandwidth` or `issue.latency.alu`.
        text: the value as written.
        value: the number that the simulation reads.
        unit: the unit of `value`, for example `cycles`; empty for counts and names.
        source: the measurement or document, or for a guess its reason.
        guess: nobody has measured it.
        origin: the file it was read from, or `override`.
    """

    key: str
    text: str | int | float | tuple[str | int | float, ...]
    value: Any = field(hash=False)
    unit: str
    source: str
    guess: bool
    origin: str


class HardwareConfig(Group):
    """One GPU as timing models and launch checks see it: plain numbers, and a fact for each."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    device: groups.Device
    clock: groups.Clock
    issue: groups.Issue
    smem: groups.Smem
    tensor: groups.Tensor
    mma_sync: groups.MmaSync
    tma: groups.Tma
    mbarrier: groups.Mbarrier
    barrier: groups.Barrier
    fence: groups.Fence
    l1: memory.L1
    l2: memory.L2
    dram: memory.Dram
    dsmem: memory.Dsmem
    launch: groups.Launch
    cp_async: groups.CpAsync
    facts: tuple[Fact, ...] = Field(repr=False)


@dataclass(frozen=True, slots=True)
class Place:
    """A key of the file and the attribute it fills."""

    group: str
    attribute: str
    unit: Unit | None  # None: a name
    entry: str = ""  # which one of a table


def _places() -> dict[str, Place]:
    places: dict[str, Place] = {}
    for group, info in HardwareConfig.model_fields.items():
        kind = info.annotation
        if not (isinstance(kind, type) and issubclass(kind, Group)):
            continue
        for attribute, spec in kind.model_fields.items():
            unit = next((item for item in spec.metadata if isinstance(item, Unit)), None)
            key = f"{group}.{attribute.removesuffix(unit.ending) if unit else attribute}"
            if unit and unit.many == "table":
                places |= {
                    f"{key}.{name}": Place(group, attribute, unit, name) for name in unit.names
                }
            else:
                places[key] = Place(group, attribute, unit)
    return places


PLACES: Final = types.MappingProxyType(_places())


__all__ = ["PLACES", "Fact", "HardwareConfig", "Place"]
