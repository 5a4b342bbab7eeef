"""The lessons, in order: for somebody who knows CUDA but not Hopper."""

from __future__ import annotations

import difflib
from typing import Final

from hopsim.errors import ConfigError
from hopsim.learn.lesson import Lesson

LOAD: Final = "cp.async.bulk.shared::cluster.global"
STORE: Final = "cp.async.bulk.global.shared::cta"

LESSONS: Final[tuple[Lesson, ...]] = (
    Lesson(
        name="wait-before-you-read",
        title="A copy that is issued is not a copy that is done",
        twin="tma-read-unwaited",
        text="""\
On Hopper one thread can ask the TMA engine to copy a whole tile into shared memory. The instruction
`cp.async.bulk` returns at once; the bytes come hundreds of cycles later. No `bar.sync` helps: the barrier knows
what threads did, and no thread does this copy.

The engine tells an mbarrier, a small object in shared memory, how many bytes have arrived. Whoever wants
the bytes waits for that mbarrier.""",
        picture="""\
thread 0    expect 2048 bytes | issue copy |
TMA                           |------ bytes are under way ------| 2048 bytes: phase complete
others      bar.sync          | read: too early                 | read: right""",
        task="All threads read the tile that thread 0 loads. Let them wait for it.",
        keeps=(LOAD,),
        hints=(
            "Which object is told when the bytes are there? Its address stands at the end of the copy.",
            "mbarrier.try_wait.parity gives a predicate: true when the phase is complete. It may give up: loop.",
            "Before the ld.shared:\n    W:\n    mbarrier.try_wait.parity.shared::cta.b64 %p19, [%s+8192], 0;\n"
            "    @!%p19 bra W;",
        ),
        after="Every asynchronous operation has an end that somebody waits for. For loads by TMA it is an mbarrier phase.",
    ),
    Lesson(
        name="what-a-phase-is",
        title="What a phase is, and why it has a parity",
        twin="wait-wrong-parity",
        text="""\
An mbarrier goes through phases: 0, 1, 2, ... A phase is complete when all expected arrivals and all expected
bytes have come; then the next one begins by itself.

A wait does not name the number of the phase but its parity, one bit: `try_wait.parity P` asks "is the phase
of parity P over?". For a fresh barrier phase 0 is open. And the phase before it, which never was, counts as
over: it has parity 1.""",
        picture="""\
phase          (-1)      0            1
parity          1        0            1
wait for 1   passes      |            |      at once, on a fresh barrier
wait for 0               | waits ...  | passes""",
        task="The wait is there, and yet the tile is read too early. Ask for the right phase.",
        keeps=(LOAD, "mbarrier.try_wait.parity"),
        hints=(
            "Which phase does the copy complete: the how many-th of this barrier is it?",
            "The first phase has number 0, so parity 0.",
            "Change the last operand of mbarrier.try_wait.parity from 1 to 0.",
        ),
        after="A wait for the wrong parity does not fail. It passes at once, on old news, or never.",
    ),
    Lesson(
        name="bytes-and-arrivals",
        title="A phase needs its arrivals and its bytes",
        twin="expect-without-arrive",
        text="""\
`mbarrier.init [b], 1` says: a phase needs one arrival. A copy by TMA is no arrival; it counts bytes. So two
things must come to zero: the arrivals that are missing, and the bytes that are missing.

`mbarrier.expect_tx` raises the bytes that are missing. `mbarrier.arrive` lowers the arrivals that are missing.
There is an instruction that does both, in that order.""",
        picture="""\
                       arrivals missing   bytes missing
init 1                        1                0
expect_tx 2048                1             2048
copy done                     1                0        the phase stays open
arrive                        0                0        complete""",
        task="All bytes come, and everybody waits for ever. Complete the phase.",
        keeps=(LOAD, "mbarrier.try_wait.parity"),
        hints=(
            "Run hopsim learn bytes-and-arrivals --check and read the story: what is missing?",
            "Nobody arrives. Thread 0 should, after it has said how many bytes to expect.",
            "Replace mbarrier.expect_tx... by\n"
            "    @%leader mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+8192], 2048;",
        ),
        after="If a kernel hangs, ask two questions of each barrier: which arrivals are missing, which bytes?",
    ),
    Lesson(
        name="who-has-waited",
        title="A wait tells the thread that waits, and nobody else",
        twin="cp-async-wait-not-published",
        text="""\
`cp.async` is the older copy, of Ampere: each thread copies 16 bytes of its own and waits for its own with
`cp.async.wait_group`. After that wait a thread may read what it has copied itself.

What another thread has copied is another matter. That thread has waited, you have not.""",
        picture="""\
thread 0    copy a | wait | knows of a
thread 127  copy b | wait | knows of b
thread 0                  | reads b: nobody told it
with a barrier:    | wait | bar.sync | knows of a and b""",
        task="Each thread reads what another one has copied. Make that right.",
        keeps=("cp.async.cg.shared.global",),
        hints=(
            "The copies are waited for. What is missing is between threads.",
            "A barrier passes on what each thread knows before it arrives.",
            "bar.sync 0; after cp.async.wait_group 0;",
        ),
        after="First wait, then meet. The other way round, the barrier has nothing to pass on.",
    ),
    Lesson(
        name="flip-the-parity",
        title="The second time round",
        twin="parity-not-flipped",
        text="""\
A kernel uses the same slot and the same barrier again and again. The first load completes phase 0, the next
phase 1, then 2. So the parity to wait for alternates: 0, 1, 0, 1.

In a ring of several slots it turns each time the ring wraps around.""",
        picture="""\
load no.       1        2        3
phase          0        1        2
parity         0        1        0""",
        task="The slot is filled twice. The second wait passes at once: mend it.",
        keeps=(LOAD, "mbarrier.try_wait.parity", "fence.proxy.async"),
        hints=(
            "Look at the last operand of both waits.",
            "The second load completes phase 1.",
            "The second mbarrier.try_wait.parity wants 1 as its last operand.",
        ),
        after="Keep a parity beside the index of the slot, and flip it when the index goes back to zero.",
    ),
    Lesson(
        name="hand-the-slot-back",
        title="A slot is free when its readers say so",
        twin="slot-overwrite",
        text="""\
A full barrier says that a slot may be read. Nothing so far says that it may be written again. The engine does
not look whether somebody still reads: it writes when it is asked to.

With one group of threads a `bar.sync` before the next load is enough. Where producer and consumers are
different warps there is a second mbarrier for each slot, often called empty.""",
        picture="""\
thread 0     read | issue next load
TMA               |------| writes the slot
thread 96    .......... read: which tile?""",
        task="Thread 0 refills the slot while other warps still read it. Hold it back.",
        keeps=(LOAD, "fence.proxy.async"),
        hints=(
            "Who has to be done before thread 0 may load again?",
            "All threads read. A barrier for all of them stands between their reads and the refill.",
            "bar.sync 0; after the fence, before the second mbarrier.arrive.expect_tx",
        ),
        after="Every buffer needs two messages: full, from who writes, and empty, from who reads.",
    ),
    Lesson(
        name="products-in-flight",
        title="wgmma is asynchronous too",
        twin="wgmma-wait-off-by-one",
        text="""\
`wgmma.mma_async` starts a product of a whole warpgroup, four warps. It reads shared memory and writes the
accumulator registers while your threads go on. `wgmma.commit_group` closes a group of products,
`wgmma.wait_group N` waits until at most the N newest groups are still running.

Until then the accumulators belong to the tensor core: even reading them is undefined.""",
        picture="""\
issue  | commit | wait_group 1 | read        the newest group may still run
issue  | commit | wait_group 0 ........ | read""",
        task="The accumulators are read while the product may still run. Wait for it.",
        keeps=("wgmma.mma_async", "wgmma.commit_group", "wgmma.fence"),
        hints=(
            "How many groups were committed, and how many may still run after the wait?",
            "With N = 1 one group may still run, and there is only one.",
            "wgmma.wait_group.sync.aligned 0;",
        ),
        after="N counts what may go on. To use the newest result, N must be 0.",
    ),
    Lesson(
        name="release-after-the-products",
        title="Issued is not read",
        twin="release-before-wgmma-done",
        text="""\
Now both: consumers multiply out of a slot and hand it back to a producer warp by arriving on an empty
barrier. The product reads the slot while it runs. Having issued it means nothing for the slot.""",
        picture="""\
consumer    issue product | arrive on empty
tensor core               |---- reads the slot ----|
producer                        | refills the slot: too early""",
        task="The consumers hand the slot back too early. Move one line.",
        keeps=(LOAD, "wgmma.mma_async", "mbarrier.arrive.shared::cta"),
        hints=(
            "When has the tensor core read its operands? When the group is waited for.",
            "The wait is there; it stands on the wrong side of the arrive.",
            "wgmma.wait_group.sync.aligned 0; before mbarrier.arrive...[%s+8208];",
        ),
        after="An arrive says: what I did is done. It does not say it of what the tensor core does for you.",
    ),
    Lesson(
        name="the-other-proxy",
        title="TMA does not see what threads have written",
        twin="gen-write-to-tma-store",
        text="""\
Threads reach memory through the generic proxy, TMA and wgmma through the async proxy: think of two paths
with buffers of their own. What threads have written may still be on its way when TMA reads, although a barrier has
ordered the threads.

`fence.proxy.async` is the bridge. It works in the thread that executes it, for what this thread has written, or has
learned of, before it.""",
        picture="""\
threads     st.shared | bar.sync                     barrier: orders threads
memory      ....... written here?
TMA                              | reads: perhaps the old bytes
threads     st.shared | fence.proxy.async | bar.sync
TMA                                                 | reads: the new bytes""",
        task="All threads write a tile, thread 0 stores it with TMA. Let TMA see the tile.",
        keeps=(STORE, "st.shared", "bar.sync"),
        hints=(
            "The barrier is right. What else is between a thread's write and TMA's read?",
            "A fence for the proxy, in every thread that wrote, before the barrier.",
            "fence.proxy.async.shared::cta; between st.shared and bar.sync",
        ),
        after="Threads write, TMA or wgmma reads: always a proxy fence. The other way, after the wait: none.",
    ),
    Lesson(
        name="fence-and-barrier",
        title="Why the fence and the barrier are both needed",
        twin="barrier-missing-beside-tma-store",
        text="""\
The last lesson put a fence before the barrier. Then is the barrier needed? Thread 0 issues the store. Its
own writes are fenced. But the other warps may not have written at all yet: a fence waits for nobody.

And the other way round: with a barrier only, all have written, and TMA may not see it.""",
        picture="""\
              written by all?    seen by TMA?
fence only         no                -
barrier only       yes               no
both               yes               yes""",
        task="Here the fence is there and the barrier is not. Complete the pair, in the right order.",
        keeps=(STORE, "st.shared", "fence.proxy.async"),
        hints=(
            "Thread 0 must know that the others have written and fenced.",
            "The barrier stands after the fence: it passes on that the fence was executed.",
            "bar.sync 0; between fence.proxy.async and cp.async.bulk.global",
        ),
        after="Write, fence, barrier, then TMA. Each step answers another question: who sees it, and who has done it.",
    ),
    Lesson(
        name="stores-read-later",
        title="A store reads its source when it likes",
        twin="store-source-reuse",
        text="""\
A store by TMA is asynchronous as well: it reads shared memory some time after it was issued. Write the tile
again before that, and the new bytes may go out instead of the old ones.

Stores are tracked by groups of the thread that issues them: `cp.async.bulk.commit_group`, then
`cp.async.bulk.wait_group.read 0`, which waits until all sources have been read. Only that thread knows then.""",
        picture="""\
thread 0    issue store | commit | wait_group.read | bar.sync
TMA                     |--- reads the tile ---|
others                                             | bar.sync | write again""",
        task="The tile is written again too early. Two lines are missing.",
        keeps=(STORE, "st.shared", "fence.proxy.async"),
        hints=(
            "Who can know that the tile has been read? Who needs to know it?",
            "The issuing thread waits for its group; a barrier tells the others.",
            "After commit_group:\n    @%leader cp.async.bulk.wait_group.read 0;\n    bar.sync 0;",
        ),
        after="Wait in the thread that issued, then meet. `.read` frees the source; for the stored data leave it out.",
    ),
    Lesson(
        name="peers-come-and-go",
        title="A peer's memory lives as long as the peer",
        twin="dsmem-early-exit",
        text="""\
CTAs of a cluster can read each other's shared memory. They start at different times and end at different times,
and shared memory ends with its CTA.

So a cluster barrier stands at both ends: before the first access, so that the peer is there, and after the last,
so that it is still there.""",
        picture="""\
cta 0    start | barrier | read from cta 1 .......... | barrier | exit
cta 1    start | barrier | done early, exits: memory gone
with the second barrier:  | waits ................... | barrier | exit""",
        task="A CTA reads from its peer, which may have exited. Keep the peer alive.",
        keeps=("ld.shared::cluster", "mapa"),
        hints=(
            "Which of the two barriers is missing?",
            "barrier.cluster.arrive and barrier.cluster.wait, in all threads of both CTAs.",
            "At the end:\n    barrier.cluster.arrive;\n    barrier.cluster.wait;",
        ),
        after="In a cluster, nobody leaves before everybody is done with everybody.",
    ),
)


def lesson_named(name: str) -> Lesson:
    """Return a lesson by its name or its number, from 1.

    Raises: ConfigError: there is none.
    """
    for number, lesson in enumerate(LESSONS, 1):
        if name in (lesson.name, str(number)):
            return lesson
    names = [lesson.name for lesson in LESSONS]
    near = [one for one in names if name in one] or difflib.get_close_matches(name, names, n=1)
    raise ConfigError(
        f"there is no lesson {name!r}", hint=", ".join(near) or "hopsim learn lists them"
    )
