"""What a GEMM computes: sizes, element types, and the rules that TMA sets for them.

C[M,N] = A[M,K] B[N,K]^T with C row-major.  A and B are row-major as written here (K-major: k is
contiguous), or lie transposed in memory as (K, M) and (K, N) (MN-major).
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.errors import LaunchError
from hopsim.launch.given import whole_number
from hopsim.layout.descriptor import Major

_TMA_SOURCE = "CUDA driver API 13.0, cuTensorMapEncodeTiled"


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type of A, B or C.

    Args:
        name: the name used in this package.
        ptx: its name as a PTX type, without the dot.
        size: bytes of one element.
    """

    name: str
    ptx: str
    size: int

    @property
    def sum_ptx(self) -> str:
        """PTX type of the sums of its products: s32 for integers, f32 otherwise."""
        return "s32" if self.ptx in ("s8", "s32") else "f32"


_TYPES = {
    "bf16": ElementType("bf16", "bf16", 2),
    "fp16": ElementType("fp16", "f16", 2),
    "e4m3": ElementType("e4m3", "e4m3", 1),
    "tf32": ElementType("tf32", "tf32", 4),
    "int8": ElementType("int8", "s8", 1),
    "f32": ElementType("f32", "f32", 4),
    "s32": ElementType("s32", "s32", 4),
}
_ALIASES = {"f16": "fp16", "fp32": "f32"}
INPUT_TYPES = ("bf16", "fp16", "e4m3", "tf32", "int8")
OUTPUT_TYPES = ("bf16", "fp16", "f32", "s32")
_DEFAULT_OUTPUT = {"bf16": "bf16", "fp16": "fp16", "e4m3": "bf16", "tf32": "f32", "int8": "s32"}


def element_type(name: str) -> ElementType:
    """Return the element type called `name` (PTX's `f16` is also understood).

    Raises: LaunchError: there is no such type here.
    """
    found = _TYPES.get(_ALIASES.get(name, name))
    if found is None:
        raise LaunchError(
            f"element type must be one of {', '.join(_TYPES)}, got {name!r}",
            where="GemmProblem",
        )
    return found


@dataclass(frozen=True, slots=True)
class GemmProblem:
    """One matrix product.

    Args:
        m, n, k: sizes in elements.
        dtype: element type of A and B: bf16, fp16, e4m3 or tf32 with sums in f32; int8 with s32.
            tf32 is f32 in memory, of which the tensor core drops the low 13 bits.
        out_dtype: element type of C; by default that of A, bf16 for e4m3, f32 for tf32.  The sums
            of int8 are stored as they are.
        a_major, b_major: "K" for (m, k) and (n, k) in memory, "MN" for (k, m) and (k, n).

    Raises: LaunchError: a size is not positive, a type is not offered, TMA cannot address a row, or
        wgmma cannot take the type MN-major.
    """

    m: int
    n: int
    k: int
    dtype: str = "bf16"
    out_dtype: str = ""
    a_major: Major = "K"
    b_major: Major = "K"

    def __post_init__(self) -> None:
        dtype = element_type(self.dtype)
        out = element_type(self.out_dtype or _DEFAULT_OUTPUT.get(dtype.name, dtype.name))
        object.__setattr__(self, "dtype", dtype.name)
        object.__setattr__(self, "out_dtype", out.name)
        for role, got, allowed in (
            ("dtype", dtype.name, INPUT_TYPES),
            ("out_dtype", out.name, OUTPUT_TYPES),
        ):
            if got not in allowed:
                raise LaunchError(
                    f"{role} must be one of {', '.join(allowed)}, got {got}", where="GemmProblem"
                )
        if dtype.sum_ptx != out.sum_ptx:
            raise LaunchError(
                f"sums of {dtype.name} are {dtype.sum_ptx} and cannot be stored as {out.name}",
                where="GemmProblem",
                hint="int8 goes with s32 and with nothing else",
            )
        for name, size in (("m", self.m), ("n", self.n), ("k", self.k)):
            whole_number(size, name, "GemmProblem", f"{name}=4096")
            if not 1 <= size < 1 << 31:
                raise LaunchError(
                    f"{name} must be from 1 to 2147483647, got {size}",
                    where="GemmProblem",
                    hint=f"{name} of 1 or more; it need not be a multiple of the tile"
                    if size < 1
                    else f"a smaller {name}",
                )
        if "MN" in (self.a_major, self.b_major) and dtype.size != 2:
            raise LaunchError(
                f"wgmma takes MN-major operands of 16 bits only, got {dtype.name}",
                where="GemmProblem",
                hint="K-major operands, or fp16 or bf16",
                source='PTX ISA 8.7, "wgmma.mma_async"',
            )
        for operand, major, name, rows in (
            ("A", self.a_major, "m", self.m),
            ("B", self.b_major, "n", self.n),
        ):
            if major == "MN":
                _check_pitch(operand, name, rows, dtype)
            else:
                _check_pitch("A and B", "k", self.k, dtype)
        _check_pitch("C", "n", self.n, out)

    @property
    def a_shape(self) -> tuple[int, int]:
        """Shape of A in memory."""
        return (self.m, self.k) if self.a_major == "K" else (self.k, self.m)

    @property
    def b_shape(self) -> tuple[int, int]:
        """Shape of B in memory."""
        return (self.n, self.k) if self.b_major == "K" else (self.k, self.n)

    @property
    def flops(self) -> int:
        """Multiplications and additions of the product."""
        return 2 * self.m * self.n * self.k


def _check_pitch(operands: str, name: str, extent: int, element: ElementType) -> None:
    pitch_bytes = extent * element.size
    if pitch_bytes % 16:
        multiple = 16 // element.size
        raise LaunchError(
            f"row pitch of {operands} must be a multiple of 16 bytes for TMA, got {pitch_bytes} "
            f"({name}={extent} of {element.name})",
            where="GemmProblem",
            hint=f"pad {name} to {-(-extent // multiple) * multiple}",
            source=_TMA_SOURCE,
        )
