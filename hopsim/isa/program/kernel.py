"""Modules and kernels as a user sees them: loaded text, entries, parameters, what is not modelled.

    module = loads(text)
    kernel = module["gemm"]
    kernel.params, kernel.shared_bytes, kernel.unsupported

Imports the front end and the forms only; a kernel knows no machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, cast

from hopsim.errors import LaunchError, PtxError
from hopsim.isa.forms.bound import BoundInstruction
from hopsim.isa.program import flow
from hopsim.isa.program.allocation import registers_wanted
from hopsim.isa.program.building import without_collection
from hopsim.isa.program.calls import Expanded, expand
from hopsim.isa.program.codegen import Segment, generate
from hopsim.isa.program.contraction import Contracted, contract
from hopsim.isa.program.deciding import Deciding, deciding
from hopsim.isa.program.decoding import Decoded, decode_body
from hopsim.isa.program.entry_registers import entry_registers
from hopsim.isa.program.functions import Functions
from hopsim.isa.program.limits import too_large
from hopsim.isa.program.pipeline import serialised_by
from hopsim.isa.program.predication import Predicated, predicate
from hopsim.isa.program.symbols import Parameter, Placement, parameters, place
from hopsim.isa.program.wmma import lower
from hopsim.isa.ptx.ast import Block, Directive, Function, PtxModule
from hopsim.isa.ptx.file_text import read_ptx
from hopsim.isa.ptx.flat import FlatBody, Register, SymbolRef
from hopsim.isa.ptx.parser import parse
from hopsim.isa.ptx.scope import Flattened, flatten
from hopsim.isa.ptx.special import GRID_WORKSPACE
from hopsim.isa.wmma import SOURCE as WMMA


class Examined(NamedTuple):
    """What a kernel's text has.

    Args:
        instructions: that hopsim models.
        unsupported: (line, text, why) of those that it does not.
        errors: what is wrong, by line.
    """

    instructions: int
    unsupported: tuple[tuple[int, str, str], ...]
    errors: tuple[PtxError, ...]


class Kernel:
    """One `.entry` of a module."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module = module
        self.function = function
        self.name = function.name
        self._programs: dict[bool, list[Segment]] = {}

    def __repr__(self) -> str:
        return f"<Kernel {self.name} of {self.module.path}>"

    def __getstate__(self) -> dict[str, object]:
        """Return what the text says: compiled functions are not pickled, and what is made of the text is made again."""
        return {
            "module": self.module,
            "function": self.function,
            "name": self.name,
            "_programs": {},
        }

    # -- what the text says ------------------------------------------------------------------------

    @cached_property
    def params(self) -> tuple[Parameter, ...]:
        """The parameters in order."""
        return tuple(parameters(self.function)[0])

    @property
    def param_bytes(self) -> int:
        """Size of the parameter space."""
        return parameters(self.function)[1]

    @cached_property
    def _expanded(self) -> Expanded:
        expanded = expand(flatten(self.function, self.module.tree), self.module.functions)
        body, wrong = lower(expanded.body)
        errors = [
            PtxError(
                what, where=self.module.path, line=one.span.line, column=one.span.column,
                text=self.module.lines[one.span.line - 1], hint=hint, source=WMMA,
            )
            for one, what, hint in wrong
        ]  # fmt: skip
        return expanded._replace(body=body, errors=(*expanded.errors, *errors))

    @property
    def body(self) -> FlatBody:
        """The body with all names resolved; functions and what `wmma` is made of stand in their places.

        Raises: PtxError: the first, where names or calls are wrong.
        """
        body, errors, _ = self._expanded
        return Flattened(body, errors).right()

    @cached_property
    def placement(self) -> Placement:
        """Where its variables lie."""
        return place(self.function, self._expanded.body, self.module.tree)

    @property
    def shared_bytes(self) -> int:
        """Static shared memory in bytes; dynamic memory is a launch attribute."""
        return self.placement.shared_static_bytes

    def directive(self, name: str) -> tuple[int, ...] | None:
        """Return the numbers of a performance directive (`reqntid`, `maxnreg`, ...), or None."""
        for key, values in self.function.directives:
            if key == name:
                return values
        return None

    @property
    def has_register_bound(self) -> bool:
        """Whether the entry bounds its threads or their registers."""
        return any(self.directive(name) is not None for name in ("reqntid", "maxntid", "maxnreg"))

    @cached_property
    def entry_registers(self) -> int | None:
        """Registers of a thread at entry by its directives; None where ptxas does not know them and ignores `setmaxnreg`."""
        return entry_registers(self.function.directives, self.instructions)

    @cached_property
    def kept_loops(self) -> tuple[int, ...]:
        """Lines of `.pragma "nounroll"`, each at the head of a loop that ptxas leaves as it is."""
        body = self.function.body
        return () if body is None else tuple(_kept_loops(body))

    @cached_property
    def syncs_grid(self) -> bool:
        """Whether it reads where the CTAs of a cooperative launch meet (`this_grid().sync()`)."""
        return any(
            isinstance(operand, SymbolRef) and operand.name in GRID_WORKSPACE
            for instruction in self.body.instructions
            for operand in instruction.operands
        )

    # -- what hopsim makes of it -------------------------------------------------------------------

    @cached_property
    @without_collection()
    def _decoded(self) -> Decoded:
        module = self.module
        sizes = too_large(self.function, self.placement, module.tree)
        return decode_body(self._expanded, sizes, module.tree, module.lines)

    @property
    def errors(self) -> list[PtxError]:
        """All names, sizes and instructions that are wrong, by line; empty when none is.

        Raises: PtxError: a name of the module is defined twice.
        """
        return list(self._decoded.errors)

    @property
    def unsupported(self) -> list[tuple[int, str, str]]:
        """(line, text, why) of everything that is not modelled; empty when all is.

        Raises: PtxError: the first, where the text is wrong; `examined` has both.
        """
        return list(self._decoded.right().unsupported)

    @property
    def examined(self) -> Examined:
        """What is wrong, and what of the rest is not modelled."""
        bound, unsupported, errors = self._decoded
        return Examined(len(bound), unsupported, errors)

    @cached_property
    def _contracted(self) -> Contracted:
        body, bound = self.body, self._decoded.modelled(self.name, self.module.path)
        if "debug" in self.module.tree.target:
            # ptxas optimises nothing then (-O0).
            return Contracted(bound, frozenset(body.labels.values()), ())
        return contract(bound, body.labels.values(), body.carry)

    @cached_property
    def _predicated(self) -> Predicated:
        instructions, labels, _ = self._contracted
        if "debug" in self.module.tree.target:
            return Predicated(instructions, labels)
        return predicate(instructions, labels)

    @property
    def instructions(self) -> tuple[BoundInstruction, ...]:
        """The body, bound to its forms, with products in sums and guards for branches where ptxas has them.

        Raises: NotModelled when some instruction is not modelled, listing all of them; PtxError when one is wrong.
        """
        return self._predicated.instructions

    @cached_property
    def plans(self) -> list[flow.SegmentPlan]:
        """The segments of the body."""
        targets = set(self._predicated.labels)
        for bound in self.instructions:
            targets |= {label.target for label in bound.targets}
        return flow.segments(self.instructions, targets)

    @cached_property
    def _live(self) -> list[int]:
        return flow.live_registers(self.instructions, self.plans)

    @cached_property
    def registers(self) -> tuple[Register, ...]:
        """The virtual registers; behind those of the text CC.CF where carries are used, and what no text names."""
        named, carry = self.body.registers, self.body.carry
        if self._contracted.registers:
            return (*named, carry, *self._contracted.registers)
        if any(carry.index in bound.reads | bound.writes for bound in self.instructions):
            return (*named, carry)
        return named

    @cached_property
    def register_widths(self) -> list[int]:
        """Width in bits of each virtual register (1: predicate)."""
        return [register.width_bits for register in self.registers]

    @cached_property
    def registers_wanted(self) -> int:
        """How many registers ptxas is taken to give a thread where nothing bounds them."""
        return registers_wanted(self.instructions, self.plans, self._live, self.register_widths)

    @cached_property
    def deciding(self) -> Deciding:
        """What a `values=False` run computes all the same."""
        return deciding(self.instructions, self.plans)

    @property
    def branches_not_taken(self) -> list[BoundInstruction]:
        """Branches on data over computations, which a `values=False` run does not take."""
        return [self.instructions[index] for index in sorted(self.deciding.not_taken)]

    @cached_property
    def serialised_wgmma(self) -> list[BoundInstruction]:
        """Definitions for which ptxas serialises the wgmma of this kernel (C7515); empty when it keeps them asynchronous."""
        return serialised_by(self.instructions, self.plans)

    def program(self, values: bool) -> list[Segment]:
        """Return the compiled segments, made on first use."""
        segments = self._programs.get(values)
        if segments is None:
            body = self.instructions
            joins = flow.meeting_points(self.plans)
            held = flow.borrowed_registers(body)
            live = [mask | held for mask in self._live]
            segments = generate(
                body,
                self.plans,
                joins,
                live,
                self.placement.offsets,
                self.deciding,
                values,
                bool(self.serialised_wgmma),
            )
            self._programs[values] = segments
        return segments


