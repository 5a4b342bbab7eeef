"""What an operand may be, once its shape fits: types of registers, special registers, immediates, variables.

What ptxas refuses is refused here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hopsim.errors import NotModelled
from hopsim.isa.forms.bound import Arg, MissingArg
from hopsim.isa.forms.form import Form, OperandSpec
from hopsim.isa.ptx.ast import Immediate, Sink
from hopsim.isa.ptx.flat import FlatOperand, Register, SymbolRef
from hopsim.isa.ptx.special import has_components, is_modelled, widths_of
from hopsim.isa.types import TYPES, WIDEST_BITS, ScalarType

INTEGERS = frozenset({"signed", "unsigned"})
"""Kinds that stand for each other."""
PAIRS_OF_INTEGERS = frozenset({"u16x2", "s16x2"})
WHOLE = INTEGERS | {"bits"}
"""Kinds that are no floats."""
SPACES = frozenset({"shared", "global", "const", "local", "param"})
GENERIC = frozenset({"shared", "global", "local"})
"""Spaces of which a variable's name is a generic address too (ptxas 13.0)."""
ONE_SPACE = {"mbarrier": "shared", "prefetchu": "global"}
"""Where variables lie that these take without the name of a space (ptxas 13.0)."""
TAKE_ADDRESSES = frozenset({"mov", "cvta", "mapa", "getctarank"})
"""What takes the address of a variable as a value; all else needs it in a register (ptxas 13.0)."""
WIDE = frozenset({"ld", "st", "atom", "red", "prefetch", "mbarrier"})
"""What ptxas 13.0 gives no 32-bit address outside of `NARROW` spaces."""
THROW_AWAY = frozenset({"atom", "call", "lop3", "setp"})
ARRIVALS = (("mbarrier", "arrive"), ("mbarrier", "arrive_drop"))
"""These and `THROW_AWAY` may have `_` for their result (ptxas 13.0)."""
KEPT = {"shfl": 0, "elect": 1}
"""The half of a pair that cannot be `_`; of others one of the two must be kept (ptxas 13.0)."""
NARROW = ("shared", "local", "const", "param", "tensormap")


class Mismatch(Exception):
    """Operands do not fit this form; another form may.

    Of what several forms say the one that came nearest is told: `nearness`.
    """

    nearness = 1


class OtherCount(Mismatch):
    """There are more or fewer operands than the form has."""

    nearness = 0


class Disagreement(Mismatch):
    """Operands fit the form one by one, and not together."""

    nearness = 2


def part_bits(kind: ScalarType) -> int:
    """Return how many bits of an operand of some type one register holds: a register of `.b128` is two."""
    return min(kind.width_bits, WIDEST_BITS)


def check_register(spec: OperandSpec, kind: ScalarType, register: Register) -> None:
    """Check the declared type of a register against that of an operand.

    Raises: Mismatch.
    """
    declared = TYPES[register.type]
    if _clash(kind, declared) or (kind.name == "b128") != (register.type == "b128"):
        raise Mismatch(
            f"operand {spec.name} is .{kind.name}, but register {register.name} is .{register.type}"
        )
    if register.width_bits == part_bits(kind):
        return
    if spec.relaxed and register.width_bits > kind.width_bits and register.type != "pred":
        return
    raise Mismatch(
        f"operand {spec.name} is .{kind.name} ({kind.width_bits} bits), "
        f"but register {register.name} is .{register.type} ({register.width_bits} bits)"
    )


def check_wide(slots: dict[str, str], halves: tuple[Register, ...]) -> None:
    """Check that a load does not fill a register of 128 bits from one word.

    Raises: NotModelled.
    """
    if halves:
        raise NotModelled(
            f"{halves[0].name.removesuffix('.lo')} of .b128 filled by .{slots['t']} is not modelled; load into .b64"
        )


