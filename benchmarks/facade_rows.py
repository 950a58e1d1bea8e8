"""The rows of the ``facade`` program: each function's plain use, by each library.

A call is an expression in the library's namespace, as after ``from LIBRARY import *``:
its names are the library's functions, :data:`INPUTS`, and what :func:`scope` adds. A
name that ends in ``2`` is an input as a square matrix. NumPy and CuPy share a call.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import xdev
from xdev import fft, linalg, random

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FLOAT, BOTH, ALL = ("float32",), ("float32", "float64"), ("float32", "float64", "int32")
INT = ("int32",)
FEW, MANY = 100, 64  # elements to search for; of an array for each sorted one
# Sides of the matrices that a function of this cost takes, at most.
SOLVED, DECOMPOSED, GENERAL = 2048, 1024, 256


@dataclass(frozen=True, slots=True)
class Row:
    """A function of the namespace in one use, and how each library says it.

    Attributes
    ----------
    function : str
        As in ``xdev.__all__``, or ``linalg.``, ``fft.`` or ``random.`` and a name.
    section : str
        The table of the page.
    xdev, numpy, torch : str or None
        Expressions; NumPy's is also CuPy's. None: there is no such function.
    dtypes : tuple of str
        Of the input.
    alike : bool
        Whether results are the same numbers.
    """

    function: str
    section: str
    xdev: str
    numpy: str | None
    torch: str | None
    dtypes: tuple[str, ...] = FLOAT
    alike: bool = True

    @property
    def title(self) -> str:
        """The call of xdev, and the peer's function where it is of no generator."""
        beside, _, _ = (self.numpy or "").partition("(")
        return self.xdev + (f" beside {beside}" if beside.startswith("random.") else "")


def _same(section: str, text: str, **facts: Any) -> Iterator[Row]:
    """Yield the rows of a text: a line for each, with the calls between bars.

    A call that is left out is the one before it; ``-`` is none. A line's first sign may
    be ``*``: of all data types; ``+``: of both floats; ``#``: of integers.
    """
    signs = {"*": ALL, "+": BOTH, "#": INT}
    for line in text.strip().splitlines():
        words = line.strip()
        dtypes = signs.get(words[0], FLOAT)
        calls = [call.strip() for call in words.lstrip("*+#").split("|")]
        ours, numpys, torchs = (*calls, *calls[-1:] * 2)[:3]
        yield Row(
            ours.partition("(")[0].replace("rng.", "random."),
            section,
            ours,
            None if numpys == "-" else numpys,
            None if torchs == "-" else torchs,
            **{"dtypes": dtypes, **facts},
        )


