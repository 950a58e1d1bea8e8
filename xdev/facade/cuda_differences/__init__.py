"""Where CuPy and array_api_compat's CuPy depart from the standard, and what we do.

What a function can mend is in :func:`mended`, each entry with its reason;
array_api_compat mends some of it as well, in more frames of Python, which calls on
small arrays notice. Creation's signs of zero are in
:mod:`~xdev.facade.cuda_differences.signed_zeros`, since
:mod:`xdev.facade.places.cuda` makes the arrays. What only a ``cupy.ndarray`` itself
could mend, its operators and methods, is listed in ``tests/conformance.toml``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev.facade.clipping import clip
from xdev.facade.cuda_differences.arguments import (
    argsort,
    diagonal,
    diff,
    nonzero,
    sort,
    trace,
)
from xdev.facade.cuda_differences.counting import (
    count_nonzero,
    isin,
    repeat,
    searchsorted,
)
from xdev.facade.cuda_differences.decompositions import decompositions
from xdev.facade.cuda_differences.linear_algebra import (
    cross,
    matrix_rank,
    outer,
    solve,
    vecdot,
)
from xdev.facade.cuda_differences.moments import std, var
from xdev.facade.cuda_differences.outputs import round_, written
from xdev.facade.cuda_differences.ufuncs import (
    no_bool,
    real,
    remainder,
    special,
    truth,
)
from xdev.facade.pseudoinverses import pinv

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
        # have no loops for complex numbers
        "logical_and": truth(
            "logical_and", "out0 = in0 != in0_type(0) && in1 != in0_type(0)"
        ),
        "logical_or": truth(
            "logical_or", "out0 = in0 != in0_type(0) || in1 != in0_type(0)"
        ),
        "logical_xor": truth(
            "logical_xor", "out0 = (in0 != in0_type(0)) != (in1 != in0_type(0))"
        ),
        "logical_not": truth("logical_not", "out0 = in0 == in0_type(0)"),
        # have such as do not compile
        "atan2": real("atan2", cupy.arctan2),
        "copysign": real("copysign"),
        "hypot": real("hypot"),
        "nextafter": real("nextafter"),
        # casts bools; array_api_compat's has no out=
        "sign": no_bool("sign"),
        # array_api_compat's, older than CuPy's right ones, have no out=
        "ceil": cupy.ceil,
        "floor": cupy.floor,
        "trunc": cupy.trunc,
        # no out=
        "real": written(cupy.real),
        "imag": written(cupy.imag),
        # has decimals= before out=
        "round": round_,
        # the result must keep x's data type; array_api_compat's waits for the device
        "clip": clip,
        # refuses an array of counts
        "repeat": repeat,
        # takes no numbers but integers
        "isin": isin(),
        # takes no number that is NumPy's
        "searchsorted": searchsorted(),
        # has no keepdims=
        "count_nonzero": count_nonzero(),
        # takes 0-d arrays
        "nonzero": nonzero,
        # makes much of what is one subtraction
        "diff": diff,
        # call the correction ddof
        "std": std,
        "var": var,
        # have no descending=; are stable always
        "sort": sort,
        "argsort": argsort,
        # has the first two axes
        "linalg.diagonal": diagonal,
        "linalg.trace": trace,
        # is of whole arrays, unless axis= says other
        "linalg.matrix_norm": partial(cupy.linalg.norm, axis=(-2, -1)),
        # flattens
        "linalg.outer": outer,
        # its own of this name does not broadcast, the other takes vectors in a plane
        "linalg.cross": cross,
        # there is none; array_api_compat's copies what it conjugates, real numbers too
        "vecdot": vecdot,
        # have another default of rtol=, if any
        "linalg.matrix_rank": matrix_rank,
        "linalg.pinv": pinv,
        # is svd's
        "linalg.svdvals": partial(cupy.linalg.svd, compute_uv=False),
        # stacks do not broadcast; no columns are an error
        "linalg.solve": solve,
        # eigh, qr, slogdet and svd return plain tuples, and qr has more modes; cholesky
        # has no upper=; eig and eigvals may be real where the standard wants complex
        **decompositions(cupy.linalg),
    }
