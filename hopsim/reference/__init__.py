"""Independent reference results: what an H100 would compute, by integer arithmetic and nothing shared."""

from hopsim.reference.gemm import gemm, gemm_f64

__all__ = ["gemm", "gemm_f64"]
