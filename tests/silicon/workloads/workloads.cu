// Kernels as people write them who have no tensor core in mind: what they take on an H100 is in workloads.json beside this.
// nvcc -std=c++17 -ptx -gencode=arch=compute_90a,code=compute_90a workloads.cu

#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

namespace cg = cooperative_groups;

// ---------------------------------------------------------------- data that moves

extern "C" __global__ void transpose_naive(float *out, const float *in, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8) out[x * n + y + i] = in[(y + i) * n + x];
}

extern "C" __global__ void transpose_tiled(float *out, const float *in, int n) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8) tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8) out[(y + i) * n + x] = tile[threadIdx.x][threadIdx.y + i];
}

extern "C" __global__ void gather(float *out, const float *in, const int *index, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[index[i]];
}

extern "C" __global__ void chase(unsigned *out, const unsigned *next, int hops) {
    unsigned at = threadIdx.x;
    for (int i = 0; i < hops; ++i) at = next[at];
    out[threadIdx.x] = at;
}

extern "C" __global__ void staged_copies(float *out, const float *in, int n) {
    __shared__ float stage[4][256];
    int first = blockIdx.x * 256 + threadIdx.x, step = gridDim.x * 256;
    for (int i = 0; i < 3; ++i) {
        if (first + i * step < n)
            __pipeline_memcpy_async(&stage[i][threadIdx.x], &in[first + i * step], 4);
        __pipeline_commit();
    }
    int slot = 0;
    for (int at = first; at < n; at += step, slot = (slot + 1) & 3) {
        if (at + 3 * step < n)
            __pipeline_memcpy_async(&stage[(slot + 3) & 3][threadIdx.x], &in[at + 3 * step], 4);
        __pipeline_commit();
        __pipeline_wait_prior(3);
        out[at] = stage[slot][threadIdx.x] * 2.0f;
    }
}

// ---------------------------------------------------------------- neighbours

extern "C" __global__ void stencil(float *out, const float *in, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x == 0 || y == 0 || x >= n - 1 || y >= n - 1) return;
    out[y * n + x] = 0.5f * in[y * n + x]
        + 0.125f * (in[y * n + x - 1] + in[y * n + x + 1] + in[(y - 1) * n + x] + in[(y + 1) * n + x]);
}

__constant__ float taps[17] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2, 1};

extern "C" __global__ void convolve(float *out, const float *in, int n) {
    __shared__ float part[256 + 16];
    int at = blockIdx.x * 256 + threadIdx.x;
    part[threadIdx.x] = at < n + 16 ? in[at] : 0.0f;
    if (threadIdx.x < 16) part[256 + threadIdx.x] = at + 256 < n + 16 ? in[at + 256] : 0.0f;
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 17; ++i) sum += taps[i] * part[threadIdx.x + i];
    if (at < n) out[at] = sum;
}

// ---------------------------------------------------------------- sums and rows

