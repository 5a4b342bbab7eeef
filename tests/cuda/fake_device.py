"""A device without a GPU: bytes for memory, and kernels whose names say how they end."""

from __future__ import annotations

import os
import sys
import time

from hopsim.cuda.requests import DeviceFacts, DriverFailure, LaunchRequest, LaunchTimes
from hopsim.layout.tensormap import TensorMapSpec


class FakeDevice:
    def __init__(self, index: int) -> None:
        if index == 9:
            raise DriverFailure("there is no device 9: the driver shows 1", hint="another number")
        if index == 8:
            os._exit(7)
        self.memory: dict[int, bytearray] = {}
        self.images: dict[str, bytes] = {}
        self.next = 0x1000

    def facts(self) -> DeviceFacts:
        return DeviceFacts("Fake H100", "1.2.3", (9, 0), 132, 50 << 20, 80 << 30, 232448, 1.98e9)

    def allocate(self, size: int) -> int:
        address, self.next = self.next, self.next + (size + 255) // 256 * 256 + 256
        self.memory[address] = bytearray(size)
        return address

    def free(self, address: int) -> None:
        del self.memory[address]

    def count(self) -> int:
        return len(self.memory)

    def write(self, address: int, data: bytes) -> None:
        print("a stray line that must not end up among the answers")
        self.memory[address][:] = data

    def read(self, address: int, size: int) -> bytes:
        return bytes(self.memory[address][:size])

    def load(self, key: str, image: bytes) -> None:
        if b"refused" in image:
            raise DriverFailure(
                "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX\nline 3: no", "CUDA_ERROR_INVALID_PTX"
            )
        self.images[key] = image

    def encode(self, spec: TensorMapSpec) -> bytes:
        return spec.encode()

    def launch(self, request: LaunchRequest) -> LaunchTimes:
        assert request.image in self.images
        if request.entry == "hang":
            time.sleep(600)
        if request.entry == "crash":
            sys.stderr.write("crashing as told\n")
            os._exit(11)
        if request.entry == "fault":
            raise DriverFailure(
                "cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS",
                "CUDA_ERROR_ILLEGAL_ADDRESS",
                True,
                "x",
            )
        for (
            address,
            data,
        ) in self.memory.items():  # the kernel `echo` leaves its parameters in its array
            if address == int.from_bytes(request.parameters[:8], "little"):
                data[: len(request.parameters)] = request.parameters
        warm = 2.5 if request.repeats else None
        clock = 1.5e9 if request.measure_clock else None
        return LaunchTimes(4.0 if request.timed else None, warm, clock, 24, 0)
