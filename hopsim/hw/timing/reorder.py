"""The order that ptxas gives to the instructions of a straight run: a list schedule by the longest way to the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Final

from hopsim.isa.forms.bound import BoundInstruction

SHORTEST: Final = 4
"""Instructions; what is shorter stays as it is."""


def reordered(
    instructions: Sequence[BoundInstruction],
    has_head: bool,
    latency: Callable[[BoundInstruction], float],
    interval: Callable[[BoundInstruction], float],
    slots: Callable[[BoundInstruction], float],
    pipe: Callable[[BoundInstruction], str],
) -> list[BoundInstruction]:
    """Return instructions in an order in which they issue early.

    Operands decide what may go before what; the first stays where it is if it is a head, and so does a branch at the end.

    Args:
        has_head: whether the first is a head.
        latency: from the issue of an instruction to that of one that reads its result.
        interval: for which an instruction takes its pipe.
        slots: cycles in which nothing else issues.
        pipe: that an instruction takes.
    """
    begin = 1 if has_head else 0
    end = len(instructions)
    while end > begin and instructions[end - 1].form.unit in ("branch", "control"):
        end -= 1
    body = instructions[begin:end]
    if len(body) < SHORTEST:
        return list(instructions)
    after, waits = _dependences(body, latency)
    height = [0.0] * len(body)
    for number in range(len(body) - 1, -1, -1):
        least = interval(body[number])
        height[number] = max(
            [least, *(height[other] + cycles for other, cycles in after[number].items())]
        )
    earliest = [0.0] * len(body)
    pipes: dict[str, float] = {}
    # Not ready yet, by when they are; ready, by how far it is to the end.
    coming = [(0.0, number) for number in range(len(body)) if not waits[number]]
    ready: list[tuple[float, int]] = []
    order: list[BoundInstruction] = []
    now = 0.0
    while coming or ready:
        while coming and coming[0][0] <= now:
            _, number = heappop(coming)
            heappush(ready, (-height[number], number))
        blocked: list[tuple[float, int]] = []
        chosen = -1
        while ready:
            item = heappop(ready)
            if pipes.get(pipe(body[item[1]]), 0.0) <= now:
                chosen = item[1]
                break
            blocked.append(item)
        for item in blocked:
            heappush(ready, item)
        if chosen < 0:
            times = [pipes[pipe(body[number])] for _, number in ready]
            if coming:
                times.append(coming[0][0])
            now = max(now, min(times))
            continue
        one = body[chosen]
        order.append(one)
        pipes[pipe(one)] = now + interval(one)
        for other, cycles in after[chosen].items():
            earliest[other] = max(earliest[other], now + cycles)
            waits[other] -= 1
            if not waits[other]:
                heappush(coming, (earliest[other], other))
        now += slots(one)
    return [*instructions[:begin], *order, *instructions[end:]]


def _dependences(
    body: Sequence[BoundInstruction], latency: Callable[[BoundInstruction], float]
) -> tuple[list[dict[int, float]], list[int]]:
    """Return what must follow each instruction, how much later, and how many each one waits for."""
    after: list[dict[int, float]] = [{} for _ in body]
    waits = [0] * len(body)
    writer: dict[int, int] = {}
    readers: dict[int, list[int]] = {}

    def follow(first: int, number: int, cycles: float) -> None:
        if first == number:
            return
        known = after[first].get(number)
        if known is None:
            waits[number] += 1
        after[first][number] = max(cycles, known or 0.0)

    for number, one in enumerate(body):
        for register in one.reads:
            if register in writer:
                follow(writer[register], number, latency(body[writer[register]]))
            readers.setdefault(register, []).append(number)
        for register in one.writes:
            if register in writer:
                follow(writer[register], number, 1.0)
            for reader in readers.pop(register, ()):
                follow(reader, number, 0.0)
            writer[register] = number
    return after, waits


__all__ = ["reordered"]
