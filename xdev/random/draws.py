"""``Philox``, draws on a device, and checks of the arguments of NumPy's generator."""

from __future__ import annotations

import math
import operator
import struct
import sys
import threading
from contextlib import suppress
from ctypes import byref, c_char
from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np

from xdev import facade
from xdev._freed import refuse
from xdev.compile import indexed as compiler
from xdev.device import Device, device_of
from xdev.device.fake_arrays import FakeArray, values_of
from xdev.device.natives import natives
from xdev.errors import (
    DeviceMismatchError,
    DeviceUnavailableError,
    not_array,
    quoted,
    shown,
)
from xdev.facade.backends import as_shape, to_numpy_dtype
from xdev.facade.dispatch import factory
from xdev.memory import host_array
from xdev.random import kernels
from xdev.random.kernels import words64
from xdev.transfer.copies import plain_device, shared, to_device

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.compile.indexed import Indexed

    Shape = tuple[int, ...]
    Function = Callable[..., Any]
    Filler = Callable[[Indexed, Any, tuple[Any, ...]], None]
    Maker = Callable[[Indexed, Shape, tuple[Any, ...]], Any]


READ_ONLY = "out= is read-only: pass a writable array, such as out.copy()"
REAL = frozenset({int, float})  # types of Python's numbers, which calls pass most
NUMBERS = (bool, int, float, np.generic)
DEEPEST = 64  # lists in one another in a seed; as many axes has an array of NumPy's
FLOAT64, INT64 = np.dtype(np.float64), np.dtype(np.int64)
UINT64 = np.dtype(np.uint64)
FLOATS = (FLOAT64, np.dtype(np.float32))


def shape_of(size: Any) -> Shape | None:
    """Return ``size`` as a tuple; None stays None."""
    if type(size) is int and size >= 0:
        return (size,)
    if size is None:
        return None
    several = hasattr(size, "__len__") and getattr(size, "shape", None) != ()
    shape = as_shape(tuple(size) if several else size)
    if min(shape, default=0) < 0:
        raise ValueError(f"size={quoted(size)}: negative dimensions are not allowed")
    return shape


def float_dtype(dtype: Any, name: str) -> np.dtype[Any]:
    """Return float64 or float32."""
    numpys = to_numpy_dtype(dtype)
    if numpys not in FLOATS:
        message = f"Unsupported dtype {numpys!r} for {name}: use float64 or float32"
        raise TypeError(message)
    return numpys


def integer_dtype(dtype: Any) -> np.dtype[Any]:
    """Return a bool or integer dtype of native byte order."""
    numpys = to_numpy_dtype(dtype)
    if numpys.kind not in "biu" or not numpys.isnative:
        message = f"Unsupported dtype {numpys!r} for integers: use bool or an integer's"
        raise TypeError(message)
    return numpys


def out_shape(
    out: Any, shape: Shape | None, dtype: Any, on: Device, casting: Any = "no"
) -> Shape:
    """Return the shape of ``out``, which must fit a call."""
    refuse("random", out)
    if not is_array(out):
        raise TypeError(f"out must be an array, not {type(out).__name__}")
    check_device(out, "out", on)
    own = to_numpy_dtype(out.dtype)
    if not np.can_cast(dtype, own, casting):
        raise TypeError(
            f"Supplied output array has the wrong type. Expected {dtype}, got {own}: "
            f"pass one of dtype {dtype}"
        )
    if shape is not None and shape != tuple(out.shape):
        given = "size" if casting == "no" else "x.shape"
        raise ValueError(
            f"{given} must match out.shape when used together: {shape} is not "
            f"{tuple(out.shape)}; pass an out of that shape"
        )
    return tuple(out.shape)


def is_array(x: Any) -> bool:
    """Say whether ``x`` is an array of any library, no NumPy scalar."""
    # To look for an attribute that is not there takes long.
    array = type(x) not in REAL and hasattr(x, "shape") and hasattr(x, "dtype")
    return array and not isinstance(x, np.generic | type)


