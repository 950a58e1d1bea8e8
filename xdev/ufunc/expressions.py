"""What NumPy's elementwise functions are on CUDA: C++ expressions, compiled by NVRTC.

``x`` and ``y`` are the inputs, ``R`` the result's type; float16 is computed as float.
What is more than an operator or a function of C++ is in ``functions.cuh``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev.compile import cubins, digests
from xdev.compile.formulas import Dtypes, is_half
from xdev.ufunc.dtypes import Specialisation, resolve
from xdev.ufunc.ufuncs import Definition, Ufunc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.ufunc.dtypes import Signature

FLOATING: tuple[str, ...]
FLOATING = ("acos", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "sin")
FLOATING += ("sinh", "sqrt")
#: By the standard's names: of bools and integers, of real floats, of complex floats.
# Which of them there are is NumPy's to say: the others are never asked for.
EXPRESSIONS: dict[str, tuple[str, str, str]] = {
    # Functions of C++ by their own names.
    **{name: ("", f"{name}(x)", f"{name}(x)") for name in FLOATING},
    **{name: ("x", f"{name}(x)", "") for name in ("ceil", "floor", "trunc")},
    **{name: ("", f"{name}(x, y)", "") for name in ("atan2", "copysign", "hypot")},
    **{name: (f"{name}(x, y)",) * 3 for name in ("maximum", "minimum")},
    "abs": ("absolute(x)", "fabs(x)", "hypot(x.real(), x.imag())"),
    "acosh": ("", "acosh(x)", "inverse_cosh(x)"),
    "add": ("R(uint64(x) + uint64(y))", "x + y", "x + y"),
    "bitwise_and": ("x & y", "", ""),
    "bitwise_invert": ("same<R, bool> ? !x : ~x", "", ""),
    "bitwise_left_shift": ("shift_left(x, y)", "", ""),
    "bitwise_or": ("x | y", "", ""),
    "bitwise_right_shift": ("shift_right(x, y)", "", ""),
    "bitwise_xor": ("x ^ y", "", ""),
    "conj": ("x", "x", "R(x.real(), -x.imag())"),
    "divide": ("", "x / y", "divide(x, y)"),
    "equal": ("equal(x, y)", "x == y", "x == y"),
    "expm1": ("", "expm1(x)", "exp_m1(x)"),
    "floor_divide": ("floor_divide(x, y)", "floor_divide(x, y)", ""),
    "greater": ("less(y, x)", "x > y", "less(y, x)"),
    "greater_equal": ("!less(x, y)", "x >= y", "less_equal(y, x)"),
    "isfinite": ("true", "isfinite(x)", "isfinite(x.real()) && isfinite(x.imag())"),
    "isinf": ("false", "isinf(x)", "isinf(x.real()) || isinf(x.imag())"),
    "isnan": ("false", "isnan(x)", "is_nan(x)"),
    "less": ("less(x, y)", "x < y", "less(x, y)"),
    "less_equal": ("!less(y, x)", "x <= y", "less_equal(x, y)"),
    "log": ("", "log(x)", "logarithm(x)"),
    "log10": ("", "log10(x)", "logarithm(x, decltype(x.real())(10))"),
    "log1p": ("", "log1p(x)", "log_1p(x)"),
    "log2": ("", "log2(x)", "logarithm(x, decltype(x.real())(2))"),
    "logaddexp": ("", "log_add_exp(x, y)", ""),
    "logical_and": ("x && y", "x != 0 && y != 0", "truth(x) && truth(y)"),
    "logical_not": ("!x", "x == 0", "!truth(x)"),
    "logical_or": ("x || y", "x != 0 || y != 0", "truth(x) || truth(y)"),
    "logical_xor": ("!x != !y", "(x != 0) != (y != 0)", "truth(x) != truth(y)"),
    "multiply": ("R(uint64(x) * uint64(y))", "x * y", "multiply(x, y)"),
    "negative": ("R(-uint64(x))", "-x", "-x"),
    "nextafter": ("", "nextafter(x, y)", ""),
    "not_equal": ("!equal(x, y)", "x != y", "x != y"),
    "positive": ("x", "x", "x"),
    "pow": ("power(x, y)", "pow(x, y)", "pow(x, y)"),
    "reciprocal": ("reciprocal(x)", "1 / x", "reciprocal(x)"),
    "remainder": ("remainder(x, y)", "remainder(x, y)", ""),
    "round": ("x", "rint(x)", "R(rint(x.real()), rint(x.imag()))"),
    "sign": ("sign(x)", "sign(x)", "sign(x)"),
    "signbit": ("", "signbit(x)", ""),
    "square": ("R(uint64(x) * uint64(x))", "x * x", "multiply(x, x)"),
    "subtract": ("R(uint64(x) - uint64(y))", "x - y", "x - y"),
    "tan": ("", "tan(x)", "tangent(x)"),
    "tanh": ("", "tanh(x)", "hyperbolic_tangent(x)"),
}
#: Of three inputs, for the facade's own functions.
SELECTIONS: dict[str, tuple[str, str, str]] = {
    "clip": ("minimum(maximum(x, y), z)",) * 3,
    "where": ("x ? y : z", "", ""),
}
COLUMNS = {"b": 0, "i": 0, "u": 0, "f": 1, "V": 1, "c": 2}  # V: bfloat16
LONG = "gG"  # longdouble's codes: C++ for CUDA has none
#: Functions that are quicker where a thread has more elements under way, by the dtypes
#: of which they are.
DEEP = dict.fromkeys(("acos", "asin", "atan2", "tanh"), "d")
DEEP |= dict.fromkeys(("log", "log10", "log1p", "log2", "logaddexp"), "d") | {
    "pow": "df"
}
HALF = {"nextafter": "next_half(x, y)"}  # the floats next to one are others


def source(name: str, inputs: Dtypes, outputs: Dtypes) -> str:
    """Return a function in C++, as the templates call it, of what its loop reads."""
    expression = (EXPRESSIONS | SELECTIONS)[name][COLUMNS[inputs[0].kind]]
    if name in HALF and is_half(inputs[0]):
        expression = HALF[name]
    names = "xyz"[: len(inputs)]
    taken = [cubins.cpp_name(cubins.computed(d)) for d in inputs]
    (written,) = (cubins.cpp_name(cubins.computed(d)) for d in outputs)
    pairs = list(zip(taken, names, strict=True))
    pointers = ", ".join(f"const {cpp}* {name}" for cpp, name in pairs)
    values = ", ".join(f"{_number(cpp)} {name}" for cpp, name in pairs)
    loaded = ", ".join(f"xdev::load({name})" for name in names)
    front = "#include <cupy/complex.cuh>\n#define XDEV_COMPLEX\n"
    return (
        f"{front if _has_complex(inputs, outputs) else ''}"
        f'#include "functions.cuh"\n'
        f"namespace xdev {{\n"
        f"using R = {_number(written)};\n"
        f"__device__ inline R value({values}) {{ return R({expression}); }}\n"
        f"}}\n"
        f'extern "C" __device__ inline void {cubins.FUNCTION}'
        f"({pointers}, {written}* result)\n"
        f"{{\n    *result = xdev::stored(xdev::value({loaded}));\n}}\n"
    )


def _number(cpp: str) -> str:
    """Return the type that computes what is one in memory: complex.cuh's."""
    return cpp.replace("xdev::complex", "::complex")


