"""Between the CTAs of a cluster and the warps of a CTA: mbarriers to and fro, reading and writing shared memory."""

from __future__ import annotations

from hopsim.kernels.micro.clocked import Benchmark, Clocked, mean_of_rows
from hopsim.kernels.ptx.text import Reg, address, vector

ROUNDS = (8, 40)
THREADS = 256


def ping_pong(ctas: int, scope: str = "cluster") -> Benchmark:
    """Two threads wake each other through mbarriers: of one CTA (1), or of two CTAs of a cluster (2).

    A slope is a whole round: two arrivals and two waits.

    Args:
        scope: of the release of an arrival on another CTA's mbarrier.
    """
    name = f"ping_pong_{ctas}" + ("" if scope == "cluster" else f"_{scope}")
    c = Clocked(name, directives=[".reqntid 64"])
    c.own_row(len(ROUNDS))
    warp = c.k.let(".b32", "warp", "shr.u32", c.thread, 5)
    rank = c.k.let(".b32", "rank", "mov.u32", "%cluster_ctarank")
    c.k.emit("mbarrier.init.shared::cta.b64", address(c.shared), 1, guard=c.first)
    c.k.emit("mbarrier.init.shared::cta.b64", address(c.shared, 8), 1, guard=c.first)
    c.k.emit("fence.mbarrier_init.release.cluster")
    c.k.emit("bar.sync", 0)
    c.k.emit("barrier.cluster.arrive")
    c.k.emit("barrier.cluster.wait")
    done = c.k.label("$done")
    lane = c.k.let(".b32", "lane", "and.b32", c.thread, 31)
    c.k.emit("bra", done, guard=c.k.let(".pred", "others", "setp.ne.u32", lane, 0))
    side = rank if ctas == 2 else warp
    if ctas == 2:
        c.k.emit("bra", done, guard=c.k.let(".pred", "spare", "setp.ne.u32", warp, 0))
    is_second = c.k.let(".pred", "second", "setp.eq.u32", side, 1)
    # Each side waits on its own barrier and arrives on that of the other side.
    other = c.k.let(".b32", "other", "xor.b32", side, 1)
    if ctas == 2:
        own = c.shared
        target = c.k.let(".b32", "target", "mapa.shared::cluster.u32", c.shared, other)
        arrive = f"mbarrier.arrive.release.{scope}.shared::cluster.b64"
    else:
        own = c.k.let(".b32", "own", "mad.lo.u32", side, 8, c.shared)
        target = c.k.let(".b32", "target", "mad.lo.u32", other, 8, c.shared)
        arrive = "mbarrier.arrive.shared::cta.b64"
    parity = c.k.let(".b32", "parity", "mov.u32", 0)
    second = c.k.label("$second")
    c.k.emit("bra", second, guard=is_second)

    def turn(first: bool) -> None:
        for step in (0, 1):
            if (step == 0) == first:
                c.k.emit(arrive, "_", address(target))
            else:
                c.wait_parity(address(own), parity)
        c.k.emit("xor.b32", parity, parity, 1)

    for rounds in ROUNDS:

        def run(rounds: int = rounds) -> None:
            for _ in range(rounds):
                turn(first=True)

        c.measure_one(f"there and back x{rounds}", run)
    c.k.emit("bra", done)
    c.k.place(second)
    for rounds in ROUNDS:
        for _ in range(rounds):
            turn(first=False)
    c.k.place(done)
    c.k.emit("barrier.cluster.arrive")
    c.k.emit("barrier.cluster.wait")
    where = "two CTAs" if ctas == 2 else "two warps"
    return c.benchmark(
        f"mbarriers between {where}, release.{scope}",
        grid=ctas,
        cluster=ctas,
        block=64,
        rows=ctas,
        shared_bytes=1024,
    )


