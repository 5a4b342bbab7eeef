// Exchanges between threads, blocks and clusters, each right, and with -DBAD without one thing that it needs.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>

#ifdef BAD
#define GOOD(...)
#define EITHER(good, bad) bad
#else
#define GOOD(...) __VA_ARGS__
#define EITHER(good, bad) good
#endif

#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;
template <class T> using Device = cuda::atomic_ref<T, cuda::thread_scope_device>;
using cuda::std::memory_order_acq_rel;
using cuda::std::memory_order_acquire;
using cuda::std::memory_order_relaxed;
using cuda::std::memory_order_release;

// Sums of warps by shuffles, of a block in shared memory, of the grid by the block that comes last.
extern "C" __global__ void last_block(const int *x, int *partial, unsigned *ticket, int *y) {
  __shared__ int sums[32];
  __shared__ bool is_last;
  int sum = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int k = 16; k > 0; k /= 2) sum += __shfl_down_sync(~0u, sum, k);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0;
    sum = __reduce_add_sync(~0u, sum);
  }
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    unsigned drawn = Device<unsigned>(*ticket).fetch_add(1, EITHER(memory_order_acq_rel, memory_order_relaxed));
    is_last = drawn == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  if (threadIdx.x < 32) {
    int own = 0;
    for (unsigned k = threadIdx.x; k < gridDim.x; k += 32) own += partial[k];
    own = __reduce_add_sync(~0u, own);
    if (threadIdx.x == 0) {
      *y = own;
      *ticket = 0;
    }
  }
}

// A lock that one thread of each block takes: the block adds to plain words under it.
extern "C" __global__ void lock(unsigned *word, int *sums) {
  if (threadIdx.x == 0)
    while (Device<unsigned>(*word).exchange(1, memory_order_acquire)) __nanosleep(20);
  __syncthreads();
  sums[threadIdx.x] += blockIdx.x + 1;
  GOOD(__syncthreads();)
  if (threadIdx.x == 0) Device<unsigned>(*word).store(0, memory_order_release);
}

// Flags as before cuda::atomic.
extern "C" __global__ void flagged(volatile int *flag, int *row, int *y) {
  if (blockIdx.x == 0) {
    row[threadIdx.x] = threadIdx.x * 5;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) *flag = 1;
  } else {
    if (threadIdx.x == 0) {
      while (*flag == 0) {}
    }
    __syncthreads();
    GOOD(__threadfence();)
    y[threadIdx.x] = row[threadIdx.x];
  }
}

// One block sends rows to the other through a ring of four.
extern "C" __global__ void ring(const int *x, int *slots, unsigned *head, unsigned *tail, int *y) {
  constexpr unsigned stages = 4, rows = 16;
  Device<unsigned> written(*head), taken(*tail);
  for (unsigned row = 0; row < rows; row++) {
    int *slot = slots + row % stages * 64;
    if (blockIdx.x == 0) {
      if (threadIdx.x == 0)
        while (row - taken.load(EITHER(memory_order_acquire, memory_order_relaxed)) >= stages) {}
      __syncthreads();
      slot[threadIdx.x] = x[row * 64 + threadIdx.x];
      __syncthreads();
      if (threadIdx.x == 0) written.store(row + 1, memory_order_release);
    } else {
      if (threadIdx.x == 0)
        while (written.load(memory_order_acquire) <= row) {}
      __syncthreads();
      y[row * 64 + threadIdx.x] = slot[threadIdx.x] + 1;
      __syncthreads();
      if (threadIdx.x == 0) taken.store(row + 1, memory_order_release);
    }
  }
}

// A queue for many: each slot has a number that says whose turn it is.
extern "C" __global__ void queue(unsigned *turns, int *slots, unsigned *ends, int *y) {
  constexpr unsigned size = 8, each = 6;
  bool is_producer = blockIdx.x % 2 == 0;
  if (threadIdx.x % 32) return;
  for (unsigned k = 0; k < each; k++) {
    unsigned place = Device<unsigned>(ends[is_producer ? 0 : 1]).fetch_add(1, memory_order_relaxed);
    Device<unsigned> turn(turns[place % size]);
    unsigned wanted = place / size * 2 + (is_producer ? 0 : 1);
    while (turn.load(memory_order_acquire) != wanted) {}
    if (is_producer)
      slots[place % size] = place * 10;
    else
      y[place] = slots[place % size];
    turn.store(wanted + 1, EITHER(memory_order_release, memory_order_relaxed));
  }
}

