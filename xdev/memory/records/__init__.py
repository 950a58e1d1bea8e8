"""Records: who made the live blocks, and what happened to the pools.

:mod:`~xdev.memory.records.tracking` and :mod:`~xdev.memory.records.history` listen to
the pools' events and keep them raw; the others make text, other tools' formats and
pictures of them.
"""