ELEMENTWISE = """
* abs(x)
acos(x) | arccos(x) | acos(x)
acosh(u) | arccosh(u) | acosh(u)
* add(x, y)
asin(x) | arcsin(x) | asin(x)
asinh(x) | arcsinh(x) | asinh(x)
atan(x) | arctan(x) | atan(x)
atan2(x, y) | arctan2(x, y) | atan2(x, y)
atanh(x) | arctanh(x) | atanh(x)
# bitwise_and(x, y)
# bitwise_invert(x) | invert(x) | bitwise_not(x)
# bitwise_left_shift(x, k) | left_shift(x, k) | bitwise_left_shift(x, k)
# bitwise_or(x, y)
# bitwise_right_shift(x, k) | right_shift(x, k) | bitwise_right_shift(x, k)
# bitwise_xor(x, y)
ceil(x)
* clip(x, low, high)
conj(z) | conj(z) | conj_physical(z)
copysign(x, y)
cos(x)
cosh(x)
+ divide(x, y)
* equal(x, y) | equal(x, y) | eq(x, y)
+ exp(x)
expm1(x)
floor(x)
* floor_divide(x, y)
greater(x, y)
greater_equal(x, y)
+ hypot(x, y)
isfinite(x)
isinf(x)
isnan(x)
* less(x, y)
less_equal(x, y)
+ log(x)
log1p(x)
log2(x)
log10(x)
logaddexp(x, y)
logical_and(b, c)
logical_not(b)
logical_or(b, c)
logical_xor(b, c)
* maximum(x, y)
minimum(x, y)
* multiply(x, y)
* negative(x)
nextafter(x, y)
not_equal(x, y)
positive(x) | positive(x) | clone(x)
+ pow(x, y) | power(x, y) | pow(x, y)
reciprocal(x)
* remainder(x, y)
round(x) | rint(x) | round(x)
* sign(x)
signbit(x)
+ sin(x)
sinh(x)
+ sqrt(x)
* square(x)
subtract(x, y)
tan(x)
+ tanh(x)
trunc(x)
* where(b, x, y)
abs(z)
add(x, 2.0)
add(x2, r)
"""
# The arguments of a reduction: of all, and along each axis of a matrix.
REDUCTIONS = """
* sum({x}) | sum({x}) | sum({x})
+ prod({w}) | prod({w}) | prod({w})
* max({x}) | max({x}) | amax({x})
min({x}) | min({x}) | amin({x})
any({f})
all({o})
+ mean({x})
std({x}) | std({x}) | std({x}, correction=0)
+ var({x}) | var({x}) | var({x}, correction=0)
* count_nonzero({t})
* argmax({x})
argmin({x})
+ linalg.vector_norm({x}) | linalg.norm({x}) | linalg.vector_norm({x})
"""
AXES = """
+ cumulative_sum(x) | cumsum(x) | cumsum(x, 0)
+ cumulative_sum(x2, axis=0) | cumsum(x2, axis=0)
+ cumulative_sum(x2, axis=1) | cumsum(x2, axis=1)
# cumulative_sum(x) | cumsum(x) | cumsum(x, 0)
cumulative_prod(w) | cumprod(w) | cumprod(w, 0)
cumulative_prod(w2, axis=0) | cumprod(w2, axis=0)
cumulative_prod(w2, axis=1) | cumprod(w2, axis=1)
* sort(x) | sort(x) | sort(x).values
* sort(x2, axis=0) | sort(x2, axis=0) | sort(x2, 0).values
* sort(x2, axis=1) | sort(x2, axis=1) | sort(x2, 1).values
* argsort(x) | argsort(x, kind="stable") | argsort(x, stable=True)
argsort(x2, axis=0) | argsort(x2, 0, kind="stable") | argsort(x2, dim=0, stable=True)
argsort(x2, axis=1) | argsort(x2, 1, kind="stable") | argsort(x2, dim=1, stable=True)
"""
SEARCHING = """
* nonzero(t) | nonzero(t) | nonzero(t, as_tuple=True)
* take(x, nonzero(b)[0]) | x[b]
* searchsorted(s, x)
* isin(x, e)
unique_all(x) | unique(x, True, True, True) | -
unique_counts(x) | unique(x, return_counts=True)
unique_inverse(x) | unique(x, return_inverse=True)
* unique_values(x) | unique(x)
"""
MANIPULATION = """
asarray(x, copy=True) | array(x) | clone(x)
+ astype(x, int64) | x.astype(int64) | x.to(int64)
# astype(x, float32) | x.astype(float32) | x.to(float32)
* concat((x, y)) | concatenate((x, y)) | concat((x, y))
concat((x2, y2), axis=1) | concatenate((x2, y2), axis=1) | concat((x2, y2), 1)
* diff(x)
diff(x2, axis=0) | diff(x2, axis=0) | diff(x2, dim=0)
* flip(x) | flip(x) | flip(x, (0,))
flip(x2, axis=1) | flip(x2, axis=1) | flip(x2, (1,))
meshgrid(r, r) | meshgrid(r, r) | [v.contiguous() for v in meshgrid(r, r, indexing="xy")]
* repeat(x, 2) | repeat(x, 2) | repeat_interleave(x, 2)
reshape(x2.T, (n2,)) | reshape(x2.T, (n2,)) | reshape(x2.T, (n2,))
* roll(x, 7)
roll(x2, 7, axis=1) | roll(x2, 7, axis=1) | roll(x2, 7, 1)
* stack((x, y))
stack((x, y), axis=-1) | stack((x, y), axis=-1) | stack((x, y), -1)
* take(x, i) | take(x, i) | index_select(x, 0, i)
take(x2, j, axis=0) | take(x2, j, axis=0) | index_select(x2, 0, j)
take(x2, j, axis=1) | take(x2, j, axis=1) | index_select(x2, 1, j)
take_along_axis(x2, j2, axis=1) | take_along_axis(x2, j2, axis=1) | take_along_dim(x2, j2, 1)
* tile(x, (2,))
* tril(x2)
triu(x2)
"""  # noqa: E501
CREATION = """
arange(n, dtype=d, device=on) | arange(n, dtype=d) | arange(n, dtype=d, device=on)
eye(side, dtype=d, device=on) | eye(side, dtype=d) | eye(side, dtype=d, device=on)
* full(n, low, dtype=d, device=on) | full(n, low, d) | full((n,), low, dtype=d, device=on)
full_like(x, low)
linspace(0, 1, n, dtype=d, device=on) | linspace(0, 1, n, dtype=d) | linspace(0, 1, n, dtype=d, device=on)
ones(n, dtype=d, device=on) | ones(n, d) | ones(n, dtype=d, device=on)
ones_like(x)
zeros(n, dtype=d, device=on) | zeros(n, d) | zeros(n, dtype=d, device=on)
zeros_like(x)
fft.fftfreq(n, dtype=d, device=on) | fft.fftfreq(n) | fft.fftfreq(n, dtype=d, device=on)
fft.rfftfreq(n, dtype=d, device=on) | fft.rfftfreq(n) | fft.rfftfreq(n, dtype=d, device=on)
"""  # noqa: E501
EMPTY = """
empty(n, dtype=d, device=on) | empty(n, d) | empty(n, dtype=d, device=on)
empty_like(x)
"""
VIEWS = """
asarray(x)
broadcast_arrays(x2, r) | broadcast_arrays(x2, r) | broadcast_tensors(x2, r)
broadcast_to(r, (side, side))
expand_dims(x, 0) | expand_dims(x, 0) | unsqueeze(x, 0)
from_dlpack(x)
imag(z)
linalg.diagonal(x2) | diagonal(x2)
matrix_transpose(x2) | x2.T | x2.mT
moveaxis(x2, 0, 1)
permute_dims(x2, (1, 0)) | transpose(x2, (1, 0)) | permute(x2, (1, 0))
real(z)
reshape(x2, (n2,))
squeeze(x[None], 0)
unstack(x2) | list(x2) | unbind(x2)
"""
LINALG = """
+ matmul(x2, y2)
tensordot(x2, y2, axes=1) | tensordot(x2, y2, 1)
vecdot(x2, y2) | einsum("ij,ij->i", x2, y2) | linalg.vecdot(x2, y2)
linalg.cholesky(P)
linalg.cross(vectors, others) | cross(vectors, others) | linalg.cross(vectors, others)
linalg.det(A)
linalg.inv(A)
linalg.matrix_norm(x2) | linalg.norm(x2) | linalg.matrix_norm(x2)
linalg.matrix_power(A, 3)
linalg.outer(r, r) | outer(r, r)
linalg.slogdet(A)
+ linalg.solve(A, right)
linalg.trace(x2) | trace(x2)
linalg.eigvalsh(Q)
linalg.matrix_rank(B)
linalg.pinv(B)
linalg.svdvals(B) | linalg.svd(B, compute_uv=False) | linalg.svdvals(B)
"""
FACTORS = """
linalg.eig(C)
linalg.eigvals(C)
linalg.eigh(Q)
linalg.qr(A)
linalg.svd(B)
"""
FFT = """
+ fft.fft(z)
fft.fft(z2)
fft.fft(z2, axis=0) | fft.fft(z2, axis=0) | fft.fft(z2, dim=0)
fft.fftn(z2)
fft.fftshift(z)
fft.hfft(half, n)
fft.ifft(z)
fft.ifftn(z2)
fft.ifftshift(z)
fft.ihfft(x) | fft.ihfft(x) | fft.ihfft(x).resolve_conj()
fft.irfft(half, n)
fft.irfftn(halves, s=(side, side), axes=(0, 1)) | fft.irfftn(halves, (side, side), (0, 1))
fft.rfft(x)
fft.rfftn(x2)
"""  # noqa: E501
RANDOM = """
+ rng.random(n, dtype=d) | rng.random(n, dtype=d) | rand(n, dtype=d, device=on)
+ rng.random(n, dtype=d) | random.rand(n, dtype=d) | rand(n, dtype=d, device=on)
+ rng.standard_normal(n, dtype=d) | rng.standard_normal(n, dtype=d) | randn(n, dtype=d, device=on)
+ rng.standard_normal(n, dtype=d) | random.randn(n, dtype=d) | randn(n, dtype=d, device=on)
+ rng.standard_exponential(n, dtype=d) | rng.standard_exponential(n, dtype=d) | empty(n, dtype=d, device=on).exponential_()
rng.exponential(2.0, n) | rng.exponential(2.0, n) | empty(n, dtype=float64, device=on).exponential_(0.5)
rng.normal(1.0, 2.0, n) | random.normal(1.0, 2.0, n) | empty(n, dtype=float64, device=on).normal_(1.0, 2.0)
rng.uniform(-1.0, 1.0, n) | rng.uniform(-1.0, 1.0, n) | empty(n, dtype=float64, device=on).uniform_(-1.0, 1.0)
rng.integers(0, 100, n) | rng.integers(0, 100, n) | randint(0, 100, (n,), device=on)
rng.choice(n, n) | random.choice(n, n) | randint(0, n, (n,), device=on)
rng.permutation(n) | random.permutation(n) | randperm(n, device=on)
rng.permuted(x) | random.permutation(x) | x[randperm(n, device=on)]
rng.shuffle(deck) | random.shuffle(deck) | -
"""  # noqa: E501


