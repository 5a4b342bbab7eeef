"""Make the recordings of this folder again, on an H100: python tests/silicon/record.py OUT_DIR [PART ...]

Parts: probes (probes/*.npz), micro (micro.json), gemm (gemm_own.json); all of them by default. Each part runs on its
own, so that one that fails leaves the others. `tests/silicon/layout/record.py` makes those of layout.
"""

from __future__ import annotations

import datetime
import json
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import hopsim as hs
from hopsim.kernels.micro import recording as micro
from hopsim.kernels.probes import recording as probes

COMMAND = "python tests/silicon/record.py"
TODAY = datetime.date.today().isoformat()


def say(text: str) -> None:
    print(f"{time.monotonic() - BEGAN:6.1f} s  {text}"[:400], flush=True)


def record_probes(folder: Path) -> None:
    probes.record_device(folder, date=TODAY, command=COMMAND, progress=say)


def record_micro(folder: Path) -> None:
    with hs.CudaGpu(0, time_limit_s=15.0) as gpu:
        facts = gpu.facts
        rows = micro.record(gpu, progress=say)
    (folder / "micro.json").write_text(json.dumps(rows, indent=1) + "\n")
    describe(
        folder, "micro.json", "microbenchmarks: latencies and rates in SM cycles", len(rows), facts
    )


def record_gemm(folder: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    import gemm_own

    gemm_own.main(folder)
    with hs.CudaGpu(0) as gpu:
        facts = gpu.facts
    describe(
        folder,
        "gemm_own.json",
        "own GEMMs: times and Nsight Compute counters",
        len(gemm_own.KERNELS),
        facts,
    )
    describe(
        folder,
        "empty_kernel.json",
        "an empty kernel under Nsight Compute",
        len(gemm_own.EMPTY_GRIDS),
        facts,
    )


def describe(folder: Path, file: str, what: str, count: int, facts: object) -> None:
    row = probes.Row(file, what, count, facts.name, facts.driver, TODAY, COMMAND)
    probes.write_index(folder / "index.toml", [row])


PARTS = {"probes": record_probes, "micro": record_micro, "gemm": record_gemm}
BEGAN = time.monotonic()

if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for part in sys.argv[2:] or PARTS:
        try:
            PARTS[part](target)
        except Exception:  # noqa: BLE001  the other parts still have their turn
            traceback.print_exc()
        say(f"{part} done")
