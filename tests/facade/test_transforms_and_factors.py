"""Fourier transforms of any layout, and singular values, beside NumPy's."""

import itertools

import numpy as np
import pytest

import xdev

NORMS = "backward", "ortho", "forward"
COMPLEX = "fft", "ifft", "irfft", "hfft"
REAL = "rfft", "ihfft"
VIEWS = {
    "whole": lambda x: x,
    "transposed": lambda x: x.T,
    "a part": lambda x: x[1:],
    "every second": lambda x: x[..., ::2],
}


def sample(shape, char, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if char in "FD" else x).astype(char)


def assert_transformed(device, name, x, view, **options):
    there, own = xdev.asarray(x, device=device), view(x)
    for _ in range(2):  # the second time by what the first one planned
        out = getattr(xdev.fft, name)(view(there), **options)
        expected = getattr(np.fft, name)(own, **options)
        assert (out.shape, out.dtype) == (expected.shape, expected.dtype)
        scale = np.abs(expected).max() or 1
        close = 2e-6 if x.dtype.char in "fF" else 1e-14
        np.testing.assert_allclose(
            xdev.to_numpy(out) / scale, expected / scale, atol=close
        )
    np.testing.assert_array_equal(xdev.to_numpy(there), x)  # it is left as it was


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("shape", [(15,), (1,), (3, 15), (6, 10), (4, 5, 6)])
@pytest.mark.parametrize("name", [*COMPLEX, *REAL])
def test_transforms_along_one_axis_are_numpys(device, name, shape, view):
    for char in "FDd" if name in COMPLEX else "fd":
        x = sample((shape[0] + 1, *shape[1:]), char)
        for axis, norm in itertools.product(range(-1, len(shape)), NORMS):
            n = view(x).shape[axis]
            size = n if name in ("fft", "ifft", *REAL) else 2 * (n - 1)
            for length in {size, size + 1, max(1, size - 2), 8} - {0}:
                options = {"axis": axis, "norm": norm, "n": length}
                assert_transformed(device, name, x, view, **options)
            if size:
                assert_transformed(device, name, x, view, axis=axis, norm=norm)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_along_several_axes_are_numpys(device, name, view):
    for shape, axes in (
        *(((8, 6), axes) for axes in (None, (0, 1), (1, 0), (-1,), (0,), (0, -1))),
        *(((4, 6, 8), axes) for axes in (None, (0, 1), (1, 2), (0, 2), (1,), (2, 0))),
        *(((2, 4, 6, 4), axes) for axes in (None, (1, 2, 3), (0, 1))),
    ):
        for char in "fd" if name == "rfftn" else "FD":
            x = sample((shape[0] + 1, *shape[1:]), char)
            own = view(x)
            sizes = [own.shape[axis] for axis in axes or range(own.ndim)]
            if name == "irfftn":
                sizes[-1] = 2 * (sizes[-1] - 1)
            for norm in NORMS:
                assert_transformed(device, name, x, view, axes=axes, norm=norm)
                for more in (0, 1):
                    s = [n + more for n in sizes]
                    options = {"axes": axes or tuple(range(own.ndim)), "s": s}
                    assert_transformed(device, name, x, view, norm=norm, **options)


@pytest.mark.cuda
def test_transforms_on_two_streams_have_their_own_work_space(cuda):
    x = sample((3, 1 << 18), "F")
    there = [xdev.asarray(row, device=cuda) for row in x]
    xdev.synchronize(cuda)
    streams = [xdev.Stream(cuda) for _ in x]
    outs = []
    for _ in range(20):
        for stream, row in zip(streams, there, strict=True):
            with stream:
                outs.append(xdev.fft.ifft(xdev.fft.fft(row)))
    xdev.synchronize(cuda)
    for out, row in zip(outs, itertools.cycle(x)):
        np.testing.assert_allclose(xdev.to_numpy(out), row, atol=1e-5)


