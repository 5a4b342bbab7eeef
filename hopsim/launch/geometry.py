"""Check grid, block, cluster and shared memory of a launch against the kernel and the chip.

Source: PTX ISA 8.7 "Performance-Tuning Directives", "Cluster Dimension Directives"; CUDA C++ Programming Guide,
"Compute Capabilities" (9.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hopsim.errors import LaunchError
from hopsim.isa.program.kernel import Kernel
from hopsim.launch.given import check_kernel, place_of, whole_number, whole_numbers

Triple = tuple[int, int, int]
GRID_LIMITS = (2**31 - 1, 65535, 65535)
BLOCK_LIMITS = (1024, 1024, 64)
SMALLER_BLOCK = "a smaller block: at most 1024, 1024 and 64 threads along x, y and z, 1024 in all"
SMALLER_CLUSTER = "a smaller cluster: its size is the product of its extents"


@dataclass(frozen=True, slots=True)
class Geometry:
    """Shapes in CTAs and threads, shared memory in bytes."""

    grid: Triple
    block: Triple
    cluster: Triple
    static_shared_bytes: int
    dynamic_shared_bytes: int

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def shared_bytes(self) -> int:
        """Static and dynamic shared memory of a CTA."""
        return self.static_shared_bytes + self.dynamic_shared_bytes


def triple(value: int | Sequence[int], what: str, where: str = "") -> Triple:
    """Return (x, y, z) of an int or a sequence of up to three.

    Raises: LaunchError: another number of them, or one that is not whole and positive.
    """
    numbers = whole_numbers(value)
    if numbers is None or not 1 <= len(numbers) <= 3 or any(number < 1 for number in numbers):
        raise LaunchError(
            f"{what} {value!r}: expected one to three positive whole numbers",
            where=where,
            hint=f"{what}=(8, 8) or {what}=64",
        )
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def geometry(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    cluster: int | Sequence[int] | None,
    shared_bytes: int,
    shared_limit: int,
    cluster_limit: int,
) -> Geometry:
    """Check the shapes of a launch.

    Args:
        cluster: None takes the kernel's own `.reqnctapercluster`, or 1.
        shared_limit: most shared memory of a CTA in bytes.  cluster_limit: most CTAs of a cluster.
    Raises: LaunchError.
    """
    check_kernel(kernel)
    where = place_of(kernel)
    shape, threads = triple(grid, "grid", where), triple(block, "block", where)
    required = kernel.directive("reqnctapercluster")
    if cluster is None:
        group = triple(required, "cluster") if required else (1, 1, 1)
    else:
        group = triple(cluster, "cluster", where)
        if required and triple(required, "cluster") != group:
            raise LaunchError(
                f"cluster {group}, but .reqnctapercluster says {required}",
                where=where,
                hint="launch that cluster, or leave it out",
            )
    for axis, limit, number in zip("xyz", GRID_LIMITS, shape, strict=True):
        if number > limit:
            raise LaunchError(
                f"grid.{axis} is {number}, the limit is {limit}",
                where=where,
                hint="grid.x has room for 2147483647 CTAs; or let each CTA do several parts of the work",
            )
    for axis, limit, number in zip("xyz", BLOCK_LIMITS, threads, strict=True):
        if number > limit:
            raise LaunchError(
                f"block.{axis} is {number}, the limit is {limit}", where=where, hint=SMALLER_BLOCK
            )
    count = threads[0] * threads[1] * threads[2]
    if count > 1024:
        raise LaunchError(
            f"a block of {count} threads; the limit is 1024", where=where, hint=SMALLER_BLOCK
        )
    _check_threads(kernel, threads, count, where)
    size = group[0] * group[1] * group[2]
    if size > cluster_limit:
        raise LaunchError(
            f"a cluster of {size} CTAs; the limit is {cluster_limit}",
            where=where,
            hint=SMALLER_CLUSTER,
        )
    most = kernel.directive("maxclusterrank")
    if most is not None and size > most[0]:
        raise LaunchError(
            f"a cluster of {size} CTAs, but .maxclusterrank allows {most[0]}",
            where=where,
            hint=SMALLER_CLUSTER,
        )
    for axis, total, part in zip("xyz", shape, group, strict=True):
        if total % part:
            raise LaunchError(
                f"grid.{axis} = {total} is not a multiple of cluster.{axis} = {part}", where=where,
                hint="the grid counts CTAs; round it up to whole clusters",
            )  # fmt: skip
    none_dynamic = "shared_bytes=0 without dynamic shared memory"
    static = kernel.shared_bytes
    shared_bytes = whole_number(shared_bytes, "shared_bytes", where, none_dynamic)
    if shared_bytes < 0:
        raise LaunchError(
            f"shared_bytes: expected 0 or more, got {shared_bytes}",
            where=where,
            hint=none_dynamic,
        )
    if static + shared_bytes > shared_limit:
        raise LaunchError(
            f"shared memory: {static} static + {shared_bytes} dynamic = {static + shared_bytes} bytes, "
            f"the limit is {shared_limit}",
            where=where,
            hint="fewer stages or a smaller tile",
        )
    return Geometry(shape, threads, group, static, shared_bytes)


def _check_threads(kernel: Kernel, block: Triple, count: int, where: str) -> None:
    required = kernel.directive("reqntid")
    if required and triple(required, "reqntid") != block:
        raise LaunchError(
            f"block {block}, but .reqntid says {required}", where=where, hint="launch that block"
        )
    most = kernel.directive("maxntid")
    if most:
        limit = 1
        for number in most:
            limit *= number
        if count > limit:
            raise LaunchError(
                f"a block of {count} threads, but .maxntid allows {limit}",
                where=where,
                hint="a smaller block, or a kernel compiled for larger ones (__launch_bounds__)",
            )


def registers_per_thread(kernel: Kernel, threads: int, per_sm: int) -> int:
    """Return the registers a thread gets at launch.

    A kernel that moves registers with `setmaxnreg` gets what ptxas knows from its directives.  Else `.maxnreg` decides
    where given, or what ptxas is taken to give it (D-REGS).
    """
    if any(bound.form.name == "setmaxnreg" for bound in kernel.instructions):
        known = kernel.entry_registers
        if known is not None:
            return known
    most = kernel.directive("maxnreg")
    if most:
        return min(most[0], 255)
    share = min(255, per_sm // max(threads, 32) // 8 * 8)
    per_cta = kernel.directive("minnctapersm")
    if per_cta:
        share = min(share, per_sm // (max(threads, 32) * per_cta[0]) // 8 * 8)
    wanted = kernel.registers_wanted
    return max(24, min(share if share else 255, (wanted + 7) // 8 * 8))
