"""Compilers: a scalar Python function becomes a CPU loop or a CUDA kernel.

On CUDA :mod:`~xdev.compile.compilers` turns it into LTO-IR,
:mod:`~xdev.compile.cubins` links that with a template of this package to a cubin,
and :mod:`~xdev.compile.launch` runs it. All but the last work without a GPU.
:mod:`~xdev.compile.loops` makes ufuncs of the CPU's loops. All code is kept on disk
under a name of its function, and found again, by :mod:`~xdev.compile.digests`.
"""
