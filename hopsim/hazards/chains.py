"""The edges that exist between two accesses, searched backwards through what each warp learned, when a finding asks."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from hopsim.hazards.clocks import Agent

MOST_STEPS = 4096
# First letter of an edge that its receiver takes without acquiring, or with a scope of its own CTA.
RELAXED, NARROW = "~", "<"
LONGEST = 8


@dataclass(frozen=True, slots=True)
class Chain:
    """Edges from one agent to another, oldest first, in words.

    `weak` lists why some of them do not count; `lines` are the PTX lines of those, or of all.
    """

    steps: tuple[str, ...]
    weak: tuple[str, ...]
    lines: tuple[int, ...]


def find_chain(start: Agent, epoch: int, end: Agent, until: int, weak: bool) -> Chain | None:
    """Return the shortest chain of edges from what `start` did in `epoch` to `end` in its epoch `until`.

    Args:
        weak: whether edges that do not count (relaxed, too narrow, a copy's completion) may be part of it.
    """
    queue: deque[tuple[Agent, int, tuple[tuple[str, int, int, str], ...]]] = deque(
        [(end, until, ())]
    )
    reached = {end: until}
    for _ in range(MOST_STEPS):
        if not queue:
            return None
        agent, limit, path = queue.popleft()
        for at, _, line, what, node in reversed(agent.log):
            if at > limit or node is None:
                continue
            for source in node.sources():
                label = source.weak
                if not label and what[0] == RELAXED:
                    label = "relaxed"
                elif not label and what[0] == NARROW and source.agent.cta is not agent.cta:
                    label = "cta scope"
                if label and not weak:
                    continue
                step = (what.lstrip(RELAXED + NARROW), source.line, line, label)
                if source.agent is start and source.epoch >= epoch:
                    return _told((step, *path))
                if reached.get(source.agent, -1) >= source.epoch or len(path) >= LONGEST:
                    continue
                reached[source.agent] = source.epoch
                queue.append((source.agent, source.epoch, (step, *path)))
    return None


def _told(path: tuple[tuple[str, int, int, str], ...]) -> Chain:
    steps: list[str] = []
    for what, from_line, to_line, label in path:
        place = f":{to_line}" if from_line in (to_line, 0) else f":{from_line} to :{to_line}"
        steps.append(f"{what} ({place}{', ' + label if label else ''})")
    weak = tuple(label for *_, label in path if label)
    lines = tuple(line for _, *places, label in path if label or not weak for line in places)
    return Chain(tuple(steps), weak, lines)
