"""The device itself: memory, modules, tensor maps, launches and their times, by the CUDA driver API.

A `Device` owns the CUDA context of its process; whoever wants a hang or a fault to end without it keeps the
`Device` in a process of its own (`hopsim.cuda.client`).  Arguments and results are plain data for that reason.

Source: CUDA driver API 13.0; cuda-bindings 12.8 and newer.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hopsim.cuda.requests import DeviceFacts, DriverFailure, LaunchRequest, LaunchTimes, Triple
from hopsim.layout.tensormap import TensorMapSpec

INSTALL_HINT: Final = (
    "an sm_90 device with its driver, and pip install 'hopsim[cuda]'; --backend sim needs neither"
)
PORTABLE_CLUSTER: Final = 8
LOG_BYTES: Final = 1 << 16

# After one of these the context is lost. Source: CUDA driver API 13.0, CUresult.
FATAL: Final = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": "an access outside every allocation",
    "CUDA_ERROR_MISALIGNED_ADDRESS": "an access that is not aligned to its size",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": "an instruction with operands that the hardware refuses",
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": "an address of another state space",
    "CUDA_ERROR_INVALID_PC": "a jump outside the program",
    "CUDA_ERROR_HARDWARE_STACK_ERROR": "a broken call stack",
    "CUDA_ERROR_LAUNCH_FAILED": "the kernel failed",
    "CUDA_ERROR_LAUNCH_TIMEOUT": "the kernel ran into the driver's own time limit",
    "CUDA_ERROR_ASSERT": "an assertion of the program failed",
    "CUDA_ERROR_CONTAINED": "a contained hardware error",
    "CUDA_ERROR_UNKNOWN": "a failure without a name",
}
FATAL_HINT: Final = "run the same launch on hs.Gpu(): it names the thread and the PTX line"

CLOCK_PTX: Final = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry read_clocks(.param .u64 out)
{
    .reg .b32 %sm;
    .reg .b64 %place, %ticks, %nanoseconds;

    ld.param.u64            %place, [out];
    mov.u32                 %sm, %smid;
    mad.wide.u32            %place, %sm, 16, %place;
    mov.u64                 %ticks, %clock64;
    mov.u64                 %nanoseconds, %globaltimer;
    st.global.v2.u64        [%place], {%ticks, %nanoseconds};
    ret;
}
"""


def load_driver() -> Any:
    """Return the driver API of cuda-bindings, initialised.

    Raises: DriverFailure: it is not installed, there is no driver, or no device.
    """
    try:
        driver = import_module("cuda.bindings.driver")
    except ImportError:
        raise DriverFailure("the extra `cuda` is not installed", hint=INSTALL_HINT) from None
    try:
        status = driver.cuInit(0)[0]
    except RuntimeError as error:
        raise DriverFailure(f"there is no CUDA driver: {error}", hint=INSTALL_HINT) from None
    if int(status):
        raise DriverFailure(f"cuInit: {status.name}", status.name, hint=INSTALL_HINT)
    return driver


def _driver_version(driver: Any) -> str:
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        text = ""
    found = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s", text)
    if found:
        return found[1]
    number = int(driver.cuDriverGetVersion()[1])
    return f"CUDA {number // 1000}.{number % 1000 // 10}"