def check_device(x: Any, name: str, on: Device) -> None:
    """Refuse an array of another device."""
    where = device_of(x)
    if where != on:
        raise DeviceMismatchError(
            f"{name}= is on {where}, but the generator's device is {on}: move it with "
            f"xdev.to_device({name}, '{on}')"
        )


def parameter(x: Any, name: str, on: Device, dtype: Any = None) -> Any:
    """Return a distribution's parameter: a Python number, or an array on the device."""
    if isinstance(x, NUMBERS) or (isinstance(x, np.ndarray) and not x.ndim):
        return x.item() if type(x) not in REAL and hasattr(x, "item") else x
    if x is None:
        raise TypeError(f"{name} is None: pass a number or an array")
    x = plain(x, name, on, dtype)
    if dtype is None:
        return x
    if not np.can_cast(to_numpy_dtype(x.dtype), dtype, "same_kind"):
        raise TypeError(f"Cannot cast {name}, an array of {x.dtype}, to {dtype}")
    return facade.astype(x, dtype, copy=False)


def plain(x: Any, name: str, on: Device, dtype: Any = None) -> Any:
    """Return an array of a device, of any library, as xdev computes with it.

    It shares memory where it can; a sequence becomes an array of ``dtype``.
    """
    if isinstance(x, type):
        raise TypeError(f"{name} is {not_array(x, 'pass an array')}")
    if not is_array(x):
        return facade.asarray(x, dtype=dtype, device=plain_device(on))
    check_device(x, name, on)
    return to_device(x, plain_device(on))


def write(x: Any, values: Any) -> None:
    """Put values into an array of any library, wherever it is."""
    x[...] = to_device(values, device_of(x))


def not_negative(x: Any, name: str) -> None:
    """Refuse a parameter below zero (-0.0 is one) as NumPy does."""
    if is_array(x):
        bad = facade.any(facade.logical_and(facade.signbit(x), facade.equal(x, x)))
    else:
        bad = math.copysign(1.0, x) < 0 and not math.isnan(x)
    if bool(bad):
        raise ValueError(f"{name} < 0: pass what is not negative")


def broadcast(shape: Shape | None, *parameters: Any) -> Shape:
    """Return the shape of a call's result."""
    shapes = [tuple(x.shape) for x in parameters if is_array(x)]
    common = cast("Shape", facade.broadcast_shapes(*shapes))  # arrays': no size is None
    if shape is None:
        return common
    fitting = None
    with suppress(ValueError):
        fitting = facade.broadcast_shapes(shape, common)
    if fitting != shape:
        message = f"parameters of shape {common} do not broadcast to size={shape}"
        raise ValueError(message)
    return shape


def width_of(low: Any, high: Any) -> Any:
    """Return ``high - low``, a float where both are numbers."""
    arrays = is_array(low) or is_array(high)
    width: Any = facade.subtract(high, low) if arrays else float(high) - float(low)
    finite = facade.all(facade.isfinite(width)) if arrays else math.isfinite(width)
    if not bool(finite):
        raise OverflowError("high - low range exceeds valid bounds: it must be finite")
    return width


def missing(name: str) -> AttributeError:
    """Return the error for a method that the generator does not have."""
    text = f"xdev's Generator has no attribute {name!r}"
    if hasattr(np.random.Generator, name):
        text += (
            f": draw by numpy.random.default_rng(seed).{name}, and move what it gives "
            f"by xdev.to_device(values, device)"
        )
    return AttributeError(text, name=name)


def writers(device: Device) -> tuple[Filler, Maker]:
    """Return what writes a call's values into a device's arrays, and into new ones."""
    device.require()
    if device.type == "cuda":
        from xdev.random import cuda

        return partial(cuda.fill, device), partial(cuda.array, device)
    if device.type in ("cpu", "fake"):
        return fill_host, partial(host_array_of, device)
    message = f"{device} makes no random values: use one of cpu, fake, cuda"
    raise DeviceUnavailableError(message)


