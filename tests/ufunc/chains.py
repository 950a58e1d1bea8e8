"""Work for graphs: a step, a chain of steps, and arrays for both."""

import numpy as np

import xdev


@xdev.vectorize
def step(x, y):
    return 0.5 * x + y * y


def values(seed, n=1000):
    return np.random.default_rng(seed).random(n, dtype=np.float32)


def arrays(device, count=2, n=1000):
    return [xdev.asarray(values(seed, n), device=device) for seed in range(count)]


def chain(x, y):
    for _ in range(5):
        x = step(x, y)
    return x


def address(x):
    return x.__array_interface__["data"][0] if isinstance(x, np.ndarray) else x.data.ptr
