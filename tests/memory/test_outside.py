"""Library calls that allocate past the pool: one more try, then the pool's error."""

import sys
import textwrap
from types import SimpleNamespace

import numpy as np
import pytest
from running import pickled

from xdev.errors import OutOfMemoryError
from xdev.facade import cuda as facade_cuda
from xdev.memory import Pool
from xdev.memory.reclamation import CODES, retrying
from xdev.memory.tracking import track
from xdev.numpy import dispatch
from xdev.testing import FakeSource

MIB = 1 << 20
CARD = 512 * MIB


# Where pickle finds them: beside Dask an error takes its cause along.
globals().update({name: type(name, (RuntimeError,), {}) for name in CODES})


def library_error(name, code, text="it failed"):
    """An error as CuPy raises it, of a library that is not here."""
    error = globals()[name](text)
    setattr(error, CODES[name][0], code)
    return error


SURE = [(name, code) for name, codes in CODES.items() for code in codes[1]]
LIKELY = [(name, code) for name, codes in CODES.items() for code in codes[2]]


class Library:
    """Takes memory of the card itself; what it gets it keeps."""

    def __init__(self, source, nbytes, error):
        self.source, self.nbytes, self.error, self.calls = source, nbytes, error, 0

    def __call__(self, x, *, scale=1):
        self.calls += 1
        scratch = [x] * 3
        scratch.append(scratch)  # garbage that only the collector finds
        try:
            self.source.allocate(self.nbytes)
        except MemoryError:
            raise self.error from None
        return x * scale


@pytest.fixture
def source():
    return FakeSource(CARD)


@pytest.fixture
def pool(source):
    return Pool(source, name="cuda:0")


@pytest.mark.parametrize(("name", "code"), SURE + LIKELY)
def test_a_library_without_memory_tries_again_once_the_pool_gave_back(
    source, pool, name, code
):
    kept = pool.acquire(MIB)
    pool.release(pool.acquire(CARD - 2 * MIB))
    library = Library(source, 300 * MIB, library_error(name, code))
    assert retrying(library, lambda: pool)(21, scale=2) == 42
    assert library.calls == 2
    stats = pool.stats()
    assert (stats.retries, stats.refusals) == (1, 0)
    assert stats.allocated == kept.nbytes


def test_what_the_failed_call_held_is_free_for_the_second_try(source, pool):
    """Its frames are gone by then, and with them the arrays in them."""

    def call():
        workspace = pool.acquire(300 * MIB)
        if pool.stats().retries == 0:
            raise library_error("CuFFTError", 2)
        return workspace.nbytes

    assert retrying(call, lambda: pool)() == 300 * MIB
    assert len(source.lent) <= 1


@pytest.mark.parametrize(("name", "code"), SURE + LIKELY)
def test_a_second_failure_is_the_pools_error_with_the_librarys_words(
    source, pool, name, code
):
    pool.budget.set(CARD)
    with track():
        held = pool.acquire(CARD - MIB)
        library = Library(source, 2 * MIB, library_error(name, code, "NO_MEMORY"))
        with pytest.raises(OutOfMemoryError, match="NO_MEMORY") as refusal:
            retrying(library, lambda: pool)(1)
    error = refusal.value
    assert type(error.__cause__).__name__ == name
    assert (error.device, error.library) == ("cuda:0", "NO_MEMORY")
    assert (error.asked, error.allocated, error.limit) == (0, held.nbytes, CARD)
    assert "lower limit" in str(error)
    assert "test_outside.py:" in error.holders[0]
    assert str(pickled(error)) == str(error)
    assert library.calls == 2
    assert (pool.stats().retries, pool.stats().refusals) == (1, 1)


@pytest.mark.parametrize(("name", "code"), LIKELY)
def test_an_error_that_may_be_of_memory_stays_itself_where_there_is_plenty(
    source, pool, name, code
):
    library = Library(source, 2 * CARD, library_error(name, code))
    with pytest.raises(RuntimeError) as caught:
        retrying(library, lambda: pool)(1)
    assert caught.value is library.error
    assert pool.stats().refusals == 0


