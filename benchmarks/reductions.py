"""Sums and other reductions of float32, beside NumPy, numexpr, CuPy, PyTorch and JAX.

``xdev`` is the facade's function, ``xdev ufunc`` the ``reduce`` of an ``@vectorize``d
addition. Each gives a number on its device. A reduction reads each element once: the
share of a copy's bandwidth may reach one at large sizes, and passes it in caches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import peers
import record

import xdev
from xdev import _optional

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SIZES = {"cpu": [1000, 100_000, 10_000_000], "cuda": [1000, 10**6, 2**28]}
TOLERANCE = 1e-4  # orders of summation differ


def of_numpy(x: Any, _: xdev.Device, function: str) -> Callable[[], Any]:
    """Return NumPy's call."""
    return getattr(x, function)


def of_cupy(x: Any, _: xdev.Device, function: str) -> Callable[[], Any]:
    """Return CuPy's call."""
    there: Callable[[], Any] = getattr(_optional.cupy().asarray(x), function)
    return there


def of_xdev(x: Any, device: xdev.Device, function: str) -> Callable[[], Any]:
    """Return the call of xdev's facade."""
    own, there = getattr(xdev, function), xdev.asarray(x, device=device)
    return lambda: own(there)


def of_ufunc(x: Any, device: xdev.Device, function: str) -> Callable[[], Any]:
    """Return the ``reduce`` of xdev's ufunc, which adds."""
    assert function == "sum"  # noqa: S101
    own, there = xdev.vectorize(peers.add), xdev.asarray(x, device=device)
    return lambda: own.reduce(there)


def of_numexpr(x: Any, _: xdev.Device, function: str) -> Callable[[], Any]:
    """Return numexpr's call."""
    import numexpr

    return lambda: numexpr.evaluate(f"{function}(x)", local_dict={"x": x})


def of_torch(x: Any, device: xdev.Device, function: str) -> Callable[[], Any]:
    """Return PyTorch's call."""
    _, there = peers.torch_on(device, x)
    if function == "std":
        return lambda: there.std(correction=0)
    own: Callable[[], Any] = getattr(there, function)
    return own


def of_jax(x: Any, device: xdev.Device, function: str) -> Callable[[], Any]:
    """Return JAX's call, compiled."""
    jax, there = peers.jax_on(device, x)
    own = jax.jit(getattr(jax.numpy, function))
    return lambda: own(there).block_until_ready()


ALL = ("sum", "max", "std")
# Each library's call, and the functions that it has.
TASKS = {
    "cpu": {
        "NumPy": (of_numpy, ALL),
        "xdev": (of_xdev, ALL),
        "xdev ufunc": (of_ufunc, ("sum",)),
        "numexpr": (of_numexpr, ("sum", "max")),
        "PyTorch": (of_torch, ALL),
        "JAX": (of_jax, ALL),
    },
    "cuda": {
        "CuPy": (of_cupy, ALL),
        "xdev": (of_xdev, ALL),
        "xdev ufunc": (of_ufunc, ("sum",)),
        "PyTorch": (of_torch, ALL),
        "JAX": (of_jax, ALL),
    },
}


def measure(
    device: xdev.Device, sizes: Sequence[int], repeat: int
) -> tuple[list[Any], dict[str, str]]:
    """Measure on one device; return its rows and who was left out."""
    rows: list[dict[str, Any]] = []
    left_out: dict[str, str] = {}
    tasks = TASKS[device.type].items()
    for n in sizes:
        x = np.random.default_rng(0).random(n, np.float32)
        how = {"repeat": repeat, "device": device, "rtol": TOLERANCE, "nbytes": 4 * n}
        for function in ALL:
            task = {name: make for name, (make, of) in tasks if function in of}
            group = f"{function}, n = {n}, {device.type}"
            found, absent = peers.compared(group, task, x, device, function, **how)
            rows += found
            left_out |= absent
    return rows, left_out


if __name__ == "__main__":
    record.on_devices(measure, SIZES, __doc__ or "")
