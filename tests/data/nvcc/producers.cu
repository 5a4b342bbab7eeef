// Producers and consumers in the manner of public Hopper kernels, each right, and with -DBAD without what it needs.
#include <cooperative_groups.h>
#include <cuda/atomic>

#ifdef BAD
#define GOOD(...)
#define BAD_ONLY(...) __VA_ARGS__
#else
#define GOOD(...) __VA_ARGS__
#define BAD_ONLY(...)
#endif

namespace cg = cooperative_groups;
template <class T> using Device = cuda::atomic_ref<T, cuda::thread_scope_device>;
using cuda::std::memory_order_acquire;
using cuda::std::memory_order_release;

__device__ uint32_t s32(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
#define PTX(...) asm volatile(__VA_ARGS__ : "memory")
#define WAIT(kind) "{\n.reg .pred p;\nW:\nmbarrier.try_wait.parity" kind ".shared::cta.b64 p, [%0], %1;\n@!p bra W;\n}"
#define TELLS ".mbarrier::complete_tx::bytes"
__device__ void minit(uint64_t *b, int n) { PTX("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(s32(b)), "r"(n)); }
__device__ void mwait(uint64_t *b, int parity) { PTX(WAIT("") ::"r"(s32(b)), "r"(parity)); }
__device__ void mwait_cluster(uint64_t *b, int parity) { PTX(WAIT(".acquire.cluster") ::"r"(s32(b)), "r"(parity)); }
__device__ void marrive(uint64_t *b) { PTX("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(s32(b))); }
__device__ void mexpect(uint64_t *b, int n) {
  PTX("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(s32(b)), "r"(n));
}
__device__ uint32_t mapa(const void *p, int rank) {
  uint32_t r;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(s32(p)), "r"(rank));
  return r;
}
__device__ void marrive_at(uint64_t *b, int rank) {
  PTX("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(mapa(b, rank)));
}
__device__ void g2s(void *s, const void *g, int n, uint64_t *b) {
  PTX("cp.async.bulk.shared::cluster.global" TELLS " [%0], [%1], %2, [%3];" ::"r"(s32(s)), "l"(g), "r"(n), "r"(s32(b)));
}
__device__ void s2g(void *g, const void *s, int n) {
  PTX("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(g), "r"(s32(s)), "r"(n));
}
__device__ void to_peer(uint32_t to, const void *s, int n, uint32_t b) {
  PTX("cp.async.bulk.shared::cluster.shared::cta" TELLS " [%0], [%1], %2, [%3];" ::"r"(to), "r"(s32(s)), "r"(n), "r"(b));
}
__device__ void st_async(uint32_t to, int v, uint32_t b) {
  PTX("st.async.shared::cluster" TELLS ".s32 [%0], %1, [%2];" ::"r"(to), "r"(v), "r"(b));
}
__device__ void commit() { PTX("cp.async.bulk.commit_group;" ::); }
template <int N> __device__ void read_wait() { PTX("cp.async.bulk.wait_group.read %0;" ::"n"(N)); }
__device__ void pfence() { PTX("fence.proxy.async.shared::cta;" ::); }
__device__ void bsync(int id, int n) { PTX("bar.sync %0, %1;" ::"r"(id), "r"(n)); }
__device__ void barrive(int id, int n) { PTX("bar.arrive %0, %1;" ::"r"(id), "r"(n)); }
__device__ void cl_arrive() { PTX("barrier.cluster.arrive.release.aligned;" ::); }
__device__ void cl_wait() { PTX("barrier.cluster.wait.acquire.aligned;" ::); }
__device__ void init_fence() { PTX("fence.mbarrier_init.release.cluster;" ::); }

// As FlashAttention-3: two warpgroups take turns by named barriers, a third one loads.
extern "C" __global__ void __launch_bounds__(384, 1) attention(const int *x, int *y) {
  constexpr int stages = 2, rows = 6;
  __shared__ alignas(128) int kv[stages][128];
  __shared__ alignas(128) int q[128], shared_acc[128];
  __shared__ uint64_t full[stages], empty[stages], qbar;
  int wg = threadIdx.x / 128, own = threadIdx.x % 128;
  if (threadIdx.x == 0) {
    for (int k = 0; k < stages; k++) { minit(&full[k], 1); minit(&empty[k], 2); }
    minit(&qbar, 1);
    init_fence();
  }
  if (threadIdx.x < 128) shared_acc[own] = 0;
  __syncthreads();
  if (wg == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x < 32) {
      for (int tile = 0; tile < 2; tile++) {
        // Q is free when both consumers have read it.
        if (tile) bsync(1, 256 + 32);
        if (threadIdx.x == 0) { mexpect(&qbar, 512); g2s(q, x + tile * 128, 512, &qbar); }
#pragma unroll 1
        for (int r = 0; r < rows; r++) {
          int k = tile * rows + r, s = k % stages;
          if (threadIdx.x == 0) {
            mwait(&empty[s], (k / stages & 1) ^ 1);
            mexpect(&full[s], 512);
            g2s(kv[s], x + 256 + r * 128, 512, &full[s]);
          }
        }
        __syncwarp();
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    int me = wg - 1, sum = 0;
    if (me == 1) barrive(2, 256);  // mma_init: prime the first one
    for (int tile = 0; tile < 2; tile++) {
      mwait(&qbar, tile);
      int qv = q[own];
      pfence();
      if (tile == 0) barrive(1, 256 + 32);
#pragma unroll 1
      for (int r = 0; r < rows; r++) {
        int k = tile * rows + r, s = k % stages;
        mwait(&full[s], k / stages & 1);
        bsync(2 + me, 256);  // warp_scheduler_barrier_sync
        shared_acc[own] += kv[s][own] * qv;
        barrive(2 + (me ^ 1), 256);     // warp_scheduler_barrier_arrive
        sum += kv[s][own ^ 1];
        GOOD(pfence();)
        bsync(4 + me, 128);
        if (own == 0) marrive(&empty[s]);
      }
    }
    if (me == 0) bsync(2, 256);  // take the last arrive in
    y[me * 128 + own] = sum;
    bsync(6, 256);
    if (me == 0) y[256 + own] = shared_acc[own];
  }
}

// As DeepGEMM: tile after tile, a warp that loads, a warpgroup that adds, and an epilogue whose shared memory is used again.
extern "C" __global__ void tiles(const int *x, int *y) {
  constexpr int stages = 2, rows = 3, tiles = 3;
  __shared__ alignas(128) int a[stages][128];
  __shared__ alignas(128) int d[128];
  __shared__ uint64_t full[stages], empty[stages];
  if (threadIdx.x == 128) {
    for (int k = 0; k < stages; k++) { minit(&full[k], 1); minit(&empty[k], 4); }
    init_fence();
  }
  __syncthreads();
  int k = 0;
  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128)
#pragma unroll 1
      for (; k < rows * tiles; k++) {
        int s = k % stages;
        mwait(&empty[s], (k / stages & 1) ^ 1);
        mexpect(&full[s], 512);
        g2s(a[s], x + k * 128, 512, &full[s]);
      }
  } else {
    for (int tile = 0; tile < tiles; tile++) {
      int sum = 0;
#pragma unroll 1
      for (int r = 0; r < rows; r++, k++) {
        int s = k % stages;
        mwait(&full[s], k / stages & 1);
        sum += a[s][threadIdx.x];
        pfence();
        __syncwarp();
        if (threadIdx.x % 32 == 0) marrive(&empty[s]);
      }
      if (threadIdx.x == 0) read_wait<0>();
      GOOD(bsync(1, 128);)
      d[threadIdx.x] = sum;
      pfence();
      bsync(1, 128);
      if (threadIdx.x == 0) { s2g(y + tile * 128, d, 512); commit(); }
    }
    if (threadIdx.x == 0) read_wait<0>();
  }
}

// cp.async by a warp, of which an mbarrier is told.
extern "C" __global__ void told_copies(const int *x, int *y) {
  constexpr int stages = 2, rows = 6;
  __shared__ alignas(128) int a[stages][128];
  __shared__ uint64_t full[stages], empty[stages];
  int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) for (int k = 0; k < stages; k++) { minit(&full[k], 32); minit(&empty[k], 32); }
  __syncthreads();
  if (threadIdx.x < 32) {
#pragma unroll 1
    for (int k = 0; k < rows; k++) {
      int s = k % stages;
      mwait(&empty[s], (k / stages & 1) ^ 1);
      PTX("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(s32(&a[s][lane * 4])), "l"(x + k * 128 + lane * 4));
      BAD_ONLY(marrive(&full[s]);)
      GOOD(PTX("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(s32(&full[s])));)
    }
  } else {
    int sum = 0;
#pragma unroll 1
    for (int k = 0; k < rows; k++) {
      int s = k % stages;
      mwait(&full[s], k / stages & 1);
      for (int j = 0; j < 4; j++) sum += a[s][j * 32 + (lane ^ 1)];
      marrive(&empty[s]);
    }
    y[lane] = sum;
  }
}

// A ring of CTAs whose neighbours exchange words by st.async.
extern "C" __global__ void ring_of_halos(const int *x, int *y) {
  __shared__ int halo_[2][32];
  __shared__ uint64_t full[2], empty[2];
  int lane = threadIdx.x, rank = cg::this_cluster().block_rank();
  if (lane == 0) {
    for (int k = 0; k < 2; k++) { minit(&full[k], 1); minit(&empty[k], 1); }
    init_fence();
  }
  cl_arrive(); cl_wait();
  int value = x[rank * 32 + lane], right = (rank + 1) % 4, left = (rank + 3) % 4;
#pragma unroll 1
  for (int k = 0; k < 6; k++) {
    int s = k % 2;
    if (lane == 0) mexpect(&full[s], 128);
    GOOD(if (k >= 2) mwait_cluster(&empty[s], (k / 2 & 1) ^ 1);)
    st_async(mapa(&halo_[s][lane], right), value, mapa(&full[s], right));
    mwait_cluster(&full[s], k / 2 & 1);
    value = value * 3 + halo_[s][lane];
    __syncwarp();
    if (lane == 0) marrive_at(&empty[s], left);
  }
  y[rank * 32 + lane] = value;
  cl_arrive(); cl_wait();
}

// Tiles by an atomic counter: the next one is drawn by one lane and handed on through a ring.
extern "C" __global__ void drawn_tiles(const int *x, int *counter, int *y) {
  __shared__ int next[2];
  __shared__ uint64_t full[2], empty[2];
  int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) for (int k = 0; k < 2; k++) { minit(&full[k], 1); minit(&empty[k], 1); }
  __syncthreads();
  if (threadIdx.x < 32) {
    if (lane == 0)
#pragma unroll 1
      for (int k = 0;; k++) {
        mwait(&empty[k % 2], (k / 2 & 1) ^ 1);
        int tile = atomicAdd(counter, 1);
        next[k % 2] = tile;
        marrive(&full[k % 2]);
        if (tile >= 12) break;
      }
  } else {
#pragma unroll 1
    for (int k = 0;; k++) {
      mwait(&full[k % 2], k / 2 & 1);
      int tile = next[k % 2];
      GOOD(__syncwarp();)
      if (lane == 0) marrive(&empty[k % 2]);
      if (tile >= 12) break;
      y[tile * 32 + lane] = x[tile * 32 + lane] + 1;
    }
  }
}

// Scales by plain stores and a tile by a bulk load, told by one mbarrier of count 1 + 32.
extern "C" __global__ void scaled(const int *x, int *y) {
  constexpr int stages = 2, rows = 6;
  __shared__ alignas(128) int a[stages][32];
  __shared__ int scale[stages][32];
  __shared__ uint64_t full[stages], empty[stages];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) for (int k = 0; k < stages; k++) { minit(&full[k], 33); minit(&empty[k], 32); }
  __syncthreads();
#pragma unroll 1
  for (int k = 0; k < rows; k++) {
    int s = k % stages, p = k / stages & 1;
    if (warp == 0) {
      if (lane == 0) {
        mwait(&empty[s], p ^ 1);
        mexpect(&full[s], 128);
        g2s(a[s], x + k * 32, 128, &full[s]);
      }
    } else if (warp == 1) {
      mwait(&empty[s], p ^ 1);
      scale[s][lane] = x[1024 + k * 32 + lane];
      marrive(&full[s]);
    } else {
      mwait(&full[s], p);
      int v = a[s][lane] * scale[s][lane ^ 1];
      y[k * 32 + lane] = v;
      GOOD(pfence();)
      marrive(&empty[s]);
    }
  }
}

// As DeepEP: a row written by threads, a flag, and a reader that loads in bulk.
extern "C" __global__ void sent_row(const int *x, int *buffer, int *flag, int *y) {
  __shared__ alignas(128) int row[128];
  __shared__ uint64_t full;
  int lane = threadIdx.x;
  if (blockIdx.x == 0) {
    for (int j = lane; j < 128; j += 32) buffer[j] = x[j] * 2;
    __syncwarp();
    if (lane == 0) PTX("st.release.gpu.global.s32 [%0], 1;" ::"l"(flag));
  } else {
    if (lane == 0) {
      minit(&full, 1);
      int seen;
      do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory"); while (!seen);
      GOOD(PTX("fence.proxy.async;" ::);)
      mexpect(&full, 512);
      g2s(row, buffer, 512, &full);
    }
    __syncwarp();
    mwait(&full, 0);
    for (int j = lane; j < 128; j += 32) y[j] = row[j];
  }
}

// As in the CUDA Programming Guide, "Memory Fence Functions".
__device__ unsigned tickets = 0;
extern "C" __global__ void guide_sums(const int *x, volatile int *partial, int *y) {
  __shared__ int sums[2];
  __shared__ bool am_last;
  int sum = __reduce_add_sync(~0u, x[blockIdx.x * 64 + threadIdx.x]);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sums[0] + sums[1];
    GOOD(__threadfence();)
    unsigned ticket = atomicInc(&tickets, gridDim.x);
    am_last = ticket == gridDim.x - 1;
  }
  __syncthreads();
  if (am_last) {
    __threadfence();
    int v = threadIdx.x < gridDim.x ? partial[threadIdx.x] : 0;
    if (threadIdx.x < 32) {
      v = __reduce_add_sync(~0u, v);
      if (threadIdx.x == 0) { *y = v; tickets = 0; }
    }
  }
}

// As ThunderKittens: warps that load, compute and store, with mbarriers for what came and what is free.
extern "C" __global__ void kittens(const int *x, int *y) {
  constexpr int stages = 2, rows = 6;
  __shared__ alignas(128) int in[stages][128], out[stages][128];
  __shared__ uint64_t arrived[stages], finished[stages], out_arrived[stages], out_finished[stages];
  int own = threadIdx.x % 128;
  if (threadIdx.x == 0)
    for (int k = 0; k < stages; k++) {
      minit(&arrived[k], 1); minit(&finished[k], 4); minit(&out_arrived[k], 4); minit(&out_finished[k], 1);
    }
  __syncthreads();
  if (threadIdx.x >= 128) {
    if (own < 32) {  // loads
#pragma unroll 1
      for (int k = 0; k < rows; k++) {
        int s = k % stages;
        mwait(&finished[s], (k / stages & 1) ^ 1);
        if (own == 0) { mexpect(&arrived[s], 512); g2s(in[s], x + k * 128, 512, &arrived[s]); }
        __syncwarp();
      }
    } else if (own < 64) {  // stores
#pragma unroll 1
      for (int k = 0; k < rows; k++) {
        int s = k % stages;
        mwait(&out_arrived[s], k / stages & 1);
        if (own == 32) {
          s2g(y + k * 128, out[s], 512);
          commit();
          GOOD(read_wait<0>();)
          BAD_ONLY(read_wait<1>();)
          marrive(&out_finished[s]);
        }
        __syncwarp();
      }
    }
  } else {
#pragma unroll 1
    for (int k = 0; k < rows; k++) {
      int s = k % stages;
      mwait(&arrived[s], k / stages & 1);
      mwait(&out_finished[s], (k / stages & 1) ^ 1);
      out[s][own] = in[s][own ^ 1] + 1;
      pfence();
      __syncwarp();
      if (own % 32 == 0) { marrive(&finished[s]); marrive(&out_arrived[s]); }
    }
  }
}

// Bulk copies between the shared memories of a cluster.
extern "C" __global__ void peer_bulk(const int *x, int *y) {
  __shared__ alignas(128) int mine[64], got[64];
  __shared__ uint64_t full;
  int rank = cg::this_cluster().block_rank();
  if (threadIdx.x == 0) { minit(&full, 1); init_fence(); }
  cl_arrive(); cl_wait();
  int v = x[rank * 64 + threadIdx.x];
#pragma unroll 1
  for (int k = 0; k < 3; k++) {
    mine[threadIdx.x] = v + k;
    pfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      mexpect(&full, 256);
      to_peer(mapa(got, rank ^ 1), mine, 256, mapa(&full, rank ^ 1));
    }
    mwait_cluster(&full, k & 1);
    v += got[63 - threadIdx.x];
    PTX("fence.proxy.async.shared::cluster;" ::);
    GOOD(cl_arrive(); cl_wait();)
    BAD_ONLY(__syncthreads();)
  }
  y[rank * 64 + threadIdx.x] = v;
}

// A peer writes by plain stores, the owner stores in bulk.
extern "C" __global__ void remote_write(const int *x, int *y) {
  __shared__ alignas(128) int tile[64];
  __shared__ uint64_t full;
  auto cluster = cg::this_cluster();
  int rank = cluster.block_rank();
  if (threadIdx.x == 0) { minit(&full, 64); init_fence(); }
  cl_arrive(); cl_wait();
  *cluster.map_shared_rank(tile + threadIdx.x, rank ^ 1) = x[rank * 64 + threadIdx.x] + 1;
  GOOD(PTX("fence.proxy.async.shared::cluster;" ::);)
  BAD_ONLY(pfence();)
  marrive_at(&full, rank ^ 1);
  if (threadIdx.x == 0) {
    mwait_cluster(&full, 0);
    s2g(y + rank * 64, tile, 256); commit(); read_wait<0>();
  }
  cl_arrive(); cl_wait();
}

// A grid barrier whose counter only grows.
extern "C" __global__ void growing_count(const int *x, int *a, unsigned *count, int *y) {
  int own = blockIdx.x * 64 + threadIdx.x;
  auto meet = [&](unsigned round) {
    __syncthreads();
    if (threadIdx.x == 0) {
      Device<unsigned>(*count).fetch_add(1, memory_order_release);
      while (Device<unsigned>(*count).load(memory_order_acquire) < round * gridDim.x) __nanosleep(20);
    }
    GOOD(__syncthreads();)
  };
  a[own] = x[own];
  meet(1);
  int v = a[191 - own];
  meet(2);
  a[own] = v + 1;
  meet(3);
  y[own] = a[(own + 64) % 192];
}

// A lock that lanes and blocks take in turn.
extern "C" __global__ void taken_in_turn(int *lock, int *sum) {
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      sum[0] += 1;
      GOOD(__threadfence();)
      atomicExch(lock, 0);
      done = true;
    }
  }
}
