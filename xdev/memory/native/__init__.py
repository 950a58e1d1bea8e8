"""The pool's hot path in machine code, for libraries that allocate by C functions.

:mod:`~xdev.memory.native.core` is the class hit on one array of words
(:mod:`~xdev.memory.native.layout`), :mod:`~xdev.memory.native.entries` what CuPy, NumPy
and PyTorch call, :mod:`~xdev.memory.native.machine` compiles and loads both, and
:mod:`~xdev.memory.native.front` stands between a core and a pool's stock.
:mod:`~xdev.memory.native.objects` makes CuPy's pointers and arrays, once
:mod:`~xdev.memory.native.cupy` has seen that they are as it knows them.
"""
