#include <cassert>
#include <cstdio>
typedef float (*op)(float, float);
__device__ __noinline__ float plus_op(float a, float b) { return a + b; }
__device__ __noinline__ float times_op(float a, float b) { return a * b; }
__device__ op table[2] = {plus_op, times_op};
__constant__ float weights[4] = {1.5f, -2.25f, 1e-3f, 3e38f};
__constant__ double wide[2] = {3.14159265358979, -0.0};
struct Pair { int a; float b; const int *p; };
__device__ int cell = 7;
__device__ Pair pairs[2] = {{1, 2.0f, &cell}, {3, 4.5f, &cell + 1}};
__device__ __noinline__ Pair swap(Pair p) { Pair q; q.a = (int)p.b; q.b = (float)p.a; q.p = p.p; return q; }
__device__ __noinline__ int pick(int k, int x) {
  switch (k) {
    case 0: return x * 3; case 1: return x ^ 0x55; case 2: return x / 7; case 3: return __popc(x);
    case 4: return x << 3; case 5: return x - 77; case 6: return __clz(x); case 7: return x % 13;
    case 8: return -x; case 9: return x | 99; default: return 0;
  }
}
extern "C" __global__ void calls(float *out, const int *keys, int n, Pair in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(n > 0);
  if (i < n) {
    float v = table[keys[i] & 1](weights[i & 3], (float)wide[i & 1]);
    Pair s = swap(in); s.a += pairs[i & 1].a + *pairs[1].p;
    out[i] = v + pick(keys[i], i) + s.a * s.b;
    if (i == 0) printf("%d %f\n", s.a, v);
  }
}