def host_array_of(
    device: Device, kernel: Indexed, shape: Shape, values: tuple[Any, ...]
) -> Any:
    """Return a new array of a call's values, of the host's or of a fake device's."""
    array = factory(device).empty(shape, kernel.result)
    fill_host(kernel, array, values)
    return array


def fill_host(kernel: Indexed, out: Any, values: tuple[Any, ...]) -> None:
    """Write a call's values into an array of the host's or of a fake device's."""
    memory = shared(values_of(out) if isinstance(out, FakeArray) else out)
    if not memory.flags.writeable:
        raise ValueError(READ_ONLY)
    plain = memory.flags.carray
    there: Any = memory if plain else host_array(memory.shape, memory.dtype)
    if there.size:
        address = byref(c_char.from_buffer(there))  # quicker than there.ctypes.data
        compiler.loop(kernel)(address, there.size, _packed(kernel)(*values))
    if not plain:
        np.copyto(memory, there)


@cache
def single(kernel: Indexed) -> Callable[..., Any]:
    """Return what computes the value at index 0 from parameters, as a Python number."""
    kind: Any = np.ctypeslib.as_ctypes_type(kernel.result)
    fill, pack = compiler.loop(kernel), _packed(kernel)

    def value(*values: float) -> Any:
        out = kind()
        fill(byref(out), 1, pack(*values))
        return out.value

    return value


@cache
def _packed(kernel: Indexed) -> Callable[..., bytes]:
    """Return what packs parameters into 8 bytes each."""
    chars = ("d" if dtype.kind == "f" else "Q" for dtype in kernel.parameters)
    return struct.Struct("=" + "".join(chars)).pack


NAME = "Philox4x32"
WORDS = 2**64


