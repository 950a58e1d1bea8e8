"""What errors say: the argument, what it is, and what works."""

import array_api_strict
import numpy as np
import pytest

import xdev


@pytest.mark.parametrize("join", [xdev.concat, xdev.stack])
def test_one_array_in_a_lists_place_is_told_to_be_listed(device, join):
    x, y = xdev.ones(3, device=device), xdev.ones((2, 2), device=device)
    text = rf"xdev\.{join.__name__}: arrays is .*, and must be a list or a tuple of arr"
    for wrong in ((x,), (x, x), (y, y), (3,), (y[0, 0],)):
        with pytest.raises(TypeError, match=text):
            join(*wrong)

    rows = xdev.to_numpy(join(y))  # of which the parts are arrays, as for NumPy
    np.testing.assert_array_equal(rows, getattr(np, join.__name__)(np.ones((2, 2))))


@pytest.mark.parametrize(
    ("name", "dtypes", "text"),
    [
        (
            "bitwise_and",
            ("f8", "f8"),
            r"integers, and x1 is float64: .*int64\)",
        ),
        (
            "bitwise_or",
            ("?", "f4"),
            r"integers, and x2 is float32: .*astype\(x2",
        ),
        ("bitwise_invert", ("f8",), "bool and integers, and x is float64: convert it"),
        ("bitwise_left_shift", ("i8", "f8"), "integers, and x2 is float64"),
        (
            "bitwise_xor",
            ("c8", "i8"),
            "integers, and x1 is complex64: convert",
        ),
        ("floor", ("c16",), r"real floats, and x is complex128: take xdev\.real\(x\)"),
        ("atan2", ("f8", "c16"), "real floats, and x2 is complex128"),
    ],
)
def test_a_data_type_that_a_function_does_not_take_is_named(device, name, dtypes, text):
    function = getattr(xdev, name)
    arrays = [xdev.asarray(np.ones((2, 2), dtype), device=device) for dtype in dtypes]
    with pytest.raises(TypeError, match=rf"^xdev\.{name} takes .*{text}") as caught:
        function(*arrays)
    assert caught.value.__suppress_context__, "NumPy's own text is not shown"


def test_a_number_that_a_function_does_not_take_is_named(device):
    x = xdev.ones(2, dtype=xdev.int64, device=device)
    text = "bool and integers, and x2 is float: give another number"
    with pytest.raises(TypeError, match=rf"^xdev\.bitwise_and takes {text}$"):
        xdev.bitwise_and(x, 1.5)


@pytest.mark.parametrize("dtypes", [("U1", "f8"), ("f8", "M8[s]")])
def test_matmul_names_the_data_type_that_it_does_not_take(dtypes):
    x1, x2 = (np.ones((2, 2)).astype("i8").astype(dtype) for dtype in dtypes)
    odd = "x1 is <U1" if dtypes[0] == "U1" else "x2 is datetime64"
    kinds = "bool, integers, real floats and complex floats"
    with pytest.raises(TypeError, match=rf"^xdev\.matmul takes {kinds}, and {odd}"):
        xdev.matmul(x1, x2)


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (((2, 2), (3,)), r"last axis of x1 has 2 elements and the only one of x2 3, "),
        (((5, 2), (4, 3, 6)), r"has 2 elements and the second last one of x2 3, and "),
        (((2,), ()), r"a number multiplies by xdev\.multiply\(x1, x2\)$"),
        (((), (2, 2)), r"a number multiplies by xdev\.multiply"),
        (((2, 3, 3), (4, 3, 3)), r"the axes before the last two must broadcast: "),
    ],
)
def test_matmul_names_shapes_that_do_not_fit(device, shapes, text):
    x1, x2 = (xdev.ones(shape, device=device) for shape in shapes)
    start = f"xdev.matmul: x1 is of shape {shapes[0]} and x2 of shape {shapes[1]}: "

    with pytest.raises(ValueError, match=text) as caught:
        xdev.matmul(x1, x2)
    assert str(caught.value).startswith(start)
    assert caught.value.__suppress_context__


def test_devices_of_other_libraries_have_their_own_names():
    x = array_api_strict.ones(2)
    y = array_api_strict.ones(2, device=array_api_strict.Device("device1"))
    added = xdev.vectorize(lambda x, y: x + y)
    calls = lambda: xdev.add(x, y), lambda: xdev.concat([x, y]), lambda: added(x, y)
    for call in calls:
        with pytest.raises(xdev.DeviceMismatchError) as caught:
            call()
        text = str(caught.value)
        assert "CPU_DEVICE" in text
        assert "device1" in text
        assert "fake" not in text


def test_an_operation_of_objects_raises_what_they_raise():
    class Odd:
        def __and__(self, other):
            raise TypeError("my own")

    x = np.asarray([Odd()])
    with pytest.raises(TypeError, match="my own"):
        xdev.bitwise_and(x, x)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("std(x, ddof=1)", "'ddof' (NumPy's): use correction="),
        ("var(x, ddof=1)", "'ddof' (NumPy's): use correction="),
        ("clip(x, a_min=0)", "'a_min' (NumPy's): use min="),
        ("clip(x, a_max=0)", "'a_max' (NumPy's): use max="),
        ("mean(x, dtype='f4')", "'dtype' (NumPy's): leave it out, or use xdev.numpy."),
        *(
            (
                f"{name}(x, where=x > 0)",
                f"'where' (NumPy's): leave it out, or use xdev.numpy.{name}",
            )
            for name in ("all", "any", "max", "mean", "min", "prod", "std", "sum")
        ),
        ("sum(x, axes=0)", "'axes': it takes x, axis, dtype and keepdims"),
        ("zeros(2, 3)", "the extents of a shape go in one tuple"),
    ],
)
def test_a_keyword_of_numpys_is_answered(device, written, told):
    x = xdev.ones(3, device=device)

    with pytest.raises(TypeError) as caught, xdev.use_device(device):
        eval(f"xp.{written}", {"xp": xdev, "x": x})  # noqa: S307 - the list above
    assert told in str(caught.value)
