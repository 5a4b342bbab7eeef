"""A lesson: something to read, a broken program to mend, hints, and what to take away."""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.zoo.catalog import twin_named
from hopsim.zoo.twin import Twin


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson.

    Args:
        name: of the lesson, and of its program file.
        title: what it is about.
        twin: name of the zoo's pair: the bad program is handed out, the good one is a solution.
        text: paragraphs to read first.
        picture: of the timeline, a few lines of text.
        task: what to mend.
        keeps: opcodes that the mended program must still have.
        hints: from vague to plain.
        after: what to take away, told when it is done.
    """

    name: str
    title: str
    twin: str
    text: str
    picture: str
    task: str
    keeps: tuple[str, ...]
    hints: tuple[str, ...]
    after: str

    @property
    def pair(self) -> Twin:
        """The broken program and a solution."""
        return twin_named(self.twin)

    @property
    def program(self) -> str:
        """The broken program."""
        return f"// hopsim learn {self.name}: {self.title}\n// {self.task}\n{self.pair.ptx(is_good=False)}"
