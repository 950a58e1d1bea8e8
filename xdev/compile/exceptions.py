"""Floating point exceptions, as C's ``feraiseexcept`` and its like number them."""

from __future__ import annotations

import os

# By the processor: division by zero, overflow, underflow, an invalid value.
BITS = {"aarch64": (2, 4, 8, 1)}.get(os.uname().machine, (4, 8, 16, 1))
DIVIDE, OVER, UNDER, INVALID = BITS
ALL = 0x1F
