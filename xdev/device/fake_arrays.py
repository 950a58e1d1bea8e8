"""``FakeArray``: an array on a fake device, as strict as CuPy's; and its library.

:data:`fake` stands where ``cupy`` stands on CUDA: ``xdev.namespace(x)`` gives it, for
what the standard does not have.
"""

from __future__ import annotations

import inspect
import sys
from functools import cache, partial
from itertools import chain, count
from types import ModuleType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev._freed import Remains, use_after_free
from xdev._numpy_names import advice_on
from xdev.device.choice import CPU, Device
from xdev.device.copies import announce
from xdev.device.fake import NOT_IN_CUPY, account
from xdev.errors import DeviceMismatchError, quoted, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Values = np.ndarray[Any, Any]
    Labelled = dict[str, Any]  # a call's arrays by what the call names them

EXTENSION = 12  # dlpack.h: kDLExtDev
DLPACK_CPU = (1, 0)  # dlpack.h: kDLCPU
FIRST = Device("fake")  # where creation functions put their results, as CuPy's do
#: Numbers are not arrays, whatever they can turn into.
NUMBERS = (bool, int, float, complex, np.generic)
DEEPEST = 64  # lists in one another; as many axes has an array of NumPy's
#: The data types, by NumPy's characters.
DTYPES = "?bhilqBHILQefdFDE"  # E is ml_dtypes' bfloat16
#: What ``numpy.ndarray`` has and fake arrays have not: what CuPy's lack or have
#: otherwise.
LEFT_OUT = (
    *("base", "byteswap", "choose", "ctypes", "data", "device", "dump", "dumps"),
    *("flat", "getfield", "resize", "setfield", "setflags", "to_device", "tofile"),
)
#: Parameters that NumPy's methods alone have.
ONLY_NUMPYS = frozenset(("correction", "initial", "mean", "stable", "where"))
#: Methods whose results are the host's.
NUMBERS_OF = ("__bool__", "__int__", "__float__", "__complex__")
DOWNLOADS = ("item", "tobytes", "tolist", *NUMBERS_OF)
#: Attributes that can be set.
SETTABLE = ("imag", "real", "shape")
#: By their names in NumPy's functions: the parameters that are integers of Python's, or
#: sequences of them; and the one truth.
INTEGERS = (
    *("axes", "axis", "axis1", "axis2", "destination", "k", "keepdims", "n"),
    *("newshape", "num", "offset", "reps", "s", "shape", "source"),
)
#: Those that are sequences of integers, or arrays.
COUNTS = ("repeats", "shift")


