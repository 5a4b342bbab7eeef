"""PTX to machine code by ptxas, for those who want the toolkit's compiler and not the driver's."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from hopsim.errors import DeviceError

ARCHITECTURE = "sm_90a"


def assemble(text: str, path: str = "<ptx>") -> bytes:
    """Return the cubin of a PTX text.

    Raises: DeviceError: ptxas is missing, or refuses the text.
    """
    tool = shutil.which("ptxas")
    if tool is None:
        raise DeviceError(
            "ptxas is not on PATH",
            where=path,
            hint="install the CUDA toolkit, or let the driver compile",
        )
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [tool, f"-arch={ARCHITECTURE}", "-o", str(binary), str(source)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            words = (done.stderr or done.stdout).replace(str(source), path).strip()
            raise DeviceError(f"ptxas refuses the text:\n{words}", where=path)
        return binary.read_bytes()
