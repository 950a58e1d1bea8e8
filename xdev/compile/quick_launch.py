"""The call of a ufunc on CuPy's arrays, as a part of its machine code: one driver call.

What a call in Python asks of three arrays costs a third of a launch. This looks for the
arrays' size and dtypes in a table, and the types of numbers beside them, and launches
what is there, if the arrays are contiguous and of one shape. What it does not find, and
what the launch refuses, goes to Python.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _machine_code, _optional
from xdev._c_functions import address_of
from xdev._machine_code import immortal
from xdev.compile import cupy_arrays, machine_launch
from xdev.memory.native import cupy as native_cupy
from xdev.memory.native.machine import machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.compile.launch import Launch
    from xdev.compile.quick_call import Quick

MOST_ROWS = 16


@final
class Launches:
    """The launches that one ufunc's calls know.

    Parameters
    ----------
    ufunc : Quick
        It has one output.
    nin : int
        How many inputs it has, ``MOST_OPERANDS`` at most.
    """

    def __init__(self, ufunc: Quick, nin: int) -> None:
        from xdev.compile.quick_launch_code import HEAD, NIN, ROW

        self._table = np.zeros(HEAD + MOST_ROWS * (nin + ROW), np.int64)
        self._table[NIN] = nin
        self._rows = self._table[HEAD:].reshape(MOST_ROWS, nin + ROW)
        ufunc._quick_launches = self._table  # noqa: SLF001 - one class in two modules
        ufunc.connect()
        self._kept: list[Any] = [None] * MOST_ROWS  # what the rows point to
        self._next = 0

    def remember(
        self,
        size: int,
        keys: Sequence[Any],
        loop: np.dtype[Any],
        launch: Launch,
    ) -> None:
        """Launch this from now on, for contiguous arrays of one shape, and numbers.

        Parameters
        ----------
        size : int
            How many elements they have.
        keys : sequence of numpy.dtype and type
            The inputs' and the output's dtypes; of a number, its type.
        loop : numpy.dtype
            That of a result which nobody gave an array for.
        launch : Launch
            None of its values goes as bytes.
        """
        from xdev.compile.quick_launch_code import COUNT

        k, self._next = self._next, (self._next + 1) % MOST_ROWS
        fresh = id(loop) if keys[-1] is loop else 0
        ids, item = map(id, keys), loop.itemsize
        self._rows[k] = *ids, fresh, item, size, launch.address
        self._kept[k] = keys, loop, launch
        self._table[COUNT] = max(self._table[COUNT], k + 1)


@cache
def function() -> int:
    """Return the machine code's address; 0 where CuPy's arrays are not understood."""
    from xdev.compile.quick_launch_code import (
        API,
        ARRAY,
        MAKE,
        NAME,
        QUICKER,
        TABLE,
        WORDS,
        binary,
    )

    layout, maker = cupy_arrays.layout(), cupy_arrays.maker()
    if layout is None or not maker:
        return 0
    place = _machine_code.load(binary(layout))
    table = (ctypes.c_int64 * WORDS).from_address(place(TABLE))
    for k, name in enumerate(API):
        table[k] = address_of(getattr(ctypes.pythonapi, name))
    objects = immortal((_optional.cupy().ndarray, "out", None))
    table[ARRAY:MAKE] = list(map(id, objects))
    table[MAKE:QUICKER] = [maker, machine_launch.starter().raw]
    made_by = machine().addresses["cupy_array"]
    table[QUICKER:WORDS] = [made_by, native_cupy.facts_of_arrays()]
    return place(NAME)
