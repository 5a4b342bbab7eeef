"""All twins, and the way to one by its name."""

from __future__ import annotations

import difflib
from typing import Final

from hopsim.errors import ConfigError
from hopsim.zoo.barrier_life import BARRIER_LIFE
from hopsim.zoo.bulk import BULK
from hopsim.zoo.clusters import CLUSTERS
from hopsim.zoo.maps import MAPS
from hopsim.zoo.mbarriers import MBARRIERS
from hopsim.zoo.proxies import PROXIES
from hopsim.zoo.resources import RESOURCES
from hopsim.zoo.threads import THREADS
from hopsim.zoo.twin import Twin
from hopsim.zoo.waiting import WAITING
from hopsim.zoo.wgmma import WGMMA

ROOMS: Final[dict[str, tuple[Twin, ...]]] = {
    "waiting": WAITING,
    "wgmma": WGMMA,
    "proxies": PROXIES,
    "mbarriers": MBARRIERS,
    "barrier life": BARRIER_LIFE,
    "bulk": BULK,
    "tensor maps": MAPS,
    "clusters": CLUSTERS,
    "threads": THREADS,
    "resources": RESOURCES,
}
TWINS: Final = tuple(twin for room in ROOMS.values() for twin in room)
_BY_NAME: Final = {twin.name: twin for twin in TWINS}


def twin_named(name: str) -> Twin:
    """Return a twin.

    Raises: ConfigError: there is none of that name.
    """
    found = _BY_NAME.get(name)
    if found is None:
        near = [other for other in _BY_NAME if name in other or other in name]
        near = near or difflib.get_close_matches(name, _BY_NAME, n=3)
        raise ConfigError(
            f"there is no twin {name!r} in the zoo",
            hint=f"{', '.join(near)}" if near else "hopsim zoo list",
        )
    return found


def twins_of(rule: str) -> list[Twin]:
    """Return the twins of a rule, those that hopsim reports first."""
    return sorted((twin for twin in TWINS if twin.rule == rule), key=lambda twin: bool(twin.missed))
