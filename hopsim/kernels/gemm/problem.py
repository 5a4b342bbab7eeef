"""What a GEMM computes: sizes, element types, and the rules that TMA sets for them.

C[M,N] = A[M,K] B[N,K]^T with C row-major.  A and B are row-major as written here (K-major: k is
contiguous), or lie transposed in memory as (K, M) and (K, N) (MN-major).
"""

from __future__ import annotations

from dataclasses import dataclass

from hopsim.errors import LaunchError
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


_TYPES = {
    "bf16": ElementType("bf16", "bf16", 2),
    "fp16": ElementType("fp16", "f16", 2),
    "e4m3": ElementType("e4m3", "e4m3", 1),
    "f32": ElementType("f32", "f32", 4),
}
_ALIASES = {"f16": "fp16", "fp32": "f32"}
INPUT_TYPES = ("bf16", "fp16", "e4m3")
OUTPUT_TYPES = ("bf16", "fp16", "f32")


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
        dtype: element type of A and B: bf16, fp16 or e4m3; sums are f32.
        out_dtype: element type of C; by default that of A, or bf16 for e4m3.
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
        default_out = "bf16" if dtype.size == 1 else dtype.name
        out = element_type(self.out_dtype or default_out)
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
        for name, size in (("m", self.m), ("n", self.n), ("k", self.k)):
            if not 1 <= size < 1 << 31:
                raise LaunchError(
                    f"{name} must be from 1 to 2147483647, got {size}", where="GemmProblem"
                )
        if "MN" in (self.a_major, self.b_major) and dtype.size != 2:
            raise LaunchError(
                f"wgmma takes MN-major operands of 16 bits only, got {dtype.name}",
                where="GemmProblem",
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
