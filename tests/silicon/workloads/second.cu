// A second set of kernels as people write them, of other kinds than workloads.cu: what they take on an H100 is in second.json.
// nvcc -std=c++17 -ptx -gencode=arch=compute_90a,code=compute_90a second.cu

#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;
using bf16 = __nv_bfloat16;

__device__ float warp_sum(float x) {
    for (int step = 16; step; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

__device__ float warp_max(float x) {
    for (int step = 16; step; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
    return x;
}

__device__ float block_sum(float x, float *parts) {
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    return warp_sum(threadIdx.x % 32 < blockDim.x / 32 ? parts[threadIdx.x % 32] : 0.0f);
}

union Eight {
    uint4 raw;
    __nv_bfloat162 pairs[4];
    half2 halves[4];
};

// ---------------------------------------------------------------- layers of a language model

extern "C" __global__ void __launch_bounds__(256) rms_norm(uint4 *out, const uint4 *in, const uint4 *scale) {
    __shared__ float parts[8];
    Eight x{in[blockIdx.x * 256 + threadIdx.x]}, s{scale[threadIdx.x]};
    float squares = 0;
    for (int i = 0; i < 4; ++i) {
        float2 two = __bfloat1622float2(x.pairs[i]);
        squares += two.x * two.x + two.y * two.y;
    }
    float inverse = rsqrtf(block_sum(squares, parts) / 2048 + 1e-6f);
    for (int i = 0; i < 4; ++i) {
        float2 two = __bfloat1622float2(x.pairs[i]), by = __bfloat1622float2(s.pairs[i]);
        x.pairs[i] = __floats2bfloat162_rn(two.x * inverse * by.x, two.y * inverse * by.y);
    }
    out[blockIdx.x * 256 + threadIdx.x] = x.raw;
}

// A head of 128 is one block's 64 threads; the halves of a head turn together.
extern "C" __global__ void rotary(bf16 *out, const bf16 *in, const float2 *turns, int heads) {
    int position = blockIdx.x, pair = threadIdx.x;
    float2 turn = turns[position * 64 + pair];
    for (int head = threadIdx.y; head < heads; head += blockDim.y) {
        int at = (position * heads + head) * 128 + pair;
        float x = __bfloat162float(in[at]), y = __bfloat162float(in[at + 64]);
        out[at] = __float2bfloat16(x * turn.x - y * turn.y);
        out[at + 64] = __float2bfloat16(y * turn.x + x * turn.y);
    }
}

extern "C" __global__ void bias_gelu(__nv_bfloat162 *out, const __nv_bfloat162 *in, const __nv_bfloat162 *bias, int columns) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float2 x = __bfloat1622float2(__hadd2(in[i], bias[i % columns]));
    x.x = 0.5f * x.x * (1.0f + erff(x.x * 0.70710678f));
    x.y = 0.5f * x.y * (1.0f + erff(x.y * 0.70710678f));
    out[i] = __floats2bfloat162_rn(x.x, x.y);
}

extern "C" __global__ void embed(uint4 *out, const uint4 *table, const int *tokens, int words) {
    const uint4 *row = table + (size_t)tokens[blockIdx.x] * words;
    for (int i = threadIdx.x; i < words; i += blockDim.x) out[blockIdx.x * words + i] = row[i];
}

// One token against many matrices: four rows of one matrix in a block, its vector in shared memory.
extern "C" __global__ void decode_gemv(float *out, const uint4 *matrices, const uint4 *vectors, int columns) {
    __shared__ uint4 vector[256];
    int words = columns / 8, row = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x, rows = gridDim.x * 4;
    for (int i = threadIdx.y * 32 + lane; i < words; i += 128) vector[i] = vectors[blockIdx.y * words + i];
    __syncthreads();
    const uint4 *mine = matrices + (size_t)(blockIdx.y * rows + row) * words;
    float sum = 0;
    for (int i = lane; i < words; i += 32) {
        Eight a{mine[i]}, b{vector[i]};
        for (int k = 0; k < 4; ++k) {
            float2 x = __half22float2(a.halves[k]), y = __half22float2(b.halves[k]);
            sum = fmaf(x.x, y.x, fmaf(x.y, y.y, sum));
        }
    }
    sum = warp_sum(sum);
    if (lane == 0) out[blockIdx.y * rows + row] = sum;
}

extern "C" __global__ void cross_entropy(float *out, const bf16 *logits, const int *labels, int n) {
    __shared__ float parts[2][8];
    const __nv_bfloat162 *row = reinterpret_cast<const __nv_bfloat162 *>(logits + blockIdx.x * n);
    float most = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < n / 2; i += 256) {
        float2 x = __bfloat1622float2(row[i]);
        most = fmaxf(most, fmaxf(x.x, x.y));
    }
    most = warp_max(most);
    if (threadIdx.x % 32 == 0) parts[0][threadIdx.x / 32] = most;
    __syncthreads();
    most = warp_max(parts[0][threadIdx.x % 8]);
    for (int i = threadIdx.x; i < n / 2; i += 256) {
        float2 x = __bfloat1622float2(row[i]);
        sum += __expf(x.x - most) + __expf(x.y - most);
    }
    sum = block_sum(sum, parts[1]);
    if (threadIdx.x == 0)
        out[blockIdx.x] = most + __logf(sum) - __bfloat162float(logits[blockIdx.x * n + labels[blockIdx.x]]);
}

// Maximum and sum in one pass, a warp for a row.
extern "C" __global__ void online_softmax(float *out, const float4 *in, int quads) {
    int row = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
    float most = -INFINITY, sum = 0;
    for (int i = lane; i < quads; i += 32) {
        float4 x = in[row * quads + i];
        float higher = fmaxf(fmaxf(most, fmaxf(x.x, x.y)), fmaxf(x.z, x.w));
        sum = sum * __expf(most - higher) + __expf(x.x - higher) + __expf(x.y - higher) + __expf(x.z - higher)
            + __expf(x.w - higher);
        most = higher;
    }
    for (int step = 16; step; step /= 2) {
        float other = __shfl_xor_sync(~0u, most, step), its = __shfl_xor_sync(~0u, sum, step);
        float higher = fmaxf(most, other);
        sum = sum * __expf(most - higher) + its * __expf(other - higher);
        most = higher;
    }
    float scale = __fdividef(1.0f, sum);
    for (int i = lane; i < quads; i += 32) {
        float4 x = in[row * quads + i];
        reinterpret_cast<float4 *>(out)[row * quads + i] = make_float4(__expf(x.x - most) * scale,
            __expf(x.y - most) * scale, __expf(x.z - most) * scale, __expf(x.w - most) * scale);
    }
}

__device__ void matrices(unsigned (&to)[4], const half *at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"((unsigned)__cvta_generic_to_shared(at)) : "memory");
}

__device__ void turned_matrices(unsigned (&to)[4], const half *at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"((unsigned)__cvta_generic_to_shared(at)) : "memory");
}

__device__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ unsigned packed(float x, float y) {
    half2 both = __floats2half2_rn(x, y);
    return *reinterpret_cast<unsigned *>(&both);
}

// 64 queries of a head in a block, 16 in a warp; 64 keys and values at a time, the next on their way by cp.async.
extern "C" __global__ void __launch_bounds__(128) attention_mma(half *out, const half *q, const half *k, const half *v, int n) {
    __shared__ __align__(16) half keys[2][64][72], values[2][64][72];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, head = blockIdx.y * n * 64;
    int row = blockIdx.x * 64 + warp * 16 + lane / 4, pair = lane % 4 * 2;
    unsigned a[4][4];
    for (int c = 0; c < 4; ++c)
        for (int i = 0; i < 4; ++i)
            a[c][i] = *reinterpret_cast<const unsigned *>(&q[head + (row + i % 2 * 8) * 64 + c * 16 + i / 2 * 8 + pair]);
    auto fetch = [&](int first) {
        int stage = first / 64 % 2;
        for (int i = threadIdx.x; i < 512; i += 128) {
            int from = head + (first + i / 8) * 64 + i % 8 * 8;
            __pipeline_memcpy_async(&keys[stage][i / 8][i % 8 * 8], &k[from], 16);
            __pipeline_memcpy_async(&values[stage][i / 8][i % 8 * 8], &v[from], 16);
        }
        __pipeline_commit();
    };
    float o[8][4] = {}, most[2] = {-INFINITY, -INFINITY}, sum[2] = {};
    fetch(0);
    for (int first = 0; first < n; first += 64) {
        int stage = first / 64 % 2;
        if (first + 64 < n) fetch(first + 64);
        else __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        float s[8][4] = {};
#pragma unroll
        for (int j = 0; j < 8; ++j)
            for (int h = 0; h < 2; ++h) {
                unsigned b[4];
                matrices(b, &keys[stage][j * 8 + lane % 8][h * 32 + lane / 8 * 8]);
                multiply(s[j], a[2 * h], b[0], b[1]);
                multiply(s[j], a[2 * h + 1], b[2], b[3]);
            }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float higher = most[r], part = 0;
            for (int j = 0; j < 8; ++j) higher = fmaxf(higher, fmaxf(s[j][2 * r], s[j][2 * r + 1]));
            higher = fmaxf(higher, __shfl_xor_sync(~0u, higher, 1));
            higher = fmaxf(higher, __shfl_xor_sync(~0u, higher, 2));
            float scale = exp2f((most[r] - higher) * 0.18033688f);
            for (int j = 0; j < 8; ++j)
                for (int i = 2 * r; i < 2 * r + 2; ++i) {
                    s[j][i] = exp2f((s[j][i] - higher) * 0.18033688f);
                    part += s[j][i];
                    o[j][i] *= scale;
                }
            part += __shfl_xor_sync(~0u, part, 1);
            part += __shfl_xor_sync(~0u, part, 2);
            sum[r] = sum[r] * scale + part;
            most[r] = higher;
        }
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            unsigned p[4] = {packed(s[2 * c][0], s[2 * c][1]), packed(s[2 * c][2], s[2 * c][3]),
                packed(s[2 * c + 1][0], s[2 * c + 1][1]), packed(s[2 * c + 1][2], s[2 * c + 1][3])};
            for (int d = 0; d < 4; ++d) {
                unsigned b[4];
                turned_matrices(b, &values[stage][c * 16 + lane % 16][d * 16 + lane / 16 * 8]);
                multiply(o[2 * d], p, b[0], b[1]);
                multiply(o[2 * d + 1], p, b[2], b[3]);
            }
        }
        __syncthreads();
    }
    for (int r = 0; r < 2; ++r)
        for (int j = 0; j < 8; ++j)
            *reinterpret_cast<unsigned *>(&out[head + (row + 8 * r) * 64 + j * 8 + pair]) =
                packed(o[j][2 * r] / sum[r], o[j][2 * r + 1] / sum[r]);
}

