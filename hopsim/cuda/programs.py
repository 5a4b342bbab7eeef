"""Modules on the device, and launches of their kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hopsim.cuda.driver import Driver
from hopsim.cuda.requests import LaunchRequest, Triple

LOG_BYTES: Final = 1 << 16


class Programs:
    """What is loaded.

    Args:
        driver: with the context of the device set.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._modules: dict[str, Any] = {}
        self._functions: dict[tuple[str, str], Any] = {}

    def load(self, key: str, image: bytes) -> None:
        """Load PTX text (the driver compiles it) or a cubin; later launches name it by `key`."""
        if key in self._modules:
            return
        option = self._driver.api.CUjit_option
        log = bytes(LOG_BYTES)  # the driver writes into it
        names = [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        held = np.frombuffer(image + b"\0", np.uint8)
        status, module = self._driver.api.cuModuleLoadDataEx(
            held.ctypes.data, len(names), names, [log, LOG_BYTES]
        )
        if int(status):
            text = log.partition(b"\0")[0].decode(errors="replace").strip()
            self._driver.fail("cuModuleLoadDataEx", status, f"\n{text}" if text else "")
        self._modules[key] = module

    def function(self, key: str, entry: str) -> Any:
        """Return a kernel of a loaded module."""
        found = self._functions.get((key, entry))
        if found is None:
            found = self._driver.call("cuModuleGetFunction", self._modules[key], entry.encode())
            self._functions[key, entry] = found
        return found

    def launcher(self, request: LaunchRequest) -> Callable[[], None]:
        """Return what launches a kernel; it does not wait for its end."""
        driver = self._driver.api
        function = self.function(request.image, request.entry)
        config = driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = request.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = request.block
        config.sharedMemBytes = request.shared_bytes
        config.hStream = driver.CUstream(0)
        attributes: list[Any] = []
        if request.cluster is not None:
            attributes.append(self._cluster_attribute(request.cluster))
        if request.cooperative:
            attributes.append(self._cooperative_attribute())
        config.attrs = attributes
        config.numAttrs = len(attributes)
        block = ctypes.create_string_buffer(request.parameters, max(len(request.parameters), 1))
        base = ctypes.addressof(block)
        pointers = (ctypes.c_void_p * max(len(request.offsets), 1))(
            *(base + offset for offset in request.offsets)
        )

        def go() -> None:
            assert block is not None  # the driver reads the parameters through `pointers`
            self._driver.call("cuLaunchKernelEx", config, function, ctypes.addressof(pointers), 0)

        return go

    def _cluster_attribute(self, cluster: Triple) -> Any:
        attribute = self._driver.api.CUlaunchAttribute()
        attribute.id = self._driver.api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        value = self._driver.api.CUlaunchAttributeValue()
        value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = cluster
        attribute.value = value
        return attribute

    def _cooperative_attribute(self) -> Any:
        attribute = self._driver.api.CUlaunchAttribute()
        attribute.id = self._driver.api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        value = self._driver.api.CUlaunchAttributeValue()
        value.cooperative = 1
        attribute.value = value
        return attribute
