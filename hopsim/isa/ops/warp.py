"""shfl, vote, match, redux, elect, activemask and the clocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hopsim.isa.context import Context
from hopsim.isa.forms.decode import CLOCKS
from hopsim.isa.forms.form import BLOCKED, shared_form
from hopsim.isa.forms.operand_rules import integer_problem
from hopsim.isa.types import ScalarType
from hopsim.isa.values import Value

CLOCK_NAMES = sorted(CLOCKS)


@shared_form("shfl.sync.{mode}.b32 d:b32|p:pred?, a:b32, b:b32, c:b32, m:u32", mode=("up", "down", "bfly", "idx"),
             quiet=True, may_block=True, data_operands=("a",), unit="shuffle",
             source='PTX ISA 8.7, "shfl.sync"')  # fmt: skip
def shfl(mode: str) -> Any:
    """Lanes read a register of other lanes."""

    def run(ctx: Context, a: Value, b: Value, c: Value, m: Value) -> Any:
        return ctx.shfl(mode, a, b, c, m)

    return run


@shared_form("vote.sync.{mode}.pred d:pred, a:pred, m:u32", mode=("all", "any", "uni"), quiet=True, may_block=True,
             unit="shuffle", source='PTX ISA 8.7, "vote.sync"')  # fmt: skip
def vote(mode: str) -> Any:
    """Whether all, any, or all-or-none of the predicates hold."""

    def run(ctx: Context, a: Any, m: Value) -> Any:
        return ctx.vote(mode, a, m)

    return run


@shared_form("vote.sync.ballot.b32 d:b32, a:pred, m:u32", quiet=True, may_block=True, unit="shuffle",
             source='PTX ISA 8.7, "vote.sync"')  # fmt: skip
def ballot() -> Any:
    """The mask of lanes whose predicate holds."""

    def run(ctx: Context, a: Any, m: Value) -> Any:
        return ctx.vote("ballot", a, m)

    return run


# Warps of a sub-partition take turns at `match`, so that a step ends before one.
@shared_form("match.any.sync.{t} d:u32, a:t, m:u32", t=("b32", "b64"), may_block=True,
             data_operands=("a",), unit="shuffle", source='PTX ISA 8.7, "match.sync"')  # fmt: skip
def match_any(t: ScalarType) -> Any:
    """The mask of lanes that hold the same value."""

    def run(ctx: Context, a: Value, m: Value) -> Any:
        answer: Any = ctx.match("any", a, t.width_bits, m)
        return answer if answer is BLOCKED else answer[0]

    return run


@shared_form("match.all.sync.{t} d:u32|p:pred?, a:t, m:u32", t=("b32", "b64"), may_block=True,
             data_operands=("a",), unit="shuffle", source='PTX ISA 8.7, "match.sync"')  # fmt: skip
def match_all(t: ScalarType) -> Any:
    """The member mask when all lanes hold the same value, else 0."""

    def run(ctx: Context, a: Value, m: Value) -> Any:
        return ctx.match("all", a, t.width_bits, m)

    return run


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


def _fold_bits(operation: Callable[[int, int], int]) -> Callable[[list[int]], int]:
    def fold(words: list[int]) -> int:
        result = words[0]
        for word in words[1:]:
            result = operation(result, word)
        return result

    return fold


FOLDS: dict[tuple[str, str], Callable[[list[int]], int]] = {
    ("add", "u32"): lambda words: sum(words) & 0xFFFFFFFF,
    ("add", "s32"): lambda words: sum(words) & 0xFFFFFFFF,
    ("min", "u32"): min,
    ("max", "u32"): max,
    ("min", "s32"): lambda words: min(words, key=_signed),
    ("max", "s32"): lambda words: max(words, key=_signed),
    ("and", "b32"): _fold_bits(lambda a, b: a & b),
    ("or", "b32"): _fold_bits(lambda a, b: a | b),
    ("xor", "b32"): _fold_bits(lambda a, b: a ^ b),
}


def _redux_problem(slots: dict[str, str]) -> str:
    op, kind = slots["op"], slots["t"]
    return "" if (op, kind) in FOLDS else f"redux.sync.{op} does not take .{kind}"


@shared_form("redux.sync.{op}.{t} d:t, a:t, m:u32", op=("add", "min", "max", "and", "or", "xor"),
             t=("u32", "s32", "b32"), quiet=True, may_block=True, data_operands=("a",), unit="shuffle",
             check=_redux_problem, agree=integer_problem,
             source='PTX ISA 8.7, "redux.sync"')  # fmt: skip
def redux(op: str, t: ScalarType) -> Any:
    """Reduces a register over the lanes of the mask."""
    fold = FOLDS[(op, t.name)]

    def run(ctx: Context, a: Value, m: Value) -> Any:
        return ctx.redux(fold, a, m)

    return run


@shared_form("elect.sync d:u32|p:pred, m:u32", quiet=True, may_block=True, unit="special",
             source='PTX ISA 8.7, "elect.sync"')  # fmt: skip
def elect() -> Any:
    """Elects one lane of the mask."""

    def run(ctx: Context, m: Value) -> Any:
        return ctx.elect(m)

    return run


@shared_form("activemask.b32 d:b32", quiet=True, unit="special", source='PTX ISA 8.7, "activemask"')
def activemask() -> Any:
    """The lanes that execute together now."""

    def run(ctx: Context) -> Any:
        return ctx.active_mask()

    return run


@shared_form("mov.{t} d:t, a:clock", t=("u32", "u64", "b32", "b64", "s32", "s64"), unit="special",
             source='PTX ISA 8.7, "%clock64", "%globaltimer"')  # fmt: skip
def read_clock(t: ScalarType) -> Any:
    """Reads a clock: cycles of the SM, or nanoseconds of the device."""

    def run(ctx: Context, a: int) -> Any:
        return ctx.read_clock(CLOCK_NAMES[a]) & t.mask

    return run
