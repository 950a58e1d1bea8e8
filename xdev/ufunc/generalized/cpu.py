"""A function of core arrays on NumPy arrays: a real generalized ufunc for each typing.

Broadcasting, ``out=``, casting, ``axes=``, ``keepdims=`` and overlap are NumPy's own.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import memory
from xdev.compile import numpy_ufunc, threads
from xdev.compile.grid import cpu
from xdev.ufunc.cpu_results import POOLED
from xdev.ufunc.inputs import strong
from xdev.ufunc.refusals import explain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.ufunc.generalized.functions import CoreFunction, Specialisation


@final
class CpuCores:
    """The NumPy ufuncs of one function of core arrays.

    Parameters
    ----------
    function : CoreFunction
        The function.
    parallel : bool
        Whether threads share the first loop dimension.
    """

    def __init__(self, function: CoreFunction, *, parallel: bool) -> None:
        self._function, self._parallel = function, parallel
        self._lock = threading.Lock()  # guards the dict below: a ufunc is made once
        self._ufuncs: dict[Specialisation, np.ufunc] = {}

    def ufunc(self, made: Specialisation) -> np.ufunc:
        """Return the NumPy ufunc whose one loop is this typing."""
        with self._lock:
            if made not in self._ufuncs:
                function = self._function
                loop = cpu.inner_loop(
                    made.function,
                    made.arguments,
                    function.layout.places,
                    fastmath=function.fastmath,
                )
                self._ufuncs[made] = numpy_ufunc.register(
                    loop,
                    made.inputs,
                    made.outputs,
                    name=f"xdev:{function.name}",
                    doc=function.function.__doc__ or "",
                    identity=None,
                    signature=function.layout.text,
                )
            return self._ufuncs[made]

    def __call__(
        self,
        args: Sequence[Any],
        outs: tuple[Any, ...] | None = None,
        *,
        dtype: Any = None,
        **keywords: Any,
    ) -> Any:
        """Compute the function of NumPy arrays and numbers.

        Parameters
        ----------
        args : sequence
            One operand an input.
        outs : tuple of arrays and None, optional
            Where the results go; returned themselves.
        dtype : dtype-like, optional
            The results' dtype where no array is given for them; with signatures that of
            all that they give.
        **keywords
            ``axes``, ``axis``, ``keepdims``, ``casting``, ``order`` and ``subok``, as
            in NumPy.

        Raises
        ------
        TypeError, ValueError
            As NumPy raises them, with the way out. Nothing was written.
        """
        function = self._function
        inputs = function.resolve(args)
        given = outs or (None,) * len(function.layout.outputs)
        dtypes = [getattr(out, "dtype", None) for out in given]
        casting = keywords.get("casting", "same_kind")
        made = function.specialise(inputs, dtypes, dtype, casting)
        ufunc = self.ufunc(made)
        if dtype is not None and function.signatures:  # else NumPy casts safely alone
            keywords["signature"] = (*made.inputs, *made.outputs)
        numbers = strong(args, inputs, function.name, function.labels)
        operands = [_apart(np.asanyarray(x), given) for x in numbers]
        if not {"axes", "axis", "keepdims"} & keywords.keys():
            given = self._pooled(operands, given, made)
        try:
            if self._parallel and not keywords:
                shared = self._shared(ufunc, operands, given)
                if shared is not None:
                    return shared
            return ufunc(*operands, out=given, **keywords)
        except (TypeError, ValueError) as error:
            explain(error, outs)
            raise

    def _pooled(
        self, operands: list[Any], given: tuple[Any, ...], made: Specialisation
    ) -> tuple[Any, ...]:
        """Return the outputs, large new ones from xdev's pool."""
        layout, name = self._function.layout, self._function.name
        shapes = [None if out is None else np.shape(out) for out in given]
        _, results = layout.shapes([x.shape for x in operands], shapes, name)
        if any(
            isinstance(x, np.ndarray) and type(x) is not np.ndarray for x in operands
        ):
            return given  # a subclass decides on its results
        return tuple(
            memory.host_array(shape, dtype)
            if out is None and int(np.prod(shape)) * dtype.itemsize >= POOLED
            else out
            for out, shape, dtype in zip(given, results, made.outputs, strict=True)
        )

    def _shared(
        self, ufunc: np.ufunc, operands: list[Any], given: tuple[Any, ...]
    ) -> Any:
        """Compute in threads, by slices of the first loop dimension.

        None where there is none, a result is small enough to be made by NumPy, or an
        output overlaps an input, so that the order would matter.
        """
        layout = self._function.layout
        if any(
            out is None or any(np.may_share_memory(out, x) for x in operands)
            for out in given
        ):
            return None
        shapes = [x.shape for x in (*operands, *given)]
        loop, _ = layout.shapes(
            shapes[: len(operands)], shapes[len(operands) :], self._function.name
        )
        if not loop:
            return None
        whole = [
            np.broadcast_to(x, loop + x.shape[x.ndim - len(own) :])
            for x, own in zip(operands, layout.inputs, strict=True)
        ]
        writes = [
            out[(None,) * (len(loop) + len(own) - out.ndim)]
            for out, own in zip(given, layout.outputs, strict=True)
        ]

        def piece(start: int, stop: int) -> None:
            part = tuple(out[start:stop] for out in writes)
            ufunc(*(x[start:stop] for x in whole), out=part)

        threads.run(piece, loop[0])
        return given if len(given) > 1 else given[0]


def _apart(x: Any, outs: tuple[Any, ...]) -> Any:
    """Return an operand, copied where an output overlaps it.

    NumPy does so, too, but not for an output that is the very same view: it takes the
    loop for one that reads an element before it writes it.
    """
    work: Any = 1  # what NumPy spends, too; the stubs know only 0 and -1
    for out in outs:
        if isinstance(out, np.ndarray) and np.may_share_memory(out, x, max_work=work):
            return x.copy(order="K")
    return x
