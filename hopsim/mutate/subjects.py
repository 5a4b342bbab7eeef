"""The correct kernels of the project, each with a small launch that walks every path of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Protocol, cast

import numpy as np

from hopsim.errors import ConfigError
from hopsim.explore.case import Arguments, Case, Device
from hopsim.isa.program.kernel import Kernel, loads
from hopsim.kernels.attention import launch as attention
from hopsim.kernels.attention.launch import AttentionKernel
from hopsim.kernels.attention.plan import AttentionProblem
from hopsim.kernels.convolution import launch as convolution
from hopsim.kernels.convolution.launch import ConvKernel
from hopsim.kernels.convolution.problem import ConvProblem
from hopsim.kernels.fp8_scaled import launch as fp8_scaled
from hopsim.kernels.fp8_scaled.launch import ScaledKernel
from hopsim.kernels.fp8_scaled.scaled import BLOCK
from hopsim.kernels.gemm.kernel import GemmKernel, build
from hopsim.kernels.gemm.launch import NUMPY_TYPES, arguments
from hopsim.kernels.gemm.launch import Device as GemmDevice
from hopsim.kernels.gemm.problem import GemmProblem
from hopsim.kernels.micro.clocked import Benchmark
from hopsim.kernels.micro.recording import benchmarks


class Built(Protocol):
    """A kernel as its builder gives it."""

    @property
    def ptx(self) -> str:
        """Its text."""
        ...

    @property
    def entry(self) -> str:
        """Its name there."""
        ...

    @property
    def grid(self) -> int | tuple[int, int, int]:
        """CTAs."""
        ...

    @property
    def block(self) -> int:
        """Threads of a CTA."""
        ...

    @property
    def cluster(self) -> int:
        """CTAs of a cluster."""
        ...

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory."""
        ...


