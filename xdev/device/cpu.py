"""The host: work is done when a call returns, so streams and events are no-ops."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Self, final

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


@final
class HostEvent:
    """A point in time; everything before it is done."""

    __slots__ = ("seconds",)
    done = True

    def __init__(self) -> None:
        self.seconds = time.perf_counter()

    def synchronize(self) -> None:
        """Return at once."""


@final
class HostStream:
    """A queue that is always empty; ``ptr`` is 0, CUDA's default stream."""

    __slots__ = ()
    done = True
    ptr = 0

    def record(self) -> HostEvent:
        """Return an event of now."""
        return HostEvent()

    def wait_event(self, event: object) -> None:
        """Return at once."""

    def synchronize(self) -> None:
        """Return at once."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None: ...


class HostBackend:
    """One host, always usable, with NumPy's name for its device."""

    libraries: tuple[str, ...] = ("numpy",)

    def count(self) -> int:
        """Return 1."""
        return 1

    def reason(self, index: int) -> str | None:
        """Refuse every index but 0."""
        return None if index == 0 else "there is one CPU device, index 0: use 'cpu'"

    def current(self) -> int:
        """Return 0."""
        return 0

    def native(self, index: int) -> object:  # noqa: ARG002
        """Return ``"cpu"``, as ``ndarray.device`` has it."""
        return "cpu"

    def index_of(self, native: object) -> int:
        """Refuse: NumPy's devices are strings, so no object of NumPy's is one."""
        raise ValueError(native)

    def use(self, index: int) -> AbstractContextManager[object]:  # noqa: ARG002
        """Do nothing: the host is always current."""
        return nullcontext()

    def synchronize(self, index: int) -> None:
        """Return at once."""

    def stream(self, index: int) -> HostStream:  # noqa: ARG002
        """Return a no-op stream."""
        return HostStream()

    def current_stream(self, index: int) -> HostStream:  # noqa: ARG002
        """Return a no-op stream."""
        return HostStream()

    def elapsed(self, start: HostEvent, end: HostEvent) -> float:
        """Return the time between two events [s]."""
        return end.seconds - start.seconds

    def can_access_peer(self, index: int, peer: int) -> bool:
        """Say yes to itself."""
        return index == peer


BACKEND = HostBackend()
