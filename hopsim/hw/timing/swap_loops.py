"""Atomics of which ptxas makes a loop on shared memory: load the word, compute, swap if it is still the same.

Of lanes and warps that meet at a word one succeeds at a time: the lanes of a warp one each turn, those of other warps as
soon as they have loaded what the last one left.  In the shared memory of another CTA a turn is two trips there and back.

Source: machine code of ptxas 13.0 (LDS, FADD, ATOMS.CAST.SPIN; for an address in the window of a cluster first ATOM, which
does nothing, and QSPC, which asks where it points; LD, FADD, ATOM.CAST.SPIN if that is another CTA); hopsim's recordings on
an H100 SXM (tests/silicon/micro.json): swaps_*.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopsim.config.groups import Smem
from hopsim.config.memory import Dsmem
from hopsim.hw.machine.access_notes import AccessNote, first_of
from hopsim.hw.machine.memory import RANK_SHIFT
from hopsim.hw.machine.thread_groups import WARP
from hopsim.hw.timing.actor import Actor
from hopsim.isa.forms.bound import BoundInstruction

TURN: Final = 5
"""Machine instructions of a turn."""
WORDS_KEPT: Final = 4096
WIDE: Final = 8
"""Bytes of a word that takes longer."""
FLOATS: Final = ("f32", "f64", "f16", "f16x2", "bf16", "bf16x2")
ANYWHERE: Final = ("f32", "f64", "f16", "bf16")
"""Floats whose sums are such a loop in other CTAs too."""
WIDE_INTEGERS: Final = ("u64", "s64", "b64")
NATIVE: Final = ("exch", "cas")
"""Done as they are for 64 bits too."""


class SwapLoop(NamedTuple):
    """What is known of the loop before it runs.

    Args:
        looks: whether the machine finds out first where the address points.
        reaches: whether it is a loop in the shared memory of other CTAs too.
    """

    looks: bool
    reaches: bool


def swap_loop(bound: BoundInstruction) -> SwapLoop | None:
    """Return the loop that an atomic is if it turns out to be one on shared memory; None if it never is."""
    if bound.form.unit != "atomic":
        return None
    slots = dict(bound.slots)
    kind, operation = slots.get("t", ""), slots.get("op", "")
    opcode = bound.instruction.opcode
    if "global" in opcode:
        return None
    is_own = "shared" in opcode or "shared::cta" in opcode
    if kind in FLOATS and operation == "add":
        return SwapLoop(not is_own, kind in ANYWHERE)
    if kind in WIDE_INTEGERS and operation not in NATIVE and is_own:
        return SwapLoop(looks=False, reaches=False)
    return None


class Turns(NamedTuple):
    """What became of a loop: when the last lane has succeeded (SM cycles), and machine instructions of all warps."""

    end: float
    instructions: int


class SwapLoops:
    """Lets lanes meet at words of shared memory.

    Args:
        own: how long turns take in the shared memory of an SM.
        other: and in that of another one.
    """

    def __init__(self, own: Smem, other: Dsmem) -> None:
        self._own = own
        self._other = other
        # When the last lane has succeeded, by CTA and word.
        self._free: dict[tuple[int, int], float] = {}

    def run(self, actor: Actor, note: AccessNote, loop: SwapLoop, time: float) -> Turns:
        """Run a loop until all lanes have succeeded.

        Args:
            note: the access, all of whose lanes point into the shared memory of one CTA.
            time: when it begins.
        """
        own = self._own
        if note.remote:
            turn = gap = float(self._other.swap_cycles)
        else:
            wide = note.count_bytes >= WIDE
            turn = float(own.swap_64_cycles if wide else own.swap_cycles)
            gap = float(own.swap_gap_cycles)
        start = time + own.swap_look_cycles if loop.looks else time
        cta = actor.strand.cta
        rank = first_of(note.addresses) >> RANK_SHIFT
        owner = cta.cluster.ctas[rank].index if note.remote else cta.index
        words, lanes, most = _meetings(note, actor)
        end = start + most * turn
        free = self._free
        if len(free) > WORDS_KEPT:
            self._free = free = {key: until for key, until in free.items() if until > time}
        for word, count in zip(words, lanes, strict=True):
            # The first one succeeds after a turn at best.
            begin = max(free.get((owner, word), 0.0), start + turn - gap)
            free[owner, word] = begin + count * gap
            end = max(end, begin + count * gap)
        warps = len(actor.strand.warps)
        return Turns(end, round(TURN * warps * (end - start) / turn))


def _meetings(note: AccessNote, actor: Actor) -> tuple[list[int], list[int], int]:
    """Return the words, how many lanes meet at each, and how many of one warp at most."""
    strand = actor.strand
    warps: NDArray[Any] = (
        strand.tids if len(strand.tids) == note.lanes else np.arange(note.lanes)
    ) // WARP
    if isinstance(note.addresses, int):
        return [note.addresses], [note.lanes], int(np.bincount(warps - warps[0]).max())
    words, index, lanes = np.unique(
        note.addresses.astype(np.int64), return_inverse=True, return_counts=True
    )
    _, of_warps = np.unique(warps.astype(np.int64) * len(words) + index, return_counts=True)
    return words.tolist(), lanes.tolist(), int(of_warps.max())


__all__ = ["SwapLoop", "SwapLoops", "swap_loop"]
