"""What schedules are written from, under one name: `from hopsim.kernels.gemm import parts`.

Start and end: `new_entry`, `emit_frame`, `emit_barriers`, `emit_walk`, `emit_origin`.  The ring: `emit_cursor`,
`emit_advance`, `emit_slot_barrier`, `emit_wait`.  Work: `emit_stage_loads`, `emit_products`, `emit_stage_products`.
The way out: `emit_staging`, `emit_epilogue`, `emit_stores_done`.
"""

from __future__ import annotations

from hopsim.kernels.gemm.epilogue import emit_epilogue, emit_staging, emit_stores_done
from hopsim.kernels.gemm.frame import emit_frame, new_entry
from hopsim.kernels.gemm.loads import Loads, emit_stage_loads
from hopsim.kernels.gemm.mainloop import emit_products, emit_stage_products
from hopsim.kernels.gemm.plan import GemmPlan
from hopsim.kernels.gemm.ring import emit_advance, emit_barriers, emit_wait
from hopsim.kernels.gemm.scheduler import emit_origin, emit_walk
from hopsim.kernels.gemm.schedules import Schedule
from hopsim.kernels.ptx.pipeline import emit_cursor, emit_slot_barrier
from hopsim.kernels.ptx.text import PtxEntry, address

NO_MULTICAST = Loads(None, None)

__all__ = [
    "NO_MULTICAST",
    "GemmPlan",
    "PtxEntry",
    "Schedule",
    "address",
    "emit_advance",
    "emit_barriers",
    "emit_cursor",
    "emit_epilogue",
    "emit_frame",
    "emit_origin",
    "emit_products",
    "emit_slot_barrier",
    "emit_stage_loads",
    "emit_stage_products",
    "emit_staging",
    "emit_stores_done",
    "emit_wait",
    "emit_walk",
    "new_entry",
]
