"""Hopper kernels as PTX builders; `choose` picks a GEMM's configuration."""

from hopsim.kernels.gemm.choice import Configuration, choose

__all__ = ["Configuration", "choose"]
