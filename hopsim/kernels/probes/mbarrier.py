"""Probes of mbarriers by one thread: pending counts, phases and tx-counts, step by step.

State words and the barrier's own 64 bits are opaque in PTX: they are recorded as notes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.ptx.text import Param, PtxEntry, Reg, address, module_text

SYMBOL = "shared_memory"


class _Story:
    """A sequence of mbarrier operations by one thread, with what it finds out on the way."""

    def __init__(self, k: PtxEntry, shared: Reg, facts: Reg, words: Reg) -> None:
        self.k = k
        self.bar = address(shared)
        self._facts = facts
        self._words = words
        self.labels: list[str] = []
        self.word_labels: list[str] = []

    def fact(self, label: str, value: Reg) -> None:
        self.k.emit("st.global.b32", address(self._facts, 4 * len(self.labels)), value)
        self.labels.append(label)

    def word(self, label: str, value: Reg) -> None:
        self.k.emit("st.global.b64", address(self._words, 8 * len(self.word_labels)), value)
        self.word_labels.append(label)

    def look(self, label: str) -> None:
        self.word(f"{label}: barrier", self.k.let(".b64", "bits", "ld.shared.b64", self.bar))

    def init(self, count: int) -> None:
        self.k.comment(f"count {count}")
        self.k.emit("mbarrier.init.shared::cta.b64", self.bar, count)
        self.look(f"init {count}")

    def arrive(self, label: str, suffix: str = "", *operands: int, word: str = "arrive") -> Reg:
        state = self.k.let(
            ".b64", "state", f"mbarrier.{word}{suffix}.shared::cta.b64", self.bar, *operands
        )
        pending = self.k.let(".b32", "pending", "mbarrier.pending_count.b64", state)
        self.fact(f"{label}: pending count of the state", pending)
        self.word(f"{label}: state", state)
        self.look(label)
        return state

    def transaction(self, what: str, count: int) -> None:
        self.k.emit(f"mbarrier.{what}.relaxed.cta.shared::cta.b64", self.bar, count)
        self.look(f"{what} {count}")

    def _flag(self, label: str, mnemonic: str, operand: Reg | int) -> None:
        done = self.k.let(".pred", "done", mnemonic, self.bar, operand)
        self.fact(label, self.k.let(".b32", "flag", "selp.b32", 1, 0, done))

    def test(self, label: str, state: Reg) -> None:
        self._flag(f"{label}: test_wait of the state", "mbarrier.test_wait.shared::cta.b64", state)

    def parities(self, label: str) -> None:
        for parity in (0, 1):
            self._flag(
                f"{label}: test_wait.parity {parity}",
                "mbarrier.test_wait.parity.shared::cta.b64",
                parity,
            )

    def end(self) -> None:
        self.k.emit("mbarrier.inval.shared::cta.b64", self.bar)


def _phases(s: _Story) -> None:
    s.init(3)
    s.parities("fresh")
    first = s.arrive("first of 3")
    s.test("first of 3", first)
    second = s.arrive("second of 3")
    third = s.arrive("third of 3")
    for name, state in (("first", first), ("second", second), ("third", third)):
        s.test(f"phase over, {name}", state)
    s.parities("one phase over")
    fourth = s.arrive("first of the next phase")
    s.test("next phase", fourth)
    s.test("next phase, state of the phase before", first)
    s.arrive("two at once", "", 2)
    s.parities("two phases over")
    s.test("two phases over, state of the second", fourth)
    s.test("two phases over, state of the first", first)
    s.end()


def _counts(s: _Story) -> None:
    s.init(5)
    s.arrive("three at once", "", 3)
    s.arrive("without completion", ".noComplete.release.cta", 1)
    s.arrive("last")
    s.parities("over")
    s.arrive("drop", word="arrive_drop")
    s.arrive("four of four left", "", 4)
    s.parities("after a drop")
    s.arrive("count is 4 now", "", 4)
    s.parities("four arrivals are a phase")
    s.end()


def _bytes(s: _Story) -> None:
    s.init(1)
    s.transaction("expect_tx", 64)
    s.arrive("bytes missing")
    s.parities("bytes missing")
    s.transaction("complete_tx", 48)
    s.parities("16 bytes missing")
    s.transaction("complete_tx", 16)
    s.parities("no byte missing")
    s.arrive("with expect_tx", ".expect_tx.release.cta", 32)
    s.parities("32 bytes missing")
    s.transaction("complete_tx", 32)
    s.parities("second phase over")
    s.end()


def _negative(s: _Story) -> None:
    s.init(1)
    s.transaction("complete_tx", 32)
    s.parities("bytes came first")
    state = s.arrive("arrival before the expectation")
    s.test("tx-count is negative", state)
    s.parities("tx-count is negative")
    s.transaction("expect_tx", 32)
    s.parities("expectation came last")
    s.end()


def _negative_arrival(s: _Story) -> None:
    s.init(1)
    s.transaction("complete_tx", 16)
    s.arrive("expectation with the arrival", ".expect_tx.release.cta", 16)
    s.parities("bytes, then all else")
    s.end()


def _limits(s: _Story) -> None:
    s.init(2)
    s.transaction("expect_tx", (1 << 20) - 1)
    s.arrive("largest tx-count")
    s.transaction("complete_tx", (1 << 20) - 1)
    s.arrive("last")
    s.parities("over")
    s.end()
    s.init((1 << 20) - 1)
    s.arrive("largest count")
    s.arrive("all the rest", "", (1 << 20) - 2)
    s.parities("largest count over")
    s.end()


STORIES: tuple[Callable[[_Story], None], ...] = (
    _phases,
    _counts,
    _bytes,
    _negative,
    _negative_arrival,
    _limits,
)


def probes() -> list[Probe]:
    """Return one probe for each story."""
    made: list[Probe] = []
    for tell in STORIES:
        name = tell.__name__.strip("_")
        k = PtxEntry(name, [Param("facts", ".u64"), Param("words", ".u64")], [])
        shared = k.let(".b32", "shared", "mov.u32", SYMBOL)
        facts = k.let(".b64", "facts", "ld.param.u64", "[facts]")
        words = k.let(".b64", "words", "ld.param.u64", "[words]")
        story = _Story(k, shared, facts, words)
        tell(story)
        k.emit("ret")
        made.append(
            Probe(
                f"mbarrier.{name}",
                module_text(k, SYMBOL),
                name,
                grid=1,
                block=1,
                inputs={},
                outputs={
                    "facts": ((len(story.labels),), np.uint32),
                    "words": ((len(story.word_labels),), np.uint64),
                },
                shared_bytes=64,
                labels={"facts": tuple(story.labels), "words": tuple(story.word_labels)},
                notes=frozenset({"words"}),
            )
        )
    return made