// A stack whose top is exchanged by compare-and-swap: all push, then all pop.
extern "C" __global__ void stack(int *links, int *values, int *top, int *y) {
  int own = blockIdx.x * blockDim.x + threadIdx.x;
  Device<int> head(*top);
  values[own] = own * 3;
  int seen = head.load(memory_order_relaxed);
  do {
    Device<int>(links[own]).store(seen, memory_order_relaxed);
  } while (!head.compare_exchange_weak(seen, own + 1, EITHER(memory_order_release, memory_order_relaxed),
                                       memory_order_relaxed));
  if (blockIdx.x == 0) {
    int node = 0, next;
    seen = head.load(memory_order_acquire);
    do {
      while (seen == 0) seen = head.load(memory_order_acquire);
      next = Device<int>(links[seen - 1]).load(memory_order_relaxed);
    } while (!head.compare_exchange_weak(seen, next, memory_order_acquire, memory_order_acquire));
    node = seen;
    y[threadIdx.x] = values[node - 1];
  }
}

// A scan over blocks: each looks back for the sums of those before it.
extern "C" __global__ void look_back(const int *x, int *sums, int *prefixes, unsigned *states, int *y) {
  __shared__ int own[128], before;
  own[threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x];
  __syncthreads();
  for (int k = 1; k < 128; k *= 2) {
    int left = threadIdx.x >= k ? own[threadIdx.x - k] : 0;
    __syncthreads();
    own[threadIdx.x] += left;
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    int total = own[127], found = 0;
    sums[blockIdx.x] = total;
    Device<unsigned>(states[blockIdx.x]).store(1, memory_order_release);
    for (int block = int(blockIdx.x) - 1; block >= 0; block--) {
      unsigned state;
      while (!(state = Device<unsigned>(states[block]).load(EITHER(memory_order_acquire, memory_order_relaxed)))) {}
      if (state == 2) {
        found += prefixes[block];
        break;
      }
      found += sums[block];
    }
    prefixes[blockIdx.x] = found + total;
    Device<unsigned>(states[blockIdx.x]).store(2, memory_order_release);
    before = found;
  }
  __syncthreads();
  y[blockIdx.x * 128 + threadIdx.x] = own[threadIdx.x] + before;
}

// Two steps of a grid with a barrier of its own: one thread comes to it for its block.
extern "C" __global__ void steps(int *a, unsigned *arrived, int *y) {
  int own = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
  a[own] = own;
  GOOD(__syncthreads();)
  if (threadIdx.x == 0) {
    Device<unsigned>(*arrived).fetch_add(1, memory_order_acq_rel);
    while (Device<unsigned>(*arrived).load(memory_order_acquire) < gridDim.x) {}
  }
  __syncthreads();
  y[own] = a[all - 1 - own];
}

// A step of a search: what lies next to the front goes to the next one, each node once.
extern "C" __global__ void search(const int *heads, const int *nodes, int *front, int *count, int steps, int *levels) {
  auto grid = cg::this_grid();
  int own = grid.thread_rank();
  for (int step = 0; step < steps; step++) {
    int *now = front + step % 2 * 64, *next = front + (step + 1) % 2 * 64;
    int many = count[step];
    if (own < many) {
      int node = now[own];
      for (int k = heads[node]; k < heads[node + 1]; k++)
        if (atomicCAS(&levels[nodes[k]], -1, step + 1) == -1) next[atomicAdd(&count[step + 1], 1)] = nodes[k];
    }
    EITHER(grid.sync(), __syncthreads());
  }
}

// Those that pass a test go to the front of a list: lanes count by ballots, one draws for its warp.
extern "C" __global__ void compact(const int *x, int *count, int *list) {
  __shared__ int kept[128];
  __shared__ int places;
  if (threadIdx.x == 0) places = 0;
  GOOD(__syncthreads();)
  int value = x[threadIdx.x];
  bool passes = value % 3 == 0;
  unsigned mask = __ballot_sync(~0u, passes);
  int lane = threadIdx.x % 32, place = 0;
  if (lane == 0) place = atomicAdd(&places, __popc(mask));
  place = __shfl_sync(~0u, place, 0) + __popc(mask & ((1u << lane) - 1));
  if (passes) kept[place] = value;
  __syncthreads();
  if (threadIdx.x < places) list[threadIdx.x] = kept[threadIdx.x];
  if (threadIdx.x == 0) *count = places;
}

