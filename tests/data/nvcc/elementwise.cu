// What people write first: streams of words, an early return before a barrier, a barrier of the grid, division of 128 bits.
#include <cooperative_groups.h>

extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void vadd4(const float4* a, const float4* b, float4* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4) {
        float4 v = a[i], w = b[i];
        c[i] = make_float4(v.x + w.x, v.y + w.y, v.z + w.z, v.w + w.w);
    }
}

extern "C" __global__ void saxpy(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = 2.0f * a[i] + c[i];
}

extern "C" __global__ void copy_stride(const float* a, float* c, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) c[i] = a[i];
}

extern "C" __global__ void shift(const int* a, int* c, int n) {
    __shared__ int held[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    held[threadIdx.x] = a[i];
    __syncthreads();
    int from = threadIdx.x ? threadIdx.x - 1 : min(blockDim.x, n - blockIdx.x * blockDim.x) - 1;
    c[i] = held[from];
}

extern "C" __global__ void reversed(int* x, int* out) {
    auto grid = cooperative_groups::this_grid();
    unsigned i = grid.thread_rank(), n = grid.size();
    x[i] = 2 * i;
    grid.sync();
    out[i] = x[n - 1 - i];
    grid.sync();
    x[i] = out[n - 1 - i] + 1;
}

extern "C" __global__ void divide128(const unsigned long long* a, const unsigned long long* b, unsigned long long* out) {
    int i = threadIdx.x;
    unsigned __int128 x = (unsigned __int128)a[2 * i + 1] << 64 | a[2 * i];
    unsigned __int128 y = (unsigned __int128)b[2 * i + 1] << 64 | b[2 * i];
    unsigned __int128 q = x / y, r = x % y;
    out[4 * i] = (unsigned long long)q;
    out[4 * i + 1] = (unsigned long long)(q >> 64);
    out[4 * i + 2] = (unsigned long long)r;
    out[4 * i + 3] = (unsigned long long)(r >> 64);
}

__device__ unsigned launches = 5;

extern "C" __global__ void count(unsigned* out) { *out = ++launches; }
