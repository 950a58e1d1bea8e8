import pickle

import pytest

from xdev import errors

KINDS = {
    errors.ConfigurationError: ValueError,
    errors.DeviceMismatchError: TypeError,
    errors.DeviceUnavailableError: RuntimeError,
    errors.UseAfterFreeError: RuntimeError,
    errors.InUseError: RuntimeError,
}


@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_xdevs_and_the_built_in_kind(kind):
    error = pickle.loads(pickle.dumps(kind("what, and the way out")))  # noqa: S301

    assert isinstance(error, errors.XdevError)
    assert isinstance(error, KINDS[kind])
    assert str(error) == "what, and the way out"


def test_out_of_memory_survives_pickling_and_says_it_all():
    error = errors.OutOfMemoryError("cuda:0", 4096, 100, 200, 300, ("80 B at a.py:3",))
    again = pickle.loads(pickle.dumps(error))  # noqa: S301

    assert isinstance(again, MemoryError)
    assert vars(again) == vars(error)
    assert str(again) == str(error)
    for part in ("cuda:0", "4,096 B", "100 B", "200 B", "300 B", "set_limit", "a.py:3"):
        assert part in str(again)
