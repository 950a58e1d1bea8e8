"""Tracebacks as users read them: their own lines, and one of xdev's where it is called.

Where an error of xdev's says in its own words what a library's said, it is shown alone.
Nothing is done before an error is shown, and an error keeps all of its frames: only the
interpreter's and IPython's printing leave frames out. Under ``XDEV_DEBUG=1`` they show
all, and so does whoever set an own ``sys.excepthook``.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from xdev import _config
from xdev.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Whose frames below one of xdev's are no user's; of Python's own what xdev calls.
LIBRARIES = frozenset((
    "array_api_compat", "ast", "contextlib", "copy", "cuda", "cupy", "cupy_backends",
    "cupyx", "dask", "dataclasses", "functools", "importlib", "inspect", "json",
    "llvmlite", "numba", "numba_cuda", "numpy", "pathlib", "pickle", "scipy",
    "threading",
))  # fmt: skip
HIDDEN = "__tracebackhide__"  # the local variable by which IPython and pytest hide


def install() -> None:
    """Let the interpreter, and IPython where it runs, show tracebacks that way.

    A ``sys.excepthook`` that somebody has set already stays as it is.
    """
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = show
    running = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = running and running()
    if shell is not None:
        install_in(shell)


def install_in(shell: Any) -> None:
    """Let an IPython shell hide the frames that :func:`show` leaves out."""
    if "showtraceback" in vars(shell):
        return
    original = shell.showtraceback

    def showtraceback(exc_tuple: Any = None, *args: Any, **keywords: Any) -> Any:
        error = (exc_tuple or sys.exc_info())[1]
        hide(error)
        with _without_wordings(error):
            return original(exc_tuple, *args, **keywords)

    shell.showtraceback = showtraceback


def show(
    kind: type[BaseException],
    error: BaseException,
    traceback: TracebackType | None,
    display: Callable[..., object] | None = None,
) -> None:
    """Print an error as the interpreter does, without frames that are no user's."""
    whole = [(each, each.__traceback__) for each in _linked(error)]
    try:
        if not _shows_all():
            for each, frames in whole:
                each.__traceback__ = _filtered(frames)
            traceback = _filtered(traceback)
        with _without_wordings(error):
            (display or sys.__excepthook__)(kind, error, traceback)
    finally:
        for each, frames in whole:
            each.__traceback__ = frames


def hide(error: BaseException | None) -> None:
    """Mark the frames that are no user's, so that IPython and pytest leave them out."""
    if not _shows_all():
        for each in _linked(error):
            for entry, is_users in _entries(each.__traceback__):
                if not is_users:
                    entry.tb_frame.f_locals[HIDDEN] = True


def frames_from(error: BaseException, filename: str) -> TracebackType | None:
    """Return an error's traceback from the first frame of a file on, None without."""
    frames = error.__traceback__
    while frames and frames.tb_frame.f_code.co_filename != filename:
        frames = frames.tb_next
    return frames


@contextmanager
def _without_wordings(error: BaseException | None) -> Iterator[None]:
    """Leave out, for now, the causes that errors of xdev's reword."""
    links = [
        (each, each.__cause__, each.__suppress_context__)
        for each in _linked(error)
        if _rewords(each) and not _shows_all()
    ]
    for each, *_ in links:
        each.__cause__ = None  # which suppresses the context too
    try:
        yield
    finally:
        for each, cause, is_suppressed in links:
            each.__cause__, each.__suppress_context__ = cause, is_suppressed


def _rewords(error: BaseException) -> bool:
    """Say whether xdev raised an error for a library's, with no user's code between."""
    cause = error.__cause__ or error.__context__
    behind = {package for each in _linked(cause) for package in _packages(each)}
    return (
        isinstance(cause, TypeError | ValueError)
        and _packages(error)[-1:] == ["xdev"]
        and behind <= LIBRARIES | {"xdev"}
    )


def _packages(error: BaseException) -> list[str]:
    return [_package(entry) for entry, _ in _entries(error.__traceback__)]


def _package(entry: TracebackType) -> str:
    return str(entry.tb_frame.f_globals.get("__name__")).partition(".")[0]


def _shows_all() -> bool:
    try:
        return _config.debug()
    except ConfigurationError:
        return False


def _linked(error: BaseException | None) -> Iterator[BaseException]:
    """Return an error, those it was raised from or after, and those of its group."""
    waiting, seen = [error], {id(None)}
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions


def _entries(
    traceback: TracebackType | None,
) -> list[tuple[TracebackType, bool]]:
    """Return a traceback's entries, and whether each is to be shown.

    Of entries of xdev, with those of libraries that it calls, only the last one of xdev
    is: where the error was raised, or from where a user's function was called.
    """
    entries: list[tuple[TracebackType, bool]] = []
    last = None  # of xdev, in this run of entries
    while traceback is not None:
        package = _package(traceback)
        if package == "xdev":
            if last is not None:
                entries[last] = entries[last][0], False
            last = len(entries)
        elif package not in LIBRARIES:
            last = None
        entries.append((traceback, package == "xdev" or last is None))
        traceback = traceback.tb_next
    return entries


def _filtered(traceback: TracebackType | None) -> TracebackType | None:
    """Return a copy of a traceback without the entries that are not to be shown."""
    below = None
    for entry, is_shown in reversed(_entries(traceback)):
        if is_shown:
            at = entry.tb_frame, entry.tb_lasti, entry.tb_lineno
            below = TracebackType(below, *at)
    return below


install()  # before the rooms load: a setting that is not valid is an error there