// ---------------------------------------------------------------- few bits a number

extern "C" __global__ void quantise_rows(char4 *out, float *scales, const float4 *in) {
    __shared__ float parts[8];
    float4 x = in[blockIdx.x * 256 + threadIdx.x];
    float most = warp_max(fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w))));
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = most;
    __syncthreads();
    most = warp_max(parts[threadIdx.x % 8]);
    float by = 127.0f / most;
    out[blockIdx.x * 256 + threadIdx.x] = make_char4(__float2int_rn(x.x * by), __float2int_rn(x.y * by),
        __float2int_rn(x.z * by), __float2int_rn(x.w * by));
    if (threadIdx.x == 0) scales[blockIdx.x] = most / 127.0f;
}

// Eight numbers of four bits in a word, 0x6400 | n is 1024 + n in f16; a scale for 128 numbers.
extern "C" __global__ void dequantise_int4(uint4 *out, const unsigned *in, const half *scales) {
    int i = blockIdx.x * 256 + threadIdx.x;
    unsigned word = in[i];
    half2 scale = __half2half2(scales[i / 16]), zero = __half2half2(__ushort_as_half(0x6408));
    Eight result;
    for (int k = 0; k < 4; ++k) {
        unsigned bits = (word >> 4 * k & 0x000f000f) | 0x64006400;
        result.halves[k] = __hmul2(__hsub2(*reinterpret_cast<half2 *>(&bits), zero), scale);
    }
    out[i] = result.raw;
}