def _clash(kind: ScalarType, declared: ScalarType) -> bool:
    """Whether a register of a declared type cannot be an operand of some type, whatever their widths.

    Bits stand for everything, integers of any sign for each other; a float or a pair for itself alone, so that what is
    only a type of operands (`.bf16`, `.tf32`) lies in bits.  ptxas takes a register of `.f16x2` for an integer too.

    Source: PTX ISA 8.7 "Operand Type Checking"; ptxas 13.0 refuses these.
    """
    if "bits" in (kind.kind, declared.kind):
        return kind.name == "tf32" and declared.kind != "bits"
    if kind.kind in INTEGERS or (kind.name in PAIRS_OF_INTEGERS and declared.kind == "packed"):
        return declared.kind not in (*INTEGERS, "packed")
    return kind.name != declared.name


_NO_VARIABLES: Final = {
    "special": "a special register, which is read by mov and cvt",
    "prototype": "the label of a prototype",
    "function": "a function",
}


def check_addressed(spec: OperandSpec, symbol: SymbolRef) -> None:
    """Check whether a name is one of memory; ptxas 13.0 takes some special registers, which PTX has for no address.

    Raises: Mismatch: it is none.
    """
    check_part(symbol)
    if symbol.kind in _NO_VARIABLES:
        raise Mismatch(
            f"address {spec.name} is {symbol.name}, {_NO_VARIABLES[symbol.kind]}: expected a register or a variable"
        )


def check_special(
    form: Form, slots: dict[str, str], spec: OperandSpec, kind: ScalarType, name: str
) -> None:
    """Check whether an instruction may read a special register as an operand of some type.

    Raises: Mismatch; NotModelled: no machine of hopsim has it.
    """
    stem, _, component = name.partition(".")
    if not is_modelled(stem):
        raise NotModelled(f"special register {name} is not modelled")
    if has_components(stem) and not component:
        raise Mismatch(f"special register {name} needs a component: {name}.x, .y or .z")
    first = form.base[0]
    kinds = (TYPES[word].kind for word in slots.values() if word in TYPES)
    if first != "mov" and (first != "cvt" or "float" in kinds):
        raise Mismatch(
            f"operand {spec.name} is special register {name}, which only mov and cvt of integers read"
        )
    check_width(form, spec, kind, name)


def check_width(form: Form, spec: OperandSpec, kind: ScalarType, name: str) -> None:
    """Check whether a special register has the width of an operand; `cvt` reads the low bits of one too.

    Raises: Mismatch.
    """
    widths = widths_of(name.partition(".")[0])
    fits = kind.width_bits in widths or (
        form.base[0] == "cvt" and 1 < kind.width_bits < max(widths)
    )
    if not fits or kind.kind == "float":
        kinds = " or ".join(f".u{width}" if width > 1 else ".pred" for width in widths)
        raise Mismatch(
            f"operand {spec.name} is .{kind.name}, but special register {name} is {kinds}"
        )


def space_problem(opcode: Sequence[str], name: str, number: int, symbol: SymbolRef) -> str:
    """Say what is wrong with the space of a variable that an address names, or return the empty string.

    Of what a copy names two of, the first is that of the first address; its mbarrier lies in shared memory.

    Args:
        name: of the operand.  number: how many addresses stand before it.
    """
    if symbol.kind not in SPACES or opcode[0] == "fence":
        return ""
    spaces = [stem for word in opcode[1:] if (stem := word.partition("::")[0]) in SPACES]
    if not spaces and opcode[0] not in ONE_SPACE:
        is_generic = symbol.kind in GENERIC
        what = f"{symbol.name} is a .{symbol.kind} variable, expected a generic address"
        return "" if is_generic else what
    spaces = spaces or [ONE_SPACE[opcode[0]]]
    return _other_space(name, spaces[number] if number < len(spaces) else "shared", symbol)


def _other_space(name: str, space: str, symbol: SymbolRef) -> str:
    if symbol.kind in ("function", space):
        return ""
    return f"operand {name} is in .{space}, but {symbol.name} is a .{symbol.kind} variable"


