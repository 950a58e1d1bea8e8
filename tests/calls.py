"""One call of every function of the facade that takes arrays: what it is given."""

from operator import attrgetter
from typing import NamedTuple

import numpy as np

import xdev

RNG = np.random.default_rng(5)
A, B = RNG.uniform(0.1, 0.9, (2, 3, 4))
V = RNG.uniform(0.1, 0.9, 4)
I, J = RNG.integers(1, 5, (2, 3, 4))
L, M = RNG.uniform(size=(2, 3, 4)) > 0.5
S = RNG.standard_normal((2, 3, 3)) + 3 * np.eye(3)
H = S @ S.transpose(0, 2, 1)
C = V + 1j * V[::-1]


class Call(NamedTuple):
    """A call of a function: what it is given, as NumPy arrays."""

    path: str
    args: tuple
    kw: dict

    @property
    def function(self):
        return attrgetter(self.path)(xdev)

    def __str__(self):
        return "-".join([self.path, *self.kw])


class Recorder:
    """A namespace whose functions note how they are called."""

    def __init__(self, path=""):
        self._path = path

    def __getattr__(self, name):
        return Recorder(f"{self._path}.{name}".lstrip("."))

    def __call__(self, *args, **kw):
        return Call(self._path, args, kw)


xp = Recorder()


def _calls(names, *args):
    return [Call(name, args, {}) for name in names.split()]


CALLS = [
    *_calls("abs acos asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite", A),
    *_calls("isinf isnan log log1p log2 log10 negative positive reciprocal round", A),
    *_calls("sign signbit sin sinh sqrt square tan tanh trunc", A),
    *_calls("acosh", A + 1),
    *_calls("conj real imag", C),
    *_calls("add atan2 copysign divide equal floor_divide greater greater_equal", A, B),
    *_calls("hypot less less_equal logaddexp maximum minimum multiply nextafter", A, B),
    *_calls("not_equal pow remainder subtract", A, B),
    *_calls("bitwise_and bitwise_or bitwise_xor bitwise_left_shift", I, J),
    *_calls("bitwise_right_shift", I, J),
    *_calls("bitwise_invert", I),
    *_calls("logical_and logical_or logical_xor", L, M),
    *_calls("logical_not", L),
    *_calls("unique_all unique_counts unique_inverse unique_values", I),
    *_calls("fft.fftn fft.ifftn fft.irfftn", A + 0j),
    *_calls("fft.rfft fft.rfftn fft.fftshift fft.ifftshift", A),
    *_calls("fft.irfft fft.hfft", C),
    *_calls("fft.ihfft", V),
    *_calls("linalg.cholesky linalg.eigvalsh linalg.eigh", H),
    *_calls("linalg.det linalg.eig linalg.eigvals linalg.inv linalg.matrix_norm", S),
    *_calls("linalg.matrix_rank linalg.matrix_transpose linalg.qr linalg.slogdet", S),
    *_calls("linalg.cross", A[:, :3].copy(), B[:, :3].copy()),
    *_calls("linalg.matmul linalg.solve", S, H),
    *_calls("linalg.outer", V, V),
    *_calls("linalg.pinv linalg.svdvals", A),
    *_calls("linalg.vecdot", A, B),
    xp.clip(A, 0.3, 0.6), xp.clip(I, J, J + 2), xp.all(L, axis=1),
    xp.any(L, axis=(0, 1), keepdims=True), xp.argmax(A, axis=1),
    xp.argmin(A, keepdims=True), xp.argsort(A, axis=0, descending=True),
    xp.asarray(A, copy=True), xp.astype(A, xdev.float32), xp.broadcast_arrays(A, V),
    xp.broadcast_to(V, (3, 4)), xp.can_cast(A, xdev.float64), xp.concat([A, B], axis=1),
    xp.concat([A, V], axis=None), xp.count_nonzero(I, axis=1, keepdims=True),
    xp.cumulative_prod(A, axis=0), xp.cumulative_sum(I, axis=1, include_initial=True),
    xp.diff(A, axis=0, prepend=B, append=B), xp.diff(A, axis=0, n=2), xp.empty_like(A),
    xp.expand_dims(A, (0, 2)), xp.finfo(A), xp.flip(A, axis=1), xp.from_dlpack(A),
    xp.full_like(A, 2), xp.iinfo(I), xp.isin(I, I[0].copy(), invert=True),
    xp.matmul(A, B.T.copy()), xp.matrix_transpose(S), xp.max(A, axis=0, keepdims=True),
    xp.mean(A, axis=1), xp.meshgrid(V, V + 1, indexing="ij"), xp.min(I),
    xp.moveaxis(S, 0, -1), xp.nonzero(L), xp.ones_like(A),
    xp.permute_dims(S, (2, 0, 1)), xp.prod(A, dtype=xdev.float32),
    xp.repeat(A, 2, axis=1), xp.repeat(V, I[0].copy()), xp.reshape(A, (12,), copy=True),
    xp.result_type(A, xdev.float32), xp.roll(A, (1, 2), axis=(0, 1)),
    xp.searchsorted(np.sort(V), B[0].copy(), side="right"), xp.sort(A, axis=0),
    xp.squeeze(A[:, None].copy(), 1), xp.stack([A, B], axis=1),
    xp.std(A, axis=0, correction=1), xp.sum(I.astype(np.int8), axis=1),
    xp.sum(A, dtype=xdev.float32), xp.take(A, I[0] % 3, axis=0),
    xp.take_along_axis(A, I % 4), xp.tensordot(A, B, axes=((0, 1), (0, 1))),
    xp.tile(A, (2, 1, 2)), xp.tril(A, k=-1), xp.triu(A, k=1), xp.unstack(A, axis=1),
    xp.var(A, keepdims=True), xp.vecdot(A, B), xp.where(L, A, B), xp.zeros_like(A),
    xp.fft.fft(C, norm="ortho"), xp.fft.ifft(C, n=6), xp.fft.ifftn(A + 0j, axes=(0,)),
    xp.fft.fftn(A + 0j, s=(3, 4), axes=(1, 0)), xp.fft.rfftn(A, s=(3, 4), axes=(1, 0)),
    xp.fft.irfftn(A + 0j, s=(3, 4), axes=(1, 0)),
    xp.fft.rfft(A, axis=0), xp.fft.fftshift(A, axes=1), xp.linalg.diagonal(S, offset=1),
    xp.linalg.matrix_power(S, 3), xp.linalg.svd(A, full_matrices=False),
    xp.linalg.tensordot(A, B, axes=((0, 1), (0, 1))), xp.linalg.trace(S, offset=-1),
    xp.linalg.vector_norm(A, axis=1, ord=1),
    xp.linalg.vector_norm(A, axis=(0, 1), ord=1),
]  # fmt: skip


def operands(call):
    """Return (argument's number or name, index in a list) of each array of a call."""
    for key, value in [*enumerate(call.args), *call.kw.items()]:
        if isinstance(value, list):
            yield from ((key, index) for index in range(len(value)))
        elif isinstance(value, np.ndarray):
            yield key, None


def placed(call, put, odd, alien):
    """Return a call's arguments as ``put`` makes them, but those at ``odd``."""

    def place(key, value):
        if isinstance(value, list):
            return [
                alien(x) if (key, i) in odd else put(x) for i, x in enumerate(value)
            ]
        return alien(value) if (key, None) in odd else put(value)

    args = [place(i, value) for i, value in enumerate(call.args)]
    return args, {name: place(name, value) for name, value in call.kw.items()}
