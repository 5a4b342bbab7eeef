"""What fields of a hardware configuration are: numbers with units, and tables and lists of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from hopsim.units import Kind


@dataclass(frozen=True)
class Unit:
    """What a field accepts in the file, and the ending of its attribute name.

    Args:
        kinds: the kinds of quantity that will do; a time or a bandwidth is converted with the
            device clock.
        ending: what the attribute name has and the key in the file has not.
        whole: the converted number is rounded to a whole one.
        many: `list` for a list of quantities, `table` for one quantity for each name, else one
            quantity.
        names: of the entries of a table.
    """

    kinds: tuple[Kind, ...]
    ending: str
    whole: bool = True
    many: str = ""
    names: tuple[str, ...] = ()


# The units of instruction forms (`hopsim.isa.forms`) that take an issue slot; a test holds the two
# lists together; `imad_wide` is what ptxas makes of a product and a sum.
ISSUE_UNITS: Final = (
    "alu", "imad", "imad_wide", "uniform", "fp32", "fp16", "fp64", "mufu", "convert", "predicate", "move", "branch",
    "special", "shuffle", "lsu_shared", "lsu_global", "lsu_local", "lsu_const", "atomic",
    "barrier", "cluster_barrier", "mbarrier", "fence",
    "tensor", "tensor_sync", "mma", "matrix_copy", "tma", "tma_sync", "cp_async", "control", "none",
)  # fmt: skip
# Those that are slower while the tensor cores work.
CROWDED_UNITS: Final = ("alu", "imad", "imad_wide", "convert", "predicate", "mufu", "fp32")
# Those that slow the tensor cores; fma is fp32 with three operands.
SLOWING: Final = ("fp32", "fma", "imad_wide")
# PTX instructions that ptxas makes several of: the table of their lengths, and of those whose result is waited for.
SEQUENCES: Final = (
    "div_s32", "div_u32", "rem_s32", "rem_u32", "div_s32_again", "div_u32_again", "rem_s32_again", "rem_u32_again",
    "div_64", "div_f32", "rcp_f32", "sqrt_f32", "div_f64", "div_approx", "div_full", "rcp_approx", "sqrt_approx",
    "rsqrt_approx", "ex2_approx", "lg2_approx", "sin_approx", "div_approx_ftz", "div_full_ftz", "rcp_f64", "sqrt_f64",
    "rsqrt_f64", "extreme_f64", "mul_lo_64", "mul_hi_s64", "mul_hi_u64", "abs_s64", "brev_b64", "clz_b32", "fns",
    "vabsdiff2", "vabsdiff4", "round_tf32", "approx_f16x2", "mbarrier_init", "prefetch_tensormap", "bulk_copy",
)  # fmt: skip
RESULTS: Final = SEQUENCES[:-3]
# PTX's names of the multiplicand types of wgmma and mma.sync.
TENSOR_TYPES: Final = ("f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8")
# Of mma.sync by the type of A: those of several machine instructions, which the assembler makes, and all.
EMULATED_PRODUCTS: Final = (
    "e4m3", "e5m2", "s4", "u4", "b1_xor", "sparse_e4m3", "sparse_e5m2", "sparse_s4", "sparse_u4",
)  # fmt: skip
PRODUCTS: Final = (
    *TENSOR_TYPES, "f64", "s4", "u4", "b1", "b1_xor", *(f"sparse_{kind}" for kind in (*TENSOR_TYPES, "s4", "u4")),
)  # fmt: skip

_TIME: Final[tuple[Kind, ...]] = ("cycles", "seconds")
_RATE: Final[tuple[Kind, ...]] = ("bytes_per_clk", "bytes_per_second")

Count = Annotated[int, Unit(("count",), ""), Field(ge=1)]
Counts = Annotated[
    tuple[Annotated[int, Field(ge=1)], ...], Unit(("count",), "", many="list"), Field(min_length=1)
]
Share = Annotated[float, Unit(("fraction",), "", whole=False), Field(gt=0, le=1)]
Bytes = Annotated[int, Unit(("bytes",), "_bytes"), Field(ge=1)]
Hertz = Annotated[float, Unit(("hertz",), "_hz", whole=False), Field(gt=0)]
Cycles = Annotated[int, Unit(_TIME, "_cycles"), Field(ge=0)]
Interval = Annotated[float, Unit(_TIME, "_cycles", whole=False), Field(ge=0)]
Period = Annotated[float, Unit(_TIME, "_cycles", whole=False), Field(gt=0)]
Rate = Annotated[float, Unit(_RATE, "_bytes_per_clk", whole=False), Field(gt=0)]
Ratio = Annotated[float, Unit(("fraction",), "", whole=False), Field(gt=0)]
Ratios = Annotated[
    tuple[Annotated[float, Field(gt=0)], ...],
    Unit(("fraction",), "", whole=False, many="list"),
    Field(min_length=1),
]
CyclesList = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Unit(_TIME, "_cycles", many="list")]
CyclesTable = Annotated[
    dict[str, Annotated[int, Field(ge=0)]],
    Unit(_TIME, "_cycles", many="table", names=ISSUE_UNITS),
]
IntervalTable = Annotated[
    dict[str, Annotated[float, Field(ge=0)]],
    Unit(_TIME, "_cycles", whole=False, many="table", names=ISSUE_UNITS),
]
CrowdedTable = Annotated[
    dict[str, Annotated[float, Field(ge=0)]],
    Unit(_TIME, "_cycles", whole=False, many="table", names=CROWDED_UNITS),
]
LossTable = Annotated[
    dict[str, Annotated[float, Field(ge=0)]],
    Unit(_TIME, "_cycles", whole=False, many="table", names=SLOWING),
]
SequenceTable = Annotated[
    dict[str, Annotated[int, Field(ge=1)]], Unit(("count",), "", many="table", names=SEQUENCES)
]
ResultTable = Annotated[
    dict[str, Annotated[int, Field(ge=0)]],
    Unit(_TIME, "_cycles", many="table", names=RESULTS),
]
FlopTable = Annotated[
    dict[str, Annotated[float, Field(gt=0)]],
    Unit(("flop_per_clk",), "_flop_per_clk", whole=False, many="table", names=TENSOR_TYPES),
]
ProductTable = Annotated[
    dict[str, Annotated[float, Field(gt=0)]],
    Unit(("flop_per_clk",), "_flop_per_clk", whole=False, many="table", names=PRODUCTS),
]
EmulatedTable = Annotated[
    dict[str, Annotated[float, Field(gt=0)]],
    Unit(("flop_per_clk",), "_flop_per_clk", whole=False, many="table", names=EMULATED_PRODUCTS),
]
LengthTable = Annotated[
    dict[str, Annotated[int, Field(ge=1)]],
    Unit(("count",), "", many="table", names=EMULATED_PRODUCTS),
]


class Group(BaseModel):
    """One table of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def complete(key: str, table: dict[str, int] | dict[str, float], names: tuple[str, ...]) -> None:
    """Refuse a table that lacks names or has others.

    Raises: ValueError: it does.
    """
    missing = [name for name in names if name not in table]
    unknown = [name for name in table if name not in names]
    if missing:
        raise ValueError(f"{key} has no number for: {', '.join(missing)}")
    if unknown:
        raise ValueError(
            f"{key} has a number for unknown {', '.join(unknown)}; known are {', '.join(names)}"
        )
