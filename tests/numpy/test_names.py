"""``xdev.numpy``: every name of NumPy's, on every device, with NumPy's results."""

from __future__ import annotations

import numpy  # noqa: ICN001 - np is what is tested
import pytest

import xdev
import xdev.numpy
from xdev.device.fake import NOT_IN_CUPY

ROOMS = ("", "linalg.", "fft.")
#: By function: arguments with which it is called, as a program writes them.
CALLS = {
    **dict.fromkeys(
        (
            *("negative", "square", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
            *("arctan", "atan", "arcsinh", "asinh", "exp", "exp2", "expm1", "floor"),
            *("ceil", "rint", "trunc", "fix", "sign", "fabs", "abs", "absolute"),
            *("isfinite", "isnan", "isinf", "signbit", "positive", "deg2rad"),
            *("rad2deg", "degrees", "radians", "cbrt", "spacing", "conjugate", "conj"),
            *("logical_not", "frexp", "modf", "isneginf", "isposinf", "isreal"),
            *("iscomplex", "isrealobj", "iscomplexobj", "real", "imag", "angle"),
            *("sinc", "i0", "nan_to_num", "sum", "prod", "mean", "std", "var", "max"),
            *("min", "amax", "amin", "ptp", "median", "all", "any", "argmax"),
            *("argmin", "cumsum", "cumprod", "cumulative_sum", "cumulative_prod"),
            *("nansum", "nanprod", "nanmean", "nanstd", "nanvar", "nanmax", "nanmin"),
            *("nanmedian", "nancumsum", "nancumprod", "nanargmax", "nanargmin"),
            *("sort", "argsort", "diff", "ediff1d", "gradient", "trapezoid", "ravel"),
            *("flip", "copy", "array", "asarray", "asanyarray", "ascontiguousarray"),
            *("asfortranarray", "asarray_chkfinite", "atleast_1d", "atleast_2d"),
            *("atleast_3d", "squeeze", "transpose", "permute_dims", "nonzero", "size"),
            *("flatnonzero", "argwhere", "count_nonzero", "ndim", "shape", "unwrap"),
            *("zeros_like", "ones_like", "unique", "unique_values", "unique_counts"),
            *("unique_inverse", "unique_all", "diag", "diagflat", "vander", "round"),
            *("around", "sort_complex", "iterable", "isfortran", "average", "block"),
            *("real_if_close", "trim_zeros", "poly", "cov", "histogram_bin_edges"),
            *("array_repr", "array_str", "histogram", "require", "array2string"),
            *("linalg.norm", "linalg.vector_norm", "fft.fft", "fft.ifft", "fft.rfft"),
            *("fft.ihfft", "fft.fftshift", "fft.ifftshift", "fft.irfft", "fft.hfft"),
        ),
        "(x)",
    ),
    **dict.fromkeys(
        (
            *("add", "subtract", "multiply", "divide", "true_divide", "floor_divide"),
            *("mod", "remainder", "fmod", "maximum", "minimum", "fmax", "fmin"),
            *("hypot", "arctan2", "atan2", "copysign", "nextafter", "logaddexp"),
            *("logaddexp2", "heaviside", "less", "less_equal", "greater", "equal"),
            *("greater_equal", "not_equal", "logical_and", "logical_or", "divmod"),
            *("logical_xor", "dot", "vdot", "inner", "outer", "kron", "meshgrid"),
            *(
                "convolve",
                "correlate",
                "isclose",
                "allclose",
                "array_equal",
                "array_equiv",
            ),
            *("polyadd", "polysub", "polymul", "union1d", "intersect1d", "setdiff1d"),
            *("setxor1d", "isin", "append", "result_type", "polydiv"),
            *("may_share_memory", "shares_memory", "broadcast_arrays", "common_type"),
            *("vecdot", "linalg.outer", "linalg.vecdot", "corrcoef"),
        ),
        "(x, y)",
    ),
    **dict.fromkeys(
        ("log", "log2", "log10", "log1p", "sqrt", "reciprocal"), "(abs(x))"
    ),
    **dict.fromkeys(("arcsin", "asin", "arccos", "acos"), "(x / 10)"),
    **dict.fromkeys(("arctanh", "atanh"), "(x / 10)"),
    **dict.fromkeys(("arccosh", "acosh"), "(1 + abs(x))"),
    **dict.fromkeys(("power", "pow", "float_power"), "(abs(x), y)"),
    **dict.fromkeys(
        ("gcd", "lcm", "bitwise_and", "bitwise_or", "bitwise_xor"), "(i, j)"
    ),
    **dict.fromkeys(("left_shift", "right_shift"), "(i, j)"),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), "(i, j)"),
    **dict.fromkeys(
        ("invert", "bitwise_not", "bitwise_invert", "bitwise_count"), "(i)"
    ),
    **dict.fromkeys(
        ("concatenate", "concat", "hstack", "vstack", "dstack"), "([x, y])"
    ),
    **dict.fromkeys(("column_stack", "stack", "row_stack", "row_stack"), "([x, y])"),
    **dict.fromkeys(("split", "hsplit", "array_split"), "(x, 3)"),
    **dict.fromkeys(("tril", "triu", "diagonal", "trace", "fliplr", "flipud"), "(m)"),
    **dict.fromkeys(("rot90", "matrix_transpose", "linalg.matrix_transpose"), "(m)"),
    **dict.fromkeys(("linalg.trace", "linalg.diagonal", "linalg.matrix_norm"), "(m)"),
    **dict.fromkeys(("linalg.det", "linalg.inv", "linalg.pinv", "linalg.cond"), "(m)"),
    **dict.fromkeys(("linalg.slogdet", "linalg.matrix_rank", "linalg.svdvals"), "(m)"),
    **dict.fromkeys(("tril_indices_from", "triu_indices_from"), "(m)"),
    **dict.fromkeys(("linalg.eigvalsh",), "(m + m.T)"),
    **dict.fromkeys(("linalg.cholesky",), "(m @ m.T)"),
    **dict.fromkeys(("matmul", "linalg.matmul", "linalg.solve"), "(m, m)"),
    **dict.fromkeys(("tensordot", "linalg.tensordot"), "(m, m, axes=1)"),
    **dict.fromkeys(("matvec",), "(m, x[:3])"),
    **dict.fromkeys(("vecmat",), "(x[:3], m)"),
    **dict.fromkeys(("cross", "linalg.cross"), "(x[:3], y[:3])"),
    **dict.fromkeys(("fft.fft2", "fft.ifft2", "fft.fftn", "fft.ifftn"), "(m)"),
    **dict.fromkeys(("fft.rfft2", "fft.rfftn", "fft.irfft2", "fft.irfftn"), "(m)"),
    **dict.fromkeys(
        ("quantile", "percentile", "nanquantile", "nanpercentile"), "(x, 1)"
    ),
    **dict.fromkeys(("zeros", "ones", "identity", "eye", "tri", "hanning"), "(3)"),
    **dict.fromkeys(("hamming", "blackman", "bartlett", "tril_indices"), "(3)"),
    **dict.fromkeys(("triu_indices", "diag_indices", "fft.rfftfreq"), "(3)"),
    **dict.fromkeys(("digitize",), "(x, numpy_sorted)"),
    "fft.fftfreq": "(4, 0.5)",
    "kaiser": "(3, 2.0)",
    "full": "((2, 3), 7)",
    "arange": "(1, 9, 2)",
    "linspace": "(0, 1, 7)",
    "logspace": "(0, 1, 3)",
    "geomspace": "(1, 8, 4)",
    "indices": "((2, 3))",
    "fromfunction": "(lambda a, b: a + b, (2, 3))",
    "fromiter": "(iter([1.0, 2.0]), float)",
    "frombuffer": "(b'\\x01\\x02', 'u1')",
    "fromstring": "('1 2', sep=' ')",
    "from_dlpack": "(x)",
    "ix_": "([0, 1], [1, 2])",
    "full_like": "(x, 3)",
    "empty_like": "(x).shape",
    "empty": "((2, 3)).shape",
    "astype": "(x, 'f4')",
    "clip": "(x, -1, 1)",
    "where": "(x > 0, x, y)",
    "extract": "(x > 0, x)",
    "compress": "(x > 0, x)",
    "select": "([x > 0, x < -1], [x, y])",
    "choose": "(i % 2, np.stack([x, y]))",  # CuPy takes no list of choices
    "piecewise": "(x, [x < 0, x >= 0], [-1.0, 1.0])",
    "ldexp": "(x, i)",
    "take": "(x, i)",
    "take_along_axis": "(x, i, 0)",
    "reshape": "(x, (2, -1))",
    "resize": "(x, (2, 4))",
    "tile": "(x, 2)",
    "repeat": "(x, 2)",
    "roll": "(x, 1)",
    "rollaxis": "(m, 1)",
    "moveaxis": "(m, 0, 1)",
    "swapaxes": "(m, 0, 1)",
    "expand_dims": "(x, 0)",
    "broadcast_to": "(x, (2, 6))",
    "broadcast_shapes": "((2, 1), (3,))",
    "vsplit": "(m, 3)",
    "dsplit": "(x.reshape(1, 2, 3), 3)",
    "unstack": "(m)",
    "pad": "(x, 1)",
    "partition": "(x, 2)[2]",
    "argpartition": "(x, 2)[2]",
    "lexsort": "(m)",
    "searchsorted": "(np.sort(x), y)",
    "bincount": "(i)",
    "histogram2d": "(x, y, 3)",
    "histogramdd": "(m, 3)",
    "interp": "(y, np.sort(x), x)",
    "einsum": "('ij,jk', m, m)",
    "einsum_path": "('ij,jk', m, m)",
    "insert": "(x, 1, 5.0)",
    "delete": "(x, 1)",
    "fill_diagonal": "(m.copy(), 1)",
    "copyto": "(x.copy(), y)",
    "put": "(x.copy(), i, y)",
    "put_along_axis": "(x.copy(), i, y, 0)",
    "putmask": "(x.copy(), x > 0, y)",
    "place": "(x.copy(), x > 0, y)",
    "packbits": "(i > 2)",
    "unpackbits": "(i.astype('u1'))",
    "polyval": "(x, y)",
    "polyfit": "(x, y, 2)",
    "polyder": "(x)",
    "polyint": "(x)",
    "roots": "([1.0, 3.0, 2.0])",
    "unravel_index": "(i, (2, 3))",
    "ravel_multi_index": "((i % 2, j % 2), (2, 2))",
    "diag_indices_from": "(m)",
    "mask_indices": "(3, numpy.triu)",
    "apply_along_axis": "(lambda row: row.sum(), 0, m)",
    "apply_over_axes": "(np.sum, m, [0])",
    "linalg.lstsq": "(m, x[:3], rcond=None)[0]",
    "linalg.matrix_power": "(m, 3)",
    "linalg.multi_dot": "([m, m, m])",
    "linalg.tensorsolve": "(m, x[:3])",
    "linalg.tensorinv": "(m, ind=1)",
    "linalg.qr": "(m)[1].shape",
    "linalg.svd": "(m)[1]",
    "linalg.eigh": "(m + m.T)[0]",
    "linalg.eigvals": "(m @ m.T).real.sum()",
    "linalg.eig": "(m @ m.T)[0].real.sum()",
    "base_repr": "(5, 2)",
    "binary_repr": "(5)",
    "isscalar": "(3)",
    "isdtype": "(numpy.dtype('f4'), 'real floating')",
    "issubdtype": "('f4', np.floating)",
    "can_cast": "('f4', 'f8')",
    "promote_types": "('f4', 'i8')",
    "min_scalar_type": "(10)",
    "mintypecode": "('fd')",
    "typename": "('f')",
    "format_float_positional": "(1.5)",
    "format_float_scientific": "(1.5)",
}
#: What is about the process, files, texts or dates, and has no array of a device.
HOST = frozenset(
    (
        *(
            "asmatrix",
            "bmat",
            "busday_count",
            "busday_offset",
            "is_busday",
            "frompyfunc",
        ),
        *("datetime_as_string", "datetime_data", "isnat", "nested_iters", "info"),
        *("get_include", "get_printoptions", "set_printoptions", "printoptions"),
        *("getbufsize", "setbufsize", "geterr", "seterr", "geterrcall", "seterrcall"),
        *("show_config", "show_runtime", "fromfile", "fromregex", "genfromtxt"),
        *("load", "loadtxt", "save", "savetxt", "savez", "savez_compressed"),
    )
)


