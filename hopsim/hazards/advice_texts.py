"""The texts of what is missing and what to add, by rule and by what is found: `advice` chooses and fills them in."""

from __future__ import annotations

from typing import Final

# rule -> (missing edge, hint); {a} and {b} are the lines of the two accesses, {space} the state space of the bytes,
# {release} where the slot is handed on, {refill} how its readers hold up the next one, {expect} where bytes are expected,
# {raised} how those of a copy come to be,
# {wait} what the second access waited for instead, {awaited} how it waits for what it should, {between} and {rejoin} how
# threads order the two, {settle} how the operation of the first is waited for, {meet} how who did so tells the second,
# {narrow} which fences of the tensormap proxy are of too narrow a scope, {gather} where the lanes of a warp must meet.
ADVICE: Final[dict[str, tuple[str, str]]] = {
    "HS000": (
        "an edge from the completion of :{a} to :{b}",
        "wait for the operation of :{a} (its mbarrier or group) before :{b}",
    ),
    "HS001": (
        "a wait for the mbarrier phase that :{a} completes, before :{b}",
        "{awaited}",
    ),
    "HS002": (
        "a wait for the mbarrier phase that :{a} completes, before :{b}",
        "move the mbarrier.try_wait loop in front of :{b}",
    ),
    "HS003": (
        "a wait for the mbarrier of :{a}, before :{b}",
        "wait for the mbarrier named at :{a}: the wait {wait} is for another one",
    ),
    "HS004": (
        "a wait for the phase that :{a} completes, before :{b}",
        "the wait {wait} is for the parity of an older phase: the first phase has parity 0, and it flips each time around",
    ),
    "HS006": (
        "an edge from the read at :{a} to the refill at :{b}",
        "{refill}",
    ),
    "HS008": (
        "a wgmma.wait_group between :{a} and the release of the slot",
        "before {release}:  wgmma.wait_group.sync.aligned 0;",
    ),
    "HS009": (
        "a wait that covers the group of :{a}",
        "lower N of wgmma.wait_group by one before the slot of :{a} is used again",
    ),
    "HS010": ("a commit of the wgmma at :{a}", "after :{a}:  wgmma.commit_group.sync.aligned;"),
    "HS016": (
        "an edge from the completion of :{a} to :{b}",
        "wait for the load of :{a} (and for its readers) before :{b}, or give the two different slots",
    ),
    "HS017": (
        "a group wait of the copying thread that covers :{a}",
        "before :{b}:  cp.async.commit_group;  cp.async.wait_group 0;  and a barrier if other threads read",
    ),
    "HS018": (
        "an edge from the waiting thread to the reader",
        "after the cp.async.wait_group, before :{b}:  bar.sync 0;",
    ),
    "HS100": (
        "a bridge between the proxies for {space} after :{a}",
        "after :{a}:  fence.proxy.async.{space};",
    ),
    "HS101": (
        "generic-to-async bridge for {space} on the way from :{a} to :{b}",
        "after :{a}, in every writing thread, before the barrier:  fence.proxy.async.{space};",
    ),
    "HS102": (
        "generic-to-async bridge for {space} on the way from :{a} to :{b}",
        "after :{a}, in every writing thread, before the barrier:  fence.proxy.async.{space};",
    ),
    "HS103": (
        "generic-to-async bridge for {space}: cp.async writes through the generic proxy",
        "after the wait for the copy, in every thread that waits:  fence.proxy.async.{space};",
    ),
    "HS104": (
        "generic-to-async bridge for {space} between the read at :{a} and the refill at :{b}",
        "after :{a}, in every reading thread, before it releases the slot:  fence.proxy.async.{space};",
    ),
    "HS108": (
        "generic-to-async bridge for global on the way from :{a} to :{b}",
        "after :{a}, before it is published (and after the flag is read):  fence.proxy.async.global;",
    ),
    "HS109": (
        "generic-to-async bridge for {space} between the arrival of st.async data and :{b}",
        "after the wait, before :{b}:  fence.proxy.async.{space};",
    ),
    "HS111": (
        "one proxy for all atomics on these bytes, or a bridge between them",
        "use only atom/red, or only cp.reduce.async.bulk, or order them with fence.proxy.async.global",
    ),
    "HS201": (
        "bytes of :{a} in the expected count of the phase",
        "{raised}",
    ),
    "HS203": (
        "an arrival in the phase that expects the bytes of :{a}",
        "put the expect_tx{expect} in front of the arrive that completes the phase before (mbarrier.arrive.expect_tx does"
        " both): behind it, it counts for the next phase",
    ),
    "HS207": (
        "one issuer: several threads issue the same copy",
        "let one thread issue :{a}:  elect.sync _|p, -1;  @p ...",
    ),
    "HS208": (
        "an edge from the other lanes of the warp to the lane that arrives",
        "{gather}:  bar.warp.sync 0xffffffff;",
    ),
    "HS216": (
        "release on the one side and acquire on the other: .relaxed carries nothing",
        "use .release at the arrive (or the flag's write) and .acquire at the wait (or its read), or add a "
        "fence.acq_rel of that scope on the relaxed side",
    ),
    "HS217": (
        "an edge of cluster scope: .cta semantics do not reach another CTA",
        "use .release.cluster at the arrive and .acquire.cluster at the wait",
    ),
    "HS223": (
        "an edge from the issuer of the copy: complete_tx publishes the copied bytes only",
        "let the writing thread arrive on the mbarrier (or pass a barrier) after :{a}",
    ),
    "HS224": (
        "an arrive after the store",
        "move the mbarrier.arrive behind :{a}: it publishes only what stands before it",
    ),
    "HS300": (
        "an edge from the completion of :{a} to :{b}",
        "{settle}",
    ),
    "HS301": (
        "a wait for the read of :{a} before :{b}",
        "{settle}",
    ),
    "HS302": (
        "a wait that covers the group of :{a}",
        "lower N of cp.async.bulk.wait_group by one: the group of :{a} is among those left pending",
    ),
    "HS303": (
        "a full wait: .read says only that the source is free",
        "cp.async.bulk.wait_group 0 (without .read) before the data of :{a} is published",
    ),
    "HS304": (
        "a wait by the thread that issued :{a}: groups belong to a thread",
        "let the issuing thread of :{a} execute cp.async.bulk.wait_group, then a barrier",
    ),
    "HS305": ("a commit of :{a}", "after :{a}, in the same thread:  cp.async.bulk.commit_group;"),
    "HS306": (
        "an edge from the thread that waited to :{b}",
        "after the wait of the issuing thread, before :{b}:  {meet}{left}",
    ),
    "HS307": (
        "a wait for the copy of :{a}, which still reads the map",
        "wait for all copies that use the map (their mbarriers, or cp.async.bulk.wait_group.read 0) before :{b}",
    ),
    "HS308": (
        "release and acquire of the map in the tensormap proxy, between :{a} and :{b}{narrow}",
        "after :{a}:  fence.proxy.tensormap::generic.release.gpu;  before :{b}:  "
        "fence.proxy.tensormap::generic.acquire.gpu [map], 128;",
    ),
    "HS403": (
        "a releasing arrive: .relaxed publishes nothing",
        "barrier.cluster.arrive.release (the default) instead of .relaxed, or a fence.acq_rel.cluster before it",
    ),
    "HS405": (
        "an arrive of the readers in every CTA that the multicast writes",
        "let consumers of all destination CTAs arrive on the issuer's 'empty' mbarrier, and count them at its init",
    ),
    "HS406": (
        "an edge between the threads that read the phase and the one that writes the next",
        "between :{a} and :{b}, a barrier of all who read the word:  bar.sync 0;",
    ),
    "HS500": (
        "an edge between the two threads",
        "{between}",
    ),
    "HS501": (
        "a barrier between the read at :{a} and the write at :{b}",
        "{rejoin}",
    ),
    "HS502": (
        "a warp barrier between :{a} and :{b}",
        "between :{a} and :{b}:  bar.warp.sync 0xffffffff;",
    ),
    "HS510": (
        "a scope that includes both threads",
        "use .{scope} scope at both accesses: a narrower one does not reach the other CTA",
    ),
    "HS511": (
        "an acquire: red never acquires",
        "use atom.acquire, or a fence.acq_rel after a relaxed read",
    ),
    "HS512": (
        "accesses of one size: strong accesses that overlap partly are not morally strong",
        "access the location with the same width everywhere",
    ),
}
CARRY: Final = (
    "release and acquire on the way from {sent} to {seen}: .relaxed and volatile carry nothing",
    "use .release at {sent} and .acquire at {seen}; or before {sent}, in its thread:  fence.acq_rel.{scope};  and another"
    " behind {seen}, where there is none  (in CUDA: {cuda})",
)
# Where one of the two fences of a tensor map is there: what the other one is.
HALF_MAP: Final = {
    "release": (
        "a release of the map in the tensormap proxy, after :{a}{narrow}",
        "after :{a}:  fence.proxy.tensormap::generic.release.gpu;",
    ),
    "acquire": (
        "an acquire of the map in the tensormap proxy, before :{b}{narrow}",
        "before :{b}:  fence.proxy.tensormap::generic.acquire.gpu [map], 128;",
    ),
}
BEHIND_FENCE: Final = (
    "a fence between :{a} and {sent}: those before :{a} publish only what stands before them",
    "between :{a} and {sent}, in the thread of {sent}:  fence.acq_rel.{scope};  (in CUDA: {cuda})  or .release at {sent}",
)
CARRY_ON: Final = (
    "release and acquire at {sent}: .relaxed carries nothing",
    "use .acq_rel at {sent}; or before it, in its thread:  fence.acq_rel.{scope};  and another behind it, where there is"
    " none  (in CUDA: {cuda})",
)
TAKE_UP: Final = (
    "an acquire at {seen}: .relaxed and volatile learn nothing of what was released",
    "behind {seen}, in its thread:  fence.acq_rel.{scope};  (in CUDA: {cuda})  or .acquire at {seen}",
)
HAND_ON: Final = (
    "an edge to :{b} from the thread of its CTA that has learned of :{a} at {learned}",
    "behind {learned}, before :{b}, in every thread that goes on:  {barrier}",
)
UNAWAITED: Final = (
    "before :{b}:  cp.async.wait_group 0;  (or N, if the N newest groups may still be on their way), and a barrier if other"
    " threads read"
)
COPIED_BY_OTHERS: Final = (
    "in the copying thread, after :{a}:  cp.async.commit_group;  cp.async.wait_group 0;  then a barrier before :{b}  (or,"
    " instead of mbarrier.arrive:  cp.async.mbarrier.arrive.noinc)"
)
ALL_READERS: Final = (
    "before the arrive at {released}, a barrier of all who read at :{a} (bar.sync of their number), or let each of them"
    " arrive there behind its read, and count them at the mbarrier's init"
)
BY_ISSUER: Final = (
    "  (where only some warps come there: barrier.sync of their number, or an mbarrier on which the issuing thread arrives"
    " behind its wait)"
)
OR_COVER: Final = "  or at :{wait}:  cp.async.bulk.wait_group.read {enough};  which left the group of :{a} pending"
NARROW_FENCE: Final = (
    "a fence of .{scope} scope at {fences}: a narrower one does not reach the other CTA",
    "at {fences}:  fence.{kind}.{scope};",
)
SC_FENCES: Final = (
    "fence.sc on both sides: a fence.acq_rel, as at {acq_rel}, counts only for the flag that its own thread writes after it"
    " or has read before it",
    "at {acq_rel}:  fence.sc.{scope};  (in CUDA: __threadfence(); two fence.acq_rel in its place do not order)  or"
    " fence.acq_rel.{scope} in the thread that sets the flag, right before it, and in the one that reads it, right behind",
)
GUESS: Final = (
    "a read as strong as the compare-and-swap at :{strong}; no barrier",
    "at :{weak}:  ld.relaxed.{wide};  (in CUDA: a volatile read, or load(memory_order_relaxed) of an atomic_ref)  or begin"
    " with any value: the swap at :{strong} tells what it found",
)
GIVE_BACK: Final = (
    "a strong write that gives back what :{strong} takes; no barrier, for others wait until it comes",
    "at :{weak}:  st.release.{wide};  (in CUDA: store(memory_order_release) of an atomic_ref, or __threadfence() and then"
    " atomicExch)",
)
LATE: Final = (
    "a write before the arrive at {arrive}, which publishes only what stands before it",
    "move :{a} in front of {arrive}",
)
FOR_ALL: Final = (
    "an edge from each thread that executes :{a} to the one that goes on for its CTA at {elected}",
    "before {elected}, in every thread of its CTA:  bar.sync 0;",
)
BY_MBARRIER: Final = "let the readers arrive on an 'empty' mbarrier after :{a}, and wait for it before :{b} (or bar.sync)"
BY_REMOTE_MBARRIER: Final = (
    "let the readers arrive on an 'empty' mbarrier of the writing CTA after :{a} (.release.cluster), and wait for it before"
    " :{b} (.acquire.cluster; or barrier.cluster)"
)
IN_CTA: Final = (
    "a barrier between :{a} and :{b}:  bar.sync 0;  (or release and acquire through a flag)"
)
IN_CLUSTER: Final = (
    "between :{a} and :{b}, in every thread of the cluster:  barrier.cluster.arrive;  barrier.cluster.wait;  (or release and"
    " acquire of .cluster scope through a flag)"
)
MIXED: Final = (
    "{between}  or, where any value that stands there will do, make :{weak} as strong as :{strong}, so that they do not"
    " race:  {mended}.relaxed.{scope};"
)
IN_GRID: Final = "after :{write}:  st.release.gpu of a flag;  before :{read}:  loop on ld.acquire.gpu until it is set"
IN_STEP: Final = (
    "between :{a} and :{b}:  bar.warp.sync 0xffffffff;  (in CUDA: __syncwarp(); volatile orders no lanes, which need not go"
    " in step since sm_70)"
)
LEFT_PENDING: Final = (
    "at :{wait}:  cp.async.wait_group {enough};  (it leaves the group of :{a} pending)"
)
RAISE: Final = (
    "raise expect_tx of this phase{expect} by the bytes of :{a}: the phase completed without them"
)
EXPECT: Final = (
    "at :{at}, in the place of a plain arrive:  mbarrier.arrive.expect_tx  with the bytes of :{a}: the phase completed"
    " without them"
)
UNCOMMITTED: Final = (
    "after :{copied}, before the wait at :{wait}:  cp.async.commit_group;  (the wait counts"
    " committed groups only)"
)
OF_SOME: Final = (
    "  (where only some warps come there: barrier.sync of their number, the readers by barrier.arrive; or an mbarrier on"
    " which these arrive after :{a})"
)
ONE_STORE: Final = (
    "let one warp alone issue :{a}, commit it and wait for it, then an edge to the others"
)
ONE_SLOT: Final = (
    "at :{a}, a slot for each mbarrier (its rounds name several mbarriers, and the same bytes); with one slot, wait for the"
    " load and for its readers before the next round"
)
BY_BARRIER: Final = "between :{a} and :{b}, in every thread of the CTA:  bar.sync 0;"
SOURCE_FREE: Final = (
    "in the issuing thread of :{a}:  cp.async.bulk.wait_group.read 0;  then, before :{b}:  {meet}"
)
SOURCE_FREE_HERE: Final = "before :{b}:  cp.async.bulk.wait_group.read 0;"
DRAINED: Final = "cp.async.bulk.commit_group and cp.async.bulk.wait_group 0 in the issuing thread, then an edge to :{b}"
DRAINED_APART: Final = (
    "give each CTA bytes of its own, or in the issuing thread of :{a}:  cp.async.bulk.wait_group 0;"
    "  then, before :{b}:  {meet}"
)
TOLD_BY_MBARRIER: Final = (
    "wait for the mbarrier that :{a} names, in the CTA where it lies (no bulk group tracks this copy);  then, before :{b}:  "
    "{meet}"
)
ONE_LINE: Final = (
    "let one thread alone execute :{a}, give each thread bytes of its own, or use an atomic;  where a loop comes to it once"
    " more:  {barrier} in each round"
)
ONE_LINE_APART: Final = (
    "let one CTA alone execute :{a}, give each CTA bytes of its own, or use an atomic of .gpu scope"
)
"""Where threads meet at one instruction, nothing can stand between it and itself."""
BY_THREADS: Final = {"HS500": "bar.sync 0;", "HS502": "bar.warp.sync 0xffffffff;"}
"""Races of threads, and the barrier of those who take part."""
NO_ADVICE: Final = ("an edge between the two accesses", "order :{a} before :{b}")
