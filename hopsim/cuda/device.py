"""The device itself: memory, modules, tensor maps, launches and their times, by the CUDA driver API.

A `Device` owns the CUDA context of its process; whoever wants a hang or a fault to end without it keeps the
`Device` in a process of its own (`hopsim.cuda.client`).  Arguments and results are plain data for that reason.

Source: CUDA driver API 13.0; cuda-bindings 12.8 and newer.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

import numpy as np

from hopsim.cuda.driver import INSTALL_HINT, Driver
from hopsim.cuda.programs import Programs
from hopsim.cuda.requests import DeviceFacts, DriverFailure, LaunchRequest, LaunchTimes
from hopsim.cuda.timing import LaunchTimer
from hopsim.layout.tensormap import TensorMapSpec

PORTABLE_CLUSTER: Final = 8


class Device:
    """One device and its primary context.

    Args:
        index: the device's number.
    Raises: DriverFailure: there is no such device, or it is not of compute capability 9.0.
    """

    def __init__(self, index: int) -> None:
        os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
        self._driver = Driver()
        self._call = self._driver.call
        count = self._call("cuDeviceGetCount")
        if not 0 <= index < count:
            raise DriverFailure(
                f"there is no device {index}: the driver shows {count}", hint=INSTALL_HINT
            )
        self._handle = self._call("cuDeviceGet", index)
        capability = (
            self._attribute("COMPUTE_CAPABILITY_MAJOR"),
            self._attribute("COMPUTE_CAPABILITY_MINOR"),
        )
        if capability != (9, 0):
            raise DriverFailure(
                f"device {index} is of compute capability {capability[0]}.{capability[1]}, expected 9.0",
                hint="an H100 or H200: sm_90a code runs on no other",
            )
        self._call("cuCtxSetCurrent", self._call("cuDevicePrimaryCtxRetain", self._handle))
        self._sizes: dict[int, int] = {}
        self._facts = self._read_facts(capability)
        self._programs = Programs(self._driver)
        self._timer = LaunchTimer(self._driver, self._facts, self._programs)

    # -- facts -------------------------------------------------------------------------------------

    def _attribute(self, name: str) -> int:
        attribute = getattr(self._driver.api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self._call("cuDeviceGetAttribute", attribute, self._handle))

    def _read_facts(self, capability: tuple[int, int]) -> DeviceFacts:
        name = self._call("cuDeviceGetName", 256, self._handle)
        text = name.decode() if isinstance(name, bytes) else str(name)
        return DeviceFacts(
            name=text.partition("\0")[0].strip(),
            driver=self._driver.version(),
            capability=capability,
            sm_count=self._attribute("MULTIPROCESSOR_COUNT"),
            l2_bytes=self._attribute("L2_CACHE_SIZE"),
            memory_bytes=int(self._call("cuDeviceTotalMem", self._handle)),
            shared_per_cta_bytes=self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            clock_hz=self._attribute("CLOCK_RATE") * 1e3,
        )

    def facts(self) -> DeviceFacts:
        """Return what the driver tells about the device."""
        return self._facts

    # -- memory ------------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        """Return the address of `size` new bytes."""
        address = int(self._call("cuMemAlloc", max(size, 16)))
        self._sizes[address] = max(size, 16)
        return address

    def free(self, address: int) -> None:
        """Give memory back."""
        del self._sizes[address]
        self._call("cuMemFree", address)

    def write(self, address: int, data: bytes) -> None:
        """Copy bytes to the device."""
        if data:
            held = np.frombuffer(data, np.uint8)
            self._call("cuMemcpyHtoD", address, held.ctypes.data, len(data))

    def read(self, address: int, size: int) -> bytes:
        """Copy bytes from the device."""
        data = np.empty(size, np.uint8)
        if size:
            self._call("cuMemcpyDtoH", data.ctypes.data, address, size)
        return data.tobytes()

    def _keep(self) -> list[tuple[int, int, int]]:
        """Copy all memory aside; return (address, copy, size)."""
        kept: list[tuple[int, int, int]] = []
        for address, size in self._sizes.items():
            copy = int(self._call("cuMemAlloc", size))
            self._call("cuMemcpyDtoD", copy, address, size)
            kept.append((address, copy, size))
        return kept

    def _put_back(self, kept: list[tuple[int, int, int]]) -> None:
        """Give all memory the bytes that it had, and free the copies."""
        for address, copy, size in kept:
            self._call("cuMemcpyDtoD", address, copy, size)
            self._call("cuMemFree", copy)

    # -- programs ----------------------------------------------------------------------------------

    def load(self, key: str, image: bytes) -> None:
        """Load PTX text (the driver compiles it) or a cubin; later launches name it by `key`."""
        self._programs.load(key, image)

    def encode(self, spec: TensorMapSpec) -> bytes:
        """Return the driver's 128 bytes of a tensor map."""
        driver = self._driver.api
        strides = spec.strides or (0,)
        tensor = (
            driver.CUtensorMapDataType(int(spec.data_type)),
            spec.rank,
            spec.global_address,
            [driver.cuuint64_t(value) for value in spec.dims],
            [driver.cuuint64_t(value) for value in strides],
        )
        rest = (
            [driver.cuuint32_t(value) for value in spec.element_strides],
            driver.CUtensorMapInterleave(int(spec.interleave)),
            driver.CUtensorMapSwizzle(int(spec.swizzle)),
            driver.CUtensorMapL2promotion(int(spec.l2_promotion)),
            driver.CUtensorMapFloatOOBfill(int(spec.oob_fill)),
        )
        if spec.window is None:
            box = [driver.cuuint32_t(value) for value in spec.box]
            made = self._call("cuTensorMapEncodeTiled", *tensor, box, *rest)
        else:
            corners = [list(corner) for corner in spec.window]
            made = self._call("cuTensorMapEncodeIm2col", *tensor, *corners, *spec.box, *rest)
        return ctypes.string_at(made.getPtr(), 128)

    # -- launches ----------------------------------------------------------------------------------

    def launch(self, request: LaunchRequest) -> LaunchTimes:
        """Run a kernel to its end, and measure it when asked."""
        function = self._programs.function(request.image, request.entry)
        attribute = self._driver.api.CUfunction_attribute
        if request.shared_bytes:
            self._call(
                "cuFuncSetAttribute", function, attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                request.shared_bytes,
            )  # fmt: skip
        if request.cluster is not None and int(np.prod(request.cluster)) > PORTABLE_CLUSTER:
            allowed = attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            self._call("cuFuncSetAttribute", function, allowed, 1)
        go = self._programs.launcher(request)
        cold = warm = clock = None
        if request.repeats:
            kept = self._keep()
            cold, warm, clock = self._timer.measure(go, request.repeats, request.measure_clock)
            self._put_back(kept)
        if request.timed and cold is None:
            self._timer.flush()
            cold = self._timer.timed(go)
        else:
            go()
        self._call("cuCtxSynchronize")
        return LaunchTimes(
            cold_us=cold,
            warm_us=warm,
            clock_hz=clock,
            registers=int(
                self._call("cuFuncGetAttribute", attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, function)
            ),
            local_bytes=int(
                self._call(
                    "cuFuncGetAttribute", attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function
                )
            ),
        )
