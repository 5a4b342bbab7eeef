"""The CUDA driver API of cuda-bindings: calls that raise what the driver says.

Source: CUDA driver API 13.0; cuda-bindings 12.8 and newer.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn

from hopsim.cuda.requests import DriverFailure

INSTALL_HINT: Final = (
    "an sm_90 device with its driver, and pip install 'hopsim[cuda]'; --backend sim needs neither"
)
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


class Driver:
    """The driver API, initialised.

    Attributes:
        api: the module of cuda-bindings.
    Raises: DriverFailure: it is not installed, there is no driver, or no device.
    """

    def __init__(self) -> None:
        self.api = _load()

    def call(self, name: str, *args: Any) -> Any:
        """Call the driver, return what it gives, or raise what it says.

        Raises: DriverFailure.
        """
        status, *values = getattr(self.api, name)(*args)
        if int(status):
            self.fail(name, status)
        return values[0] if len(values) == 1 else values

    def fail(self, call: str, status: Any, detail: str = "") -> NoReturn:
        """Raise what a status says.

        Raises: DriverFailure.
        """
        code = status.name
        meaning = FATAL.get(code)
        text = self.api.cuGetErrorString(status)[1]
        words = text.decode() if isinstance(text, bytes) else str(text)
        more = f" ({meaning})" if meaning else ""
        raise DriverFailure(
            f"{call}: {code}: {words}{more}{detail}",
            code,
            meaning is not None,
            FATAL_HINT if meaning else "",
        )

    def version(self) -> str:
        """Return the version of the driver, or of CUDA where that is not readable."""
        try:
            text = Path("/proc/driver/nvidia/version").read_text()
        except OSError:
            text = ""
        found = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s", text)
        if found:
            return found[1]
        number = int(self.api.cuDriverGetVersion()[1])
        return f"CUDA {number // 1000}.{number % 1000 // 10}"


def _load() -> Any:
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