extern "C" __global__ void int8_product(int *c, const int *a, const int *b, int n) {
    __shared__ int ta[32][9], tb[32][9];
    int tx = threadIdx.x, ty = threadIdx.y, t = ty * 32 + tx, words = n / 4, sum[4] = {};
    for (int k = 0; k < words; k += 8) {
        ta[t / 8][t % 8] = a[(blockIdx.y * 32 + t / 8) * words + k + t % 8];
        tb[t / 8][t % 8] = b[(blockIdx.x * 32 + t / 8) * words + k + t % 8];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 8; ++i)
            for (int r = 0; r < 4; ++r) sum[r] = __dp4a(ta[ty + 8 * r][i], tb[tx][i], sum[r]);
        __syncthreads();
    }
    for (int r = 0; r < 4; ++r) c[(blockIdx.y * 32 + ty + 8 * r) * n + blockIdx.x * 32 + tx] = sum[r];
}

// ---------------------------------------------------------------- the best of a row

extern "C" __global__ void argmax_rows(int *out, const float *in, int n) {
    __shared__ float bests[8];
    __shared__ int places[8];
    float best = -INFINITY;
    int place = 0;
    for (int i = threadIdx.x; i < n; i += 256) {
        float x = in[blockIdx.x * n + i];
        if (x > best) best = x, place = i;
    }
    auto join = [&](float other, int its) {
        if (other > best || (other == best && its < place)) best = other, place = its;
    };
    for (int step = 16; step; step /= 2)
        join(__shfl_down_sync(~0u, best, step), __shfl_down_sync(~0u, place, step));
    if (threadIdx.x % 32 == 0) bests[threadIdx.x / 32] = best, places[threadIdx.x / 32] = place;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; ++i) join(bests[i], places[i]);
        out[blockIdx.x] = place;
    }
}

