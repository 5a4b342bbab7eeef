"""Turn a bound body into Python functions: per segment one for the head and one for the plain run.

Pure Python pays per operation, so each instruction becomes one line of generated source with its operands in place;
nothing is decoded while the program runs.  The registers of a strand are a list `r`; the strand is `s`.

    head(s, r) -> 0 done, 1 blocked, 2 split (the strand was divided; take a new step)
    body(s, r) -> number of the next segment, or EXIT

A `values=False` program leaves out whatever only computes tainted registers, and stops with `ValuesNeeded` where control
flow, an address or a count would need one (`hopsim.isa.program.deciding`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopsim.isa.forms.bound import (
    AddressArg,
    Arg,
    BoundInstruction,
    ConstantArg,
    Destination,
    MissingArg,
    RegisterArg,
    SymbolArg,
    TupleArg,
)
from hopsim.isa.forms.form import BLOCKED
from hopsim.isa.program.branch_table import by_index, way
from hopsim.isa.program.deciding import Deciding, performed_always
from hopsim.isa.program.flow import EXIT, SegmentPlan, is_synchronising
from hopsim.isa.ptx.flat import Register
from hopsim.isa.types import DTYPES
from hopsim.isa.values import Array, Predicate, Value, collapse, narrow, resize, select, widen

DONE, WAITING, SPLIT = 0, 1, 2


@dataclass(slots=True, eq=False)
class Segment:
    """One compiled segment.

    `stop` says that a step ends before this segment: its head can be seen from outside the warp.  `join` is the segment
    where lanes that part ways here meet again (EXIT: never).  `live` is the mask of registers live at its start, `line`
    the PTX line of its first instruction, `last_line` of its last.
    """

    number: int
    head: Callable[[Any, list[Any]], int] | None
    body: Callable[[Any, list[Any]], int]
    stop: bool
    join: int
    live: int
    instructions: tuple[BoundInstruction, ...]
    successors: tuple[int, ...]
    line: int
    last_line: int

    @property
    def only_leaves(self) -> bool:
        """Whether it is one `ret` or `exit` of the whole program."""
        return self.successors == (EXIT,) and len(self.instructions) == 1 and self.head is None


def invert(predicate: Predicate) -> Predicate:
    """Logical not, per lane."""
    return ~predicate if isinstance(predicate, np.ndarray) else not predicate


def pick(value: Value, chosen: Any) -> Any:
    """Return the lanes `chosen` (an int for one lane, else an index array) of a register value."""
    if not isinstance(value, np.ndarray):
        return value
    if isinstance(chosen, int):
        return value[chosen].item()
    return value[chosen]


def place(old: Value, new: Any, chosen: Any, lanes: int, width_bits: int) -> Value:
    """Write `new` into the lanes `chosen` of a register value."""
    dtype = np.dtype(np.bool_) if width_bits == 1 else DTYPES[width_bits]
    result: Array = old.copy() if isinstance(old, np.ndarray) else np.full(lanes, old, dtype)
    result[chosen] = new
    return collapse(result)


class _Source:
    """Writes the functions of one program."""

    def __init__(
        self,
        layout: dict[str, int],
        number_of: dict[int, int],
        deciding: Deciding,
        values: bool,
    ) -> None:
        self.layout = layout
        self.number_of = number_of
        self.deciding = None if values else deciding
        # Registers that hold data which is not computed, before and after the instruction that is being written.
        self.tainted = self.leaves_tainted = 0
        self.lines: list[str] = []
        self.space: dict[str, Any] = {
            "narrow": narrow, "widen": widen, "select": select, "invert": invert, "pick": pick, "place": place,
            "collapse": collapse, "BLOCKED": BLOCKED, "resize": resize, "way": way,
        }  # fmt: skip

    # -- operands ----------------------------------------------------------------------------------

    def _register(self, arg: RegisterArg, picked: bool) -> str:
        text = f"r[{arg.register.index}]"
        if picked:
            text = f"pick({text}, k)"
        if arg.register.width_bits != arg.width_bits:
            text = f"narrow({text}, {arg.width_bits})"
        return f"invert({text})" if arg.negated else text

    def _symbol(self, arg: SymbolArg, picked: bool) -> str:
        symbol = arg.symbol
        if symbol.kind == "special":
            text = f's.sp["{symbol.name}"]'
            if picked:
                text = f"pick({text}, k)"
            return text if arg.width_bits == 32 else f"resize({text}, {arg.width_bits})"
        if symbol.kind == "shared":
            offset = self.layout[symbol.name] + symbol.offset
            return f"(s.shared_base + {offset})"
        if symbol.kind in ("param", "local", "function"):
            return str(self.layout[symbol.name] + symbol.offset)
        if symbol.kind in ("global", "const"):
            text = f"s.symbols[{symbol.name!r}]"
            return f"({text} + {symbol.offset})" if symbol.offset else text
        raise AssertionError(f"decoding refuses {symbol.kind} {symbol.name}")

    def arg(self, arg: Arg, picked: bool = False) -> str:
        """Return the expression that an operation is called with."""
        if isinstance(arg, RegisterArg):
            return self._register(arg, picked)
        if isinstance(arg, ConstantArg):
            return repr(arg.value)
        if isinstance(arg, SymbolArg):
            return self._symbol(arg, picked)
        if isinstance(arg, AddressArg):
            base = self.arg(arg.base, picked)
            if not arg.offset:
                return base
            mask = (1 << arg.width_bits) - 1
            return f"(({base} + {arg.offset & mask}) & {mask})"
        if isinstance(arg, TupleArg):
            if arg.by_index:
                numbers = [
                    item.register.index for item in arg.items if isinstance(item, RegisterArg)
                ]
                return repr(tuple(numbers))
            inside = ", ".join(self.arg(item, picked) for item in arg.items)
            return f"({inside},)"
        assert isinstance(arg, MissingArg)
        return "None"

    def _come_to(self, number: int) -> None:
        """Look up what is tainted at an instruction."""
        if self.deciding is not None:
            self.tainted = self.deciding.before[number]
            self.leaves_tainted = self.deciding.after[number]

    def _is_tainted(self, register: Register) -> bool:
        return bool(self.tainted >> register.index & 1)

    def _arg_tainted(self, arg: Arg) -> bool:
        if not self.tainted:
            return False
        if isinstance(arg, RegisterArg):
            return self._is_tainted(arg.register)
        if isinstance(arg, AddressArg):
            return self._arg_tainted(arg.base)
        if isinstance(arg, TupleArg):
            return not arg.by_index and any(self._arg_tainted(item) for item in arg.items)
        return False

    def _call_args(self, bound: BoundInstruction, picked: bool = False) -> list[str] | None:
        """Return the argument expressions, or None when one needs data that is not computed."""
        texts: list[str] = []
        for name, arg in zip(bound.arg_names, bound.args, strict=True):
            if self._arg_tainted(arg):
                if name not in bound.form.data_operands or is_synchronising(bound):
                    return None
                texts.append("None")
            else:
                texts.append(self.arg(arg, picked))
        return texts

    def _store(self, bound: BoundInstruction, guard: str = "") -> list[str]:
        """Return the lines that move `v` into the destination registers; `guard` is a per-lane condition."""
        lines: list[str] = []
        for number, destination in enumerate(bound.destinations):
            register = destination.register
            if register is None or self.leaves_tainted >> register.index & 1:
                continue
            value = "v" if bound.single else f"v[{number}]"
            value = self._widened(value, destination)
            if guard:
                value = f"select({guard}, {value}, r[{register.index}], {register.width_bits})"
            lines.append(f"r[{register.index}] = {value}")
        return lines

    def _widened(self, value: str, destination: Destination) -> str:
        register = destination.register
        assert register is not None
        if register.width_bits == destination.from_bits:
            return value
        return (
            f"widen({value}, {destination.from_bits}, {register.width_bits}, {destination.signed})"
        )

    # -- instructions ------------------------------------------------------------------------------

    def _bind(self, bound: BoundInstruction) -> Any:
        return bound.form.bind(dict(bound.slots))

    def plain(self, bound: BoundInstruction, number: int) -> list[str]:
        """Return the lines of one plain instruction."""
        written = [d.register for d in bound.destinations if d.register is not None]
        self._come_to(number)
        if written and all(self.leaves_tainted >> register.index & 1 for register in written):
            return []
        args = self._call_args(bound)
        if args is None:
            return [f"s.need_values({bound.line})"]
        operation = self._bind(bound)
        if isinstance(operation, str):
            call = operation.format(*args)
        else:
            name = f"o{number}"
            self.space[name] = operation
            given = ["s", *args] if bound.form.purity == "local" else args
            call = f"{name}({', '.join(given)})"
        guard = bound.instruction.guard
        if bound.single and len(written) == 1:
            destination = bound.destinations[0]
            target = f"r[{written[0].index}]"
            value = self._widened(call, destination)
            if guard is None:
                return [f"{target} = {value}"]
            held, other = ("False", "True") if guard[1] else ("True", "False")
            condition = "~p" if guard[1] else "p"
            return [
                f"p = r[{guard[0].index}]",
                f"if p is {held}: {target} = {value}",
                f"elif p is not {other}: "
                f"{target} = select({condition}, {value}, {target}, {written[0].width_bits})",
            ]
        if guard is None:
            return [f"v = {call}", *self._store(bound)]
        condition = f"invert(r[{guard[0].index}])" if guard[1] else f"r[{guard[0].index}]"
        return [f"p = {condition}", f"v = {call}", *self._store(bound, "p")]

    def head(self, bound: BoundInstruction, number: int) -> str:
        """Write the head function of a segment and return its name."""
        self._come_to(number)
        operation = self._bind(bound)
        if self.deciding is not None and number in self.deciding.performed:
            operation = performed_always(operation)
        self.space[f"o{number}"] = operation
        out = self.lines
        args = self._call_args(bound)
        out.append(f"def h{number}(s, r):")
        if args is None:
            out += [f"    s.need_values({bound.line})", "    return 0"]
            return f"h{number}"
        guard = bound.instruction.guard
        if guard is not None:
            if self._is_tainted(guard[0]):
                out += [f"    s.need_values({bound.line})"]
            held, other = ("False", "True") if guard[1] else ("True", "False")
            out.append(f"    p = r[{guard[0].index}]")
            out.append(f"    if p is {other}: return 0")
            out.append(
                f"    if p is not {held}: return m{number}(s, r, {'~p' if guard[1] else 'p'})"
            )
        call = f"o{number}({', '.join(['s', *args])})"
        stores = self._store(bound)
        if stores or bound.form.may_block:
            out.append(f"    v = {call}")
            if bound.form.may_block:
                out.append("    if v is BLOCKED: return 1")
            out += [f"    {line}" for line in stores]
        else:
            out.append(f"    {call}")
        out.append("    return 0")
        if guard is not None:
            self._masked(bound, number)
        return f"h{number}"

    def _masked(self, bound: BoundInstruction, number: int) -> None:
        """Write the variant for a guard that differs between lanes."""
        out = self.lines
        out.append(f"def m{number}(s, r, p):")
        if bound.form.may_block or bound.form.collective:
            out.append("    p = collapse(p)")
            out.append("    if p is False: return 0")
            out.append("    return s.split_here(p)")
            return
        args = self._call_args(bound, picked=True)
        assert args is not None
        out.append("    t, k = s.choose(p)")
        out.append("    if t is None: return 0")
        call = f"o{number}({', '.join(['t', *args])})"
        stores: list[str] = []
        for position, destination in enumerate(bound.destinations):
            register = destination.register
            if register is None or self.leaves_tainted >> register.index & 1:
                continue
            value = "v" if bound.single else f"v[{position}]"
            value = self._widened(value, destination)
            stores.append(
                f"r[{register.index}] = place(r[{register.index}], {value}, k, s.lanes, {register.width_bits})"
            )
        out.append(f"    v = {call}" if stores else f"    {call}")
        out += [f"    {line}" for line in stores]
        out.append("    return 0")

    def body(self, plan: SegmentPlan, body: Sequence[BoundInstruction], join: int) -> str:
        """Write the plain run of a segment and return its name."""
        out = self.lines
        name = f"b{plan.number}"
        out.append(f"def {name}(s, r):")
        first = plan.start + (1 if plan.has_head else 0)
        last = plan.stop if plan.branch is None else plan.branch
        for index in range(first, last):
            out += [f"    {line}" for line in self.plain(body[index], index)]
        if plan.branch is not None and len(body[plan.branch].targets) > 1:
            out += [f"    {line}" for line in self._by_index(plan, body[plan.branch], join)]
            return name
        if plan.branch is None or len(plan.successors) == 1:
            out.append(f"    return {plan.successors[0]}")
            return name
        guard = body[plan.branch].instruction.guard
        assert guard is not None
        after, taken = plan.successors
        if self.deciding is not None and plan.branch in self.deciding.not_taken:
            out.append(f"    return {after}")
            return name
        self._come_to(plan.branch)
        if self._is_tainted(guard[0]):
            out.append(f"    s.need_values({body[plan.branch].line})")
        when_true, when_false = (after, taken) if guard[1] else (taken, after)
        out.append(f"    p = r[{guard[0].index}]")
        out.append(f"    if p is True: return {when_true}")
        out.append(f"    if p is False: return {when_false}")
        out.append(f"    return s.diverge(p, {when_true}, {when_false}, {join})")
        return name

    def _by_index(self, plan: SegmentPlan, bound: BoundInstruction, join: int) -> list[str]:
        """Return the lines of a branch whose targets are listed; the segment holds nothing else."""
        assert plan.branch is not None
        self._come_to(plan.branch)
        args = self._call_args(bound)
        guard = bound.instruction.guard
        if args is None or (guard is not None and self._is_tainted(guard[0])):
            return [f"s.need_values({bound.line})"]
        table = f"t{plan.number}"
        self.space[table] = [self.number_of.get(label.target, EXIT) for label in bound.targets]
        return by_index(bound, args[0], plan.number, plan.successors[0], join, table)


def generate(
    body: Sequence[BoundInstruction],
    plans: Sequence[SegmentPlan],
    joins: Sequence[int],
    live: Sequence[int],
    layout: dict[str, int],
    deciding: Deciding,
    values: bool,
    serialised: bool = False,
) -> list[Segment]:
    """Compile a body.

    Args:
        body: bound instructions.
        plans: their segments.  joins: immediate post-dominator of each.  live: live registers at the start of each.
        layout: offset of each shared, local and param symbol in its space, in bytes.
        deciding: what a `values=False` run computes all the same.
        values: whether data is computed.
        serialised: whether each wgmma is waited for before the next: then each ends a step.
    """
    number_of = {plan.start: plan.number for plan in plans}
    source = _Source(layout, number_of, deciding, values)
    names: list[tuple[str | None, str]] = []
    for plan in plans:
        head = source.head(body[plan.start], plan.start) if plan.has_head else None
        names.append((head, source.body(plan, body, joins[plan.number])))
    exec(compile("\n".join(source.lines) + "\n", "<hopsim program>", "exec"), source.space)
    result: list[Segment] = []
    for plan, (head, run) in zip(plans, names, strict=True):
        quiet = plan.has_head and body[plan.start].form.quiet
        if serialised and body[plan.start].form.unit == "tensor":
            quiet = False
        result.append(
            Segment(
                plan.number,
                source.space[head] if head else None,
                source.space[run],
                plan.has_head and not quiet,
                joins[plan.number],
                live[plan.number],
                tuple(body[plan.start : plan.stop]),
                plan.successors,
                body[plan.start].line,
                body[plan.stop - 1].line,
            )
        )
    return result


__all__ = ["DONE", "EXIT", "SPLIT", "WAITING", "Segment", "generate"]
