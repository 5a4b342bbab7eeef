"""The catalogue of findings: each stable id with its sentence, its rule in PTX, what silicon does, and how it is found.

Ids never change their meaning and are not used again.  `HSn00` is a pair that certainly races but matches no named
class of its group.

Source: PTX ISA 8.7 to 9.4 by section title; the classes collect public reports of kernels that went wrong.
"""

# ruff: noqa: E501 (one rule a line)
from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Status = Literal["checked", "by-fault", "pending"]

# What silicon does: S silent wrong data, H hang, E error, C compile message, P slow, U undefined and not seen.
EFFECTS: Final = {
    "S": "silent wrong or stale data, depending on time",
    "H": "hang",
    "E": "launch error or trap",
    "C": "a message of ptxas",
    "P": "only slow",
    "U": "undefined by PTX, effect not seen",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One class of findings.

    Args:
        id: `HSnnn`.  name: short name.  sentence: what is wrong.  ptx: instruction or section it is about.
        effect: letters of `EFFECTS`.
        status: `checked` by happens-before or bookkeeping, found `by-fault` of the machine, or `pending`.
    """

    id: str
    name: str
    sentence: str
    ptx: str
    effect: str
    status: Status


_TABLE: Final = """
HS000|async-race|data of an asynchronous operation used without waiting for it|Memory Consistency Model, "Asynchronous Operations"|S|checked
HS001|tma-read-unwaited|shared data used with no wait on its load|mbarrier.try_wait|S|checked
HS002|tma-wait-late|the wait comes after the use|mbarrier.try_wait|S|checked
HS003|wait-wrong-barrier|waits for another stage or operand|mbarrier.try_wait|S|checked
HS004|wait-wrong-parity|stale parity: the wait returns at once or never|mbarrier.try_wait.parity|S,H|checked
HS005|parity-aliasing|the barrier may run on before the waiter has seen the phase|mbarrier.try_wait.parity|S,H|checked
HS006|slot-overwrite|slot refilled while it is still read|mbarrier, bar.sync|S|checked
HS007|empty-initial-parity|the producer's first acquire uses the wrong parity|mbarrier.try_wait.parity|H|checked
HS008|release-before-wgmma-done|slot released while wgmma still reads it|wgmma.wait_group, mbarrier.arrive|S|checked
HS009|wgmma-wait-off-by-one|wait_group leaves the needed group pending|wgmma.wait_group|S|checked
HS010|wgmma-commit-missing|nothing was committed, so the wait waits for nothing|wgmma.commit_group|S|checked
HS011|accumulator-read-early|accumulator registers used before a wait that covers them|wgmma.wait_group|S,U|checked
HS012|wgmma-fence-missing|no wgmma.fence before the first mma, or after a register access|wgmma.fence|U|checked
HS013|wgmma-a-register-overwrite|registers of A rewritten while the mma is in flight|wgmma.mma_async|S|checked
HS014|wgmma-serialised|the compiler serialises the pipeline|wgmma.mma_async|P,C|checked
HS015|wgmma-nonuniform|not all four warps execute the wgmma together|wgmma, ".sync.aligned"|E|checked
HS016|tma-overlap-unordered|two loads into the same bytes, unordered|cp.async.bulk|S|checked
HS017|cp-async-unwaited|read before the group wait, or after one with the wrong N|cp.async.wait_group|S|checked
HS018|cp-async-wait-not-published|others read although only the issuer waited|cp.async.wait_group|S|checked
HS019|async-unobserved-at-exit|the CTA ends with operations that nobody observed|exit|U|checked
HS100|proxy-race|generic access and asynchronous access with no bridge between the proxies|fence.proxy.async|S|checked
HS101|gen-write-to-tma-store|generic write not bridged to a bulk store that reads it|fence.proxy.async|S|checked
HS102|gen-write-to-wgmma|generic write not bridged to a wgmma that reads it|fence.proxy.async|S|checked
HS103|cp-async-to-wgmma|cp.async data read by the async proxy with no bridge|cp.async, fence.proxy.async|S|checked
HS104|gen-read-to-tma-load|slot read by threads, then refilled by TMA with no bridge|fence.proxy.async|S|checked
HS105|proxy-fence-wrong-thread|the fence stands before the write, or in a thread that learned nothing of it|fence.proxy.async|S|checked
HS106|proxy-fence-wrong-space|the fence covers another state space|fence.proxy.async|S|checked
HS107|proxy-fence-skipped-path|the fence sits on a path that was not taken|fence.proxy.async|S|checked
HS108|gen-global-write-to-tma-load|global data written by threads, then read by TMA in the same grid with no bridge|fence.proxy.async.global|S|checked
HS109|st-async-to-async-read|st.async data read by TMA or wgmma with no bridge|st.async|S|checked
HS110|cta-fence-for-cluster|a .shared::cta fence for another CTA's memory|fence.proxy.async.shared::cluster|S|checked
HS111|mixed-proxy-atomics|atom or red against cp.reduce.async.bulk|atom, red|S|checked
HS112|barrier-as-proxy-fence|a barrier is taken for a proxy bridge|bar.sync, mbarrier|S|checked
HS113|redundant-proxy-fence|a fence that orders nothing new|fence.proxy.async|P|checked
HS114|nc-load-of-written-data|ld.global.nc reads what the same grid writes|ld.global.nc|S|checked
HS200|mbarrier-race|misuse of an mbarrier that matches no other class|mbarrier|S|checked
HS201|tx-underexpected|fewer bytes expected than delivered|mbarrier.expect_tx|H,S|checked
HS202|tx-overexpected|more bytes expected than delivered|mbarrier.expect_tx|H|checked
HS203|expect-without-arrive|expect_tx, and nobody arrives|mbarrier.expect_tx|H|checked
HS204|multicast-before-ready|multicast before the receiver's barrier is initialised|.multicast::cluster|S,H|checked
HS205|missing-arriver|the barrier waits for more arrivals than come|mbarrier.init|H|checked
HS206|over-arrive|more arrivals than the count of the phase|mbarrier.arrive|E,S,H|by-fault
HS207|duplicate-issue|copy or arrive issued by every lane or warp|elect.sync|S,H|checked
HS208|elected-arrive-without-syncwarp|all lanes access, one arrives: the others are not released|mbarrier.arrive, bar.warp.sync|S|checked
HS209|init-not-visible|barrier used by threads that nothing orders after its init|mbarrier.init|S,H|checked
HS210|relaxed-arrive-without-init-fence|barrier.cluster.arrive.relaxed after init, and no fence.mbarrier_init|fence.mbarrier_init|U|checked
HS211|use-before-init|used before init or after inval|mbarrier|U|by-fault
HS212|reinit-without-inval|second init of a live object|mbarrier.init|U|checked
HS213|barrier-storage-reused|ordinary data over a live barrier|mbarrier|S,H|checked
HS214|inval-in-flight|inval while a copy or a phase is pending|mbarrier.inval|U|checked
HS215|phase-unconsumed|the next phase is used although no wait saw the last|mbarrier.arrive|U|checked
HS216|relaxed-arrive-or-wait|.relaxed used to carry data, with no fence|.relaxed|S|checked
HS217|cta-scope-across-ctas|.cta semantics between CTAs, or .cluster ones between clusters|.release.cta, .acquire.cta, fence|S|checked
HS218|local-arrive-on-remote-address|.shared::cta arrive on an address of mapa|mbarrier.arrive|E|checked
HS219|wait-on-remote-barrier|wait on a peer's barrier|mbarrier.try_wait|E|by-fault
HS220|drop-or-nocomplete-misuse|count dropped to zero, or .noComplete completes a phase|mbarrier.arrive_drop|E|by-fault
HS221|tx-out-of-range|the tx-count leaves its range|mbarrier.expect_tx|E|by-fault
HS222|try-wait-not-looped|code goes on after a false result|mbarrier.try_wait|S|checked
HS223|tma-wait-taken-for-issuer|the issuer's own stores are read after waiting for its TMA only|mbarrier.complete_tx|S|checked
HS224|write-after-arrive|store after the arrive that should publish it|mbarrier.arrive|S|checked
HS300|bulk-race|bulk copy and another access to the same global bytes, unordered|cp.async.bulk|S|checked
HS301|store-source-reuse|source of a store overwritten before it was read|cp.async.bulk.wait_group.read|S|checked
HS302|bulk-wait-off-by-one|the needed group is among the N left pending|cp.async.bulk.wait_group|S|checked
HS303|read-wait-for-global|a .read wait, and then the global data is taken for written|cp.async.bulk.wait_group.read|S|checked
HS304|bulk-wait-by-other-thread|another thread's group is waited for|cp.async.bulk.wait_group|S|checked
HS305|bulk-commit-missing|nothing was committed, so the wait returns at once|cp.async.bulk.commit_group|S|checked
HS306|wait-without-rejoin|the issuer waits, others overwrite with no edge from it|cp.async.bulk.wait_group, bar.sync|S|checked
HS307|tensormap-update-in-flight|tensor map edited while a copy reads it|tensormap.replace|S,E|checked
HS308|tensormap-fence-missing|no release and acquire in the tensormap proxy|fence.proxy.tensormap|U|checked
HS400|cluster-async-pair|asynchronous accesses of two CTAs to the same bytes, ordered by completion only|Memory Consistency Model, "Proxies"|U|checked
HS401|dsmem-late-entry|a peer's memory touched before the peer has started|barrier.cluster|S,E|checked
HS402|dsmem-early-exit|a CTA may exit before a peer's access to it has happened|barrier.cluster|S,E|checked
HS403|relaxed-cluster-arrive-data|relaxed arrive used to publish data|barrier.cluster.arrive.relaxed|S|checked
HS404|cluster-barrier-divergent|some warps never arrive|barrier.cluster|H|checked
HS405|multicast-release-incomplete|slot reuse does not wait for the readers of every CTA that the multicast writes|.multicast::cluster, mbarrier.arrive|S|checked
HS406|phase-word-overrun|a fast thread rewrites a shared phase word that a slow warp has yet to read|Memory Consistency Model, "Causality order"|H|checked
HS500|thread-race|two threads access the same bytes, unordered|Memory Consistency Model, "Conflict and data-races"|S|checked
HS501|smem-scratch-reuse|no barrier between read and next write|bar.sync|S|checked
HS502|missing-syncwarp|lanes exchange through memory with no warp barrier|bar.warp.sync|S|checked
HS503|named-count-mismatch|arrivals never reach the given count|bar.sync|H|checked
HS504|named-id-collision|two uses share a barrier number|bar.sync|H|checked
HS505|order-barrier-not-primed|a ping-pong barrier lacks its first arrive|bar.arrive|H|checked
HS506|aligned-barrier-divergent|aligned barrier met at different instructions|bar.sync, ".aligned"|U|checked
HS507|barrier-under-elect|barrier inside an elected branch|bar, elect.sync|H|checked
HS508|elect-divergent|nested elect, or not all lanes of the mask|elect.sync|H|checked
HS509|early-return-warp|a warp exits before a barrier that counts it|bar, exit|H|checked
HS510|scope-too-narrow|strong accesses whose scopes do not include each other|.scope|S|checked
HS511|red-as-acquire|red expected to acquire|red|S|checked
HS512|mixed-size-strong|strong accesses of different size overlap|atom, ld, st|U|checked
HS513|named-barrier-run-ahead|second bar.arrive before the barrier was reset|bar.arrive|S,H|checked
HS514|spin-in-vain|a loop waits for what nobody changes any more|ld, atom|H|checked
HS515|warp-collective-divergent|lanes of one warp wait for each other at different warp collectives|shfl.sync, vote.sync, bar.warp.sync|H,U|checked
HS516|both-may-miss|each of two threads writes a word and looks at the other's, with no fence.sc: both may miss|Memory Consistency Model, "Fence-SC Order"|S|checked
HS601|setmaxnreg-oversubscribed|the sum of registers exceeds the register file|setmaxnreg|H|checked
HS602|setmaxnreg-ignored|the registers at entry are not known|setmaxnreg|P,C,U|checked
HS603|swizzle-base-misaligned|base off the period of the swizzle|tensor map, "Swizzling Modes"|S|checked
HS604|descriptor-wrong|offsets or swizzle of a matrix descriptor are wrong|wgmma, "Matrix Descriptor Format"|S,E|by-fault
HS605|pdl-read-before-wait|global access before griddepcontrol.wait|griddepcontrol|S,E|checked
HS606|bulk-size-or-alignment|size not a multiple of 16, or address not aligned|cp.async.bulk|E|by-fault
HS607|smem-destination-outside-cta|.shared::cta destination in a peer|cp.async.bulk|U|by-fault
HS608|tensormap-wrong-space|map not in param, const or global memory|cp.async.bulk.tensor|E|by-fault
HS700|machine-fault|the hardware would trap, or PTX leaves the effect undefined|the instruction's own page|E,U|by-fault
HS701|uninitialised-shared-read|shared memory read that nobody wrote|ld.shared|S|checked
HS702|uninitialised-global-read|global memory read that nobody wrote|ld.global|S|by-fault
HS703|out-of-bounds|access outside an allocation or shared memory|ld, st|S,E|by-fault
HS704|misaligned-access|address not aligned to the access|ld, st|E|by-fault
"""


def silicon_of(rule: Rule) -> str:
    """Return what an H100 probably does, in words."""
    return "; ".join(EFFECTS[letter] for letter in rule.effect.split(","))


def _rule(line: str) -> Rule:
    number, name, sentence, ptx, effect, status = line.split("|")
    assert status in ("checked", "by-fault", "pending"), line
    return Rule(number, name, sentence, ptx, effect, status)


RULES: Final[dict[str, Rule]] = {rule.id: rule for rule in map(_rule, _TABLE.strip().splitlines())}
