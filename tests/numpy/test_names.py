"""``xdev.numpy``: every name of NumPy's, on every device, with NumPy's results."""

import re

import numpy  # noqa: ICN001 - np is what is tested
import pytest

import xdev
import xdev.numpy

ROOMS = ("", "linalg.", "fft.")
#: By their arguments: functions, as a program writes their calls.
ALIKE = """\
np.*(x)
    negative square sin cos tan sinh cosh tanh arctan atan arcsinh asinh exp exp2
    expm1 floor ceil rint trunc fix sign fabs abs absolute isfinite isnan isinf
    signbit positive deg2rad rad2deg degrees radians cbrt spacing conjugate conj
    logical_not frexp modf isneginf isposinf isreal iscomplex isrealobj iscomplexobj
    real imag angle sinc i0 nan_to_num sum prod mean std var max min amax amin ptp
    median all any argmax argmin cumsum cumprod cumulative_sum cumulative_prod
    nansum nanprod nanmean nanstd nanvar nanmax nanmin nanmedian nancumsum
    nancumprod nanargmax nanargmin sort argsort diff ediff1d gradient trapezoid
    ravel flip copy array asarray asanyarray ascontiguousarray asfortranarray
    asarray_chkfinite atleast_1d atleast_2d atleast_3d squeeze transpose
    permute_dims nonzero size flatnonzero argwhere count_nonzero ndim shape unwrap
    zeros_like ones_like unique unique_values unique_counts unique_inverse
    unique_all diag diagflat vander round around sort_complex iterable isfortran
    average block real_if_close trim_zeros poly cov histogram_bin_edges array_repr
    array_str histogram require array2string linalg.norm linalg.vector_norm fft.fft
    fft.ifft fft.rfft fft.ihfft fft.fftshift fft.ifftshift fft.irfft fft.hfft
    from_dlpack polyder polyint
np.*(x, y)
    add subtract multiply divide true_divide floor_divide mod remainder fmod maximum
    minimum fmax fmin hypot arctan2 atan2 copysign nextafter logaddexp logaddexp2
    heaviside less less_equal greater equal greater_equal not_equal logical_and
    logical_or divmod logical_xor dot vdot inner outer kron meshgrid convolve
    correlate isclose allclose array_equal array_equiv polyadd polysub polymul
    union1d intersect1d setdiff1d setxor1d isin append result_type polydiv
    may_share_memory shares_memory broadcast_arrays common_type vecdot linalg.outer
    linalg.vecdot corrcoef polyval
np.*(abs(x))
    log log2 log10 log1p sqrt reciprocal
np.*(x / 10)
    arcsin asin arccos acos arctanh atanh
np.*(1 + abs(x))
    arccosh acosh
np.*(abs(x), y)
    power pow float_power
np.*(i, j)
    gcd lcm bitwise_and bitwise_or bitwise_xor left_shift right_shift
    bitwise_left_shift bitwise_right_shift
np.*(i)
    invert bitwise_not bitwise_invert bitwise_count bincount
np.*([x, y])
    concatenate concat hstack vstack dstack column_stack stack row_stack
np.*(x, 3)
    split hsplit array_split full_like
np.*(m)
    tril triu diagonal trace fliplr flipud rot90 matrix_transpose
    linalg.matrix_transpose linalg.trace linalg.diagonal linalg.matrix_norm
    linalg.det linalg.inv linalg.pinv linalg.cond linalg.slogdet linalg.matrix_rank
    linalg.svdvals tril_indices_from triu_indices_from fft.fft2 fft.ifft2 fft.fftn
    fft.ifftn fft.rfft2 fft.rfftn fft.irfft2 fft.irfftn unstack lexsort
    diag_indices_from
np.*(m, m)
    matmul linalg.matmul linalg.solve
np.*(m, m, axes=1)
    tensordot linalg.tensordot
np.*(m, x[:3])
    matvec linalg.tensorsolve
np.*(x[:3], y[:3])
    cross linalg.cross
np.*(x, 1)
    quantile percentile nanquantile nanpercentile roll pad delete
np.*(3)
    zeros ones identity eye tri hanning hamming blackman bartlett tril_indices
    triu_indices diag_indices fft.rfftfreq isscalar
np.*(x > 0, x)
    extract compress
np.*(x, i)
    ldexp take
np.*(x, 2)
    tile repeat
np.*(m, 0, 1)
    moveaxis swapaxes
np.*(m, 3)
    vsplit histogramdd linalg.matrix_power
np.*(x, 2)[2]
    partition argpartition
np.*('ij,jk', m, m)
    einsum einsum_path
np.*(x.copy(), x > 0, y)
    putmask place
np.*(1.5)
    format_float_positional format_float_scientific
"""
#: Other calls; CuPy's ``choose`` takes no list of choices.
OTHERS = r"""
linalg.eigvalsh(m + m.T) | linalg.cholesky(m @ m.T) | vecmat(x[:3], m)
digitize(x, numpy_sorted) | fft.fftfreq(4, 0.5) | kaiser(3, 2.0) | full((2, 3), 7)
arange(1, 9, 2) | linspace(0, 1, 7) | logspace(0, 1, 3) | geomspace(1, 8, 4)
indices((2, 3)) | fromfunction(lambda a, b: a + b, (2, 3))
fromiter(iter([1.0, 2.0]), float) | frombuffer(b'\x01\x02', 'u1')
fromstring('1 2', sep=' ') | ix_([0, 1], [1, 2]) | empty_like(x).shape
empty((2, 3)).shape | astype(x, 'f4') | clip(x, -1, 1) | where(x > 0, x, y)
select([x > 0, x < -1], [x, y]) | choose(i % 2, np.stack([x, y]))
piecewise(x, [x < 0, x >= 0], [-1.0, 1.0]) | take_along_axis(x, i, 0)
reshape(x, (2, -1)) | resize(x, (2, 4)) | rollaxis(m, 1) | expand_dims(x, 0)
broadcast_to(x, (2, 6)) | broadcast_shapes((2, 1), (3,))
dsplit(x.reshape(1, 2, 3), 3) | searchsorted(np.sort(x), y) | histogram2d(x, y, 3)
interp(y, np.sort(x), x) | insert(x, 1, 5.0) | fill_diagonal(m.copy(), 1)
copyto(x.copy(), y) | put(x.copy(), i, y) | put_along_axis(x.copy(), i, y, 0)
packbits(i > 2) | unpackbits(i.astype('u1')) | polyfit(x, y, 2)
roots([1.0, 3.0, 2.0]) | unravel_index(i, (2, 3))
ravel_multi_index((i % 2, j % 2), (2, 2)) | mask_indices(3, numpy.triu)
apply_along_axis(lambda row: row.sum(), 0, m) | apply_over_axes(np.sum, m, [0])
linalg.lstsq(m, x[:3], rcond=None)[0] | linalg.multi_dot([m, m, m])
linalg.tensorinv(m, ind=1) | linalg.qr(m)[1].shape | linalg.svd(m)[1]
linalg.eigh(m + m.T)[0] | linalg.eigvals(m @ m.T).real.sum()
linalg.eig(m @ m.T)[0].real.sum() | base_repr(5, 2) | binary_repr(5)
isdtype(numpy.dtype('f4'), 'real floating') | issubdtype('f4', np.floating)
can_cast('f4', 'f8') | promote_types('f4', 'i8') | min_scalar_type(10)
mintypecode('fd') | typename('f')
"""


