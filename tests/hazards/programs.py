"""Twin programs: one body, of which the bad and the good twin each take some lines.

A line that begins with `-` is in the bad twin only, with `+` in the good twin only.  A comment `//a` names the line.

A body finds ready: `%t` (thread), `%w` (warp), `%l` (lane), `%c` (rank in the cluster), `%leader` (thread 0), `%in`
and `%out` (global arrays of 64 KiB), `%s` (shared memory of 16 KiB, aligned to 1024), `%z` (zero), and registers
`%r0`-`%r39`, `%rd0`-`%rd19`, `%p0`-`%p19`, `%f0`-`%f19`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hopsim.hazards.facts import CheckOptions
from hopsim.isa.program.kernel import loads
from hopsim.launch.arrays import TensorMap
from hopsim.results import LaunchResult
from hopsim.runtime.gpu import Gpu

ARRAY_WORDS = 16384
SHARED_BYTES = 16384
HEAD = """.version {version}
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry k(.param .u64 in, .param .u64 out, .param .u64 unwritten, .param .u64 maps)
{bound}
{{
.reg .pred %p<20>, %leader;
.reg .b32 %r<40>;
.reg .b32 %t, %w, %l, %c, %s, %z;
.reg .b64 %rd<20>;
.reg .b64 %in, %out, %map, %base, %da, %db;
.reg .f32 %f<20>;
mov.u32 %t, %tid.x;
shr.u32 %w, %t, 5;
and.b32 %l, %t, 31;
mov.u32 %c, %cluster_ctarank;
mov.u32 %s, smem;
mov.b32 %z, 0;
ld.param.u64 %in, [in];
ld.param.u64 %out, [out];
ld.param.u64 %map, [maps];
setp.eq.u32 %leader, %t, 0;
and.b32 %r39, %s, 262143;
shr.u32 %r39, %r39, 4;
cvt.u64.u32 %base, %r39;
or.b64 %da, %base, 0x1000080000;
add.s64 %db, %da, 128;
"""
FULL, OTHER, EMPTY = 8192, 8200, 8208


@dataclass(frozen=True)
class Twin:
    """A pair of programs, and what the bad one is found guilty of.

    `expected`: (rule, name of the first line, name of the second); an empty name: that side is missing or has no line.
    """

    name: str
    body: str
    expected: tuple[tuple[str, str, str], ...]
    threads: int = 128
    ctas: int = 1
    cluster: int = 1
    verdict: str = "hazard"
    version: str = "8.7"
    level: str = "hazard"
    bound: bool = True
    options: CheckOptions | bool = True


@lru_cache(512)
def text_of(body: str, good: bool, threads: int, version: str, bound: bool = True) -> str:
    lines: list[str] = []
    for line in body.strip("\n").splitlines():
        mark, rest = line[:1], line[1:]
        if mark == ("-" if good else "+"):
            continue
        lines.append(rest.strip() if mark in "+-" else line.strip())
    return (
        HEAD.format(bound=f".reqntid {threads} .minnctapersm 1" if bound else "", version=version)
        + "\n".join(lines)
        + "\nret;\n}\n"
    )


def line_of(text: str, name: str) -> int:
    """Return the number of the line that a comment names; 0 for no name."""
    if not name:
        return 0
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(rf"//{name}\b", line):
            return number
    raise AssertionError(name)


def launch(
    twin: Twin,
    good: bool,
    options: CheckOptions | bool = True,
    schedule: str = "in-order",
    seed: int = 0,
    joined: bool = False,
) -> LaunchResult:
    text = text_of(twin.body, good, twin.threads, twin.version, twin.bound)
    if joined:
        head, body = re.sub(r"//.*", "", text).split("{\n", 1)
        text = head + "{\n" + " ".join(body.splitlines())
    gpu = Gpu()
    source = gpu.array(np.arange(ARRAY_WORDS, dtype=np.uint32).reshape(-1, 32))
    target = gpu.array(np.zeros(ARRAY_WORDS, np.uint32))
    unwritten = gpu.empty(1024, np.uint32)
    encoded = np.frombuffer(gpu.encode(TensorMap(source, box=(32, 16))), np.uint8)
    return gpu.launch(
        loads(text)["k"], twin.ctas, twin.threads, twin.cluster, [source, target, unwritten, gpu.array(encoded)], SHARED_BYTES,
        check=options, schedule=schedule, seed=seed, max_cycles=200_000,
    )  # fmt: skip


def findings(result: LaunchResult, level: str = "hazard") -> list[tuple[str, int, int]]:
    return [
        (h.rule, h.first.line if h.first else 0, h.second.line if h.second else 0)
        for h in result.hazards
        if h.level == level
    ]


# --- pieces ---------------------------------------------------------------------------------------


def only(mark: str, text: str) -> str:
    """Put lines into one twin."""
    return "".join(mark + line + "\n" for line in text.splitlines())


def init(barrier: int = FULL, count: int = 1, name: str = "") -> str:
    mark = f" //{name}" if name else ""
    return f"@%leader mbarrier.init.shared::cta.b64 [%s+{barrier}], {count};{mark}\n"


def expect(barrier: int = FULL, count_bytes: int = 2048) -> str:
    return f"@%leader mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+{barrier}], {count_bytes};\n"


def load(
    to: int = 0,
    barrier: int = FULL,
    name: str = "",
    count_bytes: int = 2048,
    guard: str = "@%leader ",
) -> str:
    mark = f" //{name}" if name else ""
    return (
        f"{guard}cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        f"[%s+{to}], [%in], {count_bytes}, [%s+{barrier}];{mark}\n"
    )


_waits = 0


def wait(
    barrier: int = FULL, parity: int | str = 0, mark: str = "", scope: str = "", name: str = ""
) -> str:
    """A loop until the phase of a parity is over; `mark` is `+` or `-` for one twin only."""
    global _waits
    _waits += 1
    label = f"W{_waits}"
    note = f" //{name}" if name else ""
    return (
        f"{mark}{label}:\n"
        f"{mark}mbarrier.try_wait.parity{scope}.shared::cta.b64 %p19, [%s+{barrier}], {parity};{note}\n"
        f"{mark}@!%p19 bra {label};\n"
    )


def store(
    frm: int = 0, name: str = "", count_bytes: int = 2048, guard: str = "@%leader ", to: int = 0
) -> str:
    mark = f" //{name}" if name else ""
    return f"{guard}cp.async.bulk.global.shared::cta.bulk_group [%out+{to}], [%s+{frm}], {count_bytes};{mark}\n"


COMMIT_STORE = "@%leader cp.async.bulk.commit_group;\n"
WAIT_READ = "@%leader cp.async.bulk.wait_group.read 0;\n"
WAIT_STORE = "@%leader cp.async.bulk.wait_group 0;\n"
MINE = "mad.lo.u32 %r0, %t, 16, %s;\n"  # 16 bytes a thread: 2048 for a warpgroup


def put(name: str = "", at: int = 0) -> str:
    """Every thread writes its 16 bytes of the tile."""
    mark = f" //{name}" if name else ""
    return f"{MINE}st.shared.v4.b32 [%r0+{at}], {{%t, %t, %t, %t}};{mark}\n"


def get(name: str = "", at: int = 0) -> str:
    """Every thread reads its 16 bytes of the tile."""
    mark = f" //{name}" if name else ""
    return f"{MINE}ld.shared.v4.b32 {{%r1, %r2, %r3, %r4}}, [%r0+{at}];{mark}\n"


FENCE_REGS = "wgmma.fence.sync.aligned;\n"
COMMIT_MMA = "wgmma.commit_group.sync.aligned;\n"


def mma(name: str = "", a: str = "%da", d: int = 0) -> str:
    """A 64x8x16 product from the tile's first 2 KiB (A, from `a`) and 256 bytes of it (B)."""
    mark = f" //{name}" if name else ""
    registers = ", ".join(f"%f{d + k}" for k in range(4))
    return f"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {{{registers}}}, {a}, {a}, 0, 1, 1, 0, 0;{mark}\n"


def wait_mma(newest: int = 0, mark: str = "") -> str:
    return f"{mark}wgmma.wait_group.sync.aligned {newest};\n"
