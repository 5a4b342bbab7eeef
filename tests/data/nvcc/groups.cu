// Groups of cooperative groups that keep something in reserved shared memory, or look for the n-th thread of a mask.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

extern "C" __global__ void wide_tiles(const int *x, int *y) {
  __shared__ cg::block_tile_memory<128> scratch;
  auto block = cg::this_thread_block(scratch);
  auto tile = cg::tiled_partition<64>(block);
  int sum = cg::reduce(tile, x[threadIdx.x], cg::plus<int>());
  y[threadIdx.x] = sum + tile.shfl(x[threadIdx.x], 5);
}

extern "C" __global__ void odd_lanes(const int *x, int *y) {
  int own = x[threadIdx.x];
  int found = 0;
  if (own & 1) {
    auto odd = cg::coalesced_threads();
    found = odd.shfl(own, odd.size() - 1) + odd.shfl_up(own, 1);
  }
  y[threadIdx.x] = found;
}
