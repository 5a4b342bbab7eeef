"""What each segment of a program costs a warp: issue slots, the dependence chain, results that come late.

A warp issues in order; an instruction waits for its operands and for its pipe. That is worked out
once for each segment with the latency and issue interval of each unit. Results that come from
memory or from an asynchronous unit are not known here: the schedule adds them while the program
runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from hopsim.config import HardwareConfig
from hopsim.hw.machine.thread_groups import WARP
from hopsim.hw.timing.atomic_units import Does
from hopsim.hw.timing.basic_blocks import Placed, after_tests, entered_otherwise, placed
from hopsim.hw.timing.constant_bank import NO_LOADS, ConstantBank
from hopsim.hw.timing.fences import Fences, fences_of
from hopsim.hw.timing.heads import Head, Heads, keeps_order
from hopsim.hw.timing.in_order import Behind, InOrder
from hopsim.hw.timing.load_runs import Deferred, load_runs, unrolled_loops
from hopsim.hw.timing.machine_code import MachineCode
from hopsim.hw.timing.mma_pipe import Product, product_of
from hopsim.hw.timing.stalls import Stall
from hopsim.hw.timing.swap_loops import SwapLoop, swap_loop
from hopsim.hw.timing.wide_loads import Wide
from hopsim.isa.forms.bound import BoundInstruction
from hopsim.isa.program.codegen import Segment
from hopsim.isa.program.flow import EXIT
from hopsim.isa.ptx.flat import SymbolRef

PAST_L1: Final = ("cg", "cv")
JOINED: Final = ("add", "min", "max", "and", "or", "xor")
ADDRESSES: Final = -1
"""Stands for the line of the constant bank with the address of the parameters."""


@dataclass(slots=True, eq=False)
class SegmentCost:
    """One segment, for one warp; times in cycles from the issue of its head.

    Args:
        head: kind of head.
        block: cycles the head holds the warp when it did not wait for something (after a wait the
        wake-up covers it).
        block_stall: what to call them.
        span: until the next segment can issue.
        slots: cycles of the sub-partition's issue port and pipes.
        crowded_span, crowded_slots: how much longer both are while the tensor cores work.
        lost: cycles that these lose meanwhile.
        instructions: issued.
        counted: of them as Nsight Compute sees them.
        reads: registers read before they are written here, and when.
        writes: registers written.
        head_writes: destinations of a head whose latency is known only at run time.
        head_use: when the plain instructions first read one of them (infinite: never).
        late: results ready after `span`: (register, when, stall).
        private: nothing outside the warpgroup can tell when the head executes, so the schedule may
        run ahead to it.
        fall_through: segment that follows without a taken branch.
        taken: cycles of a taken branch.
        cached: a load that L1 may serve.
        joined: an atomic that ptxas lets one lane do for all if all do it at one address.
        does: what an atomic does at its words.
        swaps: the loop that an atomic is on shared memory.
        mma: what an mma.sync is to the pipe.
        after_mma: it is issued when the pipe has taken all mma.sync before it.
        prefetches_map: a prefetch.tensormap.
        simple: nothing but `reads`, `span` and `slots` applies.
        parameters: lines of the constant bank that hold parameters it reads.
        fences: how it waits until writes are seen beyond the CTA.
        guard: predicate of the head, by register, and the value with which nothing is done.
        deferred: a load that is waited for later than where its value is used.
        behind: how long after the load, and what else comes late, what is computed from it here is there.
        in_turn: an access of memory, which comes to its pipe when it has its operands, behind all that come before.
        wide: a load that is done with others; part_of: the segment of the load that it is done with.
    """

    head: Head
    block: float
    block_stall: Stall
    span: float
    slots: float
    crowded_span: float
    crowded_slots: float
    lost: float
    instructions: int
    counted: int
    reads: dict[int, float]
    writes: frozenset[int]
    head_writes: tuple[int, ...]
    head_use: float
    late: tuple[tuple[int, float, Stall], ...]
    private: bool
    fall_through: int
    taken: float
    cached: bool
    joined: bool
    does: Does
    swaps: SwapLoop | None
    mma: Product | None
    after_mma: bool
    prefetches_map: bool
    simple: bool
    parameters: frozenset[int]
    fences: Fences
    guard: tuple[int, bool] | None
    deferred: Deferred | None
    behind: Behind | None
    in_turn: bool
    wide: Wide | None
    part_of: int | None


class CostTable:
    """Costs of all segments of a program.

    Args:
        config: latencies and intervals.
        program: compiled segments, by number.
        threads: of a CTA.
        parameter_offsets: of each parameter, in bytes.
        shares_sms: whether other CTAs may be on the SM.
        room: registers that loads on their way may fill, as `load_runs` takes it.
        kept_loops: lines of PTX that ask ptxas not to unroll the next loop.
    """

    def __init__(
        self,
        config: HardwareConfig,
        program: Sequence[Segment],
        threads: int = WARP,
        parameter_offsets: Mapping[str, int] | None = None,
        shares_sms: bool = False,
        room: int | None = None,
        kept_loops: Sequence[int] = (),
    ) -> None:
        self._config = config
        self._latency = config.issue.latency_cycles
        self._program = program
        self._heads = Heads(config, program, threads, shares_sms)
        self._constants = ConstantBank(
            program, parameter_offsets or {}, config.issue.constant_line_bytes
        )
        self._code = MachineCode(config, program, self._constants.gone)
        self._in_order = InOrder(config, self._code)
        self._runs = load_runs(program, room, unrolled_loops(program, kept_loops))
        self._multiplies = any(
            bound.form.unit == "tensor" for segment in program for bound in segment.instructions
        )
        self._after_tests = after_tests(program)
        # What is issued after a branch is issued after the mma.sync before it.
        self._after_branches = (
            entered_otherwise(program) if any(map(_is_mma, program)) else frozenset[int]()
        )
        self.segments = [
            self._cost(segment, here)
            for segment, here in zip(program, placed(program), strict=True)
        ]
        for segment, cost in zip(program, self.segments, strict=True):
            self._keep_needed(segment, cost)
            self._hide(segment, cost)
            cost.simple = not (
                cost.late or cost.block or cost.taken or cost.after_mma
            ) and cost.head in (
                Head.NONE,
                Head.FIXED,
            )

    # -- one segment -------------------------------------------------------------------------------

    def _cost(self, segment: Segment, here: Placed) -> SegmentCost:
        first, last = segment.instructions[0], segment.instructions[-1]
        has_head = (
            segment.head is not None and bool(here.instructions) and here.instructions[0] is first
        )
        instructions = self._in_order.order(here.instructions, has_head)
        head = self._heads.kind(first) if has_head else Head.NONE
        dynamic = head not in (
            Head.NONE,
            Head.FIXED,
            Head.COMMIT,
            Head.LEAVE,
            Head.PUBLISH,
            Head.SLEEP,
        )
        loads = self._constants.of.get(segment.number, NO_LOADS)
        more = here.prepares * (self._config.issue.sequence["bulk_copy"] - 1.0)
        work_out = partial(
            self._in_order.run, instructions, dynamic, prepared=here.prepared, more=more,
            constants=loads,
        )  # fmt: skip
        run = work_out()
        crowded = work_out(crowded=True) if self._multiplies else run
        if head is Head.TENSOR:
            # It has just begun.
            run = crowded
        runs, number = self._runs, segment.number
        deferred = runs.deferred.get(number)
        behind: Behind | None = None
        clock, reads = run.clock, run.reads
        if deferred:
            behind = self._in_order.behind(instructions, first.writes, deferred)
            clock = behind.clock
        block, stall = self._heads.block(first) if has_head else (0.0, Stall.WAIT)
        for register in runs.posted.get(
            number, deferred.inputs | deferred.address if deferred else ()
        ):
            reads.pop(register, None)
        reads |= dict.fromkeys(runs.awaited.get(number, ()), 0.0)
        is_branch = last.form.unit == "branch"
        after = (
            segment.successors[0] if last.instruction.guard is not None or not is_branch else EXIT
        )
        return SegmentCost(
            head=head,
            block=block,
            block_stall=stall,
            span=clock,
            slots=run.slots,
            crowded_span=crowded.clock - clock,
            crowded_slots=crowded.slots - run.slots,
            lost=crowded.lost,
            instructions=round(run.count),
            counted=self._code.counted(segment.instructions) + loads.count,
            reads=reads,
            writes=frozenset(run.writes),
            head_writes=tuple(sorted(run.head_writes)),
            head_use=run.head_use,
            late=tuple(
                (register, when, stall)
                for register, (when, stall) in sorted(run.ready.items())
                if when > clock and not (deferred and register in deferred.results)
            ),
            private=self._heads.is_private(segment, head),
            fall_through=after,
            taken=float(self._latency["branch"]) if is_branch else 0.0,
            cached=self._is_cached(first),
            joined=_is_joined(first),
            does=_does(first),
            swaps=swap_loop(first),
            mma=product_of(first) if head is Head.MMA else None,
            after_mma=keeps_order(first) or segment.number in self._after_branches,
            prefetches_map="tensormap" in first.instruction.opcode
            and first.instruction.opcode[0] == "prefetch",
            simple=False,
            parameters=frozenset([*loads.lines, *self._parameter_lines(segment.instructions)]),
            in_turn=head is Head.MEMORY and not _is_remote(first),
            wide=self._code.wide.first.get(number),
            part_of=self._code.wide.others.get(number),
            fences=fences_of(first, block if stall is Stall.MEMBAR else 0.0, self._config.fence),
            guard=_guard(first),
            deferred=deferred,
            behind=behind,
        )

    def _parameter_lines(self, instructions: Sequence[BoundInstruction]) -> Iterator[int]:
        """Give the lines of the constant bank that some instructions read; addresses of parameters have their own."""
        for bound in instructions:
            yield from self._constants.lines(bound)
            for operand in bound.instruction.operands:
                if isinstance(operand, SymbolRef) and operand.kind == "param":
                    yield ADDRESSES

    def _keep_needed(self, segment: Segment, cost: SegmentCost) -> None:
        """Settle results that are ready after the segment.

        What the next segment would wait for a few cycles (arithmetic) becomes part of this one; slower results stay
        `late` when a successor can read them too early.
        """
        kept: list[tuple[int, float, Stall]] = []
        end = cost.span
        for register, when, stall in cost.late:
            for successor in segment.successors:
                if successor == EXIT or not self._program[successor].live >> register & 1:
                    continue
                other = self.segments[successor]
                first = other.reads.get(register)
                if stall is Stall.WAIT:
                    if first is not None:
                        end = max(end, when - first)
                elif first is None or when - cost.span > first:
                    kept.append((register, when, stall))
                    break
        cost.span = end
        cost.late = tuple(kept)

    def _hide(self, segment: Segment, cost: SegmentCost) -> None:
        """Let arithmetic pass while a warp waits: after a barrier, and after an mbarrier on which it does not depend.

        ptxas puts what follows a loop of `try_wait` between the first test and its branch.
        """
        if cost.block_stall is Stall.BARRIER:
            issued = 1.0 / self._config.issue.issue_rate
            cost.block = max(0.0, cost.block - (cost.span - issued))
        if cost.head is Head.NONE and segment.number in self._after_tests:
            cost.span = max(0.0, cost.span - self._config.mbarrier.try_wait_latency_cycles)

    def _is_cached(self, bound: BoundInstruction) -> bool:
        slots = dict(bound.slots)
        weak = slots.get("sem", "") in ("", "weak")
        return bound.form.base[0] == "ld" and weak and slots.get("cache", "") not in PAST_L1


def _is_remote(bound: BoundInstruction) -> bool:
    """Whether an access goes to the shared memory of another CTA, by a way of its own."""
    return "shared::cluster" in bound.instruction.opcode


def _is_joined(bound: BoundInstruction) -> bool:
    """Whether ptxas sums, or otherwise joins, what lanes give an atomic before one of them does it.

    Source: machine code of ptxas 13.0 for `atomicAdd` of integers at an address that all threads share (VOTE, REDUX or a
    scan, and one ATOMG); floats are left to the atomic units.
    """
    slots = dict(bound.slots)
    return (
        bound.form.unit == "atomic"
        and slots.get("op") in JOINED
        and slots.get("t", "")[:1] in ("u", "s", "b")
    )


def _does(bound: BoundInstruction) -> Does:
    """Return what an atomic does at its words."""
    slots = dict(bound.slots)
    if slots.get("op") == "add" and slots.get("t", "").startswith(("f", "bf")):
        return Does.ADD_FLOATS
    return Does.COMPARE if "cas" in bound.instruction.opcode else Does.ADD


def _guard(bound: BoundInstruction) -> tuple[int, bool] | None:
    guard = bound.instruction.guard
    return None if guard is None else (guard[0].index, guard[1])


def _is_mma(segment: Segment) -> bool:
    """Whether the head of a segment is an mma.sync."""
    return segment.head is not None and segment.instructions[0].form.unit == "mma"


__all__ = ["CostTable", "SegmentCost"]
