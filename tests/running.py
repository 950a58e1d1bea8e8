"""What tests of several rooms share.

Functions and arrays, runs on a device, comparisons, programs, threads and clocks.
"""

import linecache
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import xdev
from xdev.timing import Timing

#: The modules that users may name.
PUBLIC = frozenset((
    "xdev", "xdev.atomic", "xdev.cli", "xdev.device", "xdev.device.registry",
    "xdev.distributed", "xdev.errors", "xdev.facade", "xdev.fft", "xdev.jupyter",
    "xdev.linalg", "xdev.memory", "xdev.memory.bridges", "xdev.numpy", "xdev.numpy.fft",
    "xdev.numpy.linalg", "xdev.numpy.random", "xdev.random", "xdev.testing",
    "xdev.timing", "xdev.transfer", "xdev.ufunc",
))  # fmt: skip


@xdev.vectorize(identity=0)
def add(x, y):
    """Return the sum."""
    return x + y


@xdev.guvectorize("(n),(n)->()")
def dot(x, y, out):
    """Return the sum of products."""
    out[0] = 0
    for i in range(x.shape[0]):
        out[0] += x[i] * y[i]


@xdev.guvectorize("(n)->(n)")
def turned(x, out):
    for i in range(x.shape[0]):
        out[i] = x[x.shape[0] - 1 - i]


@xdev.kernel
def sums(i, x, y, out):
    out[i] = x[i] + y[i]


@xdev.vectorize
def blend(x, y):
    return 0.5 * x + y * y


def there(device, *arrays):
    """Return arrays of a device, those in lists too; numbers stay."""
    return [
        there(device, *x)
        if isinstance(x, list)
        else xdev.asarray(x, device=device)
        if isinstance(x, np.ndarray)
        else x
        for x in arrays
    ]


def host(found):
    """Return an array, or a tuple of them, as NumPy's."""
    if isinstance(found, tuple):
        return tuple(map(host, found))
    return np.asarray(xdev.to_numpy(found))


def lending(x, *names, **attributes):
    """Return an array of a library that nobody knows, with these attributes of one."""
    own = {name: property(lambda _, name=name: getattr(x, name)) for name in names}
    made = type("Lender", (), own)()
    vars(made).update(attributes)
    return made


def sample(shape, char="d", seed=0, low=0, high=9):
    """Return small whole numbers of a dtype, of which sums are exact."""
    rng, dtype = np.random.default_rng(seed), np.dtype(char)
    low, high = {"b": (0, 2), "c": (-high, high)}.get(dtype.kind, (low, high))
    x = np.asarray(rng.integers(low, high, shape))
    x = x + 1j * rng.integers(low, high, shape) if dtype.kind == "c" else x
    return np.asarray(x, dtype)


def normal(shape, dtype="float32", seed=7):
    """Return random values of a dtype: zeros would hide what was not copied."""
    return (np.random.default_rng(seed).standard_normal(shape) * 50).astype(dtype)


#: Layouts of a matrix: each of some of its values.
LAYOUTS = {
    "C": lambda x: x,
    "F": np.asfortranarray,
    "T": lambda x: x.T,
    "step": lambda x: x[::2, ::3],
    "row": lambda x: x[:1],
    "size 0": lambda x: x[:0],
    "0-d": lambda x: x[0, 1],
    "reversed": lambda x: x[::2, ::-1],
    "byte-swapped": lambda x: x.astype(">f4"),
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
}


def library(name, device):
    """Return a library's ``asarray`` on a device, and its array type."""
    if name == "torch":
        torch = pytest.importorskip("torch")
        if device.type == "cuda" and not torch.cuda.is_available():
            pytest.skip("this PyTorch has no CUDA")
        return lambda x: torch.as_tensor(x, device=device.type), torch.Tensor
    jax = pytest.importorskip("jax")
    kind = "gpu" if device.type == "cuda" else "cpu"
    try:
        where = jax.local_devices(backend=kind)[0]
    except RuntimeError:
        pytest.skip("this JAX has no CUDA")
    return lambda x: jax.device_put(x, where), jax.Array


