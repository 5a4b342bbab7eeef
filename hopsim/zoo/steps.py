"""The few lines of PTX that most twins need, by name, and the frame around them.

    $init FULL 1            mbarrier.init by thread 0
    $expect FULL 2048       arrive and expect bytes, by thread 0
    $load 0 FULL            bulk copy of 2048 bytes to a slot, by thread 0
    $multicast 0 FULL       the same copy to the CTAs of the mask %h0
    $wait FULL 0            loop until the phase of a parity is over
    $put 0, $get 0          each thread writes, or reads, its own 16 bytes of a slot
    $next 0                 each thread reads what another thread wrote
    $store 0                bulk copy of a slot to global memory, by thread 0
    $mma 0                  a 64x8x16 product of a slot
    $copymap                16 threads copy the tensor map to global memory, to which %sink then points
    $tensor %sink           tensor copy of a box of 2048 bytes to slot 0 by a map, by thread 0
    $result %r1             each thread writes a word where the host can see it

`by=all` lets every thread do it, `by=%p1` those where a predicate holds; `bytes=`, `at=` and the like change a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

BARRIERS: Final = {"FULL": 8192, "OTHER": 8200, "EMPTY": 8208}
SLOT_BYTES: Final = 2048

HEAD: Final = """\
// Shared memory: slots of 2048 bytes from 0; mbarriers FULL at 8192, OTHER at 8200, EMPTY at 8208.
.version {version}
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry k(
    .param .u64 in, .param .u64 out, .param .u64 unwritten, .param .align 64 .b8 tile[128]
)
{bounds}{{
    .reg .pred %p<20>, %leader;
    .reg .b16 %h<4>;
    .reg .b32 %r<40>, %t, %w, %l, %c, %s, %own, %cta;
    .reg .b64 %rd<20>, %in, %out, %mine, %sink, %map, %da, %db;
    .reg .f32 %f<20>;
    mov.u32 %t, %tid.x;                     // thread
    shr.u32 %w, %t, 5;                      // warp
    and.b32 %l, %t, 31;                     // lane
    mov.u32 %c, %cluster_ctarank;           // CTA in its cluster
    mov.u32 %cta, %ctaid.x;
    mov.u32 %s, smem;
    mad.lo.u32 %own, %t, 16, %s;            // 16 bytes for each thread
    setp.eq.u32 %leader, %t, 0;
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    mov.b64 %map, tile;
    cvta.param.u64 %map, %map;
    mov.u32 %r39, %ntid.x;
    mad.lo.u32 %r39, %cta, %r39, %t;
    mul.wide.u32 %mine, %r39, 4;
    add.u64 %mine, %mine, %out;             // a word of the result for each thread
    mul.wide.u32 %sink, %cta, 4096;
    add.u64 %sink, %sink, %out;
    add.u64 %sink, %sink, 32768;            // where bulk copies write
    and.b32 %r39, %s, 0x3ffff;
    shr.u32 %r39, %r39, 4;
    cvt.u64.u32 %da, %r39;
    or.b64 %da, %da, 0x1000080000;          // matrix descriptor of slot 0
    add.s64 %db, %da, 128;                  // of slot 1
"""


def head(version: str, threads: int, registers: int) -> str:
    """Return the text before a body.

    Args:
        threads: of a CTA.  registers: bound of a thread.  0 states none.
    """
    bounds = f".reqntid {threads}\n" if threads else ""
    bounds += f".maxnreg {registers}\n" if registers else ""
    return HEAD.format(version=version, bounds=bounds)


def expand(body: str, is_good: bool) -> list[str]:
    """Return the lines of one twin."""
    lines: list[str] = []
    labels = 0
    for raw in body.strip("\n").splitlines():
        mark, text = raw[:1], raw[1:].strip()
        if not text or mark == ("-" if is_good else "+"):
            continue
        assert mark in " +-", raw
        if not text.startswith("$"):
            lines.append(text)
            continue
        name, *words = text[1:].split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        labels += 1
        lines += STEPS[name](plain, options, labels)
    return lines


Options = dict[str, str]


def _by(options: Options, default: str = "%leader") -> str:
    who = options.get("by", default)
    return "" if who == "all" else f"@{who} "


def _bar(word: str) -> str:
    return f"%s+{BARRIERS[word]}"


def _slot(words: list[str]) -> int:
    return SLOT_BYTES * int(words[0]) if words else 0


def _init(words: list[str], options: Options, _: int) -> list[str]:
    count = words[1] if len(words) > 1 else "1"
    return [f"{_by(options)}mbarrier.init.shared::cta.b64 [{_bar(words[0])}], {count};"]


def _expect(words: list[str], options: Options, _: int) -> list[str]:
    count = words[1] if len(words) > 1 else str(SLOT_BYTES)
    return [
        f"{_by(options)}mbarrier.arrive.expect_tx.shared::cta.b64 _, [{_bar(words[0])}], {count};"
    ]


def _load(words: list[str], options: Options, _: int) -> list[str]:
    count = options.get("bytes", str(SLOT_BYTES))
    source = f"%in+{options['at']}" if "at" in options else "%in"
    form = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    return [f"{_by(options)}{form} [%s+{_slot(words)}], [{source}], {count}, [{_bar(words[1])}];"]


def _multicast(words: list[str], options: Options, _: int) -> list[str]:
    source = f"%in+{options['at']}" if "at" in options else "%in"
    form = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
    operands = f"[%s+{_slot(words)}], [{source}], {SLOT_BYTES}, [{_bar(words[1])}], %h0"
    return [f"{_by(options)}{form} {operands};"]


def _wait(words: list[str], options: Options, label: int) -> list[str]:
    scope = options.get("scope", "")
    form = f"mbarrier.try_wait.parity{scope}.shared::cta.b64"
    return [
        f"WAIT_{label}:",
        f"{form} %p19, [{_bar(words[0])}], {words[1]};",
        f"@!%p19 bra WAIT_{label};",
    ]


def _arrive(words: list[str], options: Options, _: int) -> list[str]:
    return [f"{_by(options, 'all')}mbarrier.arrive.shared::cta.b64 _, [{_bar(words[0])}];"]


def _put(words: list[str], options: Options, _: int) -> list[str]:
    value = options.get("value", "%t")
    group = ", ".join([value] * 4)
    return [f"{_by(options, 'all')}st.shared.v4.b32 [%own+{_slot(words)}], {{{group}}};"]


def _get(words: list[str], options: Options, _: int) -> list[str]:
    return [f"{_by(options, 'all')}ld.shared.v4.b32 {{%r1, %r2, %r3, %r4}}, [%own+{_slot(words)}];"]


def _next(words: list[str], options: Options, _: int) -> list[str]:
    flip = options.get("flip", "127")
    return [
        f"xor.b32 %r5, %t, {flip};",
        "mad.lo.u32 %r5, %r5, 16, %s;",
        f"ld.shared.b32 %r1, [%r5+{_slot(words)}];",
    ]


def _store(words: list[str], options: Options, _: int) -> list[str]:
    count = options.get("bytes", str(SLOT_BYTES))
    to = options.get("to", "%sink")
    form = "cp.async.bulk.global.shared::cta.bulk_group"
    return [f"{_by(options)}{form} [{to}], [%s+{_slot(words)}], {count};"]


def _copymap(_words: list[str], _options: Options, _: int) -> list[str]:
    return [
        # Not where the host looks: what is in a map is the device's own affair.
        "ld.param.u64 %sink, [unwritten];",
        "setp.lt.u32 %p18, %t, 16;",
        "mul.wide.u32 %rd10, %t, 8;",
        "add.u64 %rd11, %rd10, %map;",
        "add.u64 %rd12, %rd10, %sink;",
        "@%p18 ld.b64 %rd13, [%rd11];",
        "@%p18 st.global.b64 [%rd12], %rd13;",
    ]


def _tensor(words: list[str], options: Options, _: int) -> list[str]:
    form = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
    return [f"{_by(options)}{form} [%s], [{words[0]}, {{0, 0}}], [{_bar('FULL')}];"]


def _commit(_words: list[str], options: Options, _: int) -> list[str]:
    return [f"{_by(options)}cp.async.bulk.commit_group;"]


def _waitread(words: list[str], options: Options, _: int) -> list[str]:
    return [f"{_by(options)}cp.async.bulk.wait_group.read {words[0]};"]


def _waitstore(words: list[str], options: Options, _: int) -> list[str]:
    return [f"{_by(options)}cp.async.bulk.wait_group {words[0]};"]


def _drain(_words: list[str], options: Options, _: int) -> list[str]:
    by = _by(options)
    return [f"{by}cp.async.bulk.commit_group;", f"{by}cp.async.bulk.wait_group 0;"]


def _sync(_words: list[str], _options: Options, _: int) -> list[str]:
    return ["bar.sync 0;"]


def _fence(words: list[str], options: Options, _: int) -> list[str]:
    space = f".{words[0]}" if words else ""
    return [f"{_by(options, 'all')}fence.proxy.async{space};"]


def _cluster(_words: list[str], _options: Options, _: int) -> list[str]:
    return ["barrier.cluster.arrive;", "barrier.cluster.wait;"]


def _mma(words: list[str], options: Options, _: int) -> list[str]:
    first = int(options.get("d", "0"))
    registers = ", ".join(f"%f{first + k}" for k in range(4))
    source = "%da" if not words or words[0] == "0" else "%db"
    a = options.get("a", source)
    form = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16"
    transposes = "0" if a.startswith("{") else "0, 0"
    return [f"{form} {{{registers}}}, {a}, {source}, 0, 1, 1, {transposes};"]


def _mmafence(_words: list[str], _options: Options, _: int) -> list[str]:
    return ["wgmma.fence.sync.aligned;"]


def _mmacommit(_words: list[str], _options: Options, _: int) -> list[str]:
    return ["wgmma.commit_group.sync.aligned;"]


def _mmawait(words: list[str], _options: Options, _: int) -> list[str]:
    return [f"wgmma.wait_group.sync.aligned {words[0]};"]


def _result(words: list[str], options: Options, _: int) -> list[str]:
    kind = "f32" if words[0].startswith("%f") else "b32"
    at = f"+{options['at']}" if "at" in options else ""
    return [f"{_by(options, 'all')}st.global.{kind} [%mine{at}], {words[0]};"]


def _cpasync(words: list[str], _options: Options, _: int) -> list[str]:
    return [
        "mul.wide.u32 %rd0, %t, 16;",
        "add.u64 %rd0, %rd0, %in;",
        f"cp.async.cg.shared.global [%own+{_slot(words)}], [%rd0], 16;",
    ]


def _peer(words: list[str], _options: Options, _: int) -> list[str]:
    return [
        "xor.b32 %r8, %c, 1;",
        f"mapa.shared::cluster.u32 {words[0]}, {words[1] if len(words) > 1 else '%own'}, %r8;",
    ]


STEPS: Final[dict[str, Callable[[list[str], Options, int], list[str]]]] = {
    "init": _init, "expect": _expect, "load": _load, "multicast": _multicast, "wait": _wait,
    "arrive": _arrive, "put": _put, "get": _get,
    "next": _next, "store": _store, "commit": _commit, "waitread": _waitread, "waitstore": _waitstore,
    "drain": _drain, "sync": _sync, "fence": _fence, "cluster": _cluster, "mma": _mma, "mmafence": _mmafence,
    "mmacommit": _mmacommit, "mmawait": _mmawait, "result": _result, "copymap": _copymap, "tensor": _tensor,
    "cpasync": _cpasync, "peer": _peer,
}  # fmt: skip
