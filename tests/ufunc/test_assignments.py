"""What compiled code needs to know: names before they are read, and sources."""

import ast
import linecache
import re

import numpy as np
import pytest
from running import called, same, without_source

import xdev

# ruff: noqa: F821, F841 - the faults


def in_one_branch(x):
    if x > 0:
        y = 1.0
    return y


def in_one_way_of_a_loop(x):
    for k in range(3):
        if k < x:
            last = k
    return last


def of_a_round_that_need_not_be(x):
    for k in range(3):
        if x < k:
            x += y
        elif k > 7:
            y = 1.0
    return x


def behind_and(x):
    return x if x > 0 and (y := x) > 0 else y


def deleted(x):
    y = x
    del y
    return y


@pytest.mark.parametrize(
    "function",
    [
        *(in_one_branch, in_one_way_of_a_loop, of_a_round_that_need_not_be),
        *(behind_and, deleted),
    ],
)
def test_a_name_that_python_may_lack_is_refused_with_its_line(function, device):
    with pytest.raises(UnboundLocalError) as raised:
        function(-1.0)
    (name,) = re.findall(r"'\w+'", str(raised.value))
    place = rf"{re.escape(__file__)}:{raised.traceback[-1].lineno + 1}: "

    words = rf"{function.__name__} may read {name} before .* the condition.*\n.*{place}"
    with pytest.raises(TypeError, match=words):
        xdev.vectorize(function)(xdev.asarray([1.0, -1.0], device=device))


def by_each_branch(x):
    if x > 2:
        y = 1.0
    elif x > 1:
        return 7.0
    else:
        y = 2.0
    return y


def by_an_endless_loop(x):
    old = 1.0
    while True:
        new = (old + 2.0 / old) / 2
        if abs(new - old) < 1e-9:
            break
        old = new
    return x * new


def by_else_of_a_loop(x):
    for k in range(5):
        if k > x:
            found = k
            break
    else:
        found = -1
    return x * 0.0 + found


def of_the_first_round(x):
    for k in range(5):
        most = x if k == 0 else max(most, x * k)
    return most


def of_an_outer_round(x):
    total = x
    for k in range(4):
        if k > 2:
            last = x
            continue
        for m in range(k):
            if k > 7:
                last = m
            total += m * last if k > 5 else m
        last = k + 1.0
    return total


@pytest.mark.parametrize(
    "function",
    [by_each_branch, by_an_endless_loop, by_else_of_a_loop, of_an_outer_round],
)
def test_a_name_that_python_never_lacks_is_taken(function, device):
    x = np.array([0.5, 1.5, 2.5, 7.0])
    expected = np.array([function(float(each)) for each in x])
    same(called(device, xdev.vectorize(function), x), expected, 1e-12)


def by_cases(x):
    match int(x):
        case 1:
            return x
    return 0.0


def test_match_is_refused(device):
    x = xdev.asarray([1.0], device=device)
    with pytest.raises(TypeError, match=r"by_cases has a match.*elif\n.*: match int"):
        xdev.vectorize(by_cases)(x)


def test_a_name_that_is_first_assigned_below_is_refused():
    assert of_the_first_round(2.0) == 8

    with pytest.raises(TypeError, match=r"'most' is first assigned below this line"):
        xdev.vectorize(of_the_first_round)(np.ones(3))


def test_such_a_name_in_kernels_core_arrays_and_functions_called(device):
    @xdev.kernel
    def point(i, x, out):
        out[i] = in_one_branch(x[i])

    @xdev.guvectorize("(n)->()")
    def last(x, out):
        for i in range(x.shape[0]):
            if x[i] > 0:
                k = i
        out[0] = k

    outer = xdev.vectorize(lambda x: in_one_branch(x) + 1)
    x = xdev.asarray([-1.0, -1.0], device=device)
    out = xdev.zeros(2, device=device)
    for call, name in ((point[2], "y"), (lambda x, _: last(x), "k"), (outer, "y")):
        with pytest.raises(TypeError, match=f"may read '{name}' "):
            call(x, out)