def locked(x):
    """Return an array that may only be read from now on."""
    x.flags.writeable = False
    return x


def pickled(x):
    return pickle.loads(pickle.dumps(x))  # noqa: S301 - our own


def unaligned(x):
    """Return a copy of an array, in C order, that begins a byte off."""
    memory = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    memory[...] = x
    return memory


def ran(device, kernel, extents, *args):
    """Run a kernel on a device; return what its last array holds after that."""
    args = [
        xdev.asarray(x, device=device, copy=True) if isinstance(x, np.ndarray) else x
        for x in args
    ]
    assert kernel[extents](*args) is None
    return xdev.to_numpy(args[-1])


def called(device, function, *args, **keywords):
    """Call a function on a device; return its results as NumPy's arrays."""
    return host(function(*there(device, *args), **keywords))


def same(found, expected, rtol=0, atol=0):
    """Compare a result, or a tuple of them, with NumPy's: dtype, shape and values."""
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)
        for one, other in zip(found, expected, strict=True):
            same(one, other, rtol, atol)
        return
    found, expected = host(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if rtol:
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
    else:
        np.testing.assert_array_equal(found, expected)


def without_source(text, name="f", **names):
    """Return a function of a text that is in no file."""
    exec(compile(text, "<nowhere>", "exec"), names)  # noqa: S102 - our own text
    return names[name]


def with_source(text, name="f", **names):
    """Return a function of a text, whose source is found."""
    file = f"<text {len(linecache.cache)}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    exec(compile(text, file, "exec"), names)  # noqa: S102 - our own text
    return names[name]


def resident():
    """Return how much memory of this process is there [B]."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def python(*words, cwd=None, **variables):
    """Run Python in a process of its own: its words and variables; how it ended."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        env=os.environ | {name: str(value) for name, value in variables.items()},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=cwd,
    )


def printed(program, *words, options=(), **variables):
    """Run a program, a text or a file, which must go well; return what it prints."""
    text = ("-c", dedent(program)) if isinstance(program, str) else (program,)
    done = python(*options, *text, *words, **variables)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def in_child(call):
    """Say whether a call is true in a forked child; one that hangs is ended."""
    child = os.fork()
    if not child:
        os._exit(not call())
    end = time.monotonic() + 20
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < end:
        time.sleep(0.001)
    if not ended[0]:
        os.kill(child, signal.SIGKILL)
        ended = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(ended[1]) == 0


def within(seconds, calls, *, interval=None):
    """Run calls in threads; return their results, or fail where one hangs.

    With an interval threads are switched so often [s].
    """
    results, errors = [], []

    def run(call):
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - the test shows it
            errors.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(interval or before)
    try:
        threads = [threading.Thread(target=run, args=(c,), daemon=True) for c in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds)
    finally:
        sys.setswitchinterval(before)
    hung = [sys._current_frames()[t.ident] for t in threads if t.is_alive()]
    assert hung == [], "deadlock"
    for error in errors:
        raise error
    return results


def until(holds):
    """Wait until something holds."""
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)


class OwnError(ValueError):
    """An error of the user's: its words are those of a refusal."""


#: What a handler of floating point errors raises; of some the text is a library's, too.
RAISED = [
    *(TypeError("no loop"), ValueError("a bad input is read-only"), OverflowError("")),
    OwnError("read-only: Cannot cast ufunc"),
]


class Clock:
    """A clock that moves by given costs, one a call [s], after so many free ones."""

    def __init__(self, costs, free=0):
        self.costs, self.now, self.calls = costs, 0.0, -free

    def __call__(self):
        return self.now

    def tick(self):
        """Be the statement that is timed."""
        if self.calls >= 0:
            self.now += self.costs[self.calls % len(self.costs)]
        self.calls += 1


def timed(runs, **more):
    """Return the timing of runs [s], each of one call."""
    return Timing(1, len(runs), min(runs), max(runs), runs, 0.5, **more)


def told(call, *args):
    """Return the floating point errors that a call warns of, and what it gives."""
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        results = call(*args)
    return {str(w.message).partition(" encountered")[0] for w in caught}, results
