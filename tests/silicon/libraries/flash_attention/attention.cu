// FlashInfer's prefill attention for Hopper, a port of FlashAttention-3, chosen by macros; the program prints what it would
// launch for QUERIES KEYS QUERY_HEADS KEY_HEADS and the sizes of the kernel's three parameters.
#include <cuda_runtime.h>

#include "../capture.h"

#include <cmath>
#include <cstdlib>

#include <cute/tensor.hpp>
#include <cutlass/kernel_hardware_info.h>
#include <flashinfer/cutlass_utils.cuh>
#include <flashinfer/attention/hopper/default_params.cuh>

static size_t argument_bytes[3];

static cudaError_t captured(void*, dim3 grid, dim3 block, void** arguments, size_t shared_bytes, cudaStream_t) {
  tell_start(grid, block, dim3(1, 1, 1), shared_bytes, 0);
  for (int i = 0; i < 3; ++i) tell_argument(arguments[i], argument_bytes[i], i == 0);
  printf("]}\n");
  return cudaSuccess;
}

static cudaError_t count_sms(int* count) { *count = 132; return cudaSuccess; }

#define cudaLaunchKernel captured
#define cudaFuncSetAttribute(...) cudaSuccess
#define cudaGetDevice(...) cudaSuccess
#define cudaDeviceGetAttribute(count, ...) count_sms(count)
#define cudaGetLastError() cudaSuccess
#ifdef FP8
#include <flashinfer/attention/hopper/quantization/prefill_sm90.cuh>
#else
#include <flashinfer/attention/hopper/prefill_sm90.cuh>
#endif
#include <flashinfer/attention/hopper/variants.cuh>

#ifndef ELEMENT  // of Q, K and V
#define ELEMENT cutlass::half_t
#endif
#ifndef OUT  // of O
#define OUT ELEMENT
#endif
#ifndef HEAD
#define HEAD 128
#endif
#ifndef MASK
#define MASK kNone
#endif

int main(int, char** argv) {
  int queries = atoi(argv[1]), keys = atoi(argv[2]), query_heads = atoi(argv[3]), key_heads = atoi(argv[4]);
  for (int i = 0; i < 3; ++i) argument_bytes[i] = atoi(argv[5 + i]);
  using namespace flashinfer;
  using Params = SinglePrefillParams<ELEMENT, ELEMENT, OUT>;
  Params params;
  memset(static_cast<void*>(&params), 0, sizeof(params));
  params.q_ptr = static_cast<ELEMENT*>(place_of(0));
  params.k_ptr = static_cast<ELEMENT*>(place_of(1));
  params.v_ptr = static_cast<ELEMENT*>(place_of(2));
  params.o_ptr = static_cast<OUT*>(place_of(3));
  params.lse_ptr = static_cast<float*>(place_of(4));
  params.additional_params.sm_scale = 1.0f / std::sqrt(float(HEAD));
  params.q_stride_n = params.o_stride_n = query_heads * HEAD;
  params.k_stride_n = params.v_stride_n = key_heads * HEAD;
  params.q_stride_h = params.k_stride_h = params.v_stride_h = params.o_stride_h = HEAD;
  params.qo_len = queries;
  params.kv_len = keys;
  params.num_qo_heads = query_heads;
  params.num_kv_heads = key_heads;
  params.group_size = query_heads / key_heads;
  params.window_left = -1;
  params.causal = MaskMode::MASK == MaskMode::kCausal;
#ifdef FP8
  SingleFP8PrefillWithKVCacheDispatched<HEAD, MaskMode::MASK, false, StandardFP8Attention>(params, 0);
#else
  SinglePrefillWithKVCacheDispatched<HEAD, HEAD, MaskMode::MASK, false, StandardAttention>(params, 0);
#endif
}
