"""What NumPy's and CuPy's arrays share, as data: all that a fake array has."""

from __future__ import annotations

#: The data types, by NumPy's characters.
DTYPES = "?bhilqBHILQefdFDE"  # E is ml_dtypes' bfloat16
#: The methods that ``numpy.ndarray`` and ``cupy.ndarray`` share, with the parameters
#: that both have; a star takes any number of them.
METHODS = {
    **dict.fromkeys(("all", "any", "max", "min"), "axis out keepdims"),
    **dict.fromkeys(("argmax", "argmin"), "axis out keepdims"),
    **dict.fromkeys(("mean", "prod", "sum"), "axis dtype out keepdims"),
    **dict.fromkeys(("std", "var"), "axis dtype out ddof keepdims"),
    **dict.fromkeys(("cumprod", "cumsum"), "axis dtype out"),
    **dict.fromkeys(("argpartition", "partition"), "kth axis"),
    **dict.fromkeys(("argsort", "sort"), "axis kind"),
    **dict.fromkeys(("conj", "conjugate", "item", "nonzero", "tolist"), ""),
    **dict.fromkeys(("copy", "flatten", "ravel", "tobytes"), "order"),
    "astype": "dtype order casting subok copy",
    "clip": "min max out",
    "compress": "condition axis out",
    "diagonal": "offset axis1 axis2",
    "dot": "b out",
    "fill": "value",
    "put": "indices values mode",
    "repeat": "repeats axis",
    "reshape": "* order copy",
    "round": "decimals out",
    "searchsorted": "v side sorter",
    "squeeze": "axis",
    "swapaxes": "axis1 axis2",
    "take": "indices axis out",
    "trace": "offset axis1 axis2 dtype out",
    "transpose": "*",
    "view": "dtype",
}
#: Methods whose results are the host's.
DOWNLOADS = ("item", "tobytes", "tolist")
#: What the arguments behind a star are, together.
STARRED = {"reshape": "shape", "transpose": "axes"}
#: Their shared attributes.
ATTRIBUTES = (
    *("T", "dtype", "flags", "imag", "itemsize", "mT", "nbytes", "ndim", "real"),
    *("shape", "size", "strides"),
)
#: Those that can be set.
SETTABLE = ("imag", "real", "shape")
UNARY = ("neg", "pos", "abs", "invert")
#: By Python's names: how an operator is written, and NumPy's ufunc of it.
BINARY = {
    "add": ("+", "add"),
    "sub": ("-", "subtract"),
    "mul": ("*", "multiply"),
    "truediv": ("/", "true_divide"),
    "floordiv": ("//", "floor_divide"),
    "mod": ("%", "remainder"),
    "divmod": ("divmod", "divmod"),
    "pow": ("**", "power"),
    "matmul": ("@", "matmul"),
    "and": ("&", "bitwise_and"),
    "or": ("|", "bitwise_or"),
    "xor": ("^", "bitwise_xor"),
    "lshift": ("<<", "left_shift"),
    "rshift": (">>", "right_shift"),
}
COMPARISONS = {
    "eq": ("==", "equal"),
    "ne": ("!=", "not_equal"),
    "lt": ("<", "less"),
    "le": ("<=", "less_equal"),
    "gt": (">", "greater"),
    "ge": (">=", "greater_equal"),
}
#: Binary operators that have no form in place: ``@=`` makes a new array, as CuPy's.
NOT_IN_PLACE = ("divmod", "matmul")
CONVERSIONS = ("bool", "int", "float", "complex")