class Module:
    """A loaded PTX text: a mapping from entry names to kernels."""

    def __init__(self, tree: PtxModule) -> None:
        self.tree = tree
        self.path = tree.path
        self._kernels = {
            item.name: Kernel(self, item)
            for item in tree.items
            if isinstance(item, Function) and item.kind == "entry" and item.body is not None
        }

    def __repr__(self) -> str:
        return f"<Module {self.path}: {', '.join(self._kernels) or 'no entry'}>"

    def __getstate__(self) -> dict[str, object]:
        """Return the text and its kernels, without what is made of them."""
        return {"tree": self.tree, "path": self.path, "_kernels": self._kernels}

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text."""
        return self.tree.text.splitlines()

    @cached_property
    def functions(self) -> Functions:
        """What its kernels may call."""
        return Functions(self.tree)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.tree.text.encode()).hexdigest()

    def __getitem__(self, name: str) -> Kernel:
        try:
            return self._kernels[name]
        except KeyError:
            names = ", ".join(self._kernels) or "none"
            raise LaunchError(
                f"there is no entry {name!r} in {self.path}", hint=f"its entries are: {names}"
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)


@without_collection()
def loads(text: str, path: str = "<ptx>") -> Module:
    """Load PTX from a string.

    Raises: PtxError when the text is wrong.
    """
    if not isinstance(cast("object", text), str):
        raise PtxError(
            f"expected PTX text, got {type(text).__name__}",
            hint="text.decode() for bytes; hopsim.load() takes the path of a file",
        )
    return Module(parse(text, path))


def load(path: str | Path) -> Module:
    """Load PTX from a file.

    Raises: PtxError when the file cannot be read or its text is wrong.
    """
    if not isinstance(cast("object", path), str | Path):
        raise PtxError(
            f"expected the path of a file, got {type(path).__name__}",
            hint='hopsim.load("kernel.ptx"); hopsim.loads() takes text',
        )
    if isinstance(path, str) and "\n" in path:
        raise PtxError(
            "expected the path of a file, got PTX text", hint="hopsim.loads() takes text"
        )
    return loads(read_ptx(path), str(path))


def _kept_loops(block: Block) -> Iterator[int]:
    """Give the lines of `.pragma "nounroll"` in a body."""
    for one in block.statements:
        if isinstance(one, Block):
            yield from _kept_loops(one)
        elif isinstance(one, Directive) and one.name == "pragma" and "nounroll" in one.text:
            yield one.span.line