// A warp finds the eight largest words of its row of 1024: the largest of all lanes goes, its lane looks again.
extern "C" __global__ void top_eight(unsigned *out, const unsigned *in) {
    int row = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
    unsigned own[32];
    for (int i = 0; i < 32; ++i) own[i] = in[row * 1024 + i * 32 + lane];
    for (int k = 0; k < 8; ++k) {
        unsigned best = 0;
        for (int i = 0; i < 32; ++i) best = max(best, own[i]);
        unsigned most = __reduce_max_sync(~0u, best);
        int taker = __ffs(__ballot_sync(~0u, best == most)) - 1;
        bool gone = lane != taker;
        for (int i = 0; i < 32; ++i)
            if (!gone && own[i] == most) own[i] = 0, gone = true;
        if (lane == 0) out[row * 8 + k] = most;
    }
}

// ---------------------------------------------------------------- images and grids

extern "C" __global__ void depthwise_3x3(float *out, const float *in, const float *weights, int n) {
    __shared__ float tile[10][34];
    int tx = threadIdx.x, ty = threadIdx.y, x0 = blockIdx.x * 32, y0 = blockIdx.y * 8, plane = blockIdx.z * n * n;
    for (int i = ty * 32 + tx; i < 340; i += 256) {
        int y = y0 + i / 34 - 1, x = x0 + i % 34 - 1;
        tile[i / 34][i % 34] = x >= 0 && y >= 0 && x < n && y < n ? in[plane + y * n + x] : 0.0f;
    }
    __syncthreads();
    float sum = 0;
    for (int j = 0; j < 3; ++j)
        for (int i = 0; i < 3; ++i) sum += weights[blockIdx.z * 9 + j * 3 + i] * tile[ty + j][tx + i];
    out[plane + (y0 + ty) * n + x0 + tx] = sum;
}

// 8 channels in, 8 out; a block makes 16 x 16 pixels of all of them.
extern "C" __global__ void __launch_bounds__(256) convolve_3x3(float *out, const float *in, const float *weights, int n) {
    __shared__ float tile[18][18], taps[8][9];
    int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx, x0 = blockIdx.x * 16, y0 = blockIdx.y * 16;
    float sum[8] = {};
    for (int channel = 0; channel < 8; ++channel) {
        for (int i = t; i < 324; i += 256) {
            int y = y0 + i / 18 - 1, x = x0 + i % 18 - 1;
            tile[i / 18][i % 18] = x >= 0 && y >= 0 && x < n && y < n ? in[(channel * n + y) * n + x] : 0.0f;
        }
        if (t < 72) taps[t / 9][t % 9] = weights[(t / 9 * 8 + channel) * 9 + t % 9];
        __syncthreads();
        for (int k = 0; k < 9; ++k) {
            float pixel = tile[ty + k / 3][tx + k % 3];
#pragma unroll
            for (int o = 0; o < 8; ++o) sum[o] = fmaf(pixel, taps[o][k], sum[o]);
        }
        __syncthreads();
    }
    for (int o = 0; o < 8; ++o) out[(o * n + y0 + ty) * n + x0 + tx] = sum[o];
}

