"""Call stacks, kept raw, made into ``file:line`` when somebody asks."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import CodeType

    #: Code and instruction in turn, a pair a frame, innermost first: flat, since
    #: pairs of their own would cost a third of the time.
    Frames = list[Any]
    Place = tuple[str, int, str]

DEPTH = 8  # frames kept of each block, and more up to the first outside the libraries
#: Frames of these are not where a user's array was made.
LIBRARIES = (
    "xdev",
    "numpy",
    "cupy",
    "cupyx",
    "numba",
    "numba_cuda",
    "cuda",
    "array_api_compat",
    "array_api_strict",
    "dask",
    "rmm",
    "scipy",
    "torch",
)


def stack(skip: int) -> Frames:
    """Return the calling frames but the innermost ``skip``."""
    frame: Any = sys._getframe(skip)  # noqa: SLF001 - the one way that costs under 1 us
    frames: Frames = []
    for _ in range(DEPTH):
        frames.append(frame.f_code)
        frames.append(frame.f_lasti)
        frame = frame.f_back
        if frame is None:
            return frames
    while frame is not None and is_library(frames[-2].co_filename):
        frames += frame.f_code, frame.f_lasti
        frame = frame.f_back
    return frames


@cache
def is_library(filename: str) -> bool:
    """Say whether a file belongs to xdev or an array library."""
    modules = map(sys.modules.get, LIBRARIES)
    folders = (folder for m in modules for folder in getattr(m, "__path__", ()))
    return filename.startswith(tuple(f"{folder}{os.sep}" for folder in folders))


def line_of(code: CodeType, instruction: int) -> int:
    """Return the source line of an instruction."""
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno


@final
class Places:
    """File, line and function of frames; each frame is looked up once.

    Examples
    --------
    >>> [(file, line, function), *_] = Places().of(stack(1))
    >>> function
    '<module>'
    """

    def __init__(self) -> None:
        # By id, as codes compare slowly; each is kept, so that no other gets its id.
        self._known: dict[tuple[int, int], tuple[Place, CodeType]] = {}

    def of(self, frames: Frames) -> list[Place]:
        """Return the places of frames."""
        return list(map(self._place, frames[::2], frames[1::2]))

    def _place(self, code: CodeType, instruction: int) -> Place:
        key = (id(code), instruction)
        if key not in self._known:
            place = code.co_filename, line_of(code, instruction), code.co_name
            self._known[key] = place, code
        return self._known[key][0]


def maker(found: Iterable[Place]) -> str:
    """Return ``file:line`` of the first place outside the libraries, innermost first.

    Where all are inside, the innermost is it.

    Examples
    --------
    >>> maker([(__file__, 3, "f"), ("mine.py", 7, "g"), ("mine.py", 9, "<module>")])
    'mine.py:7'
    """
    inside: list[Place] = []
    for place in found:
        if not is_library(place[0]):
            return f"{place[0]}:{place[1]}"
        inside.append(place)
    return f"{inside[0][0]}:{inside[0][1]}"


def origin(frames: Frames) -> str:
    """Return ``file:line`` of the first frame outside the libraries."""
    return maker(Places().of(frames))
