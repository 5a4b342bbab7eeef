"""Convolution as an implicit GEMM: activations through an im2col map, filters through a tiled one."""
