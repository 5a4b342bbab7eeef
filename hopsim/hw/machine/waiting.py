"""What a strand can wait for, in words a deadlock report can use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, eq=False)
class Wait:
    """One reason why a strand cannot go on.

    `kind`: `mbarrier`, `named barrier`, `cluster barrier`, `wgmma group`, `bulk group`, `cp.async group`, `registers`,
    `collective` (other lanes or warps must execute the same instruction), `sleep`.
    `subject`: the object waited for.  `detail`: parity, group count, register count, ... by kind.
    """

    kind: str
    subject: Any
    detail: Any = None
    over: bool = False
