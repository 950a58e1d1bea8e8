"""Two stand-ins for GPUs, for tests where none is.

Their arrays (:mod:`xdev.device.fake_arrays`) lie in the host's memory and are computed
by NumPy, but can do no more than CuPy's: they meet no array of another device and turn
into no NumPy array unasked. Only what CUDA's compiler says, and races, are not seen.
"""

from __future__ import annotations

import inspect
import weakref
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.device.choice import Device
from xdev.device.registry import Backend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


COUNT = 2  # array_api_strict's devices that are not the CPU are as many


@final
class FakeBackend(Backend):
    """Streams and events of the host, arrays of :mod:`xdev.device.fake_arrays`."""

    def count(self) -> int:
        """Return 2."""
        return COUNT

    def reason(self, index: int) -> str | None:
        """Refuse every index but 0 and 1."""
        if index < COUNT:
            return None
        return "there are two fake devices: use 'fake:0' or 'fake:1'"

    def native(self, index: int) -> Device:
        """Return the device itself, as the arrays' ``device`` is."""
        return Device(f"fake:{index}")


BACKEND = FakeBackend()
LARGE = 16 << 20  # bytes; of less the host has room while they are refused
_allocators: list[Callable[[int, int], object]] = []  # none, or the one that serves
# By identity of the array that owns the bytes, as long as it lives.
_held: dict[int, tuple[weakref.ref[Any], object]] = {}


def set_allocator(allocator: Callable[[int, int], object]) -> None:
    """Let ``allocator(nbytes, index)`` give the blocks; dropping one releases it."""
    _allocators[:] = [allocator]


def make_room(nbytes: int, index: int) -> None:
    """See to it that fake device ``index`` has room, before NumPy makes the bytes.

    Raises
    ------
    OutOfMemoryError
        The device's pool has none.
    """
    if nbytes >= LARGE and _allocators:
        _allocators[-1](nbytes, index)  # it goes back at once, for whoever is next


def settle(values: np.ndarray[Any, Any], index: int) -> np.ndarray[Any, Any]:
    """Count an array's memory as fake device ``index``'s; it is copied if not NumPy's.

    Raises
    ------
    OutOfMemoryError
        The device's pool has no room for it.
    """
    owner = _owner(values)
    if owner.base is not None:  # a pool's memory of the host, or a foreign buffer
        values = owner = values.copy(order="K")
    key = id(owner)
    if key not in _held and owner.nbytes and _allocators:
        block = _allocators[-1](owner.nbytes, index)
        _held[key] = weakref.ref(owner, lambda _: _held.pop(key, None)), block
    return values


def block_of(owner: np.ndarray[Any, Any]) -> object:
    """Return the block that is held for an array of its own bytes, None without one."""
    return _held.get(id(owner), (None, None))[1]


