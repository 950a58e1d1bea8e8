"""What CuPy's functions write with no ado: told by types and shapes alone."""

from types import SimpleNamespace

import numpy as np
import pytest

import xdev
from xdev import _optional
from xdev.memory.streams import live_streams

if not _optional.installed("cupy"):
    pytest.skip("needs CuPy: the group cuda", allow_module_level=True)

cupy = _optional.cupy()
from xdev.facade import cuda_into  # noqa: E402 - it needs CuPy


def array(*shape):
    """Return an array of no memory."""
    memory = cupy.cuda.UnownedMemory(1 << 20, 1 << 10, None, 0)
    return cupy.ndarray(shape, "f4", cupy.cuda.MemoryPointer(memory, 0))


@pytest.fixture
def stream(monkeypatch):
    """The current stream's handle, in a list, and whose uses were marked after it."""
    seen = [0]
    monkeypatch.setattr(cuda_into, "mark_uses", seen.append)
    monkeypatch.setattr(live_streams, "several", False)
    return seen


@pytest.fixture
def into(stream):
    """What writes, by functions that return what they are called with."""
    functions = {
        "positive": lambda x, out: (x, out),
        "add": lambda x1, x2, out: (x1, x2, out),
    }
    library = SimpleNamespace(namespace=cupy, functions=functions, refuse=None)
    made = cuda_into.Into(library)
    made._stream = lambda: stream[0]
    return made


X, Y = array(3, 4), array(3, 4)
FLAT = array(12)


@pytest.mark.parametrize("shape", [(), (0,), (3, 4)])
def test_arrays_and_pythons_numbers_are_computed(into, shape):
    x, y, out = (array(*shape) for _ in range(3))
    assert all(
        a is b for a, b in zip(into.one["positive"](x, out), (x, out), strict=True)
    )
    for pair in (x, y), (x, x), (x, 2), (2.5, x), (True, x), (x, 1j), (x, out):
        found = into.two["add"](*pair, out)
        assert all(a is b for a, b in zip(found, (*pair, out), strict=True))


@pytest.mark.parametrize(
    "odd",
    [np.float32(2), np.ones((3, 4)), np.array(2.0), [1.0], None, "2", object()],
    ids=lambda odd: type(odd).__name__,
)
def test_all_else_is_left_to_the_general_way(into, odd):
    assert into.one["positive"](odd, Y) is NotImplemented
    for pair in (odd, X), (X, odd), (odd, odd), (odd, 2.0), (2.0, odd):
        assert into.two["add"](*pair, Y) is NotImplemented


def test_numbers_alone_are_left_to_the_general_way(into):
    assert into.one["positive"](2.0, Y) is NotImplemented
    assert into.two["add"](1.0, 2.0, Y) is NotImplemented


def test_another_shape_is_left_to_the_general_way(into):
    assert into.one["positive"](X, FLAT) is NotImplemented
    for pair in (X, X), (X, FLAT), (FLAT, X), (X, 2.0), (2.0, X):
        assert into.two["add"](*pair, FLAT) is NotImplemented
    for pair in (X, array(4)), (array(4), X), (array(4), array(3, 1)), (array(4), 2.0):
        assert (
            into.two["add"](*pair, Y) is NotImplemented
        )  # it may be right: it broadcasts


@pytest.mark.cuda
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 4), (12,), (3, 1), (), (0,)])
def test_no_function_writes_an_array_of_another_shape(cuda, shape):
    x, row = (xdev.ones(s, device=cuda) for s in ((3, 4), (4,)))
    out = xdev.full(shape, 7.0, device=cuda)
    for name in names("one"):
        with pytest.raises(ValueError, match="shape"):
            getattr(xdev, name)(x, out=out)
    for name in names("two"):
        for pair in (x, x), (x, 2.0), (2.0, x), (x, row), (row, x):
            with pytest.raises(ValueError, match="shape"):
                getattr(xdev, name)(*pair, out=out)
    assert (xdev.to_numpy(out) == 7.0).all()


def names(arity):
    """Return the functions of so many inputs that compute floats by CuPy's ufuncs."""
    one = "abs ceil cos exp floor negative positive sqrt square trunc"
    two = "add atan2 copysign divide hypot maximum minimum multiply pow subtract"
    return {"one": one, "two": two}[arity].split()


def test_a_stream_that_no_pool_saw_is_told(into, stream, monkeypatch):
    for handle, told in (0, 0), (1, 0), (2, 2), (77, 4):
        stream[0] = handle
        into.one["positive"](X, Y)
        into.two["add"](X, 2.0, Y)
        assert len(stream) == 1 + told
    assert all(a is b for a, b in zip(stream[-1], (X, 2.0, Y), strict=True))
    monkeypatch.setattr(live_streams, "several", True)  # then functions do it
    into.one["positive"](X, Y)
    assert len(stream) == 5