@pytest.mark.parametrize(
    "error",
    [
        library_error("CuFFTError", 8),
        RuntimeError("something else"),
        ValueError("a bad argument"),
        OutOfMemoryError("cuda:0", 1, 2, 3, None),
    ],
)
def test_other_errors_pass_at_once(source, pool, error):
    library = Library(source, 2 * CARD, error)
    with pytest.raises(type(error)) as caught:
        retrying(library, lambda: pool)(1)
    assert caught.value is error
    assert library.calls == 1
    assert pool.stats().retries == 0


@pytest.mark.parametrize("name", ["fft.fft", "linalg.inv", "linalg.eigvals", "matmul"])
def test_the_facades_transforms_and_linear_algebra_try_again(
    monkeypatch, source, pool, name
):
    pytest.importorskip("cupy")
    pool.release(pool.acquire(CARD))
    library = Library(source, 300 * MIB, library_error("CUSOLVERError", 2))
    room, _, last = name.rpartition(".")
    own = SimpleNamespace(**{last: library})
    monkeypatch.setattr(facade_cuda, "pool", lambda device: {"cuda": pool}[device])
    monkeypatch.setitem(facade_cuda.MENDED, "linalg.eigvals", library)
    monkeypatch.setitem(facade_cuda.MENDED, "matmul", library)
    monkeypatch.delitem(facade_cuda.OWN, name, raising=False)
    cupy = facade_cuda.CuPyLibrary()
    namespace = SimpleNamespace(**{room: own}) if room else own
    monkeypatch.setattr(cupy, "namespace", namespace)
    monkeypatch.setitem(sys.modules, "array_api_compat.cupy", namespace)
    assert cupy.bound(name, None)(np.asarray(21), scale=2) == 42
    assert (library.calls, pool.stats().retries) == (2, 1)


FULL_CARD = """
    import sys
    import numpy as np
    import xdev
    from xdev import memory

    call, cached = sys.argv[1], int(sys.argv[2])
    a = np.random.default_rng(0).standard_normal((64, 64)) + 64 * np.eye(64)
    x = xdev.asarray(a, device="cuda")
    xdev.synchronize("cuda")
    cupy = sys.modules["cupy"]
    pool = memory.pool("cuda")
    spare = pool.acquire(1 << 20)  # for results; the library's own is what lacks
    big = pool.acquire(cached)
    del spare, big
    size = cupy.cuda.runtime.memGetInfo()[0]
    while size >= 1 << 16:  # until nothing is left outside the pool
        try:
            cupy.cuda.runtime.malloc(size)
        except cupy.cuda.runtime.CUDARuntimeError:
            size //= 2
    calls = {
        "fft": (xdev.fft.fft, np.fft.fft),
        "matmul": (lambda x: xdev.matmul(x, x), lambda a: a @ a),
        "solve": (lambda x: xdev.linalg.solve(x, x), lambda a: np.linalg.solve(a, a)),
    }
    ours, numpys = calls[call]
    try:
        result = ours(x)
    except xdev.OutOfMemoryError as error:
        print("refused:", error.library)
    else:
        np.testing.assert_allclose(xdev.to_numpy(result), numpys(a), atol=1e-9)
        print("served after retries:", pool.stats().retries)
"""


@pytest.mark.cuda
@pytest.mark.full_card
@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("call", ["fft", "matmul", "solve"])
@pytest.mark.parametrize(("cached", "outcome"), [(2 << 30, "served"), (1, "refused")])
def test_on_a_full_card_the_pools_cache_serves_the_libraries(
    call, cached, outcome, python
):
    """In a process of its own: the first use of a library makes its handle."""
    program = textwrap.dedent(FULL_CARD)
    done = python("-c", program, call, cached, XDEV_DEVICE="cuda")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(outcome), done.stdout
    assert outcome == "refused" or not done.stdout.endswith(" 0\n"), "no retry"


def test_functions_under_numpys_names_try_again_where_the_facades_do():
    pytest.importorskip("cupy")
    library, again = facade_cuda.CuPyLibrary(), retrying(print, Pool).__code__

    for name in ("matmul", "linalg.solve", "fft.fft", "average", "sort"):
        found = dispatch._function(library, name)
        outside = name.startswith(facade_cuda.OUTSIDE)
        assert (getattr(found, "__code__", None) is again) == outside, name
