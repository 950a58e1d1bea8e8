"""Compilers: a scalar Python function becomes a CPU loop or a CUDA kernel.

On CUDA, :mod:`~xdev.compile.numba_cuda` turns the function into LTO-IR,
:mod:`~xdev.compile.elementwise` links it with a template of this package to a cubin,
:mod:`~xdev.compile.cubins` keeps cubins on disk, and :mod:`~xdev.compile.launch` runs
them. All but the last work without a GPU.
"""
