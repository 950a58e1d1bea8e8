"""Fifty leaks planted among what does not leak: all are named, and nothing else."""

import itertools
import re
import runpy
from operator import attrgetter

import xdev
from xdev import memory

PLANTED = 50
HEAD = """\
import asyncio, contextvars, functools, threading
import numpy as np
import xdev
from xdev import memory

KEPT = []

@xdev.vectorize
def add(a, b):
    return a + b

def deep(levels, make):
    return deep(levels - 1, make) if levels else make()

def through(make):
    @functools.wraps(make)
    def wrapped(*args):
        xdev.empty(33)
        return make(*args)
    return wrapped

def in_thread(work):
    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
    thread.start()
    thread.join()
"""
#: A line that is marked keeps blocks; N is another number each time.
SNIPPETS = (
    "KEPT.append(xdev.empty(N))  # leak",
    "for k in range(3): KEPT.append(xdev.full(N, k))  # leak",
    "KEPT.extend(xdev.zeros(N) for _ in range(3))  # leak",
    "KEPT.append([xdev.ones(N + k) for k in range(2)])  # leak",
    "KEPT += map(xdev.empty, [N, N + 1])  # leak",
    "KEPT.append(xdev.zeros((N, 4)).T[::2])  # leak",
    "KEPT.append(add(np.ones(N), 2.0))  # leak",
    "KEPT.append(xdev.asarray(np.ones(N), copy=True))  # leak",
    "KEPT.append(memory.pool('cpu').acquire(N))  # leak",
    "KEPT.append(deep(30, lambda: xdev.empty(100_000 + N)))  # leak",
    "in_thread(lambda: KEPT.append(xdev.ones(N)))  # leak",
    """
class HolderN:
    def make(self):
        xdev.empty(N)
        return xdev.zeros(N)  # leak
KEPT.append(HolderN().make())
""",
    """
@through
def makeN(n):
    temporary = xdev.empty(n)
    result = xdev.empty(  # leak
        (
            n,
            2,
        )
    )
    return result
KEPT.append(makeN(N))
KEPT.append(makeN(N + 1))
""",
    """
def generateN():
    held = xdev.ones(N)  # leak
    yield xdev.ones(N)
    yield held
KEPT.append(generateN())
next(KEPT[-1])
""",
    """
async def waitN():
    await asyncio.sleep(0)
    return xdev.empty_like(np.ones(N))  # leak
KEPT.append(asyncio.run(waitN()))
""",
    """
try:
    lost = xdev.empty(N)
    partial = xdev.empty(N + 1)  # leak
    raise ValueError(partial)
except ValueError as error:
    KEPT.append(error.args)
del lost, partial
""",
    # None of these keeps anything.
    "xdev.empty(N); xdev.zeros(100_000 + N); [xdev.ones(k + 1) for k in range(9)]",
    "dropped = xdev.empty(N); dropped = None",
    "freed = xdev.empty(N); memory.free(freed); KEPT.append(freed)",
    "block = memory.pool('cpu').acquire(N); memory.pool('cpu').release(block)",
    "swapped = xdev.empty(N); swapped = np.ones(3); total = add(np.ones(N), 1.0).sum()",
    "in_thread(lambda: [add(xdev.ones(N), 1.0) for _ in range(5)])",
)


def planted():
    """Return a program's text; PLANTED of its lines are marked."""
    text, marked = [HEAD], 0
    for n, snippet in zip(itertools.count(10), itertools.cycle(SNIPPETS)):
        if "# leak" in snippet:
            if marked == PLANTED:
                continue
            marked += 1
        text.append(re.sub(r"N\b", str(n), snippet))
        if marked == PLANTED and n > PLANTED + 3 * len(SNIPPETS):
            return "\n".join(text)
    raise AssertionError


def test_planted_leaks_are_all_named_and_none_is_invented(tmp_path):
    file = tmp_path / "planted.py"
    file.write_text(planted())
    marked = {
        f"{file}:{number}"
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if "# leak" in line
    }
    assert len(marked) == PLANTED

    with memory.track(), xdev.use_device("cpu"):
        kept = runpy.run_path(str(file))["KEPT"]
        lines = memory.outstanding_by_line("cpu")
        blocks = memory.outstanding("cpu")
        kept.clear()
        left = memory.outstanding("cpu")

    assert {line.where for line in lines} == marked
    assert len(lines) == PLANTED
    together = [where for where, _ in itertools.groupby(blocks, attrgetter("where"))]
    assert together == [line.where for line in lines]
    assert len(blocks) == sum(line.count for line in lines)
    assert sum(b.nbytes for b in blocks) == sum(line.nbytes for line in lines)
    assert left == []
