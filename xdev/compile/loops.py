"""Inner loops of the CPU on disk: machine code that a process loads without Numba."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from xdev import _machine_code, _optional
from xdev._disk_cache import DiskCache
from xdev.compile import digests, environment

if TYPE_CHECKING:
    from collections.abc import Callable

DYNAMIC = b"numba.dynamic.globals"  # addresses in code: of large arrays, of gaps
_cache = DiskCache("loops")


class Loop(NamedTuple):
    """Loaded code, which stays for the rest of the process."""

    address: int


def kept(
    digest: str | None,
    parts: object,
    name: str,
    make: Callable[[], tuple[str, bytes]],
    unchanged: Callable[[], bool] = lambda: True,
) -> Loop:
    """Return a C function, compiled where no process has done so.

    Parameters
    ----------
    digest : str or None
        The Python function's digest; None: it has none, and is compiled in each
        process.
    parts : object
        What else decides the machine code: types, options. Its ``repr`` tells it in
        full.
    name : str
        The Python function's name, for people.
    make : callable
        Returns the C function's name and the object file; it alone loads Numba.
    unchanged : callable
        Says, after that, whether what was compiled still has the digest.
    """
    if digest is None:
        return _loaded(*make())
    key = digests.joined(digest, parts, environment.digest(), _machine_code.processor())
    entry = _cache.load(key)
    if entry is not None:
        symbol, _, binary = entry.partition(b"\n")
        if _callable(binary):
            return _loaded(symbol.decode(), binary)
    made = make()
    if DYNAMIC not in made[1] and unchanged():
        _cache.save(key, b"\n".join((made[0].encode(), made[1])), name)
    return _loaded(*made)


def code_of(made: Any) -> tuple[str, bytes]:
    """Return the name and the object file of Numba's ``CFunc``."""
    return made.native_name, made._library._get_compiled_object()  # noqa: SLF001


def _callable(binary: bytes) -> bool:
    """Say whether this process has all that an object file calls."""
    if _machine_code.complete(binary):
        return True
    # Numba brings functions of its own; those of the C library are always there.
    _optional.numba().core.registry.cpu_target.target_context.refresh()
    return _machine_code.complete(binary)


def _loaded(symbol: str, binary: bytes) -> Loop:
    return Loop(_machine_code.load(binary)(symbol))
