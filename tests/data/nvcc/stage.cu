#include <cuda_fp16.h>
#include <cstdint>
template <int N> struct Tile { float v[N]; };
extern __shared__ __align__(128) unsigned char dynamic_smem[];
__device__ inline void wait(uint32_t bar, uint32_t parity) {
  asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n@P1 bra DONE;\nbra LAB_WAIT;\nDONE:\n}" :: "r"(bar), "r"(parity));
}
template <class T, int N>
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128, 2) stage(const T *__restrict__ in, T *out, Tile<N> tile, uint64_t desc) {
  __shared__ __align__(8) uint64_t bars[2];
  __shared__ float scratch[128];
  uint32_t bar = (uint32_t)__cvta_generic_to_shared(&bars[0]);
  uint32_t lane_is;
  asm volatile("{\n .reg .pred %%px;\n .reg .b32 %%rx;\n elect.sync %%rx|%%px, 0xFFFFFFFF;\n selp.b32 %0, 1, 0, %%px;\n}" : "=r"(lane_is));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(1));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  uint32_t dst = (uint32_t)__cvta_generic_to_shared(dynamic_smem) + threadIdx.x * 16;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n cp.async.commit_group;\n cp.async.wait_group 0;" :: "r"(dst), "l"(in + threadIdx.x * 8), "r"(lane_is * 16));
  if (threadIdx.x == 0) asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [ %0 + 0 ], 0x0;" :: "r"(bar));
  wait(bar, 0);
  asm volatile("{\n.reg .b64 remAddr;\n.reg .v4 .f32 quad;\nmapa.u64 remAddr, %0, 0;\nmov.f32 quad.x, 0f3F800000;\n mov.f32 quad.y, 0F40000000; mov.f32 quad.z, quad.x; mov.f32 quad.w, quad.y;\n st.shared.v4.f32 [%1+-16], quad;\n}" :: "l"((uint64_t)&bars[1]), "r"(dst + 16));
  float acc[4] = {};
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\nwgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n}"
   : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3]) : "l"(desc), "l"(4611686293305294848ull), "r"(lane_is));
  scratch[threadIdx.x] = acc[0] + tile.v[threadIdx.x % N] + __half2float((half)in[threadIdx.x]);
  __syncthreads();
  float s = scratch[127 - threadIdx.x];
#pragma unroll 1
  for (int i = 0; i < N; i++) s = s * 1.0001f + (float)__shfl_xor_sync(~0u, s, 16) + (float)clock64();
  out[blockIdx.x * 128 + threadIdx.x] = (T)(s + acc[1] + (float)warpSize);
}
template __global__ void stage<half, 5>(const half *, half *, Tile<5>, uint64_t);