// A strip of 128 columns and 32 rows; the row after the next is on its way by cp.async. Four columns more on either side.
extern "C" __global__ void jacobi_strips(float *out, const float *in, int n) {
    __shared__ __align__(16) float rows[4][136];
    int t = threadIdx.x, x0 = blockIdx.x * 128, y0 = blockIdx.y * 32, pitch = n + 8;
    auto fetch = [&](int r) {
        if (t < 34) __pipeline_memcpy_async(&rows[r % 4][t * 4], &in[(y0 + r) * pitch + x0 + t * 4], 16);
        __pipeline_commit();
    };
    for (int r = 0; r < 3; ++r) fetch(r);
    for (int r = 0; r < 32; ++r) {
        if (r < 31) fetch(r + 3);
        else __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        const float *above = rows[r % 4], *own = rows[(r + 1) % 4], *below = rows[(r + 2) % 4];
        out[(y0 + r) * n + x0 + t] = 0.25f * (above[t + 4] + below[t + 4] + own[t + 3] + own[t + 5]);
        __syncthreads();
    }
}

// Steps of a diffusion over the 1024 cells of a ring of four CTAs, exchanged through distributed shared memory.
extern "C" __global__ void __cluster_dims__(4) cluster_halo(float *out, const float *in, int steps) {
    __shared__ float cells[2][258];
    cg::cluster_group cluster = cg::this_cluster();
    int t = threadIdx.x, rank = cluster.block_rank(), at = blockIdx.x * 256 + t, from = 0;
    cells[0][t + 1] = in[at];
    for (int step = 0; step < steps; ++step, from = 1 - from) {
        cluster.sync();
        if (t == 0) *cluster.map_shared_rank(&cells[from][257], (rank + 3) % 4) = cells[from][1];
        if (t == 255) *cluster.map_shared_rank(&cells[from][0], (rank + 1) % 4) = cells[from][256];
        cluster.sync();
        float own = cells[from][t + 1];
        cells[1 - from][t + 1] = own + 0.25f * (cells[from][t] - 2 * own + cells[from][t + 2]);
    }
    out[at] = cells[from][t + 1];
}

// The same without the ring: nvcc asks for the address in a CTA that is not there, and uses it nowhere.
extern "C" __global__ void __cluster_dims__(4) cluster_edges(float *out, const float *in, int steps) {
    __shared__ float cells[2][258];
    cg::cluster_group cluster = cg::this_cluster();
    int t = threadIdx.x, rank = cluster.block_rank(), at = blockIdx.x * 256 + t, from = 0;
    cells[0][t + 1] = in[at];
    if (t == 0) cells[0][0] = cells[1][0] = 0;
    if (t == 255) cells[0][257] = cells[1][257] = 0;
    for (int step = 0; step < steps; ++step, from = 1 - from) {
        cluster.sync();
        if (t == 0 && rank > 0) *cluster.map_shared_rank(&cells[from][257], rank - 1) = cells[from][1];
        if (t == 255 && rank < 3) *cluster.map_shared_rank(&cells[from][0], rank + 1) = cells[from][256];
        cluster.sync();
        float own = cells[from][t + 1];
        cells[1 - from][t + 1] = own + 0.25f * (cells[from][t] - 2 * own + cells[from][t + 2]);
    }
    out[at] = cells[from][t + 1];
}

// ---------------------------------------------------------------- sorting, counting, sums so far

extern "C" __global__ void bitonic_sort(unsigned *out, const unsigned *in) {
    __shared__ unsigned words[1024];
    int t = threadIdx.x;
    words[t] = in[blockIdx.x * 1024 + t];
    words[t + 512] = in[blockIdx.x * 1024 + t + 512];
    for (int size = 2; size <= 1024; size *= 2)
        for (int step = size / 2; step; step /= 2) {
            __syncthreads();
            int i = 2 * t - (t & (step - 1));
            unsigned x = words[i], y = words[i + step];
            if ((x > y) == ((i & size) == 0)) words[i] = y, words[i + step] = x;
        }
    __syncthreads();
    out[blockIdx.x * 1024 + t] = words[t];
    out[blockIdx.x * 1024 + t + 512] = words[t + 512];
}

// Counts of the four bytes of each word; lanes with the same byte count as one.
extern "C" __global__ void radix_counts(unsigned *out, const unsigned *in, int n) {
    __shared__ unsigned counts[4][256];
    for (int i = threadIdx.x; i < 1024; i += 256) counts[i / 256][i % 256] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        unsigned word = in[i];
        for (int k = 0; k < 4; ++k) {
            unsigned digit = word >> 8 * k & 255, same = __match_any_sync(~0u, digit);
            if ((threadIdx.x & 31) == __ffs(same) - 1) atomicAdd(&counts[k][digit], __popc(same));
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 1024; i += 256) atomicAdd(&out[i], counts[i / 256][i % 256]);
}

