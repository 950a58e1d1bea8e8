"""``@kernel``: a function of indices and arrays, in threads or on a grid of CUDA's."""

from xdev.ufunc.kernels.decorator import Kernel, kernel

__all__ = ["Kernel", "kernel"]
