"""Bridges: other libraries' allocations from xdev's pools.

A bridge goes in at xdev's first CUDA use, or by :func:`install`. An allocator that the
user set stays: the bridge then does not go in, and :func:`left_alone` says why.
"""

from __future__ import annotations

import importlib.util
import sys
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, final

from xdev import _optional
from xdev._forks import module_lock
from xdev.device import Device
from xdev.errors import ConfigurationError, OutOfMemoryError, quoted
from xdev.memory import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from xdev.memory.blocks import Chunk
    from xdev.memory.pools import Pool

__all__ = ["install", "installed", "left_alone", "uninstall", "using"]
__dir__ = __all__.copy  # what Tab shows

#: By the library's name: the module that it needs, the bridge's module and its class,
#: whose ``install()`` and ``uninstall()`` return what is in the way, None for nothing.
#: That of operators is of a higher floor: here is its name alone.
BRIDGES = {
    "cupy": ("cupy", "xdev.memory.bridges.cupy", "CupyBridge"),
    "numba": ("numba_cuda", "xdev.memory.bridges.numba", "NumbaBridge"),
    "numpy": ("numpy", "xdev.memory.bridges.opt_in", "NumpyBridge"),
    "torch": ("torch", "xdev.memory.bridges.opt_in", "TorchBridge"),
    "cupy-operators": ("cupy", "xdev.facade.elementwise", "OperatorsBridge"),
}
OPT_IN = {"cupy-operators", "numpy", "torch"}  # these go in only by name
DRIVERLESS = {"cupy-operators", "numpy"}  # these start no device

_lock = module_lock()  # guards the two below
_installed: dict[str, Any] = {}  # the bridges that are in
_left_alone: dict[str, str] = {}


def install(*names: str) -> None:
    """Let libraries take their memory from xdev's pools.

    Without effect where a bridge is in, and where the user has set an allocator of
    their own, which stays (:func:`left_alone`).

    Parameters
    ----------
    *names : {"cupy", "cupy-operators", "numba", "numpy", "torch"}
        Which libraries; without any, CuPy and Numba where they are installed. With
        ``"cupy-operators"`` the operators and reducing methods of CuPy's arrays are the
        engine's kernels.

    Raises
    ------
    ConfigurationError
        There is no such bridge; the text lists those that are. Or it needs xdev's
        compiled part, as NumPy's and PyTorch's do; the text says how to get it.
    DeviceUnavailableError
        The library is not installed; the text has the command.

    Examples
    --------
    >>> from xdev.memory import bridges
    >>> bridges.install("numpy")  # doctest: +SKIP
    >>> bridges.install("polars")
    Traceback (most recent call last):
    xdev.errors.ConfigurationError: there is no bridge into 'polars': use 'cupy', ...
    """
    for name in names:
        _check(name)
    if not DRIVERLESS.issuperset(names or BRIDGES) and Device("cuda").available:
        Device("cuda").require()  # its first use puts the default bridges in
    for name in names or [n for n in BRIDGES if n not in OPT_IN and _present(n)]:
        if name in _installed:
            continue
        _, room, class_name = BRIDGES[name]
        # It loads its library, which may call back here, in whichever thread loads it
        # first: that one would wait for the lock, and who has the lock for the library.
        bridge = getattr(importlib.import_module(room), class_name)()
        with _lock:
            if name in _installed:
                continue
            obstacle = bridge.install()
            if obstacle is None:
                _installed[name] = bridge
                _left_alone.pop(name, None)
            else:
                _left_alone[name] = obstacle


def uninstall(*names: str) -> None:
    """Put back the allocators that were there; blocks in use stay the pool's.

    Parameters
    ----------
    *names : {"cupy", "cupy-operators", "numba", "numpy", "torch"}
        Which libraries; without any, all bridges that are in and can come out.

    Raises
    ------
    ConfigurationError
        There is no such bridge: the text lists those that are. Or it cannot come out:
        the text says why.

    Examples
    --------
    >>> from xdev.memory import bridges
    >>> bridges.uninstall("torch")  # nothing where it is not in
    >>> "torch" in bridges.installed()
    False
    """
    for name in names:
        _check(name)
    with _lock:
        for name in names or tuple(_installed):
            bridge = _installed.get(name)
            obstacle = None if bridge is None else bridge.uninstall()
            if obstacle is None:
                _installed.pop(name, None)
            elif names:
                raise ConfigurationError(f"the bridge into {name} stays: {obstacle}")


