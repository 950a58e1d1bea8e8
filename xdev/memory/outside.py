"""Library calls that take device memory past the pool: plans, handles, modules.

cuFFT's plans and cuBLAS's and cuSOLVER's handles come straight from the driver. Where
it has no memory left the pool may still hold some that nobody uses: :func:`retrying`
gives that back and calls once more.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, final

from xdev.memory.ladder import refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.memory.pools import Pool

P = ParamSpec("P")
R = TypeVar("R")
SCANT = 256 << 20  # a library that only failed had too little if less is left [B]
# With the function's own arguments: any, by ``*args, **options``, would take 165 ns. It
# is tried again past the handler, where what the failed call's frames held is free.
AT = sys._getframe().f_lineno  # noqa: SLF001 - the line above it: for tracebacks
ATTEMPT = """
def attempt{taken}:
    try:
        return _call({given})
    except RuntimeError as error:
        if not _lacks_memory(error):
            raise
    return _again({given})
"""


@final
@dataclass(frozen=True, slots=True)
class Codes:
    """How a library's error says that there was no memory.

    Parameters
    ----------
    attribute : str
        Where the error keeps its code.
    sure : frozenset of int
        Codes that say so.
    likely : frozenset of int
        Codes that a failed allocation may end in as well, above all the making of a
        handle.
    """

    attribute: str
    sure: frozenset[int]
    likely: frozenset[int] = frozenset()


#: By the name of the error's class: a library need not be loaded to be known.
CODES = {
    "CUDARuntimeError": Codes("status", frozenset({2})),  # memory allocation
    "CUDADriverError": Codes("status", frozenset({2})),  # out of memory
    # allocation failed; internal error
    "CuFFTError": Codes("result", frozenset({2}), frozenset({5})),
    # allocation failed; not initialised (in this order from here on)
    "CUBLASError": Codes("status", frozenset({3}), frozenset({1})),
    "CUSOLVERError": Codes("status", frozenset({2}), frozenset({1})),
    "CuSparseError": Codes("status", frozenset({2}), frozenset({1})),
    "CURANDError": Codes("status", frozenset({102}), frozenset({203})),
}


def retrying(call: Callable[P, R], pool: Callable[[], Pool]) -> Callable[P, R]:
    """Return a function that makes room in the device's memory and calls once more.

    As long as the call goes well, nothing is added to it but one frame, which takes its
    arguments.

    Parameters
    ----------
    call : callable
        Leaves everything as it was when it fails for want of memory.
    pool : callable
        Returns the pool of the device that it works on.

    Returns
    -------
    callable
        It raises what ``call`` raises, and OutOfMemoryError where the second try fails
        for want of memory too.

    Examples
    --------
    >>> from xdev.memory.pools import Pool
    >>> from xdev.memory.sources.fake import FakeSource
    >>> class CuFFTError(RuntimeError):
    ...     result = 2
    >>> source = FakeSource(capacity=4096)
    >>> pool = Pool(source, "simple")
    >>> pool.release(pool.acquire(4096))  # the pool keeps it
    >>> def plan():
    ...     if source.lent:
    ...         raise CuFFTError("CUFFT_ALLOC_FAILED")
    ...     return "planned"
    >>> retrying(plan, lambda: pool)(), pool.stats().retries
    ('planned', 1)
    """

    def again(*args: P.args, **options: P.kwargs) -> R:
        owner = pool()
        owner.stock.count("retries")
        owner.stock.collect()
        owner.reclaim()
        try:
            return call(*args, **options)
        except RuntimeError as error:
            room, _ = owner.stock.source.room()  # type: ignore[union-attr]
            if not lacks_memory(error, likely=room < SCANT):
                raise
            raise refusal(owner.stock, 0, str(error)) from error

    return wraps(call)(_attempt(call, again))


def _attempt(call: Callable[P, R], again: Callable[P, R]) -> Callable[P, R]:
    """Return ATTEMPT with the arguments of ``call``, and its defaults.

    Keywords that a partial gives are among the defaults: what it is of is called.
    """
    try:
        parameters = inspect.signature(call).parameters.values()
    except ValueError:  # nobody knows
        parameters = inspect.signature(again).parameters.values()
    empty, by_name = inspect.Parameter.empty, inspect.Parameter.KEYWORD_ONLY
    named = [p.replace(annotation=empty, default=empty) for p in parameters]
    given = [f"{p}={p}" if p.kind is by_name else str(p) for p in named]
    known = [p for p in parameters if p.default is not empty]
    optional = {p.name for p in known}
    taken = [p.replace(default=None) if p.name in optional else p for p in named]
    text = ATTEMPT.format(taken=inspect.Signature(taken), given=", ".join(given))
    whole = call.func if isinstance(call, partial) and not call.args else call
    made: dict[str, Any] = {"_call": whole, "_again": again}
    made["_lacks_memory"] = lacks_memory
    code = compile("\n" * AT + text, __file__, "exec")
    exec(code, made)  # noqa: S102 - of the function's own names
    attempt = made["attempt"]
    attempt.__defaults__ = tuple(p.default for p in known if p.kind is not by_name)
    attempt.__kwdefaults__ = {p.name: p.default for p in known if p.kind is by_name}
    return attempt  # type: ignore[no-any-return]


def lacks_memory(error: RuntimeError, *, likely: bool = True) -> bool:
    """Say whether a library's error is for want of memory; ``likely``, or surely."""
    codes = CODES.get(type(error).__name__)
    if codes is None:
        return False
    code = getattr(error, codes.attribute, None)
    return code in codes.sure or (likely and code in codes.likely)
