"""Context managers above functions."""

from __future__ import annotations

import inspect
from contextlib import ContextDecorator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")
#: Of functions whose body runs after the call, and of what is none.
OTHERS = (
    inspect.iscoroutinefunction,
    inspect.isgeneratorfunction,
    inspect.isasyncgenfunction,
    inspect.isclass,
)


class CallDecorator(ContextDecorator):
    """A context manager that may stand above a function, for each of its calls."""

    def __call__(self, func: F) -> F:
        """Decorate a function.

        Raises
        ------
        TypeError
            Its body does not run in its call, where the context would be.
        """
        if any(is_one(func) for is_one in OTHERS):
            name = getattr(func, "__qualname__", repr(func))  # a partial has none
            message = (
                f"{type(self).__name__} decorates functions whose body runs when they "
                f"are called; {name} is async, a generator or a class: "
                f"write `with {type(self).__name__}(...):` inside it"
            )
            raise TypeError(message)
        return super().__call__(func)
