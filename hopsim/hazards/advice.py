"""What a finding says: one sentence, the missing edge, and the line to add."""

from __future__ import annotations

from collections.abc import Mapping

from hopsim.hazards import advice_texts as texts
from hopsim.hazards.misplaced import is_misplaced
from hopsim.hazards.records import Record, share_a_warp
from hopsim.hazards.rules import RULES
from hopsim.hazards.swaps import is_mixed
from hopsim.hazards.world import CtaState, scope_around


def refill(first: Record, second: Record, released: str) -> str:
    """Return how the readers of a slot hold up its next filling: by what their CTA has, and by who fills it.

    Args:
        released: where another thread of the readers' CTA lets it be filled, in words.
    """
    if released:
        return texts.ALL_READERS.format(a=first.line, released=released)
    if first.cta is second.cta:
        text = texts.BY_MBARRIER if first.cta.barriers else texts.BY_BARRIER
    else:
        text = texts.BY_REMOTE_MBARRIER
    return text.format(a=first.line, b=second.line)


def between(first: Record, second: Record) -> str:
    """Return how two accesses of threads are ordered: by where the threads are."""
    if first.cta is second.cta:
        text = texts.IN_CTA
    else:
        text = texts.IN_CLUSTER if first.cta.cluster == second.cta.cluster else texts.IN_GRID
    write, read = (second, first) if first.kind == "r" else (first, second)
    return text.format(a=first.line, b=second.line, write=write.line, read=read.line)


def rejoin(first: Record, second: Record) -> str:
    """Return what holds up the next write of bytes until they are read."""
    if first.cta is not second.cta:
        return between(first, second)
    cta: CtaState = first.cta
    some = bool(cta.barriers) or any(cta.numbers)
    return f"before :{second.line}:  bar.sync 0;" + (
        texts.OF_SOME.format(a=first.line) if some else ""
    )


def mix(first: Record, second: Record, between: str) -> str:
    """Return how a plain access and a strong one are kept from racing."""
    weak, strong = (second, first) if first.scope else (first, second)
    return texts.MIXED.format(
        weak=weak.line, strong=strong.line, mended="ld" if weak.kind == "r" else "st", scope=strong.scope, between=between
    )  # fmt: skip


def meet(cta: CtaState, other: CtaState) -> str:
    """Return what lets threads of one CTA know what those of another, or of the same, do."""
    if cta is other:
        return "bar.sync 0;" + (texts.BY_ISSUER if cta.barriers else "")
    if cta.cluster == other.cluster:
        return "barrier.cluster.arrive;  barrier.cluster.wait;"
    return "release and acquire through a flag of .gpu scope"


def left_pending(first: Record) -> str:
    """Return which wait left the group of a store pending, and what would cover it; empty: none did."""
    if first.flight is None or first.flight.left_by is None:
        return ""
    line, enough = first.flight.left_by
    return texts.OR_COVER.format(a=first.line, wait=line, enough=enough)


def settle(first: Record, second: Record) -> str:
    """Return how an operation is waited for: by what tells that it is complete, and by who must know."""
    flight = first.flight
    if flight is None:
        return ""
    cta: CtaState = first.cta
    if flight.tracked != "bulk":
        text = texts.TOLD_BY_MBARRIER
        cta = flight.aims[0][0].owner if flight.aims else cta
    elif first.kind != "r":
        text = texts.DRAINED if first.cta is second.cta else texts.DRAINED_APART
    else:
        alone = [part[::2] for part in second.parts] == [part[::2] for part in flight.parts]
        text = texts.SOURCE_FREE_HERE if alone else texts.SOURCE_FREE
    return text.format(a=first.line, b=second.line, meet=meet(cta, second.cta))


def advise(
    rule: str, first: Record, second: Record, places: Mapping[str, str]
) -> tuple[str, str, str]:
    """Return (message, missing edge, hint) of a race.

    Args:
        places: what else the texts name: `space`, `release`, `expect`; `fences` of too narrow a scope and their `kind`, or
            those that are `acq_rel` and no fence.sc, and the `scope` they need; where one is `elected` to go on for its CTA;
            what a plain access is to a `swap`; an `arrive` that the first one stands behind; where a flag that carries
            nothing (`is_weak`) or too little is `sent` and `seen`, and the fence in `cuda`; the mbarrier that announces it
            `instead` of a barrier; where another thread of the CTA has `learned` of the first access, and which `barrier`
            tells the second; the arrive by which a slot was `released`; that two slots are not kept `apart`.
    """
    missing, hint = texts.ADVICE.get(rule, texts.NO_ADVICE)
    if rule == "HS217" and "fences" in places:
        missing, hint = texts.NARROW_FENCE
    if rule == "HS308" and places.get("lacking"):
        missing, hint = texts.HALF_MAP[places["lacking"]]
    if rule == "HS216" and "sent" in places:
        if not places["is_weak"]:
            missing, hint = texts.BEHIND_FENCE
        elif places["is_released"]:
            missing, hint = texts.TAKE_UP
        else:
            missing, hint = texts.CARRY if places["sent"] != places["seen"] else texts.CARRY_ON
    if rule == "HS500" and "acq_rel" in places:
        missing, hint = texts.SC_FENCES
    if rule == "HS500" and "arrive" in places:
        missing, hint = texts.LATE
    elif rule == "HS500" and "elected" in places:
        missing, hint = texts.FOR_ALL
    elif rule == "HS500" and "learned" in places:
        missing, hint = texts.HAND_ON
    elif rule in texts.BY_THREADS and first.line == second.line:
        hint = texts.ONE_LINE if first.cta is second.cta else texts.ONE_LINE_APART
    if rule == "HS500" and places.get("swap"):
        missing, hint = texts.GUESS if places["swap"] == "guess" else texts.GIVE_BACK
    elif rule in texts.BY_THREADS and is_mixed(first, second):
        hint = mix(first, second, hint)
    if rule == "HS207" and first.flight is not None and first.flight.tracked == "bulk":
        hint = texts.ONE_STORE
    if rule == "HS016" and is_misplaced(first, second):
        hint = texts.ONE_SLOT
    if rule == "HS502" and first.scope and second.scope:
        hint = texts.IN_STEP
    left = None if first.flight is None else first.flight.left_at
    open_at = None if first.flight is None else first.flight.left_open
    if rule == "HS017" and open_at is not None:
        hint = texts.UNCOMMITTED.format(copied=open_at[0], wait=open_at[1])
    elif rule == "HS017" and left is not None:
        hint = texts.LEFT_PENDING.format(a=first.line, wait=left[0], enough=left[1])
    elif rule == "HS017" and not share_a_warp(first, second):
        hint = texts.COPIED_BY_OTHERS
    elif rule == "HS017" and first.flight is not None and first.flight.group is not None:
        hint = texts.UNAWAITED
    plain, strong = (second, first) if first.scope else (first, second)
    facts = {
        "weak": plain.line, "strong": strong.line, "wide": strong.scope, "scope": scope_around(first.cta, second.cta),
        "a": first.line, "b": second.line,
        "refill": refill(first, second, places.get("released", "")) + places.get("apart", ""),
        "between": between(first, second) + places.get("instead", ""), "left": left_pending(first),
        "rejoin": rejoin(first, second),
        "settle": settle(first, second), "meet": meet(first.cta, second.cta),
        "barrier": texts.BY_THREADS.get(rule, ""), **places,
    }  # fmt: skip
    return RULES[rule].sentence, missing.format(**facts), hint.format(**facts)