def _reductions() -> Iterator[Row]:
    """Yield each reduction of all elements, and along each axis of a matrix."""
    for axis in (None, 0, 1):
        size, comma = ("", "") if axis is None else ("2", f", axis={axis}")
        names = {name: f"{name}{size}{comma}" for name in "xwfot"}
        yield from _same("reductions", REDUCTIONS.format(**names))


ROWS: tuple[Row, ...] = (
    *_same("elementwise", ELEMENTWISE),
    *_reductions(),
    *_same("cumulative functions and sorting", AXES),
    *_same("searching and sets", SEARCHING),
    *_same("manipulation", MANIPULATION),
    *_same("creation", CREATION),
    *_same("creation", EMPTY, alike=False),
    *_same("views", VIEWS),
    *_same("linalg", LINALG),
    *_same("linalg", FACTORS, alike=False),
    *_same("fft", FFT),
    *_same("random", RANDOM, alike=False),
)
VIEW = "views"  # the section whose times do not depend on the size
LEFT_OUT = {
    "names no function": """
        __array_api_version__ __version__ atomic device distributed e errors facade fft
        inf linalg memory nan newaxis pi random testing timing transfer ufunc""",
    "an error": """
        ConfigurationError DeviceMismatchError DeviceUnavailableError InUseError
        OutOfMemoryError UseAfterFreeError XdevError""",
    "a data type, or tells of one": """
        bool complex64 complex128 float32 float64 int8 int16 int32 int64 uint8 uint16
        uint32 uint64 can_cast finfo iinfo isdtype result_type""",
    "takes no array, or only looks at it": """
        __array_namespace_info__ broadcast_shapes device_of is_pinned namespace""",
    "a device, its streams, or the choice of one": """
        Device Event Stream can_access_peer current_stream default_device devices
        set_default_device synchronize use_device""",
    "a transfer: in transfers, adapt and batches": """
        adapt batches cu empty_pinned pin to_device to_numpy transfer_guard""",
    "makes functions, or times them: in ufunc_cuda, ufunc_cpu, kernels and graphs": """
        compare graph guvectorize kernel timeit vectorize""",
    "is the namespace's function of this name": """
        linalg.matmul linalg.matrix_transpose linalg.tensordot linalg.vecdot""",
    "draws nothing": "random.Generator random.Philox random.default_rng random.spawn",
}


