// Lets host code of libraries run where there is no GPU: tensor maps are told instead of encoded, and addresses of arrays
// are numbers that can be found again in the parameters.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

static int maps_made = 0;

static void list(char const* name, int count, cuuint64_t const* values) {
  printf(", \"%s\": [", name);
  for (int i = 0; i < count; ++i) printf("%s%llu", i ? ", " : "", static_cast<unsigned long long>(values[i]));
  printf("]");
}

static void list(char const* name, int count, cuuint32_t const* values) {
  printf(", \"%s\": [", name);
  for (int i = 0; i < count; ++i) printf("%s%u", i ? ", " : "", values[i]);
  printf("]");
}

// The 128 bytes of a map become its number, eight bytes each time.
extern "C" CUresult CUDAAPI cuTensorMapEncodeTiled(
    CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address, cuuint64_t const* dims,
    cuuint64_t const* strides, cuuint32_t const* box, cuuint32_t const* steps, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  for (int i = 0; i < 16; ++i) {
    uint64_t word = 0x7EA50A9C00000000ull + maps_made;
    memcpy(reinterpret_cast<char*>(map) + 8 * i, &word, 8);
  }
  printf("MAP {\"id\": %d, \"type\": %d, \"addr\": %llu, \"il\": %d, \"swizzle\": %d, \"l2\": %d, \"oob\": %d", maps_made++,
         int(type), reinterpret_cast<unsigned long long>(address), int(interleave), int(swizzle), int(promotion), int(fill));
  list("dims", rank, dims);
  list("strides", rank - 1, strides);
  list("box", rank, box);
  list("es", rank, steps);
  printf("}\n");
  return CUDA_SUCCESS;
}

extern "C" CUresult CUDAAPI cuGetErrorString(CUresult, char const** text) { *text = ""; return CUDA_SUCCESS; }
extern "C" CUresult CUDAAPI cuGetErrorName(CUresult, char const** text) { *text = ""; return CUDA_SUCCESS; }

// The address of array `number`.
static inline void* place_of(int number) { return reinterpret_cast<void*>((0x5A0ull + number) << 36); }

static inline void tell_start(dim3 grid, dim3 block, dim3 cluster, size_t shared_bytes, size_t workspace_bytes) {
  printf("LAUNCH {\"grid\": [%u, %u, %u], \"block\": %u, \"cluster\": [%u, %u, %u], \"shared_bytes\": %zu, \"workspace\": %zu, "
         "\"arguments\": [", grid.x, grid.y, grid.z, block.x * block.y * block.z, cluster.x, cluster.y, cluster.z, shared_bytes,
         workspace_bytes);
}

static inline void tell_argument(void const* start, size_t size, bool is_first) {
  printf("%s\"", is_first ? "" : ", ");
  for (size_t i = 0; i < size; ++i) printf("%02x", static_cast<unsigned char const*>(start)[i]);
  printf("\"");
}

// What a kernel would be launched with.
template <class... Arguments>
void tell(dim3 grid, dim3 block, dim3 cluster, size_t shared_bytes, size_t workspace_bytes, Arguments const&... arguments) {
  tell_start(grid, block, cluster, shared_bytes, workspace_bytes);
  bool is_first = true;
  ((tell_argument(&arguments, sizeof(arguments), is_first), is_first = false), ...);
  printf("]}\n");
}