def functions():
    for room in ROOMS:
        module = getattr(numpy, room[:-1]) if room else numpy
        for name in sorted(module.__all__):
            if name in {"test", "f2py", "core"} or name.startswith("_"):
                continue
            found = getattr(module, name)
            if callable(found) and not isinstance(found, type):
                yield f"{room}{name}"


def evaluate(np, name, upload):
    rng = numpy.random.default_rng(0)
    names = {
        "x": upload(rng.standard_normal(6)),
        "y": upload(rng.standard_normal(6)),
        "m": upload(rng.standard_normal((3, 3))),
        "i": upload(numpy.array([0, 3, 1, 5, 2, 4])),
        "j": upload(numpy.array([1, 2, 3, 4, 5, 6])),
        "numpy_sorted": upload(numpy.array([-1.0, 0.0, 1.0])),
        "np": np,
        "numpy": numpy,
    }
    return eval(f"np.{name}{CALLS[name]}", names)  # noqa: S307 - the table above


def host(x):
    if isinstance(x, tuple | list):
        return [host(part) for part in x]
    return xdev.to_numpy(x) if xdev.numpy.dispatch.is_array(x) else x


def assert_same(found, wanted):
    if isinstance(wanted, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    elif isinstance(wanted, numpy.ndarray | numpy.generic | float | complex):
        numpy.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
        assert numpy.asarray(found).dtype.kind == numpy.asarray(wanted).dtype.kind
    else:
        assert found == wanted


def test_every_function_of_numpys_is_in_the_table():
    assert {*functions()} - {*CALLS} <= HOST


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", sorted({*CALLS} & {*functions()}))
def test_a_function_gives_numpys_result_on_every_device(device, name):
    wanted = host(evaluate(numpy, name, lambda x: x))

    with xdev.use_device(device):
        try:
            result = evaluate(xdev.numpy, name, lambda x: xdev.to_device(x, device))
        except (TypeError, NotImplementedError, ValueError) as error:
            says_so = name in NOT_IN_CUPY and "xdev.to_numpy" in str(error)
            if device.type == "cpu" or not says_so:
                raise
            return

    for part in result if isinstance(result, tuple | list) else [result]:
        if device.type != "cpu" and isinstance(part, numpy.ndarray):
            assert part.dtype.kind in "OU"
    assert_same(host(result), wanted)


@pytest.mark.parametrize("name", ["sum", "copy", "array", "ravel", "concatenate"])
def test_a_freed_array_is_refused(device, name):
    x = xdev.ones((3, 2), device=device)
    xdev.memory.free(x)
    with pytest.raises(xdev.UseAfterFreeError, match=r"was freed before"):
        getattr(xdev.numpy, name)([x, x] if name == "concatenate" else x)


def test_records_are_not_taken_for_freed_arrays():
    x = xdev.numpy.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])
    assert xdev.numpy.concatenate([x, x])["b"].tolist() == [2, 2]