class Device:
    """One device and its primary context.

    Args:
        index: the device's number.
    Raises: DriverFailure: there is no such device, or it is not of compute capability 9.0.
    """

    def __init__(self, index: int) -> None:
        os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
        self._driver = load_driver()
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
        self._modules: dict[str, Any] = {}
        self._functions: dict[tuple[str, str], Any] = {}
        self._scratch: int | None = None
        self._clocks: int | None = None
        self._facts = self._read_facts(capability)

    # -- the driver --------------------------------------------------------------------------------

    def _call(self, name: str, *args: Any) -> Any:
        """Call the driver, return what it gives, or raise what it says."""
        status, *values = getattr(self._driver, name)(*args)
        if int(status):
            self._fail(name, status)
        return values[0] if len(values) == 1 else values

    def _fail(self, call: str, status: Any, detail: str = "") -> None:
        code = status.name
        meaning = FATAL.get(code)
        text = self._driver.cuGetErrorString(status)[1]
        words = text.decode() if isinstance(text, bytes) else str(text)
        more = f" ({meaning})" if meaning else ""
        raise DriverFailure(
            f"{call}: {code}: {words}{more}{detail}",
            code,
            meaning is not None,
            FATAL_HINT if meaning else "",
        )

    def _attribute(self, name: str) -> int:
        attribute = getattr(self._driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self._call("cuDeviceGetAttribute", attribute, self._handle))

    def _read_facts(self, capability: tuple[int, int]) -> DeviceFacts:
        name = self._call("cuDeviceGetName", 256, self._handle)
        text = name.decode() if isinstance(name, bytes) else str(name)
        return DeviceFacts(
            name=text.partition("\0")[0].strip(),
            driver=_driver_version(self._driver),
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

    # -- programs ----------------------------------------------------------------------------------

    def load(self, key: str, image: bytes) -> None:
        """Load PTX text (the driver compiles it) or a cubin; later launches name it by `key`."""
        if key in self._modules:
            return
        option = self._driver.CUjit_option
        log = bytes(LOG_BYTES)  # the driver writes into it
        names = [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        held = np.frombuffer(image + b"\0", np.uint8)
        status, module = self._driver.cuModuleLoadDataEx(
            held.ctypes.data, len(names), names, [log, LOG_BYTES]
        )
        if int(status):
            text = log.partition(b"\0")[0].decode(errors="replace").strip()
            self._fail("cuModuleLoadDataEx", status, f"\n{text}" if text else "")
        self._modules[key] = module

    def _function(self, key: str, entry: str) -> Any:
        found = self._functions.get((key, entry))
        if found is None:
            found = self._call("cuModuleGetFunction", self._modules[key], entry.encode())
            self._functions[key, entry] = found
        return found

    def encode(self, spec: TensorMapSpec) -> bytes:
        """Return the driver's 128 bytes of a tensor map."""
        driver = self._driver
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
        function = self._function(request.image, request.entry)
        attribute = self._driver.CUfunction_attribute
        if request.shared_bytes:
            self._call(
                "cuFuncSetAttribute", function, attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                request.shared_bytes,
            )  # fmt: skip
        if request.cluster is not None and int(np.prod(request.cluster)) > PORTABLE_CLUSTER:
            allowed = attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            self._call("cuFuncSetAttribute", function, allowed, 1)
        go = self._launcher(function, request)
        cold = warm = clock = None
        if request.repeats:
            cold, warm, clock = self._measure(go, request)
        if request.timed and cold is None:
            self._flush()
            cold = self._timed(go)
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

    def _launcher(self, function: Any, request: LaunchRequest) -> Callable[[], None]:
        driver = self._driver
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
            self._call("cuLaunchKernelEx", config, function, ctypes.addressof(pointers), 0)

        return go

    def _cluster_attribute(self, cluster: Triple) -> Any:
        attribute = self._driver.CUlaunchAttribute()
        attribute.id = self._driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        value = self._driver.CUlaunchAttributeValue()
        value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = cluster
        attribute.value = value
        return attribute

    def _cooperative_attribute(self) -> Any:
        attribute = self._driver.CUlaunchAttribute()
        attribute.id = self._driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        value = self._driver.CUlaunchAttributeValue()
        value.cooperative = 1
        attribute.value = value
        return attribute

    # -- time --------------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Put other bytes into all of L2."""
        size = 2 * self._facts.l2_bytes
        if self._scratch is None:
            self._scratch = int(self._call("cuMemAlloc", size))
        self._call("cuMemsetD32Async", self._scratch, 0, size // 4, 0)

    def _timed(self, work: Callable[[], None]) -> float:
        """Return the microseconds between two events around `work`."""
        start, stop = (self._call("cuEventCreate", 0) for _ in range(2))
        self._call("cuEventRecord", start, 0)
        work()
        self._call("cuEventRecord", stop, 0)
        self._call("cuEventSynchronize", stop)
        elapsed = float(self._call("cuEventElapsedTime", start, stop))
        for event in (start, stop):
            self._call("cuEventDestroy", event)
        return elapsed * 1e3

    def _measure(
        self, go: Callable[[], None], request: LaunchRequest
    ) -> tuple[float, float, float | None]:
        """Time launches on memory that is put back: (cold, warm, clock)."""
        kept = self._keep()

        def many() -> None:
            for _ in range(request.repeats):
                go()

        go()
        cold: list[float] = []
        for _ in range(request.repeats):
            self._flush()
            cold.append(self._timed(go))
        go()
        read = self._clock_readers() if request.measure_clock else None
        if read is None:
            warm = self._timed(many) / request.repeats
        else:
            # Nothing waits between the readings: the counters start anew when the device falls idle.
            read[0]()
            warm = self._timed(many) / request.repeats
            read[1]()
        clock = None if read is None else self._clock_hz()
        self._put_back(kept)
        return median(cold), warm, clock

    def _keep(self) -> list[tuple[int, int, int]]:
        """Copy all memory aside; return (address, copy, size)."""
        kept: list[tuple[int, int, int]] = []
        for address, size in self._sizes.items():
            copy = int(self._call("cuMemAlloc", size))
            self._call("cuMemcpyDtoD", copy, address, size)
            kept.append((address, copy, size))
        return kept

    def _put_back(self, kept: list[tuple[int, int, int]]) -> None:
        for address, copy, size in kept:
            self._call("cuMemcpyDtoD", address, copy, size)
            self._call("cuMemFree", copy)

    def _clock_readers(self) -> tuple[Callable[[], None], Callable[[], None]]:
        """Return two launches that read clock and nanoseconds of each SM, into two tables of zeros."""
        count = self._facts.sm_count
        self.load("clocks", CLOCK_PTX.encode())
        if self._clocks is None:
            self._clocks = int(self._call("cuMemAlloc", 2 * 16 * count))
        self._call("cuMemsetD32", self._clocks, 0, 2 * 4 * count)
        function = self._function("clocks", "read_clocks")

        def launcher(table: int) -> Callable[[], None]:
            assert self._clocks is not None
            place = (self._clocks + table * 16 * count).to_bytes(8, "little")
            one = (1, 1, 1)
            return self._launcher(
                function,
                LaunchRequest("clocks", "read_clocks", (count, 1, 1), one, None, 0, place, (0,)),
            )

        return launcher(0), launcher(1)

    def _clock_hz(self) -> float | None:
        self._call("cuCtxSynchronize")
        count = self._facts.sm_count
        assert self._clocks is not None
        data = np.frombuffer(self.read(self._clocks, 2 * 16 * count), np.int64)
        return clock_hz(*data.reshape(2, count, 2))


def clock_hz(before: NDArray[np.int64], after: NDArray[np.int64]) -> float | None:
    """Return the SM clock between two readings: the median over the SMs that took part in both.

    Args:
        before, after: clock and nanoseconds of each SM, zero where no CTA ran; shape (SMs, 2).
    """
    cycles, nanoseconds = (after - before).T
    seen = (before[:, 1] != 0) & (after[:, 1] != 0) & (cycles > 0) & (nanoseconds > 0)
    if not seen.any():
        return None
    return float(np.median(cycles[seen] / nanoseconds[seen]) * 1e9)