@final
class FakeArray:
    """An array on a fake device; made with ``device="fake"`` or ``XDEV_DEVICE=fake``.

    It has what ``numpy.ndarray`` and ``cupy.ndarray`` share, and for array_api_compat,
    which knows CuPy's by name, ``__array_namespace__``. It refuses what CuPy's refuse:
    to turn into a NumPy array unasked, to meet arrays of the host or of another device,
    to be an index of the host's. NumPy's functions refuse it.

    Attributes
    ----------
    device : Device
        ``fake:0`` or ``fake:1``. All others are those of :class:`numpy.ndarray`.

    Examples
    --------
    >>> import numpy as np
    >>> import xdev
    >>> x = xdev.asarray([1.0, 2.0], device="fake")
    >>> x + 1, x.sum() == 3
    (array([2., 3.], device='fake:0'), array(True, device='fake:0'))
    >>> np.asarray(x)
    Traceback (most recent call last):
    TypeError: an array on fake:0 does not turn into a NumPy array unasked: copy it with
    xdev.to_numpy(x)
    """

    __slots__ = ("__weakref__", "_values", "device")
    __hash__ = None  # type: ignore[assignment]

    _values: Values
    device: Device

    def __init__(self, values: Values, device: Device) -> None:
        device_is_fake = isinstance(device, Device) and device.type == "fake"
        if not (device_is_fake and isinstance(values, np.ndarray)):
            what = f"{type_name(values)} on {quoted(device)} makes no FakeArray"
            raise TypeError(f"{what}: use xdev.asarray(x, device='fake')")
        if values.dtype.char not in DTYPES:
            message = f"arrays on {device} have no dtype {values.dtype}, as on CUDA"
            raise TypeError(message)
        self._values = account(values, device.index)
        self.device = device

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """Return :mod:`xdev`."""
        versions = (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
        if api_version not in versions:
            raise ValueError(f"version {quoted(api_version)} is not here: use 2025.12")
        return sys.modules["xdev"]

    # -- what goes to the host -------------------------------------------------------

    def __array__(self, *_: Any, **__: Any) -> Any:
        what = f"an array on {self.device} does not turn into a NumPy array unasked"
        raise TypeError(f"{what}: copy it with xdev.to_numpy(x)")

    def __array_function__(self, function: Any, *_: Any) -> Any:
        way = advice_on(function)
        more = f"{way}, or " if way else ""
        got = f"a function of NumPy's, and got an array on {self.device}"
        way = f"{more}copy it with xdev.to_numpy(x) first"
        raise TypeError(f"{function.__name__}() is {got}: {way}")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **how: Any) -> Any:
        """Serve the operators of NumPy's arrays and scalars, which call their ufunc."""
        first, *others = inputs
        if method != "__call__" or not isinstance(first, np.ndarray | np.generic):
            return self.__array_function__(ufunc)
        if not first.ndim:
            first = inputs[0][()]  # a scalar: NumPy compares it as an array
        return run(ufunc.__name__, ufunc, first, *others, **how)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: Any = None,
    ) -> Any:
        """Export a copy to the host, where that is asked for by ``dl_device``.

        Raises
        ------
        BufferError
            It is not.
        """
        if dl_device != DLPACK_CPU or copy is False:
            text = f"an array on {self.device} leaves it only as a copy"
            raise BufferError(f"{text}: xdev.to_numpy(x), or xdev.to_device(x, 'cpu')")
        announce(self.device, CPU, self.nbytes)
        return self._values.copy().__dlpack__(max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return EXTENSION, self.device.index

    # -- what Python asks of a container ---------------------------------------------

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        if not self._values.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        return run("x[y]", np.ndarray.__getitem__, self, _with_ends(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        run("x[y] = z", np.ndarray.__setitem__, self, _with_ends(index), value)

    def __reduce__(self) -> Any:
        return FakeArray, (self._values.copy(), self.device)

    def __format__(self, spec: str) -> str:
        text = format(self._values[()], spec)
        if spec:  # else it is str(x): printing is not counted
            announce(self.device, CPU, self.nbytes)
        return text

    def __repr__(self) -> str:
        text = repr(self._values)
        return f"{text[:-1]}, device='{self.device}')"

    def __str__(self) -> str:
        return str(self._values)


def _unwrapped(name: str, arrays: Labelled, counts: bool, x: Any, label: str) -> Any:
    """Return an argument with the values behind fake arrays; note all arrays."""
    kind = type(x)
    if isinstance(x, Remains):
        raise use_after_free(x, name)
    if isinstance(x, NUMBERS):
        return x
    if kind is tuple or kind is list:
        if label.count("[") == DEEPEST:
            raise ValueError(f"{name}: a list is in itself, or in {DEEPEST} others")
        inside = partial(_unwrapped, name, arrays, counts)
        return kind(inside(y, f"{label}[{i}]") for i, y in enumerate(x))
    if kind is FakeArray and counts:
        _refuse_integer(name, x, label)
    if hasattr(kind, "__array__") or hasattr(kind, "__dlpack__"):
        arrays[label] = x
    return x._values if kind is FakeArray else x  # noqa: SLF001 - a friend


def _refuse_integer(name: str, x: Any, label: str) -> None:
    """Refuse an array where Python's integers belong."""
    parameter, inside, _ = label.partition("[")
    if parameter in INTEGERS or (parameter in COUNTS and inside):
        kind = "bool" if parameter == "keepdims" else "int"
        way = f"tuple({label}.tolist())" if x.ndim else f"{kind}({label})"
        what = f"{label} is an array on {x.device}, which turns into no {kind} unasked"
        raise TypeError(f"{name}: {what}: pass {way}")


def _wrapped_result(arrays: Labelled, result: Any, where: Device) -> Any:
    """Return a result with fake arrays for what NumPy computed."""
    if isinstance(result, np.ndarray):
        for x in arrays.values():
            if x._values is result:  # noqa: SLF001 - a friend
                return x
        return FakeArray(result, where)
    if isinstance(result, np.generic):
        return FakeArray(np.asarray(result), where)
    if isinstance(result, tuple | list):
        parts = [_wrapped_result(arrays, part, where) for part in result]
        return getattr(type(result), "_make", type(result))(parts)
    return result


def _mismatch(name: str, arrays: Labelled, odd: str, where: Device) -> Exception:
    there = _device(arrays[odd])
    ways, beside = [f"xdev.to_device({odd}, '{where}')"], "what is made"
    for label, x in arrays.items():
        if _device(x) == where:
            beside = f"{label} ({type_name(x)})"
            ways.append(f"xdev.to_device({label}, '{there}')")
            break
    both = f"{odd} ({type_name(arrays[odd])}) is on {there}, {beside} is on {where}"
    text = f"{name} got arrays of two devices: {both}; move one, {' or '.join(ways)}"
    return DeviceMismatchError(text)


def _device(x: Any) -> Device | str:
    return x.device if type(x) is FakeArray else "cpu"


def _with_ends(index: Any) -> Any:
    """Return an index whose slices have Python's integers: CuPy reads arrays there."""
    if isinstance(index, tuple):
        return tuple(map(_with_ends, index))
    if isinstance(index, slice):
        return slice(*map(_end, (index.start, index.stop, index.step)))
    return index


def _end(x: Any) -> Any:
    number = isinstance(x, FakeArray) and not x.ndim and x.dtype.kind in "iu"
    return int(x) if number else x


def run(
    name: str,
    function: Callable[..., Any],
    /,
    *args: Any,
    on: Device | None = None,
    names: tuple[str, ...] = (),
    counts: bool = True,
    **options: Any,
) -> Any:
    """Call a function of NumPy's on fake arrays of one device.

    Return fake arrays for arrays and NumPy's scalars; an argument that comes back, as
    ``out=`` does, is itself. ``name`` is the function's in errors, ``names`` its
    positional parameters'. Results are where arguments are, else on ``on``, else on
    ``fake:0``. With ``counts`` parameters called ``n`` or ``axis`` take integers, as
    NumPy's do.

    Raises
    ------
    DeviceMismatchError
        There are arrays of the host or of two devices.
    TypeError
        An array stands where Python's integers belong.
    """
    arrays: Labelled = {}
    inside = partial(_unwrapped, name, arrays, counts)
    first = names or tuple("xyz")
    labels = chain(first, (f"argument {number}" for number in count(len(first) + 1)))
    values = list(map(inside, args, labels))
    named = {key: inside(x, key) for key, x in options.items()}
    devices = (x.device for x in arrays.values() if type(x) is FakeArray)
    where = on or next(devices, FIRST)
    for label, x in arrays.items():
        if _device(x) != where:
            raise _mismatch(name, arrays, label, where)
    return _wrapped_result(arrays, function(*values, **named), where)


def positions(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's parameters that are given by position."""
    if isinstance(function, np.ufunc):  # NumPy 2.3 has no signatures of them
        inputs = [f"x{k + 1}" for k in range(function.nin)]
        return (*(inputs if inputs[1:] else ["x"]), *["out"] * function.nout)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # nor has it of others that are written in C
        return ()
    place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(each.name for each in parameters if each.kind in place)


def strict(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy's for fake arrays, which are not integers to it."""
    return partial(run, name, function, names=positions(function))


def values_of(x: FakeArray) -> Values:
    """Return the memory behind a fake array: for xdev's own explicit copies."""
    return x._values  # noqa: SLF001 - a friend


_positions = cache(positions)  # of methods, found at their first calls


def _method(name: str) -> Any:
    function, full = getattr(np.ndarray, name), f"x.{name}()"
    twin = getattr(np, name, function)  # a function whose parameters have names

    def method(self: Any, *args: Any, **options: Any) -> Any:
        unknown = ONLY_NUMPYS.intersection(options)
        if unknown or (name == "item" and args):
            what = "=, ".join((*unknown, "")) or "an index"
            raise TypeError(f"{full} takes no {what}: CuPy's arrays have none")
        result = run(full, function, self, *args, names=_positions(twin), **options)
        if name in DOWNLOADS:
            announce(self.device, CPU, self.nbytes)
        return result

    method.__name__, method.__doc__ = name, f"As ``numpy.ndarray.{name}``."
    return method


def _attribute(name: str) -> Any:
    def get(self: Any) -> Any:
        value = getattr(self._values, name)
        return FakeArray(value, self.device) if isinstance(value, np.ndarray) else value

    def set_(self: Any, value: Any) -> None:
        run(f"x.{name} = y", getattr(np.ndarray, name).__set__, self, value)

    settable = set_ if name in SETTABLE else None
    return property(get, settable, doc=f"As ``numpy.ndarray.{name}``.")


def _operator(name: str) -> Any:
    function = getattr(np.ndarray, name)

    def operator(self: Any, *others: Any) -> Any:
        if others and isinstance(others[0], list | tuple):
            return NotImplemented
        return run(f"x.{name}()", function, self, *others)

    operator.__name__ = name
    return operator


def _members() -> Iterator[tuple[str, Any]]:
    """Yield the methods, attributes and operators that are NumPy's arrays' too."""
    public = {name for name in dir(np.ndarray) if not name.startswith("_")}
    for name in (*sorted(public.difference(LEFT_OUT)), *DOWNLOADS):
        is_method = callable(getattr(np.ndarray, name))
        yield name, (_method if is_method else _attribute)(name)
    for name, member in vars(np.lib.mixins.NDArrayOperatorsMixin).items():
        if callable(member) and name != "__imatmul__":  # CuPy's makes a new array
            yield name, _operator(name)


for _name, _member in _members():
    setattr(FakeArray, _name, _member)


del _name, _member


@final
class FreedArray(Remains, FakeArray):  # type: ignore[misc]
    """What is left of an array whose memory was given back by hand."""

    __slots__ = ()


#: Rooms of their own: random numbers and tests are not wrapped.
ROOMS = ("linalg", "fft")
#: Functions that upload host arrays when asked to.
UPLOADS = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray")


class FakeNamespace(ModuleType):
    """NumPy's functions by name, wrapped at their first use."""

    ndarray = FakeArray

    def __init__(self, name: str, room: str = "") -> None:
        super().__init__(name, __doc__)
        self._room = room

    def __getattr__(self, name: str) -> Any:
        room = getattr(np, self._room[:-1]) if self._room else np
        hidden = name.startswith("_") or f"{self._room}{name}" in NOT_IN_CUPY
        value = None if hidden else getattr(room, name, None)
        is_room = isinstance(value, ModuleType)
        if (value is None and name != "newaxis") or (is_room and name not in ROOMS):
            text = f"{self.__name__} has no {name!r}: it has what NumPy and CuPy share"
            raise AttributeError(f"{text}; xdev.to_numpy(x) copies one to the host")
        if is_room:
            value = FakeNamespace(f"{self.__name__}.{name}", f"{name}.")
        elif callable(value) and not isinstance(value, type):
            value = _function(f"{self.__name__}.{name}", value, name in UPLOADS)
        setattr(self, name, value)
        return value


def _function(name: str, function: Any, uploads: bool) -> Any:
    checked = strict(name, function)

    def call(*args: Any, **options: Any) -> Any:
        if uploads and args and isinstance(args[0], np.ndarray):
            args = FakeArray(args[0].copy(order="K"), FIRST), *args[1:]
        return checked(*args, **options)

    call.__name__, call.__doc__ = name.rpartition(".")[2], function.__doc__
    return call


fake = FakeNamespace("xdev.fake")