@dataclass(frozen=True)
class BuiltCase:
    """A kernel with small inputs.

    Args:
        made: as its builder gives it.
        arguments_of: (device, made) to its arguments.
        file: what reports call its text; its entry's name if not given.
    """

    made: Built
    arguments_of: Callable[[Device, Any], Arguments]
    file: str = ""

    @property
    def grid(self) -> int | tuple[int, int, int]:
        """CTAs."""
        return self.made.grid

    @property
    def block(self) -> int:
        """Threads of a CTA."""
        return self.made.block

    @property
    def cluster(self) -> int:
        """CTAs of a cluster."""
        return self.made.cluster

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory."""
        return self.made.shared_bytes

    def kernel(self) -> Kernel:
        """Load the kernel."""
        return loads(self.made.ptx, self.file or f"{self.made.entry}.ptx")[self.made.entry]

    def arguments(self, gpu: Device) -> Arguments:
        """Put the inputs on a device."""
        return self.arguments_of(gpu, self.made)


def gemm_case(made: GemmKernel) -> BuiltCase:
    """Return the launch of a GEMM of ours with small whole numbers as inputs."""
    return BuiltCase(made, _gemm, "gemm.ptx")


def _gemm(gpu: Device, made: GemmKernel) -> Arguments:
    problem = made.problem
    rng = np.random.default_rng(problem.k)
    a, b = (
        gpu.array(rng.integers(-3, 4, shape).astype(NUMPY_TYPES[problem.dtype]))
        for shape in (problem.a_shape, problem.b_shape)
    )
    c = gpu.array(np.zeros((problem.m, problem.n), NUMPY_TYPES[problem.out_dtype]))
    more = [gpu.array(np.zeros(one.words, np.uint32)) for one in made.buffers]
    return Arguments(arguments(made, a, b, c, more), {"c": c})


def benchmark_case(made: Benchmark) -> BuiltCase:
    """Return the launch of a microbenchmark."""
    return BuiltCase(made, _benchmark)


def _benchmark(gpu: Device, made: Benchmark) -> Arguments:
    out = gpu.array(np.zeros((made.rows or 1) * max(1, len(made.labels)), np.uint64))
    return Arguments([*made.arguments(gpu), out], {})


@dataclass(frozen=True)
class GemmSubject:
    """One schedule of GEMM.

    Args:
        sizes: M, N, K.  options: of `build`, as (name, value) pairs.
    """

    name: str
    schedule: str
    sizes: tuple[int, int, int]
    tile: tuple[int, int, int]
    stages: int = 2
    options: tuple[tuple[str, Any], ...] = ()
    dtype: str = "bf16"
    out_dtype: str = ""

    @property
    def built(self) -> GemmKernel:
        """The kernel."""
        problem = GemmProblem(*self.sizes, self.dtype, self.out_dtype)
        return build(self.schedule, problem, self.tile, self.stages, **dict(self.options))

    @property
    def text(self) -> str:
        """PTX."""
        return self.built.ptx

    def case(self, text: str) -> Case:
        """Return the launch of a changed text."""
        return gemm_case(replace(self.built, ptx=text))


@cache
def _benchmarks() -> dict[str, Benchmark]:
    return {one.name: one for one in benchmarks("tensor")}


@dataclass(frozen=True)
class BenchmarkSubject:
    """A microbenchmark of tensor cores by its name."""

    name: str

    @property
    def made(self) -> Benchmark:
        """The benchmark."""
        return _benchmarks()[self.name]

    @property
    def text(self) -> str:
        """PTX."""
        return self.made.ptx

    def case(self, text: str) -> Case:
        """Return the launch of a changed text."""
        return benchmark_case(replace(self.made, ptx=text))


def _attention(gpu: Device, made: AttentionKernel) -> Arguments:
    problem = made.problem
    rng = np.random.default_rng(problem.seq_kv)
    shapes = [
        (problem.heads, rows, problem.head_dim) for rows in (problem.seq_q, *[problem.seq_kv] * 2)
    ]
    kind = attention.NUMPY_TYPES[problem.dtype]
    q, k, v = (rng.integers(-2, 3, shape).astype(kind) for shape in shapes)
    args, o = attention.arguments(cast("GemmDevice", gpu), made, q, k, v)
    return Arguments(args, {"o": o})


def _scaled(gpu: Device, made: ScaledKernel) -> Arguments:
    problem = made.problem
    rng = np.random.default_rng(problem.k)
    a, b = (
        rng.integers(-3, 4, shape).astype(NUMPY_TYPES["e4m3"])
        for shape in (problem.a_shape, problem.b_shape)
    )
    blocks = -(-problem.k // BLOCK)
    scales = [
        (2.0 ** rng.integers(-2, 3, (rows, blocks))).astype(np.float32)
        for rows in (problem.m, -(-problem.n // BLOCK))
    ]
    args, c = fp8_scaled.arguments(cast("GemmDevice", gpu), made, a, b, *scales)
    return Arguments(args, {"c": c})


def _convolution(gpu: Device, made: ConvKernel) -> Arguments:
    problem = made.problem
    rng = np.random.default_rng(problem.channels)
    kind = NUMPY_TYPES[problem.dtype]
    x, w = (
        gpu.array(rng.integers(-3, 4, shape).astype(kind))
        for shape in (problem.x_shape, problem.w_shape)
    )
    y = gpu.array(np.zeros(problem.out_shape, kind))
    return Arguments(convolution.arguments(made, x, w, y), {"y": y})


@dataclass(frozen=True)
class BuiltSubject:
    """A kernel beside the GEMMs."""

    name: str
    build: Callable[[], AttentionKernel | ScaledKernel | ConvKernel]
    arguments_of: Callable[[Device, Any], Arguments]

    @property
    def text(self) -> str:
        """PTX."""
        return self.build().ptx

    def case(self, text: str) -> Case:
        """Return the launch of a changed text."""
        return BuiltCase(replace(self.build(), ptx=text), self.arguments_of)


def _build_attention() -> AttentionKernel:
    return attention.build(AttentionProblem(1, 128, 320, 64, True), block_kv=64)


def _build_scaled() -> ScaledKernel:
    return fp8_scaled.build(GemmProblem(128, 32, 384, "e4m3", "f32"), (128, 16), 2, resident_ctas=1)


def _build_convolution() -> ConvKernel:
    problem = ConvProblem(1, 16, 8, 64, 16, extent=(2, 2), padding=(1, 1))
    return convolution.build(problem, (64, 16), 2)


OTHERS: Final = (
    BuiltSubject("attention", _build_attention, _attention),
    BuiltSubject("fp8-scaled", _build_scaled, _scaled),
    BuiltSubject("convolution", _build_convolution, _convolution),
)
_CLUSTER: Final = (("release_scope", "cluster"),)

GEMMS: Final[tuple[GemmSubject, ...]] = (
    GemmSubject("wgmma-simple", "wgmma-simple", (128, 16, 96), (64, 16, 32), 1),
    GemmSubject("pipelined", "pipelined", (128, 16, 160), (64, 16, 32)),
    GemmSubject("warp-specialized", "warp-specialized", (128, 16, 160), (64, 16, 32)),
    GemmSubject(
        "warp-specialized, two consumers", "warp-specialized", (256, 16, 160), (128, 16, 32),
        options=(("warpgroups", 2),),
    ),
    GemmSubject(
        "warp-specialized, persistent", "warp-specialized", (128, 32, 96), (64, 16, 32),
        options=(("persistent", True), ("resident_ctas", 2)),
    ),
    GemmSubject(
        "warp-specialized, cluster along M", "warp-specialized", (128, 16, 160), (64, 16, 32),
        options=(("cluster", (2, 1)), *_CLUSTER),
    ),
    GemmSubject(
        "warp-specialized, cluster along N", "warp-specialized", (64, 32, 160), (64, 16, 32),
        options=(("cluster", (1, 2)), *_CLUSTER),
    ),
    GemmSubject(
        "cooperative", "cooperative", (256, 32, 160), (128, 16, 32), options=(("resident_ctas", 1),)
    ),
    GemmSubject("pingpong", "pingpong", (256, 32, 96), (64, 16, 32), options=(("resident_ctas", 1),)),
    GemmSubject(
        "split-k", "split-k", (64, 16, 320), (64, 16, 32), options=(("splits", 2),), out_dtype="f32"
    ),
    GemmSubject(
        "split-k by dsmem", "split-k", (64, 32, 320), (64, 32, 32),
        options=(("splits", 2), ("reduction", "dsmem")), out_dtype="f32",
    ),
    GemmSubject(
        "stream-k", "stream-k", (128, 32, 96), (64, 16, 32), options=(("resident_ctas", 3),),
        out_dtype="f32",
    ),
    GemmSubject("mma-multistage", "mma-multistage", (64, 64, 128), (64, 64, 32), 3),
)  # fmt: skip
MICRO: Final = (BenchmarkSubject("wgmma_bf16_n8_SS_w1"), BenchmarkSubject("wgmma_bf16_n8_RS_w1"))
SUBJECTS: Final = (*GEMMS, *OTHERS, *MICRO)


def subject_named(name: str) -> GemmSubject | BuiltSubject | BenchmarkSubject:
    """Return a subject.

    Raises: ConfigError: there is none of that name.
    """
    for subject in SUBJECTS:
        if subject.name == name:
            return subject
    known = ", ".join(repr(subject.name) for subject in SUBJECTS)
    raise ConfigError(f"there is no kernel {name!r} to mutate", hint=f"one of {known}")
