#include <cassert>
#include <cstdio>
struct Item { int key; double weight; char tag[3]; short rest; };
struct Node { Node *next; int value; };

__device__ __noinline__ Item scaled(Item one, double by) { one.weight *= by; one.key += one.tag[1]; return one; }
__device__ __noinline__ void swap(Item *a, Item *b) { Item c = *a; *a = *b; *b = c; }
__device__ __noinline__ char nth(Item one, int n) { return one.tag[n]; }

extern "C" __global__ void items(Item *x, int *tags) {
  int t = threadIdx.x;
  x[t] = scaled(x[t], t & 1 ? 2.5 : -1.0);
  __syncwarp();
  if (t % 4 == 0) swap(&x[t], &x[t + 1]);
  __syncwarp();
  tags[t] = nth(x[t], t % 3);
}

template <int K> __device__ int step(int x) { return x * K + K; }
__device__ int (*const steps[4])(int) = {step<2>, step<3>, step<5>, step<7>};
extern "C" __global__ void pointers(const int *which, int *x) {
  int t = threadIdx.x;
  x[t] = steps[which[t] & 3](x[t]) + (which[t] & 4 ? step<2> : step<7>)(t);
}

extern "C" __global__ void sines(double *x, double *s, double *c) {
  int t = threadIdx.x;
  s[t] = sin(x[t]);
  c[t] = cos(x[t]);
}

extern "C" __global__ void printing(const char *words, double d) {
  int t = threadIdx.x;
  if (t == 3 || t == 35) {
    int n = printf("%d|%5u|%-6x|%#X|%o|%c|%s|%08.3f|%+e|%g|%a\n", -t, t, t * 100, 0xBEEF + t, t, 'a' + t % 26, "text", d, d, d, d);
    printf("%lld %llu %hd %5.3d %*d %.2f %% %p %.2s|%10s|%-5s|%z\n", -5000000000ll, 18000000000000000000ull, (short)70000, 7, 6, t, d,
           (void *)0x1234, words, words, words);
    printf("n %d\n", n);
  }
}

extern "C" __global__ void asserting(const int *x, int n) { assert(x[threadIdx.x] < n && "too large"); }

extern "C" __global__ void lists(int *sums, int n) {
  int t = threadIdx.x;
  Node *head = nullptr;
  for (int i = 0; i <= t % 5; i++) {
    Node *one = (Node *)malloc(sizeof(Node));
    one->next = head;
    one->value = i * n + t;
    head = one;
  }
  int sum = 0;
  while (head) {
    Node *next = head->next;
    sum += head->value;
    free(head);
    head = next;
  }
  sums[t] = sum;
}

extern "C" __global__ void exhausting(unsigned long long *found, unsigned long long bytes) {
  char *p = (char *)malloc(bytes);
  found[threadIdx.x] = p != nullptr;
  if (p) free(p);
}
