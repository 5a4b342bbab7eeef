// What C++ has beside arithmetic: objects with virtual functions, member pointers, unions and bit fields, packed structures that
// hold addresses, addresses of addresses, integers of 128 bits, variants, atomics of every type.
#include <cuda/std/variant>
#include <cuda/std/array>
#include <cuda_fp16.h>
#include <cuda_bf16.h>

struct Shape {
    __device__ virtual ~Shape() {}
    __device__ virtual float area() const = 0;
    __device__ virtual int sides() const { return 4; }
};
struct Square : Shape {
    float a;
    __device__ Square(float a) : a(a) {}
    __device__ float area() const override { return a * a; }
};
struct Triangle : Square {
    float h;
    __device__ Triangle(float a, float h) : Square(a), h(h) {}
    __device__ float area() const override { return a * h / 2; }
    __device__ int sides() const override { return 3; }
};

extern "C" __global__ void shapes(const float* in, float* out) {
    int t = threadIdx.x;
    Shape* shape = t % 3 ? (Shape*)new Triangle(in[t], 6.f) : new Square(in[t]);
    Square here(2.f);
    Triangle there(in[t], 1.f);
    const Shape* other = t & 1 ? (const Shape*)&there : &here;
    out[t] = shape->area() + shape->sides() * 100 + other->area() + other->sides() * 1000;
    delete shape;
}

struct Counter {
    int base;
    __device__ int plus(int x) const { return base + x; }
    __device__ int times(int x) const { return base * x; }
};
union Word {
    float f;
    unsigned char bytes[4];
    unsigned u;
};
struct Fields {
    unsigned a : 3;
    int b : 7;
    unsigned long long c : 40;
    unsigned d : 14;
};

extern "C" __global__ void members(const int* in, int* out) {
    int t = threadIdx.x;
    Counter counter{in[t]};
    int (Counter::*call)(int) const = t & 1 ? &Counter::plus : &Counter::times;
    Word word;
    word.f = in[t] * 0.5f;
    word.bytes[t & 3] ^= 0x55;
    Fields fields{};
    fields.a = t;
    fields.b = in[t];
    fields.c = (unsigned long long)in[t] * 0x123456789ull;
    fields.d = fields.c >> 3;
    out[4 * t] = (counter.*call)(t);
    out[4 * t + 1] = word.u;
    out[4 * t + 2] = fields.a + fields.b;
    out[4 * t + 3] = (int)fields.c + fields.d;
}

__device__ int base[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ int* middle = base + 3;
__device__ int** top = &middle;
struct __attribute__((packed)) Packed {
    char c;
    int* p;
    short s;
};
__device__ Packed packed[2] = {{7, base + 2, 3}, {9, base, -1}};
__constant__ const char* words[] = {"alpha", "beta", "gamma"};

extern "C" __global__ void addresses(int* out) {
    int t = threadIdx.x;
    const Packed& mine = packed[t & 1];
    out[t] = (*top)[t & 3] * 1000000 + mine.p[t & 3] * 10000 + (mine.c + mine.s) * 200 + words[t % 3][t & 3];
}

typedef unsigned __int128 u128;

extern "C" __global__ void wide(const ulonglong2* in, ulonglong2* out) {
    int t = threadIdx.x;
    u128 a = (u128)in[t].y << 64 | in[t].x, b = ((u128)in[t].x << 17 ^ in[t].y) | 1;
    u128 made[5] = {a * b, a / (b >> 3 * t | 1), a % (b >> 70 | 3), a >> (t * 4), (u128)((__int128)a / -(__int128)(b >> 65 | 1))};
    for (int i = 0; i < 5; i++) out[5 * t + i] = make_ulonglong2((unsigned long long)made[i], (unsigned long long)(made[i] >> 64));
}

using Variant = cuda::std::variant<int, float, cuda::std::array<int, 4>>;

extern "C" __global__ void variants(const int* in, int* out) {
    int t = threadIdx.x;
    Variant v = t % 3 == 0 ? Variant(in[t]) : t % 3 == 1 ? Variant(1.5f * t) : Variant(cuda::std::array<int, 4>{1, 2, 3, t});
    struct Visit {
        __device__ int operator()(int x) const { return x + 1; }
        __device__ int operator()(float x) const { return (int)(x * 2); }
        __device__ int operator()(const cuda::std::array<int, 4>& x) const { return x[3] + x[1]; }
    };
    out[t] = cuda::std::visit(Visit{}, v);
}

struct Cells {
    double d;
    unsigned long long q, most;
    long long least;
    float f;
    __half2 h;
    __nv_bfloat162 b;
    __half one_half;
    __nv_bfloat16 one_bfloat;
    unsigned ands, ors, xors, up, down;
    unsigned short small;
    alignas(16) float4 v;
};

extern "C" __global__ void atomics(Cells* c, int* seen) {
    int t = threadIdx.x;
    atomicAdd(&c->d, 0.25 * t);
    atomicAdd(&c->q, 1ull << t);
    atomicMax(&c->most, 0xffffffffffull * t);
    atomicMin(&c->least, -(long long)t);
    atomicAdd(&c->f, 0.5f);
    atomicAdd(&c->h, __half2(1, t & 1));
    atomicAdd(&c->b, __nv_bfloat162(1, t & 1));
    atomicAdd(&c->one_half, __half(1));
    atomicAdd(&c->one_bfloat, __nv_bfloat16(1));
    atomicAnd(&c->ands, ~(1u << t));
    atomicOr(&c->ors, 1u << t);
    atomicXor(&c->xors, 0x80000000u >> t);
    seen[t] = atomicInc(&c->up, 6);
    atomicDec(&c->down, 5);
    atomicAdd(&c->v, make_float4(1, 2, t, 0.5f));
    unsigned short old = 0, want;
    do {
        want = old;
        old = atomicCAS(&c->small, want, (unsigned short)(want + 1));
    } while (old != want);
}