// One pass: a tile of 1024 words adds what the tiles before it published, sums of their own (1) or of all so far (2) in two bits.
extern "C" __global__ void __launch_bounds__(256) scan_lookback(uint4 *out, const uint4 *in, unsigned *ticket, unsigned *published) {
    __shared__ unsigned parts[8], tile, before;
    int t = threadIdx.x, lane = t % 32;
    if (t == 0) tile = atomicAdd(ticket, 1);
    __syncthreads();
    uint4 x = in[tile * 256 + t];
    x.y += x.x, x.z += x.y, x.w += x.z;
    unsigned sum = x.w;
    for (int step = 1; step < 32; step *= 2) {
        unsigned other = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += other;
    }
    if (lane == 31) parts[t / 32] = sum;
    __syncthreads();
    if (t < 32) {
        unsigned whole = lane < 8 ? parts[lane] : 0;
        for (int step = 1; step < 8; step *= 2) {
            unsigned other = __shfl_up_sync(~0u, whole, step);
            if (lane >= step) whole += other;
        }
        if (lane < 8) parts[lane] = whole;
        whole = __shfl_sync(~0u, whole, 7);
        if (lane == 0) atomicExch(&published[tile], (tile ? 1u : 2u) << 30 | whole);
        unsigned so_far = 0;
        for (int last = tile - 1; last >= 0; last -= 32) {
            unsigned word;
            do word = last >= lane ? *(volatile unsigned *)&published[last - lane] : 2u << 30;
            while (__any_sync(~0u, word >> 30 == 0));
            unsigned complete = __ballot_sync(~0u, word >> 30 == 2);
            int end = complete ? __ffs(complete) - 1 : 31;
            so_far += __reduce_add_sync(~0u, lane <= end ? word & 0x3fffffff : 0);
            if (complete) break;
        }
        if (lane == 0) {
            if (tile) atomicExch(&published[tile], 2u << 30 | (so_far + whole));
            before = so_far;
        }
    }
    __syncthreads();
    unsigned add = before + sum - x.w + (t >= 32 ? parts[t / 32 - 1] : 0);
    out[tile * 256 + t] = make_uint4(x.x + add, x.y + add, x.z + add, x.w + add);
}

// ---------------------------------------------------------------- tables and graphs

extern "C" __global__ void hash_insert(unsigned *distinct, unsigned *found, unsigned *table, const unsigned *keys, unsigned mask) {
    int i = blockIdx.x * 256 + threadIdx.x;
    unsigned key = keys[i], slot = key * 2654435761u >> 8 & mask;
    while (true) {
        unsigned seen = atomicCAS(&table[slot], 0, key);
        if (seen == 0) atomicAdd(distinct, 1);
        if (seen == 0 || seen == key) break;
        slot = slot + 1 & mask;
    }
    found[i] = atomicAdd(&table[slot], 0) == key;
}

extern "C" __global__ void frontier_step(
    int *levels, int *size, const int *starts, const int *edges, const int *frontier, int count, int *visited, int *next) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    int vertex = frontier[i];
    for (int k = starts[vertex]; k < starts[vertex + 1]; ++k) {
        int to = edges[k];
        if (atomicCAS(&visited[to], 0, 1) == 0) {
            levels[to] = 1;
            next[atomicAdd(size, 1)] = to;
        }
    }
}

// ---------------------------------------------------------------- one step after another

extern "C" __global__ void tridiagonal(float *out, const float *lower, const float *middle, const float *upper, const float *right, float *kept, int n) {
    int i = blockIdx.x * 64 + threadIdx.x, systems = gridDim.x * 64;
    float c = 0, d = 0;
    for (int k = 0; k < n; ++k) {
        int at = k * systems + i;
        float a = lower[at], scale = 1.0f / (middle[at] - a * c);
        c = upper[at] * scale;
        d = (right[at] - a * d) * scale;
        kept[at] = c, out[at] = d;
    }
    for (int k = n - 2; k >= 0; --k) {
        int at = k * systems + i;
        out[at] = d = out[at] - kept[at] * d;
    }
}

// A state h = a h + b x of each channel over time, as in state space models.
extern "C" __global__ void recurrence(float *out, const float *gate, const float *in, int length) {
    int i = blockIdx.x * 128 + threadIdx.x, channels = gridDim.x * 128;
    float h = 0;
    for (int k = 0; k < length; ++k) {
        float a = __fdividef(1.0f, 1.0f + __expf(-gate[k * channels + i]));
        h = a * h + (1.0f - a) * in[k * channels + i];
        out[k * channels + i] = h;
    }
}