def check_variable(form: Form, slots: dict[str, str], spec: OperandSpec, symbol: SymbolRef) -> None:
    """Check whether an instruction takes the address of a variable as a value.

    Raises: Mismatch.
    """
    if symbol.kind == "function" and symbol.offset:
        raise Mismatch(
            f"operand {spec.name} is an offset to function {symbol.name}, which has no parts"
        )
    first = form.base[0]
    if first not in TAKE_ADDRESSES or "to" in (*form.base, *form.required, *slots.values()):
        raise Mismatch(
            f"operand {spec.name} must be a register; mov takes the address of {symbol.name} into one"
        )
    if first != "mov":
        space = slots["space"].partition("::")[0] or "shared"
        if wrong := _other_space(spec.name, space, symbol):
            raise Mismatch(wrong)


def check_part(operand: FlatOperand) -> None:
    """Check that an operand is no part of a register, as video instructions take them, and no element found by a register.

    Raises: NotModelled.
    """
    if isinstance(operand, SymbolRef) and operand.kind == "part":
        raise NotModelled(f"part {operand.name} of a register is not modelled")
    if isinstance(operand, SymbolRef) and operand.kind == "element":
        raise NotModelled(
            f"{operand.name}, an index in a register, is not modelled; compute the address in a register"
        )


def check_policy(slots: dict[str, str], names: Sequence[str], args: Sequence[Arg]) -> None:
    """Check that a cache policy is there where the opcode announces one, and only there.

    Raises: Mismatch.
    """
    if "hint" not in slots or "policy" not in names:
        return
    is_given = not isinstance(args[names.index("policy")], MissingArg)
    if slots["hint"] and not is_given:
        raise Mismatch(f".{slots['hint']} needs a cache policy as its last operand, got none")
    if is_given and not slots["hint"]:
        raise Mismatch("a cache policy as the last operand needs .L2::cache_hint in the opcode")


def check_sink(form: Form, spec: OperandSpec) -> None:
    """Check whether an instruction may throw its whole result away.

    Raises: Mismatch.
    """
    if form.base[0] not in THROW_AWAY and form.base[:2] not in ARRIVALS:
        raise Mismatch(f"operand {spec.name} is '_': {form.base[0]} cannot throw its result away")


def check_sinks(form: Form, spec: OperandSpec, items: Sequence[FlatOperand]) -> None:
    """Check which parts of a pair or a vector an instruction may throw away.

    Raises: Mismatch.
    """
    sinks = [isinstance(item, Sink) for item in items]
    if all(sinks):
        raise Mismatch(f"operand {spec.name} throws all of its result away: one part must be kept")
    for number, name in enumerate(("first", "second")):
        if KEPT.get(form.base[0]) == number and sinks[number]:
            raise Mismatch(f"operand {spec.name} throws its {name} half away, which must be kept")


def check_place(opcode: Sequence[str], literal: Immediate) -> None:
    """Check whether a number may be an address: an integer only, and only in local memory (ptxas 13.0).

    Raises: Mismatch.
    """
    if literal.kind != "int":
        raise Mismatch(f"an address is an integer, got {literal.text}")
    if "local" not in opcode:
        raise Mismatch("a number is an address in .local only; mov puts it into a register")


def check_address(opcode: Sequence[str], spec: OperandSpec, register: Register) -> None:
    """Check whether a register may be an address: it is no float, and one in global memory or of no named space has 64 bits.

    Of a tensor map ptxas (13.0) takes its address in a float too.

    Raises: Mismatch.
    """
    is_map = spec.shape == "tensor" or opcode[0] == "fence"
    if TYPES[register.type].kind not in WHOLE and not is_map:
        raise Mismatch(
            f"address register {register.name} is .{register.type}, expected an integer or bits"
        )
    is_narrow = any(word.startswith(NARROW) for word in opcode)
    if register.width_bits == 32 and opcode[0] in WIDE and not is_narrow:
        raise Mismatch(
            f"address register {register.name} is 32 bits wide; "
            "only addresses in .shared, .local, .const and .param may be"
        )


def integer_problem(slots: dict[str, str], operands: Sequence[FlatOperand]) -> str:
    """Say which operand of an instruction that names bits is none but a float all the same."""
    del slots
    for operand in operands:
        if isinstance(operand, Register) and TYPES[operand.type].kind not in WHOLE:
            return f"register {operand.name} is .{operand.type}, expected an integer or bits"
    return ""


