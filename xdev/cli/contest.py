"""Who takes part in ``xdev bench``: one row a library and a kind of array."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

import xdev
from xdev import _optional
from xdev.device import Device

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Call = partial[Any]
Triple = tuple[Any, Any, Any]


def add(x: Any, y: Any) -> Any:
    """Return ``x + y``, of scalars: what every library makes its ufunc from."""
    return x + y


@final
class Stage:
    """The arrays and functions of one contest, each made when a row first asks.

    Parameters
    ----------
    n : int
        Elements of each array.
    dtype : numpy.dtype
        Their type.
    device : Device
        Where xdev's device arrays are.
    """

    def __init__(self, n: int, dtype: np.dtype[Any], device: Device) -> None:
        self.n, self.dtype, self.device = n, dtype, device

    @cached_property
    def host(self) -> Triple:
        """Random x and y, small enough that integers do not overflow; and out."""
        numbers = np.random.default_rng(0).random((2, self.n))
        if self.dtype.kind in "iu":
            numbers *= 60
        x, y = numbers.astype(self.dtype)
        return x, y, np.empty_like(x)

    @cached_property
    def arrays(self) -> Triple:
        """The same as arrays of xdev on the device."""
        x, y, _ = self.host
        out = xdev.empty(self.n, dtype=self.dtype, device=self.device)
        return *(xdev.asarray(a, device=self.device, copy=True) for a in (x, y)), out

    @cached_property
    def cupy_arrays(self) -> Triple:
        """The same as CuPy's own arrays."""
        cupy = _optional.cupy()
        return tuple(map(cupy.asarray, self.host))

    @cached_property
    def numba_arrays(self) -> Triple:
        """The same as Numba device arrays."""
        return tuple(map(_optional.numba_cuda().to_device, self.host))

    @cached_property
    def ufunc(self) -> Any:
        """The function by xdev, of every device."""
        return xdev.vectorize(add)

    @cached_property
    def numba_cpu(self) -> Any:
        """The function by Numba, of the CPU."""
        return self._numba("cpu")

    @cached_property
    def numba_cuda(self) -> Any:
        """The function by Numba, of CUDA."""
        _optional.numba_cuda()
        return self._numba("cuda")

    def _numba(self, target: str) -> Any:
        numba = _optional.numba()
        scalar = numba.from_dtype(self.dtype)
        return numba.vectorize([scalar(scalar, scalar)], target=target)(add)


def _call(function: Any, arrays: Triple) -> Call:
    x, y, _ = arrays
    return partial(function, x, y)


def _into(function: Any, arrays: Triple) -> Call:
    x, y, out = arrays
    return partial(function, x, y, out=out)


def _round_trip(stage: Stage) -> Call:
    """Upload, call, download; on the CPU there is nothing to move."""
    if stage.device.type == "cpu":
        return _call(stage.ufunc, stage.host)

    def host_to_host(x: NDArray[Any], y: NDArray[Any]) -> Any:
        there = (xdev.to_device(a, stage.device) for a in (x, y))
        return xdev.to_numpy(stage.ufunc(*there))

    return _call(host_to_host, stage.host)


def _cupy_round_trip(stage: Stage) -> Call:
    cupy = _optional.cupy()

    def host_to_host(x: NDArray[Any], y: NDArray[Any]) -> Any:
        return cupy.asnumpy(cupy.add(cupy.asarray(x), cupy.asarray(y)))

    return _call(host_to_host, stage.host)


BOTH, CPU, CUDA = ("cpu", "cuda"), ("cpu",), ("cuda",)
# name: (the devices on which the row makes sense, what makes its call)
ROWS: dict[str, tuple[tuple[str, ...], Callable[[Stage], Call]]] = {
    "NumPy host arrays": (BOTH, lambda s: _call(np.add, s.host)),
    "NumPy host arrays out=": (BOTH, lambda s: _into(np.add, s.host)),
    "Numba host arrays": (CPU, lambda s: _call(s.numba_cpu, s.host)),
    "Numba host arrays out=": (CPU, lambda s: _into(s.numba_cpu, s.host)),
    "Numba CUDA host arrays": (CUDA, lambda s: _call(s.numba_cuda, s.host)),
    "Numba device arrays": (CUDA, lambda s: _call(s.numba_cuda, s.numba_arrays)),
    "Numba device arrays out=": (CUDA, lambda s: _into(s.numba_cuda, s.numba_arrays)),
    "Numba on CuPy arrays out=": (CUDA, lambda s: _into(s.numba_cuda, s.cupy_arrays)),
    "CuPy host arrays": (CUDA, _cupy_round_trip),
    "CuPy arrays": (CUDA, lambda s: _call(_optional.cupy().add, s.cupy_arrays)),
    "CuPy arrays out=": (CUDA, lambda s: _into(_optional.cupy().add, s.cupy_arrays)),
    "xdev host arrays": (BOTH, _round_trip),
    "xdev device arrays": (BOTH, lambda s: _call(s.ufunc, s.arrays)),
    "xdev device arrays out=": (BOTH, lambda s: _into(s.ufunc, s.arrays)),
    "xdev on Numba arrays out=": (CUDA, lambda s: _into(s.ufunc, s.numba_arrays)),
    "xdev on CuPy arrays out=": (CUDA, lambda s: _into(s.ufunc, s.cupy_arrays)),
}


@dataclass(slots=True)
class Contest:
    """The rows that can be timed here, and for each other row why it cannot.

    Parameters
    ----------
    size : int
        Bytes of an array.
    device : Device
        The device under test.
    """

    size: int
    device: Device
    candidates: dict[str, Call] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def nbytes(self) -> dict[str, int]:
        """Return the bytes that a call reads and writes where its arrays are [B]."""
        return {
            name: 3 * self.size
            for name in self.candidates
            if self.device.type == "cpu" or "host" not in name
        }

    def reasons(self) -> dict[str, list[str]]:
        """Return the rows left out, by reason."""
        grouped: dict[str, list[str]] = {}
        for name, reason in self.left_out.items():
            grouped.setdefault(reason, []).append(name)
        return grouped


def contest(n: int, dtype: np.dtype[Any], device: Device) -> Contest:
    """Make every row that this machine can run.

    Parameters
    ----------
    n : int
        Elements of each array.
    dtype : numpy.dtype
        Their type.
    device : Device
        The device under test.
    """
    stage, entered = Stage(n, dtype, device), Contest(n * dtype.itemsize, device)
    for name, (devices, make) in ROWS.items():
        if device.type not in devices:
            entered.left_out[name] = _elsewhere(devices[0])
            continue
        try:
            entered.candidates[name] = make(stage)
        except Exception as error:
            # A peer that lacks a dtype, or is broken, must not end the contest.
            if name.startswith("xdev"):
                raise
            entered.left_out[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    return entered


def _elsewhere(device: str) -> str:
    """Say why rows of another device are not run."""
    return Device(device).reason or f"they are of --device {device}"