// Letters to change between two words of 128: diagonals of a table, a thread for each letter of the first.
extern "C" __global__ void edit_distance(int *out, const unsigned char *first, const unsigned char *second) {
    __shared__ int diagonals[3][129];
    __shared__ unsigned char letters[128];
    int t = threadIdx.x;
    unsigned char mine = first[blockIdx.x * 128 + t];
    letters[t] = second[blockIdx.x * 128 + t];
    diagonals[0][t + 1] = diagonals[1][t + 1] = diagonals[2][t + 1] = 0;
    if (t == 0) diagonals[0][0] = 0, diagonals[1][0] = 1, diagonals[1][1] = 1;
    __syncthreads();
    for (int d = 2; d <= 256; ++d) {
        int *now = diagonals[d % 3], *last = diagonals[(d + 2) % 3], *before = diagonals[(d + 1) % 3], j = d - 1 - t;
        if (t == 0) now[0] = d;
        if (j == 0) now[t + 1] = d;
        else if (j > 0 && j <= 128) now[t + 1] = min(min(last[t], last[t + 1]) + 1, before[t] + (mine != letters[j - 1]));
        __syncthreads();
    }
    if (t == 127) out[blockIdx.x] = diagonals[256 % 3][128];
}

// A warp factors a matrix of 16 x 16 in shared memory.
extern "C" __global__ void cholesky_small(float *out, const float *in) {
    __shared__ float all[4][16][17];
    float (*a)[17] = all[threadIdx.y];
    int lane = threadIdx.x, matrix = (blockIdx.x * 4 + threadIdx.y) * 256;
    for (int i = lane; i < 256; i += 32) a[i / 16][i % 16] = in[matrix + i];
    __syncwarp();
    for (int k = 0; k < 16; ++k) {
        float pivot = sqrtf(a[k][k]);
        __syncwarp();
        if (lane == 0) a[k][k] = pivot;
        if (lane > k && lane < 16) a[lane][k] /= pivot;
        __syncwarp();
        int row = lane % 16;
        if (row > k)
            for (int j = k + 1 + lane / 16; j <= row; j += 2) a[row][j] -= a[row][k] * a[j][k];
        __syncwarp();
    }
    for (int i = lane; i < 256; i += 32) out[matrix + i] = i % 16 <= i / 16 ? a[i / 16][i % 16] : 0.0f;
}

// ---------------------------------------------------------------- transforms, ciphers, prices, clusters, copies

