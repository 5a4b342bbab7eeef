// DeepGEMM's fp8 GEMM with scales of blocks for one N and K, as TensorRT-LLM has it. `fp8 choose M` prints the macros that its
// rules choose for M rows, `fp8 M` what it would launch.
#include <cuda_runtime.h>

#include "../capture.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cudaTypedefs.h>
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
#include <cutlass/arch/reg_reconfig.h>
#include <cutlass/cutlass.h>

static cudaError_t encoder(void** found, cudaDriverEntryPointQueryResult* status) {
  *found = reinterpret_cast<void*>(&cuTensorMapEncodeTiled);
  *status = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
#define cudaGetDriverEntryPointByVersion(name, found, version, flags, status) encoder(found, status)
#include "deep_gemm/fp8_gemm_impl.cuh"
#include "deep_gemm/jit_utils.cuh"

#ifndef TILE_ROWS  // tile, stages, and CTAs that share B
#define TILE_ROWS 128
#define TILE_COLUMNS 128
#define STAGES 4
#define SHARED_BY 1
#endif

using namespace deep_gemm;
using Scheduler = typename SchedulerSelector<GemmType::Normal, SHAPE_COLUMNS, SHAPE_DEPTH, TILE_ROWS, TILE_COLUMNS, 128, 1, SHARED_BY>::type;

template <class T>
static CUtensorMap map_of(T* start, uint64_t across, uint64_t down, uint32_t box_across, uint32_t box_down, bool swizzled) {
  uint64_t dims[2] = {across, down};
  uint32_t box[2] = {box_across, box_down};
  return make_2d_tma_copy_desc(start, dims, across * sizeof(T), box,
                               swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE);
}

int main(int argc, char** argv) {
  if (!strcmp(argv[1], "choose")) {
    auto [rows, columns, stages, shared_by, bytes] = jit::get_best_gemm_config(atoi(argv[2]), SHAPE_COLUMNS, SHAPE_DEPTH, 1, 132);
    printf("-DROWS=%d -DCOLUMNS=%d -DSTAGES=%d -DSHARED_BY=%d\n", rows, columns, stages, shared_by);
    return 0;
  }
  uint32_t m = atoi(argv[1]), padded = ceil_div(m, 4u) * 4;
  auto d = static_cast<__nv_bfloat16*>(place_of(3));
  auto a_map = map_of(static_cast<__nv_fp8_e4m3*>(place_of(0)), SHAPE_DEPTH, m, 128, TILE_ROWS, true);
  auto b_map = map_of(static_cast<__nv_fp8_e4m3*>(place_of(1)), SHAPE_DEPTH, SHAPE_COLUMNS, 128, TILE_COLUMNS, true);
  auto a_scales = map_of(static_cast<float*>(place_of(2)), padded, ceil_div(SHAPE_DEPTH, 128), TILE_ROWS, 1, false);
  auto d_map = map_of(d, SHAPE_COLUMNS, m, std::min<uint32_t>(TILE_COLUMNS, SHAPE_COLUMNS), std::min<uint32_t>(TILE_ROWS, m), false);
  NormalSchedulerInput input;
  memset(static_cast<void*>(&input), 0, sizeof(input));
  input.shape_m = m;
  tell(dim3(132), dim3(get_num_threads_per_sm<128, 128>(TILE_ROWS)), dim3(SHARED_BY, 1, 1),
       jit::get_smem_size(STAGES, SHAPE_DEPTH, TILE_ROWS, TILE_COLUMNS), 0, d, static_cast<float*>(place_of(4)), input, a_map, b_map, a_scales, d_map);
  auto kernel = fp8_gemm_kernel<SHAPE_COLUMNS, SHAPE_DEPTH, TILE_ROWS, TILE_COLUMNS, 128, 1, STAGES, 128, 128, SHARED_BY, Scheduler, NormalSchedulerInput>;
  return kernel == nullptr;
}