def test_a_number_is_added_to_for_one_point(device):
    @xdev.kernel
    def counted(i, x, s, total, out):
        s += x[i]
        out[i] = s
        if i < 0:
            s = 0.0
        s = xdev.atomic.add(total, 0, x[i])

    x, total, out = (xdev.asarray([1.0, 2.0], device=device) for _ in range(3))
    counted[2](x, 5.0, total, out)
    assert xdev.to_numpy(out).tolist() == [6, 7]
    assert xdev.to_numpy(total).tolist() == [4, 2]


MEAN = "def mean(x, y):\n    return (x + y) // 2\n"
LARGE = np.array([200, 100], "B")
PROGRAM = f"""
import numpy as np, xdev
@xdev.vectorize
{MEAN}
print(mean(np.uint8(200), np.uint8(100)))
"""


@pytest.mark.parametrize("types", ["BB", "Hi", "Bf", "Ll", "??"])
def test_without_source_integers_that_would_be_wider_are_refused(device, types):
    mean = xdev.vectorize(without_source(MEAN, "mean"))
    dtypes = ", ".join(str(np.dtype(t)) for t in types)
    words = rf"mean.*no source .*<nowhere>:1.*a file.*3\.13.*types, .*\({dtypes}\)'\]"
    for _ in range(2):
        with pytest.raises(TypeError, match=words):
            called(device, mean, *(np.ones(3, t) for t in types))


@pytest.mark.parametrize("types", ["ff", "fd", "l?", "ld", "DD"])
def test_without_source_others_and_signatures_are_computed(device, types):
    x, y = (np.array([3, 1], t) for t in types)
    product = xdev.vectorize(without_source("def f(x, y): return x * y * 2"))
    found = called(device, product, x, y)
    np.testing.assert_array_equal(found, x.real.astype(int) * y * 2)
    mean = xdev.vectorize(["uint8(uint8, uint8)"])(without_source(MEAN, "mean"))
    assert called(device, mean, LARGE, LARGE).tolist() == [200, 100]


def test_the_source_of_a_command_is_found(python):
    assert python("-Wdefault", "-sc", PROGRAM, "an argument").stdout == "22\n"


def test_cells_that_import_have_sources(monkeypatch):
    """IPython compiles each statement alone: no import stands before a function."""
    text = "import xdev as xp\n\ndef below(x):\n    return xp.clip(x, None, 0.5)\n"
    name = "<ipython-input-7>"
    entry = len(text), None, text.splitlines(keepends=True), name
    monkeypatch.setitem(linecache.cache, name, entry)
    scope = {}
    for statement in ast.parse(text).body:
        exec(compile(ast.Module([statement], []), name, "exec"), scope)  # noqa: S102

    assert xdev.vectorize(scope["below"])(np.asarray([0.2, 0.7])).tolist() == [0.2, 0.5]


def test_functions_of_one_line_have_each_its_own_source(device):
    """They differ in the sign of a zero, and in what is inside a tuple."""
    zeros = lambda x: x * 0.0, lambda x: x * -0.0
    tuples = lambda x: (x, (1,))[1][0] * x, lambda x: (x, (1.0,))[1][0] * x
    x = np.array([1, 2], "i2")
    for function in (*zeros, *tuples):
        found = xdev.vectorize(function)(xdev.asarray(x, device=device))

        expected = np.array([function(each) for each in x])
        assert xdev.to_numpy(found).dtype == expected.dtype
        assert xdev.to_numpy(found).tobytes() == expected.tobytes()


def test_an_edited_file_is_not_the_source_of_what_was_loaded_before(tmp_path):
    file = tmp_path / "edited.py"
    text = "def f(x):\n    def inner(y):\n        return y // 7\n    return inner(x)\n"
    scope = {}
    exec(compile(text, str(file), "exec"), scope)  # noqa: S102
    file.write_text(text.replace("7", "9"))

    assert xdev.vectorize(scope["f"])(np.array([63])).tolist() == [9]


def test_a_number_on_one_way_and_a_bool_on_the_other_are_a_number(device):
    @xdev.vectorize
    def chosen(x):
        y = 5
        if x:
            y = x
        return y, 2 if x else 5

    found = called(device, chosen, np.array([False, True]))
    same(found, (np.array([5, 1]), np.array([5, 2])))