__device__ float warp_sum(float x) {
    for (int step = 16; step; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

__device__ float warp_max(float x) {
    for (int step = 16; step; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
    return x;
}

extern "C" __global__ void block_sums(float *out, const float *in, int n) {
    __shared__ float parts[8];
    float sum = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += in[i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = warp_sum(threadIdx.x < 8 ? parts[threadIdx.x] : 0.0f);
        if (threadIdx.x == 0) out[blockIdx.x] = sum;
    }
}

extern "C" __global__ void softmax_rows(float *out, const float *in, int n) {
    __shared__ float parts[8];
    const float *row = in + blockIdx.x * n;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float most = -INFINITY;
    for (int i = threadIdx.x; i < n; i += 256) most = fmaxf(most, row[i]);
    most = warp_max(most);
    if (lane == 0) parts[warp] = most;
    __syncthreads();
    most = warp_max(parts[lane % 8]);
    __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 256) sum += __expf(row[i] - most);
    sum = warp_sum(sum);
    if (lane == 0) parts[warp] = sum;
    __syncthreads();
    sum = warp_sum(lane < 8 ? parts[lane] : 0.0f);
    for (int i = threadIdx.x; i < n; i += 256) out[blockIdx.x * n + i] = __expf(row[i] - most) / sum;
}

extern "C" __global__ void layer_norm(half *out, const half *in, const half *scale, int n) {
    int row = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
    const half2 *source = reinterpret_cast<const half2 *>(in + row * n);
    float sum = 0, squares = 0;
    for (int i = lane; i < n / 2; i += 32) {
        float2 x = __half22float2(source[i]);
        sum += x.x + x.y;
        squares += x.x * x.x + x.y * x.y;
    }
    float mean = warp_sum(sum) / n, inverse = rsqrtf(warp_sum(squares) / n - mean * mean + 1e-5f);
    half2 *target = reinterpret_cast<half2 *>(out + row * n);
    for (int i = lane; i < n / 2; i += 32) {
        float2 x = __half22float2(source[i]), s = __half22float2(reinterpret_cast<const half2 *>(scale)[i]);
        target[i] = __floats2half2_rn((x.x - mean) * inverse * s.x, (x.y - mean) * inverse * s.y);
    }
}

extern "C" __global__ void scan_blocks(unsigned *out, const unsigned *in) {
    __shared__ unsigned part[2][512];
    int i = threadIdx.x, from = 0;
    part[0][i] = in[blockIdx.x * 512 + i];
    __syncthreads();
    for (int step = 1; step < 512; step *= 2) {
        part[1 - from][i] = part[from][i] + (i >= step ? part[from][i - step] : 0);
        from = 1 - from;
        __syncthreads();
    }
    out[blockIdx.x * 512 + i] = part[from][i];
}

extern "C" __global__ void __cluster_dims__(4) cluster_sums(float *out, const float *in, int n) {
    __shared__ float whole;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) whole = 0;
    cluster.sync();
    float sum = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += in[i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) atomicAdd(cluster.map_shared_rank(&whole, 0), roundf(sum));
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x == 0) out[blockIdx.x / 4] = whole;
}

// ---------------------------------------------------------------- atomics

extern "C" __global__ void histogram_shared(unsigned *bins, const unsigned char *in, int n) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&own[in[i]], 1);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

extern "C" __global__ void histogram_global(unsigned *bins, const unsigned char *in, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) atomicAdd(&bins[in[i]], 1);
}

extern "C" __global__ void one_counter(unsigned *counter, unsigned *out) {
    int i = blockIdx.x * 256 + threadIdx.x;
    unsigned mine = atomicAdd(counter, threadIdx.x & 1);
    out[i] = mine < 1u << 31;
}

// ---------------------------------------------------------------- arithmetic

extern "C" __global__ void gemm_naive(float *c, const float *a, const float *b, int n) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[y * n + k] * b[k * n + x];
    c[y * n + x] = sum;
}

extern "C" __global__ void gemm_tiled(float *c, const float *a, const float *b, int n) {
    __shared__ float ta[32][32], tb[32][32];
    int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 32 + tx, y = blockIdx.y * 32 + ty;
    float sum = 0;
    for (int k = 0; k < n; k += 32) {
        ta[ty][tx] = a[y * n + k + tx];
        tb[ty][tx] = b[(k + ty) * n + x];
        __syncthreads();
        for (int i = 0; i < 32; ++i) sum += ta[ty][i] * tb[i][tx];
        __syncthreads();
    }
    c[y * n + x] = sum;
}

extern "C" __global__ void __launch_bounds__(256) gemm_registers(float *c, const float *a, const float *b, int n) {
    __shared__ float ta[16][64], tb[16][64];
    int t = threadIdx.x, tx = t % 16, ty = t / 16, x0 = blockIdx.x * 64, y0 = blockIdx.y * 64;
    float sum[4][4] = {};
    for (int k = 0; k < n; k += 16) {
        float4 row = *reinterpret_cast<const float4 *>(&a[(y0 + t / 4) * n + k + t % 4 * 4]);
        ta[t % 4 * 4 + 0][t / 4] = row.x;
        ta[t % 4 * 4 + 1][t / 4] = row.y;
        ta[t % 4 * 4 + 2][t / 4] = row.z;
        ta[t % 4 * 4 + 3][t / 4] = row.w;
        *reinterpret_cast<float4 *>(&tb[t / 16][tx * 4]) =
            *reinterpret_cast<const float4 *>(&b[(k + t / 16) * n + x0 + tx * 4]);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            float4 u = *reinterpret_cast<float4 *>(&ta[i][ty * 4]), v = *reinterpret_cast<float4 *>(&tb[i][tx * 4]);
            float p[4] = {u.x, u.y, u.z, u.w}, q[4] = {v.x, v.y, v.z, v.w};
            for (int r = 0; r < 4; ++r)
                for (int s = 0; s < 4; ++s) sum[r][s] += p[r] * q[s];
        }
        __syncthreads();
    }
    for (int r = 0; r < 4; ++r)
        *reinterpret_cast<float4 *>(&c[(y0 + ty * 4 + r) * n + x0 + tx * 4]) =
            make_float4(sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
}

