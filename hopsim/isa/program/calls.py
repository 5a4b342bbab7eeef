"""Calls: the body of a function is put where it is called, so that the machine needs no stack.

Each call gets registers, labels and parameters of its own.  `ret` goes to the end of the call, a guarded call is a branch
around it, a parameter becomes registers (`call_parameters`).  Instructions keep their place in the text, so that messages
name the line of the function.

Source: PTX ISA 8.7 "call", "ret", "Function Declarations and Definitions", "Device Function Parameters"; what is refused is
what ptxas 13.0 refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

from hopsim.errors import PtxError
from hopsim.isa.program.call_parameters import settle
from hopsim.isa.program.device_runtime import RUNTIME, runtime_problem
from hopsim.isa.program.frames import MOST_INSTRUCTIONS, Frame, TooLong, label_to, retargeted
from hopsim.isa.program.functions import SOURCE, Functions, addressed
from hopsim.isa.program.handover import Handover, address_of
from hopsim.isa.program.signatures import (
    CallOperands,
    Signature,
    misuse,
    operands_of,
    problem,
    signature_of,
)
from hopsim.isa.program.symbols import function_addresses
from hopsim.isa.ptx.ast import Function, Immediate, Span
from hopsim.isa.ptx.flat import (
    FlatBody,
    FlatInstruction,
    FlatOperand,
    FlatVector,
    Register,
    SymbolRef,
)
from hopsim.isa.ptx.scope import Flattened

POINTERS: Final = ("b32", "u32", "s32", "b64", "u64", "s64")
CALLS: Final = (("call",), ("call", "uni"))
RETURNS: Final = (("ret",), ("ret", "uni"))
NOTHING: Final = Signature((), ())
PARAMETER_ADDRESS: Final = (
    "cvta.param of a function's parameter: an H100 gives an address at which the parameter is not;"
    " only an entry's have one"
)
INLINE: Final = "hopsim puts the body of a function where it is called; write a loop instead"


Emission: TypeAlias = Iterator[Any]
"""What puts out instructions, and gives the emission of a called body where that is to be put."""


class Expanded(NamedTuple):
    """A body without calls of functions.

    Args:
        body: as `flatten` gives it, functions that it calls included.
        errors: what is wrong in it, by line.
        unsupported: (place, why) of calls that are not modelled.
    """

    body: FlatBody
    errors: tuple[PtxError, ...]
    unsupported: tuple[tuple[Span, str], ...]


def expand(flat: Flattened, functions: Functions) -> Expanded:
    """Put functions in the place of their calls.

    Args:
        flat: an entry's names, resolved.
        functions: of its module.
    """
    body, errors = flat
    is_plain = not any(one.opcode[0] == "call" for one in body.instructions)
    if is_plain and not any(variable.space == "param" for variable in body.variables):
        return Expanded(body, errors, ())
    return _Expansion(functions).run(flat)


class _Expansion(Handover):
    def __init__(self, functions: Functions) -> None:
        super().__init__()
        self.functions = functions
        self.errors: dict[tuple[int, int, str], PtxError] = {}
        self.unsupported: dict[tuple[Span, str], None] = {}
        self.outermost: FlatInstruction | None = None
        self.expansions = 0

    def run(self, flat: Flattened) -> Expanded:
        body = flat.body
        self.registers += body.registers
        frame = Frame(body, (), body.registers, {}, None, NOTHING)
        self.note(flat.errors)
        self.declare(frame, body.variables)
        try:
            _run(self.emit(frame))
        except TooLong:
            assert self.outermost is not None
            self.not_modelled(
                self.outermost,
                f"with the bodies of its functions in place of their calls the kernel has over"
                f" {MOST_INSTRUCTIONS:,} instructions",
            )
            self.out.clear()
            self.branches.clear()
        if not self.out:
            self.out.append(FlatInstruction(body.instructions[0].span, None, None, ("ret",), ()))
        for index in self.branches:
            self.out[index] = retargeted(self.out[index], self.marks)
        settled = settle(self.out, self.variables.values(), len(self.registers))
        labels = {
            name: self.marks[frame.marks[target]]
            for name, target in body.labels.items()
            if target in frame.marks
        }
        errors = sorted(self.errors.values(), key=lambda one: (one.line, one.column))
        return Expanded(
            FlatBody(
                tuple(settled.instructions),
                (*self.registers, *settled.registers),
                labels,
                tuple(settled.variables),
            ),
            tuple(errors),
            (*self.unsupported, *settled.unsupported),
        )

    # -- messages ----------------------------------------------------------------------------------

    def note(self, errors: Iterable[PtxError]) -> None:
        """Keep errors of a function, which may be called often."""
        for error in errors:
            self.errors.setdefault((error.line, error.column, error.what), error)

    def wrong(self, instruction: FlatInstruction, what: str, hint: str = "") -> None:
        """Keep what is wrong with an instruction."""
        module, span = self.functions.module, instruction.span
        text = module.source.line_text(span.line)
        error = PtxError(
            what, where=module.path, line=span.line, column=span.column, text=text, hint=hint,
            source=SOURCE,
        )  # fmt: skip
        self.note([error])

    def not_modelled(self, call: FlatInstruction, why: str) -> None:
        """Keep why a call is not modelled."""
        self.unsupported[call.span, why] = None

    # -- bodies ------------------------------------------------------------------------------------

    def emit(self, frame: Frame) -> Emission:
        """Emit the body of a frame."""
        body = frame.body
        for target in sorted(set(body.labels.values())):
            frame.marks[target] = self.mark()
        last = len(body.instructions) - 1
        for index, instruction in enumerate(body.instructions):
            if index in frame.marks:
                self.set_mark(frame.marks[index])
            word = instruction.opcode[0]
            if word == "call":
                yield from self.call(frame, instruction)
            elif (
                instruction.opcode in RETURNS and not instruction.operands and frame.end is not None
            ):
                if index < last or instruction.guard is not None:
                    self.jump(frame, instruction)
            else:
                wrong = misuse(instruction, frame.params, frame.signature)
                if wrong:
                    self.wrong(instruction, wrong)
                if frame.end is not None and instruction.opcode[:2] == ("cvta", "param"):
                    self.not_modelled(instruction, PARAMETER_ADDRESS)
                self.append(self.renamed(frame, instruction))
        if last + 1 in frame.marks:
            self.set_mark(frame.marks[last + 1])

    def jump(self, frame: Frame, ret: FlatInstruction) -> None:
        """Emit a branch to where a function returns to."""
        assert frame.end is not None
        guard = None
        if ret.guard is not None:
            guard = (frame.registers[ret.guard[0].index], ret.guard[1])
        opcode = ("bra", *ret.opcode[1:])
        self.append(replace(ret, guard=guard, opcode=opcode, operands=(label_to(frame.end),)))

    # -- calls -------------------------------------------------------------------------------------

    def call(self, frame: Frame, call: FlatInstruction) -> Emission:
        """Emit what a call does."""
        if frame.end is None:
            self.outermost = call
        given = operands_of(call)
        call = self.renamed(frame, call)
        target = operands_of(call).target
        if call.opcode not in CALLS:
            self.wrong(call, f"call has no modifier but .uni, got {call.mnemonic}")
        elif isinstance(target, Register):
            yield from self.indirect(frame, call, target, given)
        elif not isinstance(target, SymbolRef) or target.kind != "function":
            what = "nothing" if target is None else getattr(target, "name", "no name")
            self.wrong(call, f"call needs a function, got {what}", "call (r), f, (a, b)")
        else:
            yield from self.direct(frame, call, target.name, given)

    def direct(
        self, frame: Frame, call: FlatInstruction, name: str, given: CallOperands
    ) -> Emission:
        """Emit a call of a function by its name."""
        name = self.functions.aliases.get(name, name)
        if name not in self.functions.declared:
            self.wrong(call, f"'{name}' of .alias is not declared")
            return
        function = self.functions.definition(name)
        wanted = signature_of(function)
        wrong = ""
        if function.kind == "entry":
            wrong = f"'{name}' is an entry: only a .func can be called"
        if function.body is None and name in RUNTIME:
            wrong = wrong or runtime_problem(name, wanted)
        wrong = wrong or problem(name, wanted, given, frame.params)
        if any(isinstance(one, FlatVector) and one.halves for one in (*given.args, *given.returns)):
            self.not_modelled(
                call,
                "a register of .b128 as an argument or a result is not modelled; two of .b64 are, or a .param variable",
            )
        elif wrong:
            self.wrong(call, wrong)
        elif name in RUNTIME and function.body is None:
            here = operands_of(call)
            yield from self.guarded(call, self.runtime(call, name, here))
        elif function.body is None:
            why = f"function '{name}' has no body in this file; hopsim does not link files"
            self.not_modelled(call, why)
        elif name in frame.chain:
            path = " -> ".join([*frame.chain[frame.chain.index(name) :], name])
            self.not_modelled(call, f"recursion is not modelled: {path}; {INLINE}")
        else:
            here = operands_of(call)
            yield from self.guarded(call, self.body_of(frame, call, function, wanted, here))

    def indirect(
        self, frame: Frame, call: FlatInstruction, pointer: Register, given: CallOperands
    ) -> Emission:
        """Emit a call through a register: a comparison with each function that it may be, and its body."""
        label = given.prototype
        directive = None
        if isinstance(label, SymbolRef) and label.kind == "prototype":
            directive = frame.body.prototypes.get(label.name)
        if directive is None:
            hint = f"call (r), {pointer.name}, (a, b), prototype;"
            what = (
                "a call through a register ends with the label of a .callprototype or .calltargets"
            )
            self.wrong(call, what, hint)
            return
        if pointer.type not in POINTERS:
            self.wrong(
                call,
                f"{pointer.name} is .{pointer.type}, expected the address of a function in .b64",
            )
            return
        try:
            names, wanted = self.functions.candidates(directive)
        except PtxError as error:
            self.note([error])
            return
        for name, one in wanted.items():
            wrong = problem(pointer.name if name == "_" else name, one, given, frame.params)
            if wrong:
                self.wrong(call, wrong)
                return
        here = operands_of(call)
        yield from self.guarded(call, self.dispatch(frame, call, pointer, names, here))

    def dispatch(
        self,
        frame: Frame,
        call: FlatInstruction,
        pointer: Register,
        names: Sequence[str],
        given: CallOperands,
    ) -> Emission:
        """Emit the body of the function whose address is in a register."""
        end = self.mark()
        addresses = function_addresses(self.functions.module)
        for name in names:
            after = self.mark()
            differs = self.register(f"{pointer.name}!={name}", "pred")
            kind = f"b{pointer.width_bits}"
            address = Immediate("int", addresses[name], "")
            self.emit_at(call, ("setp", "ne", kind), differs, pointer, address)
            branch = FlatInstruction(
                call.span, call.loc, (differs, False), ("call",), (label_to(after),)
            )
            self.append(branch)
            if name in frame.chain:
                self.emit_at(call, ("call", "again"))
            else:
                function = self.functions.definition(name)
                yield from self.body_of(frame, call, function, signature_of(function), given)
                self.emit_at(call, ("bra",), label_to(end))
            self.set_mark(after)
        self.emit_at(call, ("call", "nowhere"), pointer)
        self.set_mark(end)

    def runtime(self, call: FlatInstruction, name: str, given: CallOperands) -> Emission:
        """Emit a call of a function that CUDA's device runtime has, which has no body."""
        yield from ()
        results, arguments = RUNTIME[name]
        operands: list[FlatOperand] = []
        for actual, size in zip(given.args, arguments, strict=True):
            if isinstance(actual, SymbolRef):
                between = self.register(f"{actual.name}+0", f"b{size * 8}")
                self.load(call, between, actual.name, 0, size)
                actual = between
            operands.append(actual)
        for actual, size in zip(given.returns, results, strict=True):
            result = actual
            if isinstance(actual, SymbolRef):
                result = self.register(f"{actual.name}+0", f"b{size * 8}")
            self.emit_at(call, ("call", name), result, *operands)
            if isinstance(actual, SymbolRef):
                self.emit_at(
                    call, ("st", "param", f"b{size * 8}"), address_of(actual.name, 0), result
                )
        if not results:
            self.emit_at(call, ("call", name), *operands)

    def guarded(self, call: FlatInstruction, emission: Emission) -> Emission:
        """Emit a call; a guarded one with a branch around it."""
        if call.guard is None:
            yield from emission
            return
        after = self.mark()
        register, negated = call.guard
        self.append(replace(call, guard=(register, not negated), operands=(label_to(after),)))
        yield from emission
        self.set_mark(after)

    def body_of(
        self,
        frame: Frame,
        call: FlatInstruction,
        function: Function,
        wanted: Signature,
        given: CallOperands,
    ) -> Emission:
        """Emit the body of a function, between what hands over its arguments and what takes its results."""
        name = function.name
        self.copies[name] = self.copies.get(name, 0) + 1
        # Functions without instructions of their own grow nothing, but take time.
        self.expansions += 1
        if self.expansions > MOST_INSTRUCTIONS:
            raise TooLong
        flat = self.functions.flat(name)
        self.note(flat.errors)
        registers = self.fresh_registers(flat.body, name)
        inner = Frame(flat.body, (*frame.chain, name), registers, {}, self.mark(), wanted)
        self.declare(inner, flat.body.variables)
        taken = addressed(flat.body, "param")
        for formal, actual in zip(wanted.params, given.args, strict=True):
            own = (
                actual in given.returns or formal.name in taken or not isinstance(actual, SymbolRef)
            )
            self.hand_over(inner, call, formal, actual, own)
        for formal, actual in zip(wanted.returns, given.returns, strict=True):
            if formal.space == "param":
                inner.names[formal.name] = (
                    actual.name if isinstance(actual, SymbolRef) else self.parameter(formal, name)
                )
        yield self.emit(inner)
        assert inner.end is not None
        self.set_mark(inner.end)
        for formal, actual in zip(wanted.returns, given.returns, strict=True):
            self.take(inner, call, formal, actual)


def _run(emission: Emission) -> None:
    """Emit a body and those inside it; chains of calls may be longer than Python's."""
    open_ones = [emission]
    while open_ones:
        inner = next(open_ones[-1], None)
        if inner is None:
            open_ones.pop()
        else:
            open_ones.append(inner)
