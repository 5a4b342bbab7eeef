"""Probes of every scalar instruction: all spellings of all declared forms, on telling and on random operands.

One thread is one set of operands; a kernel runs some dozens of instructions on the same sets and stores every result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hopsim.isa.catalog import FORMS
from hopsim.isa.types import TYPES
from hopsim.kernels.probes.bits import operands
from hopsim.kernels.probes.probe import Probe
from hopsim.kernels.probes.spelling import TABLES, Line, is_scalar, slots_of, spell
from hopsim.kernels.ptx.text import Param, PtxEntry, Reg, address, module_text

THREADS = 384
LINES_A_KERNEL = 48

# Left out: they move no data (branches), are covered by others, or take hopsim's own state words.
_NO_DATA = frozenset({"bra", "ret", "exit", "mbarrier.pending_count.b64", "mov"})
_FACTORS = frozenset({"mul24", "mad24", "oob"})
_APPROXIMATE = frozenset({"approx", "full"})


def _is_wanted(line: Line, joined: bool) -> bool:
    words = line.opcode.split(".")
    if _APPROXIMATE & set(words):
        return False
    # Joining with a predicate is one gate behind the comparison: three types stand for all.
    return not joined or words[-1] in ("u32", "f32", "f16")


def lines() -> Iterator[Line]:
    """Give every spelling that is probed, those of `factors` too; approximate functions are left out."""
    for form in FORMS:
        if form.name in _NO_DATA or not is_scalar(form):
            continue
        for slots in slots_of(form):
            for table in TABLES if form.base[0] == "lop3" else TABLES[:1]:
                line = spell(form, slots, table)
                if _is_wanted(line, bool(slots.get("join"))):
                    yield line


def is_of_factors(line: Line) -> bool:
    """Whether a spelling is probed in the group `factors`."""
    return not _FACTORS.isdisjoint(line.opcode.split("."))


def _group_name(line: Line) -> str:
    word = line.opcode.partition(".")[0]
    return word if word in ("cvt", "set", "setp") else "alu"


def probes() -> list[Probe]:
    """Return all scalar probes."""
    groups: dict[str, list[Line]] = {}
    for line in lines():
        if not is_of_factors(line):
            groups.setdefault(_group_name(line), []).append(line)
    made: list[Probe] = []
    for group, members in groups.items():
        for number, start in enumerate(range(0, len(members), LINES_A_KERNEL)):
            chosen = members[start : start + LINES_A_KERNEL]
            made.append(scalar_probe(f"scalar.{group}{number}", chosen))
    made.append(_carry_probe())
    return made


def _key(name: str, position: int, alone: bool) -> tuple[str, int | None]:
    return name, None if alone else position


_RESULT = {1: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
_REGISTER = {1: ".pred", 16: ".b16", 32: ".b32", 64: ".b64"}


def _width(result_bits: int) -> int:
    """Return the bits of the register that holds a result."""
    return 16 if result_bits == 8 else result_bits


def scalar_probe(name: str, chosen: Sequence[Line]) -> Probe:
    """Return the probe that runs some lines; output `bits32` has a row for each 32-bit result, and so on."""
    sets: dict[tuple[str, int | None], int] = {}
    rows: dict[int, list[str]] = {}
    for line in chosen:
        for position, kind in enumerate(line.sources):
            sets.setdefault(_key(kind, position, len(line.sources) == 1), len(sets))
        for bits in line.results:
            rows.setdefault(_width(bits), []).append(line.opcode)
    return Probe(
        name,
        _kernel(chosen, sets, list(rows)),
        "scalar",
        grid=1,
        block=THREADS,
        inputs={
            "operands": np.stack([operands(kind, position, THREADS) for kind, position in sets])
        },
        outputs={
            f"bits{width}": ((len(names), THREADS), _RESULT[width]) for width, names in rows.items()
        },
        labels={f"bits{width}": tuple(names) for width, names in rows.items()},
    )


def _kernel(
    chosen: Sequence[Line], sets: dict[tuple[str, int | None], int], widths: Sequence[int]
) -> str:
    outputs = [Param(f"bits{width}", ".u64") for width in widths]
    k = PtxEntry("scalar", [Param("operands", ".u64"), *outputs], [])
    thread = k.let(".b32", "thread", "mov.u32", "%tid.x")
    source = k.let(".b64", "operands", "ld.param.u64", "[operands]")
    k.emit("mad.wide.u32", source, thread, 8, source)
    places: dict[int, Reg] = {}
    for width in widths:
        places[width] = k.let(".b64", f"bits{width}", "ld.param.u64", f"[bits{width}]")
        k.emit("mad.wide.u32", places[width], thread, max(width // 8, 1), places[width])
    values: dict[tuple[str, int | None], Reg] = {}
    for (kind, position), row in sets.items():
        k.comment(f"{kind}, operand {'alone' if position is None else position}")
        word = k.let(".b64", "word", "ld.global.u64", address(source, row * THREADS * 8))
        values[kind, position] = _narrow(k, word, kind)
    stored = dict.fromkeys(widths, 0)
    for line in chosen:
        k.comment(line.opcode)
        alone = len(line.sources) == 1
        found = [values[_key(kind, position, alone)] for position, kind in enumerate(line.sources)]
        results = [k.reg(_REGISTER[_width(bits)], "d") for bits in line.results]
        registers = {f"s{i}": reg for i, reg in enumerate(found)} | {
            f"d{i}": reg for i, reg in enumerate(results)
        }
        for text in line.text.format(**registers).splitlines():
            opcode, _, rest = text.strip().removesuffix(";").partition(" ")
            k.emit(opcode, rest)
        for bits, result in zip(line.results, results, strict=True):
            width = _width(bits)
            size = max(width // 8, 1)
            where = address(places[width], stored[width] * THREADS * size)
            stored[width] += 1
            if width == 1:
                result = k.let(".b32", "flag", "selp.b32", 1, 0, result)
            k.emit(f"st.global.b{8 * size}", where, result)
    k.emit("ret")
    return module_text(k, "shared_memory")


def _narrow(k: PtxEntry, word: Reg, kind: str) -> Reg:
    """Return the register of an operand, cut out of a 64-bit word."""
    if kind == "pred":
        low = k.let(".b32", "low", "cvt.u32.u64", word)
        return k.let(".pred", "p", "setp.ne.u32", low, 0)
    width = 32 if kind == "shift" else TYPES[kind].width_bits
    if width == 64:
        return word
    size = max(width, 16)
    return k.let(f".b{size}", "s", f"cvt.u{size}.u64", word)


def _carry_probe() -> Probe:
    """Return the probe of chains with a carry, for every type."""
    chosen: list[Line] = []
    for t in ("u32", "s32", "u64", "s64"):
        for steps in (
            ("add.cc {d0}, {s0}, {s1};", "addc.cc {d1}, {s1}, {s2};", "addc {d2}, {s0}, {s2};"),
            ("sub.cc {d0}, {s0}, {s1};", "subc.cc {d1}, {s1}, {s2};", "subc {d2}, {s0}, {s2};"),
            ("mad.lo.cc {d0}, {s0}, {s1}, {s2};",
             "madc.hi.cc {d1}, {s0}, {s1}, {s2};", "madc.lo {d2}, {s1}, {s2}, {s0};"),
            ("mad.hi.cc {d0}, {s0}, {s1}, {s2};",
             "madc.lo.cc {d1}, {s0}, {s1}, {s2};", "madc.hi {d2}, {s1}, {s2}, {s0};"),
        ):  # fmt: skip
            text = "\n".join(step.replace(" ", f".{t} ", 1) for step in steps)
            opcode = " ".join(step.partition(" ")[0] for step in steps)
            chosen.append(Line(f"{opcode} .{t}", text, (t, t, t), (int(t[1:]),) * 3))
    return scalar_probe("scalar.carry", chosen)
