"""What a GPU holds for the modules that were launched on it: their variables, and the workspace of a grid's own barrier.

As under the CUDA driver, a variable keeps what kernels left in it until the module is unloaded; here, as long as the
`Gpu` lives.  A kernel that reads `%envreg1` and `%envreg2` (`cooperative_groups::grid_group::sync`) finds there the
address of zeros that each launch gets anew, and all of its CTAs must fit on the chip at once.

Source: CUDA Driver API, "Module Management"; CUDA C++ Programming Guide, "Grid Synchronization".
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hopsim.errors import LaunchError
from hopsim.hw.machine.memory import GlobalMemory, Region
from hopsim.isa.program.kernel import Kernel
from hopsim.isa.program.symbols import function_addresses, initial_bytes, size_of
from hopsim.isa.ptx.ast import Variable
from hopsim.launch.given import place_of

WORKSPACE_BYTES: Final = 64


class LoadedModules:
    """The modules of one GPU.

    Args:
        memory: of the GPU.
    """

    def __init__(self, memory: GlobalMemory) -> None:
        self._memory = memory
        # By the hash of the module's text: loading the same text twice gives the same variables.
        self._variables: dict[str, dict[str, Region]] = {}
        self._workspace: Region | None = None

    def symbols(self, kernel: Kernel) -> dict[str, int]:
        """Return the address of each module variable that a kernel names; those named first get their initial values."""
        if not kernel.placement.globals_used:
            return {}
        held = self._variables.setdefault(kernel.module.hash, {})
        fresh: list[tuple[Variable, Region]] = []
        for variable in kernel.placement.globals_used:
            if variable.name not in held:
                size = max(size_of(variable), 1)
                # One of a body has the name of its function behind its own.
                name = variable.name.partition("@")[0]
                region = self._memory.allocate(size, f"variable {name}", np.zeros(size, np.uint8))
                held[variable.name] = region
                fresh.append((variable, region))
        addresses = {name: region.base for name, region in held.items()}
        named = function_addresses(kernel.module.tree) | addresses if fresh else addresses
        for variable, region in fresh:
            initial = initial_bytes(variable, named)
            region.data[: len(initial)] = initial
            region.read_only = variable.space == "const"
        return addresses

    def workspace(self, kernel: Kernel, ctas: int, places: int) -> int:
        """Return the address of what CTAs of a cooperative launch meet at; 0: the kernel does not ask for it.

        Args:
            ctas: of the launch.
            places: CTAs that the chip holds at once.
        Raises: LaunchError: they do not all fit.
        """
        if not kernel.syncs_grid:
            return 0
        if ctas > places:
            raise LaunchError(
                f"the grid has {ctas:,} CTAs, and its own barrier (%envreg1, %envreg2) needs all of them on the chip at"
                f" once: it holds {places:,}", where=place_of(kernel),
                hint="a smaller grid, with a loop over the work in it",
            )  # fmt: skip
        zeros = np.zeros(WORKSPACE_BYTES, np.uint8)
        if self._workspace is None:
            self._workspace = self._memory.allocate(WORKSPACE_BYTES, "workspace of the grid", zeros)
        self._workspace.data[:WORKSPACE_BYTES] = zeros
        return self._workspace.base