def names() -> set[str]:
    """Return all public names that a row, or a reason to have none, must tell of."""
    rooms = {"linalg": linalg.__all__, "fft": fft.__all__, "random": random.__all__}
    found = set(xdev.__all__)
    found |= {f"{room}.{name}" for room, all_ in rooms.items() for name in all_}
    draws = (name for name in vars(random.Generator) if not name.startswith("_"))
    methods = {name for name in draws if callable(getattr(random.Generator, name))}
    return found | {f"random.{name}" for name in methods}


class Inputs:
    """The arrays that the calls take, of one size and data type, made at first use.

    Parameters
    ----------
    library : module
        NumPy or CuPy; xdev takes its arrays, and PyTorch's tensors share their memory.
    n : int
        Elements of a vector.
    dtype : str
        Of the values.
    """

    def __init__(self, library: Any, n: int, dtype: str) -> None:
        self.library, self.n, self.dtype = library, n, np.dtype(dtype)
        self.side = math.isqrt(n)
        self._kept: dict[str, Any] = {}
        self._tensors: dict[str, Any] = {}
        self._rng = library.random.default_rng(0)

    def __contains__(self, name: str) -> bool:
        """Tell whether there is such an input."""
        return name in INPUTS or (name[-1] == "2" and name[:-1] in INPUTS)

    def __getitem__(self, name: str) -> Any:
        """Return an input as an array."""
        if name not in self._kept:
            if name in INPUTS:
                found = INPUTS[name](self)
            else:
                found = self[name[:-1]][: self.side**2].reshape(self.side, self.side)
            self._kept[name] = found
        return self._kept[name]

    def tensor(self, name: str) -> Any:
        """Return an input as a tensor of PyTorch that shares its memory."""
        import torch

        if name not in self._tensors:
            where = "cpu" if self.library is np else "cuda"
            self._tensors[name] = torch.as_tensor(self[name], device=where)
        return self._tensors[name]

    def values(self) -> Any:
        """Return random values: floats below one, or small positive integers."""
        if self.dtype.kind == "i":
            return self._rng.integers(1, 1000, self.n).astype(self.dtype)
        return self._rng.random(self.n, dtype=self.dtype.type) * 0.8 + 0.1

    def indices(self, length: int) -> Any:
        """Return the indices of as many elements, in random order."""
        return self.library.random.permutation(length)

    def square(self, most: int, *, symmetric: bool = False) -> Any:
        """Return a matrix with a dominant diagonal, of so many rows at most."""
        side = min(self.side, most)
        diagonal = side * self.library.eye(side, dtype=self.dtype)
        found = self["x2"][:side, :side] + diagonal
        return found + found.T if symmetric else found


