import pickle

import pytest

from xdev import errors

KINDS = {
    errors.CaptureError: RuntimeError,
    errors.ConfigurationError: ValueError,
    errors.DeviceMismatchError: TypeError,
    errors.DeviceUnavailableError: RuntimeError,
    errors.UseAfterFreeError: RuntimeError,
    errors.InUseError: RuntimeError,
    errors.MemoryCorruptionError: RuntimeError,
    errors.OutOfMemoryError: MemoryError,
    errors.XdevError: Exception,
}
ARGUMENTS = {errors.OutOfMemoryError: ("cuda:0", 4096, 100, 200, None, ("80 B",))}


def test_every_error_has_its_built_in_kind():
    every = (kind for kind in vars(errors).values() if isinstance(kind, type))
    assert {kind for kind in every if issubclass(kind, Exception)} == set(KINDS)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", KINDS)
def test_every_error_survives_pickling_with_all_that_it_carries(kind, protocol):
    error = kind(*ARGUMENTS.get(kind, ("what, and the way out",)))
    error.add_note("and where")
    again = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301

    assert isinstance(error, errors.XdevError)
    assert isinstance(error, KINDS[kind])
    assert kind in ARGUMENTS or str(error) == "what, and the way out"
    assert type(again) is kind
    assert (str(again), again.args, vars(again)) == (
        *(str(error), error.args, vars(error)),
    )


def test_out_of_memory_says_it_all_and_comes_back_from_a_worker_of_dask():
    tblib = pytest.importorskip("tblib.pickling_support")
    error = errors.OutOfMemoryError("cuda:0", 4096, 100, 200, 300, ("80 B at a.py:3",))

    for part in ("cuda:0", "4,096 B", "100 B", "200 B", "300 B", "set_limit", "a.py:3"):
        assert part in str(error)
    assert "track()" not in str(error)
    again = tblib.pickle_exception(error)
    made = again[0](*again[1])
    assert type(made) is errors.OutOfMemoryError
    assert (str(made), made.args, made.asked) == (str(error), error.args, 4096)
