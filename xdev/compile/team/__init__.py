"""The process's threads for machine code: they sleep, wait and work without Python.

``stations`` is what a thread does, ``pieces`` how a range is shared, both as plain
functions that ``plain`` compiles; ``threads`` starts the threads.
"""
