// CUDA's integer intrinsics on words, halves and bytes: DPX and the SIMD ones. Each ROW is one row of the result.

#define ROW(...) out[row++ * 64 + threadIdx.x] = (unsigned)(__VA_ARGS__);
#define OPERANDS                                                                                  \
    unsigned a = in[threadIdx.x], b = in[64 + threadIdx.x], c = in[128 + threadIdx.x];            \
    int x = a, y = b, z = c, row = 0;                                                             \
    bool p = false, q = false;

extern "C" __global__ void dpx(const unsigned *in, unsigned *out) {
    OPERANDS
    ROW(__vimax3_s32(x, y, z)) ROW(__vimin3_s32(x, y, z)) ROW(__vimax3_u32(a, b, c)) ROW(__vimin3_u32(a, b, c))
    ROW(__vimax3_s32_relu(x, y, z)) ROW(__vimin3_s32_relu(x, y, z)) ROW(__vimax_s32_relu(x, y)) ROW(__vimin_s32_relu(x, y))
    ROW(__vimax3_s16x2(a, b, c)) ROW(__vimin3_s16x2(a, b, c)) ROW(__vimax3_u16x2(a, b, c)) ROW(__vimin3_u16x2(a, b, c))
    ROW(__vimax3_s16x2_relu(a, b, c)) ROW(__vimin3_s16x2_relu(a, b, c))
    ROW(__vimax_s16x2_relu(a, b)) ROW(__vimin_s16x2_relu(a, b))
    ROW(__viaddmax_s32(x, y, z)) ROW(__viaddmin_s32(x, y, z)) ROW(__viaddmax_u32(a, b, c)) ROW(__viaddmin_u32(a, b, c))
    ROW(__viaddmax_s32_relu(x, y, z)) ROW(__viaddmin_s32_relu(x, y, z))
    ROW(__viaddmax_s16x2(a, b, c)) ROW(__viaddmin_s16x2(a, b, c))
    ROW(__viaddmax_u16x2(a, b, c)) ROW(__viaddmin_u16x2(a, b, c))
    ROW(__viaddmax_s16x2_relu(a, b, c)) ROW(__viaddmin_s16x2_relu(a, b, c))
}

// The lowest bits of the second row say which operand was taken.
extern "C" __global__ void dpx_predicates(const unsigned *in, unsigned *out) {
    OPERANDS
    ROW(__vibmax_s32(x, y, &p)) ROW(p)
    ROW(__vibmin_s32(x, y, &p)) ROW(p)
    ROW(__vibmax_u32(a, b, &p)) ROW(p)
    ROW(__vibmin_u32(a, b, &p)) ROW(p)
    ROW(__vibmax_s16x2(a, b, &p, &q)) ROW(q | p << 1)
    ROW(__vibmin_s16x2(a, b, &p, &q)) ROW(q | p << 1)
    ROW(__vibmax_u16x2(a, b, &p, &q)) ROW(q | p << 1)
    ROW(__vibmin_u16x2(a, b, &p, &q)) ROW(q | p << 1)
}

#define PARTS(n)                                                                                  \
    ROW(__vabs##n(a)) ROW(__vabsss##n(a)) ROW(__vneg##n(a)) ROW(__vnegss##n(a))                   \
    ROW(__vabsdiffs##n(a, b)) ROW(__vabsdiffu##n(a, b)) ROW(__vsads##n(a, b)) ROW(__vsadu##n(a, b)) \
    ROW(__vadd##n(a, b)) ROW(__vaddss##n(a, b)) ROW(__vaddus##n(a, b))                            \
    ROW(__vsub##n(a, b)) ROW(__vsubss##n(a, b)) ROW(__vsubus##n(a, b))                            \
    ROW(__vavgs##n(a, b)) ROW(__vavgu##n(a, b)) ROW(__vhaddu##n(a, b))                            \
    ROW(__vmaxs##n(a, b)) ROW(__vmaxu##n(a, b)) ROW(__vmins##n(a, b)) ROW(__vminu##n(a, b))       \
    ROW(__vcmpeq##n(a, b)) ROW(__vcmpne##n(a, b)) ROW(__vcmpgts##n(a, b)) ROW(__vcmpgtu##n(a, b)) \
    ROW(__vcmpges##n(a, b)) ROW(__vcmpgeu##n(a, b)) ROW(__vcmplts##n(a, b)) ROW(__vcmpltu##n(a, b)) \
    ROW(__vcmples##n(a, b)) ROW(__vcmpleu##n(a, b))                                               \
    ROW(__vseteq##n(a, b)) ROW(__vsetne##n(a, b)) ROW(__vsetgts##n(a, b)) ROW(__vsetgeu##n(a, b)) \
    ROW(__vsetlts##n(a, b)) ROW(__vsetleu##n(a, b))

extern "C" __global__ void halves(const unsigned *in, unsigned *out) {
    OPERANDS
    PARTS(2)
}

extern "C" __global__ void bytes(const unsigned *in, unsigned *out) {
    OPERANDS
    PARTS(4)
}

// Sixteen bytes at once: atomicCAS and atomicExch of a structure.
struct alignas(16) Pair {
    long long low, high;
};

extern "C" __global__ void pairs(Pair *cell, Pair *seen) {
    Pair expected{0, 0}, found;
    while (true) {
        found = atomicCAS(cell, expected, Pair{expected.low + 1, expected.high - 3});
        if (found.low == expected.low && found.high == expected.high) break;
        expected = found;
    }
    seen[threadIdx.x] = found;
    __syncthreads();
    if (threadIdx.x == 0) seen[blockDim.x] = atomicExch(cell, Pair{7, 9});
}
