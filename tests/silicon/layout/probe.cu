// Kernels that make an H100 tell how it lays data out; driven by record.py.
#include <cstdint>
#include <cuda.h>

extern __shared__ __align__(1024) uint8_t smem[];

__device__ uint32_t shared_addr(const void *p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// Load one box and dump the shared memory around it; status is 1 when the barrier saw expected_bytes.
extern "C" __global__ void tma_load(const CUtensorMap *map, int rank, const int *coords, uint32_t smem_offset,
                                    uint32_t expected_bytes, uint32_t dump_bytes, uint8_t *out, int *status) {
    __shared__ __align__(8) uint64_t barrier;
    for (uint32_t i = threadIdx.x; i < dump_bytes; i += blockDim.x) smem[i] = 0xA5;
    uint32_t bar = shared_addr(&barrier);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar));
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t dst = shared_addr(smem) + smem_offset;
        int c0 = coords[0], c1 = coords[1], c2 = coords[2], c3 = coords[3], c4 = coords[4];
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(expected_bytes));
#define LOAD(D, C, ...)                                                                                            \
    asm volatile("cp.async.bulk.tensor." #D "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"           \
                 " [%0], [%1, " C "], [%2];" ::"r"(dst), "l"(map), "r"(bar), __VA_ARGS__ : "memory")
        if (rank == 1) LOAD(1, "{%3}", "r"(c0));
        if (rank == 2) LOAD(2, "{%3, %4}", "r"(c0), "r"(c1));
        if (rank == 3) LOAD(3, "{%3, %4, %5}", "r"(c0), "r"(c1), "r"(c2));
        if (rank == 4) LOAD(4, "{%3, %4, %5, %6}", "r"(c0), "r"(c1), "r"(c2), "r"(c3));
        if (rank == 5) LOAD(5, "{%3, %4, %5, %6, %7}", "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4));
        int done = 0;
        long long begin = clock64();
        while (!done && clock64() - begin < 20000000)
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }"
                         : "=r"(done) : "r"(bar) : "memory");
        *status = done;
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < dump_bytes; i += blockDim.x) out[i] = smem[i];
}

// Store (op 0) or reduce (1 add, 2 min, 3 max, 4 inc, 5 dec, 6 and, 7 or, 8 xor) one box.
extern "C" __global__ void tma_store(const CUtensorMap *map, int rank, const int *coords, uint32_t smem_offset,
                                     int op, uint32_t bytes, const uint8_t *in) {
    for (uint32_t i = threadIdx.x; i < bytes; i += blockDim.x) smem[i] = in[i];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x != 0) return;
    uint32_t src = shared_addr(smem) + smem_offset;
    int c0 = coords[0], c1 = coords[1], c2 = coords[2], c3 = coords[3], c4 = coords[4];
#define STORE(NAME, D, C, ...)                                                                                     \
    asm volatile("cp" NAME " [%0, " C "], [%1];" ::"l"(map), "r"(src), __VA_ARGS__ : "memory")
#define PLAIN(D) ".async.bulk.tensor." #D "d.global.shared::cta.tile.bulk_group"
    if (op == 0) {
        if (rank == 1) STORE(PLAIN(1), 1, "{%2}", "r"(c0));
        if (rank == 2) STORE(PLAIN(2), 2, "{%2, %3}", "r"(c0), "r"(c1));
        if (rank == 3) STORE(PLAIN(3), 3, "{%2, %3, %4}", "r"(c0), "r"(c1), "r"(c2));
        if (rank == 4) STORE(PLAIN(4), 4, "{%2, %3, %4, %5}", "r"(c0), "r"(c1), "r"(c2), "r"(c3));
        if (rank == 5) STORE(PLAIN(5), 5, "{%2, %3, %4, %5, %6}", "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4));
    } else {
#define REDUCE(OP) STORE(".reduce.async.bulk.tensor.2d.global.shared::cta." OP ".tile.bulk_group", 2, "{%2, %3}", "r"(c0), "r"(c1))
        if (op == 1) REDUCE("add");
        if (op == 2) REDUCE("min");
        if (op == 3) REDUCE("max");
        if (op == 4) REDUCE("inc");
        if (op == 5) REDUCE("dec");
        if (op == 6) REDUCE("and");
        if (op == 7) REDUCE("or");
        if (op == 8) REDUCE("xor");
    }
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}

__device__ void fill_with_word_indices(int pass, uint32_t words) {
    // f16 holds integers up to 2048 exactly, so an index travels as two values of ten bits.
    for (uint32_t i = threadIdx.x; i < words; i += blockDim.x) {
        float value = static_cast<float>((i >> (10 * pass)) & 1023);
        asm volatile("{ .reg .b16 h; cvt.rn.f16.f32 h, %0; st.shared.b16 [%1], h; }"
                     ::"f"(value), "r"(shared_addr(smem) + 2 * i) : "memory");
    }
}

