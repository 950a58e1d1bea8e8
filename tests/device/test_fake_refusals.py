"""What fails on CUDA fails on the fake devices."""

import operator
import re

import numpy as np
import pytest

import xdev

VALUES = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.5]])


def fake(values=VALUES, device="fake"):
    return xdev.to_device(np.asarray(values), device)


REFUSED = {
    "asarray": np.asarray,
    "array": lambda x: np.array([x, x]),
    "ufunc": lambda x: np.add(x, x),
    "function": np.sum,
    "concatenate": lambda x: np.concatenate([x, x]),
    "beside a host array": lambda x: x + VALUES,
    "beside a host array, turned": lambda x: VALUES + x,
    "compared with a host array": lambda x: operator.lt(VALUES, x),
    "matmul": lambda x: VALUES.T @ x,
    "beside a list": lambda x: operator.add(x, [1.0, 2.0, 3.0]),
    "into a host array": lambda x: operator.setitem(VALUES.copy(), 0, x[0]),
    "in place of a host array": lambda x: operator.iadd(VALUES.copy(), x),
    "from a host array": lambda x: operator.setitem(x, 0, VALUES[0]),
    "with a host mask": lambda x: x[VALUES > 0],
    "with host indices": lambda x: x[np.array([0])],
    "with indices of another device": lambda x: x[fake([0], "fake:1")],
    "host array with fake indices": lambda x: VALUES[x.argmax(axis=1)],
    "out on the host": lambda x: xdev.add(x, x, out=VALUES.copy()),
    "out on another device": lambda x: xdev.add(x, x, out=fake(VALUES, "fake:1")),
    "method with a host array": lambda x: x.dot(VALUES.T),
    "method with a host out": lambda x: x.sum(axis=0, out=np.zeros(3)),
    "beside another device": lambda x: x + fake(VALUES, "fake:1"),
    "facade with a host array": lambda x: xdev.add(x, VALUES),
    "an index of the host": lambda x: [1, 2, 3][x.astype(int)[0, 0]],
    "a range": lambda x: range(x.astype(int)[0, 0]),
    "a shape": lambda x: xdev.zeros(x.astype(int)[0, 0]),
    "a hash": hash,
    "memoryview": memoryview,
    "iteration of a number": lambda x: list(x.sum()),
    "float of several": float,
    "parameters of NumPy's methods": lambda x: x.sum(where=x > 0),
    "places of NumPy's methods": lambda x: x.item(0),
    "text": lambda x: xdev.asarray(["a"], device=x.device),
    "long double": lambda x: x.astype(np.longdouble),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_fails_on_cuda_is_refused(name):
    x = fake()

    with pytest.raises(TypeError):
        REFUSED[name](x)

    np.testing.assert_array_equal(xdev.to_numpy(x), VALUES)


@pytest.mark.parametrize(
    "call",
    [
        *(REFUSED[name] for name in ("asarray", "array", "function", "concatenate")),
        *(np.sin, lambda x: np.hypot(x, x), np.add.reduce, np.linalg.norm),
    ],
)
def test_the_refusal_names_the_explicit_copy(call):
    with pytest.raises(TypeError, match=r"fake:0.*xdev\.to_numpy\(x\)"):
        call(fake())


ADVICE = re.compile(r"xdev\.to_device\(([xyz]), '[a-z:01]+'\)")
MIXED = {
    "x + y": lambda x, y: x + y,
    "x ** y": lambda x, y: x**y,
    "x < y": lambda x, y: x < y,
    "x == y": lambda x, y: x == y,
    "x @ y": lambda x, y: x @ y,
    "x += y": operator.iadd,
}


@pytest.mark.parametrize("sign", MIXED)
@pytest.mark.parametrize(
    ("first", "second"), [("cpu", "fake"), ("fake", "cpu"), ("fake:1", "fake:0")]
)
def test_the_refusal_names_both_devices_and_moves_that_work(sign, first, second):
    x, y = (
        xdev.to_device(np.eye(2) + 1, device, copy=True) for device in (first, second)
    )
    with pytest.raises(xdev.DeviceMismatchError) as caught:
        MIXED[sign](x, y)

    text = str(caught.value)
    for array in (x, y):
        assert f"is on {xdev.device_of(array)}" in text
    found = {advice[1]: advice[0] for advice in ADVICE.finditer(text)}
    assert set(found) == {"x", "y"}
    for label, way in found.items():
        arrays = {"x": x, "y": y}
        arrays[label] = eval(way, {"xdev": xdev}, arrays)  # noqa: S307 - our advice
        result = MIXED[sign](+arrays["x"], arrays["y"])
        np.testing.assert_array_equal(
            xdev.to_numpy(result), MIXED[sign](np.eye(2) + 1, np.eye(2) + 1)
        )


def test_numpys_scalars_go_anywhere():
    x = fake()

    for result in (np.float64(2) * x, 2 * x, x * np.float64(2)):
        assert xdev.device_of(result) == "fake:0"
        np.testing.assert_array_equal(xdev.to_numpy(result), 2 * VALUES)
    np.testing.assert_array_equal(xdev.to_numpy(np.float64(1) < x), VALUES > 1)


def test_dlpack_leaves_the_device_only_when_told_where_to():
    x = fake()

    with pytest.raises(BufferError, match="to_numpy"):
        np.from_dlpack(x)
    copied = np.from_dlpack(x, device="cpu")
    copied[...] = 0

    np.testing.assert_array_equal(xdev.to_numpy(x), VALUES)


PROGRAM = """
import numpy as np
import xdev as xp

x = xp.linspace(0, 1, 5)
total = xp.sum({convert}(x))
print(xp.device_of(x), float(total))
"""


@pytest.mark.parametrize(
    ("convert", "output", "problem"),
    [("xp.to_numpy", "fake:0 2.5\n", ""), ("np.asarray", "", "xdev.to_numpy(x)")],
)
def test_a_program_that_forgets_a_copy_fails(python, convert, output, problem):
    done = python("-c", PROGRAM.format(convert=convert), XDEV_DEVICE="fake")

    assert done.stdout == output
    assert problem in done.stderr
    assert bool(done.returncode) == bool(problem)
