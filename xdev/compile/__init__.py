"""Compilers: a scalar Python function becomes a CPU loop or a CUDA kernel.

On CUDA :mod:`~xdev.compile.numba_cuda` turns it into LTO-IR,
:mod:`~xdev.compile.cubins` links that with a template of this package to a cubin,
and :mod:`~xdev.compile.launch` runs it. All but the last work without a GPU.
:mod:`~xdev.compile.loops` loads the CPU's loops and makes ufuncs of them. All are kept
on disk, each under a name of the function that :mod:`~xdev.compile.digests` makes.
"""