__device__ float2 product(float2 a, float2 b) { return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

// Four transforms of 256 points in a block: 64 threads a transform, radix 4, four passes.
extern "C" __global__ void fft_256(float2 *out, const float2 *in) {
    __shared__ float2 all[4][256];
    float2 *data = all[threadIdx.y], v[4];
    int j = threadIdx.x, first = (blockIdx.x * 4 + threadIdx.y) * 256;
    for (int r = 0; r < 4; ++r) v[r] = in[first + j + r * 64];
    for (int done = 1; done < 256; done *= 4) {
        int k = j & (done - 1);
        for (int r = 1; r < 4; ++r) {
            float2 turn;
            sincospif(-0.5f * (r * k) / done, &turn.y, &turn.x);
            v[r] = product(v[r], turn);
        }
        float2 a = {v[0].x + v[2].x, v[0].y + v[2].y}, b = {v[0].x - v[2].x, v[0].y - v[2].y};
        float2 c = {v[1].x + v[3].x, v[1].y + v[3].y}, d = {v[1].y - v[3].y, v[3].x - v[1].x};
        int to = (j - k) * 4 + k;
        __syncthreads();
        data[to] = {a.x + c.x, a.y + c.y};
        data[to + done] = {b.x + d.x, b.y + d.y};
        data[to + 2 * done] = {a.x - c.x, a.y - c.y};
        data[to + 3 * done] = {b.x - d.x, b.y - d.y};
        __syncthreads();
        for (int r = 0; r < 4; ++r) v[r] = data[j + r * 64];
    }
    for (int r = 0; r < 4; ++r) out[first + j + r * 64] = v[r];
}

__device__ void quarter(unsigned &a, unsigned &b, unsigned &c, unsigned &d) {
    a += b, d = __funnelshift_l(d ^ a, d ^ a, 16);
    c += d, b = __funnelshift_l(b ^ c, b ^ c, 12);
    a += b, d = __funnelshift_l(d ^ a, d ^ a, 8);
    c += d, b = __funnelshift_l(b ^ c, b ^ c, 7);
}

extern "C" __global__ void chacha_blocks(uint4 *out, const unsigned *key) {
    unsigned state[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}, x[16];
    for (int i = 0; i < 8; ++i) state[4 + i] = key[i];
    state[12] = blockIdx.x * 128 + threadIdx.x, state[13] = 1, state[14] = 2, state[15] = 3;
    for (int i = 0; i < 16; ++i) x[i] = state[i];
    for (int round = 0; round < 10; ++round) {
        for (int i = 0; i < 4; ++i) quarter(x[i], x[4 + i], x[8 + i], x[12 + i]);
        for (int i = 0; i < 4; ++i) quarter(x[i], x[4 + (i + 1) % 4], x[8 + (i + 2) % 4], x[12 + (i + 3) % 4]);
    }
    for (int i = 0; i < 4; ++i)
        out[state[12] * 4 + i] = make_uint4(x[4 * i] + state[4 * i], x[4 * i + 1] + state[4 * i + 1],
            x[4 * i + 2] + state[4 * i + 2], x[4 * i + 3] + state[4 * i + 3]);
}

// Paths of a price, normal numbers by Box and Muller from Philox words.
extern "C" __global__ void option_paths(float *out, int steps) {
    __shared__ float parts[4];
    unsigned path = blockIdx.x * 128 + threadIdx.x;
    float price = 0;
    for (int step = 0; step < steps; ++step) {
        unsigned a = path, b = step, c = 0, d = 0, k0 = 2026, k1 = 7;
        for (int round = 0; round < 10; ++round) {
            unsigned high0 = __umulhi(0xd2511f53u, a), low0 = 0xd2511f53u * a;
            unsigned high1 = __umulhi(0xcd9e8d57u, c), low1 = 0xcd9e8d57u * c;
            a = high1 ^ b ^ k0, b = low1, c = high0 ^ d ^ k1, d = low0;
            k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
        }
        float u = (a >> 8) * 5.9604645e-8f + 2.9802322e-8f, turn = (b >> 8) * 5.9604645e-8f;
        price += 0.02f * sqrtf(-2.0f * __logf(u)) * __cosf(6.2831853f * turn) - 0.0002f;
    }
    float whole = block_sum(fmaxf(__expf(price) - 1.0f, 0.0f), parts);
    if (threadIdx.x == 0) out[blockIdx.x] = whole / 128;
}

extern "C" __global__ void nearest_centre(int *out, const float4 *points, const float4 *centres, int count) {
    __shared__ float4 own[64];
    if (threadIdx.x < count) own[threadIdx.x] = centres[threadIdx.x];
    __syncthreads();
    float4 me = points[blockIdx.x * 128 + threadIdx.x];
    float best = INFINITY;
    int place = 0;
    for (int k = 0; k < count; ++k) {
        float dx = me.x - own[k].x, dy = me.y - own[k].y, dz = me.z - own[k].z, dw = me.w - own[k].w;
        float far = dx * dx + dy * dy + dz * dz + dw * dw;
        if (far < best) best = far, place = k;
    }
    out[blockIdx.x * 128 + threadIdx.x] = place;
}

// Tiles of 4 KiB by bulk copies into a ring of four, and out again by bulk copies.
extern "C" __global__ void __launch_bounds__(128) bulk_ring(float *out, const float *in, int tiles) {
    namespace ptx = cuda::ptx;
    using barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ __align__(128) float ring[4][1024], done[2][1024];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier full[4];
    int t = threadIdx.x;
    if (t < 4) init(&full[t], 1);
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    auto fetch = [&](int i) {
        if (t == 0 && i < tiles) {
            cuda::device::memcpy_async_tx(ring[i % 4], in + (blockIdx.x + i * gridDim.x) * 1024, cuda::aligned_size_t<16>(4096), full[i % 4]);
            (void)cuda::device::barrier_arrive_tx(full[i % 4], 1, 4096);
        }
    };
    for (int i = 0; i < 3; ++i) fetch(i);
    for (int i = 0; i < tiles; ++i) {
        fetch(i + 3);
        full[i % 4].wait_parity(i / 4 % 2);
        if (t == 0) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<1>());
        __syncthreads();
        for (int k = t; k < 1024; k += 128) done[i % 2][k] = ring[i % 4][k] * 1.5f + 1.0f;
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        if (t == 0) {
            ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + (blockIdx.x + i * gridDim.x) * 1024, done[i % 2], 4096);
            ptx::cp_async_bulk_commit_group();
        }
    }
    if (t == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}