extern "C" __global__ void gemm_wmma(float *c, const half *a, const half *b, int n) {
    using namespace nvcuda;
    int warp = threadIdx.x / 32, y = (blockIdx.y * 2 + warp / 2) * 16, x = (blockIdx.x * 2 + warp % 2) * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(fa, a + y * n + k, n);
        wmma::load_matrix_sync(fb, b + k * n + x, n);
        wmma::mma_sync(sum, fa, fb, sum);
    }
    wmma::store_matrix_sync(c + y * n + x, sum, n, wmma::mem_row_major);
}

extern "C" __global__ void bodies(float4 *out, const float4 *in, int n) {
    __shared__ float4 tile[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    float4 me = in[i];
    float ax = 0, ay = 0, az = 0;
    for (int first = 0; first < n; first += 128) {
        tile[threadIdx.x] = in[first + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 128; ++j) {
            float4 other = tile[j];
            float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
            float pull = other.w * inverse * inverse * inverse;
            ax += dx * pull, ay += dy * pull, az += dz * pull;
        }
        __syncthreads();
    }
    out[i] = make_float4(ax, ay, az, 0);
}

extern "C" __global__ void mandelbrot(int *out, int n, int limit) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float cx = -2.0f + 3.0f * x / n, cy = -1.5f + 3.0f * y / n, a = 0, b = 0;
    int count = 0;
    while (count < limit && a * a + b * b < 4.0f) {
        float t = a * a - b * b + cx;
        b = 2 * a * b + cy;
        a = t;
        ++count;
    }
    out[y * n + x] = count;
}

extern "C" __global__ void random_walk(unsigned *out, int steps) {
    unsigned i = blockIdx.x * 256 + threadIdx.x, state = i * 2654435761u + 12345u, inside = 0;
    for (int k = 0; k < steps; ++k) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        unsigned x = state & 0xffff, y = state >> 16;
        inside += x * x + y * y < 0xffff0000u && x + y > 1000;
    }
    out[i] = inside;
}

extern "C" __global__ void transcendental(float *out, const float *in, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) {
        float x = in[i];
        out[i] = sinf(x) * expf(-x * x) + logf(1.0f + x * x) + tanhf(x) + powf(fabsf(x) + 0.5f, 1.25f);
    }
}

extern "C" __global__ void doubles(double *out, const double *in, int terms) {
    int i = blockIdx.x * 128 + threadIdx.x;
    double x = in[i], sum = 0;
    for (int k = 0; k < terms; ++k) sum = fma(sum, x, 1.0 / (k + 1));
    out[i] = sqrt(fabs(sum));
}

extern "C" __global__ void spmv_rows(float *y, const int *starts, const int *columns, const float *values, const float *x, int n) {
    int row = blockIdx.x * 128 + threadIdx.x;
    if (row >= n) return;
    float sum = 0;
    for (int k = starts[row]; k < starts[row + 1]; ++k) sum += values[k] * x[columns[k]];
    y[row] = sum;
}

extern "C" __global__ void spmv_warps(float *y, const int *starts, const int *columns, const float *values, const float *x, int n) {
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= n) return;
    float sum = 0;
    for (int k = starts[row] + lane; k < starts[row + 1]; k += 32) sum += values[k] * x[columns[k]];
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum;
}

extern "C" __global__ void sort_lists(int *out, const int *in) {
    int own[16];
    int i = blockIdx.x * 64 + threadIdx.x;
    for (int k = 0; k < 16; ++k) own[k] = in[i * 16 + k];
    for (int k = 1; k < 16; ++k) {
        int one = own[k], at = k;
        while (at > 0 && own[at - 1] > one) own[at] = own[at - 1], --at;
        own[at] = one;
    }
    for (int k = 0; k < 16; ++k) out[i * 16 + k] = own[k];
}