def _has_complex(inputs: Dtypes, outputs: Dtypes) -> bool:
    return any(d.kind == "c" for d in (*inputs, *outputs))


def _headers() -> str:
    """Return the folder of CuPy's own headers: its complex numbers."""
    return str(Path(_optional.cupy().__file__).parent / "_core" / "include")


def typed(
    name: str, ufunc: np.ufunc, inputs: Dtypes, signature: Signature = ((), ())
) -> Specialisation:
    """Return an elementwise function's typing, NumPy's own, as ``signature`` asks."""
    if name.startswith("logical_"):  # NumPy casts what is mixed with bools, unsafely
        inputs = (np.result_type(*inputs),) * len(inputs)
    asked: Any = (*signature[0], *signature[1])
    options = {"signature": asked} if any(d is not None for d in asked) else {}
    loop = ufunc.resolve_dtypes((*inputs, None), casting="unsafe", **options)
    columns = EXPRESSIONS[name]
    supported = all(d.kind in COLUMNS and d.char not in LONG for d in loop)
    if not supported or not columns[COLUMNS[loop[0].kind]]:
        kinds = ", ".join(map(str, inputs))
        message = f"xdev.{name} has no loop for {kinds} on CUDA: cast with xdev.astype"
        raise TypeError(message)
    native = tuple(np.dtype(d.type) for d in loop)  # the same objects as arrays'
    return _specialisation(name, native[:-1], native[-1:])


def _specialisation(name: str, inputs: Dtypes, outputs: Dtypes) -> Specialisation:
    code = source(name, inputs, outputs)
    with_complex = _has_complex(inputs, outputs)

    def cubin(
        kernel: cubins.Template, capability: tuple[int, int], fastmath: bool
    ) -> tuple[bytes, str]:
        folders = [_headers()] if with_complex else []
        return cubins.expressed(kernel, code, capability, folders, fastmath=fastmath)

    digest = digests.joined(code, _optional.version("cupy") if with_complex else None)
    deep = inputs[0].char in DEEP.get(name, "")
    return Specialisation(name, inputs, outputs, digest, cubin, deep=deep)


@final
class Selection(Definition):
    """What chooses among elements on CUDA: one of :data:`SELECTIONS`."""

    nin, nout = 3, 1

    def __init__(self, name: str, labels: tuple[str, ...]) -> None:
        self.key, self.name, self.labels = name, f"xdev.{name}", labels
        self._typings: dict[Dtypes, Specialisation] = {}

    def describe(self, ufunc: Ufunc) -> None:
        """Give a ufunc the name."""
        vars(ufunc).update(__name__=self.key, __qualname__=self.key)

    def call(
        self, ufunc: Ufunc, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        """Compute a call that no plan is for."""
        return ufunc._cuda(args, **keywords)  # noqa: SLF001 - its half

    def resolve(self, args: Sequence[Any]) -> Dtypes:
        """Return each argument's dtype."""
        return resolve(args, self.name)

    def specialise(self, inputs: Dtypes) -> Specialisation:
        """Return the typing: what is chosen from has one dtype."""
        spec = self._typings.get(inputs)
        if spec is None:
            chosen = inputs[:1] if self.key == "clip" else inputs[1:]
            kind = np.result_type(*chosen)
            first = kind if self.key == "clip" else np.dtype(bool)
            spec = _specialisation(self.key, (first, kind, kind), (kind,))
            spec = self._typings.setdefault(inputs, spec)
        return spec


@cache
def selection(name: str, *labels: str) -> Ufunc:
    """Return the ufunc on CUDA arrays of a selection."""
    return Ufunc(Selection(name, labels))
