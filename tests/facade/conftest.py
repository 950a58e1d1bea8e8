"""One call of every function that takes arrays, and every library to call it with."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import xdev

if TYPE_CHECKING:
    from collections.abc import Callable

sys.path.append(str(Path(__file__).parents[1]))  # for the module that rooms share
RNG = np.random.default_rng(5)
A, B = RNG.uniform(0.1, 0.9, (2, 3, 4))
V = RNG.uniform(0.1, 0.9, 4)
I, J = RNG.integers(1, 5, (2, 3, 4))
L, M = RNG.uniform(size=(2, 3, 4)) > 0.5
S = RNG.standard_normal((2, 3, 3)) + 3 * np.eye(3)
H = S @ S.transpose(0, 2, 1)
C = V + 1j * V[::-1]


@dataclass(frozen=True)
class Call:
    """A call of a function: what it is given, as NumPy arrays."""

    path: str
    args: tuple[Any, ...]
    kw: dict[str, Any] = field(default_factory=dict)

    @property
    def function(self) -> Callable[..., Any]:
        found: Any = xdev
        for name in self.path.split("."):
            found = getattr(found, name)
        return found

    def __str__(self) -> str:
        return "-".join([self.path, *self.kw])


class Recorder:
    """A namespace whose functions note how they are called."""

    def __init__(self, path: str = "") -> None:
        self._path = path

    def __getattr__(self, name: str) -> Recorder:
        return Recorder(f"{self._path}.{name}".lstrip("."))

    def __call__(self, *args: Any, **kw: Any) -> Call:
        return Call(self._path, args, kw)


xp: Any = Recorder()


def _calls(names: str, *args: Any) -> list[Call]:
    return [Call(name, args) for name in names.split()]


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


#: What libraries cannot do. Dask's collections have no memory, and need the result's
#: shape, which an array of counts does not tell.
BEYOND = {"dask": {"from_dlpack", "repeat-"}}


def _on_gpu(cupy: Any, x: Any, site: int) -> Any:
    with cupy.cuda.Device(site):
        return cupy.asarray(x)


#: By library: how its module makes an array of NumPy's one, on the device of a number.
PUT: dict[str, Callable[[Any, Any, int], Any]] = {
    "numpy": lambda _, x, site: x,  # noqa: ARG005 - it has one
    "fake": lambda _, x, site: xdev.to_device(x, f"fake:{site}"),
    "strict": lambda m, x, site: m.asarray(x, device=m.Device(f"device{site + 1}")),
    "torch": lambda m, x, site: m.from_numpy(x),  # noqa: ARG005 - likewise
    "jax": lambda m, x, site: m.device_put(x, m.local_devices(backend="cpu")[site]),
    "dask": lambda m, x, site: m.from_array(x, chunks=-1),  # noqa: ARG005 - likewise
    "cupy": _on_gpu,
}


@dataclass(frozen=True)
class Library:
    """An array library: its arrays from NumPy's, on two devices where it has two."""

    name: str
    module: Any

    @property
    def sites(self) -> tuple[int, ...]:
        """The numbers of its devices, the default one first."""
        if self.name == "cupy":
            return tuple(range(min(2, self.module.cuda.runtime.getDeviceCount())))
        return (0, 1) if self.name in ("jax", "strict", "fake") else (0,)

    def put(self, x: Any, site: int = 0) -> Any:
        if isinstance(x, list):
            return [self.put(each, site) for each in x]
        if not isinstance(x, np.ndarray):
            return x
        return PUT[self.name](self.module, x.copy(), site)

    def lacks(self, call: Call) -> bool:
        name = f"{call.path}-" if call.path == "repeat" and not call.kw else call.path
        return name in BEYOND.get(self.name, ())

    def owns(self, x: Any) -> bool:
        return isinstance(x, type(self.put(V))) or (
            self.name == "numpy" and isinstance(x, np.generic)
        )

    def host(self, x: Any) -> Any:
        if self.name == "torch":
            return x.resolve_conj().resolve_neg().numpy()
        if self.name == "dask":
            return x.compute()
        return np.asarray(x if self.name in ("numpy", "jax") else xdev.to_numpy(x))


MODULES = {
    "numpy": "numpy",
    "fake": "numpy",
    "strict": "array_api_strict",
    "torch": "torch",
    "jax": "jax",
    "dask": "dask.array",
}


@pytest.fixture(params=[*MODULES, pytest.param("cupy", marks=pytest.mark.cuda)])
def library(request, imported):
    """Each array library in turn; with two GPUs the current one stays current."""
    if request.param == "cupy":
        request.getfixturevalue("cuda")
        cupy = importlib.import_module("cupy")
        yield Library("cupy", cupy)
        assert cupy.cuda.runtime.getDevice() == 0
    else:
        yield Library(request.param, imported(MODULES[request.param]))


@pytest.fixture(params=CALLS, ids=map(str, CALLS))
def call(request):
    return request.param


@pytest.fixture
def calls():
    return CALLS