@pytest.mark.parametrize("char", "efdFDi")
def test_products_of_matrices_of_any_layout(device, char):
    ways = (
        lambda x: x,
        lambda x: xdev.asarray(x.T, copy=True).T,  # in Fortran's order
        lambda x: x[::2, ::-1],
        lambda x: x[:, :1],
        lambda x: x[:1],
        lambda x: x[:, :0],
    )
    whole = (sample((6, 8), char) * 4).round()  # of which products are exact
    there = xdev.asarray(whole, device=device)
    for first, second in itertools.product(ways, ways):
        x, own = first(there), first(whole)
        y, other = second(there.T), second(whole.T)
        if own.shape[1] != other.shape[0]:
            with pytest.raises(ValueError):  # noqa: PT011
                xdev.matmul(x, y)
            continue
        expected = np.matmul(own, other)
        for out in (xdev.matmul(x, y), xdev.tensordot(x, y, axes=1)):
            np.testing.assert_array_equal(xdev.to_numpy(out), expected, strict=True)
    square = there[:, :6]
    for n in range(7):
        out = xdev.to_numpy(xdev.linalg.matrix_power(square / 4, n))
        wanted = np.linalg.matrix_power(whole[:, :6].astype("D") / 4, n)
        close = 1e-3 if char == "e" else 1e-4
        np.testing.assert_allclose(
            out, wanted, rtol=close, atol=close * abs(wanted).max()
        )


def kinds(m, n, char):
    """Matrices of any rank and scale."""
    z, count = sample((m, n), char, 3), min(m, n)
    u, _, vh = np.linalg.svd(z, full_matrices=False)
    yield z
    yield (u * np.logspace(0, -12, count)) @ vh
    yield (u * np.r_[np.ones(count // 2 + 1), np.zeros(count - count // 2 - 1)]) @ vh
    yield np.outer(z[:, 0], z[0])
    yield np.repeat(z[:, :1], n, 1)
    yield np.zeros((m, n))
    yield np.ones((m, n))
    yield z * 1e30
    yield z * 1e-30


@pytest.mark.parametrize("shape", [(40, 40), (60, 9), (7, 50), (1, 6), (6, 1), (1, 1)])
@pytest.mark.parametrize("char", "fFd")
def test_singular_values_and_vectors_of_any_matrix(device, char, shape):
    eps, count = np.finfo(char).eps, min(shape)
    near = 20 * eps
    for each in kinds(*shape, char):
        x = each.astype(char)
        exact = np.linalg.svd(x.astype("D"), compute_uv=False)
        scale = max(exact[0], np.finfo(char).tiny)
        there = xdev.asarray(x, device=device)
        alone = xdev.to_numpy(xdev.linalg.svdvals(there))
        for full in (False, True):
            result = xdev.linalg.svd(there, full_matrices=full)
            expected = np.linalg.svd(x, full_matrices=full)
            assert [y.shape for y in result] == [y.shape for y in expected]
            assert [y.dtype for y in result] == [y.dtype for y in expected]
            u, values, vh = (xdev.to_numpy(y) for y in result)
            assert (np.diff(values) <= 0).all()
            assert (values >= 0).all()
            for found in (values, alone):
                assert np.abs(found - exact).max() <= near * scale
            u, vh = u.astype("D"), vh.astype("D")
            back = (u[:, :count] * values) @ vh[:count]
            assert np.abs(back - x).max() <= near * scale
            assert np.abs(u.T.conj() @ u - np.eye(len(u.T))).max() <= near
            assert np.abs(vh @ vh.T.conj() - np.eye(len(vh))).max() <= near
        inverse = xdev.to_numpy(xdev.linalg.pinv(there, rtol=2e-3))
        wanted = np.linalg.pinv(x.astype("D"), rtol=2e-3)
        bound = 1e3 * near * max(np.abs(wanted).max(), np.finfo(char).tiny)
        assert np.abs(inverse - wanted).max() <= bound
        assert (
            int(xdev.linalg.matrix_rank(there, rtol=2e-3))
            == (exact > 2e-3 * exact[0]).sum()
        )
