"""Compilers: a scalar Python function becomes a CPU loop or a CUDA kernel.

On CUDA, an adapter that :mod:`~xdev.compile.toolchain` chooses turns it into LTO-IR,
:mod:`~xdev.compile.elementwise` links it with a template of this package to a cubin,
:mod:`~xdev.compile.cubins` keeps cubins on disk, and :mod:`~xdev.compile.launch` runs
them. All but the last work without a GPU. :mod:`~xdev.compile.loops` keeps the CPU's
loops, :mod:`~xdev.compile.typings` what was inferred, each under a name of the function
that :mod:`~xdev.compile.digests` makes.
"""
