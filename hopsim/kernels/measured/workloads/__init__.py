"""CUDA C++ kernels without a GEMM's schedule, in sets that are recorded together."""
