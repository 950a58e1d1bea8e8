"""What tests of functions, kernels and graphs share: runs on a device, comparisons."""

import warnings

import numpy as np

import xdev


@xdev.vectorize(identity=0)
def add(x, y):
    """Return the sum."""
    return x + y


@xdev.guvectorize("(n),(n)->()")
def dot(x, y, out):
    """Return the sum of products."""
    out[0] = 0
    for i in range(x.shape[0]):
        out[0] += x[i] * y[i]


def there(device, *arrays):
    """Return arrays of a device, those in lists too; numbers stay."""
    return [
        there(device, *x)
        if isinstance(x, list)
        else xdev.asarray(x, device=device)
        if isinstance(x, np.ndarray)
        else x
        for x in arrays
    ]


def host(found):
    """Return an array, or a tuple of them, as NumPy's."""
    if isinstance(found, tuple):
        return tuple(map(host, found))
    return np.asarray(xdev.to_numpy(found))


def unaligned(x):
    """Return a copy of an array, in C order, that begins a byte off."""
    memory = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    memory[...] = x
    return memory


def ran(device, kernel, extents, *args):
    """Run a kernel on a device; return what its last array holds after that."""
    args = [
        xdev.asarray(x, device=device, copy=True) if isinstance(x, np.ndarray) else x
        for x in args
    ]
    assert kernel[extents](*args) is None
    return xdev.to_numpy(args[-1])


def called(device, function, *args, **keywords):
    """Call a function on a device; return its results as NumPy's arrays."""
    return host(function(*there(device, *args), **keywords))


def same(found, expected, rtol=0):
    """Compare a result, or a tuple of them, with NumPy's: dtype, shape and values."""
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            same(one, other, rtol)
        return
    found, expected = host(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if rtol:
        np.testing.assert_allclose(found, expected, rtol=rtol)
    else:
        np.testing.assert_array_equal(found, expected)


def without_source(text, name="f", **names):
    """Return a function of a text that is in no file."""
    exec(compile(text, "<nowhere>", "exec"), names)  # noqa: S102 - our own text
    return names[name]


class Clock:
    """A clock that moves by given costs, one a call [s], after so many free ones."""

    def __init__(self, costs, free=0):
        self.costs, self.now, self.calls = costs, 0.0, -free

    def __call__(self):
        return self.now

    def tick(self):
        """Be the statement that is timed."""
        if self.calls >= 0:
            self.now += self.costs[self.calls % len(self.costs)]
        self.calls += 1


def told(call, *args):
    """Return the floating point errors that a call warns of, and what it gives."""
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        results = call(*args)
    return {str(w.message).partition(" encountered")[0] for w in caught}, results