INPUTS: dict[str, Callable[[Inputs], Any]] = {
    "x": Inputs.values,
    "y": Inputs.values,
    "u": lambda of: of["x"] + 1,  # above one
    "w": lambda of: (of["x"] - 0.5) * 1e-6 + 1,  # near one: products stay finite
    "b": lambda of: of["x"] > of["y"],
    "c": lambda of: of["x"] > of["y"][::-1],
    "o": lambda of: of["x"] > 0,  # all true
    "f": lambda of: of["x"] < 0,  # all false
    "t": lambda of: of["x"] * of["b"],  # every second one is zero
    "k": lambda of: of["x"] % 7,  # shifts
    "z": lambda of: of["x"] + of["y"] * 1j,
    "i": lambda of: of.indices(of.n),
    "j": lambda of: of.indices(of.side),
    "j2": lambda of: of.library.argsort(of["x2"], axis=1),
    "s": lambda of: of.library.sort(of["x"][: max(of.n // MANY, 1)]),
    "e": lambda of: of["y"][:FEW].copy(),
    "r": lambda of: of["x"][: of.side].copy(),
    "half": lambda of: of["z"][: of.n // 2 + 1].copy(),
    "halves": lambda of: of["z2"][:, : of.side // 2 + 1].copy(),
    "vectors": lambda of: of["x"][: of.n // 3 * 3].reshape(-1, 3),
    "others": lambda of: of["y"][: of.n // 3 * 3].reshape(-1, 3),
    "deck": lambda of: of["x"].copy(),
    "A": lambda of: of.square(SOLVED),
    "P": lambda of: of.square(SOLVED, symmetric=True),
    "B": lambda of: of.square(DECOMPOSED),
    "Q": lambda of: of.square(DECOMPOSED, symmetric=True),
    "C": lambda of: of.square(GENERAL),
    "right": lambda of: of["A"][0].copy(),
}


def scope(inputs: Inputs, library: Any, device: xdev.Device) -> dict[str, Any]:
    """Return what a library's calls name beside its functions and the inputs."""
    who = library.__name__
    floats = inputs.dtype.kind == "f"
    names: dict[str, Any] = {"n": inputs.n, "n2": inputs.side**2, "side": inputs.side}
    names |= {"low": 0.25, "high": 0.75} if floats else {"low": 250, "high": 750}
    names |= {"list": list, "d": inputs.dtype.type, "on": device}
    if who == "torch":
        kind = "cpu" if device.type == "cpu" else f"cuda:{device.index}"
        names |= {"d": getattr(library, inputs.dtype.name), "on": library.device(kind)}
    elif who == "xdev":
        names["rng"] = random.default_rng(0, device)
    else:
        names["rng"] = library.random.default_rng(0)
    return names


def call(
    expression: str, library: Any, inputs: Inputs, device: xdev.Device
) -> Callable[[], Any]:
    """Return a function that evaluates a call in a library's namespace.

    Raises
    ------
    AttributeError
        The library has no such function.
    """
    found = scope(inputs, library, device)
    tree = ast.parse(expression)
    bound = {
        node.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.comprehension) and isinstance(node.target, ast.Name)
    }
    of_array = inputs.tensor if library.__name__ == "torch" else inputs.__getitem__
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in found.keys() | bound:
            name = node.id
            found[name] = of_array(name) if name in inputs else getattr(library, name)
    made: Callable[[], Any] = eval(f"lambda: {expression}", found)  # noqa: S307 - ours
    return made
