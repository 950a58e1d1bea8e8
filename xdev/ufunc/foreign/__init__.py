"""PyTorch's and JAX's arrays as arguments and results: the same memory, other types.

An adapter per library says what NumPy or CuPy array an argument is, and makes the
library's array of a result. Arrays that say all by ``__cuda_array_interface__`` alone
need none.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

# Arrays that lend their memory by NumPy's protocol, as Warp's: arguments and outputs.
#
# Results beside them are NumPy's. On CUDA ``__cuda_array_interface__`` says all.


def is_lender(kind: type) -> bool:
    """Say whether a type's objects do no more than to lend their memory.

    Examples
    --------
    >>> is_lender(np.ndarray)
    False
    """
    more = hasattr(kind, "__array_ufunc__") or hasattr(kind, "__array_namespace__")
    return hasattr(kind, "__array_interface__") and not more


class Adapter:
    """One library's arrays: here those of any that lend their memory.

    Attributes
    ----------
    mutable : bool
        Whether they may be written.
    """

    mutable = True

    def on_cuda(self, x: Any) -> bool:
        """Say whether an array is on a CUDA device."""
        return hasattr(x, "__cuda_array_interface__")

    def to_native(self, x: Any, name: str) -> Any:  # noqa: ARG002 - nothing is refused
        """Return an array's memory as a NumPy or CuPy array.

        Raises
        ------
        TypeError
            It has no such memory, or its library forbids it; ``name`` is the function.
        """
        return np.asarray(x)

    def stream(self, x: Any) -> int | None:  # noqa: ARG002 - of no array
        """Return the stream that its library works on.

        None where there is none, or it is not told: then a call's work is waited for.
        """
        return None

    def begin_write(self, x: Any, name: str, label: str = "out") -> None:
        """Tell the library that an array is about to be written.

        Raises
        ------
        TypeError
            That is forbidden; ``label`` is the argument, ``name`` the function. NumPy's
            flag says what is read-only.
        """

    def from_native(self, made: Any, like: Any) -> Any:  # noqa: ARG002
        """Return a NumPy or CuPy result, which is nobody else's, as its own array.

        On CUDA the work that writes the result is queued on the current stream.
        """
        return made


# Their modules, by the top-level module of the library's types.
LIBRARIES = {"torch": "torch", "jax": "jax", "jaxlib": "jax"}
LENDER = Adapter()
_known: dict[type, Adapter | None] = {}  # by exact type


def of(kind: type) -> Adapter | None:
    """Return the adapter of a type's arrays; None: it needs none."""
    try:
        return _known[kind]
    except KeyError:
        pass
    found: Adapter | None = LENDER if is_lender(kind) else None
    libraries = {base.__module__.partition(".")[0] for base in kind.__mro__}
    for library in libraries & LIBRARIES.keys():
        own = importlib.import_module(f"{__name__}.{LIBRARIES[library]}")
        found = own.ADAPTER if own.is_array_type(kind) else None
    return _known.setdefault(kind, found)


def any_of(operands: Iterable[Any]) -> bool:
    """Say whether one of them is a library's with an adapter."""
    return any(of(type(x)) is not None for x in operands)


def to_native(x: Any, name: str) -> Any:
    """Return the NumPy or CuPy array of an argument's memory; others as they came.

    Raises
    ------
    TypeError
        It has no such memory, or its library forbids it; ``name`` is the function.
    """
    adapter = of(type(x))
    return x if adapter is None else adapter.to_native(x, name)


def begin_write(x: Any, name: str) -> None:
    """Tell the library of an output that it is about to be written.

    Raises
    ------
    TypeError
        The library forbids it: its arrays are immutable, or a gradient needs them.
    """
    adapter = of(type(x))
    if adapter is not None:
        adapter.begin_write(x, name)


def from_native(made: Any, like: Any) -> Any:
    """Return a NumPy or CuPy result as an array of another's library, without a copy.

    Parameters
    ----------
    made : array
        The result; nobody else has it.
    like : array
        One on the same device.

    Examples
    --------
    >>> from_native(np.ones(2), np.zeros(3))
    array([1., 1.])
    """
    adapter = of(type(like))
    if adapter is not None:
        return adapter.from_native(made, like)
    if type(like).__module__.startswith("numba."):
        interface = made.__cuda_array_interface__
        cuda = _optional.numba_cuda()
        return cuda.from_cuda_array_interface(interface, owner=made, sync=False)
    return made


def on_host(
    call: Callable[..., Any],
    name: str,
    args: Sequence[Any],
    keywords: dict[str, Any],
    written: Sequence[Any],
) -> Any:
    """Call a function on what its arguments in host memory are to NumPy.

    Parameters
    ----------
    call : callable
        ``call(*args, **keywords)``, of NumPy arrays; it returns arrays.
    name : str
        The function's, for errors.
    args, keywords
        The arguments; ``out`` may be a tuple.
    written : sequence
        Those of the arguments that it writes; None does not matter.

    Returns
    -------
    array, tuple of arrays or None
        Arguments where it returned those, else arrays of the first array's library.

    Raises
    ------
    TypeError
        A library forbids that its array is read, or written.
    """
    given: dict[int, tuple[Any, Any]] = {}  # by identity: as NumPy's, as they came

    def read(x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(map(read, x))
        view = to_native(x, name)
        given[id(view)] = view, x
        return view

    inputs = [read(x) for x in args]
    first = next((x for x, y in zip(args, inputs, strict=True) if _is_array(y)), None)
    keywords = {key: read(x) for key, x in keywords.items()}
    for x in written:
        begin_write(x, name)

    def back(result: Any) -> Any:
        if isinstance(result, tuple):
            return tuple(map(back, result))
        if id(result) in given:
            return given[id(result)][1]
        return None if result is None else from_native(result, first)

    return back(call(*inputs, **keywords))


def _is_array(x: Any) -> bool:
    return hasattr(type(x), "__array_interface__") and not isinstance(x, np.generic)


# Which arguments of a ufunc are arrays on a CUDA device.

NUMBERS = (bool, int, float, complex, np.generic)
ALWAYS: set[type] = set()  # types whose every array is on a CUDA device, once seen


def is_cuda(x: Any) -> bool:
    """Say whether ``x`` is an array on a CUDA device, of any library."""
    cls = type(x)
    if cls in ALWAYS:
        return True
    if cls is np.ndarray or issubclass(cls, NUMBERS):
        return False
    adapter = of(cls)
    if adapter is not None:
        return adapter.on_cuda(x)
    if not hasattr(cls, "__cuda_array_interface__"):
        return False
    if cls.__module__.partition(".")[0] in {"cupy", "numba"}:
        ALWAYS.add(cls)
        return True
    return hasattr(x, "__cuda_array_interface__")
