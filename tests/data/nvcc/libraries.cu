// What CUDA's libraries make of common kernels: CUB, cooperative groups, libcu++ and nvcuda::wmma.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <mma.h>

#include <cub/cub.cuh>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>

namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

extern "C" __global__ void block_reduce(const float *x, float *y) {
  using Reduce = cub::BlockReduce<float, 256>;
  __shared__ Reduce::TempStorage storage;
  float sum = Reduce(storage).Sum(x[blockIdx.x * 256 + threadIdx.x]);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

extern "C" __global__ void block_scan(const int *x, int *y) {
  using Scan = cub::BlockScan<int, 128>;
  __shared__ Scan::TempStorage storage;
  int own[4];
  for (int i = 0; i < 4; i++) own[i] = x[threadIdx.x * 4 + i];
  Scan(storage).InclusiveSum(own, own);
  for (int i = 0; i < 4; i++) y[threadIdx.x * 4 + i] = own[i];
}

extern "C" __global__ void radix_sort(int *x) {
  using Sort = cub::BlockRadixSort<int, 128, 4>;
  __shared__ Sort::TempStorage storage;
  int own[4];
  for (int i = 0; i < 4; i++) own[i] = x[threadIdx.x * 4 + i];
  Sort(storage).Sort(own);
  for (int i = 0; i < 4; i++) x[threadIdx.x * 4 + i] = own[i];
}

extern "C" __global__ void histogram(const unsigned char *x, unsigned *y) {
  using Histogram = cub::BlockHistogram<unsigned char, 128, 4, 256>;
  __shared__ Histogram::TempStorage storage;
  __shared__ unsigned counts[256];
  unsigned char own[4];
  for (int i = 0; i < 4; i++) own[i] = x[threadIdx.x * 4 + i];
  Histogram(storage).Histogram(own, counts);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += 128) y[i] = counts[i];
}

extern "C" __global__ void groups(const int *x, int *y) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto eight = cg::tiled_partition<8>(block);
  int own = x[threadIdx.x];
  int found = cg::reduce(warp, own, cg::plus<int>()) * 3 + cg::reduce(eight, own, cg::greater<int>()) +
              cg::exclusive_scan(warp, own);
  if (threadIdx.x & 1) {
    auto odd = cg::coalesced_threads();
    found += cg::reduce(odd, 1, cg::plus<int>()) * 1000 + odd.thread_rank();
  }
  y[threadIdx.x] = found;
}

extern "C" __global__ void cluster(int *y) {
  auto both = cg::this_cluster();
  __shared__ int own[4];
  if (threadIdx.x < 4) own[threadIdx.x] = both.block_rank() * 10 + threadIdx.x;
  both.sync();
  int *other = both.map_shared_rank(own, both.block_rank() ^ 1);
  y[blockIdx.x * blockDim.x + threadIdx.x] = other[threadIdx.x & 3] + both.num_blocks();
  both.sync();
}

extern "C" __global__ void group_copy(const float *x, float *y) {
  __shared__ alignas(16) float tile[256];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, tile, x, sizeof(tile));
  cg::wait(block);
  y[threadIdx.x] = tile[255 - threadIdx.x];
}

extern "C" __global__ void bulk_copy(const float *x, float *y) {
  __shared__ alignas(128) float tile[256];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) {
    init(&barrier, blockDim.x);
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  }
  __syncthreads();
  Barrier::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::memcpy_async(tile, x, cuda::aligned_size_t<16>(sizeof(tile)), barrier);
    token = cuda::device::barrier_arrive_tx(barrier, 1, 0);
  } else {
    token = barrier.arrive();
  }
  barrier.wait(std::move(token));
  tile[threadIdx.x] += 1;
  cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, y, tile, sizeof(tile));
    cuda::ptx::cp_async_bulk_commit_group();
    cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>());
  }
}

extern "C" __global__ void pipeline(const float *x, float *y) {
  constexpr int stages = 2;
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  __shared__ float tiles[stages][128];
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  float sum = 0;
  for (int done = 0, asked = 0; done < 8; done++) {
    for (; asked < 8 && asked < done + stages; asked++) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, tiles[asked % stages], x + asked * 128, sizeof(tiles[0]), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += tiles[done % stages][127 - threadIdx.x];
    pipe.consumer_release();
  }
  y[threadIdx.x] = sum;
}

extern "C" __global__ void fragments(const half *a, const half *b, float *c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, half, row_major> fa;
  fragment<matrix_b, 16, 16, 16, half, col_major> fb;
  fragment<accumulator, 16, 16, 16, float> sums;
  fill_fragment(sums, 0.0f);
  for (int k = 0; k < 64; k += 16) {
    load_matrix_sync(fa, a + k, 64);
    load_matrix_sync(fb, b + k, 64);
    mma_sync(sums, fa, fb, sums);
  }
  for (int i = 0; i < sums.num_elements; i++) sums.x[i] *= 2;
  store_matrix_sync(c, sums, 16, mem_row_major);
}
