"""What every device emits: the arguments loaded from memory, one call of the function.

Numba's and numba-cuda's instructions are the same LLVM ones; only a few functions of
theirs differ, and come as a :class:`Target`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from xdev.compile.grid import DIMENSIONS, HEADER, SLOT, WORD, Argument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@final
@dataclass(frozen=True, slots=True)
class Target:
    """One compiler's own functions.

    Parameters
    ----------
    cgutils, arrays : module
        Its ``cgutils``, and its ``np.arrayobj``.
    add_float : callable
        ``add_float(builder, pointer, value)`` emits an atomic addition of floats.
    convention : callable
        ``convention(context)`` is how a function raises.
    """

    cgutils: Any
    arrays: Any
    add_float: Callable[[Any, Any, Any], Any]
    convention: Callable[[Any], Any]


@final
class Memory:
    """The words of a kernel, and the values that are loaded from them.

    Parameters
    ----------
    target : Target
        The compiler's functions.
    context, builder : Numba's target context, LLVM's instruction builder
        Where instructions go.
    pointer : LLVM value
        Where the words are.
    narrow : bool
        Whether all shapes and strides fit into 32 bits, and are loaded so: products of
        indices with them are then single instructions on CUDA.
    arrays : sequence of LLVM values, optional
        Where the arrays are, each a ``char*``, in place of the addresses in the words.
    """

    def __init__(
        self,
        target: Target,
        context: Any,
        builder: Any,
        pointer: Any,
        *,
        narrow: bool = False,
        arrays: Sequence[Any] | None = None,
    ) -> None:
        self.target, self.context, self.builder = target, context, builder
        self._pointer, self._narrow, self._arrays = pointer, narrow, arrays
        self.int64 = target.cgutils.ir.IntType(64)

    def word(self, index: int) -> Any:
        """Return a word as an integer."""
        return self.builder.load(self._place(index, self.int64))

    def words(self, start: int, count: int) -> list[Any]:
        """Return words from one on."""
        return [self.word(start + k) for k in range(count)]

    def report(self, indices: Sequence[Any]) -> Any:
        """Return what :func:`xdev.compile.grid.bounds.checked` takes as its report."""
        words = [self.word(DIMENSIONS), *indices]
        return self.target.cgutils.pack_array(self.builder, words)

    def arguments(self, arguments: Sequence[Argument]) -> list[Any]:
        """Return the values of all arguments."""
        layouts = iter(self.layouts(arguments))
        return [
            self.number(argument, HEADER + SLOT * place)
            if argument.ndim is None
            else self.array(argument, *next(layouts))
            for place, argument in enumerate(arguments)
        ]

    def layouts(
        self, arguments: Sequence[Argument]
    ) -> list[tuple[Any, list[Any], list[Any]]]:
        """Return where each array is, a ``char*``, its shape and its strides."""
        found: list[tuple[Any, list[Any], list[Any]]] = []
        layout = HEADER + SLOT * len(arguments)
        for place, argument in enumerate(arguments):
            if argument.ndim is None:
                continue
            middle, after = layout + argument.ndim, layout + 2 * argument.ndim
            shape = [self._layout(k, "zext") for k in range(layout, middle)]
            strides = [self._layout(k, "sext") for k in range(middle, after)]
            data = (
                self.pointer(self.word(HEADER + SLOT * place))
                if self._arrays is None
                else self._arrays[len(found)]
            )
            found.append((data, shape, strides))
            layout = after
        return found

    def array(
        self, argument: Argument, data: Any, shape: list[Any], strides: list[Any]
    ) -> Any:
        """Return an array that starts at a ``char*``."""
        kind = argument.type
        model = self.context.data_model_manager[kind.dtype]
        pointer = self.builder.bitcast(data, model.get_data_type().as_pointer())
        made = self.context.make_array(kind)(self.context, self.builder)
        itemsize = self.int64(argument.dtype.itemsize)
        self.target.arrays.populate_array(
            made, pointer, shape, strides, itemsize, meminfo=None
        )
        return made._getvalue()  # noqa: SLF001 - how Numba names it

    def number(self, argument: Argument, place: int) -> Any:
        """Return the number whose bytes begin at a word."""
        return self.loaded(
            argument, self._place(place, self.target.cgutils.ir.IntType(8))
        )

    def constant(self, argument: Argument, place: int) -> Any:
        """Return the number whose bytes begin at a word, or an array of it alone."""
        if argument.ndim is None:
            return self.number(argument, place)
        data = self._place(place, self.target.cgutils.ir.IntType(8))
        one, step = self.int64(1), self.int64(argument.dtype.itemsize)
        ndim = argument.ndim
        return self.array(argument, data, [one] * ndim, [step] * ndim)

    def loaded(self, argument: Argument, data: Any) -> Any:
        """Return the number at a ``char*``."""
        model = self.context.data_model_manager[argument.type]
        pointer = self.builder.bitcast(data, model.get_data_type().as_pointer())
        return model.load_from_data_pointer(self.builder, pointer)

    def pointer(self, address: Any) -> Any:
        """Return an address as a ``char*``."""
        return self.builder.inttoptr(address, self.target.cgutils.voidptr_t)

    def moved(self, data: Any, offset: Any) -> Any:
        """Return a ``char*`` so many bytes further."""
        return self.builder.gep(data, [offset], inbounds=True)

    def _layout(self, index: int, widen: str) -> Any:
        """Return a word of a shape or of strides."""
        if not self._narrow:
            return self.word(index)
        half = self._place(index, self.target.cgutils.ir.IntType(32))
        return getattr(self.builder, widen)(self.builder.load(half), self.int64)

    def _place(self, index: int, kind: Any) -> Any:
        offset = self.int64(index * WORD)
        place = self.builder.gep(self._pointer, [offset], inbounds=True)
        return self.builder.bitcast(place, kind.as_pointer())
