"""Stand-ins for tests: fake devices, memory that is numbers, a device that is order.

:class:`FakeArray` is an array on a fake device, as strict as CuPy's are.
:class:`FakeSource` counts bytes. :class:`SimulatedDevice` has streams, events and a
virtual clock, and finds accesses to memory that nothing orders;
:class:`SimulatedSource` is its memory, for a :class:`xdev.memory.Pool`.

:func:`assert_allclose` and :func:`assert_array_equal` compare arrays on any devices.

The pytest plug-in is :mod:`xdev.testing.plugin`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.device import device_of
from xdev.device.fake_arrays import FakeArray
from xdev.memory.sources.fake import FakeSource
from xdev.testing.simulation import (
    Hazard,
    SimulatedDevice,
    SimulatedEvent,
    SimulatedSource,
    SimulatedStream,
    Tenant,
)
from xdev.transfer import to_numpy

__all__ = [
    "FakeArray", "FakeSource", "Hazard", "SimulatedDevice", "SimulatedEvent",
    "SimulatedSource", "SimulatedStream", "Tenant", "assert_allclose",
    "assert_array_equal",
]  # fmt: skip
__dir__ = __all__.copy  # what Tab shows

if not TYPE_CHECKING:  # type checkers know what is there

    def __getattr__(name: str) -> Any:
        """Say what does the same as a name of NumPy's."""
        from xdev._numpy_names import refuse

        refuse(__name__, name)


def assert_allclose(
    actual: Any,
    desired: Any,
    rtol: float = 1e-7,
    atol: float = 0,
    equal_nan: bool = True,
    err_msg: str = "",
    *,
    strict: bool = False,
) -> None:
    """Assert that two arrays, on any devices, are equal up to a tolerance.

    Parameters
    ----------
    actual, desired : array, number or nested sequence
        Shapes that broadcast. Arrays are copied to the host, where they are compared.
    rtol, atol : float
        ``|actual - desired| <= atol + rtol * |desired|`` must hold.
    equal_nan : bool
        Whether NaN equals NaN.
    err_msg : str
        What the error's text has besides.
    strict : bool
        Whether shapes and data types must be equal too.

    Raises
    ------
    AssertionError
        They differ; the text names the first index, and what is there.

    Examples
    --------
    >>> import xdev
    >>> x = xdev.asarray([1.0, 2.0, 3.0], device="fake")
    >>> xdev.testing.assert_allclose(x, [1.0, 2.0, 3.0])
    >>> xdev.testing.assert_allclose(x, [1.0, 2.5, 3.0], rtol=0.01)
    Traceback (most recent call last):
    AssertionError: first difference at [1]: 2.0 on fake:0, 2.5 is desired...
    """
    how: Any = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan}
    more: Any = {"err_msg": err_msg, "strict": strict}
    compare = partial(np.testing.assert_allclose, **how, **more)
    _compare(actual, desired, compare, lambda x, y: ~np.isclose(x, y, **how))


def assert_array_equal(
    actual: Any, desired: Any, err_msg: str = "", *, strict: bool = False
) -> None:
    """Assert that two arrays, on any devices, hold the same values; NaN equals NaN.

    Parameters
    ----------
    actual, desired : array, number or nested sequence
        Of one shape; a number is compared with every element.
    err_msg, strict
        As :func:`assert_allclose` takes them.

    Raises
    ------
    AssertionError
        They differ; the text names the first index, and what is there.

    Examples
    --------
    >>> import xdev
    >>> x = xdev.asarray([[1, 2], [3, 4]], device="fake")
    >>> xdev.testing.assert_array_equal(x, [[1, 2], [3, 5]])
    Traceback (most recent call last):
    AssertionError: first difference at [1, 1]: 4 on fake:0, 5 is desired...
    """
    more: Any = {"err_msg": err_msg, "strict": strict}
    compare = partial(np.testing.assert_array_equal, **more)
    _compare(actual, desired, compare, lambda x, y: (x != y) & ((x == x) | (y == y)))  # noqa: PLR0124 - NaN of any dtype


def _compare(actual: Any, desired: Any, compare: Any, differ: Any) -> None:
    """Compare on the host; put the first difference in front of NumPy's text."""
    one, other = _on_host(actual), _on_host(desired)
    __tracebackhide__ = True
    try:
        compare(one, other)
    except AssertionError as error:
        message = f"{_first(actual, one, other, differ)}{str(error).lstrip()}"
        raise AssertionError(message) from None


def _on_host(x: Any) -> Any:
    return to_numpy(x) if hasattr(x, "__dlpack__") else np.asarray(x)


def _first(actual: Any, one: Any, other: Any, differ: Any) -> str:
    """Return the text of the first difference; nothing where shapes differ."""
    try:
        one, other = np.broadcast_arrays(one, other)
    except ValueError:
        return ""
    places = np.argwhere(differ(one, other))
    if not places.size:  # one number, or what only NumPy's comparison tells apart
        return ""
    index = tuple(places[0].tolist())
    where = f" on {device_of(actual)}" if hasattr(actual, "__dlpack__") else ""
    first = f"first difference at {list(index)}: {one[index]}{where}"
    count = f"{len(places)} of {one.size} differ"
    return f"{first}, {other[index]} is desired ({count})\n"