def _calls():
    for line in ALIKE.splitlines():
        if line.startswith("np.*"):
            arguments = line.removeprefix("np.*")
        else:
            yield from ((name, arguments) for name in line.split())
    for call in OTHERS.replace("\n", " | ").strip(" |").split(" | "):
        name, _, arguments = call.partition("(")
        yield name, f"({arguments}"


CALLS = dict(_calls())

#: What is about the process, files, texts or dates, and has no array of a device.
HOST = """
    asmatrix bmat busday_count busday_offset datetime_as_string datetime_data fromfile
    frompyfunc fromregex genfromtxt get_include get_printoptions getbufsize geterr
    geterrcall info is_busday isnat load loadtxt nested_iters printoptions save savetxt
    savez savez_compressed set_printoptions setbufsize seterr seterrcall show_config
    show_runtime
"""


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
    return xdev.to_numpy(x) if isinstance(x, xdev.numpy.ndarray) else x


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
    assert {*functions()} - {*CALLS} <= {*HOST.split()}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", sorted({*CALLS} & {*functions()}))
def test_a_function_gives_numpys_result_on_every_device(device, name):
    wanted = host(evaluate(numpy, name, lambda x: x))

    with xdev.use_device(device):
        try:
            result = evaluate(xdev.numpy, name, lambda x: xdev.to_device(x, device))
        except (TypeError, NotImplementedError, ValueError) as error:
            lacks = rf"cupy has no '{name}'.*xdev\.to_numpy"
            if device.type == "cpu" or not re.search(lacks, str(error)):
                raise
            return

    for part in result if isinstance(result, tuple | list) else [result]:
        if device.type != "cpu" and isinstance(part, numpy.ndarray):
            assert part.dtype.kind in "OU"
    assert_same(host(result), wanted)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("shape", [numpy.array([2, 3]), range(2, 4), numpy.int64(3)])
def test_a_shape_may_be_any_sequence_of_numpys(device, shape, order):
    with xdev.use_device(device):
        found = host(xdev.numpy.ones(shape, order=order))
    wanted = numpy.ones(shape, order=order)
    assert_same(found, wanted)
    if device.type == "cpu":
        assert found.strides == wanted.strides


@pytest.mark.parametrize("name", ["sum", "copy", "array", "ravel", "concatenate"])
def test_a_freed_array_is_refused(device, name):
    x = xdev.ones((3, 2), device=device)
    xdev.memory.free(x)
    with pytest.raises(xdev.UseAfterFreeError, match=r"was freed before"):
        getattr(xdev.numpy, name)([x, x] if name == "concatenate" else x)