// A warp turns a tile round in shared memory.
extern "C" __global__ void transpose(const int *x, int *y) {
  __shared__ int tile[4][8][33];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int part = 0; part < 2; part++) {
    for (int row = 0; row < 8; row++) tile[warp][row][lane] = x[(part * 32 + warp * 8 + row) * 32 + lane];
    __syncwarp();
    for (int row = 0; row < 8; row++) y[(part * 32 + warp * 8 + row) * 32 + lane] = tile[warp][lane % 8][row * 4 + lane / 8];
    GOOD(__syncwarp();)
  }
}

// The last warp of a block sums what the others left.
extern "C" __global__ void last_warp(const int *x, int *y) {
  __shared__ int sums[8], count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  int lane = threadIdx.x % 32;
  int sum = __reduce_add_sync(~0u, x[threadIdx.x]);
  int drawn = 0;
  if (lane == 0) {
    sums[threadIdx.x / 32] = sum;
    GOOD(__threadfence_block();)
    drawn = atomicAdd(&count, 1);
    GOOD(__threadfence_block();)
  }
  drawn = __shfl_sync(~0u, drawn, 0);
  if (drawn == blockDim.x / 32 - 1) {
    GOOD(__syncwarp();)
    int all = __reduce_add_sync(~0u, lane < blockDim.x / 32 ? sums[lane] : 0);
    if (lane == 0) *y = all;
  }
}

// Two warps hand a tile to and fro by named barriers.
extern "C" __global__ void ping_pong(const int *x, int *y) {
  __shared__ int tile[32];
  int lane = threadIdx.x % 32;
  for (int row = 0; row < 4; row++) {
    if (threadIdx.x < 32) {
      if (row) asm volatile("bar.sync 2, 64;" ::: "memory");
      tile[lane] = x[row * 32 + lane];
      asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 64;" ::: "memory");
#ifdef BAD
      if (row < 3) asm volatile("bar.arrive 2, 64;" ::: "memory");
      y[row * 32 + lane] = tile[31 - lane];
#else
      y[row * 32 + lane] = tile[31 - lane];
      if (row < 3) asm volatile("bar.arrive 2, 64;" ::: "memory");
#endif
    }
  }
}

// The same by cuda::pipeline, whose threads are producers or consumers.
extern "C" __global__ void partitioned(const int *x, int *y) {
  constexpr int stages = 2, rows = 6;
  __shared__ int tile[stages][96];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  auto block = cg::this_thread_block();
  auto role = threadIdx.x < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipe = cuda::make_pipeline(block, &state, role);
  if (role == cuda::pipeline_role::producer) {
    auto warp = cg::tiled_partition<32>(block);
#pragma unroll 1
    for (int row = 0; row < rows; row++) {
      pipe.producer_acquire();
      cuda::memcpy_async(warp, tile[row % stages], x + row * 96, sizeof(tile[0]), pipe);
      pipe.producer_commit();
    }
  } else {
    int sum = 0, own = threadIdx.x - 32;
#pragma unroll 1
    for (int row = 0; row < rows; row++) {
      pipe.consumer_wait();
#ifdef BAD
      pipe.consumer_release();
      sum += tile[row % stages][95 - own];
#else
      sum += tile[row % stages][95 - own];
      pipe.consumer_release();
#endif
    }
    y[own] = sum;
  }
}

// Rows by cuda::memcpy_async of the whole block on a barrier each.
extern "C" __global__ void copied(const int *x, int *y) {
  constexpr int stages = 2, rows = 6;
  __shared__ alignas(16) int tile[stages][128];
  __shared__ Barrier full[stages];
  auto block = cg::this_thread_block();
  if (threadIdx.x < stages) init(&full[threadIdx.x], block.size());
  block.sync();
  int sum = 0;
  for (int row = 0; row < stages; row++)
    cuda::memcpy_async(block, tile[row], x + row * 128, cuda::aligned_size_t<16>(sizeof(tile[0])), full[row]);
#pragma unroll 1
  for (int row = 0; row < rows; row++) {
    full[row % stages].arrive_and_wait();
    sum += tile[row % stages][127 - threadIdx.x];
    GOOD(ptx::fence_proxy_async(ptx::space_shared);)
    GOOD(block.sync();)
    if (row + stages < rows)
      cuda::memcpy_async(block, tile[row % stages], x + (row + stages) * 128, cuda::aligned_size_t<16>(sizeof(tile[0])),
                         full[row % stages]);
  }
  y[threadIdx.x] = sum;
}

