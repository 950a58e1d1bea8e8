"""What results are computed by, and used by, in the tests of spares."""

import xdev

VIEWS = [
    lambda x: x[:],
    lambda x: x[1:],
    lambda x: x.T,
    lambda x: x.reshape(-1)[::3],
    lambda x: x.view("u1"),
    memoryview,
]
CONTAINERS = [lambda x: [x], lambda x: {"x": (x,)}, lambda x: lambda: x]


@xdev.vectorize
def add(x, y):
    return x + y


@xdev.vectorize
def subtract(x, y):
    return x - y
