"""CC.CF belongs to the thread: chains with a carry whose lanes part ways, meet again and skip links by a guard."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.machine.programs import ADVERSARIAL, IN_ORDER, TIMED, expect

THREADS = 64
MASK = 0xFFFFFFFF
OPCODES = (
    "add.cc", "addc", "addc.cc", "mad.lo.cc", "madc.hi", "madc.hi.cc", "sub.cc", "subc", "subc.cc",
)  # fmt: skip
# Which threads hold each predicate: by lane, by warp, all, none.
HELD = {
    1: lambda t: t % 32 < 11,
    2: lambda t: t & 2 != 0,
    3: lambda t: t < 32,
    4: lambda t: True,
    5: lambda t: False,
}
PREDICATES = """
and.b32 %r10, %t, 31;  setp.lt.u32 %p1, %r10, 11;
and.b32 %r10, %t, 2;   setp.ne.u32 %p2, %r10, 0;
setp.lt.u32 %p3, %t, 32;
mov.u32 %r10, %ctaid.x;  setp.eq.u32 %p4, %r10, 0;  setp.ne.u32 %p5, %r10, 0;
ld.global.u32 %r1, [%mine];
mul.lo.u32 %r2, %t, 0x9E3779B9;
mov.u32 %r3, -1;
mov.u32 %r4, 1;
"""
RESULT = """
addc.u32 %r5, %r1, 0;
mad.lo.u32 %r5, %r5, 31, %r2;
mad.lo.u32 %r5, %r5, 31, %r3;
mad.lo.u32 %r5, %r5, 31, %r4;
st.global.u32 [%mine], %r5;
"""


@dataclass
class Thread:
    """One thread in plain integers."""

    number: int
    carry: int = 0
    registers: dict[str, int] = field(default_factory=dict[str, int])

    def value(self, operand: str) -> int:
        return self.registers[operand] if operand in self.registers else int(operand) & MASK

    def execute(self, opcode: str, to: str, *operands: str) -> None:
        name, *words = opcode.split(".")
        a, b, *c = map(self.value, operands)
        taken = self.carry if name.endswith("c") else 0
        if name.startswith("sub"):
            # The adder's carry: of a difference it is set where nothing is borrowed.
            total = a + (~b & MASK) + (taken if name.endswith("c") else 1)
        elif name.startswith("add"):
            total = a + b + taken
        else:
            product = a * b
            total = (product >> 32 if "hi" in words else product & MASK) + c[0] + taken
        if "cc" in words:
            self.carry = int(total > MASK)
        self.registers[to] = total & MASK


Link = tuple[str, ...]


class Program:
    """Chains at random, nested in conditions; `run` is the same for one thread."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.labels = 0
        self.lines: list[str] = []
        self.steps = self.block(3)

    def block(self, depth: int) -> list[tuple[int, bool, list, list]]:
        steps: list[tuple[int, bool, list, list]] = []
        for _ in range(self.rng.randint(1, 4)):
            predicate, negated = self.rng.choice(list(HELD)), self.rng.random() < 0.5
            guard = f"@{'!' * negated}%p{predicate}"
            kind = self.rng.random()
            if depth and kind < 0.4:
                self.labels += 1
                other, end = f"ELSE{self.labels}", f"END{self.labels}"
                self.lines.append(f"{guard} bra {other};")
                held_not = self.block(depth - 1)
                self.lines += [f"bra {end};", f"{other}:"]
                held = self.block(depth - 1)
                self.lines.append(f"{end}:")
                steps.append((predicate, negated, held, held_not))
            elif kind < 0.5:
                self.lines.append("bar.sync 0;" if depth == 3 else "nanosleep.u32 1;")
            else:
                link = self.link()
                text = f"{link[0]}.u32 {', '.join(link[1:])};"
                if self.rng.random() < 0.5:
                    self.lines.append(f"{guard} {text}")
                    steps.append((predicate, negated, [link], []))
                else:
                    self.lines.append(text)
                    steps.append((4, False, [link], []))
        return steps

    def link(self) -> Link:
        opcode = self.rng.choice(OPCODES)
        registers = ["%r1", "%r2", "%r3", "%r4"]
        count = 3 if opcode.startswith("mad") else 2
        operands = self.rng.choices([*registers, "0", "1", "-1"], k=count)
        return (opcode, self.rng.choice(registers), *operands)

    def run(self, thread: Thread, steps: list) -> None:
        for step in steps:
            if isinstance(step[0], str):
                thread.execute(*step)
                continue
            predicate, negated, held, held_not = step
            self.run(thread, held if HELD[predicate](thread.number) != negated else held_not)


def test_a_sum_takes_what_a_difference_leaves_and_the_other_way_round() -> None:
    """As an H100 does: a difference leaves a carry where nothing is borrowed.  nvcc's 128-bit division mixes the two."""
    body = """
    sub.cc.u32 %r1, %t, 3;           addc.u32 %r1, 0, 0;
    add.cc.u32 %r2, %t, 0xFFFFFFFD;  subc.u32 %r2, 0, 0;
    and.b32 %r2, %r2, 0xFF;
    mad.lo.u32 %r1, %r1, 256, %r2;
    st.global.u32 [%mine], %r1;
    """
    # Source: an H100's answers.
    recorded = np.array([0x0FF] * 3 + [0x100] * (THREADS - 3), np.uint32)
    expect(body, recorded, orders=(IN_ORDER, TIMED), block=THREADS)


@pytest.mark.parametrize("seed", range(40))
def test_chains_are_each_threads_own(seed: int) -> None:
    program = Program(seed)
    given = np.random.default_rng(seed).choice(np.array([0, 1, MASK - 1, MASK], np.uint32), THREADS)
    expected: list[int] = []
    for t in range(THREADS):
        start = {"%r1": int(given[t]), "%r2": t * 0x9E3779B9 & MASK, "%r3": MASK, "%r4": 1}
        thread = Thread(t, registers=start)
        program.run(thread, program.steps)
        one, *others = thread.registers.values()
        total = one + thread.carry
        for other in others:
            total = total * 31 + other
        expected.append(total & MASK)
    body = "\n".join([PREDICATES, *program.lines, RESULT])
    orders = (IN_ORDER, ADVERSARIAL, TIMED)
    expect(body, expected, orders=orders, block=THREADS, fill=given)
