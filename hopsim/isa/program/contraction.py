"""Products that ptxas takes into sums: a `mul` and the `add` or `sub` of it, all without a rounding, become one `fma`.

PTX leaves that to the assembler.  What ptxas does was found from its machine code, for f32, f64 and the halves alike:

- The product has no `.rn` and no `.sat`, the sum no rounding, and both are of one type and have `.ftz` or neither has.  The
  product is not guarded; the sum may be.
- Copies and `neg` between them (but of bf16x2) are looked through, and so is a product with 1 or -1.
- Every use of the product is such a sum in its basic block; `t + t` is none.  A product of two literals is a literal.
- A sum takes in a product that nothing else uses, the first operand's where both are.  Other sums take, in their order, a
  product whose other sums can take it or have, of two the one with fewer uses, the first operand's where both have as many.
- Blocks end at branches and where they lead, at fences (but of proxies), at calls, at what becomes calls of software
  (correctly rounded `div`, `rcp`, `sqrt`, integer division but of u32), and around guarded accesses and barriers, around
  which ptxas has branches when it does this.

What ptxas does before is not known here: loops that it unrolls, and products that are there twice (D-CONTRACT).

Source: PTX ISA 8.7 "Floating Point Instructions", "mul", "add"; machine code of ptxas 13.0 at its default, -O3, for 9,000
random programs and those of tests/isa/program/test_contraction.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from hopsim.isa.forms.bound import BoundInstruction
from hopsim.isa.forms.decode import decode
from hopsim.isa.forms.form import Form
from hopsim.isa.numerics.ordering import make_neg
from hopsim.isa.program import flow
from hopsim.isa.program.frames import moved
from hopsim.isa.program.open_products import (
    SUMS,
    Operands,
    Product,
    chosen_sums,
    kind_of,
    of_block,
)
from hopsim.isa.ptx.flat import FlatInstruction, FlatOperand, FlatParameter, Register

FENCES: Final = ("acq_rel", "sc")


class Contracted(NamedTuple):
    """A body whose products are in its sums.

    Args:
        instructions: of it.
        labels: indices of the instructions that labels stand before.
        registers: that no text names, numbered from behind CC.CF.
    """

    instructions: tuple[BoundInstruction, ...]
    labels: frozenset[int]
    registers: tuple[Register, ...]


def contract(
    body: Sequence[BoundInstruction], labels: Iterable[int], carry: Register
) -> Contracted:
    """Take products into sums as ptxas does.

    Args:
        body: instructions of a function.  labels: the instructions that labels stand before.
        carry: the body's CC.CF.
    """
    names = {bound.form.name for bound in body if kind_of(bound) is not None}
    if "mul" not in names or not names & {*SUMS}:
        return Contracted(tuple(body), frozenset(labels), ())
    return _Contraction(body, carry).run(labels)


class _Contraction:
    def __init__(self, body: Sequence[BoundInstruction], carry: Register) -> None:
        self._body = body
        self._carry = carry
        self._registers: list[Register] = []
        self._removed: set[int] = set()
        self._taken: dict[int, tuple[int, Operands]] = {}
        self._copies: dict[int, dict[int, Register]] = {}
        self._writers: dict[int, list[int]] = {}
        for index, bound in enumerate(body):
            for register in bound.writes:
                self._writers.setdefault(register, []).append(index)

    def run(self, labels: Iterable[int]) -> Contracted:
        for start, stop, live in self._blocks():
            sums, products = of_block(self._body, range(start, stop), live)
            for index, position in chosen_sums(sums).items():
                self._taken[index] = position, sums[index]
            for product in products:
                if (
                    product.uses
                    and not product.is_kept
                    and all(map(self._takes(product), product.uses))
                ):
                    self._removed |= {product.index, *product.copies}
        sums_put = {index: self._sum(index) for index in self._taken}
        out: list[BoundInstruction] = []
        places: list[int] = []
        for index, bound in enumerate(self._body):
            places.append(len(out))
            out += self._copied(index)
            if index not in self._removed:
                out.append(sums_put.get(index, bound))
        places.append(len(out))
        return Contracted(
            tuple([moved(bound, places) for bound in out]),
            frozenset(places[label] for label in labels),
            tuple(self._registers),
        )

    def _takes(self, product: Product) -> Callable[[int], bool]:
        def takes(index: int) -> bool:
            taken = self._taken.get(index)
            held = taken[1][taken[0]] if taken else None
            return held is not None and held.product is product

        return takes

    def _blocks(self) -> Iterator[tuple[int, int, int]]:
        """Give the begin and end of each of ptxas's basic blocks, and what lives after it as a bit mask."""
        cuts = {0}
        for index, bound in enumerate(self._body):
            cuts |= {label.target for label in bound.targets}
            if flow.is_branch(bound):
                cuts.add(index + 1)
            elif self._ends_block(bound):
                cuts |= {index, index + 1}
        plans = flow.segments(self._body, cuts)
        live = flow.live_registers(self._body, plans)
        start = 0
        for plan in plans:
            if plan.stop in cuts or plan.stop == len(self._body):
                after = 0
                for successor in plan.successors:
                    after |= 0 if successor == flow.EXIT else live[successor]
                yield start, plan.stop, after
                start = plan.stop

    def _ends_block(self, bound: BoundInstruction) -> bool:
        opcode = bound.instruction.opcode
        name = opcode[0]
        if flow.calls_software(bound):
            return True
        if name == "membar" or (name == "fence" and opcode[1] in FENCES):
            return True
        if bound.instruction.guard is not None and (bound.form.purity == "shared" or name == "ld"):
            return True
        return any(isinstance(one, FlatParameter) for one in bound.instruction.operands)

    # -- what goes out -----------------------------------------------------------------------------

    def _sum(self, index: int) -> BoundInstruction:
        """Return the `fma` that stands for a sum."""
        bound = self._body[index]
        position, operands = self._taken[index]
        held = operands[position]
        assert held is not None, bound
        product, negated = held
        factors = [
            self._factor(product.index, index, factor)
            for factor in self._body[product.index].instruction.operands[1:]
        ]
        at = bound.instruction
        subtracts = bound.form.name == "sub"
        kind, _ = product.kind
        words = [word for word in ("ftz", "sat") if word in at.opcode]
        both = at.operands[0], *factors, at.operands[2 - position]
        fused = FlatInstruction(at.span, at.loc, at.guard, ("fma", "rn", *words, kind), both)
        new = decode(fused, self._carry)
        negates = (negated != (subtracts and position == 1), subtracts and position == 0)
        return replace(new, form=_negating(new.form, kind, *negates)) if any(negates) else new

    def _factor(self, product: int, total: int, factor: FlatOperand) -> FlatOperand:
        """Return where a factor is when the sum is made: a copy, if something else is in its register by then."""
        if not isinstance(factor, Register):
            return factor
        writers = self._writers.get(factor.index, ())
        if not any(product <= one < total and one not in self._removed for one in writers):
            return factor
        copies = self._copies.setdefault(product, {})
        if factor.index not in copies:
            number = self._carry.index + 1 + len(self._registers)
            name = f"{factor.name}@fma:{number}"
            copies[factor.index] = Register(name, factor.type, factor.width_bits, number)
            self._registers.append(copies[factor.index])
        return copies[factor.index]

    def _copied(self, index: int) -> Iterator[BoundInstruction]:
        """Give the copies that are made in front of an instruction."""
        at = self._body[index].instruction
        for operand in at.operands[1:] if index in self._copies else ():
            if isinstance(operand, Register) and operand.index in self._copies[index]:
                copy = self._copies[index].pop(operand.index)
                opcode = ("mov", f"b{operand.width_bits}")
                copied = FlatInstruction(at.span, at.loc, None, opcode, (copy, operand))
                yield decode(copied, self._carry)


def _negating(form: Form, kind: str, product: bool, addend: bool) -> Form:
    """Return a form of `fma` that takes the product, or what is added, with the other sign, as the machine's does."""
    negate = make_neg(kind)

    def factory(**slots: Any) -> Callable[..., Any]:
        operation = form.factory(**slots)
        assert callable(operation), form

        def fused(a: Any, b: Any, c: Any) -> Any:
            return operation(negate(a) if product else a, b, negate(c) if addend else c)

        return fused

    return replace(form, factory=factory)


__all__ = ["Contracted", "contract"]