@contextmanager
def using(*names: str) -> Iterator[None]:
    """Let libraries take their memory from xdev's pools while it is open.

    Bridges that were in before stay in after.

    Parameters
    ----------
    *names : {"cupy", "cupy-operators", "numba", "numpy", "torch"}
        Which libraries; without any, CuPy and Numba where they are installed.

    Returns
    -------
    context manager
        They are in inside its ``with`` block.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        As :func:`install` raises them; of a bridge that cannot come out, at the end.

    Examples
    --------
    >>> import numpy as np
    >>> from xdev import memory
    >>> before = memory.allocated("cpu")
    >>> with using("numpy"):  # doctest: +SKIP
    ...     x = np.ones(100_000)
    >>> memory.allocated("cpu") - before  # doctest: +SKIP
    800000
    """
    before = installed()
    install(*names)
    try:
        yield
    finally:
        for name in installed() - before:
            uninstall(name)


def installed() -> frozenset[str]:
    """Return the names of the bridges that are in.

    Returns
    -------
    frozenset of str
        As :func:`install` takes them.

    Examples
    --------
    >>> from xdev.memory import bridges
    >>> isinstance(bridges.installed(), frozenset)
    True
    """
    with _lock:
        return frozenset(_installed)


def left_alone() -> dict[str, str]:
    """Return the libraries whose bridge did not go in, and what was found there.

    Returns
    -------
    dict of str to str
        By the bridge's name; empty where none found an allocator of the user's.

    Examples
    --------
    >>> from xdev.memory import bridges
    >>> bridges.left_alone().keys().isdisjoint(bridges.installed())
    True
    """
    with _lock:
        return dict(_left_alone)


def install_default() -> None:
    """Put the bridges in at xdev's first CUDA use.

    CuPy's goes in now. Numba's goes in now where ``numba.cuda`` is loaded, else when
    it is (whoever loads it): loading it takes most of a second, and a program that
    does not need it should not wait.
    """
    install("cupy")
    _when_imported("numba.cuda", _install_numba)


def _install_numba() -> None:
    if _present("numba"):
        install("numba")


def install_operators() -> None:
    """Put CuPy's operators in, now or when CuPy is imported."""
    _when_imported("cupy", partial(install, "cupy-operators"))


def device_pool(index: int) -> Pool:
    """Return the pool of CUDA device number ``index``."""
    return registry.pool(f"cuda:{index}")


def miss(pool: Pool, nbytes: int, stream: int) -> tuple[Chunk, int] | None:
    """Return what C functions are to hand out where their lists are empty, or None."""
    with suppress(OutOfMemoryError):
        return pool.take_for_c(nbytes, stream)
    return None


def _present(name: str) -> bool:
    return _optional.installed(BRIDGES[name][0])


def _check(name: str) -> None:
    if name not in BRIDGES:
        names = ", ".join(map(repr, BRIDGES))
        raise ConfigurationError(f"there is no bridge into {quoted(name)}: use {names}")


def _when_imported(name: str, callback: Callable[[], None]) -> None:
    """Call back once: now, or right after the module ``name`` has been loaded."""
    if name in sys.modules:
        callback()
    else:
        sys.meta_path.insert(0, _Finder(name, callback))


@final
class _Finder:
    """Finds one module as the others do, and calls once it is loaded; then it goes."""

    def __init__(self, name: str, callback: Callable[[], None]) -> None:
        self._name, self._callback = name, callback

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Return the specification of the one module, None for others."""
        if name != self._name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            load = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                vars(loader).pop("exec_module", None)  # of several that wait, the first
                load(module)
                self._callback()

            loader.exec_module = exec_module
        return spec
