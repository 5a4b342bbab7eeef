"""The Triton kernels of tests/data as subjects of mutation, launched as their host code would."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hopsim.explore.case import Arguments, Case, Device
from hopsim.isa.program.kernel import Kernel, loads
from hopsim.kernels.gemm.launch import NUMPY_TYPES
from hopsim.kernels.measured.program import Operands, Program, Size, arguments
from tests.kernels.triton_programs import BF16


@dataclass(frozen=True)
class ProgramCase:
    """A program on a problem of small whole numbers."""

    program: Program
    size: Size
    cluster: None = None

    @property
    def grid(self) -> int:
        return self.program.triton_grid(self.size)

    @property
    def block(self) -> int:
        return self.program.block

    @property
    def shared_bytes(self) -> int:
        return self.program.shared_bytes

    def kernel(self) -> Kernel:
        return loads(self.program.ptx, f"{self.program.name}.ptx")[self.program.entry]

    def arguments(self, gpu: Device) -> Arguments:
        m, n, k = self.size
        rng = np.random.default_rng(m + n + k)
        kind = NUMPY_TYPES[self.program.dtype]
        a, b = (gpu.array(rng.integers(-3, 4, (rows, k)).astype(kind)) for rows in (m, n))
        c = gpu.array(np.zeros((m, n), NUMPY_TYPES[self.program.out_dtype]))
        return Arguments(arguments(self.program, self.size, Operands(a, b, c)), {"c": c})


@dataclass(frozen=True)
class ProgramSubject:
    name: str
    size: Size

    @property
    def program(self) -> Program:
        (found,) = (program for program in BF16 if program.name == self.name)
        return found

    @property
    def text(self) -> str:
        return self.program.ptx

    def case(self, text: str) -> Case:
        return ProgramCase(replace(self.program, ptx=text), self.size)


TRITON = (
    ProgramSubject("mm_tma_bf16_64x64x64_s4_w4_al", (64, 64, 384)),
    ProgramSubject("mm_tma_bf16_128x128x64_s3_w4_al", (128, 128, 384)),
    ProgramSubject("mm_tma_bf16_128x128x128_s2_w8_al", (128, 128, 512)),
)