def remote_loads(cluster: int, ctas: int) -> Benchmark:
    """All threads of each CTA load 16 bytes a time from the next CTA of the cluster."""
    unroll, turns = 8, 8
    c = Clocked(f"dsmem_load_c{cluster}_{ctas}", directives=[f".reqntid {THREADS}"])
    c.own_row(1)
    rank = c.k.let(".b32", "rank", "mov.u32", "%cluster_ctarank")
    next_ = c.k.let(".b32", "next", "add.u32", rank, 1)
    c.k.emit("rem.u32", next_, next_, cluster)
    at = c.k.let(".b32", "at", "mad.lo.u32", c.thread, 16, c.shared)
    remote = c.k.let(".b32", "remote", "mapa.shared::cluster.u32", at, next_)
    held = [c.k.regs(".b32", "v", 4) for _ in range(unroll)]
    zero = c.k.let(".b32", "zero", "mov.u32", 0)
    for index in range(unroll):
        c.k.emit("st.shared.v4.b32", address(at, index * THREADS * 16), vector([zero] * 4))
    c.k.emit("barrier.cluster.arrive.aligned")
    c.k.emit("barrier.cluster.wait.aligned")

    def body() -> Reg:
        for _ in range(turns):
            for index, four in enumerate(held):
                place = address(remote, index * THREADS * 16)
                c.k.emit("ld.volatile.shared::cluster.v4.b32", vector(four), place)
            for four in held:
                c.k.emit("xor.b32", zero, zero, four[0])
        return zero

    c.measure("loads", body, whole_cta=True)
    c.k.emit("barrier.cluster.arrive.aligned")
    c.k.emit("barrier.cluster.wait.aligned")
    return c.benchmark(
        f"16-byte loads from the next CTA, clusters of {cluster}, {ctas} CTAs", grid=ctas, cluster=cluster,
        block=THREADS, rows=ctas, summary=mean_of_rows, shared_bytes=unroll * THREADS * 16,
        amounts={"loads": float(ctas * turns * unroll * THREADS * 16)},
    )  # fmt: skip


def bulk_copies(cluster: int, ctas: int, size: int) -> Benchmark:
    """One thread of each CTA copies from its shared memory to that of the next CTA, 8 copies at a time."""
    count = 8
    c = Clocked(f"dsmem_bulk_c{cluster}_{ctas}_{size}B", directives=[".reqntid 32"])
    c.own_row(2)
    bar = 200 * 1024
    c.k.emit("mbarrier.init.shared::cta.b64", address(c.shared, bar), 1, guard=c.first)
    c.k.emit("fence.mbarrier_init.release.cluster")
    c.k.emit("barrier.cluster.arrive.aligned")
    c.k.emit("barrier.cluster.wait.aligned")
    done = c.label_and_leave_but_first()
    rank = c.k.let(".b32", "rank", "mov.u32", "%cluster_ctarank")
    next_ = c.k.let(".b32", "next", "add.u32", rank, 1)
    c.k.emit("rem.u32", next_, next_, cluster)
    remote = c.k.let(".b32", "remote", "mapa.shared::cluster.u32", c.shared, next_)
    parity = c.k.let(".b32", "parity", "mov.u32", 0)

    def body(number: int) -> None:
        c.k.emit(
            "mbarrier.arrive.expect_tx.shared::cta.b64", "_", address(c.shared, bar), size * number
        )
        for _ in range(number):
            c.k.emit(
                "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
                address(remote, 96 * 1024), address(c.shared), size, address(remote, bar),
            )  # fmt: skip
        c.wait_parity(address(c.shared, bar), parity)
        c.k.emit("xor.b32", parity, parity, 1)

    c.measure_one("one copy", lambda: body(1))
    c.measure_one("copies", lambda: body(count))
    c.k.place(done)
    c.k.emit("barrier.cluster.arrive")
    c.k.emit("barrier.cluster.wait")
    return c.benchmark(
        f"bulk copies of {size} bytes to the next CTA, clusters of {cluster}, {ctas} CTAs", grid=ctas,
        cluster=cluster, block=32, rows=ctas, summary=mean_of_rows, shared_bytes=bar + 64,
        amounts={"copies": float(ctas * count * size)},
    )  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """Return all benchmarks of clusters."""
    found = [ping_pong(1), ping_pong(2), ping_pong(2, "cta")]
    found += [remote_loads(cluster, ctas) for cluster, ctas in ((2, 2), (4, 4), (8, 8), (2, 120))]
    found += [
        bulk_copies(cluster, ctas, size)
        for cluster, ctas in ((2, 2), (4, 4), (2, 120)) for size in (128, 4096, 32768)
    ]  # fmt: skip
    return found