def _owner(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    while isinstance(values.base, np.ndarray):
        values = values.base
    return values


#: The data types, by NumPy's characters.
DTYPES = "?bhilqBHILQefdFDE"  # E is ml_dtypes' bfloat16
#: The methods that ``numpy.ndarray`` and ``cupy.ndarray`` share, with the parameters
#: that both have; a star takes any number of them.
METHODS = {
    **dict.fromkeys(("all", "any", "max", "min"), "axis out keepdims"),
    **dict.fromkeys(("argmax", "argmin"), "axis out keepdims"),
    **dict.fromkeys(("mean", "prod", "sum"), "axis dtype out keepdims"),
    **dict.fromkeys(("std", "var"), "axis dtype out ddof keepdims"),
    **dict.fromkeys(("cumprod", "cumsum"), "axis dtype out"),
    **dict.fromkeys(("argpartition", "partition"), "kth axis"),
    **dict.fromkeys(("argsort", "sort"), "axis kind"),
    **dict.fromkeys(("conj", "conjugate", "item", "nonzero", "tolist"), ""),
    **dict.fromkeys(("copy", "flatten", "ravel", "tobytes"), "order"),
    "astype": "dtype order casting subok copy",
    "clip": "min max out",
    "compress": "condition axis out",
    "diagonal": "offset axis1 axis2",
    "dot": "b out",
    "fill": "value",
    "put": "indices values mode",
    "repeat": "repeats axis",
    "reshape": "* order copy",
    "round": "decimals out",
    "searchsorted": "v side sorter",
    "squeeze": "axis",
    "swapaxes": "axis1 axis2",
    "take": "indices axis out",
    "trace": "offset axis1 axis2 dtype out",
    "transpose": "*",
    "view": "dtype",
}
#: Methods whose results are the host's.
DOWNLOADS = ("item", "tobytes", "tolist")
#: What the arguments behind a star are, together.
STARRED = {"reshape": "shape", "transpose": "axes"}
#: Their shared attributes.
ATTRIBUTES = (
    *("T", "dtype", "flags", "imag", "itemsize", "mT", "nbytes", "ndim", "real"),
    *("shape", "size", "strides"),
)
#: Those that can be set.
SETTABLE = ("imag", "real", "shape")
UNARY = ("neg", "pos", "abs", "invert")
#: By Python's names: how an operator is written, and NumPy's ufunc of it.
BINARY = {
    "add": ("+", "add"),
    "sub": ("-", "subtract"),
    "mul": ("*", "multiply"),
    "truediv": ("/", "true_divide"),
    "floordiv": ("//", "floor_divide"),
    "mod": ("%", "remainder"),
    "divmod": ("divmod", "divmod"),
    "pow": ("**", "power"),
    "matmul": ("@", "matmul"),
    "and": ("&", "bitwise_and"),
    "or": ("|", "bitwise_or"),
    "xor": ("^", "bitwise_xor"),
    "lshift": ("<<", "left_shift"),
    "rshift": (">>", "right_shift"),
}
COMPARISONS = {
    "eq": ("==", "equal"),
    "ne": ("!=", "not_equal"),
    "lt": ("<", "less"),
    "le": ("<=", "less_equal"),
    "gt": (">", "greater"),
    "ge": (">=", "greater_equal"),
}
#: Binary operators that have no form in place: ``@=`` makes a new array, as CuPy's.
NOT_IN_PLACE = ("divmod", "matmul")
CONVERSIONS = ("bool", "int", "float", "complex")
#: By their names in NumPy's functions: the parameters that are integers of Python's, or
#: sequences of them; and the one truth.
INTEGERS = frozenset(
    (
        *("axes", "axis", "axis1", "axis2", "destination", "k", "keepdims", "n"),
        *("newshape", "num", "offset", "reps", "s", "shape", "source"),
    )
)
#: Those that are sequences of integers, or arrays.
COUNTS = frozenset(("repeats", "shift"))


def positions(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's parameters that are given by position.

    Examples
    --------
    >>> import numpy as np
    >>> positions(np.expand_dims)
    ('a', 'axis')
    """
    if isinstance(function, np.ufunc):  # NumPy 2.3 has no signatures of them
        inputs = [f"x{k + 1}" for k in range(function.nin)]
        return (*(inputs if inputs[1:] else ["x"]), *["out"] * function.nout)
    try:
        found = inspect.signature(function).parameters.values()
    except ValueError:  # nor has it of others that are written in C
        return ()
    place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(each.name for each in found if each.kind in place)


def refuse_arrays(name: str, kind: Any, arguments: Iterable[tuple[str, Any]]) -> None:
    """Refuse arrays where Python's integers belong.

    Parameters
    ----------
    name : str
        The function's, for the error.
    kind : type
        The arrays'.
    arguments : iterable of (str, object)
        What it got, by the names of its parameters.

    Raises
    ------
    TypeError
        One of them is such an array, or holds one.
    """
    for label, x in arguments:
        if label in INTEGERS or (label in COUNTS and not isinstance(x, kind)):
            _refuse(name, kind, label, x)


def _refuse(name: str, kind: Any, label: str, x: Any) -> None:
    if isinstance(x, list | tuple):
        for index, part in enumerate(x):
            _refuse(name, kind, f"{label}[{index}]", part)
    elif isinstance(x, kind):
        kind_of_it = "bool" if label == "keepdims" else "int"
        way = f"tuple({label}.tolist())" if x.ndim else f"{kind_of_it}({label})"
        raise TypeError(
            f"{name}: {label} is an array on {x.device}, which turns into no "
            f"{kind_of_it} of Python's unasked: pass {way}"
        )