def names_shared_alone(opcode: Sequence[str]) -> bool:
    """Whether all addresses of an instruction are in shared memory.

    Source: PTX ISA 8.7, "ld": addresses are truncated where a register is wider than those of the state space.
    """
    return any(word.startswith("shared") for word in opcode) and "global" not in opcode


def arrival_problem(slots: dict[str, str], operands: Sequence[FlatOperand]) -> str:
    """Say what is wrong with the operands of an `mbarrier.arrive` together."""
    extra = slots.get("tx") or slots.get("nocomplete")
    if extra and len(operands) < 3:
        return f".{extra} needs a count as its third operand"
    if slots.get("space") == "shared::cluster" and not isinstance(operands[0], Sink):
        return "an arrival at .shared::cluster returns no state; write _ as the destination"
    return ""


def copied_problem(slots: dict[str, str], operands: Sequence[FlatOperand]) -> str:
    """Say what is wrong with the operands of a `cp.async` together."""
    del slots
    written, read = operands[2], operands[3] if len(operands) > 3 else None
    if (
        isinstance(written, Immediate)
        and isinstance(read, Immediate)
        and read.value > written.value
    ):
        return f"operand s is {read.value}, expected at most the {written.value} bytes that are written"
    return ""


def check_limit(form: Form, spec: OperandSpec, literal: Immediate) -> None:
    """Check whether an immediate has one of the values that a form takes.

    Raises: Mismatch.
    """
    allowed = form.limits.get(spec.name)
    if allowed is not None and literal.value not in allowed:
        raise Mismatch(f"operand {spec.name} is {literal.value}, expected {_in_words(allowed)}")


def _in_words(allowed: Sequence[int]) -> str:
    """Describe the values that an immediate may have.

    >>> _in_words(range(16)), _in_words(range(32, 1025, 32)), _in_words((4, 8, 16))
    ('0 to 15', 'a multiple of 32 from 32 to 1024', '4, 8 or 16')
    """
    if isinstance(allowed, range):
        step = f"a multiple of {allowed.step} from " if allowed.step > 1 else ""
        return f"{step}{allowed[0]} to {allowed[-1]}"
    *others, last = (str(value) for value in allowed)
    return f"{', '.join(others)} or {last}" if others else last


def literal_bits(kind: ScalarType, literal: Immediate) -> int | bool:
    """Return the raw bits of a literal as a value of some type.

    Raises: Mismatch.
    """
    if kind.kind == "pred":
        return literal.value != 0
    value = literal.value
    if literal.kind != "int" and kind.kind in ("signed", "unsigned"):
        raise Mismatch(f"a float literal where .{kind.name} is expected")
    if kind.kind == "packed":
        raise Mismatch(
            f"a literal where .{kind.name} is expected; mov.b32 puts one into a register"
        )
    if literal.kind == "int":
        if kind.kind == "float":
            raise Mismatch(
                f"an integer literal where .{kind.name} is expected; write 0f3F800000 or 0d..."
            )
        # PTX truncates wide literals silently (they are 64-bit constants).
        return value & kind.mask
    wanted = {"f32": 32, "f64": 64}[literal.kind]
    if wanted == kind.width_bits:
        return value
    if kind.name == "f32":
        # PTX reads decimal floats in double precision and converts to the type of the instruction.
        return _reread(value, np.uint64, np.float64, np.float32)
    if kind.name == "f64":
        return _reread(value, np.uint32, np.float32, np.float64)
    raise Mismatch(f"a {wanted}-bit float literal where .{kind.name} is expected")


def _reread(bits: int, held: type[Any], from_: type[Any], to: type[Any]) -> int:
    """Return the bits of a float converted to another type; what is too large becomes infinite."""
    with np.errstate(over="ignore"):
        number = np.array([bits], held).view(from_).astype(to)
    return int.from_bytes(number.tobytes(), "little")