@final
class Philox:
    """The state behind a generator: all that a call's values depend on.

    Element i of a call is a function of the key, the call's number and i: the same on
    every device, however a call is divided among threads.

    Parameters
    ----------
    seed : None, int, sequence of int, or numpy.random.SeedSequence
        As :func:`numpy.random.default_rng` takes it; None asks the operating system.

    Attributes
    ----------
    seed_seq : numpy.random.SeedSequence
        What the key was made from.

    Raises
    ------
    TypeError, ValueError
        ``seed`` is none of these, or negative.

    Examples
    --------
    >>> bits = Philox(0)
    >>> bits.take()[1], bits.take()[1], bits.state["state"]["call"]
    (0, 1, 2)
    """

    def __init__(self, seed: Any = None) -> None:
        sequence = isinstance(seed, np.random.SeedSequence)
        self.seed_seq = seed if sequence else _seed_sequence(seed)
        self._key = int(self.seed_seq.generate_state(1, np.uint64)[0])
        self._call = 0
        self._lock = threading.Lock()  # guards the two above

    def take(self) -> tuple[int, int]:
        """Return the key and the number of a call that is nobody else's.

        Returns
        -------
        tuple of int
            The key, of 64 bits, and the number.

        Examples
        --------
        >>> Philox(0).take()[1]
        0
        """
        with self._lock:
            call = self._call
            self._call = (call + 1) % WORDS
            return self._key, call

    @property
    def state(self) -> dict[str, Any]:
        """The key and the number of the next call; may be set.

        Raises
        ------
        ValueError
            What is set is the state of another kind of generator.
        """
        with self._lock:
            state = {"key": self._key, "call": self._call}
            return {"bit_generator": NAME, "state": state}

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        try:
            name, state = value["bit_generator"], value["state"]
            key, call = (int(state[word]) % WORDS for word in ("key", "call"))
        except (TypeError, KeyError) as error:
            message = "a state is a dict, as bit_generator.state returns it"
            raise ValueError(message) from error
        if name != NAME:
            raise ValueError(f"state is of {name}, not of {NAME}")
        with self._lock:
            self._key, self._call = key, call

    def spawn(self, n_children: int) -> list[Philox]:
        """Return new independent sources, as :meth:`numpy.random.SeedSequence.spawn`.

        Parameters
        ----------
        n_children : int
            How many.

        Returns
        -------
        list of Philox
            Others each time it is called.

        Raises
        ------
        ValueError, TypeError
            ``n_children`` is negative, or no integer.
        MemoryError
            No list holds so many.

        Examples
        --------
        >>> one, two = Philox(0).spawn(2)
        >>> one.take() == two.take()
        False
        """
        count = operator.index(n_children)
        if count < 0:
            raise ValueError(f"n_children is {count}: ask for 0 generators or more")
        if count > sys.maxsize >> 16:  # past all addresses: NumPy would not end
            raise MemoryError(f"n_children is {count}: no list holds so many")
        return [Philox(seed) for seed in self.seed_seq.spawn(count)]

    def __getstate__(self) -> dict[str, Any]:
        return {"seed_seq": self.seed_seq, "state": self.state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._lock = threading.Lock()
        self.seed_seq = state["seed_seq"]
        self.state = state["state"]


def _seed_sequence(seed: Any) -> np.random.SeedSequence:
    try:
        _refuse_endless(seed)
        return np.random.SeedSequence(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"the seed is {shown(seed)} in xdev.random.default_rng(seed, device): use "
            f"None, whole numbers from 0, or a numpy.random.SeedSequence ({error})"
        ) from error


def _refuse_endless(nested: Any, depth: int = 0) -> None:
    """Refuse what contains itself: NumPy follows it until the stack ends."""
    if type(nested) is np.ndarray or not hasattr(nested, "__len__"):
        return
    if depth == DEEPEST:
        raise ValueError(f"a list is in itself, or {DEEPEST} are in one another")
    for part in () if isinstance(nested, str | bytes) else nested:
        _refuse_endless(part, depth + 1)


@final
class Draws:
    """Values of kernels; each draw is one call of the source."""

    def __init__(self, source: Philox, device: Device) -> None:
        self.source, self.device = source, device
        self.plain = plain_device(device)  # where values are computed
        self._fill, self._make = writers(self.plain)

    def adopted(self, x: Any) -> Any:
        """Return a result as an array of the device's library."""
        library = self.device.library
        if library is None or not is_array(x):
            return x
        return natives(library).adopt(x, self.device.native)

    def number(self, kernel: Indexed, *values: float) -> Any:
        """Return one value, computed on the host, as a Python number."""
        key, call = self.source.take()
        return single(kernel)(key, call, *values)

    def array(self, kernel: Indexed, shape: Shape, *values: float) -> Any:
        """Return an array of values."""
        return self._make(kernel, shape, (*self.source.take(), *values))

    def words(self, shape: Shape) -> Any:
        """Return random words of 64 bits, as uint64."""
        return self.array(kernels.kernel(words64, UINT64), shape)

    def floats(
        self,
        function: Function,
        size: Any,
        *values: float,
        dtype: np.dtype[Any] = FLOAT64,
        out: Any = None,
    ) -> Any:
        """Return a number, an array, or ``out`` with values in it."""
        kernel, shape = kernels.kernel(function, dtype), shape_of(size)
        if out is not None:
            extents = out_shape(out, shape, dtype, self.device)
            out_of_reach = self.device.type == "fake" and device_of(out).library
            if out_of_reach or hasattr(out, "dask"):  # which has no memory
                write(out, self.array(kernel, extents, *values))
                return out
            self._fill(kernel, out, (*self.source.take(), *values))
            return out
        if shape is None:
            return self.number(kernel, *values)
        return self.adopted(self.array(kernel, shape, *values))

    def scaled(self, function: Function, size: Any, *parameters: Any) -> Any:
        """Return float64 values; the last parameter scales, one before it is added."""
        if not any(map(is_array, parameters)):
            return self.floats(function, size, *map(float, parameters))
        *offset, factor = parameters
        shape = broadcast(shape_of(size), *parameters)
        standard = (0.0, 1.0) if offset else (1.0,)
        values = self.array(kernels.kernel(function, FLOAT64), shape, *standard)
        facade.multiply(values, factor, out=values)
        if offset:
            facade.add(values, offset[0], out=values)
        return self.adopted(values)