// D = identity(16) * B for n = 64: out[pass][k][n] is the word of shared memory that B(k, n) came from.
template <int TRANS> __device__ void b_words(uint64_t desc, float *out) {
    float d[32];
    for (int pass = 0; pass < 2; ++pass) {
        fill_with_word_indices(pass, 32768);
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncthreads();
        int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4, col = lane % 4 * 2;
        uint32_t a[4];
        for (int r = 0; r < 4; ++r) {
            int i = row + 8 * (r % 2), k = col + 8 * (r / 2);
            a[r] = (i == k ? 0x3C00u : 0u) | (i == k + 1 ? 0x3C000000u : 0u);
        }
        uint64_t base = shared_addr(smem) >> 4;
        for (int i = 0; i < 32; ++i) d[i] = 0;
        asm volatile(
            "{ wgmma.fence.sync.aligned;\n"
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
            "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,"
            "%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, 0, 1, 1, %37;\n"
            "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; }"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
              "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
              "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
              "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(desc + base), "n"(TRANS)
            : "memory");
        for (int i = 0; i < 32; ++i) {
            int r = row + 8 * (i / 2 % 2), c = i / 4 * 8 + col + i % 2;
            if (r < 16) out[(pass * 16 + r) * 64 + c] = d[i];
        }
        __syncthreads();
    }
}
extern "C" __global__ void wgmma_b(uint64_t desc, int trans, float *out) {
    if (trans) b_words<1>(desc, out);
    else b_words<0>(desc, out);
}

// D = A * identity for n = 16: out[pass][m][k] is the word of shared memory that A(m, k) came from.
template <int TRANS> __device__ void a_words(uint64_t desc, float *out) {
    float d[8];
    for (int pass = 0; pass < 2; ++pass) {
        fill_with_word_indices(pass, 32768);
        for (int i = threadIdx.x; i < 256; i += blockDim.x) {  // B(n, k) at chunk k/8, row n, no swizzle
            int n = i / 16, k = i % 16;
            *reinterpret_cast<uint16_t *>(smem + 65536 + k / 8 * 256 + n * 16 + k % 8 * 2) = n == k ? 0x3C00 : 0;
        }
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncthreads();
        uint64_t base = shared_addr(smem) >> 4;
        uint64_t identity = (base + 4096) | (uint64_t)(256 >> 4) << 16 | (uint64_t)(128 >> 4) << 32;
        for (int i = 0; i < 8; ++i) d[i] = 0;
        asm volatile("{ wgmma.fence.sync.aligned;\n"
                     "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, 0, 1, 1, %10, 0;\n"
                     "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; }"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
                     : "l"(desc + base), "l"(identity), "n"(TRANS)
                     : "memory");
        int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4, col = lane % 4 * 2;
        for (int i = 0; i < 8; ++i) out[(pass * 64 + row + 8 * (i / 2 % 2)) * 16 + i / 4 * 8 + col + i % 2] = d[i];
        __syncthreads();
    }
}
extern "C" __global__ void wgmma_a(uint64_t desc, int trans, float *out) {
    if (trans) a_words<1>(desc, out);
    else a_words<0>(desc, out);
}

// Edit one field of a map in shared memory; field numbers are those of FIELDS in record.py.
extern "C" __global__ void replace(const uint8_t *in, int field, int ordinal, uint64_t value, uint8_t *out) {
    smem[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t at = shared_addr(smem), v32 = static_cast<uint32_t>(value);
#define PUT32(F) asm volatile("tensormap.replace.tile." F ".shared::cta.b1024.b32 [%0], %1;" ::"r"(at), "r"(v32) : "memory")
#define PUT64(F) asm volatile("tensormap.replace.tile." F ".shared::cta.b1024.b64 [%0], %1;" ::"r"(at), "l"(value) : "memory")
#define ORD32(F, O) if (ordinal == O) asm volatile("tensormap.replace.tile." F ".shared::cta.b1024.b32 [%0], " #O ", %1;" ::"r"(at), "r"(v32) : "memory")
#define ORD64(F, O) if (ordinal == O) asm volatile("tensormap.replace.tile." F ".shared::cta.b1024.b64 [%0], " #O ", %1;" ::"r"(at), "l"(value) : "memory")
#define IMM(F, V) if (value == V) asm volatile("tensormap.replace.tile." F ".shared::cta.b1024.b32 [%0], " #V ";" ::"r"(at) : "memory")
#define ALL32(F) ORD32(F, 0); ORD32(F, 1); ORD32(F, 2); ORD32(F, 3); ORD32(F, 4)
        if (field == 0) PUT64("global_address");
        if (field == 1) PUT32("rank");
        if (field == 2) { ALL32("box_dim"); }
        if (field == 3) { ALL32("global_dim"); }
        if (field == 4) { ORD64("global_stride", 0); ORD64("global_stride", 1); ORD64("global_stride", 2); ORD64("global_stride", 3); }
        if (field == 5) { ALL32("element_stride"); }
        if (field == 6) { IMM("elemtype", 0); IMM("elemtype", 1); IMM("elemtype", 2); IMM("elemtype", 3); IMM("elemtype", 4);
                          IMM("elemtype", 5); IMM("elemtype", 6); IMM("elemtype", 7); IMM("elemtype", 8); IMM("elemtype", 9);
                          IMM("elemtype", 10); IMM("elemtype", 11); IMM("elemtype", 12); }
        if (field == 7) { IMM("interleave_layout", 0); IMM("interleave_layout", 1); IMM("interleave_layout", 2); }
        if (field == 8) { IMM("swizzle_mode", 0); IMM("swizzle_mode", 1); IMM("swizzle_mode", 2); IMM("swizzle_mode", 3); }
        if (field == 9) { IMM("fill_mode", 0); IMM("fill_mode", 1); }
    }
    __syncthreads();
    out[threadIdx.x] = smem[threadIdx.x];
}
