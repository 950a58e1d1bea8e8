"""Vectorized mathematics on the CPU: elementary functions in LLVM's SIMD instructions.

``lanes`` writes arithmetic on several elements at once; the functions are in
``trigonometric``, ``exponential``, ``logarithmic``, ``powers``, ``error_function``,
``remainder``, their polynomials in ``coefficients``; ``definitions`` makes LLVM
functions of them, and ``linking`` puts these in the place of the C library's.
"""
