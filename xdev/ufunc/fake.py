"""A scalar function on fake arrays: computed on the CPU, refused where CUDA refuses."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def is_fake(x: Any) -> bool:
    """Say whether ``x`` is an array on a fake device."""
    arrays = sys.modules.get("xdev.device.fake_arrays")  # else there is none
    return arrays is not None and type(x) is arrays.FakeArray


def call(
    loops: Callable[..., Any],
    name: str,
    args: Sequence[Any],
    outs: Sequence[Any] | None,
    keywords: dict[str, Any],
    names: Sequence[str],
) -> Any:
    """Compute with the CPU's loops on the memory behind fake arrays.

    Parameters
    ----------
    loops : callable
        ``loops(args, outs, **keywords)`` on NumPy arrays.
    name : str
        The function's, for errors.
    args : sequence
        The inputs.
    outs : sequence of arrays and None, optional
        The outputs.
    keywords : dict
        ``where``, ``casting``, ``dtype``.
    names : sequence of str
        The inputs' names in the function, for errors.

    Returns
    -------
    array or tuple of arrays
        ``outs`` themselves where given; 0-d arrays where NumPy has scalars.

    Raises
    ------
    DeviceMismatchError
        There are arrays of the host or of two devices.
    TypeError
        An input is a list.
    """
    from xdev.device.fake_arrays import run

    for x, label in zip(args, names, strict=True):
        if isinstance(x, list | tuple):  # refused on CUDA too
            arrays = (*args, *(outs or ()), *keywords.values())
            there = next(y.device for y in arrays if is_fake(y))
            message = (
                f"{name}() got a {type(x).__name__} for {label} beside an array on "
                f"{there}: pass xdev.asarray({label}, device='{there}')"
            )
            raise TypeError(message)
    # As on CUDA, a 0-d array of the host is a number.
    numbers = [x[()] if isinstance(x, np.ndarray) and not x.ndim else x for x in args]
    given = () if outs is None else tuple(outs)
    one = len(given) == 1
    outputs = {"out" if one else f"out[{i}]": y for i, y in enumerate(given)}
    taken = {"on", *outputs, *keywords}
    labels = [f"argument {label}" if label in taken else label for label in names]
    inputs: dict[str, Any] = dict(zip(labels, numbers, strict=True))

    def apart(**named: Any) -> Any:
        arrays = [named.pop(label) for label in inputs]
        results = [named.pop(label) for label in outputs]
        return loops(arrays, None if outs is None else tuple(results), **named)

    named: dict[str, Any] = {**inputs, **outputs, **keywords}
    return run(f"{name}()", apart, **named)
