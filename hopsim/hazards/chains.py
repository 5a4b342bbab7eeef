"""The edges that exist between two accesses, searched backwards through what each warp learned, when a finding asks."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from hopsim.hazards.clocks import Agent
from hopsim.hazards.objects import Source
from hopsim.hazards.world import includes, scope_around

MOST_STEPS = 4096
# First letter of an edge that its receiver takes without acquiring, or with a scope of its own CTA or cluster.
RELAXED, NARROW, CLUSTERED = "~", "<", "{"
SCOPES: Final = {NARROW: "cta", CLUSTERED: "cluster"}
# Why an edge does not count whose receiver its scope does not hold.
TOO_NARROW: Final = frozenset(f"{scope} scope" for scope in SCOPES.values())
LONGEST = 8
# What ends an epoch where a fence of threads does (`flags`).
FENCE: Final = "fence"


@dataclass(frozen=True, slots=True)
class Chain:
    """Edges from one agent to another, oldest first, in words.

    `weak` lists why some of them do not count; `lines` are the PTX lines of those, or of all; `fences` are fences whose
    scope is too narrow, as (PTX line, scope it takes); `epoch` is that in which the first edge begins; `is_released`:
    only the reading sides of those that do not count lack something.
    """

    steps: tuple[str, ...]
    weak: tuple[str, ...]
    lines: tuple[int, ...]
    fences: tuple[tuple[int, str], ...]
    epoch: int
    is_released: bool


@dataclass(frozen=True, slots=True)
class _Step:
    what: str
    from_line: int
    to_line: int
    label: str
    fences: tuple[tuple[int, str], ...]
    epoch: int
    is_released: bool


def find_chain(start: Agent, epoch: int, end: Agent, until: int, weak: bool) -> Chain | None:
    """Return the shortest chain of edges from what `start` did in `epoch` to `end` in its epoch `until`.

    Args:
        weak: whether edges that do not count (relaxed, too narrow, a copy's completion) may be part of it.
    """
    queue: deque[tuple[Agent, int, tuple[_Step, ...]]] = deque([(end, until, ())])
    reached = {end: until}
    for _ in range(MOST_STEPS):
        if not queue:
            return None
        agent, limit, path = queue.popleft()
        for at, _, line, what, node in reversed(agent.log):
            if at > limit or node is None:
                continue
            for source in node.sources():
                step = _step(source, what, line, agent)
                if step.label and not weak:
                    continue
                if source.agent is start and source.epoch >= epoch:
                    return _told((step, *path))
                if reached.get(source.agent, -1) >= source.epoch or len(path) >= LONGEST:
                    continue
                reached[source.agent] = source.epoch
                queue.append((source.agent, source.epoch, (step, *path)))
    return None


def fences_between(start: Agent, epoch: int, end: Agent) -> tuple[int, int] | None:
    """Return the PTX lines of a fence of `start` after its `epoch` and of one of `end` to which edges lead from there."""
    behind = next((at for at, (kind, _) in reversed(end.epochs.items()) if kind == FENCE), None)
    before = next(
        (at for at, (kind, _) in start.epochs.items() if kind == FENCE and at >= epoch), None
    )
    if behind is None or before is None:
        return None
    if find_chain(start, before + 1, end, behind, False) is None:
        return None
    return start.epochs[before][1], end.epochs[behind][1]


def told_by_another(agent: Agent, end: Agent) -> int:
    """Return the PTX line at which another warp of an agent's CTA tells one of another CTA; 0: none does."""
    if agent.cta is end.cta:
        return 0
    mine = find_chain(agent, 1, end, end.now, True)
    for other in agent.cta.agents:
        chain = None if other is agent else find_chain(other, 1, end, end.now, True)
        # Behind a barrier of its CTA it would have told of the agent too; where the agent tells of itself, all do.
        if (
            chain is not None
            and {*chain.weak} <= {"relaxed"}
            and not chain.steps[0].startswith("bar ")
            and (mine is None or chain.lines[0] != mine.lines[0])
        ):
            return chain.lines[0]
    return 0


def _step(source: Source, what: str, line: int, reader: Agent) -> _Step:
    """Return an edge into a warp, and why it does not count, if so."""
    label = source.weak or ("relaxed" if what[0] == RELAXED else "")
    fences: list[int] = []
    name = what.lstrip(RELAXED + NARROW + CLUSTERED)
    one, other = source.agent.cta, reader.cta
    if not label:
        if source.fence is not None and not includes(source.fence[0], one, other):
            label = f"{source.fence[0]} scope"
            fences.append(source.fence[1])
        scope = SCOPES.get(what[0], "")
        if not includes(scope, one, other):
            label = label or f"{scope} scope"
            if name == "fence":
                fences.append(line)
    needed = scope_around(one, other)
    narrow = tuple((at, needed) for at in fences)
    return _Step(name, source.line, line, label, narrow, source.epoch, not source.weak)


def _told(path: tuple[_Step, ...]) -> Chain:
    steps: list[str] = []
    for step in path:
        place = f":{step.to_line}"
        if step.from_line not in (step.to_line, 0):
            place = f":{step.from_line} to {place}"
        label = f", {step.label}" if step.label else ""
        if step.fences:
            label += " of " + " and ".join(f":{line}" for line, _ in step.fences)
        steps.append(f"{step.what} ({place}{label})")
    weak = tuple(step.label for step in path if step.label)
    lines = tuple(
        line for step in path if step.label or not weak for line in (step.from_line, step.to_line)
    )
    fences = tuple(fence for step in path for fence in step.fences)
    is_released = all(step.is_released for step in path)
    return Chain(tuple(steps), weak, lines, fences, path[0].epoch, is_released)
