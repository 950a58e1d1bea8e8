"""Where CuPy and array_api_compat's CuPy depart from the standard, and what we do.

What a function can mend is in :func:`mended`, each entry with its reason; creation's
signs of zero are in :mod:`~xdev.facade.cuda_differences.signed_zeros`, since
:mod:`xdev.facade.places.cuda` makes the arrays. What only a ``cupy.ndarray`` itself
could mend, its operators and methods, is listed in ``tests/conformance.toml``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev.facade.clipping import clip
from xdev.facade.cuda_differences.arguments import argsort, sort
from xdev.facade.cuda_differences.counting import isin, repeat, searchsorted
from xdev.facade.cuda_differences.linear_algebra import eig, eigvals, solve
from xdev.facade.cuda_differences.moments import std, var
from xdev.facade.cuda_differences.outputs import round_, written
from xdev.facade.cuda_differences.ufuncs import remainder, special

if TYPE_CHECKING:
    from collections.abc import Callable


def mended() -> dict[str, Callable[..., Any]]:
    """Return the functions that serve in CuPy's place, by the standard's names."""
    cupy = _optional.cupy()
    return {
        # infinity beside NaN has an infinite modulus: C99's clog, CuPy gives NaN
        "log": special("log"),
        # likewise
        "log10": special("log10"),
        # likewise, and a complex quotient makes NaN of every infinity
        "log2": special("log2"),
        # likewise; is log(1 + x), so it drops the sign of a zero imaginary part, the
        # side of the branch cut, and everything near 0
        "log1p": special("log1p"),
        # is exp(x) - 1, which drops everything near 0
        "expm1": special("expm1"),
        # on the imaginary axis the real part stays 0; signs of zero at infinity
        "tanh": special("tanh"),
        # likewise on the real axis: tan(z) = -j tanh(jz)
        "tan": special("tan"),
        # 0 + NaN j is on the imaginary axis: the angle is pi/2, CuPy gives NaN
        "acosh": special("acosh", cupy.arccosh),
        # is x1 - floor(x1 / x2) * x2: inexact, NaN at infinity, drops -0
        "remainder": remainder(),
        # array_api_compat's, older than CuPy's right ones, have no out=
        "sign": cupy.sign,
        "ceil": cupy.ceil,
        "floor": cupy.floor,
        "trunc": cupy.trunc,
        # no out=
        "real": written(cupy.real),
        "imag": written(cupy.imag),
        # has decimals= before out=
        "round": round_,
        # the result must keep x's data type; array_api_compat's waits for the device
        "clip": partial(clip, cupy),
        # refuses an array of counts
        "repeat": partial(repeat, cupy),
        # takes no numbers but integers
        "isin": partial(isin, cupy),
        # takes no number that is NumPy's
        "searchsorted": partial(searchsorted, cupy),
        # call the correction ddof
        "std": std,
        "var": var,
        # have no descending=; are stable always
        "sort": partial(sort, cupy),
        "argsort": partial(argsort, cupy),
        # stacks do not broadcast; no columns are an error
        "linalg.solve": solve,
        # may be real where the standard wants complex
        "linalg.eig": eig,
        "linalg.eigvals": eigvals,
    }
