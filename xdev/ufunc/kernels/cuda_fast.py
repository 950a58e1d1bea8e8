"""The quickest way to a kernel's launch: CuPy's arrays and numbers as in a call before.

What it does not know goes the general way, and so does what the launch itself refuses:
a stream that is new, a thread without a context, a number that does not fit.
"""

# ruff: noqa: SLF001 - CuPy has the flag in public only inside an object that costs more

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from xdev import _optional
from xdev.compile import machine_launch
from xdev.memory.owners import mark_uses
from xdev.memory.streams import live_streams
from xdev.ufunc import cuda_fast
from xdev.ufunc.cuda_operands import Number
from xdev.ufunc.foreign import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from xdev.compile.launch import Launch

MOST = 64  # calls of one grid that are known at a time


@final
class Repeats:
    """The launches of a kernel over one grid, by types, layouts and alignment."""

    __slots__ = ("_array", "_known", "_start")

    def __init__(self) -> None:
        self._array = _optional.cupy().ndarray
        self._start = machine_launch.starter().start
        self._known: dict[Any, tuple[Launch, list[tuple[int, np.dtype[Any]]]]] = {}

    def __call__(self, args: Sequence[Any]) -> bool:
        """Launch, if there was such a call before; say whether it was done."""
        key, values = self._read(args)
        found = self._known.get(key)
        if found is None:
            return False
        if live_streams.several:
            mark_uses(args)
        run, encoded = found
        try:
            for i, dtype in encoded:
                values[i] = Number(values[i]).given(dtype)
        except OverflowError:  # which the general way says in words
            return False
        return not self._start(run.address, *values)

    def learn(
        self, args: Sequence[Any], run: Launch, dtypes: Sequence[np.dtype[Any]]
    ) -> None:
        """Remember what ran.

        Parameters
        ----------
        args : sequence
            The arguments of the call.
        run : Launch
            What it launched.
        dtypes : sequence of numpy.dtype
            The dtypes that the kernel has the arguments in.
        """
        plain = all(type(x) is self._array or isinstance(x, NUMBERS) for x in args)
        if not plain or cuda_fast.devices() > 1:
            return
        encoded = [
            (i, dtype)
            for i, (value, dtype) in enumerate(zip(run.values, dtypes, strict=True))
            if value.kind == machine_launch.BYTES
        ]
        if len(self._known) >= MOST:
            self._known.clear()
        key, _ = self._read(args)
        self._known[key] = run, encoded

    def _read(self, args: Sequence[Any]) -> tuple[tuple[Any, ...], list[Any]]:
        """Return all that a launch depends on, and the addresses and numbers."""
        array, values = self._array, []
        key: list[Any] = []
        for x in args:
            kind = type(x)
            if kind is array:
                address = x.data.ptr
                key += x.dtype, x.shape, x._c_contiguous or x.strides, address & 15
                values.append(address)
            else:
                key.append(kind)
                values.append(x)
        return tuple(key), values
