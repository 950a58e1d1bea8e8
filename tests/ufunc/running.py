"""Kernels and ufuncs run on a device with arrays that NumPy made."""

import numpy as np

import xdev


def there(device, *arrays):
    """Return arrays of a device."""
    return [xdev.asarray(x, device=device) for x in arrays]


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
    args = [
        xdev.asarray(x, device=device) if isinstance(x, np.ndarray) else x for x in args
    ]
    made = function(*args, **keywords)
    if isinstance(made, tuple):
        return tuple(map(xdev.to_numpy, made))
    return xdev.to_numpy(made)
