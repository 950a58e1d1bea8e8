"""Debug mode: memory under guard, and damage told where it is found.

:mod:`~xdev.memory.debugging.guards` is a source around another one, whose memory the
:mod:`~xdev.memory.debugging.cells` of its kind fill and compare.
"""
