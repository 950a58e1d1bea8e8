"""NumPy's assertions, for arrays on any device: ``xdev.numpy.testing``.

Arrays among the arguments are copied to the host, where NumPy's function compares them;
:mod:`xdev.testing` has two that also name the first index that differs.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from xdev.numpy.dispatch import is_array
from xdev.transfer import to_numpy

__all__ = [name for name in np.testing.__all__ if name.startswith("assert_")]


def __getattr__(name: str) -> Any:
    function = getattr(np.testing, name)
    if name not in __all__:
        return function

    @functools.wraps(function)
    def on_host(*args: Any, **options: Any) -> Any:
        named = {key: _on_host(x) for key, x in options.items()}
        return function(*map(_on_host, args), **named)

    globals()[name] = on_host
    return on_host


def __dir__() -> list[str]:
    return __all__


def _on_host(x: Any) -> Any:
    if isinstance(x, list | tuple):
        return [_on_host(part) for part in x]
    return to_numpy(x) if is_array(x) else x
