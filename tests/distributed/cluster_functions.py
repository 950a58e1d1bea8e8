"""Functions that workers import by name: a test's module they cannot."""

import os
import time

import numpy as np

import xdev


@xdev.vectorize
def wave(x, y):
    return x * y + 1


@xdev.guvectorize("(n)->()")
def length(x, out):
    out[0] = 0
    for i in range(x.shape[0]):
        out[0] += x[i] * x[i]
    out[0] = np.sqrt(out[0])


@xdev.kernel
def neighbours(i, x, out):
    out[i] = x[i] if i == 0 or i == x.shape[0] - 1 else x[i - 1] + x[i + 1]


def mapped(x):
    """Run a kernel with its neighbours' elements, or on an array as one block."""
    out = xdev.empty_like(x)
    neighbours[x.shape](x, out)
    return out


def slowly(x):
    """Take a while, so that a worker can be killed meanwhile."""
    time.sleep(0.05 if x.size else 0)
    return xdev.exp(-x)


def held(x):
    assert x.size
    return xdev.memory.allocated("cpu")


def settings():
    device, limit = xdev.default_device(), xdev.memory.get_limit("cpu")
    return str(device), limit, os.environ["XDEV_NUM_THREADS"], os.getpid()


def refused():
    return xdev.empty(2**58)