// Bulk copies in and out through two stages, by the clock of one mbarrier each.
extern "C" __global__ void bulk(const int *x, int *y) {
  constexpr int stages = 2, rows = 6, words = 128;
  __shared__ alignas(128) int tile[stages][words];
  __shared__ alignas(8) uint64_t full[stages];
  if (threadIdx.x == 0) {
    for (auto &one : full) ptx::mbarrier_init(&one, 1);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  auto ask = [&](int row) {
    int *slot = tile[row % stages];
    uint64_t *here = &full[row % stages];
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, here, sizeof(tile[0]));
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, slot, x + row * words, sizeof(tile[0]), here);
  };
  if (threadIdx.x == 0) for (int row = 0; row < stages; row++) ask(row);
#pragma unroll 1
  for (int row = 0; row < rows; row++) {
    int *own = tile[row % stages];
    while (!ptx::mbarrier_try_wait_parity(&full[row % stages], row / stages & 1)) {}
    own[threadIdx.x] += 1;
    GOOD(ptx::fence_proxy_async(ptx::space_shared);)
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y + row * words, own, sizeof(tile[0]));
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
      if (row + stages < rows) ask(row + stages);
    }
  }
}

// Bulk sums into global memory; the block that comes last reads them.
extern "C" __global__ void bulk_sums(const int *x, int *sums, unsigned *ticket, int *y) {
  __shared__ alignas(128) int own[64];
  __shared__ bool is_last;
  own[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, sums, own, sizeof(own));
    ptx::cp_async_bulk_commit_group();
    EITHER(ptx::cp_async_bulk_wait_group(ptx::n32_t<0>()), ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>()));
    is_last = Device<unsigned>(*ticket).fetch_add(1, memory_order_acq_rel) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last) y[threadIdx.x] = sums[threadIdx.x];
}

// A histogram over the shared memory of a cluster.
extern "C" __global__ void histogram(const int *x, int *y) {
  __shared__ int bins[32];
  auto cluster = cg::this_cluster();
  if (threadIdx.x < 32) bins[threadIdx.x] = 0;
  EITHER(cluster.sync(), __syncthreads());
  int value = x[blockIdx.x * blockDim.x + threadIdx.x] & 63;
  atomicAdd(cluster.map_shared_rank(bins, value / 32) + value % 32, 1);
  cluster.sync();
  if (threadIdx.x < 32) y[blockIdx.x * 32 + threadIdx.x] = bins[threadIdx.x];
}

// Each CTA of a cluster sends its neighbour a row by st.async, which says itself that it has come.
extern "C" __global__ void neighbours(const int *x, int *y) {
  __shared__ alignas(16) int row[32];
  __shared__ alignas(8) uint64_t here;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&here, 1);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &here, sizeof(row));
  }
  cluster.sync();
  unsigned other = (cluster.block_rank() + 1) % cluster.num_blocks();
  int *there = cluster.map_shared_rank(row, other);
  uint64_t *told = cluster.map_shared_rank(&here, other);
  ptx::st_async(there + threadIdx.x, x[blockIdx.x * 32 + threadIdx.x], told);
  GOOD(while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &here, 0)) {})
  y[blockIdx.x * 32 + threadIdx.x] = row[threadIdx.x ^ 1];
  cluster.sync();
}

// A tile goes to the shared memory of the neighbour by a bulk copy.
extern "C" __global__ void peer_copy(const int *x, int *y) {
  __shared__ alignas(128) int own[128], other[128];
  __shared__ alignas(8) uint64_t here;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&here, 1);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &here, sizeof(other));
  }
  own[threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x];
  GOOD(ptx::fence_proxy_async(ptx::space_cluster);)
  cluster.sync();
  unsigned rank = cluster.block_rank() ^ 1;
  if (threadIdx.x == 0)
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, cluster.map_shared_rank(other, rank), own, sizeof(own),
                       cluster.map_shared_rank(&here, rank));
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &here, 0)) {}
  y[blockIdx.x * 128 + threadIdx.x] = other[threadIdx.x];
  cluster.sync();
}

