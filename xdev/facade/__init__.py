# ruff: noqa: F403 - each topic's ``__all__`` says what is public
"""The array API standard 2025.12, on whatever arrays it is given.

Its two extensions are :mod:`xdev.linalg` and :mod:`xdev.fft`, which load at their first
use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from numpy import (
    bool as bool,  # noqa: A004 - the standard's name
    complex64 as complex64,
    complex128 as complex128,
    e as e,
    float32 as float32,
    float64 as float64,
    inf as inf,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    nan as nan,
    newaxis as newaxis,
    pi as pi,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)

from xdev.facade.backends import NAMES as _NAMES
from xdev.facade.creation import *
from xdev.facade.elementwise import *
from xdev.facade.filling import *
from xdev.facade.inspection import *
from xdev.facade.linear_algebra import *
from xdev.facade.manipulation import *
from xdev.facade.searching import *
from xdev.facade.statistical import *

if not TYPE_CHECKING:  # which go by the stars
    __all__ = [*_NAMES, "e", "inf", "nan", "newaxis", "pi"]  # noqa: PLE0604 - strings
    for _topic in (
        *("creation", "elementwise", "filling", "inspection", "linear_algebra"),
        *("manipulation", "searching", "statistical"),
    ):
        __all__ += import_module(f"xdev.facade.{_topic}").__all__
    __dir__ = __all__.copy  # what Tab shows
