"""The libraries beside xdev: calls of each that is installed, and why others are not.

A task is a mapping from a library's name to a function that makes the library's call;
what a function raises is why the library is left out.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import record

import xdev
from xdev import _optional
from xdev.timing import compare

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

# JAX takes three quarters of a card when it starts, unless told not to.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

Call = "Callable[[], Any]"


def made(
    task: Mapping[str, Callable[..., Any]], *arguments: object
) -> tuple[dict[str, Any], dict[str, str]]:
    """Make the call of each library that can do the task.

    Returns
    -------
    calls : dict of str to callable without arguments
    left_out : dict of str to str
        Why, by name.
    """
    calls, left_out = {}, {}
    for name, make in task.items():
        try:
            calls[name] = make(*arguments)
            calls[name]()
        except Exception as error:
            # A peer that is broken must not end the benchmark.
            if name.startswith("xdev"):
                raise
            calls.pop(name, None)
            first = (str(error).splitlines() or [""])[0]
            left_out[name] = f"{type(error).__name__}: {first}"
    return calls, left_out


def compared(
    group: str, task: Mapping[str, Callable[..., Any]], *arguments: object, **how: Any
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Make the calls of a task, compare and print them.

    Parameters
    ----------
    group : str
        What the table is called.
    task, *arguments
        As :func:`made` takes them.
    **how
        As :func:`xdev.timing.compare` takes it.

    Returns
    -------
    rows : list of dict
        For the record.
    left_out : dict of str to str
        As :func:`made` has it.
    """
    calls, left_out = made(task, *arguments)
    found = compare(calls, **how)
    print(f"\n{group}\n{found}", flush=True)
    return record.rows(found, group), left_out


def add(x: Any, y: Any) -> Any:
    """Return the sum: of scalars, for whoever makes a ufunc of it."""
    return x + y


def torch_on(device: xdev.Device, *arrays: NDArray[Any]) -> tuple[Any, ...]:
    """Return PyTorch, and host arrays as its tensors on a device."""
    import torch

    moved = (torch.as_tensor(each).to(str(device), copy=True) for each in arrays)
    return torch, *moved


def jax_on(device: xdev.Device, *arrays: NDArray[Any]) -> tuple[Any, ...]:
    """Return JAX, and host arrays as its arrays on a device."""
    import jax

    platform = "cpu" if device.type == "cpu" else "gpu"
    where = jax.devices(platform)[device.index]
    return jax, *(jax.device_put(each, where) for each in arrays)


def _numpy_add(x: Any, y: Any, device: xdev.Device) -> Call:  # noqa: ARG001
    out = np.empty_like(x)
    return lambda: np.add(x, y, out=out)


def _xdev_add(x: Any, y: Any, device: xdev.Device) -> Call:
    ours = xdev.vectorize(add)
    a, b = (xdev.asarray(each, device=device, copy=True) for each in (x, y))
    out = xdev.empty_like(a)
    return lambda: ours(a, b, out=out)


def _numba_add(x: Any, y: Any, device: xdev.Device) -> Call:
    signature = [f"{x.dtype}({x.dtype}, {x.dtype})"]
    if device.type == "cpu":
        out = np.empty_like(x)
        theirs = _optional.numba().vectorize(signature)(add)
        return lambda: theirs(x, y, out)
    warnings.filterwarnings("ignore", ".*Grid size")  # its advice on small launches
    a, b, out = map(_optional.numba_cuda().to_device, (x, y, np.empty_like(x)))
    theirs = _optional.numba().vectorize(signature, target="cuda")(add)
    return lambda: theirs(a, b, out=out)


def _numexpr_add(x: Any, y: Any, device: xdev.Device) -> Call:  # noqa: ARG001
    import numexpr

    arrays, out = {"x": x, "y": y}, np.empty_like(x)
    return lambda: numexpr.evaluate("x + y", local_dict=arrays, out=out)


def _cupy_add(x: Any, y: Any, device: xdev.Device) -> Call:  # noqa: ARG001
    cupy = _optional.cupy()
    a, b = map(cupy.asarray, (x, y))
    out = cupy.empty_like(a)
    return lambda: cupy.add(a, b, out)


def _torch_add(x: Any, y: Any, device: xdev.Device) -> Call:
    torch, a, b, out = torch_on(device, x, y, np.empty_like(x))
    return lambda: torch.add(a, b, out=out)


def _jax_add(x: Any, y: Any, device: xdev.Device) -> Call:
    jax, a, b = jax_on(device, x, y)
    theirs = jax.jit(add)
    return lambda: theirs(a, b).block_until_ready()


def _warp_add(x: Any, y: Any, device: xdev.Device) -> Call:
    import warp

    warp.config.quiet = True
    warp.init()

    @warp.kernel
    def sums(
        a: warp.array(dtype=warp.float32),
        b: warp.array(dtype=warp.float32),
        c: warp.array(dtype=warp.float32),
    ) -> None:
        i = warp.tid()
        c[i] = a[i] + b[i]

    arrays = [xdev.asarray(each, device=device, copy=True) for each in (x, y, x)]
    a, b, c = map(warp.from_dlpack, arrays)

    def call() -> Any:
        warp.launch(sums, dim=len(x), inputs=[a, b], outputs=[c], device=str(device))
        return arrays[2]

    return call


# x + y of float32 into an array that is there; JAX has no such thing, and makes one.
ADD = {
    "cpu": {
        "NumPy": _numpy_add,
        "xdev": _xdev_add,
        "Numba": _numba_add,
        "numexpr": _numexpr_add,
        "PyTorch": _torch_add,
        "JAX": _jax_add,
        "Warp": _warp_add,
    },
    "cuda": {
        "CuPy": _cupy_add,
        "xdev": _xdev_add,
        "Numba": _numba_add,
        "PyTorch": _torch_add,
        "JAX": _jax_add,
        "Warp": _warp_add,
    },
}