// Rows that one CTA brings to both of a cluster; each says to it when its slot is free.
extern "C" __global__ void multicast(const int *x, int *y) {
  constexpr int stages = 2, rows = 6, words = 64;
  __shared__ alignas(128) int tile[stages][words];
  __shared__ alignas(8) uint64_t full[stages], empty[stages];
  auto cluster = cg::this_cluster();
  unsigned rank = cluster.block_rank();
  if (threadIdx.x == 0) {
    for (int k = 0; k < stages; k++) {
      ptx::mbarrier_init(&full[k], 1);
      ptx::mbarrier_init(&empty[k], EITHER(2, 1));
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  cluster.sync();
  int sum = 0, own = threadIdx.x - 32;
  if (threadIdx.x == 0) {
#pragma unroll 1
    for (int row = 0; row < rows; row++) {
      int k = row % stages, before = ~(row / stages) & 1;
      if (rank == 0)
        while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &empty[k], before)) {}
      else if (row >= stages)
        while (!ptx::mbarrier_try_wait_parity(&full[k], before)) {}
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[k], sizeof(tile[0]));
      if (rank == 0)
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile[k], x + row * words, sizeof(tile[0]), &full[k],
                           uint16_t(3));
    }
  } else if (own >= 0) {
#pragma unroll 1
    for (int row = 0; row < rows; row++) {
      int k = row % stages;
      while (!ptx::mbarrier_try_wait_parity(&full[k], row / stages & 1)) {}
      sum += tile[k][own];
      ptx::fence_proxy_async(ptx::space_cluster);
      asm volatile("bar.sync 1, 64;" ::: "memory");
      if (own == 0 && EITHER(true, rank == 0)) {
        uint64_t *free = cluster.map_shared_rank(&empty[k], 0);
        ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, free);
      }
    }
    y[blockIdx.x * 64 + own] = sum;
  }
  cluster.sync();
}

// A sum of double by compare-and-swap, as CUDA's programming guide has it; its first read must be as strong as the swap.
extern "C" __global__ void swapped_sum(const int *x, double *y) {
  auto *word = reinterpret_cast<unsigned long long *>(y);
  unsigned long long seen = EITHER(*(volatile unsigned long long *)word, *word), before;
  do {
    before = seen;
    double sum = x[blockIdx.x * blockDim.x + threadIdx.x] + __longlong_as_double(before);
    seen = atomicCAS(word, before, __double_as_longlong(sum));
  } while (seen != before);
}

// Warps sum in shared memory without barriers of the block; lanes do not go in step, be the memory volatile.
extern "C" __global__ void warp_sums(const int *x, int *y) {
  __shared__ int words[64];
  EITHER(int, volatile int) *mine = words + threadIdx.x;
  *mine = x[threadIdx.x];
  GOOD(__syncwarp();)
  for (int k = 16; k > 0; k /= 2) {
    int sum = *mine + (threadIdx.x % 32 + k < 32 ? mine[k] : 0);
    GOOD(__syncwarp();)
    *mine = sum;
    GOOD(__syncwarp();)
  }
  if (threadIdx.x % 32 == 0) y[threadIdx.x / 32] = *mine;
}

// Three stages of copies, of which the newest one alone may be pending when the oldest is read.
extern "C" __global__ void staged(const int *x, int *y) {
  constexpr int rows = 6, words = 64;
  __shared__ int row[3][words];
  int own = threadIdx.x, sum = 0;
  for (int k = 0; k < 2; k++) {
    __pipeline_memcpy_async(&row[k][own], x + k * words + own, 4);
    __pipeline_commit();
  }
  for (int k = 0; k < rows; k++) {
    __pipeline_wait_prior(EITHER(1, 2));
    __syncthreads();
    if (k + 2 < rows) __pipeline_memcpy_async(&row[(k + 2) % 3][own], x + (k + 2) * words + own, 4);
    __pipeline_commit();
    sum += row[k % 3][words - 1 - own];
  }
  y[own] = sum;
}

// Two warps fill a row, two others sum it; each side waits for the other by a barrier of its own, none by one of the block.
extern "C" __global__ void roles(const int *x, int *y) {
  constexpr int rows = 4;
  __shared__ int row[64];
  int own = threadIdx.x % 64, sum = 0;
  for (int k = 0; k < rows; k++) {
    if (threadIdx.x < 64) {
      if (k > 0) asm volatile("barrier.sync 2, 128;" ::: "memory");
      row[own] = x[k * 64 + own];
      asm volatile("barrier.arrive 1, 128;" ::: "memory");
    } else {
      asm volatile("barrier.sync 1, 128;" ::: "memory");
      int word = EITHER(row[63 - own], 0);
      if (k + 1 < rows) asm volatile("barrier.arrive 2, 128;" ::: "memory");
      sum += EITHER(word, row[63 - own]);
    }
  }
  if (threadIdx.x >= 64) y[own] = sum;
}

// Each of two blocks puts words into the other, which a barrier of its own block does not wait for.
extern "C" __global__ void __cluster_dims__(2) pushed(const int *x, int *y) {
  __shared__ int words[64];
  cg::cluster_group cluster = cg::this_cluster();
  cluster.sync();
  cluster.map_shared_rank(words, cluster.block_rank() ^ 1)[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  EITHER(cluster.sync(), __syncthreads());
  y[blockIdx.x * 64 + threadIdx.x] = words[63 - threadIdx.x];
  cluster.sync();
}
