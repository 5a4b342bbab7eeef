"""Why each rule is there, and how to mend a program that breaks it: two plain sentences for every id.

Source: PTX ISA 8.7 to 9.4, the sections that `hopsim.hazards.rules` names.
"""

from __future__ import annotations

import re
from typing import Final

_TEXT: Final = """
HS000 An asynchronous operation works beside the threads; its issuer does not know when it is
  done.
  > Wait for what tracks it: the mbarrier, the group, before its bytes are used.
HS001 A TMA load is only issued by its instruction; the bytes come later and are announced on an
  mbarrier.
  > Every thread that reads the tile loops on mbarrier.try_wait for that barrier and phase, or
  meets a thread that did at a barrier.
HS002 A wait orders only what stands after it. A read before the wait may see the old bytes.
  > Move the wait above the first use of the tile.
HS003 Each stage has a barrier of its own; a wait for one says nothing of the bytes that the other
  announces.
  > Wait for the barrier that the load of this very slot names.
HS004 A parity names the current phase or the one just before. With the wrong one the wait passes
  at once, on old news, or never.
  > Flip the parity each time the ring wraps around, in producer and consumer.
HS005 A parity is one bit. If a barrier runs two phases ahead of a waiter, the bit matches again
  and the waiter sleeps through a phase.
  > Let nobody arrive in the next phase before all waiters have seen the last: an empty barrier,
  or bar.sync.
HS006 Completion of the next load does not ask whether somebody still reads the slot.
  > All readers arrive on an empty barrier (or meet at bar.sync) after their last read, and the
  producer waits for it before it loads.
HS007 On a fresh barrier the phase before the first counts as complete: a wait for parity 1
  passes, a wait for parity 0 blocks until somebody arrives.
  > Start the producer's parity at 1, so that it finds all slots empty.
HS008 wgmma reads its operands from shared memory while it runs. Issuing it, or committing it,
  does not mean that it has read them.
  > Execute wgmma.wait_group for the group that reads the slot before the arrive that hands the
  slot back.
HS009 wait_group N lets the N newest groups go on. The group that matters must not be among them.
  > Lower N, or delay the use by one more round.
HS010 wait_group waits for committed groups. Products that nobody committed are not waited for.
  > Put wgmma.commit_group after the last wgmma of the batch.
HS011 The accumulators belong to the tensor core until a wait covers them; even reading them is
  undefined.
  > Execute wgmma.wait_group before the first instruction that touches them.
HS012 wgmma does not wait for earlier writes of its registers: the fence makes it.
  > Put wgmma.fence before the first wgmma, and after any write of an accumulator or of registers
  of A.
HS013 With A in registers the tensor core reads them while it runs.
  > Wait for the group before these registers are written again, or alternate between two sets.
HS014 ptxas cannot prove that the registers of a wgmma are left alone and puts a wait after each
  one. The program stays right and gets slow.
  > Keep accumulators out of branches, calls and copies between the first wgmma and its wait.
HS015 wgmma is an instruction of four warps. All must execute it, together, with the same
  descriptors.
  > Keep branches uniform over the warpgroup.
HS016 Two copies in flight land in any order. The bytes are those of whichever was last.
  > Wait for the first, or give them slots of their own.
HS017 cp.async is only issued by its instruction. wait_group N lets the N newest groups go on.
  > Commit, then wait with N small enough, before the bytes are read.
HS018 cp.async.wait_group tells the thread that executes it about its own copies, and nobody else.
  > Follow it with bar.sync before other threads read the bytes.
HS019 At exit the shared memory of the CTA is given to somebody else, while the operation still
  uses it.
  > Wait for loads into shared memory, and with .read for stores out of it, before the CTA ends.
HS100 Threads and TMA reach memory through different proxies, which may see writes in different
  order.
  > Put fence.proxy.async after the threads' accesses, before the barrier that leads to the
  asynchronous one.
HS101 A TMA store reads shared memory through the async proxy and may miss what threads have just
  written.
  > Each writing thread executes fence.proxy.async.shared::cta after its writes; then the barrier;
  then one thread stores.
HS102 wgmma reads shared memory through the async proxy and may miss what threads have just
  written.
  > Each writing thread executes fence.proxy.async after its writes, before the barrier.
HS103 cp.async writes through the generic proxy, although it is asynchronous. Waiting for it is no
  proxy fence.
  > Wait for the copies, then fence.proxy.async, then the barrier, then wgmma or TMA.
HS104 A refill by TMA may overtake reads that threads have made: write after read across proxies
  needs the fence too.
  > Each reading thread executes fence.proxy.async after its last read, before it hands the slot
  back.
HS105 A proxy fence covers what its thread has written, or has learned of through a barrier,
  before the fence.
  > Move it behind the writes, in each writing thread, or behind a barrier in the issuing thread.
HS106 fence.proxy.async.global covers global memory, .shared::cta the CTA's own shared memory, and
  nothing else.
  > Name the space of the data, or none for all.
HS107 The fence stands in the text, but the run went another way.
  > Put it on every path between the write and the asynchronous access.
HS108 TMA reads global memory through the async proxy, too.
  > After the writes: fence.proxy.async.global, then the barrier or flag that leads to the load.
  Data of an earlier kernel needs none.
HS109 st.async writes through the generic proxy, as far as known.
  > Wait for its mbarrier, then fence.proxy.async, then let TMA or wgmma read.
HS110 .shared::cta does not include the shared memory of other CTAs of the cluster.
  > Use fence.proxy.async.shared::cluster, or name no space.
HS111 Atomics of threads and bulk reductions go through different proxies; each may work on an old
  value.
  > Order them: complete one side, fence.proxy.async.global, then the other.
HS112 A barrier orders threads. It does not make what they wrote visible to another proxy.
  > Keep the barrier and add fence.proxy.async before it.
HS113 The fence orders nothing that was not ordered already. It only costs time.
  > Remove it, if no other path needs it.
HS114 .nc loads may come from a cache that no write of a running grid reaches, not even the thread's
  own; no fence or barrier makes it look again.
  > ld.global without .nc; in CUDA no __ldg, and no const __restrict__ on what the kernel writes.
HS200 An mbarrier is an object with rules of its own; this use is outside them.
  > See the message for what was expected.
HS201 The bytes that arrive are taken from the tx-count. If more come than were expected, phases
  complete at wrong times or never.
  > Expect exactly the sum of the bytes of all copies of the phase, multicast ones included.
HS202 A phase stays open until all expected bytes have come.
  > Expect exactly the bytes that are copied; boxes at the edge count in full.
HS203 expect_tx raises the count of bytes. It does not arrive, and a phase needs its arrivals as
  well.
  > Use mbarrier.arrive.expect_tx, or arrive separately.
HS204 A multicast signals the barrier at the same offset in every CTA of its mask, whether that
  CTA is ready or not.
  > Let all CTAs initialise their barriers, fence, and meet at a cluster barrier before the first
  multicast; later, wait for their slots.
HS205 The barrier was told to count more arrivals than ever come.
  > Make the count of mbarrier.init that of the arrive instructions that are executed per phase.
HS206 The barrier counts down to zero once per phase. An arrival too many completes the next phase
  early. A producer that does not wait for an empty slot comes round again while the bytes of the
  last round are on their way: that is an arrival too many, too.
  > Let exactly as many threads arrive as mbarrier.init was told; wait for the empty slot, with the
  right parity, before the arrive of the next round.
HS207 Every lane that executes a copy or an arrive issues one of its own.
  > Guard it with elect.sync, or with one thread.
HS208 An arrive, or a flag behind a fence, releases what its own thread did. The other lanes'
  accesses are not included, warp or not, even if these lanes fenced too; nor are those of lanes
  that have left: to exit publishes nothing.
  > bar.warp.sync before the elected lane arrives (before its fence), or let all lanes arrive.
HS209 mbarrier.init is an ordinary write to shared memory; others may look at the object before it
  is there.
  > bar.sync after it; in a cluster fence.mbarrier_init.release.cluster and a cluster barrier.
HS210 barrier.cluster.arrive.relaxed publishes nothing by itself.
  > fence.mbarrier_init.release.cluster after the init, before the relaxed arrive; or arrive with
  .release.
HS211 Before init, and after inval, the eight bytes are no mbarrier.
  > Initialise first; do not use it after mbarrier.inval.
HS212 A second init throws away the state that others rely on.
  > mbarrier.inval first, when nothing is pending and nobody waits.
HS213 The object's state is its eight bytes. Ordinary data there destroys it; read as data they
  mean nothing.
  > Give it memory of its own, or mbarrier.inval before the memory is used otherwise.
HS214 A copy in flight will signal an object that is no longer there; so will an arrive or a test of a
  thread that nothing orders before.
  > Wait for the last phase, meet, then mbarrier.inval.
HS215 A phase must be seen by a wait before the next one is entered; else waiters cannot tell the
  two apart.
  > Wait for the phase before arriving in the next.
HS216 .relaxed and volatile only count. They order no data: a word that a thread stored before it
  set such a flag may be seen after it, be the word volatile too.
  > Leave .relaxed out (the default is .release for arrives, .acquire for waits), or add a fence of
  enough scope before the flag is set and one behind the look (__threadfence in CUDA).
HS217 Release and acquire promise nothing to threads outside of their scope, be it that of an access
  or of a fence: .cta ends with the CTA, .cluster with the cluster.
  > .cluster scope within a cluster, .gpu beyond, on both sides: .release.cluster and
  .acquire.cluster on the .shared::cluster form, fence.acq_rel.gpu (__threadfence) beside a flag.
HS218 The .shared::cta form takes addresses of the own CTA only.
  > Use mbarrier.arrive....shared::cluster with addresses of mapa.
HS219 A CTA may arrive on a peer's barrier, but wait only on its own.
  > Let the peer signal a barrier in the waiter's own shared memory.
HS220 arrive_drop lowers the count of all later phases; a .noComplete arrive must not be the last
  one.
  > Keep at least one expected arrival, and let another arrive complete the phase.
HS221 The tx-count holds at most 2^20 - 1 bytes in either direction.
  > Split the phase.
HS222 try_wait waits for a limited time. Its answer false means: not yet.
  > Loop until it says true.
HS223 When TMA completes a phase it publishes the bytes that it wrote, and nothing that its issuer
  did before.
  > Let the issuer arrive after its own writes, or meet it at a barrier.
HS224 An arrive releases what stands before it in its thread.
  > Move the write above the arrive.
HS300 A bulk copy and another access reach the same global bytes with nothing between them.
  > Wait for the bulk group without .read, then a barrier.
HS301 A TMA store reads its source later. What is written there meanwhile may be stored instead.
  > commit_group and wait_group.read 0 in the issuing thread, then a barrier, then write.
HS302 wait_group.read N lets the N newest groups go on.
  > Lower N, or use the slot of an older store.
HS303 .read waits until the source may be used again. The destination may not have been written
  yet.
  > Use cp.async.bulk.wait_group without .read before the global data is announced or read.
HS304 Bulk groups belong to the thread that committed them. Another thread's wait returns at once.
  > Let the issuing thread wait, then meet at a barrier.
HS305 wait_group waits for committed groups only.
  > cp.async.bulk.commit_group after the copies.
HS306 Only the issuer knows that the source was read.
  > Put bar.sync between its wait and the writes of the others.
HS307 A copy in flight reads the tensor map when it likes.
  > Wait for all copies that use the map before it is changed.
HS308 TMA reads tensor maps through a proxy of their own, which caches them.
  > fence.proxy.tensormap::generic.release after the change, .acquire in each thread that uses the
  map; .gpu scope on both where they are in different CTAs.
HS400 PTX orders asynchronous accesses of one CTA; for two CTAs and completion alone it has no
  sentence.
  > Meet at a cluster barrier between the two, if you want to be sure.
HS401 CTAs of a cluster start at different times. Before it starts, a CTA's shared memory belongs
  to nobody.
  > A cluster barrier before the first access to a peer.
HS402 After a CTA has exited its shared memory is given away.
  > A cluster barrier after the last access, in both CTAs.
HS403 barrier.cluster.arrive.relaxed by itself publishes no writes.
  > Use barrier.cluster.arrive, which is .release, or put fence.acq_rel.cluster between the writes
  and the relaxed arrive, in each thread that wrote.
HS404 A cluster barrier counts all threads of all CTAs that have not exited.
  > Every warp executes arrive and wait, or exits.
HS405 A multicast writes into every CTA of its mask, so all their readers must be done.
  > Readers arrive on the empty barrier of every CTA that multicasts to them; its count is that of
  all of them.
HS406 A thread that runs ahead writes the word again before a slow one has looked.
  > Use an mbarrier, or a counter that only grows.
HS500 Two threads reach the same bytes, one writes, and nothing orders them.
  > Put a barrier between, or a release and an acquire.
HS501 The next round writes while somebody still reads the last one's values.
  > A barrier before the memory is written again.
HS502 Lanes of a warp run by themselves since Volta; shfl, vote and mma.sync order no memory.
  > bar.warp.sync between the write and the read.
HS503 A named barrier opens when exactly the given number of threads has come.
  > Make the count that of all who sync or arrive, in whole warps.
HS504 A number names one barrier of the CTA. Two uses at the same time count each other's threads.
  > Give each use a number of its own, from 0 to 15.
HS505 Who takes turns needs a first turn.
  > One extra barrier.arrive on behalf of the last in the order, before the loop.
HS506 bar.sync, and every .aligned form, is executed by all threads of the warp at the same
  instruction.
  > Move it out of the branch, or use barrier.sync without .aligned where warps differ.
HS507 One thread waits at the barrier for others that cannot come there.
  > Move the barrier out of the elected branch.
HS508 elect.sync waits for all lanes of its mask that have not exited.
  > Execute it where the whole warp is together.
HS509 A warp that exits, or goes elsewhere, does not come to the barrier that counts it.
  > Let all warps reach the barrier, or give it the count of those that do.
HS510 Strong accesses are atomic for each other only if each one's scope includes the other's
  thread.
  > .gpu between CTAs, .cluster within a cluster.
HS511 red returns nothing, so it can't tell what it has read; it acquires nothing.
  > Use atom with .acquire, or a load with .acquire.
HS512 Two strong accesses must cover the same bytes; with other sizes they count as a race.
  > Use one size, or two separate words.
HS513 An arrive for the next use came before the barrier was reset by the last one.
  > A second named barrier in the other direction.
HS514 A loop that only reads ends when somebody else writes; all who could have exited or wait.
  > Write the flag, or release the lock, on every path, before waiting for those who loop.
HS515 A collective with a mask waits for all of its lanes; here some wait at another one.
  > Bring the lanes together first, or let the mask name only those that come.
HS516 Each announces itself and looks for the other. In a run one of them sees the other's word;
  PTX lets both miss it, unless a fence.sc stands between the write and the look of each.
  > Put fence.sc (in CUDA: __threadfence()) there on both sides; acq_rel does not do.
HS601 setmaxnreg.inc waits until registers are free. If the sum is more than the register file,
  that never happens.
  > Keep the sum over all warps within 64K registers, and let the producers decrease first.
HS602 ptxas ignores setmaxnreg where it cannot know how many registers the kernel starts with.
  > State .maxnreg, or .reqntid or .maxntid with .minnctapersm, and compile the kernel as a whole.
HS603 The swizzle permutes address bits; it fits only if the tile begins at a multiple of its
  period.
  > Align to 1024 bytes for 128B, 512 for 64B, 256 for 32B.
HS604 The tensor core reads where the descriptor says. Wrong offsets give wrong elements and no
  error.
  > Derive offsets and swizzle mode from the layout that TMA wrote.
HS605 With programmatic dependent launch this grid may run before the one that makes its data has
  ended.
  > griddepcontrol.wait before the first access to that data.
HS606 Bulk copies move multiples of 16 bytes between addresses that are multiples of 16.
  > Pad, or copy the rest with ordinary instructions.
HS607 With a .shared::cta destination the bytes must go to the CTA that issues the copy.
  > Use the .shared::cluster form, or the own address.
HS608 A tensor map lies in param, const or global memory.
  > Pass it as a __grid_constant__ parameter.
HS700 The hardware would stop, or PTX leaves open what happens.
  > See the message.
HS701 Shared memory starts with whatever was there before.
  > Write it first; then a barrier.
HS702 Global memory starts with whatever was there before.
  > Write it first, on the host or in the kernel.
HS703 The address belongs to no allocation.
  > Check the index against the size.
HS704 An access of n bytes needs an address that is a multiple of n.
  > Align the address, or use smaller accesses.
"""


def _entry(text: str) -> tuple[str, tuple[str, str]]:
    rule, rest = text.split(maxsplit=1)
    why, mend = " ".join(rest.split()).split(" > ")
    return rule, (why, mend)


EXPLANATIONS: Final[dict[str, tuple[str, str]]] = dict(
    map(_entry, re.split(r"\n(?=HS)", _TEXT.strip()))
)
"""Rule id to (why, how to mend)."""
