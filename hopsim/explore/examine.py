"""`examine`: check a case by the memory model on one run, then look for legal orders that change its bits.

checked = examine(case, seeds=64, processes=2)
checked.result.hazards, checked.schedules.differing
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from hopsim.explore.case import Arguments, Case, digests
from hopsim.explore.minimise import TRIES, Minimal, minimise
from hopsim.explore.sweep import (
    IN_ORDER,
    STEPS_MAX,
    Ending,
    Hardware,
    Order,
    orders,
    plan_of,
    run,
    sweep,
)
from hopsim.hazards.facts import CheckOptions
from hopsim.isa.program.kernel import Kernel
from hopsim.launch.arrays import DeviceArray
from hopsim.results import LaunchResult
from hopsim.runtime.gpu import Gpu

Bits = NDArray[Any]
# So many orders are judged, each in the time of a run or a few, beside the one in order.
JUDGED_MAX = 4


@dataclass(frozen=True)
class Schedules:
    """What the orders of a sweep did.

    Args:
        endings: of each order.  baseline: of the run in order.
        shown: the first order that ends otherwise, if any.
        changed: its arrays with other bits: name to (bits of that order, bits of the run in order).
        minimal: the few decisions of it that matter.
    """

    endings: Sequence[Ending]
    baseline: Ending
    shown: Order | None = None
    changed: Mapping[str, tuple[Bits, Bits]] = field(default_factory=dict[str, tuple[Bits, Bits]])
    minimal: Minimal | None = None

    @property
    def differing(self) -> list[Ending]:
        """The orders that end otherwise than the run in order."""
        return [one for one in self.endings if one.differs(self.baseline)]


@dataclass(frozen=True, slots=True)
class Checked:
    """The checked run, and the sweep over other orders.

    The run is that in order; or, where that is clean, the first that is not of a few others: one that ends otherwise, and
    those in which CTAs take other paths.
    `arrays` are those of that run, as it left them.
    """

    result: LaunchResult
    schedules: Schedules
    arrays: Mapping[str, DeviceArray]


def check_once(
    case: Case,
    kernel: Kernel,
    order: Order = IN_ORDER,
    options: CheckOptions | None = None,
    hardware: Hardware | None = None,
    max_steps: int = STEPS_MAX,
) -> tuple[LaunchResult, Arguments]:
    """Run a case once with the hazard checker, under the in-order schedule for at most so many steps."""
    machine = hardware or Hardware()
    if order != IN_ORDER:
        done = run(case, kernel, plan_of(order), order, machine, check=options or True)
        assert done.result is not None, "a checked run reports faults as findings"
        return done.result, done.made
    gpu = Gpu(machine.name, machine.overrides)
    made = case.arguments(gpu)
    result = gpu.launch(
        kernel, case.grid, case.block, case.cluster, made.args, case.shared_bytes,
        schedule="in-order", check=options or CheckOptions(), numerics=machine.numerics, max_cycles=max_steps,
    )  # fmt: skip
    return result, made


def examine(
    case: Case,
    *,
    kernel: Kernel | None = None,
    hardware: Hardware | None = None,
    options: CheckOptions | None = None,
    seeds: int = 16,
    only: Order | None = None,
    processes: int = 1,
    tries: int = TRIES,
) -> Checked:
    """Check a case, and try other orders.

    Args:
        kernel: the case's, where the caller has made it.
        options: how contested rules are read.
        seeds: seeded orders to try, beside the adversarial one; 0 tries none.
        only: check under this order, and compare it alone with the run in order.
        processes: for the orders.
        tries: runs spent on making the first order that differs small; 0 leaves it as it is.
    Raises: NotModelled, LaunchError.
    """
    made = kernel or case.kernel()
    machine = hardware or Hardware()
    result, left = check_once(case, made, only or IN_ORDER, options, machine)
    wanted = [only] if only is not None else orders(seeds) if seeds else []
    in_order = run(case, made, plan_of(IN_ORDER), IN_ORDER, machine)
    baseline = in_order.ending
    if baseline.ended == "cap":
        # It does not end in order, and nothing can be learned from how long others do not.
        return Checked(result, Schedules([], baseline), left.arrays)
    endings = sweep(case, wanted, machine, kernel=made, processes=processes, limit=in_order.limit)
    shown = next((one.order for one in endings if one.differs(baseline)), None)
    if result.verdict == "clean" and only is None:
        for order in _to_judge(baseline, endings):
            # What a flag or an atomic had in order was right by luck: another order breaks the rule for all to see.
            again, other = check_once(case, made, order, options, machine)
            if again.verdict in ("hazard", "deadlock"):
                result, left = again, other
                break
    if shown is None:
        return Checked(result, Schedules(endings, baseline), left.arrays)
    if next(one.ended for one in endings if one.order == shown) == "cap":
        return Checked(result, Schedules(endings, baseline, shown), left.arrays)
    changed = _changed(case, made, shown, machine)
    minimal = minimise(case, made, shown, baseline, machine, tries) if tries else None
    return Checked(result, Schedules(endings, baseline, shown, changed, minimal), left.arrays)


def _to_judge(baseline: Ending, endings: Sequence[Ending]) -> list[Order]:
    """Return the orders to judge beside the run in order: the first that ends otherwise, and a few with other steps."""
    chosen = [one for one in endings if one.differs(baseline) and one.ended != "cap"][:1]
    known = baseline.reached.union(*(one.reached for one in chosen))
    for one in endings:
        if len(chosen) < JUDGED_MAX and one.ended != "cap" and not one.reached <= known:
            chosen.append(one)
            known |= one.reached
    return [one.order for one in chosen]


def _changed(
    case: Case, kernel: Kernel, shown: Order, machine: Hardware
) -> dict[str, tuple[Bits, Bits]]:
    expected = run(case, kernel, plan_of(IN_ORDER), IN_ORDER, machine).made
    got = run(case, kernel, plan_of(shown), shown, machine).made
    before, after = digests(expected.arrays), digests(got.arrays)
    return {
        name: (got.arrays[name].numpy(), expected.arrays[name].numpy())
        for name in before
        if before[name] != after[name]
    }
